package storetest

import (
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// settlers holds the rules on those who hold no lease (S-29).
func settlers(t *testing.T, o opener) {
	o.run(t, "S29_Kinds", settlerKinds)
	o.run(t, "S29_NeedNoLease", settlersNeedNoLease)
	o.run(t, "S29_StatusWhereItWaits", settlerStatus)
	o.run(t, "S29_OwnerMeetsConflict", ownerMeetsConflict)
	o.run(t, "NobodyIsNoOwner", nobodyIsNoOwner)
	o.run(t, "CancelWhileWaiting", cancelWhileWaiting)
}

func settlerKinds(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1")
	for _, k := range everyKind {
		t.Run(string(k), func(t *testing.T) {
			g := g.in(t)
			row := g.row("run_1")
			if k.Settles() {
				g.commit(settle(row, k))
				if got := g.row("run_1").Seq; got != row.Seq+1 {
					t.Errorf("Seq is %d, want %d", got, row.Seq+1)
				}
				return
			}
			g.refused(full(settle(row, k), row, "req_2", g.clock.Now()), plain)
			g.refused(settle(row, ringi.EventCancelRequested, k), plain)
			g.refused(settle(row, k, ringi.EventCancelRequested), plain)
		})
	}
	g.refused(settle(g.row("run_1"), "made_up"), plain)
}

func settlersNeedNoLease(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	c := settle(row, ringi.EventCancelRequested)
	c.Row.Reason, c.Row.Deadline = ringi.ReasonCancelled, g.clock.Now().Add(time.Hour)
	want := row
	want.Seq, want.Head, want.MAC, want.UpdatedAt = 2, c.Row.Head, c.Row.MAC, g.clock.Now()
	g.commit(c)
	same(t, "the running row", g.row("run_1"), want)

	g.clock.Add(2 * lease) // the owner is dead: a settler needs none
	c = settle(g.row("run_1"), ringi.EventCancelRequested)
	want.Seq, want.Head, want.MAC, want.UpdatedAt = 3, c.Row.Head, c.Row.MAC, g.clock.Now()
	g.commit(c)
	same(t, "the row under a dead owner", g.row("run_1"), want)
}

func settlerStatus(t *testing.T, g *stage) {
	for i, from := range everyStatus {
		for _, to := range []ringi.RunStatus{"", ringi.Queued, ringi.WaitingForApproval, ringi.WaitingForOutcome} {
			t.Run(string(from)+" to "+string(to), func(t *testing.T) {
				g := g.in(t)
				run := ringi.IDFrom("run_", g.clock.Now(), [16]byte{15: byte(i)})
				row := g.begin(run, "thread of "+run, "own_1")
				if from != ringi.Running {
					g.commit(release(row, from))
					row = g.row(run)
				}
				c := settle(row, ringi.EventCancelRequested)
				c.Row.Status, c.Row.Deadline, c.Row.Reason = to, g.clock.Now().Add(time.Hour), "because"
				g.commit(c)
				want, got := row, g.row(run)
				if to != "" && (from == ringi.Queued || from.Waiting()) {
					want.Status, want.Deadline, want.Reason = to, c.Row.Deadline, "because"
				}
				if got.Status != want.Status || got.Reason != want.Reason || !got.Deadline.Equal(want.Deadline) {
					t.Errorf("the row is %+v, want status, reason and deadline of %+v", got, want)
				}
			})
		}
	}
}

// ownerMeetsConflict is the rule that loses no result: the owner folds what
// came in and commits again with what it has.
func ownerMeetsConflict(t *testing.T, g *stage) {
	g.beat("own_1")
	row := g.ask("run_1", "thr_1", "req_1")
	g.commit(claim(row, "own_1", ringi.EventToolStarted))
	row = g.row("run_1")
	g.decide("run_1", approve("req_1", g.clock.Now()))
	finished := next(row, ringi.EventToolFinished)
	g.refused(finished, is(ringi.ErrConflict))
	now := g.row("run_1")
	if now.Owner != "own_1" || now.Epoch != row.Epoch || now.Status != ringi.Running {
		t.Fatalf("the row is %+v, want the same owner and epoch, running", now)
	}
	g.commit(next(now, ringi.EventToolFinished))
	recs := g.load("run_1").Records
	if n := len(recs); recs[n-2].Kind != ringi.EventApprovalDecided || recs[n-1].Kind != ringi.EventToolFinished {
		t.Errorf("the log ends with %s, %s", recs[n-2].Kind, recs[n-1].Kind)
	}
}

// nobodyIsNoOwner: a run that nobody holds is not held by the empty owner.
func nobodyIsNoOwner(t *testing.T, g *stage) {
	g.commit(first("run_1", "thr_1"))
	g.refused(next(g.row("run_1"), ringi.EventToolStarted), is(ringi.ErrLeaseLost))
	row := g.ask("run_2", "thr_2", "req_1")
	g.refused(next(row, ringi.EventApprovalDecided), is(ringi.ErrLeaseLost))
	g.refused(release(row, ringi.Queued), is(ringi.ErrLeaseLost))
	held := g.begin("run_3", "thr_3", "own_1")
	held.Owner = ""
	g.refused(next(held, ringi.EventToolFinished), is(ringi.ErrLeaseLost))
}

// F131: a cancel settles what waits and the run goes on to its end.
func cancelWhileWaiting(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1", "req_2")
	c := settle(row, ringi.EventCancelRequested, ringi.EventRequestClosed, ringi.EventRequestClosed)
	c.Row.Status, c.Row.Deadline, c.Wake = ringi.Queued, time.Time{}, true
	for _, id := range []string{"req_1", "req_2"} {
		c.Changes = append(c.Changes, ringi.RequestChange{ID: id, From: ringi.Pending, To: ringi.Withdrawn})
	}
	g.commit(c)
	order(t, "runnable runs", g.canRun(), "run_1")
	late := settle(g.row("run_1"), ringi.EventApprovalDecided)
	late.Changes = []ringi.RequestChange{approve("req_1", g.clock.Now())}
	g.refused(late, inState("req_1", ringi.Withdrawn))
	g.beat("own_1")
	end := claim(g.row("run_1"), "own_1", ringi.EventRunFinished)
	end.Release, end.Row.Status, end.Row.Reason = true, ringi.Cancelled, ringi.ReasonCancelled
	g.commit(end)
	if got := g.row("run_1"); got.Status != ringi.Cancelled || got.Reason != ringi.ReasonCancelled {
		t.Errorf("the row is %+v, want cancelled", got)
	}
}
