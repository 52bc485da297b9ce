package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/memory"
)

// The field's cases of sections A to D and J, at the door of a loop that is not
// ours. What a gate does not see (messages, turns, connectors) is not here.

// A. Forged, tampered, replayed.

func TestGate_F01_AnApprovalThatNobodyAskedFor(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	forged := ringi.ApprovalRequest{ID: "req_x_1_0", Digest: strings.Repeat("a", 64), RunID: g.Run().ID, State: ringi.Granted}
	_, err := e.Decide(t.Context(), forged.Approve(ben))
	wantErr(t, err, ringi.ErrNotFound)
	// A client's own idea of a call: its id is not known, and is not taken over.
	_, err = g.Do(t.Context(), ringi.ToolCall{ID: "call_of_mine", Tool: "pay", Input: `{"amount":9999}`}, l.acts)
	wantErr(t, err, ringi.ErrNotFound)
	_, err = g.Start(t.Context(), "call_of_mine")
	wantErr(t, err, ringi.ErrNotFound)
	l.wantRan()
}

func TestGate_F03_SeparatorsInNamesAndIds(t *testing.T) {
	l := newLoop(t)
	l.cfg.Keyring = keyring(t)
	e := l.engine()
	g := l.gate(e)
	digests := map[string]bool{}
	for _, sep := range []string{"\n", "\r", "\t", "\x00", " ", `"`, `\`} {
		for _, c := range []ringi.ToolCall{{ModelID: "b" + sep + "c", Tool: "pay", Input: `{}`}, {ModelID: "c", Tool: "pay" + sep + "b", Input: `{}`}} {
			_, err := g.Do(t.Context(), c, l.acts)
			if c.Tool != "pay" {
				if err != nil {
					t.Errorf("%q: %v", c.Tool, err)
				}
				continue
			}
			r := waitsFor(t, err)
			if digests[r.Digest] || r.Signature == "" {
				t.Errorf("%q: digest %s", c.ModelID, r.Digest)
			}
			digests[r.Digest] = true
		}
	}
	if len(digests) != 7 {
		t.Errorf("%d requests", len(digests))
	}
	l.wantRan()
	l.intact(e, g.Run().ID)
}

func TestGate_F05_TheSameForgeriesAreRefused(t *testing.T) {
	l := newLoop(t)
	l.cfg.Keyring = keyring(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{"n":1}`))
	other := l.waits(g, tc("pay", `{"n":2}`))
	for name, d := range map[string]ringi.Decision{
		"no digest":       {RequestID: r.ID, Answer: ringi.Approve, By: ben},
		"another request": {RequestID: r.ID, Digest: other.Digest, Answer: ringi.Approve, By: ben},
		"a made-up one":   {RequestID: r.ID, Digest: strings.Repeat("0", 64), Answer: ringi.Approve, By: ben},
		"upper case":      {RequestID: r.ID, Digest: strings.ToUpper(r.Digest), Answer: ringi.Approve, By: ben},
		"deny, no digest": {RequestID: r.ID, Answer: ringi.Deny, By: ben},
	} {
		for _, door := range []*engine.Engine{e, l.engine()} {
			if _, err := door.Decide(t.Context(), d); !errors.Is(err, ringi.ErrStale) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, d := range []ringi.Decision{{RequestID: r.ID, Digest: r.Digest, Answer: "yes", By: ben}, {RequestID: r.ID, Digest: r.Digest, Answer: ringi.Ran, By: ben}, {RequestID: r.ID, Digest: r.Digest, By: ben}} {
		if _, err := e.Decide(t.Context(), d); !errors.Is(err, ringi.ErrAnswer) {
			t.Errorf("%+v: %v", d, err)
		}
	}
	bare, err := engine.New(engine.Config{Store: l.cfg.Store})
	if err == nil {
		t.Errorf("a process without the key opened the store: %v", bare)
	}
	_, err = g.Start(t.Context(), r.Call.ID)
	waitsFor(t, err)
	l.wantRan()
}

func TestGate_F06_AToolNamedLikeAYes(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	for _, c := range []ringi.ToolCall{tc("approve", fmt.Sprintf(`{"request":%q}`, r.ID)), tc("find", fmt.Sprintf(`{"request_id":%q,"digest":%q,"answer":"approve"}`, r.ID, r.Digest))} {
		l.do(g, c)
	}
	if q, _ := e.Request(t.Context(), r.ID); q.State != ringi.Pending {
		t.Errorf("%s", q.State)
	}
}

func TestGate_F08_TheModelFillsAPersonsKey(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	for _, in := range []string{`{"n":1,"code":"mine"}`, `{"n":1,"Code":"mine"}`, `{"n":1,"code":"mine","code":"mine"}`, `{"n":1,"CODE":true}`} {
		_, err := g.Do(t.Context(), tc("sign", in), l.acts)
		w, ok := errors.AsType[*ringi.WaitingError](err)
		if !ok {
			continue // refused
		}
		if w.Request.Kind != ringi.KindApprovalAndInput {
			t.Errorf("%s: asks for %s", in, w.Request.Kind)
		}
		set := l.decide(e, w.Request.Fill(ben, json.RawMessage(`{"code":"his"}`)))
		l.decide(e, set.Request.Approve(ben))
		l.do(g, known(w.Request.Call.ID))
	}
	for _, ran := range l.ran {
		if strings.Contains(ran, "mine") {
			t.Errorf("ran %s", ran)
		}
	}
	if l.count("sign") == 0 {
		t.Error("nothing was asked")
	}
}

func TestGate_F10_ADecisionIsForOneCall(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	a, b := l.waits(g, tc("pay", `{"n":1}`)), l.waits(g, tc("put", `{"n":1}`))
	d := a.Approve(ben)
	d.RequestID = b.ID
	_, err := e.Decide(t.Context(), d)
	wantErr(t, err, ringi.ErrStale)
	l.decide(e, a.Approve(ben))
	_, err = g.Start(t.Context(), b.Call.ID)
	waitsFor(t, err)
	_, err = g.Do(t.Context(), ringi.ToolCall{ID: a.Call.ID, Tool: "put", Input: `{"n":1}`}, l.acts)
	wantErr(t, err, ringi.ErrStale)
	l.wantRan()
}

func TestGate_F11_AnApprovalIsUsedOnce(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{"account":"77"}`))
	l.decide(e, r.Approve(ben))
	again := func() {
		t.Helper()
		_, err := e.Decide(t.Context(), r.Approve(ben))
		if d, ok := errors.AsType[*ringi.DecidedError](err); !ok || d.Decision.By.ID != "ben" {
			t.Errorf("%v", err)
		}
	}
	res, err := g.Do(t.Context(), known(r.Call.ID), func(ctx context.Context, s engine.Started) (any, error) {
		again() // during
		return l.acts(ctx, s)
	})
	must(t, err)
	again() // after
	if later := l.do(g, known(r.Call.ID)); later.Output != res.Output {
		t.Errorf("%+v", later)
	}
	next := l.waits(g, tc("pay", `{"account":"77"}`)) // a new call of the same words
	d := r.Approve(ben)
	d.RequestID = next.ID
	_, err = e.Decide(t.Context(), d)
	wantErr(t, err, ringi.ErrStale)
	l.wantRan(`pay {"account":"77"}`)
}

func TestGate_F13_NoSecretReachesTheModel(t *testing.T) {
	l := newLoop(t)
	l.cfg.Keyring = keyring(t)
	e := l.engine()
	g := l.gate(e)
	for _, decide := range []func(r ringi.ApprovalRequest) ringi.Decision{
		func(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(ben) },
		func(r ringi.ApprovalRequest) ringi.Decision { return r.Deny(ben, "no") },
		func(r ringi.ApprovalRequest) ringi.Decision { return r.Respond(ben, json.RawMessage(`"x"`)) },
	} {
		r := l.waits(g, tc("pay", `{}`))
		_, err := g.Do(t.Context(), known(r.Call.ID), l.acts)
		set := l.decide(e, decide(r))
		res := l.do(g, known(r.Call.ID))
		for _, secret := range []string{r.Digest, r.Signature, "ben", "Ben", r.ID} {
			if strings.Contains(res.Text(), secret) {
				t.Errorf("the model reads %q in %q", secret, res.Text())
			}
		}
		if strings.Contains(err.Error(), r.Digest) || strings.Contains(err.Error(), r.Signature) || set.Request.DecidedBy != "ben" {
			t.Errorf("%v", err)
		}
		_, err = e.Decide(t.Context(), r.Approve(ana)) // an old button
		if d, ok := errors.AsType[*ringi.DecidedError](err); !ok || d.Decision.By.ID != "ben" || d.At.IsZero() {
			t.Errorf("%v", err)
		}
	}
}

// B. Denied still runs; a missing or odd decision still runs.

func TestGate_F15_WithoutThePolicyNothingRuns(t *testing.T) {
	for _, yes := range []bool{true, false} {
		l := newLoop(t)
		l.tool(ringi.Tool{Name: "delete"}, nil) // undeclared: without the policy it would run
		asks := l.cfg.Approval
		asks.Tools["delete"] = ringi.ToolApproval{Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			return ringi.Verdict{Status: ringi.UserApproval}, nil
		}}
		g := l.gate(l.engine())
		r := l.waits(g, tc("delete", `{"id":5}`))
		l.cfg.Approval = ringi.Approval{}
		e := l.restart()
		d := r.Deny(ben, "no")
		if yes {
			d = r.Approve(ben)
		}
		l.decide(e, d)
		_, err := e.Gate(t.Context(), ringi.RunInfo{ID: r.RunID})
		wantErr(t, err, ringi.ErrPolicyMissing)
		if _, err := e.Resume(t.Context(), r.RunID); err != nil {
			t.Logf("resume: %v", err)
		}
		l.wantRan()
		l.cfg.Approval = asks
		g = l.gate(l.restart())
		res := l.do(g, known(r.Call.ID))
		if !yes && res.Code != ringi.CodeDeniedByPerson {
			t.Errorf("%+v", res)
		}
		if n := l.count("delete"); (n == 1) != yes {
			t.Errorf("yes %v: ran %d times", yes, n)
		}
	}
}

func TestGate_F16_EveryKindOfToolIsGated(t *testing.T) {
	for name, add := range map[string]func(l *loop) error{
		"raw": func(l *loop) error {
			l.tool(ringi.Tool{Name: "it", RequiresApproval: true}, nil)
			return nil
		},
		"typed": func(l *loop) error {
			return ringi.AddTool(l.reg, ringi.Tool{Name: "it", RequiresApproval: true}, func(context.Context, struct{}) (string, error) { return "ran", nil })
		},
		"external": func(l *loop) error {
			return l.reg.AddExternal(ringi.Tool{Name: "it", Effect: ringi.NonIdempotentWrite, InputSchema: json.RawMessage(`{"type":"object"}`)})
		},
		"remote": func(l *loop) error {
			l.tool(ringi.Tool{Name: "it", Effect: ringi.ReadOnly, Remote: &ringi.Remote{Server: "bank"}}, nil)
			return nil
		},
		"needs approval": func(l *loop) error {
			l.tool(ringi.Tool{Name: "it", NeedsApproval: true}, nil)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t)
			must(t, add(l))
			e := l.engine()
			g := l.gate(e)
			r := l.waits(g, tc("it", `{}`))
			if r.Kind != ringi.KindApproval {
				t.Errorf("asks for %s", r.Kind)
			}
			l.decide(e, r.Deny(ben, "no"))
			if res := l.do(g, known(r.Call.ID)); res.Code != ringi.CodeDeniedByPerson {
				t.Errorf("%+v", res)
			}
			l.wantRan()
			r = l.waits(g, tc("it", `{}`))
			l.decide(e, r.Approve(ben))
			l.do(g, known(r.Call.ID))
			l.wantRan("it {}")
		})
	}
}

func TestGate_F18_NothingIsApprovedByDefault(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	must(t, g.Close(t.Context()))
	next := l.gate(e) // another run of the thread, with that call in its past
	_, err := next.Start(t.Context(), r.Call.ID)
	wantErr(t, err, ringi.ErrNotFound)
	l.waits(next, tc("pay", `{}`))
	l.wantRan()
}

func TestGate_F21_ADeniedCallRunsByNoOtherPath(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	l.decide(e, r.Deny(ben, "no"))
	sealed := l.judge(g, tc("sealed", `{}`)).Call.ID
	for _, id := range []string{r.Call.ID, sealed} {
		for _, g := range []*engine.Gate{g, l.gate(l.engine())} {
			if _, err := g.Start(t.Context(), id); err == nil {
				t.Error("started")
			}
			if res := l.do(g, known(id)); res.Outcome != ringi.OutcomeDenied {
				t.Errorf("%+v", res)
			}
			if j := l.judge(g, known(id)); j.MayStart() {
				t.Errorf("%+v", j)
			}
		}
		if _, err := e.Resume(t.Context(), r.RunID); err != nil {
			t.Error(err)
		}
	}
	l.wantRan()
}

func TestGate_F23_NotOnceBeforeAndOnceAfter(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	for range 3 {
		l.waits(g, known(r.Call.ID))
	}
	l.wantRan()
	l.decide(e, r.Approve(ben))
	l.wantRan()
	for range 3 {
		l.do(g, known(r.Call.ID))
	}
	l.wantRan("pay {}")
}

func TestGate_F25_OneDecisionForAllGates(t *testing.T) {
	l := newLoop(t)
	asks := func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
		return ringi.Verdict{Status: ringi.UserApproval}, nil
	}
	l.cfg.Approval.Func, l.cfg.Floor = asks, ringi.Approval{Func: asks, Tools: map[string]ringi.ToolApproval{"pay": {Status: ringi.UserApproval}}}
	l.cfg.RequireApproval, l.cfg.RuleFloor = []string{"pay"}, true
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	l.decide(e, r.Approve(ben))
	l.do(g, known(r.Call.ID))
	l.wantRan("pay {}")
	spent := ringi.RequestQuery{State: []ringi.RequestState{ringi.Spent, ringi.Pending, ringi.Stale, ringi.Withdrawn}}
	if page, err := e.Requests(t.Context(), spent); err != nil || len(page.Requests) != 1 {
		t.Errorf("%d requests, %v", len(page.Requests), err)
	}
}

// C. Duplicate execution, crash windows, races. (F30: gate_life_test.go.)

func TestGate_F28_OneClickIsOneCall(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g, h := l.gate(e), l.gate(l.engine())
	a, b := l.waits(g, tc("pay", `{"press":"gate"}`)), l.waits(h, tc("pay", `{"press":"gate"}`))
	if a.ID == b.ID {
		t.Fatal("two calls share a request")
	}
	l.decide(e, a.Approve(ben))
	var wg sync.WaitGroup
	for _, id := range []string{a.Call.ID, b.Call.ID} {
		for _, g := range []*engine.Gate{g, h} {
			wg.Go(func() {
				_, err := g.Do(t.Context(), known(id), l.acts)
				if _, waits := errors.AsType[*ringi.WaitingError](err); waits != (id == b.Call.ID) {
					t.Errorf("%v", err)
				}
			})
		}
	}
	wg.Wait()
	l.wantRan(`pay {"press":"gate"}`)
}

func TestGate_F31_EffectsBeforeThePauseAreNotRepeated(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	charged := l.do(g, tc("note", `{"n":5}`))
	r := l.waits(g, tc("pay", `{}`))
	for range 3 { // the loop begins anew from its first line, with the ids that it kept
		g = l.gate(l.restart())
		if res := l.do(g, known(charged.CallID)); res.Output != charged.Output {
			t.Errorf("%+v", res)
		}
		l.waits(g, known(r.Call.ID))
	}
	l.decide(e, r.Approve(ben))
	l.do(g, known(charged.CallID))
	l.do(g, known(r.Call.ID))
	l.wantRan(`note {"n":5}`, "pay {}")
}

func TestGate_F33_AnEndedRunGoesOnForNobody(t *testing.T) {
	for _, end := range []string{"close", "cancel"} {
		l := newLoop(t)
		e := l.engine()
		g, old := l.gate(e), l.gate(l.engine())
		r := l.waits(g, tc("pay", `{}`))
		l.decide(e, r.Approve(ben))
		if end == "close" {
			must(t, g.Close(t.Context()))
		} else {
			must(t, e.Cancel(t.Context(), r.RunID, ben, "", false))
		}
		for _, g := range []*engine.Gate{g, old} {
			if _, err := g.Start(t.Context(), r.Call.ID); err == nil {
				t.Error("started")
			}
			_, err := g.Judge(t.Context(), tc("find", `{}`))
			if f, ok := errors.AsType[*ringi.RunError](err); !ok || !f.Status.Final() || !errors.Is(err, ringi.ErrFinal) {
				t.Errorf("%v", err)
			}
			must(t, g.Close(t.Context()))
		}
		if _, err := l.engine().Gate(t.Context(), ringi.RunInfo{ID: r.RunID}); !errors.Is(err, ringi.ErrFinal) {
			t.Errorf("%v", err)
		}
		l.wantRan()
	}
}

func TestGate_F35_ADoubleClickIsToldWhatStands(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	l.decide(e, r.Approve(ben))
	_, err := e.Decide(t.Context(), r.Approve(ben))
	if d, ok := errors.AsType[*ringi.DecidedError](err); !ok || d.State != ringi.Granted {
		t.Errorf("%v", err)
	}
	must(t, g.Close(t.Context()))
	must(t, g.Close(t.Context()))
	_, err = e.Decide(t.Context(), r.Approve(ben))
	wantErr(t, err, ringi.ErrWithdrawn)
}

func TestGate_F36_ApproveAndDenyAtOnce(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	l := newLoop(t)
	l.cfg.Limits = ringi.Limits{ToolCalls: -1, Denied: -1, SameDenied: -1, OpenRequests: -1}
	l.cfg.ThreadRequests = -1
	a, b := l.engine(), l.engine()
	g := l.gate(a)
	for i := range rounds {
		r := l.waits(g, tc("pay", fmt.Sprintf(`{"n":%d}`, i)))
		var yes, no error
		var wg sync.WaitGroup
		wg.Go(func() { _, yes = a.Decide(context.Background(), r.Approve(ana)) })
		wg.Go(func() { _, no = b.Decide(context.Background(), r.Deny(ben, "")) })
		wg.Wait()
		if (yes == nil) == (no == nil) {
			t.Fatalf("yes %v, no %v", yes, no)
		}
		lost := yes
		if yes == nil {
			lost = no
		}
		if _, ok := errors.AsType[*ringi.DecidedError](lost); !ok {
			t.Errorf("%v", lost)
		}
		before := l.count("pay")
		res := l.do(g, known(r.Call.ID))
		if ran := l.count("pay") > before; ran != (yes == nil) || ran != (res.Outcome == ringi.OutcomeOK) {
			t.Errorf("yes %v: %+v", yes, res)
		}
	}
}

func TestGate_F38_NothingIsHeldWhileAPersonThinks(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	if row := l.row(r.RunID); row.Owner != "" || row.Status != ringi.WaitingForApproval {
		t.Errorf("%+v", row)
	}
	l.advance(3 * time.Hour)
	l.do(g, tc("find", `{}`)) // the same gate, and another process at it
	l.do(l.gate(l.engine()), tc("note", `{}`))
	if row := l.row(r.RunID); row.Owner != "" || row.Status != ringi.WaitingForApproval {
		t.Errorf("%+v", row)
	}
	l.decide(e, r.Approve(ben))
	_, err := e.Decide(t.Context(), r.Deny(ana, ""))
	if _, ok := errors.AsType[*ringi.DecidedError](err); !ok {
		t.Errorf("%v", err)
	}
	l.do(g, known(r.Call.ID))
}

func TestGate_F40_AYesIsNeverReused(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("put", `{"x":1,"y":2}`))
	l.decide(e, r.Approve(ben))
	l.do(g, known(r.Call.ID))
	for _, in := range []string{`{"x":1,"y":2}`, `{"x":1.0,"y":2}`, `{"y":2,"x":1}`} {
		l.waits(g, tc("put", in))
	}
	h, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "another", By: ben})
	must(t, err)
	l.waits(h, tc("put", `{"x":1,"y":2}`))
	if n := l.count("put"); n != 1 {
		t.Errorf("ran %d times", n)
	}
}

func TestGate_F41_TheRequestKeepsItsIDOverACrash(t *testing.T) {
	l := newLoop(t)
	var shown []ringi.ApprovalRequest
	l.cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
		if q, err := l.cfg.Store.Request(t.Context(), "default", r.ID); err != nil || q.State != ringi.Pending {
			t.Errorf("shown before it was recorded: %v %v", q, err)
		}
		shown = append(shown, r)
		return ringi.Decision{}, errors.New("the process dies here")
	}
	r := l.waits(l.gate(l.engine()), tc("pay", `{}`))
	e := l.restart()
	again := l.waits(l.gate(e), known(r.Call.ID))
	if len(shown) != 2 || shown[0].ID != r.ID || shown[1].ID != r.ID || again.Digest != r.Digest {
		t.Errorf("%d shown", len(shown))
	}
	l.decide(e, shown[0].Approve(ben)) // the old card works
}

// D. Several calls, partial answers, the wrong target.

func TestGate_F43_DecisionsAreMatchedByID(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	a, b := l.waits(g, tc("pay", `{"path":"/tmp/a"}`)), l.waits(g, tc("put", `{"to":"a@example.com"}`))
	l.decide(e, b.Deny(ben, "no"))
	l.decide(e, a.Approve(ben))
	if res := l.do(g, known(b.Call.ID)); res.Outcome != ringi.OutcomeDenied || res.Tool != "put" {
		t.Errorf("%+v", res)
	}
	if res := l.do(g, known(a.Call.ID)); res.Outcome != ringi.OutcomeOK || res.Tool != "pay" {
		t.Errorf("%+v", res)
	}
	l.wantRan(`pay {"path":"/tmp/a"}`)
}

func TestGate_F45_ADenialSettlesItsOwnCallAlone(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	free := l.judge(g, tc("find", `{}`))
	r := l.waits(g, tc("pay", `{"path":"a"}`))
	also := l.waits(g, tc("put", `{}`))
	l.decide(e, r.Deny(ben, ""))
	l.do(g, known(free.Call.ID))
	if q, _ := e.Request(t.Context(), also.ID); q.State != ringi.Pending {
		t.Errorf("%s", q.State)
	}
	l.wantRan("find {}")
}

func TestGate_F46_SiblingsAreJudgedByThemselves(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	var waiting []ringi.ApprovalRequest
	for range 2 { // equal calls without ids are calls of their own
		l.do(g, ringi.ToolCall{Tool: "find", Input: `{}`})
		waiting = append(waiting, l.waits(g, ringi.ToolCall{Tool: "pay", Input: `{}`}))
	}
	for _, r := range waiting {
		l.decide(e, r.Approve(ben))
	}
	for _, r := range waiting {
		l.do(g, known(r.Call.ID))
	}
	l.wantRan("find {}", "find {}", "pay {}", "pay {}")
}

func TestGate_F48_OneAnswerOfThree(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	var all []ringi.ApprovalRequest
	for _, tool := range []string{"pay", "put", "sign"} {
		all = append(all, l.waits(g, tc(tool, `{"n":1}`)))
	}
	if set := l.decide(e, all[0].Approve(ben)); set.Remaining != 2 {
		t.Errorf("%d remain", set.Remaining)
	}
	if row := l.row(g.Run().ID); row.Status != ringi.WaitingForApproval {
		t.Errorf("%s", row.Status)
	}
	l.do(g, known(all[0].Call.ID))
	l.waits(g, known(all[1].Call.ID))
	l.waits(g, known(all[2].Call.ID))
	l.wantRan(`pay {"n":1}`)
}

func TestGate_F50_AllRequestsAreListedAndCancelled(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	a, b, c := l.waits(g, tc("pay", `{}`)), l.waits(g, tc("put", `{}`)), l.waits(g, tc("ask", `{}`))
	page, err := e.Requests(t.Context(), ringi.RequestQuery{State: []ringi.RequestState{ringi.Pending}})
	if err != nil || len(page.Requests) != 3 {
		t.Errorf("%d %v", len(page.Requests), err)
	}
	l.decide(e, a.Approve(ben))
	must(t, e.Cancel(t.Context(), a.RunID, ben, "stop", false))
	for _, r := range []ringi.ApprovalRequest{a, b, c} {
		if q, _ := e.Request(t.Context(), r.ID); q.State != ringi.Withdrawn {
			t.Errorf("%s is %s", r.ID, q.State)
		}
		if res := l.do(g, known(r.Call.ID)); res.Executed() {
			t.Errorf("%+v", res)
		}
	}
	l.wantRan()
}

func TestGate_F53_AnOldRequestParksNothing(t *testing.T) {
	l := newLoop(t)
	g := l.gate(l.engine())
	r := l.waits(g, tc("pay", `{}`))
	e := l.restart()
	g = l.gate(e)
	l.do(g, tc("find", `{}`)) // beside it
	must(t, g.Close(t.Context()))
	g = l.gate(e)
	l.do(g, tc("find", `{}`)) // behind it
	if q, _ := e.Request(t.Context(), r.ID); q.State != ringi.Withdrawn {
		t.Errorf("%s", q.State)
	}
}

// J. Stale approval, time of check and of use, expiry.

func TestGate_F113_ASwappedLinkIsAskedAgain(t *testing.T) {
	l := newLoop(t)
	link := "work"
	l.tool(ringi.Tool{Name: "write", Effect: ringi.NonIdempotentWrite}, nil, ringi.ToolHooks{
		Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
			return ringi.Preview{Text: "into " + link, Precondition: link}, nil
		},
		Check: func(_ context.Context, _ ringi.ToolCall, was string) error {
			if was != link {
				return errors.New("the link was swapped")
			}
			return nil
		}})
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("write", `{}`))
	l.decide(e, r.Approve(ben))
	link = "/etc"
	next := l.waits(g, known(r.Call.ID))
	if next.ID == r.ID || next.Preview.Text != "into /etc" {
		t.Errorf("%+v", next)
	}
	l.wantRan()
}

func TestGate_F115_RulesTightenedWhileWaiting(t *testing.T) {
	for _, how := range []string{"denied", "disabled", "decider"} {
		for _, when := range []string{"before the click", "before the start"} {
			t.Run(how+" "+when, func(t *testing.T) {
				l := newLoop(t)
				l.cfg.Approval.Tools["pay"] = ringi.ToolApproval{Status: ringi.UserApproval}
				e := l.engine()
				g := l.gate(e)
				r := l.waits(g, tc("pay", `{"amount":900}`))
				if when == "before the start" {
					l.decide(e, r.Approve(ben))
				}
				switch how {
				case "denied":
					l.cfg.Approval.Tools["pay"] = ringi.ToolApproval{Status: ringi.Denied, Reason: "ceiling 500"}
				case "disabled":
					l.cfg.Disabled = []string{"pay"}
				case "decider":
					l.cfg.Deciders = ringi.Deciders{People: []string{"cyd"}}
				}
				e = l.engine()
				g = l.gate(e)
				if when == "before the click" {
					_, err := e.Decide(t.Context(), r.Approve(ben))
					if how != "decider" && !errors.Is(err, ringi.ErrNowDenied) {
						t.Errorf("%v", err)
					}
					if how == "decider" {
						must(t, err) // the request names its own rule; the start holds today's
					}
				}
				if _, err := g.Do(t.Context(), known(r.Call.ID), l.acts); err == nil && l.count("pay") > 0 {
					t.Error("ran")
				}
				l.wantRan()
			})
		}
	}
}

func TestGate_F116_SilenceIsNoConsent(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	l.advance(72 * time.Hour)
	res := l.do(g, known(r.Call.ID))
	if res.Outcome != ringi.OutcomeExpired || res.Approval.Decision != "" || res.Approval.By != "" {
		t.Errorf("%+v", res)
	}
	if q, _ := e.Request(t.Context(), r.ID); q.State != ringi.Expired || q.DecidedBy != "" {
		t.Errorf("%+v", q)
	}
	l.wantRan()
}

func TestGate_F118_ALateClickIsToldSo(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	for _, late := range []func(r ringi.ApprovalRequest) ringi.Decision{
		func(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(ben) },
		func(r ringi.ApprovalRequest) ringi.Decision { return r.Edit(ben, json.RawMessage(`{"n":2}`)) },
	} {
		r := l.waits(g, tc("pay", `{}`))
		l.advance(72*time.Hour + time.Second)
		_, err := e.Decide(t.Context(), late(r))
		wantErr(t, err, ringi.ErrExpired)
		tried, err := l.cfg.Store.Attempts(t.Context(), "default", r.RunID)
		if err != nil || len(tried) == 0 || tried[len(tried)-1].By != "ben" {
			t.Errorf("%+v %v", tried, err)
		}
		if res := l.do(g, known(r.Call.ID)); res.Outcome != ringi.OutcomeExpired {
			t.Errorf("%+v", res)
		}
	}
	l.wantRan()
}

func TestGate_F120_LookingChangesNothing(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	before := l.row(r.RunID)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := e.Wait(ctx, r.ID)
		cancel()
		wantErr(t, err, context.DeadlineExceeded)
		l.judge(g, known(r.Call.ID))
		l.waits(g, known(r.Call.ID))
		_, err = e.Request(t.Context(), r.ID)
		must(t, err)
		g.Offer()
		g.Run()
		_, err = e.Gate(t.Context(), ringi.RunInfo{ID: r.RunID})
		must(t, err)
	}
	if after := l.row(r.RunID); after != before {
		t.Errorf("%+v, was %+v", after, before)
	}
	l.decide(e, r.Approve(ben))
}

func TestGate_F121_TheDeadlineNeedsNoSweeper(t *testing.T) {
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		e := l.engine()
		g := l.gate(e)
		r := l.waits(g, tc("pay", `{"n":1}`))
		ok := l.waits(g, tc("pay", `{"n":2}`))
		l.decide(e, ok.Approve(ben))
		l.advance(72*time.Hour + 5*time.Second)
		if page, _ := e.Requests(t.Context(), ringi.RequestQuery{State: []ringi.RequestState{ringi.Pending}}); len(page.Requests) != 0 {
			t.Errorf("%d are listed as pending", len(page.Requests))
		}
		_, err := e.Decide(t.Context(), r.Approve(ben))
		wantErr(t, err, ringi.ErrExpired)
		_, err = g.Start(t.Context(), ok.Call.ID) // past its use_by
		if next := waitsFor(t, err); next.ID == ok.ID {
			t.Error("an old approval")
		}
		l.wantRan()
	})
}

func TestGate_F125_AnUnansweredRequestEnds(t *testing.T) {
	l := newLoop(t)
	l.cfg.Store = memory.New(memory.Options{Now: l.now})
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	l.do(g, tc("find", `{}`)) // the conversation goes on beside it
	l.advance(72 * time.Hour)
	if _, err := e.Expire(t.Context(), 10); err != nil {
		t.Error(err)
	}
	if res := l.do(g, known(r.Call.ID)); res.Outcome != ringi.OutcomeExpired {
		t.Errorf("%+v", res)
	}
	l.do(g, tc("find", `{}`))
	l.wantRan("find {}", "find {}")
}
