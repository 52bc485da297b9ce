package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// accepted holds what an accepted clock means (S-36): time goes on from the
// wall clock, in this store and in every other one that is open on the data.
func accepted(t *testing.T, o opener) {
	o.run(t, "S36_AcceptedClock", acceptedClock)
	o.run(t, "S36_NothingToAccept", nothingToAccept)
	o.run(t, "S36_AcceptedDeadlines", acceptedDeadlines)
	o.run(t, "S36_AcceptedHeartbeats", acceptedHeartbeats)
	o.run(t, "S36_AcceptedIsKept", acceptedIsKept)
	o.run(t, "S36_AcceptedGoesOnlyOn", acceptedGoesOnlyOn)
	t.Run("S36_AcceptedByAnotherProcess", func(t *testing.T) {
		if !o.features.Shared {
			t.Skip("the store is opened once")
		}
		acceptedElsewhere(t, o.stage(t))
	})
}

// ahead records a time that is a year ahead, in a run of its own, and puts the
// clock right. It returns both times.
func (g *stage) ahead(run string) (right, wrong time.Time) {
	g.t.Helper()
	right = g.clock.Now()
	wrong = right.Add(365 * 24 * time.Hour)
	g.clock.Set(wrong)
	g.commit(first(run, "thread of "+run))
	g.clock.Set(right)
	return right, wrong
}

// accept accepts the clock, which must be refused until then.
func (g *stage) accept(by, reason string) ringi.ClockCorrection {
	g.t.Helper()
	if c, err := g.Clock(ctx); err != nil || !c.Refuses {
		g.t.Fatalf("the clock is %+v, %v; want one that refuses", c, err)
	}
	c, err := g.AcceptClock(ctx, by, reason)
	if err != nil {
		g.t.Fatalf("accept clock: %v", err)
	}
	return c
}

func acceptedClock(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1")
	right, wrong := g.ahead("run_2")
	c := settle(g.row("run_1"), ringi.EventApprovalDecided)
	c.Changes = []ringi.RequestChange{approve("req_1", right)}
	g.refused(c, is(ringi.ErrClock))
	clock, err := g.Clock(ctx)
	if want := (ringi.StoreClock{Wall: right, Newest: wrong, Refuses: true}); err != nil {
		t.Fatal(err)
	} else {
		same(t, "the clock", clock, want)
	}

	want := ringi.ClockCorrection{By: "ana", Reason: "the \u202e battery", At: right, Newest: wrong}
	same(t, "the correction", g.accept("ana", "the \u202e battery"), want)
	g.now(right)
	if got := g.row("run_2"); !got.UpdatedAt.Equal(right) || !got.CreatedAt.Equal(wrong) {
		t.Errorf("the row of run_2 is %+v, want it updated at %s, made at %s", got, right, wrong)
	}
	if got := g.row("run_1").UpdatedAt; !got.Before(right) {
		t.Errorf("run_1 is updated at %s, want its own time", got)
	}
	g.commit(c)
	for _, run := range []string{"run_1", "run_2"} { // of the right time, and of the wrong one
		g.clock.Add(time.Second)
		at := g.clock.Now()
		g.beat("own_1")
		g.commit(claim(g.row(run), "own_1", ringi.EventToolStarted))
		if got := g.row(run).UpdatedAt; !got.Equal(at) {
			t.Errorf("%s is updated at %s, want %s", run, got, at)
		}
	}
	if clock, err := g.Clock(ctx); err != nil || clock.Refuses || !clock.Newest.Equal(g.row("run_2").UpdatedAt) {
		t.Errorf("the clock is %+v, %v", clock, err)
	}
}

func nothingToAccept(t *testing.T, g *stage) {
	refuse := func(what string) {
		t.Helper()
		before, err := g.Clock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, err = g.AcceptClock(ctx, "ana", "")
		if complaint := plain(err); complaint != "" {
			t.Errorf("%s: %s", what, complaint)
		}
		after, err := g.Clock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the clock", after, before)
	}
	refuse("an empty store")
	g.commit(first("run_1", "thr_1"))
	refuse("a right clock")
	newest := g.row("run_1").UpdatedAt
	g.clock.Set(newest.Add(-2 * time.Minute))
	refuse("a clock that is two minutes behind")
	g.now(newest)
	g.clock.Add(-time.Microsecond)
	g.accept("ana", "")
	refuse("an accepted clock")
	g.now(newest.Add(-2*time.Minute - time.Microsecond))
}

// acceptedDeadlines: what was late by the wrong clock alone is in time again,
// what was recorded as expired stays so, and list and decision agree.
func acceptedDeadlines(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1", "req_2")
	deadline := g.request("req_1").ExpiresAt
	right, wrong := g.clock.Now(), deadline.Add(time.Hour)
	g.clock.Set(wrong)
	late := settle(g.row("run_1"), ringi.EventRequestClosed)
	late.Changes = []ringi.RequestChange{expire("req_2", ringi.Pending)}
	g.commit(late)
	order(t, "pending requests", ids(g.list(ringi.RequestQuery{Space: space})))
	g.clock.Set(right)
	order(t, "pending requests of a clock that is not trusted", ids(g.list(ringi.RequestQuery{Space: space})))
	g.accept("ana", "")
	order(t, "pending requests", ids(g.list(ringi.RequestQuery{Space: space})), "req_1")
	if s := g.request("req_2").State; s != ringi.Expired {
		t.Errorf("req_2 is %s, want expired", s)
	}
	c := settle(g.row("run_1"), ringi.EventRequestClosed)
	c.Changes = []ringi.RequestChange{expire("req_1", ringi.Pending)}
	g.refused(c, past("req_1", ringi.Pending, deadline))
	g.clock.Set(deadline)
	order(t, "pending requests at the deadline", ids(g.list(ringi.RequestQuery{Space: space})))
	c = settle(g.row("run_1"), ringi.EventApprovalDecided)
	c.Changes = []ringi.RequestChange{approve("req_1", deadline)}
	g.refused(c, past("req_1", ringi.Pending, deadline))
}

// acceptedHeartbeats: a dead owner does not keep its run for a year.
func acceptedHeartbeats(t *testing.T, g *stage) {
	right := g.clock.Now()
	g.clock.Set(right.Add(365 * 24 * time.Hour))
	row := g.begin("run_1", "thr_1", "own_1")
	g.clock.Set(right)
	g.accept("ana", "")
	g.beat("own_2")
	g.refused(claim(row, "own_2"), is(ringi.ErrBusy)) // it may live
	g.clock.Set(right.Add(2*time.Minute - time.Microsecond))
	order(t, "runnable runs", g.canRun())
	g.clock.Set(right.Add(2 * time.Minute))
	order(t, "runnable runs", g.canRun(), "run_1")
	g.beat("own_2")
	g.commit(claim(g.row("run_1"), "own_2"))
}

// acceptedIsKept: corrections are there as they came, across a restart.
func acceptedIsKept(t *testing.T, g *stage) {
	var want []ringi.ClockCorrection
	for i := range 3 {
		g.ahead(fmt.Sprint("run_", i))
		want = append(want, g.accept("ana", fmt.Sprint("reason ", i)))
	}
	right := g.clock.Now()
	check := func() {
		t.Helper()
		g.now(right)
		c, err := g.Clock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the clock", c, ringi.StoreClock{Wall: right, Newest: right, Corrections: want})
	}
	check()
	if c, err := g.Clock(ctx); err == nil && len(c.Corrections) > 0 {
		c.Corrections[0].By = "changed" // a copy
	}
	check()
	if o := g.o; o.features.Durable {
		g.restart()
		check()
	}
	for i := 3; i < 110; i++ {
		g.ahead(fmt.Sprint("run_", i))
		want = append(want, g.accept("ana", ""))
	}
	c, err := g.Clock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the last corrections", c.Corrections, want[10:])
}

// acceptedGoesOnlyOn: from the accepted time on the clock goes forward only.
func acceptedGoesOnlyOn(t *testing.T, g *stage) {
	right, _ := g.ahead("run_1")
	g.accept("ana", "")
	g.clock.Set(right.Add(-time.Minute))
	g.now(right)
	g.clock.Set(right.Add(time.Hour))
	g.commit(settle(g.row("run_1"), ringi.EventCancelRequested))
	g.clock.Set(right)
	g.now(right.Add(time.Hour))
	g.beat("own_1")
	g.refused(started("run_2", "thr_2", "own_1"), is(ringi.ErrClock))
}

// acceptedElsewhere: a process that has seen the later time heeds what another
// one accepts, before it records or tells anything.
func acceptedElsewhere(t *testing.T, g *stage) {
	calls := map[string]func(b *stage, right time.Time){
		"Now": func(b *stage, right time.Time) { b.now(right) },
		"Clock": func(b *stage, right time.Time) {
			if c, err := b.Clock(ctx); err != nil || c.Refuses {
				t.Errorf("the clock is %+v, %v", c, err)
			}
		},
		"Commit": func(b *stage, right time.Time) {
			b.commit(settle(b.row("run_1"), ringi.EventCancelRequested))
			if got := b.row("run_1").UpdatedAt; !got.Equal(right) {
				t.Errorf("UpdatedAt is %s, want %s", got, right)
			}
		},
		"Claim": func(b *stage, right time.Time) {
			b.beat("own_1")
			b.commit(claim(b.row("run_1"), "own_1"))
			b.commit(release(b.row("run_1"), ringi.Queued))
		},
		"Beat": func(b *stage, right time.Time) {
			b.beat("own_2")
			b.clock.Set(right.Add(lease))
			b.refused(claim(b.row("run_1"), "own_2"), is(ringi.ErrLeaseLost))
		},
		"Requests": func(b *stage, right time.Time) {
			order(t, "pending requests", ids(b.list(ringi.RequestQuery{Space: space})), "req_1")
		},
		"Request": func(b *stage, right time.Time) {
			if s := b.request("req_1").State; s != ringi.Pending {
				t.Errorf("req_1 is %s, want pending", s)
			}
		},
		"AcceptClock": func(b *stage, right time.Time) {
			if _, err := b.AcceptClock(ctx, "ben", ""); plain(err) != "" {
				t.Errorf("accepted again: %v", err)
			}
		},
	}
	g.ask("run_1", "thr_1")
	g.ask("run_2", "thr_2", "req_1")
	start := g.clock.Now()
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			b := g.with(g.another(nil)).in(t)
			g.clock.Set(start)
			b.ahead("of " + name) // b has seen the later time
			b.beat("own_1")
			b.refused(claim(b.row("run_1"), "own_1"), is(ringi.ErrClock))
			g.in(t).accept("ana", "")
			call(b, start)
			start = start.Add(time.Minute)
			if err := b.Close(); err != nil { // it leaves no later time behind
				t.Fatal(err)
			}
			g.clock.Set(start)
			last := g.with(g.another(nil)).in(t)
			last.now(start)
			last.Close()
		})
	}
}
