package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// Tries to break the gate. Each test says what must hold.

// A run with nothing due is not listed for an owner, whoever holds the gate:
// a worker would take it up again and again.
func TestGate_NothingDueIsNotRunnable(t *testing.T) {
	for _, held := range []bool{true, false} {
		overStores(t, func(t *testing.T, l *loop) {
			l.t = t
			e := l.engine()
			g := l.gate(e)
			l.do(g, tc("note", `{}`))
			if n := l.runnable(); n != 0 {
				t.Fatalf("%d runnable at once", n)
			}
			l.advance(31 * time.Second) // the time of a call that came back long ago
			sweeper := e
			if !held {
				sweeper = l.engine()
			}
			for range 3 {
				_, err := sweeper.Expire(t.Context(), 10)
				must(t, err)
			}
			if n := l.runnable(); n != 0 {
				t.Errorf("held %v: %d runnable with nothing due", held, n)
			}
			seq := l.row(g.Run().ID)
			l.advance(71 * time.Hour)
			_, err := sweeper.Expire(t.Context(), 10)
			must(t, err)
			if row := l.row(g.Run().ID); row.Status != seq.Status {
				t.Errorf("closed before its time: %+v", row)
			}
			l.advance(2 * time.Hour)
			if n := l.runnable(); n != 1 {
				t.Errorf("%d runnable when idle", n)
			}
			_, err = sweeper.Expire(t.Context(), 10)
			must(t, err)
			if row := l.row(g.Run().ID); row.Status != ringi.Completed {
				t.Errorf("%+v", row)
			}
			runtime.KeepAlive(g)
		})
	}
}

// A call that may be repeated was started and nobody finished it: it keeps
// nobody busy, and the run closes when it was idle for long enough.
func TestGate_AnAbandonedRepeatableCallIsNotRunnableForEver(t *testing.T) {
	for _, held := range []bool{true, false} {
		overStores(t, func(t *testing.T, l *loop) {
			l.t = t
			e := l.engine()
			g := l.gate(e)
			id := l.judge(g, tc("log", `{}`)).Call.ID
			l.start(g, id)
			if n := l.runnable(); n != 0 {
				t.Fatalf("%d runnable at once", n)
			}
			l.advance(31 * time.Second)
			sweeper := e
			if !held {
				sweeper = l.engine()
			}
			for range 3 {
				_, err := sweeper.Expire(t.Context(), 10)
				must(t, err)
			}
			if n := l.runnable(); n != 0 {
				t.Errorf("held %v: %d runnable, after it was looked at", held, n)
			}
			if row := l.row(g.Run().ID); row.Status != ringi.Running {
				t.Errorf("held %v: after 31 s: %s", held, row.Status)
			}
			if j := l.judge(g, known(id)); !j.MayStart() {
				t.Errorf("held %v: it may be repeated: %+v", held, j)
			}
			l.advance(73 * time.Hour)
			_, err := sweeper.Expire(t.Context(), 10)
			must(t, err)
			if row := l.row(g.Run().ID); row.Status != ringi.Completed {
				t.Errorf("held %v: never idle: %+v", held, row)
			}
			runtime.KeepAlive(g)
		})
	}
}

// Expire counts what it closed, and a run that waits to be resumed after a
// decision is settled by time like any other.
func TestGate_ExpireTends(t *testing.T) {
	for _, held := range []bool{true, false} {
		overStores(t, func(t *testing.T, l *loop) {
			l.t = t
			e := l.engine()
			g := l.gate(e)
			r := l.waits(g, tc("pay", `{}`))
			sweeper := e
			if !held {
				sweeper = l.engine()
			}
			l.advance(72 * time.Hour)
			if n := l.runnable(); n != 1 {
				t.Errorf("%d runnable", n)
			}
			n, err := sweeper.Expire(t.Context(), 10)
			if err != nil || n != 1 {
				t.Errorf("held %v: %d expired, %v", held, n, err)
			}
			if row, _ := l.cfg.Store.Request(t.Context(), "default", r.ID); row.State != ringi.Expired {
				t.Errorf("%+v", row)
			}
			if res := l.do(g, known(r.Call.ID)); res.Code != ringi.CodeExpired {
				t.Errorf("%+v", res)
			}
		})
	}
}

// A run whose last request was approved, and whose loop never came back, is
// closed like any other where Expire alone is called: time goes on for it too.
func TestGate_ExpireTendsAnApprovedRun(t *testing.T) {
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		e := l.engine()
		g := l.gate(e)
		r := l.waits(g, tc("pay", `{}`))
		l.decide(e, r.Approve(ben))
		sweeper := l.engine()
		for range 20 {
			l.advance(25 * time.Hour)
			_, err := sweeper.Expire(t.Context(), 10)
			must(t, err)
		}
		if row := l.row(g.Run().ID); !row.Status.Final() {
			t.Errorf("after 20 days: %+v", row)
		}
	})
}

// A person said "run it again". What comes late from the first start is
// evidence, and never the result of the second.
func TestGate_ALateFinishIsNotTheNextStarts(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	l.decide(e, r.Approve(ben))
	first := l.start(g, r.Call.ID)
	l.advance(time.Minute)
	_, err := g.Start(t.Context(), r.Call.ID)
	o := waitsFor(t, err)
	if o.Kind != ringi.KindOutcome {
		t.Fatalf("%+v", o)
	}
	l.decide(e, o.RunAgain(ben))
	next := l.waits(g, known(r.Call.ID))
	l.decide(e, next.Approve(ben))
	second := l.start(g, r.Call.ID)
	if first.Key() != second.Key() {
		t.Error("another key")
	}
	if err := g.Finish(t.Context(), first, ringi.ToolResult{Error: "the first: refused"}); err == nil {
		t.Error("the first start's word was taken for the second's")
	}
	if j := l.judge(g, known(r.Call.ID)); !j.InFlight {
		t.Errorf("the second is in flight: %+v", j.Result)
	}
	_, err = g.Start(t.Context(), r.Call.ID)
	wantErr(t, err, ringi.ErrBusy)
	must(t, g.Finish(t.Context(), second, ringi.ToolResult{Output: "the second: paid"}))
	if res := l.judge(g, known(r.Call.ID)).Result; res.Output != "the second: paid" {
		t.Errorf("%+v", res)
	}
}

// A run that ends by a limit while a write is in flight waits for it: a result
// of a tool that ran is never dropped.
func TestGate_TheEndWaitsForWhatIsInFlight(t *testing.T) {
	t.Run("denied too often", func(t *testing.T) {
		l := newLoop(t)
		e := l.engine()
		g := l.gate(e)
		s := l.start(g, l.judge(g, tc("note", `{}`)).Call.ID)
		for i := range 10 {
			l.decide(e, l.waits(g, tc("pay", `{"n":`+string(rune('0'+i))+`}`)).Deny(ben, ""))
		}
		if _, err := g.Do(t.Context(), tc("find", `{}`), l.acts); err == nil {
			t.Error("it goes on")
		}
		if err := g.Finish(t.Context(), s, ringi.ToolResult{Output: "done"}); err != nil {
			t.Errorf("the result of a write that ran is lost: %v", err)
		}
		if _, err := g.Do(t.Context(), tc("find", `{}`), l.acts); !errors.Is(err, ringi.ErrFinal) {
			t.Errorf("%v", err)
		}
	})
	t.Run("trust zone", func(t *testing.T) {
		l := newLoop(t)
		l.tool(ringi.Tool{Name: "peek", Effect: ringi.ReadOnly, DataClass: ringi.PublicContent}, nil)
		l.tool(ringi.Tool{Name: "send", Effect: ringi.NonIdempotentWrite, DataClass: ringi.PublicContent}, nil)
		l.cfg.Approval.Tools["send"] = ringi.ToolApproval{Status: ringi.NotApplicable}
		l.says(calls("deep", `{}`))
		l.tool(ringi.Tool{Name: "deep", Effect: ringi.ReadOnly, DataClass: ringi.SecretAdjacent}, nil)
		e := l.engine()
		g, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "thr", By: ana, Zone: ringi.ZoneExternalEU})
		must(t, err)
		s := l.start(g, l.judge(g, tc("send", `{}`)).Call.ID)
		// A child reads what the gate's zone must not: the mark rises.
		inner := l.cfg
		inner.Zone = ringi.ZoneLocal
		child, err := engine.New(inner)
		must(t, err)
		_, err = g.Do(t.Context(), tc("peek", `{}`), func(ctx context.Context, _ engine.Started) (any, error) {
			res, err := child.Run(ctx, ringi.RunStart{Thread: "child", Messages: []ringi.Message{ringi.User("go")}})
			if err == nil {
				l.t.Logf("child: %s %s %s", res.Status, res.Reason, res.Detail)
			}
			return "peeked", err
		})
		must(t, err)
		_, err = g.Do(t.Context(), tc("peek", `{}`), l.acts)
		if err != nil {
			if ferr := g.Finish(t.Context(), s, ringi.ToolResult{Output: "done"}); ferr != nil {
				t.Errorf("the result of a write that ran is lost: %v", ferr)
			}
		}
	})
	t.Run("another's unknown outcome", func(t *testing.T) {
		l := newLoop(t)
		e := l.engine()
		g, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "thr", By: ana, Unattended: ringi.PerTool})
		must(t, err)
		s := l.start(g, l.judge(g, tc("note", `{"n":1}`)).Call.ID)
		o := l.start(g, l.judge(g, tc("note", `{"n":2}`)).Call.ID)
		if err := g.Finish(t.Context(), o, ringi.ToolResult{Outcome: ringi.OutcomeInDoubt}); err == nil {
			t.Error("finished")
		}
		if err := g.Finish(t.Context(), s, ringi.ToolResult{Output: "done"}); err != nil {
			t.Errorf("the result of a write that ran is lost: %v", err)
		}
		if _, err := g.Do(t.Context(), tc("find", `{}`), l.acts); !errors.Is(err, ringi.ErrFinal) {
			t.Errorf("%v", err)
		}
	})
}

// A gate that was opened with all groups is not given to one who asks for none.
func TestGate_NoGroupsAreNotAllGroups(t *testing.T) {
	l := newLoop(t)
	l.tool(ringi.Tool{Name: "ops", Effect: ringi.ReadOnly, Group: "ops"}, nil)
	for _, e := range []*engine.Engine{l.engine(), l.engine()} {
		g := l.gate(e)
		if !g.Offer().Has("ops") {
			t.Fatal("all groups, and no ops")
		}
		g, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "thr", Groups: []string{}})
		if err == nil {
			t.Errorf("opened with no groups, and ops is offered: %v", g.Offer().Has("ops"))
		} else {
			wantErr(t, err, ringi.ErrRunOpen)
		}
	}
}

// A gate lives for days: what the operator observes until a time is enforced
// from then on, and a tool that is registered later is offered.
func TestGate_TheOfferIsNotKeptForEver(t *testing.T) {
	t.Run("observe ends", func(t *testing.T) {
		l := newLoop(t)
		l.cfg.Zone = ringi.ZoneExternalGlobal
		l.cfg.ObserveZoneUntil = l.now().Add(time.Hour)
		g := l.gate(l.engine())
		if !l.judge(g, tc("find", `{}`)).MayStart() {
			t.Fatal("not observed")
		}
		l.advance(2 * time.Hour)
		l.judge(g, tc("nothing", `{}`)) // time is the newest event's
		if j := l.judge(g, tc("find", `{}`)); j.MayStart() {
			t.Errorf("an hour past the end of observing: %+v", j)
		}
		if g.Offer().Has("find") {
			t.Error("offered")
		}
	})
	t.Run("a new tool", func(t *testing.T) {
		l := newLoop(t)
		g := l.gate(l.engine())
		l.do(g, tc("find", `{}`))
		l.tool(ringi.Tool{Name: "later", Effect: ringi.ReadOnly}, nil)
		if res := l.do(g, tc("later", `{}`)); res.Outcome != ringi.OutcomeOK {
			t.Errorf("%+v", res)
		}
	})
}

// A loop's function that ends its goroutine leaves no call in flight for ever.
func TestGate_AFunctionThatEndsItsGoroutine(t *testing.T) {
	for _, tool := range []string{"find", "note", "log"} {
		l := newLoop(t)
		e := l.engine()
		g := l.gate(e)
		id := l.judge(g, tc(tool, `{}`)).Call.ID
		done := make(chan bool)
		go func() {
			defer close(done)
			g.Do(t.Context(), known(id), func(context.Context, engine.Started) (any, error) { runtime.Goexit(); return nil, nil })
		}()
		<-done
		l.advance(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		_, err := g.Do(ctx, known(id), l.acts)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: in flight for ever", tool)
		}
		if err := g.Close(t.Context()); tool != "note" && err != nil {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

// Do without a function is the caller's mistake: nothing is spent for it.
func TestGate_DoWithoutAFunction(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{}`))
	l.decide(e, r.Approve(ben))
	if _, err := g.Do(t.Context(), known(r.Call.ID), nil); err == nil {
		t.Error("done")
	}
	if now, _ := e.Request(t.Context(), r.ID); now.State != ringi.Granted {
		t.Errorf("the approval is %s", now.State)
	}
	l.do(g, known(r.Call.ID))
	l.wantRan("pay {}")
}

// What the loop tells is recorded as told, or refused: never as a success that
// nobody claimed.
func TestGate_WhatIsToldIsNotTurnedIntoSuccess(t *testing.T) {
	for _, r := range []ringi.ToolResult{
		{Code: ringi.CodeNotDone},
		{Outcome: ringi.OutcomeNotExecuted},
		{Outcome: ringi.OutcomeCancelled},
		{Outcome: ringi.OutcomeDenied},
		{Outcome: "unknwon"},
		{Code: ringi.CodeUnknownOutcome},
	} {
		l := newLoop(t)
		g := l.gate(l.engine())
		s := l.start(g, l.judge(g, tc("note", `{}`)).Call.ID)
		err := g.Finish(t.Context(), s, r)
		if res := l.judge(g, known(s.Call().ID)).Result; err == nil && res != nil && res.Outcome == ringi.OutcomeOK {
			t.Errorf("%+v was recorded as ok", r)
		}
		if r.Code != ringi.CodeUnknownOutcome {
			l = newLoop(t)
			g = l.gate(l.engine())
			res, err := g.Do(t.Context(), tc("note", `{}`), func(context.Context, engine.Started) (any, error) { return r, nil })
			if err == nil && res.Outcome == ringi.OutcomeOK {
				t.Errorf("Do: %+v was recorded as ok", r)
			}
		}
	}
	l := newLoop(t)
	g := l.gate(l.engine())
	_, err := g.Do(t.Context(), tc("note", `{}`), func(context.Context, engine.Started) (any, error) {
		return ringi.ToolResult{Outcome: ringi.OutcomeInDoubt, Output: "sent, no answer"}, nil
	})
	if r := waitsFor(t, err); r.Kind != ringi.KindOutcome || !strings.Contains(r.Evidence, "sent, no answer") {
		t.Errorf("%+v", r)
	}
}

// A commit that was made and reported as failed is one call, and one request.
func TestGate_AFailingStoreMakesNoSecondCall(t *testing.T) {
	for seed := range uint64(40) {
		l := newLoop(t)
		f := &ringitest.Faults{Rate: 0.3, Seed: seed, Both: true, Reads: true}
		g := l.gate(l.engine())
		l.cfg.Store = f.Store(l.store)
		e := l.engine()
		id := g.Run().ID
		g, err := e.Gate(t.Context(), ringi.RunInfo{ID: id})
		if err != nil {
			continue
		}
		asked := 0
		for range 10 {
			_, err := g.Do(t.Context(), tc("pay", `{}`), l.acts)
			if _, ok := errors.AsType[*ringi.WaitingError](err); ok {
				asked++
			} else if err == nil {
				t.Fatal("done")
			}
		}
		f.Stop()
		failed := 10 - asked
		page, err := e.Requests(t.Context(), ringi.RequestQuery{Limit: 100})
		if err != nil || len(page.Requests) < asked || len(page.Requests) > asked+failed {
			t.Errorf("seed %d: %d were told of a request, %d failed, %d requests, %v", seed, asked, failed, len(page.Requests), err)
		}
		l.intact(e, id)
	}
}

// An edit that a process without tools recorded is looked at by whoever waits
// with the tools: Wait goes on to its successor.
func TestGate_WaitSeesAProposalOfAProcessWithoutTools(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{"n":1}`))
	bare, err := engine.New(engine.Config{Store: l.cfg.Store})
	must(t, err)
	set, err := bare.Decide(t.Context(), r.Edit(ben, json.RawMessage(`{"n":2}`)))
	if err != nil || !set.Proposed {
		t.Fatalf("%+v %v", set, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got := make(chan error, 1)
	go func() {
		next, err := e.Wait(ctx, r.ID)
		if err == nil && next.Call.Input != `{"n":2}` {
			err = errors.New("another request: " + next.ID)
		}
		got <- err
	}()
	l.eventuallyOr(ctx, func() bool {
		page, err := e.Requests(ctx, ringi.RequestQuery{State: []ringi.RequestState{ringi.Pending}})
		return err == nil && len(page.Requests) == 1 && page.Requests[0].ID != r.ID
	}, func() {
		page, _ := e.Requests(ctx, ringi.RequestQuery{State: []ringi.RequestState{ringi.Pending}})
		l.decide(e, page.Requests[0].Approve(ben))
	})
	if err := <-got; err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(g)
}

// eventuallyOr waits for a state and then acts; it gives up with ctx.
func (l *loop) eventuallyOr(ctx context.Context, holds func() bool, then func()) {
	for ctx.Err() == nil {
		if holds() {
			then()
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A gate that was opened inside a tool's handler ends with that call.
func TestGate_AnOrphanGoesNoFurther(t *testing.T) {
	l := newLoop(t)
	var e *engine.Engine
	var g *engine.Gate
	l.tool(ringi.Tool{Name: "agent", Effect: ringi.ReadOnly}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		var err error
		g, err = e.Gate(ctx, ringi.RunInfo{Thread: "child"})
		if err != nil {
			return ringi.ToolResult{}, err
		}
		_, err = g.Do(ctx, tc("find", `{}`), l.acts)
		return ringi.ToolResult{Output: "ok"}, err
	})
	l.says(calls("agent", `{}`))
	e = l.engine()
	wantStatus(t, l.run(e, ringi.RunStart{By: ana}), ringi.Completed, 0)
	if p := g.Run().Parent; p.IsZero() {
		t.Error("no parent")
	}
	if res, err := g.Do(t.Context(), tc("find", `{}`), l.acts); err == nil {
		t.Errorf("its parent's call has ended: %+v", res)
	}
	// And where nobody comes back to it, whoever tends it ends it.
	l2 := l.engine()
	res, err := l2.Resume(t.Context(), g.Run().ID)
	if err == nil && !res.Status.Final() {
		t.Errorf("an orphan stays %s", res.Status)
	}
}

// The run of a gate that was cancelled, with an unknown outcome open and a
// sibling in flight, ends with that sibling.
func TestGate_CancelledWithAnOutcomeOpen(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	a := l.start(g, l.judge(g, tc("note", `{"n":1}`)).Call.ID)
	b := l.start(g, l.judge(g, tc("note", `{"n":2}`)).Call.ID)
	waitsFor(t, g.Finish(t.Context(), a, ringi.ToolResult{Outcome: ringi.OutcomeInDoubt}))
	must(t, e.Cancel(t.Context(), g.Run().ID, ben, "stop", false))
	must(t, g.Finish(t.Context(), b, ringi.ToolResult{Output: "done"}))
	if row := l.row(g.Run().ID); row.Status != ringi.Cancelled {
		t.Errorf("%+v", row)
	}
	if res := l.judge(g, known(b.Call().ID)).Result; res == nil || res.Output != "done" {
		t.Errorf("%+v", res)
	}
	if res := l.judge(g, known(a.Call().ID)).Result; res == nil || res.Outcome != ringi.OutcomeInDoubt {
		t.Errorf("%+v", res)
	}
	l.intact(e, g.Run().ID)
}

// The outcome of a call that a person approved is unknown: the question is
// what whoever asks is told, at every door, and the run goes on beside it.
func TestGate_AnApprovedCallsOutcomeIsAsked(t *testing.T) {
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		e := l.engine()
		g := l.gate(e)
		r := l.waits(g, tc("pay", `{}`))
		l.decide(e, r.Approve(ben))
		l.start(g, r.Call.ID)
		l.advance(time.Minute)
		j := l.judge(g, known(r.Call.ID))
		if j.Request == nil || j.Request.Kind != ringi.KindOutcome || j.MayStart() {
			t.Fatalf("%+v", j)
		}
		for range 2 {
			if o := l.waits(g, known(r.Call.ID)); o.ID != j.Request.ID {
				t.Errorf("%+v", o)
			}
			_, err := g.Start(t.Context(), r.Call.ID)
			waitsFor(t, err)
			wantErr(t, g.Close(t.Context()), ringi.ErrBusy)
			l.do(g, tc("note", `{}`))
		}
		l.decide(e, j.Request.Ran(ben, "paid by hand"))
		if res := l.do(g, known(r.Call.ID)); res.Output != "paid by hand" || res.Origin != ringi.OriginPerson {
			t.Errorf("%+v", res)
		}
		must(t, g.Close(t.Context()))
		l.intact(e, g.Run().ID)
	})
}

// The caller has gone, and what its call came to is unknown: that is recorded
// all the same.
func TestGate_AnUnknownOutcomeIsRecordedWithoutItsCaller(t *testing.T) {
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		e := l.engine()
		g := l.gate(e)
		ctx, stop := context.WithCancel(t.Context())
		_, err := g.Do(ctx, tc("note", `{}`), func(context.Context, engine.Started) (any, error) { stop(); panic("boom") })
		if q := waitsFor(t, err); q.Kind != ringi.KindOutcome {
			t.Errorf("%+v", q)
		}
		s := l.start(g, l.judge(g, tc("note", `{}`)).Call.ID)
		waitsFor(t, g.Finish(ctx, s, ringi.ToolResult{Outcome: ringi.OutcomeInDoubt}))
		l.intact(e, g.Run().ID)
	})
}

// Cancel with now cuts the call that Do runs in another process.
func TestGate_CancelNowCutsElsewhere(t *testing.T) {
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		l.cfg.Limits.ToolTimeout = time.Minute
		l.cfg.Lease = 300 * time.Millisecond // the heart beats every third of it
		g := l.gate(l.engine())
		begun := time.Now()
		_, err := g.Do(t.Context(), tc("note", `{}`), func(ctx context.Context, _ engine.Started) (any, error) {
			must(l.t, l.engine().Cancel(context.Background(), g.Run().ID, ben, "stop", true))
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("it ran for %s after it was cut: %v", took, err)
		}
	})
}

// A run whose overdue call became a question is not listed again and again.
func TestGate_AQuestionIsNotRunnable(t *testing.T) {
	for _, held := range []bool{true, false} {
		overStores(t, func(t *testing.T, l *loop) {
			l.t = t
			e := l.engine()
			g := l.gate(e)
			l.start(g, l.judge(g, tc("note", `{}`)).Call.ID)
			sweeper := e
			if !held {
				sweeper = l.engine()
			}
			l.advance(30 * time.Second)
			for range 4 {
				_, err := sweeper.Expire(t.Context(), 10)
				must(t, err)
			}
			if row := l.row(g.Run().ID); row.Status != ringi.WaitingForOutcome {
				t.Errorf("%s", row.Status)
			}
			if n := l.runnable(); n != 0 {
				t.Errorf("held %v: %d runnable, after four sweeps", held, n)
			}
			runtime.KeepAlive(g)
		})
	}
}
