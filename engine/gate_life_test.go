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
	"testing/synctest"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/store/memory"
)

// The life of a gate: restarts, crashes, time, and everything that comes from
// outside while a call is in flight.

// gateLoop is a foreign loop over crashes: it keeps the ids that it was told,
// and asks for what it has no result of.
type gateLoop struct {
	t     *testing.T
	c     *ringitest.Crash
	clock ringitest.Clock
	run   string
	ids   []string
	final []ringi.ToolResult
	react ringitest.Reaction
	apart bool // Judge, Start and Finish in the place of Do
	act   ringi.ToolHandler
}

func newGateLoop(t *testing.T, c *ringitest.Crash, change func(*engine.Config)) *gateLoop {
	l := &gateLoop{t: t, c: c}
	reg := ringi.NewRegistry()
	for _, tool := range []ringi.Tool{
		{Name: "find", Effect: ringi.ReadOnly}, {Name: "look", Effect: ringi.ReadOnly, RequiresApproval: true}, {Name: "note"},
		{Name: "put", Effect: ringi.IdempotentWrite}, {Name: "log", Effect: ringi.IdempotentWrite},
		{Name: "pay", Effect: ringi.NonIdempotentWrite, AllowEdit: true}, {Name: "mail", Effect: ringi.NonIdempotentWrite, AllowRespond: true},
		{Name: "sign", Effect: ringi.NonIdempotentWrite, InputRequired: json.RawMessage(`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}`),
			InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"code":{"type":"string"}},"required":["n","code"],"additionalProperties":false}`)},
	} {
		tool.External = true
		must(t, reg.AddExternal(tool))
	}
	l.act = c.Effects.Handler(func(_ context.Context, call ringi.ToolCall) (ringi.ToolResult, error) {
		return ringi.ToolResult{Output: "ok " + call.Tool}, nil
	})
	cfg := engine.Config{Registry: reg, Keyring: shopKeys(t), Now: l.clock.Now,
		Approval: ringi.Approval{Tools: map[string]ringi.ToolApproval{"log": {Status: ringi.Approved}}}}
	if change != nil {
		change(&cfg)
	}
	l.react = person(&c.Effects)
	c.Engine(cfg)
	return l
}

// live does calls one after another, each over whatever happens.
func (l *gateLoop) live(calls ...ringi.ToolCall) {
	l.t.Helper()
	l.ids, l.final = make([]string, len(calls)), make([]ringi.ToolResult, len(calls))
	for i, call := range calls {
		l.over(func(ctx context.Context, e *engine.Engine, g *engine.Gate) error {
			if l.ids[i] == "" {
				j, err := g.Judge(ctx, call)
				if err != nil {
					return err
				}
				l.ids[i] = j.Call.ID
			}
			return nil
		})
		l.over(func(ctx context.Context, e *engine.Engine, g *engine.Gate) error { return l.bring(ctx, e, g, i) })
	}
	l.over(func(ctx context.Context, e *engine.Engine, g *engine.Gate) error {
		if err := g.Close(ctx); err != nil {
			return err
		}
		v, err := e.Verify(ctx, l.run)
		if err != nil || v.Broken != "" || !v.Signed {
			l.t.Errorf("%+v %v", v, err)
		}
		return err
	})
}

// over does one thing, again where the process died in it. What a dead process
// had started is given up by its time.
func (l *gateLoop) over(f func(ctx context.Context, e *engine.Engine, g *engine.Gate) error) {
	l.t.Helper()
	tries := 0
	err := l.c.Do(func(ctx context.Context, e *engine.Engine) error {
		if tries++; tries > 1 {
			l.clock.Advance(time.Minute)
		}
		g, err := e.Gate(ctx, ringi.RunInfo{ID: l.run, Thread: "thr", By: ringitest.Ben})
		if errors.Is(err, ringi.ErrFinal) {
			return nil // closed before the process died
		}
		if err != nil {
			return err
		}
		l.run = g.Run().ID
		return f(ctx, e, g)
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// bring brings a call to its result, with the answers of people.
func (l *gateLoop) bring(ctx context.Context, e *engine.Engine, g *engine.Gate, i int) error {
	for range 20 {
		res, err := l.once(ctx, g, l.ids[i])
		if err == nil {
			l.final[i] = res
			return nil
		}
		w, ok := errors.AsType[*ringi.WaitingError](err)
		if !ok {
			return err
		}
		d, err := l.react(w.Request)
		if err == nil {
			_, err = e.Decide(ctx, d)
		}
		if _, first := errors.AsType[*ringi.DecidedError](err); err != nil && !first {
			return err
		}
	}
	return errors.New("it never came to a result")
}

func (l *gateLoop) once(ctx context.Context, g *engine.Gate, id string) (ringi.ToolResult, error) {
	if !l.apart {
		return g.Do(ctx, known(id), func(ctx context.Context, s engine.Started) (any, error) { return l.act(ctx, s.Call()) })
	}
	s, err := g.Start(ctx, id)
	if has, ok := errors.AsType[*ringi.ResultError](err); ok {
		return has.Result, nil
	}
	if err != nil {
		return ringi.ToolResult{}, err
	}
	out, err := l.act(ctx, s.Call())
	l.c.Effects.Count("key " + s.Key())
	if err != nil {
		return out, err // the process is dead: nobody finishes
	}
	if err := g.Finish(ctx, s, out); err != nil {
		return out, err
	}
	j, err := g.Judge(ctx, known(id))
	if err != nil {
		return out, err
	}
	return *j.Result, nil
}

var gateCalls = []ringi.ToolCall{tc("find", `{"n":1}`), tc("log", `{"n":2}`), tc("put", `{"n":3}`), tc("pay", `{"n":4}`), tc("look", `{"n":8}`),
	tc("mail", `{"n":6}`), tc("sign", `{"n":7}`), tc("pay", `{"n":9}`), tc("pay", `{"n":`), tc("none", `{}`)}

func (l *gateLoop) check() {
	l.t.Helper()
	ran := map[string]int{}
	for _, r := range l.c.Effects.Calls() {
		ran[r.Tool+" "+r.Input]++
	}
	for call, n := range ran {
		tool, _, _ := strings.Cut(call, " ")
		if once := tool == "pay" || tool == "note" || tool == "sign" || tool == "mail"; once && n > 1 {
			l.t.Errorf("%s ran %d times", call, n)
		}
	}
	if ran[`pay {"n":4}`] > 0 || ran[`mail {"n":6}`] > 0 {
		l.t.Errorf("ran %v", ran)
	}
	for i, r := range l.final {
		switch {
		case r.CallID != l.ids[i] || r.Tool != gateCalls[i].Tool:
			l.t.Errorf("call %d: %+v", i, r)
		case i == 5 && r.Code == ringi.CodeDeniedByPerson, i == 8 && r.Code == ringi.CodeInvalidInput, i == 9 && r.Code == ringi.CodeUnknownTool:
		case r.Code == ringi.CodeDidNotRun: // a person's word, and true
		case r.Output == "ok "+r.Tool:
		default:
			l.t.Errorf("call %d: %+v", i, r)
		}
	}
}

// The process dies at every point, by Do and by the three apart: no write runs
// twice, each call comes to its result, and the run is whole.
func TestGate_F30_ALoopAtEveryCrash(t *testing.T) {
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprint("apart_", apart), func(t *testing.T) {
			ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
				l := newGateLoop(t, c, nil)
				l.apart = apart
				l.live(gateCalls...)
				l.check()
			})
		})
	}
}

func TestGate_F30_ALoopWithACallbackAtEveryCrash(t *testing.T) {
	ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
		l := newGateLoop(t, c, func(cfg *engine.Config) {
			cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) { return person(&c.Effects)(r) }
		})
		l.live(gateCalls...)
		l.check()
	})
}

func TestGate_F30_ACrashInTheRecovery(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred runs")
	}
	ringitest.CrashesTwice(t, func(t *testing.T, c *ringitest.Crash) {
		l := newGateLoop(t, c, nil)
		l.live(tc("log", `{"n":2}`), tc("pay", `{"n":9}`))
		c.Effects.WantOnce(t, "pay")
		for i, r := range l.final {
			if r.CallID != l.ids[i] || r.Output != "ok "+r.Tool && r.Code != ringi.CodeDidNotRun {
				t.Errorf("%+v", r)
			}
		}
	})
}

// The store fails while the process lives on. A loop that tries again comes to
// every result, and no write runs twice.
func TestGate_F30_ALoopOverAFailingStore(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed_", seed), func(t *testing.T) {
			f := &ringitest.Faults{Rate: 0.1 + 0.1*float64(seed%3), Seed: seed, Both: true, Reads: seed%2 == 0}
			loopOverFaults(t, f)
		})
	}
}

func loopOverFaults(t *testing.T, f *ringitest.Faults) {
	l := newLoop(t)
	var ran ringitest.Effects
	act := ran.Handler(func(_ context.Context, call ringi.ToolCall) (ringi.ToolResult, error) {
		return ringi.ToolResult{Output: "ok " + call.Tool}, nil
	})
	l.cfg.Store = f.Store(l.store)
	e := l.engine()
	var g *engine.Gate
	var errs []error
	var err error
	for range 100 {
		if g, err = e.Gate(t.Context(), ringi.RunInfo{Thread: "thr", By: ana}); err == nil {
			break
		}
		errs = append(errs, err)
	}
	for _, call := range []ringi.ToolCall{tc("find", `{"n":1}`), tc("note", `{"n":2}`), tc("pay", `{"n":3}`), tc("log", `{"n":4}`), tc("put", `{"n":5}`), tc("pay", `{"n":6}`)} {
		id := ""
		var res ringi.ToolResult
		for try := 0; ; try++ {
			if try == 200 {
				t.Fatalf("%s never came to a result: %v", call.Tool, errs[len(errs)-1])
			}
			if id == "" {
				j, err := g.Judge(t.Context(), call)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				id = j.Call.ID
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			res, err = g.Do(ctx, known(id), func(ctx context.Context, s engine.Started) (any, error) { return act(ctx, s.Call()) })
			cancel()
			if err == nil {
				break
			}
			if errors.Is(err, context.DeadlineExceeded) {
				l.advance(time.Minute) // in flight, and nobody has it
			}
			errs = append(errs, err)
			if w, ok := errors.AsType[*ringi.WaitingError](err); ok {
				d, _ := ringitest.Witness(ben, &ran)(w.Request)
				if _, err := e.Decide(t.Context(), d); err != nil {
					errs = append(errs, err)
				}
			}
		}
		if res.Output != "ok "+call.Tool && res.Code != ringi.CodeDidNotRun {
			t.Errorf("%+v", res)
		}
	}
	ran.WantOnce(t, "note", "pay")
	f.Stop()
	must(t, g.Close(t.Context()))
	l.intact(e, g.Run().ID)
	if t.Failed() {
		t.Log(f.Count(), errs)
	}
}

// What may be repeated is repeated with the same key after a crash; what may
// not is asked about. Policy is asked again before a repeat.
func TestGate_StartedAndNotFinished(t *testing.T) {
	for _, c := range []struct {
		tool     string
		approved bool
		repeats  bool
	}{{"find", false, true}, {"log", false, true}, {"put", true, true}, {"note", false, false}, {"pay", true, false}} {
		for _, how := range []string{"another process", "the same process", "another process looks"} {
			t.Run(c.tool+" "+how, func(t *testing.T) {
				overStores(t, func(t *testing.T, l *loop) {
					l.t = t
					e := l.engine()
					g := l.gate(e)
					j := l.judge(g, tc(c.tool, `{}`))
					if c.approved {
						l.decide(e, j.Request.Approve(ben))
					}
					s := l.start(g, j.Call.ID)
					other := g
					if how != "the same process" {
						other = l.gate(l.engine())
						if j := l.judge(other, known(s.Call().ID)); !j.InFlight && c.tool != "find" {
							t.Errorf("another process sees %+v", j)
						}
					}
					l.advance(31 * time.Second)
					if c.repeats {
						again := l.start(other, j.Call.ID)
						want := 2
						if c.tool == "find" {
							want = 1 // a read has no start on record
						}
						if again.Key() != s.Key() || again.Attempt() != want || string(again.Input()) != string(s.Input()) {
							t.Errorf("%q attempt %d, %q", again.Key(), again.Attempt(), s.Key())
						}
						if c.tool != "find" {
							if err := g.Finish(t.Context(), s, ringi.ToolResult{Output: "late"}); err == nil {
								t.Error("the first start was finished while the second runs")
							}
						}
						must(t, other.Finish(t.Context(), again, ringi.ToolResult{Output: "done"}))
						if res := l.judge(g, known(j.Call.ID)).Result; res.Output != "done" {
							t.Errorf("%+v", res)
						}
						return
					}
					_, err := other.Start(t.Context(), j.Call.ID)
					r := waitsFor(t, err)
					if r.Kind != ringi.KindOutcome || r.Why == "" {
						t.Errorf("%+v", r)
					}
					if row := l.row(r.RunID); row.Status != ringi.WaitingForOutcome {
						t.Errorf("%s", row.Status)
					}
					// It comes late: that is evidence for whoever settles it.
					lw := waitsFor(t, g.Finish(t.Context(), s, ringi.ToolResult{Output: "paid 42"}))
					if lw.ID != r.ID || lw.Evidence != "paid 42" {
						t.Errorf("%+v", lw)
					}
				})
			})
		}
	}
}

// The three answers to an unknown outcome.
func TestGate_OutcomeAnswers(t *testing.T) {
	for _, tool := range []string{"note", "pay"} {
		for _, answer := range []ringi.Answer{ringi.Ran, ringi.DidNotRun, ringi.RunAgain} {
			t.Run(tool+" "+string(answer), func(t *testing.T) {
				overStores(t, func(t *testing.T, l *loop) {
					l.t = t
					e := l.engine()
					g := l.gate(e)
					j := l.judge(g, tc(tool, `{"n":1}`))
					if j.Request != nil {
						l.decide(e, j.Request.Approve(ben))
					}
					s := l.start(g, j.Call.ID)
					e = l.restart()
					g = l.gate(e)
					o := l.waits(g, known(j.Call.ID))
					if o.Kind != ringi.KindOutcome || o.Call.ID != j.Call.ID || o.Allows(ringi.Approve) {
						t.Fatalf("%+v", o)
					}
					l.do(g, tc("find", `{}`)) // others go on
					switch answer {
					case ringi.Ran:
						l.decide(e, o.Ran(ben, "by word"))
						if res := l.do(g, known(j.Call.ID)); res.Output != "by word" || res.Origin != ringi.OriginPerson || !strings.Contains(res.Text(), "a person says that it ran") {
							t.Errorf("%+v", res)
						}
					case ringi.DidNotRun:
						l.decide(e, o.DidNotRun(ben))
						if res := l.do(g, known(j.Call.ID)); res.Code != ringi.CodeDidNotRun || res.Outcome != ringi.OutcomeNotExecuted {
							t.Errorf("%+v", res)
						}
					case ringi.RunAgain:
						l.decide(e, o.RunAgain(ben))
						r := l.waits(g, known(j.Call.ID)) // a new request, whatever policy says
						if r.Kind != ringi.KindApproval || r.ID == o.ID {
							t.Errorf("%+v", r)
						}
						l.wantRan("find {}")
						l.decide(e, r.Approve(ben))
						l.do(g, known(j.Call.ID))
						if again := l.started[len(l.started)-1]; again.Key() != s.Key() {
							t.Errorf("keys %q, %q", again.Key(), s.Key())
						}
						l.wantRan("find {}", tool+` {"n":1}`)
					}
					must(t, g.Close(t.Context()))
					l.intact(e, g.Run().ID)
				})
			})
		}
	}
}

// A tool that can be asked about its own past settles it without a person.
func TestGate_Lookup(t *testing.T) {
	for _, found := range []bool{true, false} {
		l := newLoop(t)
		var key string
		l.tool(ringi.Tool{Name: "book", Effect: ringi.NonIdempotentWrite}, nil, ringi.ToolHooks{
			Lookup: func(_ context.Context, k string) (ringi.ToolResult, bool, error) {
				key = k
				return ringi.ToolResult{Output: "booked"}, found, nil
			}})
		e := l.engine()
		g := l.gate(e)
		r := l.waits(g, tc("book", `{}`))
		l.decide(e, r.Approve(ben))
		s := l.start(g, r.Call.ID)
		g = l.gate(l.restart())
		res, err := g.Do(t.Context(), known(r.Call.ID), l.acts)
		if key != s.Key() {
			t.Errorf("asked for %q, started with %q", key, s.Key())
		}
		if found && (err != nil || res.Output != "booked") {
			t.Errorf("%+v %v", res, err)
		} else if !found && waitsFor(t, err).Kind != ringi.KindOutcome {
			t.Errorf("%v", err)
		}
		l.wantRan()
	}
}

// Do overruns its time: a write is unknown, an idempotent one may be called
// again, and what comes late is evidence.
func TestGate_DoOverrun(t *testing.T) {
	for _, tool := range []string{"note", "log"} {
		t.Run(tool, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLoop(t)
				l.cfg.Store = memory.New(memory.Options{})
				e := l.engine()
				g, err := e.Gate(t.Context(), ringi.RunInfo{Thread: "thr", By: ana})
				must(t, err)
				release := make(chan bool)
				begun := time.Now()
				res, err := g.Do(t.Context(), tc(tool, `{}`), func(ctx context.Context, _ engine.Started) (any, error) {
					<-release
					return "late answer", nil
				})
				if took := time.Since(begun); took != 30*time.Second {
					t.Errorf("took %s", took)
				}
				if tool == "log" {
					if err != nil || res.Outcome != ringi.OutcomeError || !strings.Contains(res.Error, "may be called again") {
						t.Errorf("%+v %v", res, err)
					}
					close(release)
					synctest.Wait()
					return
				}
				r := waitsFor(t, err)
				close(release)
				synctest.Wait()
				now, err := e.Request(t.Context(), r.ID)
				if err != nil || now.Kind != ringi.KindOutcome || now.Evidence != "late answer" {
					t.Errorf("%+v %v", now, err)
				}
			})
		})
	}
}

// A function that panics: a write's outcome is unknown, a read has failed.
func TestGate_APanicInTheLoopsFunction(t *testing.T) {
	for tool, kind := range map[string]ringi.RequestKind{"find": "", "log": "", "note": ringi.KindOutcome} {
		l := newLoop(t)
		g := l.gate(l.engine())
		res, err := g.Do(t.Context(), tc(tool, `{}`), func(context.Context, engine.Started) (any, error) { panic("boom") })
		if kind == "" {
			if err != nil || res.Outcome != ringi.OutcomeError || strings.Contains(res.Text(), "boom") {
				t.Errorf("%s: %+v %v", tool, res, err)
			}
		} else if r := waitsFor(t, err); r.Kind != kind {
			t.Errorf("%s: %+v", tool, r)
		}
		l.do(g, tc("find", `{}`)) // the gate lives on
	}
}

// Idle: the run closes by itself, and never where it is told not to.
func TestGate_Idle(t *testing.T) {
	for _, c := range []struct {
		idle  time.Duration
		after time.Duration
		ends  bool
	}{{0, 72 * time.Hour, true}, {0, 71 * time.Hour, false}, {time.Hour, time.Hour, true}, {-1, 1000 * time.Hour, false}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			overStores(t, func(t *testing.T, l *loop) {
				l.t = t
				l.cfg.GateIdle = c.idle
				e := l.engine()
				g := l.gate(e)
				j := l.judge(g, tc("note", `{}`)) // judged, and never started
				l.advance(c.after)
				if n := l.runnable(); (n == 1) != c.ends {
					t.Errorf("%d runnable", n)
				}
				res, err := l.engine().Resume(t.Context(), g.Run().ID)
				if err != nil || res.Status.Final() != c.ends {
					t.Fatalf("%+v %v", res, err)
				}
				if !c.ends {
					l.do(g, known(j.Call.ID))
					return
				}
				if res.Status != ringi.Completed || len(res.Results) != 1 || res.Results[0].Outcome != ringi.OutcomeNotExecuted {
					t.Errorf("%+v", res)
				}
				if n := l.runnable(); n != 0 {
					t.Errorf("%d runnable", n)
				}
				if _, err := g.Start(t.Context(), j.Call.ID); err == nil {
					t.Error("started after the end")
				}
				l.wantRan()
				l.intact(e, g.Run().ID)
			})
		})
	}
}

// Resume and Expire of another process tend a run whose loop is away: an
// overdue start becomes a question, an old request expires, and each is listed
// when it is due and not before or after.
func TestGate_TendedByAnother(t *testing.T) {
	for _, by := range []string{"resume", "expire"} {
		t.Run(by, func(t *testing.T) {
			overStores(t, func(t *testing.T, l *loop) {
				l.t = t
				e := l.engine()
				g := l.gate(e)
				id := g.Run().ID
				other := l.engine()
				tend := func() {
					t.Helper()
					if n := l.runnable(); n != 1 {
						t.Errorf("%d runnable when due", n)
					}
					var err error
					if by == "resume" {
						_, err = other.Resume(t.Context(), id)
					} else {
						_, err = other.Expire(t.Context(), 10)
					}
					must(t, err)
				}
				s := l.start(g, l.judge(g, tc("note", `{}`)).Call.ID)
				l.advance(29 * time.Second)
				if n := l.runnable(); n != 0 {
					t.Errorf("%d runnable in time", n)
				}
				l.advance(time.Second)
				tend()
				if row := l.row(id); row.Status != ringi.WaitingForOutcome {
					t.Fatalf("%s", row.Status)
				}
				o := waitsFor(t, g.Finish(t.Context(), s, ringi.ToolResult{Output: "late"}))
				l.decide(e, o.Ran(ben, "ran"))
				r := l.waits(g, tc("pay", `{}`))
				l.advance(72 * time.Hour)
				tend()
				if now, _ := e.Request(t.Context(), r.ID); now.State != ringi.Expired {
					t.Errorf("%s", now.State)
				}
				r = l.waits(g, tc("pay", `{}`))
				l.decide(e, r.Approve(ben))
				if by == "resume" {
					tend() // queued by the approval
					l.advance(24 * time.Hour)
					tend()
					next := l.waits(g, known(r.Call.ID))
					if next.ID == r.ID {
						t.Error("the approval was not closed")
					}
				}
				l.wantRan()
				l.intact(e, id)
			})
		})
	}
}

// Cancel, now and not, with and without a call in flight.
func TestGate_Cancel(t *testing.T) {
	for _, now := range []bool{false, true} {
		for _, flies := range []string{"", "started", "do"} {
			for _, elsewhere := range []bool{false, true} {
				t.Run(fmt.Sprintf("now %v, %s, elsewhere %v", now, flies, elsewhere), func(t *testing.T) {
					overStores(t, func(t *testing.T, l *loop) {
						l.t = t
						e := l.engine()
						g := l.gate(e)
						canceller := e
						if elsewhere {
							canceller = l.engine()
						}
						r := l.waits(g, tc("pay", `{}`))
						ready := l.judge(g, tc("note", `{"n":9}`)).Call.ID
						id := g.Run().ID
						var s engine.Started
						var res ringi.ToolResult
						var derr error
						in, out, done := make(chan bool), make(chan bool), make(chan bool)
						switch flies {
						case "started":
							s = l.start(g, l.judge(g, tc("note", `{}`)).Call.ID)
						case "do":
							go func() {
								defer close(done)
								res, derr = g.Do(context.WithoutCancel(t.Context()), tc("note", `{}`), func(ctx context.Context, _ engine.Started) (any, error) {
									close(in)
									select {
									case <-out:
									case <-ctx.Done():
									}
									return "done", ctx.Err()
								})
							}()
							<-in
						}
						must(t, canceller.Cancel(t.Context(), id, ben, "stop it", now))
						if q, _ := e.Request(t.Context(), r.ID); q.State != ringi.Withdrawn {
							t.Errorf("%s", q.State)
						}
						if _, err := g.Start(t.Context(), ready); err == nil {
							t.Error("started after the cancellation")
						}
						if _, err := g.Do(t.Context(), tc("find", `{}`), l.acts); !errors.Is(err, ringi.ErrFinal) {
							t.Errorf("%v", err)
						}
						if _, err := e.Decide(t.Context(), r.Approve(ben)); !errors.Is(err, ringi.ErrWithdrawn) {
							t.Errorf("%v", err)
						}
						ended := flies == "" || now
						if row := l.row(id); (row.Status == ringi.Cancelled) != ended {
							t.Errorf("%s", row.Status)
						}
						switch flies {
						case "started":
							err := g.Finish(t.Context(), s, ringi.ToolResult{Output: "done"})
							if (err == nil) != !now {
								t.Errorf("%v", err)
							}
							j := l.judge(g, known(s.Call().ID))
							res = *j.Result
						case "do":
							if !now || elsewhere { // one that is cut here ends by its context
								close(out)
							}
							<-done
							must(t, derr)
						}
						if flies != "" && !now && res.Output != "done" || flies != "" && now && res.Outcome != ringi.OutcomeInDoubt {
							t.Errorf("%+v", res)
						}
						if row := l.row(id); row.Status != ringi.Cancelled {
							t.Errorf("%s", row.Status)
						}
						must(t, g.Close(t.Context()))
						l.wantRan()
						l.intact(e, id)
					})
				})
			}
		}
	}
}

// A cancelled run whose last caller died ends when its time is over.
func TestGate_CancelledAndTheLoopDied(t *testing.T) {
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		e := l.engine()
		g := l.gate(e)
		l.start(g, l.judge(g, tc("note", `{}`)).Call.ID)
		id := g.Run().ID
		must(t, e.Cancel(t.Context(), id, ben, "stop", false))
		l.advance(31 * time.Second)
		if n := l.runnable(); n != 1 {
			t.Errorf("%d runnable", n)
		}
		res, err := l.engine().Resume(t.Context(), id)
		if err != nil || res.Status != ringi.Cancelled || res.Results[0].Outcome != ringi.OutcomeInDoubt {
			t.Errorf("%+v %v", res, err)
		}
		l.intact(e, id)
	})
}

// Close while a call is in flight or unknown is refused, and withdraws what
// waits otherwise.
func TestGate_Close(t *testing.T) {
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		e := l.engine()
		g := l.gate(e)
		other := l.gate(l.engine())
		s := l.start(g, l.judge(g, tc("note", `{}`)).Call.ID)
		r := l.waits(g, tc("pay", `{"n":1}`))
		ok := l.waits(g, tc("pay", `{"n":2}`))
		l.decide(e, ok.Approve(ben))
		for _, g := range []*engine.Gate{g, other} {
			wantErr(t, g.Close(t.Context()), ringi.ErrBusy)
		}
		waitsFor(t, g.Finish(t.Context(), s, ringi.ToolResult{Outcome: ringi.OutcomeInDoubt}))
		for _, g := range []*engine.Gate{g, other} {
			wantErr(t, g.Close(t.Context()), ringi.ErrBusy)
		}
		l.decide(e, l.waits(g, known(s.Call().ID)).DidNotRun(ben))
		must(t, other.Close(t.Context()))
		must(t, g.Close(t.Context()))
		for _, r := range []ringi.ApprovalRequest{r, ok} {
			if q, _ := e.Request(t.Context(), r.ID); q.State != ringi.Withdrawn {
				t.Errorf("%s", q.State)
			}
			_, err := g.Start(t.Context(), r.Call.ID)
			if has, is := errors.AsType[*ringi.ResultError](err); !is || has.Result.Outcome == ringi.OutcomeOK {
				t.Errorf("%v", err)
			}
		}
		_, err := g.Start(t.Context(), "call_none")
		wantErr(t, err, ringi.ErrNotFound)
		if row := l.row(g.Run().ID); row.Status != ringi.Completed {
			t.Errorf("%+v", row)
		}
		l.intact(e, g.Run().ID)
	})
}

// The program's own callback: it answers, fails, panics, or is overtaken.
func TestGate_Callback(t *testing.T) {
	proc := ringi.Principal{ID: "proc", Kind: ringi.Process}
	for _, c := range []struct {
		name    string
		answer  func(ctx context.Context, l *loop, r ringi.ApprovalRequest) (ringi.Decision, error)
		outcome ringi.CallOutcome // "" where it waits
		ran     string
	}{
		{"approves", func(_ context.Context, _ *loop, r ringi.ApprovalRequest) (ringi.Decision, error) {
			return r.Approve(proc), nil
		}, ringi.OutcomeOK, `pay {"n":1}`},
		{"denies", func(_ context.Context, _ *loop, r ringi.ApprovalRequest) (ringi.Decision, error) {
			return r.Deny(proc, "no"), nil
		}, ringi.OutcomeDenied, ""},
		{"edits", func(_ context.Context, _ *loop, r ringi.ApprovalRequest) (ringi.Decision, error) {
			if r.Proposed == "" {
				return r.Edit(ben, json.RawMessage(`{"n":2}`)), nil
			}
			return r.Approve(ben), nil
		}, ringi.OutcomeOK, `pay {"n":2}`},
		{"responds", func(_ context.Context, _ *loop, r ringi.ApprovalRequest) (ringi.Decision, error) {
			return r.Respond(ben, json.RawMessage(`"x"`)), nil
		}, ringi.OutcomeResponded, ""},
		{"fails", func(context.Context, *loop, ringi.ApprovalRequest) (ringi.Decision, error) {
			return ringi.Decision{}, errors.New("away")
		}, "", ""},
		{"says nothing", func(context.Context, *loop, ringi.ApprovalRequest) (ringi.Decision, error) {
			return ringi.Decision{}, nil
		}, "", ""},
		{"panics", func(context.Context, *loop, ringi.ApprovalRequest) (ringi.Decision, error) { panic("boom") }, "", ""},
		{"carries another digest", func(_ context.Context, _ *loop, r ringi.ApprovalRequest) (ringi.Decision, error) {
			d := r.Approve(proc)
			d.Digest = strings.Repeat("0", 64)
			return d, nil
		}, "", ""},
		{"names nobody", func(_ context.Context, _ *loop, r ringi.ApprovalRequest) (ringi.Decision, error) {
			return r.Approve(ringi.Principal{}), nil
		}, "", ""},
		{"is overtaken by a yes", func(ctx context.Context, l *loop, r ringi.ApprovalRequest) (ringi.Decision, error) {
			if _, err := l.engine().Decide(context.Background(), r.Approve(ben)); err != nil {
				l.t.Error(err)
			}
			<-ctx.Done()
			return r.Deny(proc, "too late"), nil
		}, ringi.OutcomeOK, `pay {"n":1}`},
		{"is overtaken by a no", func(ctx context.Context, l *loop, r ringi.ApprovalRequest) (ringi.Decision, error) {
			if _, err := l.engine().Decide(context.Background(), r.Deny(ben, "")); err != nil {
				l.t.Error(err)
			}
			<-ctx.Done()
			return r.Approve(proc), nil
		}, ringi.OutcomeDenied, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			overStores(t, func(t *testing.T, l *loop) {
				l.t = t
				l.cfg.OnApprovalRequired = func(ctx context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) { return c.answer(ctx, l, r) }
				e := l.engine()
				g := l.gate(e)
				res, err := g.Do(t.Context(), tc("pay", `{"n":1}`), l.acts)
				if c.outcome == "" {
					if r := waitsFor(t, err); r.State != ringi.Pending {
						t.Errorf("%+v", r)
					}
				} else if err != nil || res.Outcome != c.outcome {
					t.Errorf("%+v %v", res, err)
				}
				if c.ran == "" {
					l.wantRan()
				} else {
					l.wantRan(c.ran)
				}
				l.intact(e, g.Run().ID)
			})
		})
	}
}

// A callback hangs and ignores everybody: its caller's context ends the wait.
func TestGate_ACallbackThatHangsEndsWithItsContext(t *testing.T) {
	l := newLoop(t)
	l.cfg.OnApprovalRequired = func(ctx context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
		<-ctx.Done()
		return ringi.Decision{}, ctx.Err()
	}
	g := l.gate(l.engine())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := g.Do(ctx, tc("pay", `{}`), l.acts); err == nil {
		t.Error("done")
	}
	l.wantRan()
}

// Functions of the user's that fail, panic, hang or end their goroutine refuse
// the call, and the gate lives on.
func TestGate_FunctionsThatFail(t *testing.T) {
	for name, f := range map[string]ringi.ApprovalFunc{
		"error": func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			return ringi.Verdict{Status: ringi.Approved}, errors.New("x")
		},
		"panic": func(context.Context, ringi.CallInfo) (ringi.Verdict, error) { panic("boom") },
		"odd":   func(context.Context, ringi.CallInfo) (ringi.Verdict, error) { return ringi.Verdict{Status: "yes"}, nil },
		"nilmap": func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			var m map[string]int
			//lint:ignore SA5000 it is to panic
			m["x"] = 1
			return ringi.Verdict{}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t)
			l.cfg.Approval.Tools["put"] = ringi.ToolApproval{Func: f}
			g := l.gate(l.engine())
			if res := l.do(g, tc("put", `{}`)); res.Code != ringi.CodeDeniedByPolicy {
				t.Errorf("%+v", res)
			}
			l.do(g, tc("find", `{}`))
			l.wantRan("find {}")
		})
	}
	t.Run("hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLoop(t)
			end := make(chan bool)
			l.cfg.Approval.Tools["put"] = ringi.ToolApproval{Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
				<-end
				return ringi.Verdict{Status: ringi.Approved}, nil
			}}
			g := l.gate(l.engine())
			if res := l.do(g, tc("put", `{}`)); res.Code != ringi.CodeDeniedByPolicy {
				t.Errorf("%+v", res)
			}
			close(end)
			synctest.Wait()
			l.wantRan()
		})
	})
}

// A policy function that says another thing between judgement and start: the
// newer word counts, and a person's question stays one.
func TestGate_PolicyMovesBetweenJudgeAndStart(t *testing.T) {
	var now atomic.Value
	now.Store(ringi.Approved)
	fresh := func() (*loop, *engine.Engine, *engine.Gate) {
		l := newLoop(t)
		l.cfg.Approval.Tools["put"] = ringi.ToolApproval{Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			return ringi.Verdict{Status: now.Load().(ringi.Status)}, nil
		}}
		e := l.engine()
		return l, e, l.gate(e)
	}
	for _, c := range []struct {
		first, then ringi.Status
		want        string
	}{
		{ringi.Approved, ringi.Denied, "denied"}, {ringi.Approved, ringi.UserApproval, "waits"}, {ringi.Approved, ringi.NotApplicable, "runs"},
		{ringi.UserApproval, ringi.Denied, "denied"}, {ringi.UserApproval, ringi.Approved, "runs"}, {ringi.UserApproval, ringi.UserApproval, "runs"},
	} {
		l, e, g := fresh()
		now.Store(c.first)
		j := l.judge(g, tc("put", `{}`))
		if j.Request != nil {
			l.decide(e, j.Request.Approve(ben))
		}
		now.Store(c.then)
		s, err := g.Start(t.Context(), j.Call.ID)
		switch c.want {
		case "runs":
			if err != nil {
				t.Errorf("%+v: %v", c, err)
				continue
			}
			must(t, g.Finish(t.Context(), s, ringi.ToolResult{}))
		case "waits":
			waitsFor(t, err)
		default:
			has, ok := errors.AsType[*ringi.ResultError](err)
			if !ok || has.Result.Code != ringi.CodeDeniedByPolicy {
				t.Errorf("%+v: %v", c, err)
			}
		}
		l.intact(e, g.Run().ID)
	}
}

// The caller's context ends at each point. Before the start nothing runs; what
// was started is finished and recorded.
func TestGate_F123_TheCallersContextEnds(t *testing.T) {
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		over, cancel := context.WithCancel(t.Context())
		cancel()
		e := l.engine()
		if _, err := e.Gate(over, ringi.RunInfo{Thread: "none"}); err == nil {
			t.Log("a gate is opened under an ended context")
		}
		g := l.gate(e)
		if _, err := g.Judge(over, tc("pay", `{}`)); !errors.Is(err, context.Canceled) {
			t.Errorf("judge: %v", err)
		}
		if _, err := g.Do(over, tc("note", `{}`), l.acts); !errors.Is(err, context.Canceled) {
			t.Errorf("do: %v", err)
		}
		r := l.waits(g, tc("pay", `{}`))
		l.decide(e, r.Approve(ben))
		if _, err := g.Start(over, r.Call.ID); !errors.Is(err, context.Canceled) {
			t.Errorf("start: %v", err)
		}
		if _, err := g.Do(over, known(r.Call.ID), l.acts); !errors.Is(err, context.Canceled) {
			t.Errorf("do: %v", err)
		}
		l.wantRan()
		if q, _ := e.Request(t.Context(), r.ID); q.State != ringi.Granted {
			t.Errorf("%s", q.State)
		}
		ctx, stop := context.WithCancel(t.Context())
		res, err := g.Do(ctx, known(r.Call.ID), func(ctx context.Context, s engine.Started) (any, error) {
			stop()
			if ctx.Err() != nil {
				t.Error("cut")
			}
			return "done", nil
		})
		if err != nil || res.Output != "done" {
			t.Errorf("%+v %v", res, err)
		}
		s := l.start(g, l.judge(g, tc("note", `{}`)).Call.ID)
		must(t, g.Finish(over, s, ringi.ToolResult{Output: "done"}))
		l.intact(e, g.Run().ID)
	})
}

// Restarts between any two steps: nothing is held in memory that counts.
func TestGate_F126_RestartBetweenAllSteps(t *testing.T) {
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		at := func() (*engine.Engine, *engine.Gate) { e := l.engine(); return e, l.gate(e) }
		_, g := at()
		j := l.judge(g, tc("pay", `{"n":1}`))
		_, g = at()
		same := l.judge(g, known(j.Call.ID))
		if same.Request.ID != j.Request.ID || same.Request.Digest != j.Request.Digest {
			t.Error("another request")
		}
		e, _ := at()
		set := l.decide(e, j.Request.Edit(ben, json.RawMessage(`{"n":2}`)))
		e, _ = at()
		l.decide(e, set.Request.Approve(ben))
		_, g = at()
		if j := l.judge(g, known(j.Call.ID)); !j.MayStart() || j.Call.Input != `{"n":2}` {
			t.Errorf("%+v", j)
		}
		_, g = at()
		s := l.start(g, j.Call.ID)
		_, other := at()
		if j := l.judge(other, known(j.Call.ID)); !j.InFlight {
			t.Errorf("%+v", j)
		}
		must(t, g.Finish(t.Context(), s, ringi.ToolResult{Output: "paid"}))
		e, g = at()
		if res := l.do(g, known(j.Call.ID)); res.Output != "paid" || res.Approval.Executed != `{"n":2}` {
			t.Errorf("%+v", res)
		}
		l.wantRan()
		must(t, g.Close(t.Context()))
		l.intact(e, g.Run().ID)
	})
}

// A loop that forgets a call asks anew: the forgotten one waits for nobody but
// time, and does not run.
func TestGate_AForgottenCall(t *testing.T) {
	l := newLoop(t)
	e := l.engine()
	g := l.gate(e)
	r := l.waits(g, tc("pay", `{"n":1}`))
	l.decide(e, r.Approve(ben))
	next := l.waits(g, tc("pay", `{"n":1}`)) // the same words are another call
	if next.ID == r.ID || next.Call.ID == r.Call.ID {
		t.Error("an approval was used for another call")
	}
	l.decide(e, next.Approve(ben))
	l.do(g, known(next.Call.ID))
	l.wantRan(`pay {"n":1}`)
	must(t, g.Close(t.Context()))
	if q, _ := e.Request(t.Context(), r.ID); q.State != ringi.Withdrawn {
		t.Errorf("%s", q.State)
	}
}

// Wait: decided before, after, elsewhere, expired, edited, ended, unknown.
func TestGate_Wait(t *testing.T) {
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		e := l.engine()
		other := l.engine()
		g := l.gate(e)
		wait := func(id string, want ringi.RequestState) ringi.ApprovalRequest {
			t.Helper()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			r, err := e.Wait(ctx, id)
			if err != nil || r.State != want {
				t.Errorf("%s %v, want %s", r.State, err, want)
			}
			return r
		}
		r := l.waits(g, tc("pay", `{"n":1}`))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := e.Wait(ctx, r.ID)
		wantErr(t, err, context.DeadlineExceeded)
		cancel()
		_, err = e.Wait(t.Context(), "req_none")
		wantErr(t, err, ringi.ErrNotFound)
		if q, _ := e.Request(t.Context(), r.ID); q.State != ringi.Pending {
			t.Errorf("waiting made it %s", q.State)
		}
		l.decide(other, r.Approve(ben))
		if got := wait(r.ID, ringi.Granted); got.DecidedBy != "ben" {
			t.Errorf("%+v", got)
		}
		l.do(g, known(r.Call.ID))
		wait(r.ID, ringi.Spent)
		r = l.waits(g, tc("pay", `{"n":2}`))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { wait(r.ID, ringi.Refused) })
		}
		time.Sleep(30 * time.Millisecond)
		l.decide(other, r.Deny(ben, "no"))
		all.Wait()
		r = l.waits(g, tc("pay", `{"n":3}`))
		all.Go(func() {
			if got := wait(r.ID, ringi.Granted); got.ID == r.ID || got.Call.Input != `{"n":4}` {
				t.Errorf("%+v", got)
			}
		})
		time.Sleep(30 * time.Millisecond)
		set := l.decide(other, r.Edit(ben, json.RawMessage(`{"n":4}`)))
		time.Sleep(30 * time.Millisecond)
		l.decide(other, set.Request.Approve(ben))
		all.Wait()
		r = l.waits(g, tc("pay", `{"n":5}`))
		l.advance(72 * time.Hour)
		if got := wait(r.ID, ringi.Expired); got.ID != r.ID {
			t.Errorf("%+v", got)
		}
		r = l.waits(g, tc("pay", `{"n":6}`))
		must(t, e.Cancel(t.Context(), g.Run().ID, ben, "", false))
		wait(r.ID, ringi.Withdrawn)
	})
}
