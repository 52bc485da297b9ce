package engine_test

import (
	"context"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// A turn that closes without running anything (its call was found done, or
// refused as it was judged again) is sent to the model like any other: a model
// that does not read of its call asks for it again.
func TestModelReadsOfATurnThatRanNothing(t *testing.T) {
	told := func(t *testing.T, m *ringitest.Model, want ringi.CallOutcome) {
		t.Helper()
		reqs := m.Requests()
		if len(reqs) != 2 {
			t.Fatalf("the model was asked %d times, want 2", len(reqs))
		}
		res := m.LastResults()
		if len(res) != 1 || res[0].Outcome != want {
			t.Errorf("the model was sent %+v, want a result of outcome %q", reqs[1].Messages, want)
		}
	}
	model := func() *ringitest.Model {
		return ringitest.Script(ringitest.Calls(ringitest.Call("wire", `{}`)), ringitest.Text("Done."))
	}
	start := ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}}

	t.Run("found by Lookup", func(t *testing.T) {
		m, reg, begun := model(), ringi.NewRegistry(), make(chan string, 1)
		err := reg.Add(ringi.Tool{Name: "wire", Effect: ringi.NonIdempotentWrite}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
			tc, _ := ringi.ToolContextFrom(ctx)
			begun <- tc.RunID
			select {} // the process is gone
		}, ringi.ToolHooks{Lookup: func(context.Context, string) (ringi.ToolResult, bool, error) {
			return ringi.ToolResult{Output: "W-1"}, true, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		e := ringitest.Engine(t, engine.Config{Registry: reg, Model: m, Approval: ringi.Approval{Tools: map[string]ringi.ToolApproval{"wire": {Status: ringi.Approved}}}})
		go e.Run(context.Background(), start)
		id := <-begun
		if _, err := ringitest.Restart(t, e).Resume(context.Background(), id); err != nil {
			t.Fatal(err)
		}
		told(t, m, ringi.OutcomeOK)
	})
	t.Run("approved, and refused as it was spent", func(t *testing.T) {
		m, denied := model(), false
		reg := ringi.NewRegistry()
		err := reg.Add(ringi.Tool{Name: "wire", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
			t.Error("it ran")
			return ringi.ToolResult{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		judge := func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			if denied {
				return ringi.Verdict{Status: ringi.Denied}, nil
			}
			return ringi.Verdict{}, nil
		}
		e := ringitest.Engine(t, engine.Config{Registry: reg, Model: m, Approval: ringi.Approval{Func: judge}})
		res, err := e.Run(context.Background(), start)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Decide(context.Background(), res.Pending[0].Approve(ringitest.Ana)); err != nil {
			t.Fatal(err)
		}
		denied = true
		if _, err := e.Resume(context.Background(), res.RunID); err != nil {
			t.Fatal(err)
		}
		told(t, m, ringi.OutcomeDenied)
	})
}
