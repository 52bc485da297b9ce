package ringitest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// failures is a testing.TB that keeps what a check would say.
type failures struct {
	testing.TB
	said []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func TestEffectsCount(t *testing.T) {
	var ran ringitest.Effects
	reg := ringi.NewRegistry()
	ran.Tool(reg, ringi.Tool{Name: "raw"}, "ok")
	err := reg.Add(ringi.Tool{Name: "failing"}, ran.Handler(func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
		return ringi.ToolResult{}, errors.New("no paper")
	}))
	if err != nil {
		t.Fatal(err)
	}
	ringi.MustAddTool(reg, ringi.Tool{Name: "typed"}, ringitest.Counted(&ran, "typed", findOrder))
	ringi.MustAddTool(reg, ringi.Tool{Name: "by_hand"}, func(context.Context, struct{}) (string, error) {
		ran.Count("by_hand")
		return "", nil
	})
	e := ringitest.Engine(t, engine.Config{Registry: reg, Model: ringitest.Script(
		ringitest.Calls(ringitest.Call("raw", `{"n":1}`), ringitest.Call("raw", `{"n":2}`), ringitest.Call("failing", `{}`),
			ringitest.Call("typed", `{"id":"A-1"}`), ringitest.Call("by_hand", `{}`)),
		ringitest.Text("Done."))})
	res, err := e.Run(t.Context(), hello)
	if err != nil || res.Text != "Done." {
		t.Fatal(res, err)
	}
	ran.Want(t, "raw", 2)
	ran.Want(t, "raw", 1, `{"n":2}`)
	ran.Want(t, "failing", 1)
	ran.Want(t, "typed", 1, `{"id":"A-1"}`)
	ran.Want(t, "by_hand", 1)
	ran.Want(t, "none", 0)
	ran.WantOnce(t)
	if got := ran.Calls()[0]; got.RunID != res.RunID || got.CallID != res.Results[0].CallID || got.Key == "" || got.Attempt != 1 {
		t.Errorf("%+v", got)
	}

	var f failures
	ran.Want(&f, "raw", 1)
	ran.Want(&f, "raw", 0, `{"n":1}`)
	if len(f.said) != 2 {
		t.Errorf("wrong counts are told as %q", f.said)
	}
}

func TestWantOnceFindsARepeat(t *testing.T) {
	var ran ringitest.Effects
	h := ran.Handler(func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) { return ringi.ToolResult{}, nil })
	for _, key := range []string{"idem_1", "idem_2", "idem_1"} {
		ctx := ringi.WithToolContext(t.Context(), &ringi.ToolContext{CallID: "call_1", Key: key})
		if _, err := h(ctx, ringitest.Call("pay", `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	var f failures
	ran.WantOnce(&f, "another")
	if len(f.said) != 0 {
		t.Errorf("%q", f.said)
	}
	ran.WantOnce(&f)
	if len(f.said) != 1 {
		t.Errorf("a repeat is told as %q", f.said)
	}
}

// TestJudgeIsTheVerdictOfARun holds the verdict that Judge gives against the
// one that a run records, over every way to come to it.
func TestJudgeIsTheVerdictOfARun(t *testing.T) {
	type in struct {
		N int `json:"n"`
	}
	nothing := func(context.Context, in) (string, error) { return "ok", nil }
	reg := ringi.NewRegistry()
	for _, tool := range []ringi.Tool{
		{Name: "plain"}, {Name: "read", Effect: ringi.ReadOnly}, {Name: "write", Effect: ringi.IdempotentWrite},
		{Name: "marked", Effect: ringi.ReadOnly, RequiresApproval: true}, {Name: "legacy", NeedsApproval: true},
		{Name: "admin", Effect: ringi.ReadOnly, AdminOnly: true}, {Name: "grouped", Group: "ops"}, {Name: "declared"}, {Name: "floored"},
		{Name: "broken"}, {Name: "static"}, {Name: "odd"},
	} {
		ringi.MustAddTool(reg, tool, nothing)
	}
	cfg := engine.Config{
		Registry: reg, RequireApproval: []string{"declared"},
		Floor: ringi.Approval{Tools: map[string]ringi.ToolApproval{"floored": {Status: ringi.Denied, Reason: "not here"}}},
		Approval: ringi.Approval{Tools: map[string]ringi.ToolApproval{
			"static": {Status: ringi.Approved},
			"odd": {Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
				return ringi.Verdict{Status: "aproved"}, nil
			}},
			"broken": {Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) { panic("broken") }},
		}},
	}
	for _, start := range []ringi.RunStart{
		{}, {By: ringitest.Admin, Groups: []string{"ops"}}, {By: ringitest.Ana, Groups: []string{"other"}},
		{Unattended: ringi.PerTool}, {Unattended: ringi.PerCall}, {Tools: []string{"plain", "write"}},
	} {
		for _, name := range []string{"plain", "read", "write", "marked", "legacy", "admin", "grouped", "declared", "floored", "broken", "static", "odd", "nowhere"} {
			for _, input := range []string{`{"n":1}`, `{"n":"1"}`, `{"n":1,"n":2}`, ``} {
				call := ringitest.Call(name, input)
				v := ringitest.JudgeIn(t, cfg, call, start)
				if got := verdictOfRun(t, cfg, call, start); got != v {
					t.Errorf("%s %s %+v: judged %s, the run says %s", name, input, start, v, got)
				}
				if !v.Status.Known() {
					t.Errorf("%s %s: %q is no verdict", name, input, v.Status)
				}
			}
		}
	}
}

// verdictOfRun starts a run and leaves it with the commit that holds its first
// verdict.
func verdictOfRun(t *testing.T, cfg engine.Config, call ringi.ToolCall, start ringi.RunStart) ringi.Verdict {
	t.Helper()
	cfg.Model = ringitest.Script(ringitest.Calls(call))
	for ev, err := range ringitest.Engine(t, cfg).Stream(t.Context(), start) {
		if err != nil {
			t.Fatal(err)
		}
		if turn, ok := ev.Body.(*ringi.ModelResponded); ok {
			return turn.Calls[0].Verdict
		}
	}
	t.Fatal("the run gave no verdict")
	return ringi.Verdict{}
}
