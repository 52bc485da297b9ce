package nearest

import (
	"slices"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		word, want string
		known      []string
	}{
		{"reefund", "refund", []string{"order", "refund", "refunds"}},
		{"REFUND", "refund", []string{"order", "refund"}},
		{"refnud", "refund", []string{"refund"}},
		{"refund", "", []string{"order", "ship"}},
		{"ab", "ax", []string{"ax", "ay"}}, // of equals the first
		{"ab", "", []string{"xy"}},
		{"req_01k", "req_01k2345678", []string{"req_99", "req_01k2345678"}}, // begins it
		{"req_0", "", []string{"req_012345678"}},                            // too short to mean it
		{"", "", []string{"a"}},
		{"a", "", nil},
		{strings.Repeat("a", 129), "", []string{strings.Repeat("a", 129)}},
		{strings.Repeat("a", 128), strings.Repeat("a", 127), []string{strings.Repeat("a", 127)}},
	} {
		if got := Of(tt.word, slices.Values(tt.known)); got != tt.want {
			t.Errorf("Of(%q, %q) = %q, want %q", tt.word, tt.known, got, tt.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"ab", "ba", 2}, {"same", "same", 0},
	} {
		if got := distance(tt.a, tt.b); got != tt.want || distance(tt.b, tt.a) != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d both ways", tt.a, tt.b, got, tt.want)
		}
	}
}
