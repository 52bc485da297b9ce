package storetest

import (
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// threads: one open run a thread.
func threads(t *testing.T, o opener) {
	o.run(t, "F53_OneOpenRun", oneOpenRun)
	o.run(t, "EveryOpenStatusBlocks", everyOpenStatusBlocks)
	o.run(t, "BornFinal", bornFinal)
	o.run(t, "ThreadsDoNotMeet", threadsDoNotMeet)
	o.run(t, "Follows", follows)
}

func oneOpenRun(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	second := full(first("run_2", "thr_1"), ringi.RunRow{Space: space, ID: "run_2", Thread: "thr_1"}, "req_1", g.clock.Now())
	g.refused(second, is(ringi.ErrRunOpen))
	g.refused(started("run_2", "thr_1", "own_1"), is(ringi.ErrRunOpen))
	g.commit(release(row, ringi.Failed, ringi.EventRunFinished))
	g.commit(second)
	g.refused(first("run_3", "thr_1"), is(ringi.ErrRunOpen))
	if got := g.row("run_2").Thread; got != "thr_1" {
		t.Errorf("the second run's thread is %q", got)
	}
}

func everyOpenStatusBlocks(t *testing.T, g *stage) {
	for _, s := range everyStatus {
		t.Run(string(s), func(t *testing.T) {
			g := g.in(t)
			row := g.begin("run_"+string(s), "thr_"+string(s), "own_1")
			if s != ringi.Running {
				g.commit(release(row, s))
			}
			c := first("second run_"+string(s), "thr_"+string(s))
			if s.Final() {
				g.commit(c)
				return
			}
			g.refused(c, is(ringi.ErrRunOpen))
		})
	}
	// A run marked corrupt stays open: its thread goes nowhere.
	row := g.begin("run_corrupt", "thr_corrupt", "own_1")
	c := next(row)
	c.Row.Corrupt = "record 1: hash differs"
	g.commit(c)
	g.refused(first("run_after", "thr_corrupt"), is(ringi.ErrRunOpen))
}

func bornFinal(t *testing.T, g *stage) {
	c := first("run_1", "thr_1")
	c.Row.Status = ringi.Completed
	g.commit(c)
	g.commit(first("run_2", "thr_1"))
	c = first("run_3", "thr_1")
	c.Row.Status = ringi.Completed
	g.commit(c) // an import beside an open run: it opens nothing
	g.refused(first("run_4", "thr_1"), is(ringi.ErrRunOpen))
}

func threadsDoNotMeet(t *testing.T, g *stage) {
	g.commit(first("run_1", "thr_1"))
	for i, thread := range []string{"THR_1", "thr_1 ", "thr_", "thr_11", "thr_\u0661"} {
		g.commit(first(string(rune('a'+i)), thread))
		g.refused(first("run_2", thread), is(ringi.ErrRunOpen))
	}
	c := first("run_0", "thr_0") // the other space is there, and so is a thread
	c.Space = "other"
	g.commit(c)
	c = first("run_1", "thr_1")
	c.Space = "other"
	g.commit(c)
	g.commit(first("run_0", "thr_0"))
	c = first("run_2", "thr_1")
	c.Space = "other"
	g.refused(c, is(ringi.ErrRunOpen))
}

// A run that is to follow another is made only where that is the thread's newest.
func follows(t *testing.T, g *stage) {
	after := func(id, newest string) *ringi.Commit {
		c := first(id, "thr_1")
		c.Row.Status, c.Follows = ringi.Completed, newest
		return c
	}
	g.refused(after("run_1", "run_0"), is(ringi.ErrConflict))
	g.commit(after("run_1", ringi.NoRun))
	g.refused(after("run_2", ringi.NoRun), is(ringi.ErrConflict))
	g.commit(first("run_3", "thr_2"))
	g.refused(after("run_2", "run_3"), is(ringi.ErrConflict))
	g.commit(after("run_2", "run_1"))
	g.refused(after("run_4", "run_1"), is(ringi.ErrConflict))
	open := after("run_4", "run_2")
	open.Row.Status = ringi.Queued
	g.commit(open)
	open = after("run_5", "run_4")
	open.Row.Status = ringi.Queued
	g.refused(open, is(ringi.ErrRunOpen))
	other := after("run_1", ringi.NoRun)
	other.Space = "other"
	g.commit(other)
}

func transcripts(t *testing.T, o opener) {
	o.run(t, "EndedRunsInOrder", endedRunsInOrder)
	o.run(t, "OrderUnderOneTime", orderUnderOneTime)
}

func endedRunsInOrder(t *testing.T, g *stage) {
	var want []*ringi.StoredRun
	for _, id := range []string{"run_c", "run_a", "run_b"} {
		row := g.begin(id, "thr_1", "own_1")
		g.commit(next(row, ringi.EventModelResponded))
		status := map[string]ringi.RunStatus{"run_c": ringi.Completed, "run_a": ringi.Failed, "run_b": ringi.Cancelled}[id]
		g.commit(release(g.row(id), status, ringi.EventRunFinished))
		want = append(want, g.load(id))
	}
	g.begin("run_d", "thr_1", "own_1") // still open
	g.commit(release(g.begin("run_e", "thr_2", "own_1"), ringi.Completed, ringi.EventRunFinished))
	g.commit(settle(g.row("run_c"), ringi.EventOutcomeSettled)) // the oldest is touched last
	want[0] = g.load("run_c")
	got, err := g.Transcript(ctx, space, "thr_1")
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d runs, %v; want %d", len(got), err, len(want))
	}
	for i := range got {
		same(t, "the row", got[i].Row, want[i].Row)
		sameRecords(t, got[i].Records, want[i].Records)
	}
}

// orderUnderOneTime: where the clock stands still only the order of making is
// left; neither times nor ids give it.
func orderUnderOneTime(t *testing.T, g *stage) {
	g.beat("own_1")
	names := []string{"run_b", "run_d", "run_a", "run_c"}
	for _, id := range names {
		c := started(id, "thr_1", "own_1")
		c.Release, c.Row.Status = true, ringi.Completed
		if err := g.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := g.Transcript(ctx, space, "thr_1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range runs {
		got = append(got, r.Row.ID)
	}
	order(t, "the transcript's runs", got, names...)
	order(t, "runs", ids(g.runs(ringi.RunQuery{Space: space})), "run_c", "run_a", "run_d", "run_b")
}

func runnable(t *testing.T, o opener) {
	o.run(t, "ByStatus", runnableByStatus)
	o.run(t, "DeadOwners", runnableDeadOwners)
	o.run(t, "Deadlines", runnableDeadlines)
	o.run(t, "OldestFirstOfEverySpace", runnableOldestFirst)
	o.run(t, "ManyHeldBefore", runnableManyHeldBefore)
}

func runnableByStatus(t *testing.T, g *stage) {
	for _, s := range everyStatus {
		row := g.begin("run_"+string(s), "thr_"+string(s), "own_1")
		g.commit(release(row, s))
	}
	// running without an owner is a gate's, between two calls
	order(t, "runnable runs", g.canRun(), "run_queued")
	mark := settle(g.row("run_queued"))
	mark.Row.Corrupt = "hash differs"
	g.commit(mark)
	order(t, "runnable runs once marked", g.canRun())
}

func runnableDeadOwners(t *testing.T, g *stage) {
	g.begin("run_1", "thr_1", "own_1")
	row := g.begin("run_2", "thr_2", "own_2")
	c := next(row)
	c.Row.Status = ringi.Queued // queued, and still held
	g.commit(c)
	marked := next(g.begin("run_3", "thr_3", "own_1"))
	marked.Row.Corrupt = "hash differs"
	g.commit(marked)
	g.commit(release(g.begin("run_4", "thr_4", "own_1"), ringi.Completed, ringi.EventRunFinished))
	held := next(g.begin("run_5", "thr_5", "own_1"))
	held.Row.Status, held.Row.Deadline = ringi.WaitingForApproval, g.clock.Now()
	g.commit(held) // waits past its time, and somebody holds it
	order(t, "runnable runs of living owners", g.canRun())

	start := g.clock.Now()
	g.beat("own_1", "own_2")
	g.clock.Set(start.Add(lease - time.Microsecond))
	order(t, "runnable runs just before the lease's end", g.canRun())
	g.clock.Set(start.Add(lease))
	order(t, "runnable runs of dead owners", g.canRun(), "run_1", "run_2", "run_5")
	g.beat("own_2")
	order(t, "runnable runs once one lives again", g.canRun(), "run_1", "run_5")
	g.commit(claim(g.row("run_1"), "own_2"))
	order(t, "runnable runs once one is taken", g.canRun(), "run_5")
}

func runnableDeadlines(t *testing.T, g *stage) {
	at := g.clock.Now().Add(time.Hour)
	for i, s := range []ringi.RunStatus{ringi.WaitingForInput, ringi.WaitingForApproval, ringi.WaitingForOutcome} {
		c := release(g.begin("run_"+string(s), "thr_"+string(s), "own_1"), s, ringi.EventModelResponded)
		c.Row.Deadline = at.Add(time.Duration(i) * time.Minute)
		g.commit(c)
	}
	g.commit(release(g.begin("run_never", "thr_never", "own_1"), ringi.WaitingForApproval, ringi.EventModelResponded))
	g.clock.Set(at.Add(-time.Microsecond))
	order(t, "runnable runs before the first deadline", g.canRun())
	g.clock.Set(at)
	order(t, "runnable runs at the first", g.canRun(), "run_waiting_for_input")
	g.clock.Set(at.Add(2 * time.Minute))
	order(t, "runnable runs at the last", g.canRun(), "run_waiting_for_input", "run_waiting_for_approval", "run_waiting_for_outcome")
	g.clock.Add(1000 * time.Hour)
	order(t, "runnable runs much later", g.canRun(), "run_waiting_for_input", "run_waiting_for_approval", "run_waiting_for_outcome")
}

func runnableOldestFirst(t *testing.T, g *stage) {
	for _, id := range []string{"run_c", "run_a"} {
		g.commit(first(id, "thread of "+id))
	}
	c := first("run_b", "thread of run_b")
	c.Space = "other"
	g.commit(c)
	g.beat("own_1")
	g.commit(claim(g.row("run_c"), "own_1"))
	g.commit(release(g.row("run_c"), ringi.Queued)) // touched last, oldest still
	rows, err := g.Runnable(ctx, 10)
	if err != nil {
		t.Fatal(err)
	}
	order(t, "runnable runs", ids(rows), "run_c", "run_a", "run_b")
	if rows[2].Space != "other" {
		t.Errorf("the last run is of space %q, want other", rows[2].Space)
	}
	same(t, "the listed row", rows[0], g.row("run_c"))
	rows, _ = g.Runnable(ctx, 2)
	order(t, "two runnable runs", ids(rows), "run_c", "run_a")
}

// runnableManyHeldBefore: a limit counts what is runnable, not what was looked
// at.
func runnableManyHeldBefore(t *testing.T, g *stage) {
	g.beat("own_1")
	for i := range 120 {
		id := string(rune('a'+i%26)) + string(rune('a'+i/26))
		g.commit(started(id, "thread of "+id, "own_1"))
	}
	g.commit(first("run_last", "thr_last"))
	rows, err := g.Runnable(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	order(t, "runnable runs", ids(rows), "run_last")
}
