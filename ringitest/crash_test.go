package ringitest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/store/memory"
)

type ctx = context.Context

// TestCrashesReachEveryPoint holds the kit itself: a crash behind an effect is
// the one that makes an idempotent write run twice and a non-idempotent one
// unknown, and no other point does.
func TestCrashesReachEveryPoint(t *testing.T) {
	type seen struct{ twice, unknown, struck int }
	tally := map[ringi.Effect]*seen{ringi.IdempotentWrite: {}, ringi.NonIdempotentWrite: {}}
	for effect, s := range tally {
		t.Run(string(effect), func(t *testing.T) {
			ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
				reg := ringi.NewRegistry()
				c.Effects.Tool(reg, ringi.Tool{Name: "send", Effect: effect}, "sent")
				c.Engine(engine.Config{Registry: reg, Model: ringitest.Script(ringitest.Calls(ringitest.Call("send", `{}`)), ringitest.Text("Done."))})
				unknown := false
				res := c.Settle(c.Run(hello), func(r ringi.ApprovalRequest) (ringi.Decision, error) {
					unknown = unknown || r.Kind == ringi.KindOutcome
					return ringitest.Witness(ringitest.Ana, &c.Effects)(r)
				})
				if res.Err() != nil || res.Text != "Done." {
					t.Errorf("%+v", res)
				}
				n := c.Effects.Of("send")
				if n == 2 {
					s.twice++
				}
				if unknown {
					s.unknown++
				}
				if c.Struck() {
					s.struck++
				}
				switch {
				case effect == ringi.NonIdempotentWrite && n > 1:
					t.Errorf("the write ran %d times", n)
				case n == 0 && !unknown:
					t.Error("the write never ran, and nobody was told")
				}
			})
		})
	}
	// Six commits: start with turn's claim, turn with request, decision, start
	// of the tool, its result, the end; and one handler.
	idem, blind := tally[ringi.IdempotentWrite], tally[ringi.NonIdempotentWrite]
	if idem.struck == 0 || idem.struck != blind.struck {
		t.Errorf("struck %d and %d times", idem.struck, blind.struck)
	}
	// After the effect, and before the commit of its result.
	if idem.twice != 2 || idem.unknown != 0 {
		t.Errorf("idempotent: %d twice, %d unknown; want 2, 0", idem.twice, idem.unknown)
	}
	// After the commit of the start, before the handler, after the effect, and
	// before the commit of its result.
	if blind.unknown != 4 || blind.twice != 0 {
		t.Errorf("non-idempotent: %d unknown, %d twice; want 4, 0", blind.unknown, blind.twice)
	}
}

// TestEveryCrashWithACallback holds a program that answers in process: after
// every crash the next process asks its own callback and ends the run.
func TestEveryCrashWithACallback(t *testing.T) {
	ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
		cfg := asking(&c.Effects)
		cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
			return ringitest.Witness(ringitest.Ana, &c.Effects)(r)
		}
		c.Engine(cfg)
		if res := c.Run(hello); res.Err() != nil || res.Text != "Done." {
			t.Errorf("%s %s", res.Status, res.Text)
		}
		c.Effects.WantOnce(t)
	})
}

// TestCrashesTwice dies a second time, in what the first death left to do.
func TestCrashesTwice(t *testing.T) {
	undisturbed, twice := 0, 0
	ringitest.CrashesTwice(t, func(t *testing.T, c *ringitest.Crash) {
		c.Engine(asking(&c.Effects))
		lives := 0
		res := c.Run(hello)
		if err := c.Do(func(context.Context, *engine.Engine) error { lives++; return nil }); err != nil || lives != 1 {
			t.Errorf("%d lives in a step that commits nothing, %v", lives, err)
		}
		res = c.Settle(res, ringitest.Witness(ringitest.Ana, &c.Effects))
		if err := res.Err(); err != nil || !c.Struck() {
			t.Errorf("%v, struck %t", err, c.Struck())
		}
		c.Effects.WantOnce(t)
		switch strings.Count(t.Name(), "/") {
		case 0:
			undisturbed++
		case 2:
			twice++
		}
	})
	// Six commits and a handler are 14 points, and a death leaves about half.
	if undisturbed != 1 || twice < 14*4 {
		t.Errorf("%d undisturbed, %d with two deaths", undisturbed, twice)
	}
}

// A scenario may have steps of its own.
func TestCrashDo(t *testing.T) {
	ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
		cfg := asking(&c.Effects)
		c.Engine(cfg)
		res := c.Run(hello)
		err := c.Do(func(ctx context.Context, e *engine.Engine) error {
			err := e.Cancel(ctx, res.RunID, ringitest.Ana, "no longer needed", false)
			if errors.Is(err, ringi.ErrFinal) {
				return nil
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if res = c.Resume(res.RunID); res.Status != ringi.Cancelled {
			t.Errorf("%+v", res)
		}
		c.Effects.Want(t, "send", 0)
	})
}

// TestFaults drives a run over a store whose commits fail, before and after they
// were made, while the process lives on: the run is never stranded, and no
// write runs twice.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults *ringitest.Faults
	}{
		{"every third, before", &ringitest.Faults{Every: 3}},
		{"every third, after", &ringitest.Faults{Every: 3, After: true}},
		{"every second, in turns", &ringitest.Faults{Every: 2, Both: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 20 {
				faultyRun(t, c.faults)
			}
			n := c.faults.Count()
			if n == 0 {
				t.Error("nothing failed")
			}
			c.faults.Stop()
			if faultyRun(t, c.faults); c.faults.Count() != n {
				t.Error("a stopped fault goes on")
			}
		})
	}
	for seed := range uint64(100) {
		faultyRun(t, &ringitest.Faults{Rate: 0.3, Seed: seed, Both: true, Reads: seed%2 == 0})
	}
}

// faultyRun drives one run to its end, as a caller does who tries again.
func faultyRun(t *testing.T, f *ringitest.Faults) {
	t.Helper()
	var ran ringitest.Effects
	cfg := asking(&ran)
	store := memory.New(memory.Options{})
	cfg.Store = f.Store(store)
	e := ringitest.Engine(t, cfg)
	react := ringitest.Witness(ringitest.Ana, &ran)
	var errs []error
	for range 200 {
		res, err := goOn(t, e, store)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if res.Status.Final() {
			if err := res.Err(); err != nil || res.Text != "Done." {
				t.Errorf("%+v after %v", res, errs)
			}
			ran.WantOnce(t)
			return
		}
		for _, r := range res.Pending {
			d, _ := react(r)
			if _, err := e.Decide(t.Context(), d); err != nil {
				errs = append(errs, err)
			}
		}
	}
	t.Errorf("the run is stranded after %v", errs)
}

// goOn resumes the run that the store holds, or starts it.
func goOn(t *testing.T, e *engine.Engine, store ringi.Store) (*ringi.Result, error) {
	t.Helper()
	rows, err := store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
	if err != nil || len(rows) > 1 {
		t.Fatal(rows, err)
	}
	if len(rows) == 1 {
		return e.Resume(t.Context(), rows[0].ID)
	}
	return e.Run(t.Context(), hello)
}
