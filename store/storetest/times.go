package storetest

import (
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// clock holds the store's time (S-36): it never goes back, and it is not
// trusted where it is far behind.
func clock(t *testing.T, o opener) {
	o.run(t, "NowIsTheWallClock", nowIsTheWallClock)
	o.run(t, "S36_NowNeverGoesBack", nowNeverGoesBack)
	o.run(t, "S36_SetBackAfterExpiry", setBackAfterExpiry)
	o.run(t, "S36_FarBehind", farBehind)
	o.run(t, "S36_FarBehindStillRecords", farBehindStillRecords)
}

func (g *stage) now(want time.Time) {
	g.t.Helper()
	if got, err := g.Now(ctx); err != nil || got != want {
		g.t.Errorf("Now is %v, %v; want %v", got, err, want)
	}
}

func nowIsTheWallClock(t *testing.T, g *stage) {
	at := time.Date(2031, 3, 2, 9, 30, 0, 123456789, time.UTC)
	g.clock.Set(at.In(time.FixedZone("", 5*3600)))
	g.now(at.Truncate(time.Microsecond))
	g.clock.Add(-time.Hour) // nothing is recorded: back is back
	g.now(at.Add(-time.Hour).Truncate(time.Microsecond))
}

func nowNeverGoesBack(t *testing.T, g *stage) {
	at := g.clock.Now()
	g.commit(first("run_1", "thr_1"))
	g.now(at.Add(time.Millisecond))
	g.clock.Set(at.Add(-time.Hour))
	g.now(at)
	g.commit(first("run_2", "thr_2"))
	g.commit(settle(g.row("run_1"), ringi.EventCancelRequested))
	if one, two := g.row("run_1"), g.row("run_2"); !one.UpdatedAt.Equal(at) || !two.CreatedAt.Equal(at) || !two.UpdatedAt.Equal(at) {
		t.Errorf("the rows are\n%+v\n%+v, want the newest recorded time %s", one, two, at)
	}
	g.now(at)
	g.clock.Set(at.Add(time.Second))
	g.now(at.Add(time.Second))
	g.commit(settle(g.row("run_1"), ringi.EventCancelRequested))
	if got := g.row("run_1").UpdatedAt; !got.Equal(at.Add(time.Second)) {
		t.Errorf("UpdatedAt is %s, want %s", got, at.Add(time.Second))
	}
	// A heartbeat or an attempt is no recorded time.
	g.clock.Set(at.Add(time.Hour))
	g.beat("own_1")
	g.attempt(space, "run_1", "0")
	g.clock.Set(at.Add(time.Minute))
	g.now(at.Add(time.Minute))
}

// setBackAfterExpiry: what was too late stays too late, and the list says the
// same as the decision. No sweeper runs.
func setBackAfterExpiry(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1", "req_2")
	deadline := g.request("req_1").ExpiresAt
	yes := approve("req_2", g.clock.Now())
	yes.UseBy = deadline
	g.decide("run_1", yes)
	c := settle(g.row("run_1"), ringi.EventCancelRequested)
	c.Row.Deadline = deadline
	g.commit(c)
	row := g.row("run_1")
	c = settle(row, ringi.EventApprovalDecided)
	c.Changes = []ringi.RequestChange{approve("req_1", deadline)}

	g.clock.Set(deadline.Add(time.Second))
	g.commit(first("run_2", "thr_2")) // the newest recorded time is past the deadline
	for _, back := range []time.Duration{time.Second, time.Minute, 2 * time.Minute} {
		g.clock.Set(deadline.Add(time.Second - back))
		g.refused(c, past("req_1", ringi.Pending, deadline))
		g.beat("own_1")
		use := claim(row, "own_1", ringi.EventToolStarted)
		use.Changes = []ringi.RequestChange{spend("req_2")}
		g.refused(use, past("req_2", ringi.Granted, deadline))
		order(t, "pending requests", ids(g.list(ringi.RequestQuery{Space: space})))
		if s := g.request("req_1").State; s != ringi.Expired {
			t.Errorf("req_1 shows as %s, want expired", s)
		}
		order(t, "runnable runs", g.canRun(), "run_1", "run_2")
	}
	g.clock.Set(deadline.Add(-time.Hour))
	g.refused(c, is(ringi.ErrClock))
	order(t, "pending requests", ids(g.list(ringi.RequestQuery{Space: space})))
}

func farBehind(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1", "req_2")
	g.decide("run_1", approve("req_2", g.clock.Now()))
	g.beat("own_1")
	newest := g.clock.Now()
	g.commit(first("run_2", "thr_2"))
	row := g.row("run_1")
	with := func(c *ringi.Commit, changes ...ringi.RequestChange) *ringi.Commit {
		c.Changes = changes
		return c
	}
	blind := func(id string, from, to ringi.RequestState) ringi.RequestChange {
		return ringi.RequestChange{ID: id, From: from, To: to}
	}
	deciding := map[string]*ringi.Commit{
		"claim":            claim(row, "own_1"),
		"first claim":      started("run_3", "thr_3", "own_1"),
		"claim and spend":  with(claim(row, "own_1", ringi.EventToolStarted), spend("req_2")),
		"approve":          with(settle(row, ringi.EventApprovalDecided), approve("req_1", newest)),
		"approve blindly":  with(settle(row, ringi.EventApprovalDecided), blind("req_1", ringi.Pending, ringi.Granted)),
		"deny":             with(settle(row, ringi.EventApprovalDecided), deny("req_1", newest)),
		"deny blindly":     with(settle(row, ringi.EventApprovalDecided), blind("req_1", ringi.Pending, ringi.Refused)),
		"spend blindly":    with(settle(row, ringi.EventRequestClosed), blind("req_2", ringi.Granted, ringi.Spent)),
		"expire":           with(settle(row, ringi.EventRequestClosed), expire("req_1", ringi.Pending)),
		"live withdrawal":  with(settle(row, ringi.EventRequestClosed), ringi.RequestChange{ID: "req_1", From: ringi.Pending, To: ringi.Withdrawn, Live: true}),
		"second of two":    with(settle(row, ringi.EventRequestClosed), blind("req_2", ringi.Granted, ringi.Stale), deny("req_1", newest)),
		"expire by a past": with(settle(row, ringi.EventRequestClosed), ringi.RequestChange{ID: "req_2", From: ringi.Granted, To: ringi.Stale, Past: true}),
	}
	for name, c := range deciding {
		t.Run(name, func(t *testing.T) {
			for _, behind := range []time.Duration{2*time.Minute + time.Microsecond, time.Hour, 1000 * time.Hour} {
				g.clock.Set(newest.Add(-behind))
				of := ringi.RunRow{Space: space, ID: c.RunID, Thread: c.Row.Thread}
				g.in(t).refused(full(c, of, "req_3", newest), is(ringi.ErrClock))
			}
		})
	}
	g.clock.Set(newest.Add(-2 * time.Minute))
	g.commit(with(settle(row, ringi.EventApprovalDecided), approve("req_1", newest)))
	g.clock.Set(newest.Add(-2 * time.Minute))
	g.commit(with(claim(g.row("run_1"), "own_1", ringi.EventToolStarted), spend("req_2")))
}

// farBehindStillRecords: what happened is recorded whatever the clock says, and
// what needs no time goes on.
func farBehindStillRecords(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	g.ask("run_2", "thr_2", "req_1")
	g.clock.Add(-time.Hour)
	g.commit(next(row, ringi.EventToolFinished))
	c := next(g.row("run_1"), ringi.EventApprovalRequested)
	c.Requests = []ringi.RequestRow{asked(row, "req_2", row.UpdatedAt)}
	g.commit(c)
	g.commit(settle(g.row("run_1"), ringi.EventCancelRequested))
	g.commit(release(g.row("run_1"), ringi.Queued))
	c = settle(g.row("run_2"), ringi.EventRequestClosed)
	c.Changes = []ringi.RequestChange{{ID: "req_1", From: ringi.Pending, To: ringi.Withdrawn}}
	g.commit(c)
	g.commit(first("run_3", "thr_3"))
	if s := g.request("req_1").State; s != ringi.Withdrawn {
		t.Errorf("the state is %s, want withdrawn", s)
	}
}
