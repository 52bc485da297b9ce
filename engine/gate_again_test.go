package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// A second round of tries to break the gate.

// Without a time limit nobody can tell that a loop is dead: its call stays in
// flight, and the run is not listed again and again for it.
func TestGate_WithoutATimeLimit(t *testing.T) {
	for _, tool := range []string{"log", "note"} {
		overStores(t, func(t *testing.T, l *loop) {
			l.t = t
			l.cfg.Limits.ToolTimeout = -1
			e := l.engine()
			g := l.gate(e)
			id := l.judge(g, tc(tool, `{}`)).Call.ID
			l.start(g, id)
			other := l.engine()
			l.advance(100 * time.Hour)
			for range 3 {
				_, err := other.Expire(t.Context(), 10)
				must(t, err)
			}
			if n := l.runnable(); n != 0 {
				t.Errorf("%s: %d runnable", tool, n)
			}
			if j := l.judge(l.gate(other), known(id)); !j.InFlight {
				t.Errorf("%s: %+v", tool, j)
			}
			must(t, other.Cancel(t.Context(), g.Run().ID, ben, "it is dead", true))
			if row := l.row(g.Run().ID); row.Status != ringi.Cancelled {
				t.Errorf("%s", row.Status)
			}
		})
	}
}

// A child's gate is judged by its parent's floor too, whoever opens it again
// while the parent's call runs.
func TestGate_AChildOpenedElsewhereKeepsItsParentsFloor(t *testing.T) {
	l := newLoop(t)
	cfg := l.cfg
	inner, other := l.engine(), l.engine()
	l.tool(ringi.Tool{Name: "agent", Effect: ringi.ReadOnly}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		g, err := inner.Gate(ctx, ringi.RunInfo{Thread: "child"})
		if err != nil {
			return ringi.ToolResult{}, err
		}
		if res := l.do(g, tc("find", `{}`)); res.Code != ringi.CodeDeniedByPolicy {
			t.Errorf("in the child: %+v", res)
		}
		again, err := other.Gate(context.Background(), ringi.RunInfo{ID: g.Run().ID})
		if err == nil {
			res, err := again.Do(context.Background(), tc("find", `{}`), l.acts)
			if err == nil && res.Outcome == ringi.OutcomeOK {
				t.Errorf("opened elsewhere it runs what its parent's floor denies: %+v", res)
			}
		}
		return ringi.ToolResult{Output: "ok"}, nil
	})
	cfg.Floor = ringi.Approval{Tools: map[string]ringi.ToolApproval{"find": {Status: ringi.Denied, Reason: "the floor"}}}
	cfg.Model = ringitest.Script(turn("agent", `{}`), ringitest.Text("Done."))
	e, err := engine.New(cfg)
	must(t, err)
	res, err := e.Run(t.Context(), ringi.RunStart{By: ana, Messages: []ringi.Message{ringi.User("go")}})
	if err != nil || res.Results[0].Output != "ok" {
		t.Fatalf("%+v %v", res, err)
	}
	l.wantRan("agent {}")
}

// Odd bytes from the loop: kept or refused, never an event that does not read
// back.
func TestGate_OddBytes(t *testing.T) {
	odd := []string{"\xff\xfe", "a\x00b", "\u202e", strings.Repeat("x", 3<<20), "\ud7ff", "\r\n"}
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		l.cfg.Limits.ToolCalls = -1
		e := l.engine()
		g := l.gate(e)
		for i, s := range odd {
			for name, c := range map[string]ringi.ToolCall{
				"model id": {ModelID: s, Tool: "note", Input: `{}`}, "tool": {Tool: s, Input: `{}`}, "input": {Tool: "note", Input: ringi.Input(s)}} {
				if _, err := g.Do(t.Context(), c, l.acts); err != nil {
					t.Logf("%d %s: %.200v", i, name, err)
				}
			}
			for _, r := range []ringi.ToolResult{{Output: s}, {Error: s}} {
				st := l.start(g, l.judge(g, tc("note", `{}`)).Call.ID)
				must(t, g.Finish(t.Context(), st, r))
				if res := l.judge(g, known(st.Call().ID)).Result; res.Outcome == ringi.OutcomeOK && r.Error != "" {
					t.Errorf("%d: %+.100v", i, res)
				}
				if _, err := g.Do(t.Context(), tc("note", `{}`), func(context.Context, engine.Started) (any, error) { return r, nil }); err != nil {
					t.Errorf("%d: %.200v", i, err)
				}
			}
		}
		l.intact(e, g.Run().ID)
		again, err := l.engine().Gate(t.Context(), ringi.RunInfo{ID: g.Run().ID})
		must(t, err)
		must(t, again.Close(t.Context()))
		l.intact(e, g.Run().ID)
	})
}

// What a gate is opened with is text of somebody's.
func TestGate_OddRunInfo(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		overStores(t, func(t *testing.T, l *loop) {
			l.t = t
			if keyed {
				l.cfg.Keyring = keyring(t)
			}
			e := l.engine()
			for i, s := range []string{"\xff", "a\nb", "a\x00b", strings.Repeat("x", 1<<16)} {
				for name, run := range map[string]ringi.RunInfo{"thread": {Thread: s}, "agent": {Thread: fmt.Sprint("a", i), Agent: s},
					"by": {Thread: fmt.Sprint("b", i), By: ringi.Principal{ID: s, Kind: ringi.Person}}, "groups": {Thread: fmt.Sprint("g", i), Groups: []string{s}}} {
					g, err := e.Gate(t.Context(), run)
					if err != nil {
						continue
					}
					_, err = g.Do(t.Context(), tc("pay", `{}`), l.acts)
					if w, ok := errors.AsType[*ringi.WaitingError](err); ok {
						l.decide(e, w.Request.Approve(ben))
						l.do(g, known(w.Request.Call.ID))
					}
					if err := g.Close(t.Context()); err != nil {
						t.Errorf("%s %d: %v", name, i, err)
					}
					l.intact(l.engine(), g.Run().ID)
				}
			}
		})
	}
}

// A pointer to a result is a result.
func TestGate_APointerToAResult(t *testing.T) {
	l := newLoop(t)
	g := l.gate(l.engine())
	res, err := g.Do(t.Context(), tc("note", `{}`), func(context.Context, engine.Started) (any, error) { return &ringi.ToolResult{Error: "no funds"}, nil })
	if err != nil || res.Outcome != ringi.OutcomeError || res.Error != "no funds" {
		t.Errorf("%+v %v", res, err)
	}
	res, err = g.Do(t.Context(), tc("note", `{}`), func(context.Context, engine.Started) (any, error) { return errors.New("no funds"), nil })
	if err != nil || res.Outcome != ringi.OutcomeError {
		t.Errorf("an error as the answer: %+v %v", res, err)
	}
}

// The result is recorded, and the end that was to follow it is not: the loop
// is told the result.
func TestGate_AResultBeforeAnEndThatFails(t *testing.T) {
	l := newLoop(t)
	store := &oneMore{Store: l.store}
	l.cfg.Store = store
	e := l.engine()
	g := l.gate(e)
	id := g.Run().ID
	res, err := g.Do(t.Context(), tc("note", `{}`), func(ctx context.Context, _ engine.Started) (any, error) {
		must(t, e.Cancel(ctx, id, ben, "stop", false))
		store.armed.Store(true) // the result's commit is made, and none behind it
		return "done", nil
	})
	store.armed.Store(false)
	store.broken.Store(false)
	if err != nil || res.Output != "done" {
		t.Errorf("%+v %v", res, err)
	}
	must(t, g.Close(t.Context()))
	if row := l.row(id); row.Status != ringi.Cancelled {
		t.Errorf("%s", row.Status)
	}
}

// oneMore is a store that works until it is armed, makes one commit more, and
// then none until it is mended.
type oneMore struct {
	ringi.Store
	armed, broken atomic.Bool
}

func (f *oneMore) Commit(ctx context.Context, c *ringi.Commit) error {
	if f.broken.Load() {
		return ringitest.ErrFault
	}
	if f.armed.Load() {
		f.broken.Store(true)
	}
	return f.Store.Commit(ctx, c)
}

// The clock of the store is far behind what is recorded: nothing starts.
func TestGate_TheClockGoesBack(t *testing.T) {
	overStores(t, func(t *testing.T, l *loop) {
		l.t = t
		e := l.engine()
		g := l.gate(e)
		r := l.waits(g, tc("pay", `{}`))
		l.decide(e, r.Approve(ben))
		l.advance(-time.Hour)
		_, err := g.Start(t.Context(), r.Call.ID)
		wantErr(t, err, ringi.ErrClock)
		_, err = g.Do(t.Context(), tc("note", `{}`), l.acts)
		wantErr(t, err, ringi.ErrClock)
		l.wantRan()
		l.advance(time.Hour)
		l.do(g, known(r.Call.ID))
		l.wantRan("pay {}")
	})
}

// Two writes run at once, and the run is to end meanwhile: both results are
// kept, whatever comes first, and the run ends behind the last.
func TestGate_TheEndComesBehindTheLast(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		l := newLoop(t)
		e := l.engine()
		g := l.gate(e)
		second := g
		if elsewhere {
			second = l.gate(l.engine())
		}
		a := l.start(g, l.judge(g, tc("note", `{"n":1}`)).Call.ID)
		b := l.start(second, l.judge(second, tc("note", `{"n":2}`)).Call.ID)
		must(t, e.Cancel(t.Context(), g.Run().ID, ben, "", false))
		must(t, g.Finish(t.Context(), a, ringi.ToolResult{Output: "one"}))
		if row := l.row(g.Run().ID); row.Status.Final() {
			t.Errorf("ended with a call in flight: %s", row.Status)
		}
		must(t, second.Finish(t.Context(), b, ringi.ToolResult{Output: "two"}))
		if row := l.row(g.Run().ID); row.Status != ringi.Cancelled {
			t.Errorf("%s", row.Status)
		}
		for s, want := range map[*engine.Started]string{&a: "one", &b: "two"} {
			if res := l.judge(g, known(s.Call().ID)).Result; res.Output != want {
				t.Errorf("%+v", res)
			}
		}
		l.intact(e, g.Run().ID)
	}
}

// A loop is in doubt about a read: that is the read's failure, asked of nobody,
// and the run goes on.
func TestGate_ADoubtAboutARead(t *testing.T) {
	for _, approved := range []bool{false, true} {
		overStores(t, func(t *testing.T, l *loop) {
			l.t = t
			l.tool(ringi.Tool{Name: "peek", Effect: ringi.ReadOnly, RequiresApproval: true}, nil)
			tool := map[bool]string{false: "find", true: "peek"}[approved]
			e := l.engine()
			g := l.gate(e)
			doubt := ringi.ToolResult{Outcome: ringi.OutcomeInDoubt, Output: "half of it"}
			for _, do := range []bool{false, true} {
				j := l.judge(g, tc(tool, `{}`))
				if j.Request != nil {
					l.decide(e, j.Request.Approve(ben))
				}
				var err error
				if do {
					_, err = g.Do(t.Context(), known(j.Call.ID), func(context.Context, engine.Started) (any, error) { return doubt, nil })
				} else {
					err = g.Finish(t.Context(), l.start(g, j.Call.ID), doubt)
				}
				if errors.Is(err, ringi.ErrCorrupt) || err != nil && strings.Contains(err.Error(), "fold") {
					t.Errorf("do %v: %v", do, err)
				}
				if j := l.judge(g, known(j.Call.ID)); j.Result != nil && j.Result.Outcome == ringi.OutcomeOK {
					t.Errorf("%+v", j.Result)
				}
			}
			l.do(g, tc("find", `{}`))
			l.intact(e, g.Run().ID)
			must(t, e.Cancel(t.Context(), g.Run().ID, ben, "", true))
		})
	}
}
