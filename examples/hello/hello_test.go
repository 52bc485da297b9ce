package main

import (
	"os"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

func TestHello(t *testing.T) {
	const asked = "refund {\"id\":\"A-1017\"}\nAllow? [y/N] "
	const found = "find_order: 12.50, paid by card\n"
	for _, c := range []struct {
		name, typed string
		zone        ringi.TrustZone
		want        string
	}{
		{"yes", "y\n", "", asked + found + "refund: refunded A-1017\nThat is all.\n"},
		{"no", "n\n", "", asked + found + "refund: denied by a person, not executed; this is final for this call\nThat is all.\n"},
		{"a bare return", "\n", "", asked + found + "refund: denied by a person, not executed; this is final for this call\nThat is all.\n"},
		{"nobody at the terminal", "", "", asked + found},
		{"a local model", "y\n", ringi.ZoneLocal, asked + found + "refund: refunded A-1017\nThat is all.\n"},
		{"a model in a far zone", "y\n", ringi.ZoneExternalGlobal,
			"find_order: not offered, not executed: trust_zone\nrefund: not offered, not executed: trust_zone\nThat is all.\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := run(strings.NewReader(c.typed), &out, c.zone); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimRight(out.String(), "\n") + "\n"; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestAnUnknownZoneIsAnError(t *testing.T) {
	var out strings.Builder
	if err := run(strings.NewReader("y\n"), &out, "mars"); err == nil || out.Len() != 0 {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestHelloIsShort(t *testing.T) {
	b, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), "\n"); n > 55 {
		t.Errorf("main.go has %d lines, at most 55 are promised", n)
	}
}
