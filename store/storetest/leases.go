package storetest

import (
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

func leases(t *testing.T, o opener) {
	o.run(t, "ClaimUnowned", claimUnowned)
	o.run(t, "ClaimByTheHolder", claimByTheHolder)
	o.run(t, "ClaimFromTheLiving", claimFromTheLiving)
	o.run(t, "ClaimAtTheLeasesEnd", claimAtTheLeasesEnd)
	o.run(t, "ClaimNeedsAHeartbeat", claimNeedsAHeartbeat)
	o.run(t, "ClaimOfAnEpochThatPassed", claimOfAnEpochThatPassed)
	o.run(t, "AttemptsAndProgress", attemptsAndProgress)
	o.run(t, "OldEpoch", oldEpoch)
	o.run(t, "LostMidStep", lostMidStep)
	o.run(t, "LateOwnerStillCommits", lateOwnerStillCommits)
	o.run(t, "OnlyBeatRenews", onlyBeatRenews)
	o.run(t, "BeatMayShorten", beatMayShorten)
	o.run(t, "OneHeartbeatForAllRuns", oneHeartbeatForAllRuns)
	o.run(t, "Release", releaseFrees)
	o.run(t, "ClaimAndRelease", claimAndRelease)
}

// holds fails unless the run is held so.
func (g *stage) holds(t *testing.T, run, owner string, epoch int64, attempts int) {
	t.Helper()
	if r := g.row(run); r.Owner != owner || r.Epoch != epoch || r.Attempts != attempts {
		t.Errorf("run %s is held by %q at epoch %d with %d attempts, want %q, %d, %d",
			run, r.Owner, r.Epoch, r.Attempts, owner, epoch, attempts)
	}
}

func claimUnowned(t *testing.T, g *stage) {
	g.commit(first("run_1", "thr_1"))
	g.beat("own_1")
	before := g.row("run_1")
	c := claim(before, "own_1")
	now := g.clock.Now()
	g.commit(c)
	want := before
	want.Owner, want.Epoch, want.Attempts, want.Status, want.UpdatedAt = "own_1", 1, 1, ringi.Running, now
	same(t, "the claimed row", g.row("run_1"), want)
	c = next(g.row("run_1"), ringi.EventModelResponded)
	g.commit(c)
	g.holds(t, "run_1", "own_1", 1, 1)
}

func claimByTheHolder(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	g.commit(claim(row, "own_1", ringi.EventToolStarted))
	g.holds(t, "run_1", "own_1", 2, 2)
	g.refused(next(row, ringi.EventToolFinished), is(ringi.ErrLeaseLost)) // the epoch before
}

func claimFromTheLiving(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	g.beat("own_2")
	g.refused(full(claim(row, "own_2"), row, "req_1", g.clock.Now()), is(ringi.ErrBusy))
	g.refused(claim(row, "own_2", ringi.EventToolStarted), is(ringi.ErrBusy))
	row.Seq = 7
	g.refused(claim(row, "own_2", ringi.EventToolStarted), is(ringi.ErrBusy)) // before the conflict
	g.holds(t, "run_1", "own_1", 1, 1)
}

func claimAtTheLeasesEnd(t *testing.T, g *stage) {
	g.beat("own_1")
	end := g.clock.Now().Add(lease)
	g.commit(started("run_1", "thr_1", "own_1"))
	row := g.row("run_1")
	g.clock.Set(end.Add(-time.Microsecond))
	g.beat("own_2")
	g.refused(claim(row, "own_2"), is(ringi.ErrBusy))
	g.clock.Set(end)
	g.commit(claim(row, "own_2"))
	g.holds(t, "run_1", "own_2", 2, 2)
	g.refused(claim(g.row("run_1"), "own_1"), is(ringi.ErrBusy))
}

func claimNeedsAHeartbeat(t *testing.T, g *stage) {
	g.commit(first("run_1", "thr_1"))
	row := g.row("run_1")
	g.refused(claim(row, "own_1"), is(ringi.ErrLeaseLost))
	g.beat("own_1")
	g.clock.Add(lease)
	g.refused(claim(row, "own_1"), is(ringi.ErrLeaseLost))
	g.beat("own_1")
	g.commit(claim(row, "own_1"))
	g.clock.Add(lease)
	g.refused(claim(g.row("run_1"), "own_1"), is(ringi.ErrLeaseLost)) // the holder too
	if err := g.Beat(ctx, "", lease); err == nil {
		t.Error("a heartbeat without an owner was taken")
	}
}

// claimOfAnEpochThatPassed: two activations of one owner read the same row;
// the second claim has no effect on the first.
func claimOfAnEpochThatPassed(t *testing.T, g *stage) {
	g.commit(first("run_1", "thr_1"))
	g.beat("own_1")
	row := g.row("run_1")
	g.commit(claim(row, "own_1"))
	g.refused(claim(row, "own_1"), is(ringi.ErrConflict))
	ahead := g.row("run_1")
	ahead.Epoch = 5
	g.refused(claim(ahead, "own_1"), is(ringi.ErrConflict))
	g.holds(t, "run_1", "own_1", 1, 1)
}

func attemptsAndProgress(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	for n := 2; n <= 4; n++ {
		g.commit(claim(row, "own_1"))
		g.holds(t, "run_1", "own_1", int64(n), n)
		row = g.row("run_1")
	}
	g.commit(next(row, ringi.EventToolStarted))
	g.holds(t, "run_1", "own_1", 4, 4) // a start is no progress
	g.decideNothing("run_1")
	g.holds(t, "run_1", "own_1", 4, 4) // nor is a settler's word
	c := next(g.row("run_1"), ringi.EventToolFinished)
	c.Progress = true
	g.commit(c)
	g.holds(t, "run_1", "own_1", 4, 0)
	g.commit(claim(g.row("run_1"), "own_1"))
	g.holds(t, "run_1", "own_1", 5, 1)
	c = claim(g.row("run_1"), "own_1", ringi.EventModelResponded)
	c.Progress = true
	g.commit(c)
	g.holds(t, "run_1", "own_1", 6, 0)
}

// decideNothing makes a settler's commit that changes no request.
func (g *stage) decideNothing(run string) {
	g.t.Helper()
	g.commit(settle(g.row(run), ringi.EventCancelRequested))
}

func oldEpoch(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	for name, change := range map[string]func(*ringi.RunRow){
		"epoch before":  func(r *ringi.RunRow) { r.Epoch = 0 },
		"epoch to come": func(r *ringi.RunRow) { r.Epoch = 2 },
		"another owner": func(r *ringi.RunRow) { r.Owner = "own_2" },
		"longer owner":  func(r *ringi.RunRow) { r.Owner = "own_1 " },
		"letter case":   func(r *ringi.RunRow) { r.Owner = "OWN_1" },
		"no owner":      func(r *ringi.RunRow) { r.Owner = "" },
	} {
		t.Run(name, func(t *testing.T) {
			g, r := g.in(t), row
			change(&r)
			g.refused(full(next(r, ringi.EventToolFinished), row, "req_1", g.clock.Now()), is(ringi.ErrLeaseLost))
			g.refused(release(r, ringi.Queued), is(ringi.ErrLeaseLost))
			r.Seq++ // a lost lease is told before a conflict
			g.refused(next(r, ringi.EventToolFinished), is(ringi.ErrLeaseLost))
		})
	}
}

// lostMidStep: an owner freezes between start and finish, another takes the
// run, and what the first has left is evidence beside the chain.
func lostMidStep(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	g.commit(next(row, ringi.EventToolStarted))
	frozen := g.row("run_1")
	g.clock.Add(lease)
	g.beat("own_2")
	g.commit(claim(frozen, "own_2", ringi.EventOutcomeUnknown))
	g.beat("own_1")
	g.refused(full(next(frozen, ringi.EventToolFinished), frozen, "req_1", g.clock.Now()), is(ringi.ErrLeaseLost))
	g.refused(next(frozen), is(ringi.ErrLeaseLost))
	late := ringi.Attempt{Space: space, RunID: "run_1", CallID: "call_1", Kind: "late_result", At: g.clock.Now()}
	if err := g.Attempt(ctx, late); err != nil {
		t.Fatal(err)
	}
	recs := g.load("run_1").Records
	if len(recs) != 3 || recs[2].Kind != ringi.EventOutcomeUnknown {
		t.Errorf("the log has %d records, want the three of before", len(recs))
	}
	g.holds(t, "run_1", "own_2", 2, 2)
}

// lateOwnerStillCommits: a heartbeat that ended is no lost lease while nobody
// took the run.
func lateOwnerStillCommits(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	g.clock.Add(10 * lease)
	g.commit(next(row, ringi.EventToolFinished))
	g.holds(t, "run_1", "own_1", 1, 1)
}

func onlyBeatRenews(t *testing.T, g *stage) {
	g.beat("own_1")
	start := g.clock.Now()
	g.commit(started("run_1", "thr_1", "own_1"))
	g.clock.Set(start.Add(lease - time.Second))
	g.commit(next(g.row("run_1"), ringi.EventModelResponded))
	g.beat("own_2")
	g.clock.Set(start.Add(lease))
	g.commit(claim(g.row("run_1"), "own_2"))
	g.clock.Set(start.Add(lease + 10*time.Second))
	g.beat("own_2")
	g.clock.Add(lease - time.Microsecond)
	g.beat("own_1")
	g.refused(claim(g.row("run_1"), "own_1"), is(ringi.ErrBusy))
}

func beatMayShorten(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	if err := g.Beat(ctx, "own_1", time.Second); err != nil {
		t.Fatal(err)
	}
	g.beat("own_2")
	g.refused(claim(row, "own_2"), is(ringi.ErrBusy))
	g.clock.Add(time.Second)
	g.commit(claim(row, "own_2"))
	row = g.row("run_1")
	g.beat("own_1")
	for _, d := range []time.Duration{0, -time.Hour} {
		g.beat("own_2")
		g.refused(claim(row, "own_1"), is(ringi.ErrBusy))
		if err := g.Beat(ctx, "own_2", d); err != nil {
			t.Fatalf("a lease of %s: %v", d, err)
		}
		order(t, "runnable runs", g.canRun(), "run_1")
	}
	g.commit(claim(row, "own_1"))
}

func oneHeartbeatForAllRuns(t *testing.T, g *stage) {
	one := g.begin("run_1", "thr_1", "own_1")
	two := g.begin("run_2", "thr_2", "own_1")
	g.beat("own_2")
	g.refused(claim(one, "own_2"), is(ringi.ErrBusy))
	g.clock.Add(lease - time.Second)
	g.beat("own_1", "own_2")
	g.clock.Add(lease - time.Second)
	g.refused(claim(one, "own_2"), is(ringi.ErrBusy))
	g.refused(claim(two, "own_2"), is(ringi.ErrBusy))
	g.clock.Add(time.Second)
	g.beat("own_2")
	g.commit(claim(one, "own_2"))
	g.commit(claim(two, "own_2"))
}

func releaseFrees(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	g.commit(release(row, ringi.Queued, ringi.EventToolFinished))
	g.holds(t, "run_1", "", 1, 1)
	g.refused(next(row, ringi.EventToolFinished), is(ringi.ErrLeaseLost))
	g.beat("own_2") // the first owner is alive, and holds nothing
	g.commit(claim(g.row("run_1"), "own_2"))
	g.holds(t, "run_1", "own_2", 2, 2)
}

// claimAndRelease: a gate takes the run for one commit.
func claimAndRelease(t *testing.T, g *stage) {
	g.commit(first("run_1", "thr_1"))
	g.beat("own_1")
	c := claim(g.row("run_1"), "own_1", ringi.EventCallJudged)
	c.Release, c.Progress = true, true
	g.commit(c)
	g.holds(t, "run_1", "", 1, 0)
	row := g.begin("run_2", "thr_2", "own_1")
	g.beat("own_2")
	c = claim(row, "own_2", ringi.EventCallJudged)
	c.Release = true
	g.refused(c, is(ringi.ErrBusy))
}
