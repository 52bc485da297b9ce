package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// shared: two processes on one store.
func shared(t *testing.T, o opener) {
	if !o.features.Shared {
		t.Skip("the store is opened once")
	}
	two := func(name string, test func(t *testing.T, g *stage, one, two ringi.Store)) {
		o.run(t, name, func(t *testing.T, g *stage) { test(t, g, g.Store, g.another(nil)) })
	}
	two("EachSeesTheOther", eachSeesTheOther)
	two("OneKeyStays", oneKeyStays)
	two("LeasesBetween", leasesBetween)
	two("ClockBehindTheOther", clockBehindTheOther)
	two("CloseOneOfTwo", closeOneOfTwo)
	two("TwoWriters", twoWriters)
	two("F36_TwoDeciders", twoDeciders)
	two("F30_TwoSpenders", twoSpenders)
	two("S09_TakeBackAgainstStart", takeBackAgainstStart)
	two("S29_DecisionWhileAToolFinishes", decisionWhileAToolFinishes)
	two("OneStartAThread", oneStartAThread)
	two("OneClaim", oneClaim)
	two("LoadIsWhole", loadIsWhole)
}

// with returns the stage as seen through another store.
func (g *stage) with(s ringi.Store) *stage {
	sub := *g
	sub.Store = s
	return &sub
}

func eachSeesTheOther(t *testing.T, g *stage, one, two ringi.Store) {
	a, b := g.with(one), g.with(two)
	x, _ := a.ID(ctx)
	if y, err := b.ID(ctx); err != nil || x != y {
		t.Errorf("the ids are %q and %q, %v", x, y, err)
	}
	row := a.ask("run_1", "thr_1", "req_1")
	same(t, "the row", b.row("run_1"), row)
	same(t, "the run", b.load("run_1"), a.load("run_1"))
	b.refused(first("run_2", "thr_1"), is(ringi.ErrRunOpen))
	b.decide("run_1", approve("req_1", g.clock.Now()))
	a.refused(settle(row, ringi.EventCancelRequested), is(ringi.ErrConflict))
	if s := a.request("req_1").State; s != ringi.Granted {
		t.Errorf("req_1 is %s, want approved", s)
	}
	late := settle(a.row("run_1"), ringi.EventApprovalDecided)
	late.Changes = []ringi.RequestChange{deny("req_1", g.clock.Now())}
	a.refused(late, inState("req_1", ringi.Granted))
	for _, err := range []error{a.SaveTool(ctx, "sha256:1", []byte("{}")), a.RememberKey(ctx, "k1", "check"), a.SetFlag(ctx, "simulated", "yes")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b.tool("sha256:1", "{}")
	if k, err := b.Keys(ctx); err != nil || k["k1"] != "check" {
		t.Errorf("the keys are %v, %v", k, err)
	}
	if err := b.RememberKey(ctx, "k1", "forged"); err == nil {
		t.Error("another check value for a key that the other store remembered was taken")
	}
	if v, err := b.Flag(ctx, "simulated"); err != nil || v != "yes" {
		t.Errorf("the flag is %q, %v", v, err)
	}
	a.attempt(space, "run_1", "0")
	b.attempt(space, "run_1", "1")
	a.attempted(space, "run_1", 0, 2)
	b.attempted(space, "run_1", 0, 2)
}

// oneKeyStays: two processes that each drop the other's key leave one.
func oneKeyStays(t *testing.T, g *stage, one, two ringi.Store) {
	for range 20 {
		for _, id := range []string{"k1", "k2"} {
			if err := one.RememberKey(ctx, id, "check"); err != nil {
				t.Fatal(err)
			}
		}
		var wait sync.WaitGroup
		for id, s := range map[string]ringi.Store{"k1": one, "k2": two} {
			wait.Go(func() { s.ForgetKey(ctx, id) })
		}
		wait.Wait()
		if left, err := two.Keys(ctx); err != nil || len(left) != 1 {
			t.Fatalf("the keys are %v, %v; want one", left, err)
		}
	}
}

func leasesBetween(t *testing.T, g *stage, one, two ringi.Store) {
	a, b := g.with(one), g.with(two)
	row := a.begin("run_1", "thr_1", "own_1")
	b.beat("own_2")
	b.refused(claim(row, "own_2"), is(ringi.ErrBusy))
	order(t, "runnable runs", b.canRun())
	g.clock.Add(lease)
	order(t, "runnable runs of a dead owner", b.canRun(), "run_1")
	a.beat("own_1") // it was only slow
	b.beat("own_2")
	b.refused(claim(row, "own_2"), is(ringi.ErrBusy))
	g.clock.Add(lease)
	b.beat("own_2")
	b.commit(claim(row, "own_2", ringi.EventToolStarted))
	a.refused(next(row, ringi.EventToolFinished), is(ringi.ErrLeaseLost))
	a.beat("own_1")
	a.refused(claim(a.row("run_1"), "own_1"), is(ringi.ErrBusy))
	b.commit(release(b.row("run_1"), ringi.Queued))
	a.commit(claim(a.row("run_1"), "own_1"))
	a.holds(t, "run_1", "own_1", 3, 3)
}

// clockBehindTheOther: workers whose clocks differ by ten minutes (S-36). A
// run's time never goes back, and the one behind does not decide by its clock.
func clockBehindTheOther(t *testing.T, g *stage, one, _ ringi.Store) {
	slow := NewClock()
	two := g.another(slow)
	a, b := g.with(one), g.with(two)
	b.clock = slow
	a.ask("run_1", "thr_1", "req_1", "req_2")
	newest := a.row("run_1").UpdatedAt
	slow.Set(newest.Add(-time.Minute))
	b.decide("run_1", approve("req_1", newest))
	if got := a.row("run_1").UpdatedAt; got.Before(newest) {
		t.Errorf("UpdatedAt went back to %s from %s", got, newest)
	}
	slow.Set(newest.Add(-10 * time.Minute))
	c := settle(b.row("run_1"), ringi.EventApprovalDecided)
	c.Changes = []ringi.RequestChange{approve("req_2", newest)}
	b.refused(c, is(ringi.ErrClock))
	a.decide("run_1", approve("req_2", newest))
}

func closeOneOfTwo(t *testing.T, g *stage, one, two ringi.Store) {
	g.with(one).commit(first("run_1", "thr_1"))
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	b := g.with(two)
	b.commit(settle(b.row("run_1"), ringi.EventCancelRequested))
	gapless(t, b, "run_1")
}
