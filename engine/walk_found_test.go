package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// What the walk has found, each as a test of its own.

// A definition that rode in a commit which failed is kept with the next.
func TestWalk_ADefinitionIsKeptThoughACommitFails(t *testing.T) {
	for _, times := range []int{1, 9} {
		w := newWorld(t)
		w.says(calls("pay", `{}`))
		p := &process{Store: w.store}
		w.cfg.Store = p
		e := w.engine()
		p.arm(2, times, false, false, nil)
		_, err := e.Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
		p.arm(0, 0, false, false, nil)
		rows, lerr := w.store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
		if lerr != nil || len(rows) != 1 {
			t.Fatal(err, lerr, rows)
		}
		res := w.resume(e, rows[0].ID)
		wantStatus(t, res, ringi.WaitingForApproval, 1)
		cli, err := engine.New(engine.Config{Store: w.store})
		must(t, err)
		w.decide(cli, res.Pending[0].Approve(ana))
		wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
	}
}

// The run that a process is about to claim has ended in another's hands. That
// is a result, and no failure.
func TestWalk_TwoProcessesGoOnWithOneRun(t *testing.T) {
	for _, answer := range []ringi.Answer{ringi.Approve, ringi.Deny} {
		w := newWorld(t)
		w.says(calls("pay", `{}`))
		e := w.engine()
		id, pending := w.pendingOf(e, 1)
		d := pending[0].Approve(ana)
		d.Answer = answer
		w.decide(e, d)
		other := w.engine()
		met := false
		w.cfg.Store = &failing{Store: w.store, when: func(*ringi.Commit) bool {
			if !met {
				met = true
				wantStatus(t, w.resume(other, id), ringi.Completed, 0)
			}
			return false
		}}
		res := w.resume(w.engine(), id)
		wantStatus(t, res, ringi.Completed, 0)
		if len(res.Results) != 1 || !met || w.count("pay") > 1 {
			t.Errorf("results %+v, ran %d times", res.Results, w.count("pay"))
		}
	}
}

// The run that a new message would withdraw ends by itself meanwhile. The
// thread is free, so the new run starts.
func TestWalk_TheRunToWithdrawHasJustEnded(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	other := w.engine()
	old := w.run(other, ringi.RunStart{Thread: "thr_a"})
	met := false
	w.cfg.Store = &failing{Store: w.store, when: func(*ringi.Commit) bool {
		if !met {
			met = true
			must(t, other.Cancel(t.Context(), old.RunID, ben, "by itself", false))
		}
		return false
	}}
	w.says()
	res := w.run(w.engine(), ringi.RunStart{Thread: "thr_a", WithdrawOpen: true})
	wantStatus(t, res, ringi.Completed, 0)
	if !met || res.RunID == old.RunID {
		t.Errorf("run %s after %s", res.RunID, old.RunID)
	}
}

// Two edits, each approved in the same message by a process without tools, wait
// for the same resume. It looks at both.
func TestWalk_TwoApprovedProposalsForOneResume(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{"n":1}`, "pay", `{"n":2}`, "pay", `{"n":3}`))
	e := w.engine()
	id, pending := w.pendingOf(e, 3)
	cli, err := engine.New(engine.Config{Store: w.store})
	must(t, err)
	for i, r := range pending {
		d := r.Edit(ana, json.RawMessage(fmt.Sprintf(`{"n":%d}`, 10+i)))
		d.AndApprove = true
		w.decide(cli, d)
	}
	wantStatus(t, w.resume(w.restart(), id), ringi.Completed, 0)
	w.wantRan(`pay {"n":10}`, `pay {"n":11}`, `pay {"n":12}`)
}

// What an outcome's request showed are the bytes that had started. An edit of
// the request that "run again" led to changes nothing of it.
func TestWalk_AnEditAfterRunAgainVerifies(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "send", Effect: ringi.NonIdempotentWrite, AllowEdit: true}, func(_ context.Context, call ringi.ToolCall) (ringi.ToolResult, error) {
		if call.Input != `{"n":7}` {
			panic("boom")
		}
		return ringi.ToolResult{}, nil
	})
	w.says(calls("send", `{"n":1}`))
	e := w.engine()
	id, pending := w.pendingOf(e, 1)
	w.decide(e, pending[0].Approve(ana))
	for _, edit := range []string{`{"n":2}`, `{"n":7}`} {
		res := w.resume(e, id)
		wantStatus(t, res, ringi.WaitingForOutcome, 1)
		w.decide(e, res.Pending[0].RunAgain(ana))
		res = w.resume(e, id)
		wantStatus(t, res, ringi.WaitingForApproval, 1)
		w.decide(e, w.decide(e, res.Pending[0].Edit(ana, json.RawMessage(edit))).Request.Approve(ben))
	}
	wantStatus(t, w.resume(e, id), ringi.Completed, 0)
	w.wantRan(`send {"n":1}`, `send {"n":2}`, `send {"n":7}`)
	if v, err := e.Verify(t.Context(), id); err != nil || v.Broken != "" {
		t.Errorf("verification %+v, %v", v, err)
	}
}
