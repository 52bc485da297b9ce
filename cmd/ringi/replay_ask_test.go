package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// typist sits at a terminal: it types the next answer whenever the question
// stands there.
type typist struct {
	tty    *os.File
	screen bytes.Buffer
	done   chan struct{}
}

func newTypist(t *testing.T, answers ...string) *typist {
	t.Helper()
	front, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal to be had here: %v", err)
	}
	if err := pty.Setsize(front, &pty.Winsize{Rows: 50, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	y := &typist{tty: tty, done: make(chan struct{})}
	go func() {
		defer close(y.done)
		buf := make([]byte, 4096)
		seen := 0
		for {
			n, err := front.Read(buf)
			y.screen.Write(buf[:n])
			if err != nil {
				return
			}
			for strings.Count(y.screen.String(), "[approve/deny/later]") > seen && len(answers) > 0 {
				seen++
				io.WriteString(front, answers[0]+"\n")
				answers = answers[1:]
			}
		}
	}()
	t.Cleanup(func() { front.Close() })
	return y
}

// shown closes the terminal and returns all that stood on it.
func (y *typist) shown() string {
	y.tty.Close()
	<-y.done
	return y.screen.String()
}

func TestReplayAsks(t *testing.T) {
	// Seven requests: of shed-001 one, of shed-002 three, of shed-004 three.
	y := newTypist(t, "approve", "deny", "a", "what?", "d", "approve", "later")
	var out bytes.Buffer
	e := &env{in: y.tty, out: &out, err: y.tty, getenv: func(string) string { return "" }, now: time.Now}
	code := execute(t.Context(), e, append(shed().args(), "--approve", "ask", "--wait-before-prompt", "0s"))
	screen := y.shown()
	var sum replaySummary
	if err := json.Unmarshal(out.Bytes(), &sum); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), screen)
	}
	sum.Seconds, sum.Events = 0, 0
	want := replaySummary{Transcripts: 4, Runs: 6, ModelTurns: 19, ToolCalls: 15, Executed: 12, Requests: 6, Approved: 3, Denied: 2, Waiting: 1}
	if code != exitWaiting || sum != want {
		t.Errorf("exit %d with\n%+v, want %d with\n%+v\n%s", code, sum, exitWaiting, want, screen)
	}
	for _, part := range []string{`"L-7"`, `"deposit"`, "20.0", "lend_item", "send_letter"} {
		if !strings.Contains(screen, part) {
			t.Errorf("the screen lacks %s:\n%s", part, screen)
		}
	}
	if strings.Contains(screen, "conversations,") {
		t.Error("a bar is drawn over the questions")
	}
}

// The bar is drawn on a terminal, and taken away.
func TestReplayDrawsABar(t *testing.T) {
	y := newTypist(t)
	var out bytes.Buffer
	e := &env{in: y.tty, out: &out, err: y.tty, getenv: func(string) string { return "" }, now: time.Now}
	code := execute(t.Context(), e, shed().args())
	screen := y.shown()
	if code != exitDone || !strings.Contains(screen, "0 of 4 conversations, 0 of 7 runs") || !strings.HasSuffix(screen, "\r\x1b[K") {
		t.Errorf("exit %d, the screen shows %q", code, screen)
	}
	if got := replay(t, shed()); got.err != "" {
		t.Errorf("in a pipe it writes %q", got.err)
	}
}
