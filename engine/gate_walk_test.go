package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// A gate's life by dice: two processes, people, time and deaths, one step
// after another. After every step nothing is listed that is not due, and at the
// end every call has one result.

type gateWalk struct {
	*loop
	dice    *rand.Rand
	engines [2]*engine.Engine
	run     string
	ids     []string
	open    []engine.Started // started, and not finished
	by      []*engine.Gate
	starts  map[string]int
	again   map[string]int
	effects map[string]ringi.Effect
	did     []string
}

// fine are the answers that a loop may get, whatever it does.
var fine = []error{ringi.ErrBusy, ringi.ErrFinal, ringi.ErrExpired, ringi.ErrWithdrawn, ringi.ErrStale, ringi.ErrNowDenied, ringi.ErrAnswer, ringi.ErrSpent, ringi.ErrRunOpen}

func (k *gateWalk) fine(what string, err error) {
	k.did = append(k.did, fmt.Sprintf("%s: %v", what, err))
	if err == nil {
		return
	}
	for _, known := range fine {
		if errors.Is(err, known) {
			return
		}
	}
	var w *ringi.WaitingError
	var r *ringi.ResultError
	var d *ringi.DecidedError
	if !errors.As(err, &w) && !errors.As(err, &r) && !errors.As(err, &d) {
		k.t.Errorf("%s: %v", what, err)
	}
}

func (k *gateWalk) gate() *engine.Gate {
	g, err := k.engines[k.dice.IntN(2)].Gate(context.Background(), ringi.RunInfo{ID: k.run})
	if err != nil {
		k.fine("gate", err)
		return nil
	}
	return g
}

func (k *gateWalk) anyID() string {
	if len(k.ids) == 0 {
		return ""
	}
	return k.ids[k.dice.IntN(len(k.ids))]
}

// step does one thing.
func (k *gateWalk) step() {
	ctx := context.Background()
	e := k.engines[k.dice.IntN(2)]
	switch n := k.dice.IntN(100); {
	case n < 22: // a new call
		tool := []string{"find", "note", "log", "put", "pay", "sealed", "ask"}[k.dice.IntN(7)]
		if g := k.gate(); g != nil {
			j, err := g.Judge(ctx, tc(tool, fmt.Sprintf(`{"n":%d}`, k.dice.IntN(3))))
			k.fine("judge "+tool, err)
			if err == nil {
				k.ids = append(k.ids, j.Call.ID)
			}
		}
	case n < 44: // a start
		if g, id := k.gate(), k.anyID(); g != nil && id != "" {
			s, err := g.Start(ctx, id)
			k.fine("start "+id, err)
			if err == nil {
				k.starts[id]++
				tool, _ := k.reg.Tool(s.Call().Tool)
				k.effects[id] = tool.Effect
				k.open, k.by = append(k.open, s), append(k.by, g)
			}
		}
	case n < 50: // the three in a row, or a wait for what is in flight
		if g, id := k.gate(), k.anyID(); g != nil && id != "" {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
			defer cancel()
			_, err := g.Do(ctx, known(id), func(_ context.Context, s engine.Started) (any, error) {
				k.starts[id]++
				tool, _ := k.reg.Tool(s.Call().Tool)
				k.effects[id] = tool.Effect
				switch k.dice.IntN(4) {
				case 0:
					panic("boom")
				case 1:
					return nil, errors.New("no funds")
				}
				return "done", nil
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				k.fine("do "+id, err)
			}
		}
	case n < 62: // a finish, of an old start too
		if len(k.open) > 0 {
			i := k.dice.IntN(len(k.open))
			s, g := k.open[i], k.by[i]
			r := []ringi.ToolResult{{Output: "ok"}, {Error: "no"}, {Outcome: ringi.OutcomeInDoubt}}[k.dice.IntN(3)]
			k.fine("finish "+s.Call().ID, g.Finish(ctx, s, r))
			k.open, k.by = append(k.open[:i:i], k.open[i+1:]...), append(k.by[:i:i], k.by[i+1:]...)
		}
	case n < 82: // a person
		page, err := e.Requests(ctx, ringi.RequestQuery{State: []ringi.RequestState{ringi.Pending, ringi.Granted}, Limit: 100})
		if err != nil || len(page.Requests) == 0 {
			return
		}
		k.answer(ctx, e, page.Requests[k.dice.IntN(len(page.Requests))])
	case n < 94:
		k.advance([]time.Duration{time.Second, 31 * time.Second, time.Hour, 25 * time.Hour, 73 * time.Hour}[min(k.dice.IntN(12), 4)])
		k.did = append(k.did, "time")
	case n < 98: // a process dies; what it had started nobody finishes
		k.engines[k.dice.IntN(2)] = k.engine()
		k.did = append(k.did, "death")
	default:
		g := k.gate()
		switch k.dice.IntN(6) {
		case 0:
			k.fine("cancel", e.Cancel(ctx, k.run, ben, "stop", k.dice.IntN(2) == 0))
		case 1:
			if g != nil {
				k.fine("close", g.Close(ctx))
			}
		}
	}
}

func (k *gateWalk) answer(ctx context.Context, e *engine.Engine, r ringi.ApprovalRequest) {
	var d ringi.Decision
	switch {
	case r.State == ringi.Granted && k.dice.IntN(4) > 0:
		return
	case r.State == ringi.Granted:
		_, err := e.TakeBack(ctx, r.ID, ben, "")
		k.fine("take back "+r.ID, err)
		return
	case r.Kind == ringi.KindOutcome:
		d = []ringi.Decision{r.Ran(ben, "ran"), r.DidNotRun(ben), r.RunAgain(ben)}[k.dice.IntN(3)]
	case r.Allows(ringi.Fill):
		d = r.Fill(ben, json.RawMessage(`{"code":"1"}`))
	case r.Allows(ringi.Edit) && k.dice.IntN(4) == 0:
		d = r.Edit(ben, json.RawMessage(`{"n":9}`))
	case k.dice.IntN(6) == 0:
		d = r.Deny(ben, "")
	default:
		d = r.Approve(ben)
	}
	_, err := e.Decide(ctx, d)
	k.fine(fmt.Sprintf("%s %s", d.Answer, r.ID), err)
	if err == nil && d.Answer == ringi.RunAgain {
		k.again[r.Call.ID]++
	}
}

// quiet sweeps as a worker does, and finds nothing left to do.
func (k *gateWalk) quiet() {
	ctx := context.Background()
	e := k.engines[k.dice.IntN(2)]
	for range 3 {
		rows, err := k.cfg.Store.Runnable(ctx, 10)
		must(k.t, err)
		if len(rows) == 0 {
			return
		}
		for _, row := range rows {
			_, err := e.Resume(ctx, row.ID)
			k.fine("resume", err)
		}
	}
	if rows, _ := k.cfg.Store.Runnable(ctx, 10); len(rows) > 0 {
		k.t.Errorf("listed again and again: %+v", rows[0])
	}
}

func (k *gateWalk) end() {
	ctx := context.Background()
	e := k.engine()
	k.advance(time.Minute)
	k.fine("the end", e.Cancel(ctx, k.run, ben, "the end", true))
	res, err := e.Resume(ctx, k.run)
	if err != nil {
		k.t.Error(err)
		return
	}
	if !res.Status.Final() || len(res.Results) != len(k.ids) {
		k.t.Errorf("%d results of %d calls: %s", len(res.Results), len(k.ids), res.Status)
	}
	k.intact(e, k.run)
	for id, n := range k.starts {
		if !k.effects[id].Repeatable() && n > 1+k.again[id] {
			k.t.Errorf("%s started %d times, run again %d times", id, n, k.again[id])
		}
	}
	if k.runnable() != 0 {
		k.t.Error("runnable after its end")
	}
}

func TestGate_Walk(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		l := newLoop(t)
		l.cfg.Limits.ToolCalls = -1
		run := ringi.RunInfo{Thread: "thr", By: ana}
		switch seed % 5 {
		case 1:
			run.Unattended = ringi.PerCall
		case 2:
			l.cfg.Keyring = keyring(t)
		case 3:
			l.cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
				return ringi.Decision{}, errors.New("away")
			}
		}
		k := &gateWalk{loop: l, dice: rand.New(rand.NewPCG(seed, 7)), starts: map[string]int{}, again: map[string]int{}, effects: map[string]ringi.Effect{}}
		k.engines = [2]*engine.Engine{l.engine(), l.engine()}
		g, err := k.engines[0].Gate(t.Context(), run)
		must(t, err)
		k.run = g.Run().ID
		g = nil
		tended := seed%2 == 0
		for range 80 {
			k.step()
			if tended {
				k.quiet()
			}
		}
		k.quiet()
		k.end()
		if t.Failed() {
			for _, line := range k.did {
				t.Log(line)
			}
			t.Fatalf("seed %d", seed)
		}
	}
}
