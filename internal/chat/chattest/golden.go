package chattest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// Change is what differs from run to run, and what stands for it in a golden
// file.
type Change struct {
	Find *regexp.Regexp
	Put  string
}

// changing are the ids and times of every wire.
var changing = []Change{
	{regexp.MustCompile(`thr_[a-z0-9]+`), "THREAD"},
	{regexp.MustCompile(`(run|call|req)_[0-9a-z]{20,}`), "$1"},
	{regexp.MustCompile(`"expiresAt":"[^"]+"`), `"expiresAt":"TIME"`},
}

// Golden are events of a stream as lines: neighbours that are deltas of one text
// are one, what a fast model is past is left out, and what changes is replaced.
func Golden[M ~map[string]any](t testing.TB, events []M, past, delta func(kind string) bool, changes ...Change) string {
	t.Helper()
	var out []M
	for _, e := range events {
		kind, _ := e["type"].(string)
		if past(kind) {
			continue
		}
		if n := len(out); n > 0 && delta(kind) && out[n-1]["type"] == kind {
			out[n-1]["delta"] = out[n-1]["delta"].(string) + e["delta"].(string)
			continue
		}
		out = append(out, e)
	}
	var b strings.Builder
	for _, e := range out {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return Steady(b.String(), changes...)
}

// Steady is a text without what changes, and without the ids and times of every
// wire.
func Steady(text string, changes ...Change) string {
	for _, c := range append(changes, changing...) {
		text = c.Find.ReplaceAllString(text, c.Put)
	}
	return text
}
