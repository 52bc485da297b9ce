package agui_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/internal/chat/chattest"
)

var update = flag.Bool("update", false, "write the golden files")

// fixed is a stream with one delta a text, and without what changes.
func fixed(t *testing.T, r *reply) string {
	t.Helper()
	return chattest.Golden(t, r.events, func(kind string) bool { return strings.HasPrefix(kind, "REASONING") },
		func(kind string) bool { return kind == "TEXT_MESSAGE_CONTENT" }, chattest.Change{Find: regexp.MustCompile(`~r1\.[^"]+`), Put: "~SEAL"})
}

// What goes over the wire, whole: for each conversation the stream of its message,
// of its answer, and of a client that connects afterwards.
func TestWire(t *testing.T) {
	for _, c := range []struct {
		name, say string
		answer    func(*user) m
		config    func(*engine.Config)
	}{
		{"text", "hello", nil, nil},
		{"approve", "pay", func(u *user) m { return u.resolved(0, m{"approved": true}) }, nil},
		{"deny", "pay", func(u *user) m { return u.resolved(0, m{"approved": false, "reason": "too dear"}) }, nil},
		{"edit", "pay", func(u *user) m {
			return u.resolved(0, m{"approved": true, "editedArgs": m{"to": "bob", "amount": 5}})
		}, nil},
		{"cancelled", "pay", func(u *user) m { return u.cancelled(0) }, nil},
		{"waits", "pay", nil, nil},
		{"typed-input", "book", func(u *user) m { return u.resolved(0, m{"code": "1234"}) }, nil},
		{"client-tool", "where", func(u *user) m { return u.resolved(0, m{"result": m{"city": "Oslo"}}) }, nil},
		{"invalid-call", "nothing", nil, nil},
		{"failed", "break", nil, nil},
		{"automatic-denial", "pay", nil, func(c *engine.Config) {
			c.RuleFloor = false
			c.Approval.Tools = map[string]ringi.ToolApproval{"pay": {Status: ringi.Denied, Reason: "no payments today"}}
		}},
		{"elsewhere", "pay", nil, func(c *engine.Config) { c.Deciders = ringi.Deciders{People: []string{"boss"}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t, opened{config: c.config})
			u := s.user("ana", "thread-1")
			got := "-- message --\n" + fixed(t, u.say(c.say))
			if c.answer != nil {
				got += "-- answer --\n" + fixed(t, u.resume(c.answer(u)))
			}
			s.restart()
			u.messages = nil
			got += "-- connect --\n" + fixed(t, u.connect())
			if c.name == "failed" { // whether a client sees the step begin that breaks at once is a matter of time
				got = strings.ReplaceAll(got, `{"stepName":"step 1","type":"STEP_STARTED"}`+"\n"+`{"stepName":"step 1","type":"STEP_FINISHED"}`+"\n", "")
			}
			path := filepath.Join("testdata", "wire", c.name+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs (go test ./agui -run Wire -update):\n%s", path, got)
			}
		})
	}
}
