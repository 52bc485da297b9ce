package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// within lets payments in while their sum stays within a limit.
func within(limit int64) func(context.Context, ringi.Ledger, ringi.CallInfo) error {
	return func(ctx context.Context, tx ringi.Ledger, call ringi.CallInfo) error {
		var in struct {
			Amount int64 `json:"amount"`
		}
		if err := json.Unmarshal([]byte(call.Call.Input), &in); err != nil {
			return err
		}
		sum, err := tx.Sum(ctx, "payments")
		if err != nil {
			return err
		}
		if sum+in.Amount > limit {
			return fmt.Errorf("%d of %d are spent", sum, limit)
		}
		return tx.Add(ctx, "payments", in.Amount)
	}
}

// approvedPayments makes runs that each wait for one approved payment of 30.
func (w *world) approvedPayments(n int) []string {
	w.t.Helper()
	w.says(calls("pay", `{"amount":30}`))
	e := w.engine()
	var ids []string
	for range n {
		res := w.run(e, ringi.RunStart{By: ana})
		wantStatus(w.t, res, ringi.WaitingForApproval, 1)
		w.decide(e, res.Pending[0].Approve(ben))
		ids = append(ids, res.RunID)
	}
	return ids
}

// wantThree looks that three of five payments ran, and that the others were
// refused with the reason.
func wantThree(t *testing.T, e *engine.Engine, ids []string) {
	t.Helper()
	ran, refused := 0, 0
	for _, id := range ids {
		res, err := e.Status(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, res, ringi.Completed, 0)
		switch r := res.Results[0]; {
		case r.Outcome == ringi.OutcomeOK:
			ran++
		case r.Outcome == ringi.OutcomeDenied && r.Code == ringi.CodeNotAdmitted && strings.Contains(r.Error, "90 of 100 are spent"):
			refused++
		default:
			t.Errorf("result %+v", r)
		}
	}
	if ran != 3 || refused != 2 {
		t.Errorf("%d ran and %d were refused, want 3 and 2", ran, refused)
	}
}

// S-43: five approved payments of 30 and a limit of 100, in parallel on two
// workers: three run. A verdict reserves nothing, the start does.
func TestS43_FivePaymentsAndALimit(t *testing.T) {
	both := func(t *testing.T, ids []string, engines ...*engine.Engine) {
		var all sync.WaitGroup
		for i := range 2 * len(ids) { // each worker has all of them
			all.Go(func() {
				for range 1000 {
					_, err := engines[i%2].Resume(context.Background(), ids[i/2])
					if err == nil || errors.Is(err, ringi.ErrFinal) {
						return
					}
					if !errors.Is(err, ringi.ErrBusy) && !errors.Is(err, ringi.ErrConflict) && !errors.Is(err, ringi.ErrLeaseLost) {
						t.Error(err)
						return
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		all.Wait()
	}
	t.Run("memory", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.Admit = within(100)
		ids := w.approvedPayments(5)
		one, two := w.engine(), w.engine()
		both(t, ids, one, two)
		wantThree(t, one, ids)
		if n := w.count("pay"); n != 3 {
			t.Errorf("%d payments ran", n)
		}
	})
	t.Run("sqlite, opened twice", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.Admit = within(100)
		path := filepath.Join(t.TempDir(), "ringi.db")
		w.cfg.Store = openStore(t, path)
		ids := w.approvedPayments(5)
		one := w.engine()
		w.cfg.Store = openStore(t, path)
		both(t, ids, one, w.engine())
		wantThree(t, one, ids)
		if n := w.count("pay"); n != 3 {
			t.Errorf("%d payments ran", n)
		}
	})
	t.Run("sqlite, two processes", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.Admit = within(100)
		path := filepath.Join(t.TempDir(), "ringi.db")
		w.cfg.Store = openStore(t, path)
		ids := w.approvedPayments(5)
		var all sync.WaitGroup
		for range 2 {
			cmd := exec.Command(os.Args[0], "-test.run=^TestS43_Process$", "-test.count=1")
			cmd.Env = append(os.Environ(), "RINGI_S43="+path+" "+strings.Join(ids, " "))
			all.Go(func() {
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
		all.Wait()
		wantThree(t, w.engine(), ids)
	})
}

// TestS43_Process is the other process of TestS43_FivePaymentsAndALimit: alone
// it does nothing.
func TestS43_Process(t *testing.T) {
	given := strings.Fields(os.Getenv("RINGI_S43"))
	if len(given) == 0 {
		t.Skip("it is run by another test")
	}
	w := newWorld(t)
	w.cfg.Admit, w.cfg.Store = within(100), openStore(t, given[0])
	w.says(calls("pay", `{"amount":30}`))
	e := w.engine()
	for _, id := range given[1:] {
		for range 1000 {
			res, err := e.Resume(context.Background(), id)
			if err == nil && res.Status.Final() || errors.Is(err, ringi.ErrFinal) {
				break
			}
			if err != nil && !errors.Is(err, ringi.ErrBusy) && !errors.Is(err, ringi.ErrConflict) && !errors.Is(err, ringi.ErrLeaseLost) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func openStore(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// What is not let in is settled: the request is stale, the model reads why, and
// the call is not asked again. What fails, panics or hangs lets nothing in.
func TestS43_WhatIsNotAdmitted(t *testing.T) {
	for name, admit := range map[string]func(context.Context, ringi.Ledger, ringi.CallInfo) error{
		"an error":       func(context.Context, ringi.Ledger, ringi.CallInfo) error { return errors.New("not today") },
		"a panic":        func(context.Context, ringi.Ledger, ringi.CallInfo) error { panic("boom") },
		"it never comes": func(ctx context.Context, _ ringi.Ledger, _ ringi.CallInfo) error { select {} },
		"a bad name": func(ctx context.Context, tx ringi.Ledger, _ ringi.CallInfo) error {
			return tx.Add(ctx, "", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Admit = admit
			ids := w.approvedPayments(1)
			e := w.engine()
			res := w.resume(e, ids[0])
			wantStatus(t, res, ringi.Completed, 0)
			if r := res.Results[0]; r.Code != ringi.CodeNotAdmitted || r.Outcome != ringi.OutcomeDenied {
				t.Errorf("result %+v", r)
			}
			w.wantRan()
			page, err := e.Requests(t.Context(), ringi.RequestQuery{RunID: ids[0], State: []ringi.RequestState{ringi.Stale}})
			if err != nil || len(page.Requests) != 1 {
				t.Errorf("requests %+v, %v", page.Requests, err)
			}
			last := w.seen[len(w.seen)-1].Messages
			if said := fmt.Sprintf("%+v", last[len(last)-1]); name == "an error" && !strings.Contains(said, "not today") {
				t.Errorf("the model reads %s", said)
			}
			if v, err := e.Verify(t.Context(), ids[0]); err != nil || v.Broken != "" {
				t.Errorf("verify: %+v, %v", v, err)
			}
		})
	}
}

// It is asked for every start but a repeat, in a gate too, and by nobody who
// does not have it.
func TestS43_WhereItIsAsked(t *testing.T) {
	asked := func(w *world) *[]string {
		var names []string
		w.cfg.Admit = func(ctx context.Context, tx ringi.Ledger, c ringi.CallInfo) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			names = append(names, c.Call.Tool+" of "+c.Run.By.ID)
			return tx.Add(ctx, "calls", 1)
		}
		return &names
	}
	t.Run("reads and writes", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"put": {Status: ringi.NotApplicable}, "look": {Status: ringi.UserApproval}}
		names := asked(w)
		w.says(calls("find", `{}`, "put", `{}`, "look", `{}`))
		e := w.engine()
		res := w.run(e, ringi.RunStart{By: ana})
		w.decide(e, res.Pending[0].Approve(ben))
		w.resume(e, res.RunID)
		if got := strings.Join(*names, ", "); got != "put of ana, look of ana" {
			t.Errorf("asked for %s", got)
		}
	})
	t.Run("a gate", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"put": {Status: ringi.NotApplicable}}
		w.cfg.Admit = within(50)
		g, err := w.engine().Gate(t.Context(), ringi.RunInfo{By: ana})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []ringi.ResultCode{"", ringi.CodeNotAdmitted} {
			res, err := g.Do(t.Context(), ringi.ToolCall{ModelID: fmt.Sprint(i), Tool: "put", Input: `{"amount":30}`}, func(context.Context, engine.Started) (any, error) { return "ok", nil })
			if err != nil || res.Code != want {
				t.Errorf("call %d: %+v, %v", i, res, err)
			}
		}
	})
	t.Run("a repeat is the same call", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"save": {Status: ringi.NotApplicable}}
		die := true
		w.tool(ringi.Tool{Name: "save", Effect: ringi.IdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
			if die {
				die = false
				w.cfg.Store.Close()
			}
			return ringi.ToolResult{Output: "ok"}, nil
		})
		names := asked(w)
		path := filepath.Join(t.TempDir(), "ringi.db")
		open := func() {
			s, err := sqlite.Open(path, sqlite.Options{Now: w.now})
			if err != nil {
				t.Fatal(err)
			}
			w.cfg.Store = s
			t.Cleanup(func() { s.Close() })
		}
		open()
		w.says(calls("save", `{}`))
		if _, err := w.engine().Run(t.Context(), ringi.RunStart{Thread: "thr_a", By: ana, Messages: []ringi.Message{ringi.User("go")}}); err == nil {
			t.Fatal("the process did not die")
		}
		open()
		e := w.restart()
		runs, err := e.Runs(t.Context(), ringi.RunQuery{})
		if err != nil || len(runs) != 1 {
			t.Fatal(runs, err)
		}
		wantStatus(t, w.resume(e, runs[0].ID), ringi.Completed, 0)
		w.wantRan("save {}", "save {}")
		if len(*names) != 1 {
			t.Errorf("asked for %q", *names)
		}
	})
	t.Run("a process without it goes on with nothing", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.Admit = within(100)
		ids := w.approvedPayments(1)
		w.cfg.Admit = nil
		_, err := w.engine().Resume(t.Context(), ids[0])
		wantErr(t, err, ringi.ErrPolicyMissing)
		w.wantRan()
	})
	t.Run("a store without a ledger", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.Admit, w.cfg.Store = within(100), struct{ ringi.Store }{w.store}
		if _, err := engine.New(w.cfg); err == nil || !strings.Contains(err.Error(), "ledger") {
			t.Errorf("made: %v", err)
		}
	})
	t.Run("a child asks its parent's", func(t *testing.T) {
		w := newWorld(t)
		w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"put": {Status: ringi.NotApplicable}}
		w.says(calls("put", `{"amount":30}`))
		inner := w.engine() // without limits of its own
		var got *ringi.Result
		w.tool(ringi.Tool{Name: "agent", Effect: ringi.ReadOnly}, func(ctx context.Context, _ ringi.ToolCall) (res ringi.ToolResult, err error) {
			got, err = inner.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("inner")}})
			return res, err
		})
		w.cfg.Admit = within(10)
		w.says(calls("agent", `{}`))
		w.run(w.engine(), ringi.RunStart{By: ana})
		if got == nil || got.Results[0].Code != ringi.CodeNotAdmitted {
			t.Errorf("the child's result is %+v", got)
		}
	})
}
