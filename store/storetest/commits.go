package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

func commits(t *testing.T, o opener) {
	o.run(t, "FirstMakesTheRun", firstMakesTheRun)
	o.run(t, "FirstClaims", firstClaims)
	o.run(t, "FirstTwice", func(t *testing.T, g *stage) {
		g.commit(first("run_1", "thr_1"))
		g.refused(first("run_1", "thr_1"), is(ringi.ErrConflict))
		g.refused(first("run_1", "thr_2"), is(ringi.ErrConflict))
	})
	o.run(t, "SequenceIsGapless", sequenceIsGapless)
	o.run(t, "ConflictWritesNothing", conflictWritesNothing)
	o.run(t, "SeqMustContinue", seqMustContinue)
	o.run(t, "UnknownRun", func(t *testing.T, g *stage) {
		row := g.begin("run_1", "thr_1", "own_1")
		row.ID = "run_9"
		g.refused(next(row, ringi.EventToolStarted), is(ringi.ErrNotFound))
		g.refused(settle(row, ringi.EventCancelRequested), is(ringi.ErrNotFound))
	})
	o.run(t, "Shape", commitShape)
	o.run(t, "FirstColumnsStay", firstColumnsStay)
	o.run(t, "WithoutRecords", withoutRecords)
	o.run(t, "EmptyStatusKeeps", emptyStatusKeeps)
	o.run(t, "CorruptMark", corruptMark)
	o.run(t, "EndedStaysEnded", endedStaysEnded)
	o.run(t, "AllOrNothing", allOrNothing)
	o.run(t, "Wake", wake)
	o.run(t, "TheCommitIsOnlyRead", commitIsOnlyRead)
}

func firstMakesTheRun(t *testing.T, g *stage) {
	c := first("run_1", "thr_1")
	c.Records = records(0, ringi.EventRunStarted, ringi.EventModelResponded)
	c.Row.Parent, c.Row.Reason = "run_0", ringi.ReasonMaxSteps
	c.Row.Deadline = g.clock.Now().Add(time.Hour)
	headed(c)
	now := g.clock.Now()
	g.commit(c)
	want := ringi.RunRow{
		Space: space, ID: "run_1", Thread: "thr_1", Agent: "clerk", Parent: "run_0",
		Status: ringi.Queued, Reason: ringi.ReasonMaxSteps, Seq: 2, Head: c.Row.Head, MAC: c.Row.MAC,
		Deadline: c.Row.Deadline, CreatedAt: now, UpdatedAt: now,
	}
	same(t, "the row", g.row("run_1"), want)
	run := g.load("run_1")
	same(t, "the loaded row", run.Row, want)
	sameRecords(t, run.Records, c.Records)
}

func firstClaims(t *testing.T, g *stage) {
	g.refused(started("run_1", "thr_1", "own_1"), is(ringi.ErrLeaseLost)) // it never beat
	g.beat("own_1")
	unclaimed := started("run_1", "thr_1", "own_1")
	unclaimed.Claim = false
	g.refused(unclaimed, is(ringi.ErrLeaseLost))
	later := started("run_1", "thr_1", "own_1")
	later.Epoch = 4
	g.refused(later, is(ringi.ErrConflict))
	g.commit(started("run_1", "thr_1", "own_1"))
	row := g.row("run_1")
	if row.Owner != "own_1" || row.Epoch != 1 || row.Attempts != 1 || row.Status != ringi.Running {
		t.Errorf("the row is %+v, want own_1 at epoch 1 with one attempt, running", row)
	}
}

func sequenceIsGapless(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	want := g.load("run_1").Records
	for n := 1; n <= 5; n++ {
		kinds := []ringi.EventKind{ringi.EventModelResponded, ringi.EventToolStarted, ringi.EventToolFinished}[:1+n%3]
		c := next(row, kinds...)
		now := g.clock.Now()
		g.commit(c)
		want = append(want, c.Records...)
		row = g.row("run_1")
		if row.Seq != int64(len(want)) || row.Head != c.Row.Head || row.MAC != c.Row.MAC || !row.UpdatedAt.Equal(now) {
			t.Fatalf("the row is %+v, want Seq %d, the newest head and MAC, and time %s", row, len(want), now)
		}
	}
	run := g.load("run_1")
	sameRecords(t, run.Records, want)
	for i, r := range run.Records {
		if r.Seq != int64(i)+1 {
			t.Errorf("record %d has Seq %d", i+1, r.Seq)
		}
	}
}

// full adds everything that a commit can carry, so that a test can look for
// what a refused one left behind.
func full(c *ringi.Commit, row ringi.RunRow, id string, at time.Time) *ringi.Commit {
	c.Requests = []ringi.RequestRow{asked(row, id+"_a", at), asked(row, id+"_b", at)}
	c.Tools = map[string][]byte{"digest of " + id: []byte(`{"name":"pay"}`)}
	c.Wake = true
	return c
}

func conflictWritesNothing(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1")
	for name, c := range map[string]*ringi.Commit{
		"settler": settle(row, ringi.EventApprovalDecided),
		"claim":   claim(row, "own_1", ringi.EventToolStarted),
	} {
		g.beat("own_1")
		for _, off := range []int64{-2, -1, 1, 7} {
			t.Run(fmt.Sprintf("%s%+d", name, off), func(t *testing.T) {
				c := *c
				c.Expect += off
				c.Records = records(c.Expect, c.Records[0].Kind)
				c.Changes = []ringi.RequestChange{approve("req_1", g.clock.Now())}
				g.in(t).refused(full(&c, row, "req_2", g.clock.Now()), is(ringi.ErrConflict))
			})
		}
	}
	held := g.begin("run_2", "thr_2", "own_2")
	g.commit(settle(held, ringi.EventCancelRequested))
	g.refused(full(next(held, ringi.EventToolFinished), held, "req_3", g.clock.Now()), is(ringi.ErrConflict))
}

func seqMustContinue(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	for name, seqs := range map[string][]int64{
		"gap": {3}, "again": {1}, "zero": {0}, "second gap": {2, 4}, "second again": {2, 2}, "turned": {3, 2},
		"from zero": {0, 1}, "negative": {-1},
	} {
		c := next(row, make([]ringi.EventKind, len(seqs))...)
		for i, s := range seqs {
			c.Records[i].Seq, c.Records[i].Kind = s, ringi.EventToolStarted
		}
		t.Run(name, func(t *testing.T) { g.in(t).refused(c, plain) })
	}
	c := first("run_2", "thr_2")
	c.Records[0].Seq = 2
	g.refused(c, plain)
	c = first("run_2", "thr_2")
	c.Expect, c.Records[0].Seq = -1, 0
	g.refused(c, plain)
}

func commitShape(t *testing.T, g *stage) {
	held := g.begin("run_1", "thr_1", "own_1")
	waiting := g.ask("run_2", "thr_2", "req_1")
	change := func(c *ringi.Commit, f func(c *ringi.Commit)) *ringi.Commit {
		f(c)
		return c
	}
	both := approve("req_1", g.clock.Now())
	both.Past = true
	for name, c := range map[string]*ringi.Commit{
		"no space":              change(first("run_3", "thr_3"), func(c *ringi.Commit) { c.Space = "" }),
		"no run":                change(first("run_3", "thr_3"), func(c *ringi.Commit) { c.RunID = "" }),
		"first without records": change(first("run_3", "thr_3"), func(c *ringi.Commit) { c.Records = nil }),
		"first without thread":  change(first("run_3", "thr_3"), func(c *ringi.Commit) { c.Row.Thread = "" }),
		"first without status":  change(first("run_3", "thr_3"), func(c *ringi.Commit) { c.Row.Status = "" }),
		"first by a settler": change(first("run_3", "thr_3"), func(c *ringi.Commit) {
			c.Settle, c.Records[0].Kind = true, ringi.EventCancelRequested
		}),
		"claim without owner": change(claim(waiting, "own_1"), func(c *ringi.Commit) { c.Owner = "" }),
		"live and past": change(settle(waiting, ringi.EventApprovalDecided), func(c *ringi.Commit) {
			c.Changes = []ringi.RequestChange{both}
		}),
		"settler with owner":   change(settle(held, ringi.EventCancelRequested), func(c *ringi.Commit) { c.Owner, c.Epoch = "own_1", 1 }),
		"settler that claims":  change(settle(waiting, ringi.EventCancelRequested), func(c *ringi.Commit) { c.Claim = true }),
		"owned settler claims": change(claim(waiting, "own_1", ringi.EventCancelRequested), func(c *ringi.Commit) { c.Settle = true }),
		"settler releases":     change(settle(held, ringi.EventCancelRequested), func(c *ringi.Commit) { c.Release = true }),
		"settler progresses":   change(settle(held, ringi.EventCancelRequested), func(c *ringi.Commit) { c.Progress = true }),
		"settler sets running": change(settle(waiting, ringi.EventCancelRequested), func(c *ringi.Commit) { c.Row.Status = ringi.Running }),
		"settler read running": change(settle(held, ringi.EventCancelRequested), func(c *ringi.Commit) { c.Row.Status = ringi.Running }),
		"settler ends a run":   change(settle(waiting, ringi.EventCancelRequested), func(c *ringi.Commit) { c.Row.Status = ringi.Cancelled }),
		"settler ends a held":  change(settle(held, ringi.EventCancelRequested), func(c *ringi.Commit) { c.Row.Status = ringi.Failed }),
	} {
		t.Run(name, func(t *testing.T) { g.in(t).refused(c, plain) })
	}
}

func firstColumnsStay(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	c := next(row, ringi.EventModelResponded)
	c.Row.Thread, c.Row.Agent, c.Row.Parent = "thr_9", "another", "run_9"
	// The store fills these in, whatever a caller writes there.
	c.Row.Space, c.Row.ID, c.Row.Seq, c.Row.Owner, c.Row.Epoch, c.Row.Attempts = "x", "x", 77, "x", 77, 77
	c.Row.CreatedAt, c.Row.UpdatedAt = time.Unix(1, 0), time.Unix(2, 0)
	want := row
	want.Seq, want.Head, want.MAC, want.UpdatedAt = 2, c.Row.Head, c.Row.MAC, g.clock.Now()
	g.commit(c)
	same(t, "the row", g.row("run_1"), want)
}

func withoutRecords(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	c := release(row, ringi.WaitingForInput)
	c.Row.Head, c.Row.MAC = [32]byte{1}, "another"
	c.Row.Deadline = g.clock.Now().Add(time.Hour)
	want := row
	want.Owner, want.Status, want.Deadline, want.UpdatedAt = "", ringi.WaitingForInput, c.Row.Deadline, g.clock.Now()
	g.commit(c)
	same(t, "the row", g.row("run_1"), want)
	sameRecords(t, g.load("run_1").Records, first("run_1", "thr_1").Records)
}

func emptyStatusKeeps(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	c := next(row)
	c.Row.Reason, c.Row.Deadline = ringi.ReasonMaxSteps, g.clock.Now().Add(time.Hour)
	g.commit(c)
	row = g.row("run_1")
	keep := next(row, ringi.EventModelResponded)
	keep.Row.Status, keep.Row.Reason, keep.Row.Deadline = "", ringi.ReasonPoisoned, time.Time{}
	g.commit(keep)
	got := g.row("run_1")
	if got.Status != row.Status || got.Reason != row.Reason || !got.Deadline.Equal(row.Deadline) {
		t.Errorf("an empty status changed the row to %+v from %+v", got, row)
	}
}

// F128: a run whose log does not verify is marked, and nothing goes into it.
func corruptMark(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1")
	mark := settle(row)
	mark.Row.Corrupt = "record 2: hash differs"
	g.commit(mark)
	marked := g.row("run_1")
	if marked.Corrupt != "record 2: hash differs" || marked.Seq != row.Seq || marked.Status != row.Status {
		t.Fatalf("the marked row is %+v", marked)
	}
	g.beat("own_1")
	decided := settle(marked, ringi.EventApprovalDecided)
	decided.Changes = []ringi.RequestChange{approve("req_1", g.clock.Now())}
	g.refused(decided, is(ringi.ErrCorrupt))
	g.refused(claim(marked, "own_1"), is(ringi.ErrCorrupt))
	g.refused(claim(marked, "own_1", ringi.EventToolStarted), is(ringi.ErrCorrupt))
	clear := settle(marked)
	clear.Row.Corrupt = ""
	g.commit(clear)
	if got := g.row("run_1").Corrupt; got != marked.Corrupt {
		t.Errorf("the mark is %q after a commit without one, want %q", got, marked.Corrupt)
	}

	held := g.begin("run_2", "thr_2", "own_2")
	c := next(held)
	c.Row.Corrupt = "record 1: MAC differs"
	g.commit(c)
	held = g.row("run_2")
	g.refused(next(held, ringi.EventToolFinished), is(ringi.ErrCorrupt))
	g.commit(release(held, ringi.Queued))
	if got := g.row("run_2"); got.Owner != "" || got.Corrupt == "" {
		t.Errorf("the released row is %+v, want no owner and the mark", got)
	}
}

// F33: an ended run is not resumed.
func endedStaysEnded(t *testing.T, g *stage) {
	g.commit(release(g.begin("run_1", "thr_1", "own_1"), ringi.Completed, ringi.EventRunFinished))
	row := g.row("run_1")
	for _, s := range everyStatus {
		if s == ringi.Completed {
			continue
		}
		c := claim(row, "own_1", ringi.EventToolStarted)
		c.Row.Status = s
		g.refused(c, is(ringi.ErrFinal))
	}
	// What does not move it may be written: a run is erased when it has ended.
	c := claim(row, "own_1", ringi.EventRunErased)
	c.Release, c.Row.Status = true, ringi.Completed
	g.commit(c)
	if got := g.row("run_1"); got.Status != ringi.Completed || got.Seq != row.Seq+1 || got.Owner != "" {
		t.Errorf("the row is %+v, want completed, one record more and no owner", got)
	}
}

func allOrNothing(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1", "req_2")
	c := settle(row, ringi.EventApprovalDecided, ringi.EventApprovalDecided)
	c.Row.Status = ringi.Queued
	c.Changes = []ringi.RequestChange{approve("req_1", g.clock.Now()), spend("req_2")}
	g.refused(full(c, row, "req_3", g.clock.Now()), inState("req_2", ringi.Pending))

	c.Changes = c.Changes[:1]
	c.Requests = append(c.Requests, asked(row, "req_1", g.clock.Now()))
	g.refused(c, plain)

	c.Requests = c.Requests[:2]
	g.commit(c)
	got, err := g.Tool(ctx, "digest of req_3")
	if err != nil || string(got) != `{"name":"pay"}` {
		t.Errorf("the tool is %q, %v", got, err)
	}
	order(t, "pending requests", ids(g.list(ringi.RequestQuery{Space: space})), "req_2", "req_3_a", "req_3_b")
	if s := g.request("req_1").State; s != ringi.Granted {
		t.Errorf("req_1 is %s, want approved", s)
	}
}

func wake(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1")
	c := settle(row, ringi.EventApprovalDecided)
	c.Row.Status, c.Wake = ringi.Queued, true
	late := *c
	g.commit(c)
	g.refused(&late, is(ringi.ErrConflict))
	g.commit(settle(g.row("run_1"), ringi.EventCancelRequested))
	if !g.o.features.Wake {
		return // what is left to see is that Wake does no harm
	}
	order(t, "woken runs", g.woken.list(), space+"/run_1")
}

func commitIsOnlyRead(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1")
	build := func() *ringi.Commit {
		c := settle(row, ringi.EventApprovalDecided)
		c.Row.Status = ringi.Queued
		c.Changes = []ringi.RequestChange{approve("req_1", g.clock.Now())}
		return full(c, row, "req_2", g.clock.Now())
	}
	c, want := build(), build()
	if err := g.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
	same(t, "the commit afterwards", c, want)
}
