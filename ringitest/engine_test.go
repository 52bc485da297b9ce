package ringitest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/store/memory"
)

// asking returns settings whose one write, "send", waits for a person.
func asking(ran *ringitest.Effects) engine.Config {
	reg := ringi.NewRegistry()
	ran.Tool(reg, ringi.Tool{Name: "send", Effect: ringi.NonIdempotentWrite}, "sent")
	return engine.Config{Registry: reg, Model: ringitest.Script(ringitest.Calls(ringitest.Call("send", `{}`)), ringitest.Text("Done."))}
}

func TestRestartEndsTheOldProcess(t *testing.T) {
	var ran ringitest.Effects
	old := ringitest.Engine(t, asking(&ran))
	res, err := old.Run(t.Context(), hello)
	if err != nil || res.Status != ringi.WaitingForApproval {
		t.Fatal(res, err)
	}
	e := ringitest.Restart(t, old)
	if _, err := old.Decide(t.Context(), res.Pending[0].Approve(ringitest.Ana)); !errors.Is(err, ringitest.ErrCrashed) {
		t.Errorf("the old process decides: %v", err)
	}
	if _, err := old.Run(t.Context(), hello); !errors.Is(err, ringitest.ErrCrashed) {
		t.Errorf("the old process runs: %v", err)
	}
	if _, err := old.Requests(t.Context(), ringi.RequestQuery{}); !errors.Is(err, ringitest.ErrCrashed) {
		t.Errorf("the old process reads: %v", err)
	}
	page, err := e.Requests(t.Context(), ringi.RequestQuery{})
	if err != nil || len(page.Requests) != 1 || page.Requests[0].ID != res.Pending[0].ID {
		t.Errorf("the new process lists %+v, %v", page.Requests, err)
	}
	if res = ringitest.Settle(t, e, res, ringitest.Approve(ringitest.Ana)); res.Text != "Done." {
		t.Errorf("%+v", res)
	}
	ran.Want(t, "send", 1)
}

// A process that dies in a handler leaves its lease; the clock stands still,
// and the next process takes the run all the same.
func TestRestartFreesTheLease(t *testing.T) {
	var ran ringitest.Effects
	cfg := asking(&ran)
	cfg.Approval.Tools = map[string]ringi.ToolApproval{"send": {Status: ringi.NotApplicable}, "stop": {Status: ringi.NotApplicable}}
	stopped := make(chan struct{})
	release := make(chan struct{})
	ringi.MustAddTool(cfg.Registry, ringi.Tool{Name: "stop", Effect: ringi.IdempotentWrite}, ringitest.Counted(&ran, "stop", func(ctx ctx, _ struct{}) (string, error) {
		if ran.Of("stop") == 1 {
			close(stopped)
			<-release
		}
		return "stopped", nil
	}))
	cfg.Model = ringitest.Script(ringitest.Calls(ringitest.Call("stop", `{}`)), ringitest.Text("Done."))
	store := memory.New(memory.Options{})
	cfg.Store = store
	old := ringitest.Engine(t, cfg)
	ended := make(chan error)
	go func() {
		_, err := old.Run(t.Context(), hello)
		ended <- err
	}()
	<-stopped
	rows, err := store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
	if err != nil || len(rows) != 1 || rows[0].Owner == "" {
		t.Fatal(rows, err)
	}
	beside := ringitest.Beside(t, old)
	if _, err := beside.Resume(t.Context(), rows[0].ID); !errors.Is(err, ringi.ErrBusy) {
		t.Errorf("another process takes a run whose owner lives: %v", err)
	}
	e := ringitest.Restart(t, old)
	res, err := e.Resume(t.Context(), rows[0].ID)
	if err != nil || res.Text != "Done." {
		t.Error(res, err)
	}
	close(release)
	if err := <-ended; !errors.Is(err, ringitest.ErrCrashed) {
		t.Errorf("the old process went on: %v", err)
	}
	ran.Want(t, "stop", 2) // an idempotent write, again under the same key
	if calls := ran.Calls(); calls[0].Key != calls[1].Key || calls[1].Attempt != 2 {
		t.Errorf("%+v", calls)
	}
}

func TestRestartWithAnotherConfiguration(t *testing.T) {
	var ran ringitest.Effects
	cfg := asking(&ran)
	cfg.Approval.Tools = map[string]ringi.ToolApproval{"send": {Status: ringi.UserApproval}}
	e := ringitest.Engine(t, cfg)
	res, err := e.Run(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Decide(t.Context(), res.Pending[0].Approve(ringitest.Ana)); err != nil {
		t.Fatal(err)
	}
	e = ringitest.Restart(t, e, func(cfg *engine.Config) { cfg.Approval = ringi.Approval{} })
	if _, err := e.Resume(t.Context(), res.RunID); !errors.Is(err, ringi.ErrPolicyMissing) {
		t.Errorf("a process without the policy resumes: %v", err)
	}
	e = ringitest.Restart(t, e, func(c *engine.Config) { c.Approval = cfg.Approval })
	if res, err := e.Resume(t.Context(), res.RunID); err != nil || res.Text != "Done." {
		t.Error(res, err)
	}
	ran.Want(t, "send", 1)
}

func TestClockAndIDsAreFixed(t *testing.T) {
	var ran ringitest.Effects
	var clock ringitest.Clock
	cfg := asking(&ran)
	cfg.Now = clock.Now
	e := ringitest.Engine(t, cfg)
	res, err := e.Run(t.Context(), hello)
	if err != nil || res.RunID != "run_0001" || res.Thread != "thr_0001" || res.Pending[0].ID != "req_0001_1_0" {
		t.Fatal(res, err)
	}
	if at := res.Pending[0].CreatedAt; !at.Equal(time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("asked at %s", at)
	}
	clock.Advance(72*time.Hour - time.Microsecond)
	e = ringitest.Restart(t, e)
	if r, err := e.Request(t.Context(), res.Pending[0].ID); err != nil || r.State != ringi.Pending {
		t.Error(r.State, err)
	}
	clock.Advance(time.Microsecond)
	if _, err := e.Decide(t.Context(), res.Pending[0].Approve(ringitest.Ana)); !errors.Is(err, ringi.ErrExpired) {
		t.Errorf("decided behind its time: %v", err)
	}
	if res, err = e.Run(t.Context(), hello); err != nil || res.RunID != "run_0002" {
		t.Error(res, err)
	}
}

func TestApproverAnswersByScript(t *testing.T) {
	var ran ringitest.Effects
	cfg := asking(&ran)
	cfg.Model = ringitest.Script(
		ringitest.Calls(ringitest.Call("send", `{"to":1}`), ringitest.Call("send", `{"to":2}`), ringitest.Call("send", `{"to":3}`)),
		ringitest.Text("Done."))
	approver := ringitest.Answers(ringitest.Approve(ringitest.Ana), ringitest.Deny(ringitest.Ben, "not two"))
	cfg.OnApprovalRequired = approver.Decide
	e := ringitest.Engine(t, cfg)
	res, err := e.Run(t.Context(), hello)
	if err != nil || res.Status != ringi.WaitingForApproval || len(res.Pending) != 1 || res.Pending[0].Call.Input != `{"to":3}` {
		t.Fatal(res, err)
	}
	if n := len(approver.Requests()); n != 3 {
		t.Errorf("the approver was asked %d times, want 3", n)
	}
	e = ringitest.Restart(t, e, func(c *engine.Config) { c.OnApprovalRequired = ringitest.ApproveAll(ringitest.Ana).Decide })
	if res, err = e.Resume(t.Context(), res.RunID); err != nil || res.Text != "Done." {
		t.Fatal(res.Status, err)
	}
	ran.Want(t, "send", 1, `{"to":1}`)
	ran.Want(t, "send", 0, `{"to":2}`)
	ran.Want(t, "send", 1, `{"to":3}`)
	if got := res.Results[1].Text(); got != "denied by a person, not executed; this is final for this call. Reason: not two" {
		t.Errorf("the model reads %q", got)
	}
}

func TestSettleStopsWhereNobodyAnswers(t *testing.T) {
	var ran ringitest.Effects
	e := ringitest.Engine(t, asking(&ran))
	res, err := e.Run(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	res = ringitest.Settle(t, e, res, ringitest.Silent(errors.New("at lunch")))
	if res.Status != ringi.WaitingForApproval {
		t.Error(res)
	}
	res = ringitest.Settle(t, e, res, ringitest.Deny(ringitest.Ben, "no"))
	if res.Status != ringi.Completed {
		t.Error(res)
	}
	ran.Want(t, "send", 0)
}
