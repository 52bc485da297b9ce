package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi/access"
)

// peopleLine runs one command on a server's data and returns what it printed.
func peopleLine(t *testing.T, want int, data string, args ...string) string {
	t.Helper()
	e := osEnv()
	var out, errs bytes.Buffer
	e.out, e.err = &out, &errs
	if got := execute(t.Context(), e, append(args, "--data", data)); got != want {
		t.Fatalf("ringi %s exits with %d, want %d: %s%s", strings.Join(args, " "), got, want, out.String(), errs.String())
	}
	return out.String() + errs.String()
}

func TestPeopleAndTokens(t *testing.T) {
	t.Setenv("RINGI_CONFIG", "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	data := filepath.Join(t.TempDir(), "data")
	if out := peopleLine(t, exitFailed, data, "user", "list"); !strings.Contains(out, "no server has been started") {
		t.Errorf("without a server: %s", out)
	}
	if err := prepareData(data); err != nil {
		t.Fatal(err)
	}
	d, err := openDirectory(t.Context(), filepath.Join(data, accessFile), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if id, err := d.firstUser(t.Context(), "You"); err != nil || id != access.LocalID(owner) {
		t.Fatalf("the first user is %q, %v", id, err)
	}
	if id, err := d.firstUser(t.Context(), "You"); err != nil || id != "" {
		t.Fatalf("a second first user is %q, %v", id, err)
	}

	out := peopleLine(t, exitDone, data, "user", "add", "ana", "--name", "Ana", "--role", "approver", "--team", "billing")
	if !strings.Contains(out, "local:ana") || strings.Contains(out, "login?link=") {
		t.Errorf("a login link went into a pipe, or nobody was added: %s", out)
	}
	peopleLine(t, exitUsage, data, "user", "link", "ana")
	if out := peopleLine(t, exitDone, data, "user", "list"); !strings.Contains(out, "billing") || !strings.Contains(out, "local:owner") {
		t.Errorf("list: %s", out)
	}

	var made struct{ ID, Token string }
	text := peopleLine(t, exitDone, data, "token", "create", "nightly", "--agent", "office", "--scope", "run", "--scope", "read", "--json")
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	who, err := d.ByToken(t.Context(), made.Token)
	if err != nil || who.TokenID != made.ID {
		t.Fatalf("the token speaks for %+v, %v", who, err)
	}
	// An agent's token never decides.
	peopleLine(t, exitFailed, data, "token", "create", "sly", "--agent", "office", "--scope", "decide")
	if out := peopleLine(t, exitDone, data, "token", "list"); strings.Contains(out, made.Token) || !strings.Contains(out, made.ID) {
		t.Errorf("list: %s", out)
	}
	peopleLine(t, exitDone, data, "token", "revoke", made.ID)
	if _, err := d.ByToken(context.Background(), made.Token); err == nil {
		t.Error("a revoked token still speaks")
	}
}

// The code of a login link is square, quiet around, and of two colours.
func TestCodeIsDrawn(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(code("http://127.0.0.1:7464/login?link=abc"), "\n"), "\n")
	if len(lines) < 10 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, l := range lines {
		if n := len([]rune(l)); n != len([]rune(lines[0])) || strings.Trim(l, " ▀▄█") != "" {
			t.Errorf("%d wide: %q", n, l)
		}
	}
	if strings.Trim(lines[0], "█") != "" {
		t.Errorf("no quiet zone: %q", lines[0])
	}
}
