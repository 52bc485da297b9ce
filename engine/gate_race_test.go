package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// Several at one gate: in one process, in two engines over one file, and in
// two processes.

// Eight do one approved call at once: it runs once, and all read its result.
func TestGate_ManyDoOneCall(t *testing.T) {
	stored(t, func(t *testing.T, w *world, reopen func() ringi.Store) {
		for _, engines := range []int{1, 2} {
			for round := range 5 {
				l := newLoop(t)
				l.cfg.Store = w.cfg.Store
				all := []*engine.Engine{l.engine()}
				if engines == 2 {
					l.cfg.Store = reopen()
					all = append(all, l.engine())
				}
				thread := ringi.RunInfo{Thread: fmt.Sprint("thr ", engines, " ", round), By: ana}
				var gates []*engine.Gate
				for _, e := range all {
					g, err := e.Gate(t.Context(), thread)
					must(t, err)
					gates = append(gates, g)
				}
				r := l.waits(gates[0], tc("pay", `{"n":1}`))
				l.decide(all[len(all)-1], r.Approve(ben))
				var wg sync.WaitGroup
				for i := range 8 {
					wg.Go(func() {
						res, err := gates[i%engines].Do(t.Context(), known(r.Call.ID), func(ctx context.Context, s engine.Started) (any, error) {
							l.saw(s)
							time.Sleep(2 * time.Millisecond)
							return "paid", nil
						})
						if err != nil || res.Output != "paid" || res.CallID != r.Call.ID {
							t.Errorf("%d: %+v %v", i, res, err)
						}
					})
				}
				wg.Wait()
				l.wantRan(`pay {"n":1}`)
				must(t, gates[0].Close(t.Context()))
				l.intact(all[0], gates[0].Run().ID)
			}
		}
	})
}

// Eight start one call at once: one may, and the others are told that it is in
// flight.
func TestGate_ManyStartOneCall(t *testing.T) {
	stored(t, func(t *testing.T, w *world, reopen func() ringi.Store) {
		l := newLoop(t)
		l.cfg.Store = w.cfg.Store
		a := l.engine()
		l.cfg.Store = reopen()
		b := l.engine()
		gates := []*engine.Gate{l.gate(a), l.gate(b)}
		for _, tool := range []string{"note", "log", "pay"} {
			for range 10 {
				j := l.judge(gates[0], tc(tool, `{}`))
				if j.Request != nil {
					l.decide(b, j.Request.Approve(ben))
				}
				var won atomic.Int64
				var s engine.Started
				var by *engine.Gate
				var wg sync.WaitGroup
				for i := range 8 {
					wg.Go(func() {
						got, err := gates[i%2].Start(t.Context(), j.Call.ID)
						switch {
						case err == nil:
							won.Add(1)
							s, by = got, gates[i%2]
						case !errors.Is(err, ringi.ErrBusy):
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if won.Load() != 1 {
					t.Fatalf("%s: started %d times", tool, won.Load())
				}
				must(t, by.Finish(t.Context(), s, ringi.ToolResult{Output: "ok"}))
			}
		}
		l.intact(a, gates[0].Run().ID)
	})
}

// Different calls of one gate run side by side.
func TestGate_CallsRunSideBySide(t *testing.T) {
	stored(t, func(t *testing.T, w *world, reopen func() ringi.Store) {
		l := newLoop(t)
		l.cfg.Store = w.cfg.Store
		l.cfg.Limits.ToolCalls = -1
		a := l.engine()
		l.cfg.Store = reopen()
		gates := []*engine.Gate{l.gate(a), l.gate(l.engine())}
		var in sync.WaitGroup
		in.Add(6) // all six are in flight at once, or this never ends
		var wg sync.WaitGroup
		for i := range 6 {
			tool := []string{"find", "note", "log"}[i%3]
			wg.Go(func() {
				input := fmt.Sprintf(`{"n":%d}`, i)
				res, err := gates[i%2].Do(t.Context(), tc(tool, input), func(context.Context, engine.Started) (any, error) {
					in.Done()
					in.Wait()
					return input, nil
				})
				if err != nil || res.Output != input {
					t.Errorf("%+v %v", res, err)
				}
			})
		}
		wg.Wait()
		// And many more of every kind, from everywhere.
		for i := range 8 {
			wg.Go(func() {
				for n := range 10 {
					input := fmt.Sprintf(`{"n":%d}`, 100*i+n)
					res, err := gates[i%2].Do(t.Context(), tc([]string{"find", "note", "log"}[n%3], input), func(_ context.Context, s engine.Started) (any, error) {
						return s.Input(), nil
					})
					if err != nil || res.Output != input {
						t.Errorf("%+v %v", res, err)
					}
				}
			})
		}
		wg.Wait()
		res, err := a.Resume(t.Context(), gates[0].Run().ID)
		if err != nil || res.ToolCalls != 86 || len(res.Results) != 86 {
			t.Errorf("%d calls, %d results, %v", res.ToolCalls, len(res.Results), err)
		}
		l.intact(a, gates[0].Run().ID)
	})
}

// A decision comes while a sibling runs: nothing of either is lost.
func TestGate_ADecisionWhileASiblingRuns(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	l := newLoop(t)
	l.cfg.Limits.ToolCalls = -1
	l.cfg.Limits.OpenRequests = -1
	l.cfg.ThreadRequests = -1
	l.cfg.Limits.Denied = -1
	l.cfg.Limits.SameDenied = -1
	e, other := l.engine(), l.engine()
	var g *engine.Gate
	for i := range rounds {
		if i%50 == 0 { // a run of many calls is read as a whole at every conflict
			var err error
			g, err = e.Gate(t.Context(), ringi.RunInfo{Thread: fmt.Sprint("thr", i), By: ana})
			must(t, err)
		}
		r := l.waits(g, tc("pay", `{"n":1}`))
		var wg sync.WaitGroup
		wg.Go(func() {
			res, err := g.Do(t.Context(), tc("note", `{"n":2}`), func(context.Context, engine.Started) (any, error) { return "noted", nil })
			if err != nil || res.Output != "noted" {
				t.Errorf("round %d: the sibling: %+v %v", i, res, err)
			}
		})
		yes := i%3 != 0
		wg.Go(func() {
			d := r.Approve(ben)
			if !yes {
				d = r.Deny(ben, "no")
			}
			if _, err := other.Decide(t.Context(), d); err != nil {
				t.Errorf("round %d: %v", i, err)
			}
		})
		wg.Go(func() {
			_, err := g.Judge(t.Context(), tc("find", `{}`))
			if err != nil {
				t.Errorf("round %d: %v", i, err)
			}
		})
		wg.Wait()
		res, err := g.Do(t.Context(), known(r.Call.ID), func(context.Context, engine.Started) (any, error) { return "paid", nil })
		if err != nil || yes && res.Output != "paid" || !yes && res.Code != ringi.CodeDeniedByPerson {
			t.Errorf("round %d: %+v %v", i, res, err)
		}
	}
	l.intact(e, g.Run().ID)
}

// Many open the gate of one new thread at once: it is one run.
func TestGate_OpenedAtOnce(t *testing.T) {
	stored(t, func(t *testing.T, w *world, reopen func() ringi.Store) {
		l := newLoop(t)
		l.cfg.Store = w.cfg.Store
		engines := []*engine.Engine{l.engine()}
		l.cfg.Store = reopen()
		engines = append(engines, l.engine())
		for round := range 10 {
			var ids sync.Map
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					g, err := engines[i%2].Gate(t.Context(), ringi.RunInfo{Thread: fmt.Sprint("thr", round), By: ana})
					if err != nil {
						t.Error(err)
						return
					}
					ids.Store(g.Run().ID, true)
					if _, err := g.Do(t.Context(), tc("note", `{}`), l.acts); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			n := 0
			ids.Range(func(any, any) bool { n++; return true })
			if n != 1 {
				t.Errorf("%d runs", n)
			}
		}
		if n := l.count("note"); n != 80 {
			t.Errorf("%d notes", n)
		}
	})
}

// Everything at once: doing, deciding, taking back, editing, cancelling,
// closing, expiring and resuming. No approved call runs twice, nothing runs
// that nobody allowed, and the log stays whole.
func TestGate_EverythingAtOnce(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	stored(t, func(t *testing.T, w *world, reopen func() ringi.Store) {
		store, second := w.cfg.Store, reopen()
		for round := range rounds {
			l := newLoop(t)
			l.cfg.Store = store
			a := l.engine()
			l.cfg.Store = second
			b := l.engine()
			info := ringi.RunInfo{Thread: fmt.Sprint("thr", round), By: ana}
			ga, err := a.Gate(t.Context(), info)
			must(t, err)
			gb, err := b.Gate(t.Context(), info)
			must(t, err)
			r := l.waits(ga, tc("pay", `{"n":1}`))
			free := l.judge(gb, tc("note", `{"n":5}`)).Call.ID
			id := ga.Run().ID
			ctx := context.Background()
			var approved atomic.Int64
			say := func(e *engine.Engine, d ringi.Decision) {
				if set, err := e.Decide(ctx, d); err == nil {
					if d.Answer == ringi.Approve {
						approved.Add(1)
					} else if d.Answer == ringi.Edit {
						if _, err := e.Decide(ctx, set.Request.Approve(ben)); err == nil {
							approved.Add(1)
						}
					}
				}
			}
			var wg sync.WaitGroup
			for _, act := range []func(){
				func() { say(a, r.Approve(ben)) },
				func() { say(b, r.Deny(ben, "")) },
				func() { say(b, r.Edit(ben, json.RawMessage(`{"n":2}`))) },
				func() { a.TakeBack(ctx, r.ID, ben, "") },
				func() { ga.Do(ctx, known(r.Call.ID), l.acts) },
				func() { gb.Do(ctx, known(r.Call.ID), l.acts) },
				func() { ga.Do(ctx, known(free), l.acts) },
				func() { gb.Do(ctx, known(free), l.acts) },
				func() { gb.Do(ctx, tc("find", `{}`), l.acts) },
				func() { a.Resume(ctx, id) },
				func() { b.Expire(ctx, 10) },
				func() {
					switch round % 4 {
					case 0:
						b.Cancel(ctx, id, ben, "stop", false)
					case 1:
						a.Cancel(ctx, id, ben, "stop", true)
					case 2:
						gb.Close(ctx)
					}
				},
			} {
				wg.Go(act)
			}
			wg.Wait()
			if n := l.count("pay"); n > 1 || n > int(approved.Load()) {
				t.Errorf("round %d: pay ran %d times, approved %d times", round, n, approved.Load())
			}
			if n := l.count("note"); n > 1 {
				t.Errorf("round %d: note ran %d times", round, n)
			}
			l.intact(a, id)
			a.Cancel(ctx, id, ben, "the end", true)
			if row := l.row(id); !row.Status.Final() {
				t.Errorf("round %d: %s", round, row.Status)
			}
			l.intact(b, id)
		}
	})
}

// Close in one process while another starts a call: either the close is
// refused, or the call is; a result is never lost between them.
func TestGate_CloseAgainstStart(t *testing.T) {
	stored(t, func(t *testing.T, w *world, reopen func() ringi.Store) {
		store, second := w.cfg.Store, reopen()
		for round := range 40 {
			l := newLoop(t)
			l.cfg.Store = store
			a := l.engine()
			l.cfg.Store = second
			b := l.engine()
			info := ringi.RunInfo{Thread: fmt.Sprint("thr", round), By: ana}
			ga, err := a.Gate(t.Context(), info)
			must(t, err)
			gb, err := b.Gate(t.Context(), info)
			must(t, err)
			id := l.judge(ga, tc("note", `{}`)).Call.ID
			l.judge(gb, known(id))
			var wg sync.WaitGroup
			var closed, done error
			var res ringi.ToolResult
			wg.Go(func() { closed = ga.Close(t.Context()) })
			wg.Go(func() { res, done = gb.Do(t.Context(), known(id), l.acts) })
			wg.Wait()
			if l.count("note") == 1 && (done != nil || res.Outcome != ringi.OutcomeOK) {
				t.Errorf("round %d: it ran, and its result is %s (%v); close: %v", round, res.Outcome, done, closed)
			}
			l.intact(a, ga.Run().ID)
		}
	})
}

// A process that dies is told dead by time alone, and two processes share one
// gate: TestMain's child is this test under another name.
func TestGate_TwoProcesses(t *testing.T) {
	if path := os.Getenv("RINGI_GATE_CHILD"); path != "" {
		gateChild(t, path)
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "ringi.db")
	l := newLoop(t)
	s, err := sqlite.Open(path, sqlite.Options{})
	must(t, err)
	defer s.Close()
	l.cfg.Store = s
	e := l.engine()
	for round := range 3 {
		g, err := e.Gate(t.Context(), ringi.RunInfo{Thread: fmt.Sprint("thr", round), By: ana})
		must(t, err)
		var ids []string
		for i := range 4 {
			r := l.waits(g, tc("pay", fmt.Sprintf(`{"n":%d}`, i)))
			l.decide(e, r.Approve(ben))
			ids = append(ids, r.Call.ID)
		}
		effects := filepath.Join(dir, fmt.Sprint("effects", round))
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				cmd := exec.Command(os.Args[0], "-test.run=^TestGate_TwoProcesses$")
				cmd.Env = append(os.Environ(), "RINGI_GATE_CHILD="+path, "RINGI_GATE_RUN="+g.Run().ID, "RINGI_GATE_CALLS="+strings.Join(ids, ","), "RINGI_GATE_EFFECTS="+effects)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
		wg.Wait()
		if got := lines(t, effects); len(got) != 4 {
			t.Errorf("ran %q", got)
		}
		for _, id := range ids {
			if res := l.do(g, known(id)); res.Output != "paid" {
				t.Errorf("%+v", res)
			}
		}
		l.wantRan()
		must(t, g.Close(t.Context()))
		l.intact(e, g.Run().ID)
	}
}

// gateChild does every call, four times at once, as one of two processes.
func gateChild(t *testing.T, path string) {
	l := newLoop(t)
	s, err := sqlite.Open(path, sqlite.Options{})
	must(t, err)
	defer s.Close()
	l.cfg.Store = s
	g, err := l.engine().Gate(t.Context(), ringi.RunInfo{ID: os.Getenv("RINGI_GATE_RUN")})
	must(t, err)
	var wg sync.WaitGroup
	for _, id := range strings.Split(os.Getenv("RINGI_GATE_CALLS"), ",") {
		for range 4 {
			wg.Go(func() {
				res, err := g.Do(t.Context(), known(id), func(context.Context, engine.Started) (any, error) {
					f, err := os.OpenFile(os.Getenv("RINGI_GATE_EFFECTS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
					if err != nil {
						return nil, err
					}
					fmt.Fprintln(f, id)
					time.Sleep(time.Millisecond)
					return "paid", f.Close()
				})
				if err != nil || res.Output != "paid" {
					t.Errorf("%+v %v", res, err)
				}
			})
		}
	}
	wg.Wait()
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	var out []string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		out = append(out, sc.Text())
	}
	return out
}

// Calls inside a call, and everything a loop's function may do at its gate.
func TestGate_FromInsideACall(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	res, err := g.Do(t.Context(), tc("note", `{"n":1}`), func(ctx context.Context, s engine.Started) (any, error) {
		if j, err := g.Judge(ctx, known(s.Call().ID)); err != nil || !j.InFlight {
			t.Errorf("%+v %v", j, err)
		}
		if _, err := g.Start(ctx, s.Call().ID); !errors.Is(err, ringi.ErrBusy) {
			t.Errorf("%v", err)
		}
		wantErr(t, g.Close(ctx), ringi.ErrBusy)
		l.do(g, tc("find", `{}`))
		l.waits(g, tc("pay", `{}`))
		if again, err := e.Gate(ctx, ringi.RunInfo{Thread: "thr"}); err != nil || again != g {
			t.Errorf("another gate: %v", err)
		}
		if err := g.Finish(ctx, s, ringi.ToolResult{Output: "by hand"}); err != nil {
			t.Log(err)
		}
		return "done", nil
	})
	if err != nil || res.Output != "by hand" && res.Output != "done" {
		t.Errorf("%+v %v", res, err)
	}
	l.intact(e, g.Run().ID)
}
