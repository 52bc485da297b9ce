package ringitest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ringi-dev/ringi"
)

// Effects counts what handlers did. It stands for the world outside: it
// survives every restart of an engine. The zero value is ready, and safe for
// concurrent use.
type Effects struct {
	mu  sync.Mutex
	ran []Ran

	// crash, where set, may kill the process around a handler.
	crash *Crash
}

// Ran is one run of a handler.
type Ran struct {
	Tool  string
	Input string
	// RunID, CallID, Key and Attempt are what the engine told the handler;
	// empty outside an engine.
	RunID, CallID, Key string
	Attempt            int

	result string
	done   bool
}

// Tool registers a tool that counts and returns result. A fault in the tool
// panics.
func (f *Effects) Tool(r *ringi.Registry, tool ringi.Tool, result string, hooks ...ringi.ToolHooks) {
	h := f.Handler(func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
		return ringi.ToolResult{Output: result}, nil
	})
	if err := r.Add(tool, h, hooks...); err != nil {
		panic(err)
	}
}

// Handler returns h, counted. A run is counted as it begins, so one that
// panics or never returns is counted too.
func (f *Effects) Handler(h ringi.ToolHandler) ringi.ToolHandler {
	return func(ctx context.Context, call ringi.ToolCall) (ringi.ToolResult, error) {
		return counted(ctx, f, call.Tool, string(call.Input), func() (ringi.ToolResult, string, error) {
			res, err := h(ctx, call)
			return res, res.Output, err
		})
	}
}

// Counted returns a typed function of [ringi.AddTool], counted under the
// tool's name with its input as JSON:
//
//	ringi.MustAddTool(reg, tool, ringitest.Counted(&ran, "pay", pay))
func Counted[In, Out any](f *Effects, tool string, h func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		return counted(ctx, f, tool, text(in), func() (Out, string, error) {
			out, err := h(ctx, in)
			return out, text(out), err
		})
	}
}

// Count adds one run of a tool by hand, from inside a handler.
func (f *Effects) Count(tool string) { f.add(context.Background(), tool, "") }

// counted runs a handler between its two crash points. A handler of a process
// that died does nothing.
func counted[T any](ctx context.Context, f *Effects, tool, input string, h func() (T, string, error)) (T, error) {
	var none T
	start, err := f.crash.beforeHandler(ctx)
	if err != nil {
		return none, err
	}
	i := f.add(ctx, tool, input)
	out, result, err := h()
	f.end(i, result, err)
	if dead := f.crash.afterHandler(ctx, start); dead != nil {
		return none, dead
	}
	return out, err
}

func (f *Effects) add(ctx context.Context, tool, input string) int {
	r := Ran{Tool: tool, Input: input}
	if tc, ok := ringi.ToolContextFrom(ctx); ok {
		r.RunID, r.CallID, r.Key, r.Attempt = tc.RunID, tc.CallID, tc.Key, tc.Attempt
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ran = append(f.ran, r)
	return len(f.ran) - 1
}

func (f *Effects) end(i int, result string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		result = "error: " + err.Error()
	}
	f.ran[i].result, f.ran[i].done = result, true
}

// resultOf returns what the newest run of a call gave.
func (f *Effects) resultOf(callID string) (string, bool) {
	for _, r := range slices.Backward(f.Calls()) {
		if r.CallID == callID {
			return r.result, true
		}
	}
	return "", false
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case ringi.ToolResult:
		return v.Output
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// Calls returns every run so far, in the order in which they began.
func (f *Effects) Calls() []Ran {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ran)
}

// Of returns how often a tool ran; with inputs, how often with one of them,
// byte for byte.
func (f *Effects) Of(tool string, inputs ...string) int {
	n := 0
	for _, r := range f.Calls() {
		if r.Tool == tool && (len(inputs) == 0 || slices.Contains(inputs, r.Input)) {
			n++
		}
	}
	return n
}

// Want fails the test unless the tool ran n times; with inputs, n times with
// one of them.
func (f *Effects) Want(t testing.TB, tool string, n int, inputs ...string) {
	t.Helper()
	if got := f.Of(tool, inputs...); got != n {
		t.Errorf("tool %q ran %d times, want %d; all: %v", tool, got, n, f)
	}
}

// WantOnce fails the test where a call ran twice: two runs under one
// idempotency key. Of the named tools only, or of all where none is named.
// Reads and idempotent writes may repeat after a crash; name the others.
func (f *Effects) WantOnce(t testing.TB, tools ...string) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range f.Calls() {
		if len(tools) > 0 && !slices.Contains(tools, r.Tool) {
			continue
		}
		if id := r.Key + r.CallID; id != "" && seen[id] {
			t.Errorf("call %s of tool %q ran twice; all: %v", r.CallID, r.Tool, f)
		} else {
			seen[id] = true
		}
	}
}

// String lists the runs, for a failing test.
func (f *Effects) String() string {
	out := ""
	for i, r := range f.Calls() {
		if i > 0 {
			out += ", "
		}
		out += r.Tool + " " + r.Input
	}
	return "[" + out + "]"
}
