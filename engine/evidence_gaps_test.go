package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// What docs/evidence.md asks for and no other file of this package shows.

// The four statuses, as the first document's table has them: what each leaves
// in the result, the inbox and the log.
func TestSeed_WhatEachStatusRecords(t *testing.T) {
	for _, c := range []struct {
		status    ringi.Status
		automatic bool
		ran       int
		requests  int
	}{
		{ringi.NotApplicable, false, 1, 0},
		{ringi.Approved, true, 1, 0},
		{ringi.Denied, true, 0, 0},
		{ringi.UserApproval, false, 0, 1},
	} {
		t.Run(string(c.status), func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Keyring = keyring(t)
			w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"pay": {Status: c.status, Reason: "by the book"}}
			w.says(calls("pay", `{}`))
			e := w.engine()
			res := w.run(e, ringi.RunStart{})
			if w.count("pay") != c.ran || len(res.Pending) != c.requests {
				t.Fatalf("ran %d times with %d requests, want %d with %d", w.count("pay"), len(res.Pending), c.ran, c.requests)
			}
			call := bodiesOf[*ringi.ModelResponded](w.logOf(res.RunID))[0].Calls[0]
			if call.Verdict.Status != c.status || call.Verdict.Reason != "by the book" {
				t.Errorf("the log holds the verdict %+v", call.Verdict)
			}
			// What policy settled is nobody's to decide: it is in no inbox.
			all := []ringi.RequestState{ringi.Pending, ringi.Granted, ringi.Refused, ringi.Spent, ringi.Stale, ringi.Expired, ringi.Withdrawn}
			page, err := e.Requests(t.Context(), ringi.RequestQuery{RunID: res.RunID, State: all})
			if err != nil || len(page.Requests) != c.requests {
				t.Errorf("the inbox holds %+v, %v", page.Requests, err)
			}
			if c.requests > 0 {
				return
			}
			r := res.Results[0]
			if r.Approval.Status != c.status || r.Approval.Automatic != c.automatic || r.Approval.By != "" || r.Approval.Request != "" {
				t.Errorf("the result's record is %+v", r.Approval)
			}
			if denied := r.Outcome == ringi.OutcomeDenied; denied != (c.status == ringi.Denied) || denied && !strings.Contains(r.Text(), "by the book") {
				t.Errorf("the model reads %s %q", r.Outcome, r.Text())
			}
		})
	}
}

// The runtime value is data: a policy function in another process reads what
// the caller gave, at every judgement.
func TestSeed_RuntimeSurvivesARestart(t *testing.T) {
	type session struct{ Role, Env string }
	w := newWorld(t)
	var seen []session
	w.cfg.Approval.Func = func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
		s, err := ringi.Runtime[session](c)
		seen = append(seen, s)
		return ringi.Verdict{Status: ringi.UserApproval}, err
	}
	w.says(calls("pay", `{"n":1}`), calls("pay", `{"n":2}`))
	res := w.run(w.engine(), ringi.RunStart{Runtime: session{"clerk", "production"}})
	for range 2 {
		wantStatus(t, res, ringi.WaitingForApproval, 1)
		w.decide(w.restart(), res.Pending[0].Approve(ana))
		res = w.resume(w.restart(), res.RunID)
	}
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan(`pay {"n":1}`, `pay {"n":2}`)
	if want := (session{"clerk", "production"}); len(seen) < 4 || slices.ContainsFunc(seen, func(s session) bool { return s != want }) {
		t.Errorf("the function was told %+v", seen)
	}
	// What cannot be stored is refused before anything is recorded.
	if _, err := w.engine().Run(t.Context(), ringi.RunStart{Runtime: make(chan int), Messages: []ringi.Message{ringi.User("go")}}); err == nil {
		t.Error("a runtime value that is no data starts a run")
	}
}

// A stream tells of a request and of its answer, with what a page needs: ids,
// tool, input, signature, and the answer with its reason.
func TestSeed_StreamTellsRequestAndAnswer(t *testing.T) {
	w := newWorld(t)
	w.cfg.Keyring = keyring(t)
	w.says(calls("pay", `{"n":1}`))
	e := w.engine()
	var asked []*ringi.ApprovalRequested
	var waiting *ringi.RunWaiting
	for ev, err := range e.Stream(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}}) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := ev.Body.(type) {
		case *ringi.ApprovalRequested:
			asked = append(asked, b)
		case *ringi.RunWaiting:
			waiting = b
		}
	}
	if len(asked) != 1 || waiting == nil || len(waiting.Pending) != 1 {
		t.Fatalf("streamed %d requests, waiting %+v", len(asked), waiting)
	}
	r := waiting.Pending[0]
	if asked[0].Request != r.ID || asked[0].Call != r.Call.ID || asked[0].Digest != r.Digest || asked[0].Signature != r.Signature || r.Signature == "" {
		t.Errorf("the event says %+v, the request is %+v", asked[0], r)
	}
	if r.Call.Tool != "pay" || r.Call.Input != `{"n":1}` || r.Call.ModelID != "mpay" {
		t.Errorf("the request is for %+v", r.Call)
	}
	// The answer follows where it is given: in a program that answers by itself
	// both are in one stream, in this order.
	w = newWorld(t)
	w.cfg.Keyring = keyring(t)
	w.cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
		return r.Deny(ana, "not today"), nil
	}
	w.says(calls("pay", `{"n":1}`))
	told := ""
	for ev, err := range w.engine().Stream(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Seq > 0 {
			told += string(ev.Kind) + " "
		}
		if d, ok := ev.Body.(*ringi.ApprovalDecided); ok && (d.Answer != ringi.Deny || d.Reason != "not today" || d.By.ID != "ana" || d.Request == "" || d.Signature == "") {
			t.Errorf("the answer is streamed as %+v", d)
		}
	}
	if !strings.Contains(told, "approval_requested approval_decided ") {
		t.Errorf("streamed %s", told)
	}
	w.wantRan()
}

// A run that waits is not done: its error says so, whatever the caller does
// with the text.
func TestSeed_AWaitingRunIsNotDone(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	re, ok := errors.AsType[*ringi.RunError](res.Err())
	if !ok || re.Status != ringi.WaitingForApproval || re.RunID != res.RunID {
		t.Errorf("the error of a waiting run is %v", res.Err())
	}
	w.decide(e, res.Pending[0].Approve(ana))
	if err := w.resume(e, res.RunID).Err(); err != nil {
		t.Error(err)
	}
}

// In the field a step budget starts anew with every resumption.
func TestGap_StepBudgetSpansASuspension(t *testing.T) {
	w := newWorld(t)
	w.cfg.Limits = ringi.Limits{Steps: 3}
	n := 0
	w.cfg.Model = modelFunc(func(ringi.ModelRequest) *ringi.ModelTurn { n++; return calls("pay", fmt.Sprintf(`{"n":%d}`, n)) })
	res := w.run(w.engine(), ringi.RunStart{})
	for range 3 {
		wantStatus(t, res, ringi.WaitingForApproval, 1)
		w.decide(w.restart(), res.Pending[0].Approve(ana))
		res = w.resume(w.restart(), res.RunID)
	}
	if res.Status != ringi.Completed || res.Reason != ringi.ReasonMaxSteps || res.Steps != 3 || n != 3 {
		t.Errorf("run is %s (%s) after %d steps, the model was asked %d times", res.Status, res.Reason, res.Steps, n)
	}
}

// A tool that can look its own effect up settles a call that a crash cut: what
// is found is done. What is not found is still unknown, as the process that
// started the call may be frozen and not dead.
func TestE07_LookupAfterACrash(t *testing.T) {
	for name, c := range map[string]struct {
		found  bool
		err    error
		status ringi.RunStatus
		open   int
	}{
		"found":            {true, nil, ringi.Completed, 0},
		"not found":        {false, nil, ringi.WaitingForOutcome, 1},
		"look-up fails":    {false, errors.New("bank is down"), ringi.WaitingForOutcome, 1},
		"found, and fails": {true, errors.New("bank is down"), ringi.WaitingForOutcome, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"wire": {Status: ringi.Approved}}
			begun := make(chan ringi.ToolContext, 1)
			var asked []string
			w.tool(ringi.Tool{Name: "wire", Effect: ringi.NonIdempotentWrite}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
				tc, _ := ringi.ToolContextFrom(ctx)
				begun <- tc
				select {} // the process is gone; nothing ever comes back
			}, ringi.ToolHooks{Lookup: func(_ context.Context, key string) (ringi.ToolResult, bool, error) {
				asked = append(asked, key)
				return ringi.ToolResult{Output: "W-1"}, c.found, c.err
			}})
			w.says(calls("wire", `{}`))
			e := w.engine()
			go e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
			tc := <-begun
			res := w.resume(w.restart(), tc.RunID)
			wantStatus(t, res, c.status, c.open)
			w.wantRan(`wire {}`)
			if !slices.Contains(asked, tc.Key) {
				t.Errorf("looked up %q, the call's key is %q", asked, tc.Key)
			}
			if c.status == ringi.Completed && (res.Results[0].Output != "W-1" || res.Results[0].Outcome != ringi.OutcomeOK) {
				t.Errorf("result %+v", res.Results[0])
			}
		})
	}
}

// drowsy sleeps behind the commit that starts a tool, as a machine does whose
// lid was closed.
type drowsy struct {
	ringi.Store
	nap time.Duration
}

func (d *drowsy) Commit(ctx context.Context, c *ringi.Commit) error {
	err := d.Store.Commit(ctx, c)
	if holds(c, ringi.EventToolStarted) {
		time.Sleep(d.nap)
	}
	return err
}

// An owner that slept past half its lease between the recorded start and the
// call does not call: another process may have taken the run over.
func TestE09_AnOwnerThatSleptDoesNotCall(t *testing.T) {
	for _, c := range []struct {
		lease, nap time.Duration
		ran        int
	}{{30 * time.Second, 0, 1}, {200 * time.Millisecond, 120 * time.Millisecond, 0}} {
		w := newWorld(t)
		w.cfg.Lease = c.lease
		w.cfg.Store = &drowsy{Store: w.store, nap: c.nap}
		w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"pay": {Status: ringi.Approved}}
		w.says(calls("pay", `{}`))
		res := w.run(w.engine(), ringi.RunStart{})
		if w.count("pay") != c.ran {
			t.Errorf("after a nap of %s the call was sent %d times, want %d", c.nap, w.count("pay"), c.ran)
		}
		if c.ran == 0 {
			wantStatus(t, res, ringi.WaitingForOutcome, 1)
		}
	}
}

// An activation that ends in an error while its process lives on strands no
// run: neither where the run was given back, nor where giving it back failed
// too. The same process takes it up, and so does another one.
func TestE13_AnUndrivenRunIsTakenUp(t *testing.T) {
	for _, back := range []bool{true, false} {
		for _, other := range []bool{false, true} {
			t.Run(fmt.Sprintf("given back %v, other process %v", back, other), func(t *testing.T) {
				w := newWorld(t)
				down := true
				w.cfg.Store = &failing{Store: w.store, when: func(c *ringi.Commit) bool {
					return down && (holds(c, ringi.EventModelResponded) || !back && c.Release)
				}}
				w.says(calls("pay", `{}`))
				e := w.engine()
				_, err := e.Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
				wantErr(t, err, ringi.ErrNotRecorded)
				rows, err := w.store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
				if err != nil || len(rows) != 1 || rows[0].Status.Final() {
					t.Fatalf("%+v, %v", rows, err)
				}
				if held := rows[0].Owner != ""; held == back {
					t.Errorf("the run is held by %q", rows[0].Owner)
				}
				down = false
				if other {
					e = w.restart()
				}
				res := w.resume(e, rows[0].ID)
				wantStatus(t, res, ringi.WaitingForApproval, 1)
				w.decide(e, res.Pending[0].Approve(ana))
				wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
				w.wantRan(`pay {}`)
			})
		}
	}
}

// Whatever people do, and in whatever order: no approval outlives its run, no
// call runs twice, and none runs that nobody approved.
func TestS09_NoApprovalOutlivesItsRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.cfg.Limits = ringi.Limits{Denied: 3, SameDenied: -1}
		w.says(calls("pay", `{"n":1}`, "pay", `{"n":2}`, "pay", `{"n":3}`), calls("pay", `{"n":4}`, "pay", `{"n":5}`))
		e := w.engine()
		res := w.run(e, ringi.RunStart{})
		approved := map[string]bool{} // inputs that somebody approved, ever
		acts := append(slices.Repeat([]string{"approve", "resume"}, 8), slices.Repeat([]string{"deny", "take back", "restart"}, 3)...)
		acts = append(acts, "later", "cancel")
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if res.Status.Final() {
				break
			}
			act := rapid.SampledFrom(acts).Draw(rt, "act")
			r := res.Pending[rapid.IntRange(0, len(res.Pending)-1).Draw(rt, "request")]
			switch act {
			case "approve":
				if _, err := e.Decide(t.Context(), r.Approve(ana)); err == nil {
					approved["pay "+string(r.Call.Input)] = true
				}
			case "deny":
				e.Decide(t.Context(), r.Deny(ben, "no")) // may be too late: that is told, and changes nothing
			case "take back":
				e.TakeBack(t.Context(), r.ID, ana, "")
			case "later":
				w.advance(30 * time.Hour)
			case "restart":
				e = w.restart()
			case "cancel":
				if err := e.Cancel(t.Context(), res.RunID, ben, "", false); err != nil {
					rt.Fatal(err)
				}
				res = w.resume(e, res.RunID)
			case "resume":
				res = w.resume(e, res.RunID)
			}
		}
		seen := map[string]bool{}
		for _, r := range w.ran {
			if seen[r] || !approved[r] {
				rt.Fatalf("%s ran; ran %q, approved %v", r, w.ran, approved)
			}
			seen[r] = true
		}
		if !res.Status.Final() {
			return
		}
		open := []ringi.RequestState{ringi.Pending, ringi.Granted}
		page, err := e.Requests(t.Context(), ringi.RequestQuery{RunID: res.RunID, State: open})
		if err != nil || len(page.Requests) != 0 {
			rt.Fatalf("the run is %s (%s), and %d requests are open: %+v, %v", res.Status, res.Reason, len(page.Requests), page.Requests, err)
		}
	})
}

// A person's answer may come from the inbox while the program's own callback
// still thinks: the first counts, and the callback's late one is refused.
func TestF25_TheInboxIsFirst(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	asked, inbox := make(chan ringi.ApprovalRequest), make(chan struct{})
	w.cfg.OnApprovalRequired = func(ctx context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
		asked <- r
		<-inbox
		return r.Approve(ana), nil
	}
	e := w.engine()
	ended := make(chan *ringi.Result)
	go func() {
		res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	r := <-asked
	other, err := engine.New(engine.Config{Store: w.store})
	if err != nil {
		t.Fatal(err)
	}
	w.decide(other, r.Deny(ben, "not this one"))
	close(inbox)
	res := <-ended
	for range 3 {
		if res != nil && res.Status.Final() {
			break
		}
		res = w.resume(e, r.RunID)
	}
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan()
	if out := res.Results[0]; out.Code != ringi.CodeDeniedByPerson || out.Approval.By != "ben" {
		t.Errorf("result %+v", out)
	}
}

// The model fails after a tool ran. In the field the result is lost with the
// error, and a second try runs the tool again.
func TestGap_AModelThatFailsLosesNoResult(t *testing.T) {
	w := newWorld(t)
	down := true
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		w.mu.Lock()
		w.seen = append(w.seen, req)
		w.mu.Unlock()
		switch {
		case req.Step == 1 && len(req.Messages) == 1:
			return calls("pay", `{}`)
		case down:
			return nil // the model is down
		}
		return &ringi.ModelTurn{Text: "done"}
	})
	e := w.engine()
	res := w.run(e, ringi.RunStart{Thread: "thr_a"})
	w.decide(e, res.Pending[0].Approve(ana))
	for range 3 { // and whoever tries again runs nothing
		res = w.resume(w.restart(), res.RunID)
		if res.Status != ringi.Failed || res.Reason != ringi.ReasonModelFailed || len(res.Results) != 1 || res.Results[0].Text() != "ok pay" {
			t.Fatalf("run is %s (%s) with %+v", res.Status, res.Reason, res.Results)
		}
	}
	w.wantRan(`pay {}`)
	down = false
	next := w.run(w.restart(), ringi.RunStart{Thread: "thr_a", Messages: []ringi.Message{ringi.User("are you there?")}})
	wantStatus(t, next, ringi.Completed, 0)
	wantShape(t, w.sent())
	if got := w.sent()[2].Results[0].Text(); got != "ok pay" {
		t.Errorf("the next run reads %q", got)
	}
	w.wantRan(`pay {}`)
}

// What was read here is no text from outside.
func TestS47_LocalResultsAreNoTaint(t *testing.T) {
	w := newWorld(t)
	w.says(calls("find", `{}`), calls("pay", `{}`))
	res := w.run(w.engine(), ringi.RunStart{})
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	if res.Pending[0].Untrusted {
		t.Error("a request after a local read says that untrusted text was read")
	}
}

// A run that waits costs rows, and no goroutine or timer of its process.
func TestE03_WaitingRunsHoldNoGoroutine(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	var ids []string
	before := runtime.NumGoroutine()
	for range 300 {
		id, _ := w.pendingOf(e, 1)
		ids = append(ids, id)
	}
	for wait := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+10 && time.Now().Before(wait); {
		time.Sleep(time.Millisecond) // what a step started ends with it
	}
	if n := runtime.NumGoroutine(); n > before+10 {
		t.Errorf("%d goroutines with %d waiting runs, %d before", n, len(ids), before)
	}
	for _, id := range ids {
		if row, err := w.store.Row(t.Context(), "default", id); err != nil || row.Owner != "" {
			t.Fatalf("%+v, %v", row, err)
		}
	}
}
