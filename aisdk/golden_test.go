package aisdk_test

import (
	"encoding/json"
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

// fixed is a stream with one delta a text, and without what changes: a fast
// model's call is there at once.
func fixed(t *testing.T, r *reply) string {
	t.Helper()
	return chattest.Golden(t, r.chunks, func(kind string) bool { return kind == "tool-input-start" || strings.HasPrefix(kind, "reasoning") },
		func(kind string) bool { return strings.HasSuffix(kind, "-delta") }, changing...)
}

// changing is what differs from run to run in a chat alone.
var changing = []chattest.Change{
	{Find: regexp.MustCompile(`r1\.[^"]+`), Put: "SEAL"},
	{Find: regexp.MustCompile(`"p[0-9]+\.[0-9]+"`), Put: `"part"`},
}

// What goes over the wire, whole: for each conversation the stream of its
// message, of its answer, of a look at it afterwards, and its messages.
func TestWire(t *testing.T) {
	auto := func(c *engine.Config) {
		c.RuleFloor = false
		c.Approval.Tools = map[string]ringi.ToolApproval{"pay": {Status: ringi.Denied, Reason: "no payments today"}}
	}
	for _, c := range []struct {
		name, say, answer, sdk string
		config                 func(*engine.Config)
	}{
		{"text", "hello", "", "7", nil},
		{"B47-approve", "pay", "approve", "7", nil},
		{"B56-deny", "pay", "deny", "7", nil},
		{"B62-siblings", "pay and look", "approve", "7", nil},
		{"B66-automatic-denial", "pay", "", "7", auto},
		{"invalid-call", "nothing", "", "7", nil},
		{"typed-input", "book", "", "7", nil},
		{"browser-tool", "where", "", "7", nil},
		{"failed", "break", "", "7", nil},
		{"sdk6-approve", "pay", "approve", "6", nil},
		{"sdk6-automatic-denial", "pay", "", "6", auto},
		{"elsewhere", "pay", "", "7", func(c *engine.Config) { c.Deciders = ringi.Deciders{People: []string{"boss"}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t, opened{config: c.config})
			u := s.user("ana", "chat-1")
			u.sdk = c.sdk
			got, first := "", u.say(c.say)
			if !strings.Contains(c.say, " and ") { // a sibling's result may come before or after the question
				got = "-- message --\n" + fixed(t, first)
			}
			if c.answer != "" {
				answerPart(u.toolParts()[0], c.answer == "approve", "because")
				got += "-- answer --\n" + fixed(t, u.post("submit-message"))
			}
			s.restart() // forgets what was streamed
			got += "-- stream --\n" + fixed(t, u.do("GET", "/chat-1/stream", nil))
			got += "-- messages --\n"
			for _, m := range u.reload() {
				line, err := json.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				got += chattest.Steady(string(line)+"\n", changing...)
			}
			if c.name == "failed" { // whether a page sees the step begin that breaks at once is a matter of time
				got = strings.ReplaceAll(got, "{\"type\":\"start-step\"}\n{\"type\":\"finish-step\"}\n", "")
			}
			got = regexp.MustCompile(`msg_[0-9a-z]{20,}`).ReplaceAllString(got, "msg")
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
				t.Errorf("%s differs (go test ./aisdk -run Wire -update):\n%s", path, got)
			}
		})
	}
}
