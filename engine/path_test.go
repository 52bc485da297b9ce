package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// The path from call to result, one stage a test.

func TestApprovedCallRunsOnce(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		w := newWorld(t)
		if keyed {
			w.cfg.Keyring = keyring(t)
		}
		w.says(calls("pay", `{"n": 1.0}`))
		res := w.run(w.engine(), ringi.RunStart{})
		wantStatus(t, res, ringi.WaitingForApproval, 1)
		req := res.Pending[0]
		if req.Call.Input != `{"n": 1.0}` || req.Verdict.Source != ringi.SourceEffect || (req.Signature != "") != keyed {
			t.Errorf("request %+v", req)
		}
		w.wantRan()
		e := w.restart()
		if set := w.decide(e, req.Approve(ana)); set.Remaining != 0 || set.Request.State != ringi.Granted {
			t.Errorf("settled %+v", set)
		}
		_, err := e.Decide(t.Context(), req.Deny(ben, "no"))
		first, ok := errors.AsType[*ringi.DecidedError](err)
		if !ok || first.Decision.By.ID != "ana" {
			t.Errorf("second decision: %v", err)
		}
		res = w.resume(w.restart(), res.RunID)
		wantStatus(t, res, ringi.Completed, 0)
		w.wantRan(`pay {"n": 1.0}`)
		if r := res.Results[0]; !r.Executed() || r.Approval.Decision != ringi.Approve || r.Approval.By != "ana" || r.Text() != "ok pay" {
			t.Errorf("result %+v", r)
		}
		_, err = e.Decide(t.Context(), req.Approve(ana))
		wantErr(t, err, ringi.ErrSpent)
		if again := w.resume(e, res.RunID); again.Status != ringi.Completed || w.count("pay") != 1 {
			t.Errorf("resumed again: %+v", again)
		}
	}
}

func TestDenialIsAResultWithItsReason(t *testing.T) {
	w := newWorld(t)
	w.says(calls("find", `{}`, "pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	reason := "use the sandbox account\n\"now\" ✓"
	w.decide(e, res.Pending[0].Deny(ana, reason))
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan(`find {}`)
	if r := res.Results[1]; r.Outcome != ringi.OutcomeDenied || r.Code != ringi.CodeDeniedByPerson || !strings.Contains(r.Text(), reason) {
		t.Errorf("result %+v", r)
	}
	last := w.seen[len(w.seen)-1].Messages
	if got := last[len(last)-1].Results; len(got) != 2 || got[0].Tool != "find" || !strings.Contains(got[1].Text(), reason) {
		t.Errorf("model read %+v", got)
	}
}

func TestEditIsANewRequest(t *testing.T) {
	for _, once := range []bool{false, true} {
		w := newWorld(t)
		w.says(calls("pay", `{"to":"all"}`))
		e := w.engine()
		res := w.run(e, ringi.RunStart{})
		d := res.Pending[0].Edit(ana, json.RawMessage(`{"to":"ops"}`))
		d.AndApprove = once
		set := w.decide(e, d)
		next := set.Request
		if next.ID == res.Pending[0].ID || next.Replaces != res.Pending[0].ID || next.Call.Input != `{"to":"ops"}` || next.Proposed != `{"to":"all"}` {
			t.Fatalf("successor %+v", next)
		}
		_, err := e.Decide(t.Context(), res.Pending[0].Approve(ana))
		wantErr(t, err, ringi.ErrStale)
		if !once {
			w.decide(e, next.Approve(ana))
		}
		res = w.resume(e, res.RunID)
		wantStatus(t, res, ringi.Completed, 0)
		w.wantRan(`pay {"to":"ops"}`)
		if txt := res.Results[0].Text(); !strings.Contains(txt, `{"to":"ops"}`) || !strings.Contains(txt, "changed") {
			t.Errorf("model is told %q", txt)
		}
		if c := w.seen[len(w.seen)-1].Messages[1].Calls[0]; c.Input != `{"to":"all"}` {
			t.Errorf("the model's own call was rewritten: %+v", c)
		}
	}
}

func TestEditInAProcessWithoutTools(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{"to":"all"}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	cli, err := engine.New(engine.Config{Store: w.store})
	if err != nil {
		t.Fatal(err)
	}
	req, err := cli.Request(t.Context(), res.Pending[0].ID)
	if err != nil || !req.Allows(ringi.Edit) || req.Tool.Effect != ringi.NonIdempotentWrite {
		t.Fatal(err, req)
	}
	set := w.decide(cli, req.Edit(ana, json.RawMessage(`{"to":"ops"}`)))
	if !set.Proposed {
		t.Errorf("settled %+v", set)
	}
	_, err = cli.Decide(t.Context(), req.Approve(ana))
	wantErr(t, err, ringi.ErrStale)
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	w.wantRan()
	w.decide(cli, res.Pending[0].Approve(ana))
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan(`pay {"to":"ops"}`)
}

func TestTypedInputAndApprovalInOneRequest(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "sign", Effect: ringi.NonIdempotentWrite,
		InputSchema:   json.RawMessage(`{"type":"object","properties":{"doc":{"type":"string"},"code":{"type":"string"}},"required":["doc","code"],"additionalProperties":false}`),
		InputRequired: json.RawMessage(`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}`)}, nil)
	w.says(calls("sign", `{"doc":"A","code":"stolen"}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	req := res.Pending[0]
	if req.Kind != ringi.KindApprovalAndInput || req.Allows(ringi.Approve) || len(req.InputSchema) == 0 {
		t.Fatalf("request %+v", req)
	}
	_, err := e.Decide(t.Context(), req.Fill(ana, json.RawMessage(`{"code":12}`)))
	if err == nil {
		t.Error("values that do not fit were taken")
	}
	set := w.decide(e, req.Fill(ana, json.RawMessage(`{"code":"1234"}`)))
	if set.Request.Call.Input != `{"doc":"A","code":"1234"}` {
		t.Errorf("what will run: %s", set.Request.Call.Input)
	}
	w.decide(e, set.Request.Approve(ana))
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan(`sign {"doc":"A","code":"1234"}`)
	if txt := res.Results[0].Text(); strings.Contains(txt, "1234") || !strings.Contains(txt, "code") {
		t.Errorf("model is told %q", txt)
	}
}

func TestRespondInTheToolsPlace(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.decide(e, res.Pending[0].Respond(ana, json.RawMessage(`{"paid":false}`)))
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan()
	if r := res.Results[0]; r.Origin != ringi.OriginPerson || r.Output != `{"paid":false}` || r.Executed() {
		t.Errorf("result %+v", r)
	}
}

func TestTakeBack(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.decide(e, res.Pending[0].Approve(ana))
	if _, err := e.TakeBack(t.Context(), res.Pending[0].ID, ben, ""); !errors.Is(err, ringi.ErrNotPermitted) {
		t.Errorf("by somebody else: %v", err)
	}
	if _, err := e.TakeBack(t.Context(), res.Pending[0].ID, ana, "slipped"); err != nil {
		t.Fatal(err)
	}
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	w.wantRan()
	w.decide(e, res.Pending[0].Approve(ben))
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
	w.wantRan(`pay {}`)
}

func TestExpiryAndUseBy(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.advance(73 * time.Hour)
	_, err := e.Decide(t.Context(), res.Pending[0].Approve(ana))
	wantErr(t, err, ringi.ErrExpired)
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.Completed, 0)
	if r := res.Results[0]; r.Outcome != ringi.OutcomeExpired || !strings.Contains(r.Text(), "silence is not consent") {
		t.Errorf("result %+v", r)
	}
	res = w.run(e, ringi.RunStart{})
	w.decide(e, res.Pending[0].Approve(ana))
	w.advance(25 * time.Hour)
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	w.wantRan()
}

func TestUnknownOutcome(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(ringi.ApprovalRequest) ringi.Decision
		ran    int
		want   ringi.CallOutcome
	}{
		{"ran", func(r ringi.ApprovalRequest) ringi.Decision { return r.Ran(ana, "R-1") }, 1, ringi.OutcomeResponded},
		{"did not run", func(r ringi.ApprovalRequest) ringi.Decision { return r.DidNotRun(ana) }, 1, ringi.OutcomeNotExecuted},
		{"run again", func(r ringi.ApprovalRequest) ringi.Decision { return r.RunAgain(ana) }, 2, ringi.OutcomeOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			var keys []string
			first := true
			free, late := make(chan struct{}), make(chan struct{})
			w.tool(ringi.Tool{Name: "slow", Effect: ringi.NonIdempotentWrite, Timeout: 20 * time.Millisecond}, func(ctx context.Context, call ringi.ToolCall) (ringi.ToolResult, error) {
				tc, _ := ringi.ToolContextFrom(ctx)
				w.mu.Lock()
				keys = append(keys, tc.Key)
				wait := first
				first = false
				w.mu.Unlock()
				if wait {
					<-free // long after the time limit
					defer close(late)
				}
				return ringi.ToolResult{Output: "late"}, nil
			})
			w.says(calls("slow", `{}`))
			e := w.engine()
			res := w.run(e, ringi.RunStart{})
			w.decide(e, res.Pending[0].Approve(ana))
			res = w.resume(e, res.RunID)
			wantStatus(t, res, ringi.WaitingForOutcome, 1)
			close(free)
			<-late
			w.eventually(func() bool {
				late, err := w.store.Attempts(t.Context(), "default", res.RunID)
				return err == nil && len(late) > 0
			})
			req, err := e.Request(t.Context(), res.Pending[0].ID)
			if err != nil || req.Evidence != "late" {
				t.Errorf("evidence %q, %v", req.Evidence, err)
			}
			if _, err := e.Decide(t.Context(), req.Approve(ana)); !errors.Is(err, ringi.ErrAnswer) {
				t.Errorf("approve an outcome: %v", err)
			}
			w.decide(e, c.answer(req))
			res = w.resume(w.restart(), res.RunID)
			if c.name == "run again" {
				wantStatus(t, res, ringi.WaitingForApproval, 1)
				w.decide(e, res.Pending[0].Approve(ben))
				res = w.resume(e, res.RunID)
				if len(keys) != 2 || keys[0] != keys[1] {
					t.Errorf("keys %q, want the same twice", keys)
				}
			}
			wantStatus(t, res, ringi.Completed, 0)
			if got := res.Results[0].Outcome; got != c.want || w.count("slow") != c.ran {
				t.Errorf("outcome %s after %d runs, want %s after %d", got, w.count("slow"), c.want, c.ran)
			}
		})
	}
}

func TestTurnModes(t *testing.T) {
	turn := calls("put", `{"a":1}`, "find", `{}`, "pay", `{}`, "look", `{}`, "put", `{"b":2}`)
	for _, mode := range []ringi.TurnMode{ringi.Eager, ringi.Hold} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"put": {Status: ringi.NotApplicable}}
			w.cfg.TurnMode = mode
			w.says(turn)
			e := w.engine()
			res := w.run(e, ringi.RunStart{})
			wantStatus(t, res, ringi.WaitingForApproval, 1)
			if mode == ringi.Eager {
				w.wantRan(`find {}`, `look {}`, `put {"a":1}`)
			} else {
				w.wantRan()
			}
			w.decide(e, res.Pending[0].Approve(ana))
			res = w.resume(e, res.RunID)
			wantStatus(t, res, ringi.Completed, 0)
			w.wantRan(`find {}`, `look {}`, `put {"a":1}`, `pay {}`, `put {"b":2}`)
			for i, want := range []string{"put", "find", "pay", "look", "put"} {
				if res.Results[i].Tool != want {
					t.Errorf("result %d is of %s, want %s", i, res.Results[i].Tool, want)
				}
			}
		})
	}
}

func TestCallback(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{"n":1}`, "pay", `{"n":2}`, "pay", `{"n":3}`))
	w.cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
		switch r.Call.Input {
		case `{"n":1}`:
			return r.Approve(ana), nil
		case `{"n":2}`:
			return r.Edit(ana, json.RawMessage(`{"n":22}`)), nil
		case `{"n":22}`:
			return r.Approve(ben), nil
		}
		return r.Deny(ana, "no"), nil
	}
	res := w.run(w.engine(), ringi.RunStart{})
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan(`pay {"n":1}`, `pay {"n":22}`)
}

func TestCallbackThatFailsIsNoDecision(t *testing.T) {
	for name, f := range map[string]func(context.Context, ringi.ApprovalRequest) (ringi.Decision, error){
		"error": func(context.Context, ringi.ApprovalRequest) (ringi.Decision, error) {
			return ringi.Decision{}, errors.New("x")
		},
		"panic": func(context.Context, ringi.ApprovalRequest) (ringi.Decision, error) { panic("x") },
		"zero":  func(context.Context, ringi.ApprovalRequest) (ringi.Decision, error) { return ringi.Decision{}, nil },
		"other digest": func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
			d := r.Approve(ana)
			d.Digest = "x"
			return d, nil
		},
		"nobody": func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
			return r.Approve(ringi.Principal{}), nil
		},
		"a service": func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
			return r.Approve(ringi.Principal{ID: "bot", Kind: ringi.ServiceAccount}), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.says(calls("pay", `{}`))
			w.cfg.OnApprovalRequired = f
			e := w.engine()
			res := w.run(e, ringi.RunStart{})
			wantStatus(t, res, ringi.WaitingForApproval, 1)
			w.wantRan()
			w.decide(e, res.Pending[0].Approve(ana))
			wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
			w.wantRan(`pay {}`)
		})
	}
}

func TestYesNo(t *testing.T) {
	for _, yes := range []bool{true, false} {
		w := newWorld(t)
		w.says(calls("pay", `{}`))
		w.cfg.OnApprovalRequired = ringi.YesNo(func(context.Context, ringi.ApprovalRequest) (bool, error) { return yes, nil })
		res := w.run(w.engine(), ringi.RunStart{})
		wantStatus(t, res, ringi.Completed, 0)
		if got := w.count("pay") == 1; got != yes {
			t.Errorf("yes %v, ran %v", yes, got)
		}
	}
}

func TestCancel(t *testing.T) {
	w := newWorld(t)
	w.says(calls("find", `{}`, "pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{Thread: "thr_a"})
	if err := e.Cancel(t.Context(), res.RunID, ana, "not needed", false); err != nil {
		t.Fatal(err)
	}
	_, err := e.Decide(t.Context(), res.Pending[0].Approve(ana))
	wantErr(t, err, ringi.ErrWithdrawn)
	got := w.resume(e, res.RunID)
	wantStatus(t, got, ringi.Cancelled, 0)
	if len(got.Results) != 2 || got.Err() == nil {
		t.Errorf("results %+v", got.Results)
	}
	wantErr(t, e.Cancel(t.Context(), res.RunID, ana, "", false), ringi.ErrFinal)
	w.wantRan(`find {}`)
	w.says()
	wantStatus(t, w.run(w.engine(), ringi.RunStart{Thread: "thr_a"}), ringi.Completed, 0) // the conversation is usable
}

func TestCancelNowCutsTheCall(t *testing.T) {
	w := newWorld(t)
	started, free := make(chan struct{}), make(chan struct{})
	defer close(free)
	w.tool(ringi.Tool{Name: "stuck", Effect: ringi.NonIdempotentWrite}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		close(started)
		<-free
		return ringi.ToolResult{}, nil
	})
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"stuck": {Status: ringi.Approved}}
	w.says(calls("stuck", `{}`))
	e := w.engine()
	done := make(chan *ringi.Result)
	go func() { done <- w.run(e, ringi.RunStart{}) }()
	<-started
	rows, err := w.store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
	if err != nil || len(rows) != 1 {
		t.Fatal(err, rows)
	}
	if err := e.Cancel(t.Context(), rows[0].ID, ana, "stop", true); err != nil {
		t.Fatal(err)
	}
	res := <-done
	wantStatus(t, res, ringi.Cancelled, 0)
	if res.Results[0].Outcome != ringi.OutcomeInDoubt {
		t.Errorf("result %+v", res.Results[0])
	}
}

func TestUnattended(t *testing.T) {
	for _, c := range []struct {
		mode ringi.Unattended
		want []string
	}{{ringi.PerTool, []string{`find {}`}}, {ringi.PerCall, []string{`find {}`, `look {"ok":true}`}}} {
		t.Run(string(c.mode), func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"look": {Func: func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
				if strings.Contains(string(c.Call.Input), "true") {
					return ringi.Verdict{Status: ringi.NotApplicable}, nil
				}
				return ringi.Verdict{Status: ringi.UserApproval, Reason: "not ok"}, nil
			}}}
			w.says(calls("find", `{}`, "look", `{"ok":true}`, "look", `{"ok":false}`, "pay", `{}`))
			res := w.run(w.engine(), ringi.RunStart{Unattended: c.mode})
			wantStatus(t, res, ringi.Completed, 0)
			w.wantRan(c.want...)
			if res.Err() != nil || len(res.Withheld) == 0 {
				t.Errorf("withheld %+v, %v", res.Withheld, res.Err())
			}
		})
	}
}

func TestPolicyMissing(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	w.cfg.Approval = ringi.Approval{Version: "1", Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
		return ringi.Verdict{Status: ringi.UserApproval}, nil
	}}
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.decide(e, res.Pending[0].Approve(ana))
	w.cfg.Approval = ringi.Approval{Version: "1"}
	_, err := w.restart().Resume(t.Context(), res.RunID)
	wantErr(t, err, ringi.ErrPolicyMissing)
	w.wantRan()
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
}

func TestThreads(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{Thread: "thr_a"})
	_, err := e.Run(t.Context(), ringi.RunStart{Thread: "thr_a", Messages: []ringi.Message{ringi.User("and?")}})
	wantErr(t, err, ringi.ErrRunOpen)
	w.says()
	e = w.engine()
	res2, err := e.Run(t.Context(), ringi.RunStart{Thread: "thr_a", WithdrawOpen: true, Messages: []ringi.Message{ringi.User("never mind")}})
	if err != nil || res2.Text != "done" {
		t.Fatal(err, res2)
	}
	_, err = e.Decide(t.Context(), res.Pending[0].Approve(ana))
	wantErr(t, err, ringi.ErrWithdrawn)
	msgs := w.seen[len(w.seen)-1].Messages
	if len(msgs) != 4 || msgs[1].Calls[0].Tool != "pay" || msgs[2].Results[0].Code != ringi.CodeWithdrawn || msgs[3].Text != "never mind" {
		t.Errorf("the model was sent %+v", msgs)
	}
	w.wantRan()
}

func TestBudgetsSpanASuspension(t *testing.T) {
	for _, c := range []struct {
		limits ringi.Limits
		want   ringi.Reason
		ran    int
	}{
		{ringi.Limits{Steps: 2}, ringi.ReasonMaxSteps, 2},
		{ringi.Limits{ToolCalls: 3}, ringi.ReasonMaxToolCalls, 3},
	} {
		w := newWorld(t)
		w.cfg.Limits = c.limits
		w.cfg.Model = modelFunc(func(ringi.ModelRequest) *ringi.ModelTurn { return calls("pay", `{}`) })
		e := w.engine()
		res := w.run(e, ringi.RunStart{})
		for res.Status == ringi.WaitingForApproval {
			e = w.restart()
			w.decide(e, res.Pending[0].Approve(ana))
			res = w.resume(e, res.RunID)
		}
		if res.Status != ringi.Completed || res.Reason != c.want || w.count("pay") != c.ran || res.Err() == nil {
			t.Errorf("%s %s after %d calls, want %s after %d", res.Status, res.Reason, w.count("pay"), c.want, c.ran)
		}
	}
}
