package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/sign"
	"github.com/ringi-dev/ringi/store/storetest"
)

// The findings of docs/threats.md that the engine answers, by their numbers.

func TestS01_UndeclaredEffectRunsInOrderAndIsNeverRepeated(t *testing.T) {
	w := newWorld(t)
	var inside atomic.Int32
	w.tool(ringi.Tool{Name: "bare"}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		if inside.Add(1) > 1 {
			t.Error("two undeclared calls overlap")
		}
		time.Sleep(time.Millisecond)
		inside.Add(-1)
		return ringi.ToolResult{}, nil
	})
	w.says(calls("bare", `{"n":1}`, "bare", `{"n":2}`))
	res := w.run(w.engine(), ringi.RunStart{}) // judged as a read: nobody is asked
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan(`bare {"n":1}`, `bare {"n":2}`)

	w = newWorld(t)
	died := w.dieIn("bare", "")
	w.says(calls("bare", `{}`))
	id := died(ringi.RunStart{})
	res = w.resume(w.restart(), id)
	wantStatus(t, res, ringi.WaitingForOutcome, 1)
	if w.count("bare") != 1 {
		t.Errorf("ran %d times", w.count("bare"))
	}
}

func TestS01_StricterEffectCountsAfterACrash(t *testing.T) {
	for _, c := range []struct {
		then, now ringi.Effect
		again     bool
	}{
		{ringi.IdempotentWrite, ringi.IdempotentWrite, true},
		{ringi.NonIdempotentWrite, ringi.IdempotentWrite, false},
		{ringi.IdempotentWrite, ringi.NonIdempotentWrite, false},
		{ringi.NonIdempotentWrite, ringi.ReadOnly, false},
	} {
		t.Run(fmt.Sprintf("%s now %s", c.then, c.now), func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"bare": {Status: ringi.Approved}}
			died := w.dieIn("bare", c.then)
			w.says(calls("bare", `{}`))
			id := died(ringi.RunStart{})
			w.reg = ringi.NewRegistry()
			w.cfg.Registry = w.reg
			w.tool(ringi.Tool{Name: "bare", Effect: c.now}, nil)
			res := w.resume(w.restart(), id)
			if c.again {
				wantStatus(t, res, ringi.Completed, 0)
			} else {
				wantStatus(t, res, ringi.WaitingForOutcome, 1)
			}
			if want := map[bool]int{true: 2, false: 1}[c.again]; w.count("bare") != want {
				t.Errorf("ran %d times, want %d", w.count("bare"), want)
			}
		})
	}
}

// dieIn registers a tool in which the process dies: the handler never returns,
// and its engine is forgotten. The returned function starts a run and gives
// its id once the call has begun.
func (w *world) dieIn(name string, effect ringi.Effect) func(ringi.RunStart) string {
	begun := make(chan string, 1)
	first := true
	w.tool(ringi.Tool{Name: name, Effect: effect}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		tc, _ := ringi.ToolContextFrom(ctx)
		w.mu.Lock()
		was := first
		first = false
		w.mu.Unlock()
		if was {
			begun <- tc.RunID
			select {} // the process is gone; nothing ever comes back
		}
		return ringi.ToolResult{Output: "ok"}, nil
	})
	return func(start ringi.RunStart) string {
		start.Messages = []ringi.Message{ringi.User("go")}
		e := w.engine()
		go e.Run(context.Background(), start)
		return <-begun
	}
}

func TestS02_WhatDidNotReturnInTimeIsUnknown(t *testing.T) {
	big := strings.Repeat("x", 2<<20)
	for _, c := range []struct {
		name string
		do   func(ctx context.Context) (ringi.ToolResult, error)
		want ringi.CallOutcome
		code ringi.ResultCode
	}{
		{"timeout", func(context.Context) (ringi.ToolResult, error) { select {} }, ringi.OutcomeInDoubt, ""},
		{"panic", func(context.Context) (ringi.ToolResult, error) { panic("boom") }, ringi.OutcomeInDoubt, ""},
		{"2 MiB result", func(context.Context) (ringi.ToolResult, error) { return ringi.ToolResult{Output: big}, nil }, ringi.OutcomeOK, ""},
		{"error in time", func(context.Context) (ringi.ToolResult, error) { return ringi.ToolResult{}, errors.New("no funds") }, ringi.OutcomeError, ringi.CodeToolError},
		{"not done", func(context.Context) (ringi.ToolResult, error) {
			return ringi.ToolResult{}, ringi.NotDone(errors.New("refused"))
		}, ringi.OutcomeError, ringi.CodeNotDone},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"api": {Status: ringi.Approved}}
			w.tool(ringi.Tool{Name: "api", Effect: ringi.NonIdempotentWrite, Timeout: 10 * time.Millisecond},
				func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) { return c.do(ctx) })
			w.says(calls("api", `{}`))
			res := w.run(w.engine(), ringi.RunStart{})
			if c.want == ringi.OutcomeInDoubt {
				wantStatus(t, res, ringi.WaitingForOutcome, 1)
				if len(w.seen) != 1 {
					t.Error("the model was told of a call whose outcome is unknown")
				}
				return
			}
			wantStatus(t, res, ringi.Completed, 0)
			r := res.Results[0]
			if r.Outcome != c.want || r.Code != c.code || len(r.Output) > 1<<20 || (c.name == "2 MiB result") != r.Truncated {
				t.Errorf("result %s %s, %d bytes, truncated %v", r.Outcome, r.Code, len(r.Output), r.Truncated)
			}
		})
	}
}

func TestS02_ResultThatCannotBeRecordedIsUnknown(t *testing.T) {
	w := newWorld(t)
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"pay": {Status: ringi.Approved}}
	w.says(calls("pay", `{}`))
	st := &failing{Store: w.store, when: func(c *ringi.Commit) bool { return holds(c, ringi.EventToolFinished) }}
	w.cfg.Store = st
	_, err := w.engine().Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
	wantErr(t, err, ringi.ErrNotRecorded)
	w.cfg.Store = w.store
	rows, _ := w.store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
	res := w.resume(w.restart(), rows[0].ID)
	wantStatus(t, res, ringi.WaitingForOutcome, 1)
	if res.Pending[0].Evidence != "ok pay" {
		t.Errorf("evidence %q", res.Pending[0].Evidence)
	}
	w.wantRan(`pay {}`)
}

// failing is a store whose commits fail where when says so, before anything
// is written, or after all of it is.
type failing struct {
	ringi.Store
	when  func(*ringi.Commit) bool
	after bool
	left  int // fail so often, then no more; 0: for ever
	mu    sync.Mutex
}

var errDisk = errors.New("disk is gone")

func (f *failing) Commit(ctx context.Context, c *ringi.Commit) error {
	f.mu.Lock()
	fail := f.when(c) && f.left >= 0
	if fail && f.left > 0 {
		if f.left--; f.left == 0 {
			f.left = -1
		}
	}
	f.mu.Unlock()
	if !fail {
		return f.Store.Commit(ctx, c)
	}
	if f.after {
		if err := f.Store.Commit(ctx, c); err != nil {
			return err
		}
	}
	return errDisk
}

func holds(c *ringi.Commit, k ringi.EventKind) bool {
	for _, r := range c.Records {
		if r.Kind == k {
			return true
		}
	}
	return false
}

// TestFaultsWithSurvival fails every commit of a run once, before and after it
// is made: no run is stranded, nothing runs twice.
func TestFaultsWithSurvival(t *testing.T) {
	for _, after := range []bool{false, true} {
		for k := range 8 {
			t.Run(fmt.Sprintf("commit %d after %v", k, after), func(t *testing.T) {
				w := newWorld(t)
				w.says(calls("find", `{}`, "pay", `{}`))
				n := 0
				w.cfg.Store = &failing{Store: w.store, after: after, when: func(*ringi.Commit) bool { n++; return n == k+1 }}
				e := w.engine()
				res, err := e.Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
				for try := 0; try < 4 && (err != nil || res.Status != ringi.Completed); try++ {
					rows, lerr := w.store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
					if lerr != nil {
						t.Fatal(lerr)
					}
					if len(rows) == 0 {
						return // never began, and said so
					}
					page, _ := e.Requests(t.Context(), ringi.RequestQuery{})
					for _, r := range page.Requests {
						if _, derr := e.Decide(t.Context(), r.Approve(ana)); derr != nil && !errors.Is(derr, ringi.ErrNotRecorded) {
							t.Fatal(derr)
						}
					}
					res, err = e.Resume(t.Context(), rows[0].ID)
				}
				if err != nil || res.Status != ringi.Completed {
					t.Fatalf("run is stranded: %v %+v", err, res)
				}
				if w.count("pay") != 1 {
					t.Errorf("pay ran %d times", w.count("pay"))
				}
			})
		}
	}
}

func TestS03_Thief(t *testing.T) {
	type act func(th storetest.Thief, w *world, res *ringi.Result)
	for name, steal := range map[string]act{
		"flips the request's row": func(th storetest.Thief, w *world, res *ringi.Result) {
			must(t, th.SetRequest("default", res.Pending[0].ID, func(r *ringi.RequestRow) { r.State = ringi.Granted }))
		},
		"changes a payload": func(th storetest.Thief, w *world, res *ringi.Result) {
			must(t, th.UpdateRecord("default", res.RunID, 3, func(r *ringi.Record) {
				r.Payload = []byte(strings.Replace(string(r.Payload), "user-approval", "not-applicable", 1))
			}))
		},
		"drops the request": func(th storetest.Thief, w *world, res *ringi.Result) {
			must(t, th.DeleteRecord("default", res.RunID, 3))
		},
		"moves the head": func(th storetest.Thief, w *world, res *ringi.Result) {
			must(t, th.DeleteRecord("default", res.RunID, 3))
			must(t, th.SetRow("default", res.RunID, func(r *ringi.RunRow) { r.Seq = 2 }))
		},
		"removes the MAC": func(th storetest.Thief, w *world, res *ringi.Result) {
			must(t, th.SetRow("default", res.RunID, func(r *ringi.RunRow) { r.MAC = "" }))
		},
		"queues the run": func(th storetest.Thief, w *world, res *ringi.Result) {
			must(t, th.SetRow("default", res.RunID, func(r *ringi.RunRow) { r.Status = ringi.Queued }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Keyring = keyring(t)
			w.says(calls("pay", `{}`))
			res := w.run(w.engine(), ringi.RunStart{})
			th, ok := storetest.ThiefOf(w.store)
			if !ok {
				t.Fatal("store brings no thief")
			}
			steal(th, w, res)
			e := w.restart()
			got, err := e.Resume(t.Context(), res.RunID)
			if err == nil && got.Status != ringi.WaitingForApproval {
				t.Errorf("run went on: %+v", got)
			}
			if w.count("pay") != 0 {
				t.Error("an unapproved call ran")
			}
		})
	}
}

// TestS03_ForgedDecision inserts a decision with recomputed hashes, as one who
// can write to the store and has no key would.
func TestS03_ForgedDecision(t *testing.T) {
	w := newWorld(t)
	w.cfg.Keyring = keyring(t)
	w.says(calls("pay", `{}`))
	res := w.run(w.engine(), ringi.RunStart{})
	// An engine without a key over the same store plays the thief: it makes
	// perfect events, and no signatures.
	forger := &keyless{Store: w.store}
	thief, err := engine.New(engine.Config{Store: forger, Registry: w.reg})
	if err != nil {
		t.Fatal(err)
	}
	req := res.Pending[0]
	if _, err := thief.Decide(t.Context(), req.Approve(ben)); !errors.Is(err, ringi.ErrNoKey) {
		t.Errorf("a process without the key decides: %v", err)
	}
	other, err := sign.New([]byte("another key of thirty-two bytes!"))
	if err != nil {
		t.Fatal(err)
	}
	thief, err = engine.New(engine.Config{Store: forger, Registry: w.reg, Keyring: other})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := thief.Decide(t.Context(), req.Approve(ben)); err == nil {
		t.Error("a process with another key decides")
	}
	if got, err := w.restart().Resume(t.Context(), res.RunID); err == nil && got.Status != ringi.WaitingForApproval {
		t.Errorf("run went on: %+v", got)
	}
	if w.count("pay") != 0 {
		t.Error("an unapproved call ran")
	}
}

// keyless hides the store's key memory, and that it was used at all.
type keyless struct{ ringi.Store }

func (k keyless) Runs(ctx context.Context, q ringi.RunQuery) ([]ringi.RunRow, error) {
	if q.Limit == 1 && q.Thread == "" {
		return nil, nil
	}
	return k.Store.Runs(ctx, q)
}

func (keyless) Keys(context.Context) (map[string]string, error)   { return nil, nil }
func (keyless) RememberKey(context.Context, string, string) error { return nil }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestS06_EditUnderFourEyesIsSomebodyElsesToApprove(t *testing.T) {
	w := newWorld(t)
	w.cfg.FourEyes = engine.FourEyesWrites
	w.says(calls("pay", `{"n":1}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{By: ben})
	if _, err := e.Decide(t.Context(), res.Pending[0].Approve(ben)); !errors.Is(err, ringi.ErrNotPermitted) {
		t.Errorf("the initiator approves: %v", err)
	}
	d := res.Pending[0].Edit(ana, json.RawMessage(`{"n":2}`))
	d.AndApprove = true
	next := w.decide(e, d).Request
	if next.State != ringi.Pending {
		t.Fatalf("edited and approved in one: %+v", next)
	}
	if _, err := e.Decide(t.Context(), next.Approve(ana)); !errors.Is(err, ringi.ErrNotPermitted) {
		t.Errorf("the editor approves: %v", err)
	}
	cho := ringi.Principal{ID: "cho", Kind: ringi.Person}
	w.decide(e, next.Approve(cho))
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
	w.wantRan(`pay {"n":2}`)
}

func TestS06_EditThatPolicyDeniesIsRefused(t *testing.T) {
	w := newWorld(t)
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"pay": ringi.When(func(_ context.Context, in struct {
		N int `json:"n"`
	}, _ ringi.CallInfo) (ringi.Verdict, error) {
		if in.N > 100 {
			return ringi.Verdict{Status: ringi.Denied, Reason: "too much"}, nil
		}
		return ringi.Verdict{Status: ringi.UserApproval}, nil
	})}
	w.says(calls("pay", `{"n":1}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	_, err := e.Decide(t.Context(), res.Pending[0].Edit(ana, json.RawMessage(`{"n":1000}`)))
	wantErr(t, err, ringi.ErrNowDenied)
	for _, bad := range []string{``, `[]`, `{"n":`, `{"n":1,"n":2}`, `"x"`} {
		if _, err := e.Decide(t.Context(), res.Pending[0].Edit(ana, json.RawMessage(bad))); err == nil && bad != `` {
			t.Errorf("edit %q was taken", bad)
		}
	}
	req, err := e.Request(t.Context(), res.Pending[0].ID)
	if err != nil || req.State != ringi.Pending && req.State != ringi.Stale {
		t.Errorf("request is %s, %v", req.State, err)
	}
}

func TestS06_RespondIsBoundedAndValid(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "ask", Effect: ringi.NonIdempotentWrite, AllowRespond: true, OutputSchema: json.RawMessage(`{"type":"object","required":["id"]}`)}, nil)
	w.says(calls("ask", `{}`))
	e := w.engine()
	req := w.run(e, ringi.RunStart{}).Pending[0]
	_, err := e.Decide(t.Context(), req.Respond(ana, json.RawMessage(`{"x":"`+strings.Repeat("y", 65<<10)+`"}`)))
	wantErr(t, err, ringi.ErrTooLarge)
	_, err = e.Decide(t.Context(), req.Respond(ana, json.RawMessage(`{"x":1}`)))
	wantErr(t, err, ringi.ErrAnswer)
	w.decide(e, req.Respond(ana, json.RawMessage(`{"id":1}`)))
	w.wantRan()
}

func TestS08_DeniedNowCannotBeApproved(t *testing.T) {
	w := newWorld(t)
	deny := false
	w.cfg.Approval = ringi.Approval{Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
		if deny {
			return ringi.Verdict{Status: ringi.Denied, Reason: "closed"}, nil
		}
		return ringi.Verdict{Status: ringi.UserApproval}, nil
	}}
	w.says(calls("pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	deny = true
	_, err := e.Decide(t.Context(), res.Pending[0].Approve(ana))
	wantErr(t, err, ringi.ErrNowDenied)
	deny = false
	w.decide(e, res.Pending[0].Approve(ana))
	deny = true
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan()
	if r := res.Results[0]; r.Code != ringi.CodeDeniedByPolicy {
		t.Errorf("result %+v", r)
	}
}

func TestS08_JudgingAgainSeesTheMessagesOfItsStep(t *testing.T) {
	w := newWorld(t)
	var seen []int
	w.cfg.Approval = ringi.Approval{Func: func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
		w.mu.Lock()
		seen = append(seen, len(c.Messages))
		w.mu.Unlock()
		if c.Call.Tool == "pay" {
			return ringi.Verdict{Status: ringi.UserApproval}, nil
		}
		return ringi.Verdict{}, nil
	}}
	w.says(calls("find", `{}`), calls("pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.decide(e, res.Pending[0].Approve(ana))
	w.resume(w.restart(), res.RunID)
	// find saw 1 message; pay saw 3, at judgement, at the decision and as it was spent.
	if want := []int{1, 3, 3, 3}; fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("messages seen %v, want %v", seen, want)
	}
}

func TestS09_DeciderWhoMayNoLongerDecide(t *testing.T) {
	w := newWorld(t)
	w.cfg.Deciders = ringi.Deciders{People: []string{"ana", "ben"}}
	w.says(calls("pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	if _, err := e.Decide(t.Context(), res.Pending[0].Approve(ringi.Principal{ID: "cho", Kind: ringi.Person, Admin: true})); !errors.Is(err, ringi.ErrNotPermitted) {
		t.Errorf("somebody else decides: %v", err)
	}
	w.decide(e, res.Pending[0].Approve(ana))
	w.cfg.Deciders.People = []string{"ben"}
	res = w.resume(w.restart(), res.RunID)
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	w.wantRan()
}

func TestS09_TakeBackAgainstStart(t *testing.T) {
	rounds := 200
	for range rounds {
		w := newWorld(t)
		w.says(calls("pay", `{}`))
		e := w.engine()
		res := w.run(e, ringi.RunStart{})
		w.decide(e, res.Pending[0].Approve(ana))
		var took error
		var wg sync.WaitGroup
		wg.Go(func() { _, took = e.TakeBack(context.Background(), res.Pending[0].ID, ana, "") })
		got, err := e.Resume(t.Context(), res.RunID)
		wg.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if ran := w.count("pay"); ran > 1 || (ran == 1) == (took == nil) {
			t.Fatalf("ran %d times, took back: %v, run %s", ran, took, got.Status)
		}
	}
}

func TestS12_FourEyesNeedKnownInitiators(t *testing.T) {
	w := newWorld(t)
	w.cfg.FourEyes = engine.FourEyesAll
	w.says(calls("pay", `{}`))
	e := w.engine()
	_, err := e.Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
	wantErr(t, err, ringi.ErrNoAuthor)
	// Two authors on a thread are both initiators of its next run.
	w.cfg.FourEyes = engine.FourEyesOff
	w.says()
	w.run(w.engine(), ringi.RunStart{Thread: "thr_a", By: ana})
	w.cfg.FourEyes = engine.FourEyesAll
	w.says(calls("pay", `{}`))
	e = w.engine()
	res := w.run(e, ringi.RunStart{Thread: "thr_a", By: ben})
	for _, by := range []ringi.Principal{ana, ben} {
		_, err := e.Decide(t.Context(), res.Pending[0].Approve(by))
		wantErr(t, err, ringi.ErrNotPermitted)
	}
	w.decide(e, res.Pending[0].Deny(ben, "")) // an initiator may say no
}

func TestS04_NoDeciderIsADenial(t *testing.T) {
	w := newWorld(t)
	w.cfg.FourEyes = engine.FourEyesAll
	w.cfg.Deciders = ringi.Deciders{People: []string{"ben"}}
	w.says(calls("pay", `{}`))
	res := w.run(w.engine(), ringi.RunStart{By: ben})
	wantStatus(t, res, ringi.Completed, 0)
	if r := res.Results[0]; r.Code != ringi.CodeNoDecider {
		t.Errorf("result %+v", r)
	}
}

func TestS17_EagerPreviewAndPrecondition(t *testing.T) {
	w := newWorld(t)
	version := "1"
	w.tool(ringi.Tool{Name: "write", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
		version = "2"
		return ringi.ToolResult{}, nil
	})
	w.tool(ringi.Tool{Name: "apply", Effect: ringi.NonIdempotentWrite}, nil, ringi.ToolHooks{
		Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
			return ringi.Preview{Text: "content " + version, Precondition: version}, nil
		},
		Check: func(_ context.Context, _ ringi.ToolCall, pre string) error {
			if pre != version {
				return errors.New("changed")
			}
			return nil
		},
	})
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"write": {Status: ringi.Approved}}
	w.says(calls("write", `{}`, "apply", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	if p := res.Pending[0].Preview; p == nil || p.Text != "content 2" {
		t.Fatalf("preview %+v: not of the world that the eager part left", p)
	}
	w.decide(e, res.Pending[0].Approve(ana))
	version = "3"
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	if p := res.Pending[0].Preview; p == nil || p.Text != "content 3" {
		t.Errorf("preview %+v", p)
	}
	w.decide(e, res.Pending[0].Approve(ana))
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
	if w.count("apply") != 1 {
		t.Errorf("apply ran %d times", w.count("apply"))
	}
}

func TestS17_PreviewThatFailsIsSaidSo(t *testing.T) {
	for name, p := range map[string]func(context.Context, ringi.ToolCall) (ringi.Preview, error){
		"panics": func(context.Context, ringi.ToolCall) (ringi.Preview, error) { panic("x") },
		"errs":   func(context.Context, ringi.ToolCall) (ringi.Preview, error) { return ringi.Preview{}, errors.New("x") },
		"1 MB": func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
			return ringi.Preview{Text: strings.Repeat("x", 1<<20)}, nil
		},
		"empty": func(context.Context, ringi.ToolCall) (ringi.Preview, error) { return ringi.Preview{}, nil },
		"no check for its precondition": func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
			return ringi.Preview{Text: "x", Precondition: "1"}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.tool(ringi.Tool{Name: "apply", Effect: ringi.NonIdempotentWrite}, nil, ringi.ToolHooks{Preview: p})
			w.says(calls("apply", `{}`))
			req := w.run(w.engine(), ringi.RunStart{}).Pending[0]
			if req.Preview != nil || !strings.HasPrefix(req.PreviewError, "no preview") {
				t.Errorf("preview %+v, error %q", req.Preview, req.PreviewError)
			}
		})
	}
}

func TestS18_ChildRuns(t *testing.T) {
	w := newWorld(t)
	var inner *ringi.Result
	var ierr error
	var e *engine.Engine
	w.cfg.FourEyes = engine.FourEyesWrites
	w.cfg.Limits = ringi.Limits{Steps: 5}
	w.tool(ringi.Tool{Name: "agent", Effect: ringi.ReadOnly}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		inner, ierr = e.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("inner")}})
		if ierr != nil {
			return ringi.ToolResult{}, ierr
		}
		return ringi.ToolResult{Output: inner.Text}, nil
	})
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		switch {
		case req.Messages[0].Text == "inner" && req.Step == 1:
			return calls("pay", `{}`, "find", `{}`)
		case req.Step == 1:
			return calls("agent", `{}`)
		}
		return &ringi.ModelTurn{Text: "done"}
	})
	e = w.engine()
	res := w.run(e, ringi.RunStart{By: ana})
	wantStatus(t, res, ringi.Completed, 0)
	if ierr != nil || inner.Status != ringi.Completed {
		t.Fatalf("inner run: %v %+v", ierr, inner)
	}
	w.wantRan(`agent {}`, `find {}`) // unattended: the write was withheld
	if len(inner.Withheld) == 0 {
		t.Error("nothing withheld")
	}
	row, err := w.store.Row(t.Context(), "default", inner.RunID)
	if err != nil || row.Parent != res.RunID {
		t.Errorf("parent %q, %v", row.Parent, err)
	}
}

func TestS20_DataDoesNotGoToALessTrustedZone(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "secret", Effect: ringi.ReadOnly, DataClass: ringi.SecretAdjacent}, nil)
	w.cfg.Zone = ringi.ZoneLocal
	w.says(calls("secret", `{}`))
	wantStatus(t, w.run(w.engine(), ringi.RunStart{Thread: "thr_a"}), ringi.Completed, 0)
	w.cfg.Zone = ringi.ZoneExternalGlobal
	w.seen = nil
	res := w.run(w.engine(), ringi.RunStart{Thread: "thr_a"})
	if res.Reason != ringi.ReasonTrustZone || len(w.seen) != 0 || !strings.Contains(res.Detail, "secret_adjacent") {
		t.Errorf("run %s %s, model asked %d times", res.Reason, res.Detail, len(w.seen))
	}
	// PrepareStep chooses a model of another zone.
	w.cfg.Zone = ringi.ZoneLocal
	outside := modelFunc(func(ringi.ModelRequest) *ringi.ModelTurn { t.Error("asked"); return &ringi.ModelTurn{} })
	w.cfg.PrepareStep = func(_ context.Context, i engine.StepInfo) (engine.StepPlan, error) {
		if i.Step == 2 {
			return engine.StepPlan{Model: outside, Zone: ringi.ZoneExternalEU}, nil
		}
		return engine.StepPlan{}, nil
	}
	res = w.run(w.engine(), ringi.RunStart{})
	if res.Reason != ringi.ReasonTrustZone {
		t.Errorf("run %s %s", res.Status, res.Reason)
	}
}

func TestS23_DenialBudgets(t *testing.T) {
	w := newWorld(t)
	w.cfg.Limits = ringi.Limits{Steps: -1, ToolCalls: -1}
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		if req.Step > 4 {
			return &ringi.ModelTurn{Text: "gave up"}
		}
		return calls("pay", []string{`{"a":1,"b":2}`, `{ "b":2, "a":1 }`, `{"a":1,"b":2}`, `{"b":2,"a":1}`}[req.Step-1])
	})
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	for range 3 {
		wantStatus(t, res, ringi.WaitingForApproval, 1)
		w.decide(e, res.Pending[0].Deny(ana, "no"))
		res = w.resume(e, res.RunID)
	}
	wantStatus(t, res, ringi.Completed, 0) // the fourth is not asked again
	if r := res.Results[3]; r.Code != ringi.CodeDeniedByPerson || r.Approval.Source != ringi.SourceDenialBudget {
		t.Errorf("result %+v", r)
	}
	// Every spelling another call, over the runs of a thread: ten in all.
	n := 0
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn { n++; return calls("pay", fmt.Sprintf(`{"n":%d}`, n)) })
	e = w.engine()
	asked := 0
	for range 3 {
		res = w.run(e, ringi.RunStart{Thread: "thr_b"})
		for res.Status == ringi.WaitingForApproval {
			asked++
			w.decide(e, res.Pending[0].Deny(ana, "no"))
			res = w.resume(e, res.RunID)
			if asked == 4 {
				if err := e.Cancel(t.Context(), res.RunID, ana, "", false); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
		if asked >= 10 {
			break
		}
	}
	if asked != 10 || res.Reason != ringi.ReasonDeniedTooOften {
		t.Errorf("asked %d times, run %s %s", asked, res.Status, res.Reason)
	}
}

func TestS23_DenyThisToolInThisThread(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{"n":1}`), calls("pay", `{"n":2}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	d := res.Pending[0].Deny(ana, "no payments today")
	d.Scope = ringi.ThisTool
	w.decide(e, d)
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.Completed, 0)
	if len(res.Results) != 2 || res.Results[1].Code != ringi.CodeDeniedByPerson {
		t.Errorf("results %+v", res.Results)
	}
}

// A new message is a new run and no fresh budget: a thread puts thirty requests
// an hour, however many runs it has; an edited or extended one counts once.
func TestS23_AThreadAsksThirtyTimesAnHour(t *testing.T) {
	w := newWorld(t)
	asked := 0
	for range 15 {
		w.says(calls("pay", `{"n":1}`, "pay", `{"n":2}`))
		res := w.run(w.engine(), ringi.RunStart{Thread: "thr_a"})
		for _, r := range res.Pending {
			asked++
			w.decide(w.engine(), r.Approve(ana))
		}
		if len(res.Pending) > 0 {
			res = w.resume(w.engine(), res.RunID)
		}
		wantStatus(t, res, ringi.Completed, 0)
		w.advance(time.Minute)
	}
	if asked != 30 {
		t.Fatalf("asked %d times", asked)
	}
	w.says(calls("pay", `{"n":1}`))
	res := w.run(w.engine(), ringi.RunStart{Thread: "thr_a"})
	wantStatus(t, res, ringi.Completed, 0)
	if len(res.Results) != 1 || res.Results[0].Code != ringi.CodeTooMany {
		t.Fatalf("results %+v", res.Results)
	}
	w.says(calls("pay", `{"n":1}`))
	if res = w.run(w.engine(), ringi.RunStart{Thread: "thr_b"}); len(res.Pending) != 1 {
		t.Errorf("another thread: %+v", res)
	}
	w.advance(45 * time.Minute) // the first of the thirty are an hour old
	w.says(calls("pay", `{"n":1}`, "pay", `{"n":2}`, "pay", `{"n":3}`))
	if res = w.run(w.engine(), ringi.RunStart{Thread: "thr_a"}); len(res.Pending) != 2 {
		t.Errorf("an hour later %d are asked", len(res.Pending))
	}
	w.cfg.ThreadRequests = -1
	for i := range 40 {
		w.says(calls("pay", `{"n":1}`))
		res := w.run(w.engine(), ringi.RunStart{Thread: "thr_c"})
		if len(res.Pending) != 1 {
			t.Fatalf("without a bound, number %d: %+v", i, res)
		}
		w.decide(w.engine(), res.Pending[0].Approve(ana))
		w.resume(w.engine(), res.RunID)
	}
}

// An agent's open requests are bounded over all of its runs, where the operator
// says so.
func TestS23_AnAgentHasSoManyOpenRequests(t *testing.T) {
	w := newWorld(t)
	w.cfg.Agent, w.cfg.AgentRequests = "shop", 3
	w.says(calls("pay", `{"n":1}`, "pay", `{"n":2}`))
	first := w.run(w.engine(), ringi.RunStart{Thread: "thr_a"})
	wantStatus(t, first, ringi.WaitingForApproval, 2)
	w.says(calls("pay", `{"n":1}`, "pay", `{"n":2}`))
	second := w.run(w.engine(), ringi.RunStart{Thread: "thr_b"})
	wantStatus(t, second, ringi.WaitingForApproval, 1)
	w.says(calls("pay", `{"n":1}`))
	third := w.run(w.engine(), ringi.RunStart{Thread: "thr_c"})
	wantStatus(t, third, ringi.Completed, 0)
	if third.Results[0].Code != ringi.CodeTooMany {
		t.Errorf("results %+v", third.Results)
	}
	w.cfg.Agent = "other"
	w.says(calls("pay", `{"n":1}`))
	if res := w.run(w.engine(), ringi.RunStart{Thread: "thr_d"}); len(res.Pending) != 1 {
		t.Errorf("another agent: %+v", res)
	}
	w.decide(w.engine(), first.Pending[0].Deny(ana, "no"))
	w.cfg.Agent = "shop"
	w.says(calls("pay", `{"n":1}`))
	if res := w.run(w.engine(), ringi.RunStart{Thread: "thr_e"}); len(res.Pending) != 1 {
		t.Errorf("after one was decided: %+v", res)
	}
}

func TestS23_TenThousandCallsInATurn(t *testing.T) {
	w := newWorld(t)
	turn := &ringi.ModelTurn{}
	for i := range 10_000 {
		turn.Calls = append(turn.Calls, ringi.ToolCall{Tool: "pay", Input: ringi.Input(fmt.Sprintf(`{"n":%d}`, i))})
	}
	judged := 0
	w.cfg.Floor = ringi.Approval{Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
		judged++
		return ringi.Verdict{}, nil
	}}
	w.says(turn)
	res := w.run(w.engine(), ringi.RunStart{})
	wantStatus(t, res, ringi.WaitingForApproval, 20)
	if judged > 50 {
		t.Errorf("judged %d calls, want at most 50", judged)
	}
}

func TestS29_DecisionsAndCancelsWhileAWriteRuns(t *testing.T) {
	for round := range 300 {
		w := newWorld(t)
		w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"put": {Status: ringi.Approved}}
		inTool, free := make(chan struct{}), make(chan struct{})
		w.tool(ringi.Tool{Name: "slow", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
			close(inTool)
			<-free
			return ringi.ToolResult{Output: "slow done"}, nil
		})
		w.says(calls("slow", `{}`, "pay", `{}`))
		e := w.engine()
		res := w.run(e, ringi.RunStart{})
		wantStatus(t, res, ringi.WaitingForApproval, 2)
		w.decide(e, res.Pending[0].Approve(ana))
		w.decide(e, res.Pending[1].Approve(ana))
		done := make(chan *ringi.Result, 1)
		go func() {
			r, err := e.Resume(context.Background(), res.RunID)
			if err != nil {
				t.Error(err)
			}
			done <- r
		}()
		<-inTool
		var wg sync.WaitGroup
		wg.Go(func() {
			if round%2 == 0 {
				if err := e.Cancel(context.Background(), res.RunID, ben, "stop", false); err != nil && !errors.Is(err, ringi.ErrFinal) {
					t.Error(err)
				}
				return
			}
			if _, err := e.TakeBack(context.Background(), res.Pending[1].ID, ana, ""); err != nil && !errors.Is(err, ringi.ErrSpent) {
				t.Error(err)
			}
		})
		close(free)
		got := <-done
		wg.Wait()
		if got == nil {
			t.Fatal("no result")
		}
		full, err := e.Resume(t.Context(), res.RunID)
		if err != nil {
			t.Fatal(err)
		}
		if len(full.Results) == 0 || full.Results[0].Output != "slow done" || w.count("slow") != 1 || w.count("pay") > 1 {
			t.Fatalf("round %d: %s, results %+v, slow ran %d, pay %d", round, full.Status, full.Results, w.count("slow"), w.count("pay"))
		}
		for _, p := range full.Pending {
			if p.Kind == ringi.KindOutcome {
				t.Fatalf("round %d: a false unknown outcome", round)
			}
		}
	}
}

func TestS30_PoisonedRun(t *testing.T) {
	w := newWorld(t)
	w.says()
	boom := true
	w.cfg.Model = modelFunc(func(ringi.ModelRequest) *ringi.ModelTurn { return &ringi.ModelTurn{Text: "done"} })
	w.cfg.Observers = []engine.Observer{}
	st := &exploding{Store: w.store, boom: &boom}
	w.cfg.Store = st
	e := w.engine()
	if _, err := e.Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}}); err == nil {
		t.Fatal("no panic")
	}
	rows, _ := w.store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
	var res *ringi.Result
	var err error
	for range 5 {
		w.advance(time.Minute)
		e = w.engine()
		if res, err = e.Resume(t.Context(), rows[0].ID); err == nil {
			break
		}
	}
	if err != nil || res.Reason != ringi.ReasonPoisoned {
		t.Errorf("after five attempts: %v %+v", err, res)
	}
}

// exploding panics in the commit of a model's turn: a fault of our own.
type exploding struct {
	ringi.Store
	boom *bool
}

func (x *exploding) Commit(ctx context.Context, c *ringi.Commit) error {
	if holds(c, ringi.EventModelResponded) && *x.boom {
		panic("fold")
	}
	return x.Store.Commit(ctx, c)
}

func TestS36_ClockSetBack(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.advance(73 * time.Hour)
	if n, err := e.Expire(t.Context(), 10); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	w.advance(-80 * time.Hour)
	_, err := e.Decide(t.Context(), res.Pending[0].Approve(ana))
	wantErr(t, err, ringi.ErrExpired)
	w.wantRan()
}

func TestS37_Limits(t *testing.T) {
	w := newWorld(t)
	w.cfg.Limits = ringi.Limits{InputBytes: 10, InputDepth: 2, ToolCalls: 4}
	w.says(calls("find", `{"a":123}`, "find", `{"a":1234}`, "find", `{"a":{}}`, "find", `{"a":[{}]}`, "find", `{}`))
	res := w.run(w.engine(), ringi.RunStart{})
	for i, want := range []ringi.CallOutcome{ringi.OutcomeOK, ringi.OutcomeOK, ringi.OutcomeOK, ringi.OutcomeInvalid, ringi.OutcomeNotExecuted} {
		if got := res.Results[i].Outcome; got != want {
			t.Errorf("call %d is %s (%s), want %s", i, got, res.Results[i].Error, want)
		}
	}
	if res.Reason != ringi.ReasonMaxToolCalls {
		t.Errorf("reason %s", res.Reason)
	}
	e := w.engine()
	_, err := e.Decide(t.Context(), ringi.Decision{RequestID: "req_x", Digest: "d", Answer: ringi.Deny, By: ana, Reason: strings.Repeat("x", 8<<10+1)})
	wantErr(t, err, ringi.ErrTooLarge)
}

func TestS38_IncompleteTurnRunsNothing(t *testing.T) {
	for _, finish := range []ringi.FinishReason{ringi.FinishLength, ringi.FinishFilter, ringi.FinishError, "odd"} {
		w := newWorld(t)
		turn := calls("find", `{}`, "pay", `{}`, "find", `{"command":"rm -rf /tmp/scra`)
		turn.Finish = finish
		w.says(turn)
		res := w.run(w.engine(), ringi.RunStart{})
		wantStatus(t, res, ringi.Completed, 0)
		w.wantRan()
		for _, r := range res.Results {
			if r.Code != ringi.CodeIncompleteTurn || !strings.Contains(r.Text(), "not executed: incomplete turn") {
				t.Errorf("%s: %+v", finish, r)
			}
		}
	}
}

func TestS40_NothingThatAFunctionChangesRuns(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "apply", Effect: ringi.NonIdempotentWrite, InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}, nil,
		ringi.ToolHooks{
			Preview: func(_ context.Context, c ringi.ToolCall) (ringi.Preview, error) {
				c.Input = `{"n":666}`
				return ringi.Preview{Text: "p"}, nil
			},
			NeedsApproval: func(_ context.Context, c ringi.ToolCall) (bool, error) { c.Tool = "find"; return true, nil },
		})
	w.cfg.Approval.Func = func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
		c.Call.Input, c.Tool.Name = `{"n":666}`, "find"
		copy(c.Tool.InputSchema, `{"type":"string"`)
		if len(c.Messages) > 0 {
			c.Messages[0].Text = "forged"
		}
		return ringi.Verdict{}, nil
	}
	w.cfg.PrepareStep = func(_ context.Context, i engine.StepInfo) (engine.StepPlan, error) {
		if len(i.Messages) > 0 {
			i.Messages[0].Text = "forged"
		}
		return engine.StepPlan{Tools: []string{"apply", "pay", "not_there"}}, nil
	}
	w.cfg.Observers = []engine.Observer{{
		ToolStart: func(_ context.Context, _ ringi.RunInfo, c ringi.ToolCall) { c.Input = `{"n":666}` },
		ToolEnd:   func(_ context.Context, _ ringi.RunInfo, r ringi.ToolResult) { r.Output = "forged"; panic("x") },
		StepStart: func(context.Context, ringi.RunInfo, int) { panic("x") },
	}}
	w.says(calls("apply", `{"n":1}`, "find", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	w.decide(e, res.Pending[0].Approve(ana))
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.Completed, 0)
	w.wantRan(`apply {"n":1}`)
	if res.Results[1].Code != ringi.CodeNotOffered || res.Results[0].Output != "ok apply" {
		t.Errorf("results %+v", res.Results)
	}
	for _, req := range w.seen {
		if req.Messages[0].Text != "go" || len(req.Tools) != 2 {
			t.Errorf("the model was sent %+v", req)
		}
	}
}

func TestS46_UnattendedEndsWithAnUnknownOutcome(t *testing.T) {
	w := newWorld(t)
	died := w.dieIn("bare", "")
	w.says(calls("bare", `{}`))
	id := died(ringi.RunStart{Unattended: ringi.PerTool})
	res := w.resume(w.restart(), id)
	if res.Status != ringi.Failed || res.Reason != ringi.ReasonOutcomeUnknown || len(res.Pending) != 0 || w.count("bare") != 1 {
		t.Errorf("run %s %s, pending %d, ran %d", res.Status, res.Reason, len(res.Pending), w.count("bare"))
	}
}

func TestS47_RequestsSayWhereUntrustedTextWasRead(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "web", Effect: ringi.ReadOnly, Remote: &ringi.Remote{Server: "web", Approval: ringi.RemoteNotRequired}}, nil)
	w.says(calls("web", `{}`), calls("pay", `{}`))
	res := w.run(w.engine(), ringi.RunStart{})
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	if r := res.Pending[0]; !r.Untrusted || r.Risk != ringi.RiskHigh {
		t.Errorf("the request does not say that the run read untrusted text: %v, risk %s", r.Untrusted, r.Risk)
	}
}
