package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// The gate for a loop in another process. Every step is made by an engine of its
// own, as if both sides had been restarted in between.

var bot = ringi.Principal{ID: "client:bot", Name: "bot", Kind: ringi.ServiceAccount, Auth: "token:tok_1"}

func newRemoteWorld(t *testing.T) *world {
	w := newWorld(t)
	for _, tool := range []ringi.Tool{
		{Name: "wire", Effect: ringi.NonIdempotentWrite, AllowEdit: true, AllowRespond: true, Timeout: time.Minute},
		{Name: "read", Effect: ringi.ReadOnly, Timeout: time.Minute},
	} {
		must(t, w.reg.AddExternal(tool))
	}
	w.cfg.ForeignTools = true
	return w
}

func (w *world) judge(c ringi.CallStart) ringi.GateCall {
	w.t.Helper()
	if c.By.IsZero() {
		c.By = bot
	}
	got, err := w.engine().JudgeCall(context.Background(), c)
	must(w.t, err)
	return got
}

func (w *world) stands(id string, want ringi.CallState) ringi.GateCall {
	w.t.Helper()
	got, err := w.engine().Call(context.Background(), id)
	must(w.t, err)
	if got.State != want {
		w.t.Fatalf("the call is %s, want %s: %+v", got.State, want, got)
	}
	return got
}

func (w *world) answer(id string, f func(ringi.ApprovalRequest) ringi.Decision) {
	w.t.Helper()
	c := w.stands(id, ringi.CallWaits)
	r, err := w.engine().Request(context.Background(), c.Request.ID)
	must(w.t, err)
	_, err = w.engine().Decide(context.Background(), f(r))
	must(w.t, err)
}

func byBen(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(ben) }

func TestRemoteCallOverRestartsBetweenEveryStep(t *testing.T) {
	w, ctx := newRemoteWorld(t), t.Context()
	c := w.judge(ringi.CallStart{Tool: "wire", Input: ` {"to":"X" , "n":1.0}`, ModelID: "toolu_1"})
	if c.State != ringi.CallWaits || c.Request == nil || c.Call.Tool != "wire" {
		t.Fatalf("%+v", c)
	}
	_, err := w.engine().StartCall(ctx, c.Call.ID)
	if waits := (*ringi.WaitingError)(nil); !errors.As(err, &waits) {
		t.Fatalf("a start before anybody approved: %v", err)
	}
	if _, err := w.engine().FinishCall(ctx, c.Call.ID, 1, ringi.ToolResult{Output: "x"}); !errors.Is(err, ringi.ErrNotStarted) {
		t.Fatalf("a result without a start: %v", err)
	}
	w.answer(c.Call.ID, byBen)
	w.stands(c.Call.ID, ringi.CallMayRun)
	s, err := w.engine().StartCall(ctx, c.Call.ID)
	must(t, err)
	if s.Call.Input != ` {"to":"X" , "n":1.0}` || s.Attempt != 1 || s.Key == "" || s.Until.Sub(s.StartedAt) != 30*time.Second {
		t.Errorf("claimed %+v", s)
	}
	w.stands(c.Call.ID, ringi.CallRunning)
	_, err = w.engine().StartCall(ctx, c.Call.ID)
	if first := (*ringi.StartedError)(nil); !errors.As(err, &first) || first.Attempt != 1 || !first.At.Equal(s.StartedAt) || !errors.Is(err, ringi.ErrBusy) {
		t.Errorf("a second start: %v", err)
	}
	for _, attempt := range []int{-1, 0, 2} {
		if _, err := w.engine().FinishCall(ctx, c.Call.ID, attempt, ringi.ToolResult{Output: "x"}); !errors.Is(err, ringi.ErrNotStarted) {
			t.Errorf("a result of attempt %d: %v", attempt, err)
		}
	}
	if err := w.engine().CloseCalls(ctx, c.RunID); !errors.Is(err, ringi.ErrBusy) {
		t.Errorf("closing over a call in flight: %v", err)
	}
	done, err := w.engine().FinishCall(ctx, c.Call.ID, 1, ringi.ToolResult{Output: "wired"})
	must(t, err)
	if done.State != ringi.CallDone || done.Result.Text() != "wired" || done.Result.ModelID != "toolu_1" {
		t.Errorf("finished %+v", done)
	}
	_, err = w.engine().FinishCall(ctx, c.Call.ID, 1, ringi.ToolResult{Output: "wired twice"})
	if has := (*ringi.ResultError)(nil); !errors.As(err, &has) || has.Result.Output != "wired" {
		t.Errorf("a second result: %v", err)
	}
	// What is told again of a call that its loop has finished is evidence of
	// nothing: a client that repeats it does not push out what is kept (S-31).
	if kept, err := w.store.Attempts(ctx, "default", c.RunID); err != nil || len(kept) != 0 {
		t.Errorf("kept: %+v %v", kept, err)
	}
	_, err = w.engine().StartCall(ctx, c.Call.ID)
	if has := (*ringi.ResultError)(nil); !errors.As(err, &has) {
		t.Errorf("a start of what has ended: %v", err)
	}
	for range 2 {
		must(t, w.engine().CloseCalls(ctx, c.RunID))
	}
	res, err := w.engine().Status(ctx, c.RunID)
	must(t, err)
	if res.Status != ringi.Completed {
		t.Errorf("the run is %s", res.Status)
	}
}

// S-11: a hundred claims at once, from several processes: one gets it.
func TestS11_AHundredClaimsAtOnce(t *testing.T) {
	for _, tool := range []string{"wire", "read"} { // a read's start is on record too
		w := newRemoteWorld(t)
		c := w.judge(ringi.CallStart{Tool: tool, Input: `{"n":1}`})
		if c.State == ringi.CallWaits {
			w.answer(c.Call.ID, byBen)
		}
		engines := []*engine.Engine{w.engine(), w.engine(), w.engine(), w.engine()}
		var got atomic.Int32
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				s, err := engines[i%len(engines)].StartCall(context.Background(), c.Call.ID)
				switch first := (*ringi.StartedError)(nil); {
				case err == nil && s.Call.Input == `{"n":1}` && s.Attempt == 1:
					got.Add(1)
				case !errors.As(err, &first) || first.Attempt != 1:
					t.Errorf("%+v %v", s, err)
				}
			})
		}
		all.Wait()
		if got.Load() != 1 {
			t.Errorf("%s: %d got the right to run", tool, got.Load())
		}
	}
}

// A start that nobody finished is an unknown outcome; what comes later is
// evidence, and what a person says counts.
func TestRemoteCallThatIsNotFinished(t *testing.T) {
	w, ctx := newRemoteWorld(t), t.Context()
	c := w.judge(ringi.CallStart{Tool: "wire", Input: `{"n":1}`})
	w.answer(c.Call.ID, byBen)
	first, err := w.engine().StartCall(ctx, c.Call.ID)
	must(t, err)
	w.advance(31 * time.Second)
	w.stands(c.Call.ID, ringi.CallRunning) // nobody has looked
	_, err = w.engine().Expire(ctx, 10)
	must(t, err)
	now := w.stands(c.Call.ID, ringi.CallWaits)
	if now.Request.Kind != ringi.KindOutcome {
		t.Fatalf("%+v", now.Request)
	}
	if _, err := w.engine().FinishCall(ctx, c.Call.ID, 1, ringi.ToolResult{Output: "late, and wired"}); !errors.Is(err, ringi.ErrLate) {
		t.Fatalf("a late result: %v", err)
	}
	w.answer(c.Call.ID, func(r ringi.ApprovalRequest) ringi.Decision {
		if r.Evidence != "late, and wired" {
			t.Errorf("evidence %q", r.Evidence)
		}
		return r.RunAgain(ben)
	})
	_, err = w.engine().StartCall(ctx, c.Call.ID) // it is asked again
	if waits := (*ringi.WaitingError)(nil); !errors.As(err, &waits) {
		t.Fatalf("run again: %v", err)
	}
	w.answer(c.Call.ID, byBen)
	second, err := w.engine().StartCall(ctx, c.Call.ID)
	must(t, err)
	if second.Attempt != 2 || second.Key != first.Key {
		t.Errorf("the second start is %+v, the first was %+v", second, first)
	}
	_, err = w.engine().FinishCall(ctx, c.Call.ID, 1, ringi.ToolResult{Output: "of the first"})
	if started := (*ringi.StartedError)(nil); !errors.As(err, &started) || started.Attempt != 2 {
		t.Errorf("the first start's result: %v", err)
	}
	doubt, err := w.engine().FinishCall(ctx, c.Call.ID, 2, ringi.ToolResult{Outcome: ringi.OutcomeInDoubt})
	must(t, err)
	if doubt.State != ringi.CallWaits || doubt.Request.Kind != ringi.KindOutcome {
		t.Fatalf("in doubt: %+v", doubt)
	}
	w.answer(c.Call.ID, func(r ringi.ApprovalRequest) ringi.Decision { return r.Ran(ben, "it went out") })
	if end := w.stands(c.Call.ID, ringi.CallDone); end.Result.Text() == "" || end.Result.Origin != ringi.OriginPerson {
		t.Errorf("%+v", end.Result)
	}
}

// What a process still believes of a call that another one finished and that
// was started anew is of before.
// A client may tell late results for ever: few of them are kept, so that they
// push nothing else out, and the person still sees one.
func TestS31_LateResultsAreBounded(t *testing.T) {
	w, ctx := newRemoteWorld(t), t.Context()
	c := w.judge(ringi.CallStart{Tool: "wire", Input: `{"n":1}`})
	w.answer(c.Call.ID, byBen)
	_, err := w.engine().StartCall(ctx, c.Call.ID)
	must(t, err)
	w.advance(31 * time.Second)
	_, err = w.engine().Expire(ctx, 10)
	must(t, err)
	for range 50 {
		if _, err := w.engine().FinishCall(ctx, c.Call.ID, 1, ringi.ToolResult{Output: "it ran"}); !errors.Is(err, ringi.ErrLate) {
			t.Fatalf("a late result: %v", err)
		}
	}
	if kept, err := w.store.Attempts(ctx, "default", c.RunID); err != nil || len(kept) != 10 {
		t.Errorf("%d are kept, %v", len(kept), err)
	}
	if r := w.stands(c.Call.ID, ringi.CallWaits).Request; r.Evidence != "it ran" {
		t.Errorf("the evidence is %q", r.Evidence)
	}
}

func TestRemoteCallOverTwoProcesses(t *testing.T) {
	w, ctx := newRemoteWorld(t), t.Context()
	a, b := w.engine(), w.engine()
	c, err := a.JudgeCall(ctx, ringi.CallStart{Tool: "wire", Input: `{}`, By: bot})
	must(t, err)
	keep, err := a.Gate(ctx, ringi.RunInfo{ID: c.RunID}) // keeps a's memory of the run
	must(t, err)
	w.answer(c.Call.ID, byBen)
	_, err = a.StartCall(ctx, c.Call.ID)
	must(t, err)
	_, err = b.FinishCall(ctx, c.Call.ID, 1, ringi.ToolResult{Outcome: ringi.OutcomeInDoubt})
	must(t, err)
	w.answer(c.Call.ID, func(r ringi.ApprovalRequest) ringi.Decision { return r.RunAgain(ben) })
	_, err = a.StartCall(ctx, c.Call.ID)
	if waits := (*ringi.WaitingError)(nil); !errors.As(err, &waits) {
		t.Fatalf("it is taken to be in flight: %v", err)
	}
	w.answer(c.Call.ID, byBen)
	s, err := b.StartCall(ctx, c.Call.ID)
	must(t, err)
	if _, err := a.FinishCall(ctx, c.Call.ID, s.Attempt, ringi.ToolResult{Output: "done"}); err != nil {
		t.Errorf("the other process does not record it: %v", err)
	}
	must(t, keep.Close(ctx))
}

// The same wish again is the same call; another wish under its name is refused.
func TestRemoteCallUnderAName(t *testing.T) {
	w, ctx := newRemoteWorld(t), t.Context()
	wish := ringi.CallStart{Tool: "wire", Input: `{"n":1}`, Thread: "thr_1", Ref: "order-17"}
	c := w.judge(wish)
	if again := w.judge(wish); again.Call.ID != c.Call.ID || again.RunID != c.RunID {
		t.Errorf("the same wish is %s, and was %s", again.Call.ID, c.Call.ID)
	}
	w.answer(c.Call.ID, byBen)
	if again := w.judge(wish); again.Call.ID != c.Call.ID || again.State != ringi.CallMayRun {
		t.Errorf("once approved it is %+v", again)
	}
	other := wish
	other.By, other.Input = bot, `{"n":2}`
	if _, err := w.engine().JudgeCall(ctx, other); !errors.Is(err, ringi.ErrStale) {
		t.Errorf("other bytes under its name: %v", err)
	}
	unnamed := wish
	unnamed.Ref = ""
	if another := w.judge(unnamed); another.Call.ID == c.Call.ID || another.RunID != c.RunID {
		t.Errorf("without a name it is %+v", another)
	}
	var all sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		all.Go(func() {
			c, err := w.engine().JudgeCall(ctx, ringi.CallStart{RunID: c.RunID, By: bot, Tool: "read", Input: `{}`, Ref: "one"})
			if err != nil {
				t.Error(err)
			}
			ids[i] = c.Call.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("one wish became %v", ids)
		}
	}
}

// S-11: what nobody registered for a client is the client's own, in name,
// effect and class, also where a registered tool has the name.
func TestS11_AForeignToolIsDrawnAsForeign(t *testing.T) {
	w, ctx := newRemoteWorld(t), t.Context()
	for _, name := range []string{"pay", "find", "rm"} { // a write and a read of ours, and one that is nobody's
		c := w.judge(ringi.CallStart{Tool: name, Input: `{"amount":5}`, Claim: &ringi.Claim{Reason: "it is urgent", Preview: "pays 5", OnBehalfOf: "ana"}})
		if c.State != ringi.CallWaits || c.Call.Tool != "ext:bot/"+name {
			t.Fatalf("%s: %+v", name, c)
		}
		r, err := w.engine().Request(ctx, c.Request.ID)
		must(t, err)
		if r.Tool.Name != "ext:bot/"+name || r.Tool.Effect != ringi.NonIdempotentWrite || r.Tool.DataClass != ringi.SecretAdjacent || r.Allows(ringi.Edit) {
			t.Errorf("%s is asked as %+v", name, r.Tool)
		}
		if r.Claim == nil || r.Claim.Reason != "it is urgent" || r.Preview != nil || len(r.Initiators) != 1 || r.Initiators[0] != "client:bot" {
			t.Errorf("the claim of %s is %+v, the preview %+v, the initiators %v", name, r.Claim, r.Preview, r.Initiators)
		}
		ext, err := w.engine().Extend(ctx, r.ID, w.now().Add(time.Hour), ringi.Principal{ID: "ben", Kind: ringi.Person}, "more time")
		must(t, err)
		if ext.Request.Claim == nil || ext.Request.Digest == r.Digest {
			t.Errorf("the successor has the claim %+v", ext.Request.Claim)
		}
		w.answer(c.Call.ID, byBen)
		s, err := w.engine().StartCall(ctx, c.Call.ID)
		must(t, err)
		if s.Call.Input != `{"amount":5}` {
			t.Errorf("%+v", s)
		}
	}
	if len(w.ran) > 0 {
		t.Errorf("tools of ours ran: %v", w.ran)
	}
}

func TestS11_ForeignToolsThatAreNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		start  ringi.CallStart
		change func(*engine.Config)
		code   ringi.ResultCode
	}{
		"the agent takes none":       {ringi.CallStart{Tool: "rm"}, func(c *engine.Config) { c.ForeignTools = false }, ringi.CodeUnknownTool},
		"a tool of ours":             {ringi.CallStart{Tool: "pay"}, func(c *engine.Config) { c.ForeignTools = false }, ringi.CodeUnknownTool},
		"another client's name":      {ringi.CallStart{Tool: "ext:crm/rm"}, nil, ringi.CodeUnknownTool},
		"its own name, said by it":   {ringi.CallStart{Tool: "ext:bot/rm"}, nil, ringi.CodeUnknownTool},
		"no name of a tool":          {ringi.CallStart{Tool: "<b>refund</b>"}, nil, ringi.CodeUnknownTool},
		"a model that is far away":   {ringi.CallStart{Tool: "rm", Zone: ringi.ZoneExternalGlobal}, nil, ringi.CodeNotOffered},
		"an input that is no object": {ringi.CallStart{Tool: "rm", Input: `[1]`}, nil, ringi.CodeInvalidInput},
		"an operator's denial": {ringi.CallStart{Tool: "rm"}, func(c *engine.Config) {
			c.Floor.Tools = map[string]ringi.ToolApproval{"ext:bot/rm": {Status: ringi.Denied}}
		}, ringi.CodeDeniedByPolicy},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRemoteWorld(t)
			if c.change != nil {
				c.change(&w.cfg)
			}
			got := w.judge(c.start)
			if got.State != ringi.CallRefused || got.Result.Code != c.code || got.Request != nil {
				t.Errorf("%+v %+v", got, got.Result)
			}
		})
	}
	w := newRemoteWorld(t)
	c := w.judge(ringi.CallStart{Tool: "rm"})
	w.answer(c.Call.ID, byBen)
	w.cfg.ForeignTools = false // switched off while it waited
	_, err := w.engine().StartCall(t.Context(), c.Call.ID)
	if has := (*ringi.ResultError)(nil); !errors.As(err, &has) || has.Result.Executed() {
		t.Errorf("it starts after all: %v", err)
	}
}

// A claim is fixed by the request's digest, and bounded.
func TestS11_AClaimIsSigned(t *testing.T) {
	w, ctx := newRemoteWorld(t), t.Context()
	w.cfg.Keyring = shopKeys(t)
	c := w.judge(ringi.CallStart{Tool: "rm", Claim: &ringi.Claim{Reason: "because"}})
	w.answer(c.Call.ID, byBen)
	if _, err := w.engine().StartCall(ctx, c.Call.ID); err != nil {
		t.Error(err)
	}
	for _, claim := range []ringi.Claim{{Reason: string(make([]byte, 8<<10+1))}, {Preview: string(make([]byte, 64<<10+1))}, {OnBehalfOf: string(make([]byte, 257))}} {
		if _, err := w.engine().JudgeCall(ctx, ringi.CallStart{By: bot, Tool: "rm", Claim: &claim}); !errors.Is(err, ringi.ErrTooLarge) {
			t.Errorf("a claim that is too large: %v", err)
		}
	}
	if _, err := w.engine().JudgeCall(ctx, ringi.CallStart{By: bot, Tool: "rm", Claim: &ringi.Claim{Reason: "\xff"}}); err == nil {
		t.Error("a claim that is no text is taken")
	}
	v, err := w.engine().Verify(ctx, c.RunID)
	if err != nil || v.Broken != "" || v.Requests != 1 {
		t.Errorf("%+v %v", v, err)
	}
}

func TestRemoteCallsThatAreNone(t *testing.T) {
	w, ctx := newRemoteWorld(t), t.Context()
	w.says(calls("pay", `{}`))
	res, err := w.engine().Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("pay")}, By: ana})
	must(t, err)
	ours := res.Pending[0].Call.ID
	e := w.engine()
	for _, id := range []string{ours, "", "call_", "call_x", "call_x_1_0", "req_1", "call_" + res.RunID[4:] + "_9_0"} {
		if _, err := e.Call(ctx, id); !errors.Is(err, ringi.ErrNotFound) {
			t.Errorf("call %q: %v", id, err)
		}
		if _, err := e.StartCall(ctx, id); !errors.Is(err, ringi.ErrNotFound) {
			t.Errorf("start %q: %v", id, err)
		}
		if _, err := e.FinishCall(ctx, id, 1, ringi.ToolResult{}); !errors.Is(err, ringi.ErrNotFound) {
			t.Errorf("finish %q: %v", id, err)
		}
	}
	if err := e.CloseCalls(ctx, res.RunID); !errors.Is(err, ringi.ErrNotFound) {
		t.Errorf("closing a run that is no gate's: %v", err)
	}
	if _, err := e.JudgeCall(ctx, ringi.CallStart{RunID: res.RunID, By: ana, Tool: "read"}); !errors.Is(err, ringi.ErrNotFound) {
		t.Errorf("a call in a run that is no gate's: %v", err)
	}
	if _, err := e.JudgeCall(ctx, ringi.CallStart{Tool: "read"}); !errors.Is(err, ringi.ErrNoPrincipal) {
		t.Errorf("a call of nobody's: %v", err)
	}
	c := w.judge(ringi.CallStart{Tool: "read", Input: `{}`})
	crm := ringi.Principal{ID: "client:crm", Kind: ringi.ServiceAccount}
	if _, err := e.JudgeCall(ctx, ringi.CallStart{RunID: c.RunID, By: crm, Tool: "read"}); !errors.Is(err, ringi.ErrRunOpen) {
		t.Errorf("a call in another's run: %v", err)
	}
	s, err := e.StartCall(ctx, c.Call.ID)
	must(t, err)
	if _, err := e.FinishCall(ctx, c.Call.ID, s.Attempt, ringi.ToolResult{Code: ringi.CodeDeniedByPerson}); !errors.Is(err, ringi.ErrAnswer) {
		t.Errorf("a code that is not a tool's: %v", err)
	}
}

// A person's edit is what the claimer gets.
func TestRemoteCallGetsThePersonsBytes(t *testing.T) {
	w, ctx := newRemoteWorld(t), t.Context()
	c := w.judge(ringi.CallStart{Tool: "wire", Input: `{"n":100}`})
	w.answer(c.Call.ID, func(r ringi.ApprovalRequest) ringi.Decision { return r.Edit(ben, json.RawMessage(`{"n": 7}`)) })
	w.answer(c.Call.ID, byBen)
	s, err := w.engine().StartCall(ctx, c.Call.ID)
	must(t, err)
	if s.Call.Input != `{"n": 7}` {
		t.Errorf("%+v", s)
	}
	denied := w.judge(ringi.CallStart{Tool: "wire", Input: `{"n":1}`, RunID: c.RunID})
	w.answer(denied.Call.ID, func(r ringi.ApprovalRequest) ringi.Decision { return r.Deny(ben, "too much") })
	if now := w.stands(denied.Call.ID, ringi.CallRefused); now.Result.Text() == "" {
		t.Error("the model reads nothing")
	}
	told := w.judge(ringi.CallStart{Tool: "wire", Input: `{"n":2}`, RunID: c.RunID})
	w.answer(told.Call.ID, func(r ringi.ApprovalRequest) ringi.Decision { return r.Respond(ben, json.RawMessage(`"by hand"`)) })
	if now := w.stands(told.Call.ID, ringi.CallDone); now.Result.Origin != ringi.OriginPerson {
		t.Errorf("%+v", now.Result)
	}
}
