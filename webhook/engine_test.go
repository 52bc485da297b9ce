package webhook

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/store/memory"
)

var ana = ringi.Principal{ID: "ana", Name: "Ana", Kind: ringi.Person, Auth: "test"}

// What real runs say, with a clock that goes and with one that stands still.
func TestMessagesOfRealRuns(t *testing.T) {
	still := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for clockName, now := range map[string]func() time.Time{"clock goes": nil, "clock stands": func() time.Time { return still }} {
		for name, c := range map[string]struct {
			calls []ringi.ToolCall
			do    func(t *testing.T, e *engine.Engine, res *ringi.Result)
			want  string
		}{
			"approved": {nil, func(t *testing.T, e *engine.Engine, res *ringi.Result) {
				decide(t, e, res.Pending[0].Approve(ana))
				resume(t, e, res.RunID)
			}, "approval.requested pending, run.waiting waiting_for_approval, approval.decided approved approve, run.resumed running, run.finished completed"},
			"two, one denied": {[]ringi.ToolCall{ringitest.Call("pay", `{"amount":1}`), ringitest.Call("pay", `{"amount":2}`)}, func(t *testing.T, e *engine.Engine, res *ringi.Result) {
				decide(t, e, res.Pending[0].Deny(ana, "no"))
				decide(t, e, res.Pending[1].Approve(ana))
				resume(t, e, res.RunID)
			}, "approval.requested pending, approval.requested pending, run.waiting waiting_for_approval, approval.decided denied deny, " +
				"approval.decided approved approve, run.resumed running, run.finished completed"},
			"edited": {nil, func(t *testing.T, e *engine.Engine, res *ringi.Result) {
				set := decide(t, e, res.Pending[0].Edit(ana, json.RawMessage(`{"amount":3}`)))
				decide(t, e, set.Request.Approve(ana))
				resume(t, e, res.RunID)
			}, "approval.requested pending, run.waiting waiting_for_approval, approval.stale stale >, approval.requested pending <, " +
				"approval.decided approved approve, run.resumed running, run.finished completed"},
			"cancelled": {nil, func(t *testing.T, e *engine.Engine, res *ringi.Result) {
				if err := e.Cancel(t.Context(), res.RunID, ana, "enough", false); err != nil {
					t.Fatal(err)
				}
			}, "approval.requested pending, run.waiting waiting_for_approval, approval.withdrawn withdrawn, run.finished cancelled"},
			"withdrawn": {nil, func(t *testing.T, e *engine.Engine, res *ringi.Result) {
				if _, err := e.Withdraw(t.Context(), res.Pending[0].ID, ana, "not needed"); err != nil {
					t.Fatal(err)
				}
				resume(t, e, res.RunID)
			}, "approval.requested pending, run.waiting waiting_for_approval, approval.withdrawn withdrawn, run.resumed running, run.finished completed"},
			"handed over": {nil, func(t *testing.T, e *engine.Engine, res *ringi.Result) {
				if _, err := e.Reassign(t.Context(), res.Pending[0].ID, ringi.Deciders{Teams: []string{"money"}}, ana, "theirs"); err != nil {
					t.Fatal(err)
				}
			}, "approval.requested pending, run.waiting waiting_for_approval, approval.stale stale >, approval.requested pending <"},
		} {
			t.Run(clockName+"/"+name, func(t *testing.T) {
				e := payEngine(t, now, c.calls)
				res, err := e.Run(t.Context(), ringi.RunStart{By: ana, Messages: []ringi.Message{ringi.User("MARK-USER")}})
				if err != nil || len(res.Pending) == 0 {
					t.Fatal(res, err)
				}
				c.do(t, e, res)
				events, err := e.Events(t.Context(), res.RunID, 0)
				if err != nil {
					t.Fatal(err)
				}
				all, err := derive("", "default", res.RunID, events, func(int64) bool { return true })
				if err != nil {
					t.Fatal(err)
				}
				if got := saidOf(t, all); got != c.want {
					t.Errorf("said\n  %s\nwant\n  %s", got, c.want)
				}
			})
		}
	}
}

// payEngine asks a person for every payment.
func payEngine(t *testing.T, now func() time.Time, calls []ringi.ToolCall) *engine.Engine {
	t.Helper()
	reg := ringi.NewRegistry()
	ringi.AddTool(reg, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, AllowEdit: true},
		func(context.Context, struct {
			Amount int `json:"amount"`
		}) (string, error) {
			return "MARK-RESULT", nil
		})
	if calls == nil {
		calls = []ringi.ToolCall{ringitest.Call("pay", `{"amount":1}`)}
	}
	e, err := engine.New(engine.Config{Store: memory.New(memory.Options{Now: now}), Registry: reg,
		Model: ringitest.Script(ringitest.Calls(calls...), ringitest.Text("done"))})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func decide(t *testing.T, e *engine.Engine, d ringi.Decision) ringi.Settled {
	t.Helper()
	set, err := e.Decide(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func resume(t *testing.T, e *engine.Engine, run string) {
	t.Helper()
	if res, err := e.Resume(t.Context(), run); err != nil || !res.Status.Final() {
		t.Fatal(res, err)
	}
}

// saidOf is what messages say without their ids; none of it is a marked text.
func saidOf(t *testing.T, all []message) string {
	t.Helper()
	var out []string
	for _, m := range all {
		var b struct {
			Type Type `json:"type"`
			Data Data `json:"data"`
		}
		if err := json.Unmarshal(m.body, &b); err != nil || strings.Contains(string(m.body), "MARK-") || strings.Contains(string(m.body), "amount") {
			t.Errorf("%s: %v", m.body, err)
		}
		text := string(b.Type) + " " + b.Data.State
		if b.Data.Answer != "" {
			text += " " + string(b.Data.Answer)
		}
		if b.Data.Successor != "" {
			text += " >"
		}
		if b.Data.Replaces != "" {
			text += " <"
		}
		if strings.HasPrefix(text, "approval") && b.Data.Tool != "pay" {
			t.Errorf("%s: of which tool?", m.body)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
