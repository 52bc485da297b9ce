package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

func requests(t *testing.T, o opener) {
	o.run(t, "Insert", insertRequests)
	o.run(t, "InsertRefused", insertRefused)
	o.run(t, "Transitions", transitions)
	o.run(t, "WrongFrom", wrongFrom)
	o.run(t, "F121_LivePending", livePending)
	o.run(t, "F121_LiveApproved", liveApproved)
	o.run(t, "F118_PastPending", pastPending)
	o.run(t, "PastApproved", pastApproved)
	o.run(t, "ZeroDeadlineNeverComes", zeroDeadline)
	o.run(t, "EpochIsADeadline", epochDeadline)
	o.run(t, "DeciderIsKept", deciderIsKept)
	o.run(t, "F30_SpentOnce", spentOnce)
	o.run(t, "OtherRuns", otherRuns)
	o.run(t, "InOrder", changesInOrder)
	o.run(t, "OneOfTwoFails", oneOfTwoFails)
}

func insertRequests(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	now := g.clock.Now()
	want := ringi.RequestRow{
		Space: space, ID: "req_1", RunID: "run_1", Thread: "thr_1", CallID: "call_1",
		Kind: ringi.KindApprovalAndInput, Tool: "pay", State: ringi.Pending, Digest: "d1",
		Agent: "clerk", Initiator: "ivy", People: []string{"ada", "o'hara", `"`, "a,b"}, Teams: []string{"desk"}, Text: "pay clerk req_1", Risk: ringi.RiskLow,
		CreatedAt: now.Add(time.Microsecond), ExpiresAt: now.Add(time.Hour),
	}
	born := want
	born.ID, born.State, born.People, born.Teams, born.Risk = "req_2", ringi.Withdrawn, nil, []string{}, ""
	born.DecidedAt, born.UseBy, born.DecidedBy = now.Add(time.Second), now.Add(time.Minute), "ada"
	c := next(row, ringi.EventApprovalRequested)
	c.Requests = []ringi.RequestRow{want, born}
	g.commit(c)
	same(t, "the pending request", g.request("req_1"), want)
	born.Teams, born.Risk = nil, ringi.RiskHigh // an empty list comes back as none, and no risk as the highest
	same(t, "the settled request", g.request("req_2"), born)
	if _, err := g.Request(ctx, space, "req_9"); is(ringi.ErrNotFound)(err) != "" {
		t.Errorf("an unknown request gives %v", err)
	}
}

func insertRefused(t *testing.T, g *stage) {
	g.ask("run_2", "thr_2", "req_2")
	row := g.begin("run_1", "thr_1", "own_1")
	for name, change := range map[string]func(*ringi.RequestRow){
		"other space":  func(r *ringi.RequestRow) { r.Space = "other" },
		"no space":     func(r *ringi.RequestRow) { r.Space = "" },
		"other run":    func(r *ringi.RequestRow) { r.RunID = "run_2" },
		"no run":       func(r *ringi.RequestRow) { r.RunID = "" },
		"other thread": func(r *ringi.RequestRow) { r.Thread = "thr_2" },
		"no thread":    func(r *ringi.RequestRow) { r.Thread = "" },
		"no id":        func(r *ringi.RequestRow) { r.ID = "" },
		"id is there":  func(r *ringi.RequestRow) { r.ID = "req_2" },
		"id twice":     func(r *ringi.RequestRow) { r.ID = "req_3" },
	} {
		t.Run(name, func(t *testing.T) {
			r := asked(row, "req_1", g.clock.Now())
			change(&r)
			c := next(row, ringi.EventApprovalRequested, ringi.EventApprovalRequested)
			c.Requests = []ringi.RequestRow{asked(row, "req_3", g.clock.Now()), r}
			g.in(t).refused(c, plain)
		})
	}
}

// allowed is the table of request states, from the vocabulary's own comment.
var allowed = map[ringi.RequestState][]ringi.RequestState{
	ringi.Pending: {ringi.Granted, ringi.Refused, ringi.Expired, ringi.Withdrawn, ringi.Stale},
	ringi.Granted: {ringi.Spent, ringi.Expired, ringi.Withdrawn, ringi.Stale},
}

func transitions(t *testing.T, g *stage) {
	n := 0
	for _, from := range everyState {
		for _, to := range append([]ringi.RequestState{"", "made_up"}, everyState...) {
			n++
			id, run := fmt.Sprintf("req_%d", n), fmt.Sprintf("run_%d", n)
			row := g.begin(run, "thread of "+run, "own_1")
			c := next(row, ringi.EventApprovalRequested)
			c.Requests = []ringi.RequestRow{asked(row, id, g.clock.Now())}
			c.Requests[0].State = from
			g.commit(c)
			c = next(g.row(run), ringi.EventToolStarted)
			c.Changes = []ringi.RequestChange{{ID: id, From: from, To: to}}
			may := false
			for _, a := range allowed[from] {
				may = may || a == to
			}
			err := g.Commit(ctx, c)
			got := g.request(id).State
			switch {
			case may && (err != nil || got != to):
				t.Errorf("%s to %s: %v, the state is %s", from, to, err, got)
			case !may && (plain(err) != "" || got != from):
				t.Errorf("%s to %q: %s, the state is %s; want a plain error", from, to, plain(err), got)
			}
		}
	}
}

func wrongFrom(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1")
	c := settle(row, ringi.EventApprovalTakenBack)
	c.Changes = []ringi.RequestChange{{ID: "req_1", From: ringi.Granted, To: ringi.Withdrawn}}
	g.refused(full(c, row, "req_2", g.clock.Now()), inState("req_1", ringi.Pending))
	for i, to := range allowed[ringi.Pending] {
		run, id := fmt.Sprintf("run_a%d", i), fmt.Sprintf("req_a%d", i)
		g.ask(run, "thread of "+run, id)
		g.decide(run, ringi.RequestChange{ID: id, From: ringi.Pending, To: to, DecidedAt: g.clock.Now(), DecidedBy: "eve"})
		late := settle(g.row(run), ringi.EventApprovalDecided)
		late.Changes = []ringi.RequestChange{approve(id, g.clock.Now())}
		g.refused(full(late, g.row(run), "req_2", g.clock.Now()), inState(id, to))
		if got := g.request(id).DecidedBy; got != "eve" {
			t.Errorf("the decider is %q after a late decision, want eve", got)
		}
	}
}

func livePending(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1", "req_2")
	deadline := g.request("req_1").ExpiresAt
	c := settle(row, ringi.EventApprovalDecided)
	c.Changes = []ringi.RequestChange{approve("req_1", g.clock.Now())}
	for _, late := range []time.Duration{0, time.Microsecond, time.Hour} {
		g.clock.Set(deadline.Add(late))
		g.refused(c, past("req_1", ringi.Pending, deadline))
	}
	g.clock.Set(deadline.Add(-time.Microsecond))
	g.commit(c)
	g.clock.Set(deadline)
	blind := deny("req_2", deadline) // a change that does not look at the time
	blind.Live = false
	g.decide("run_1", blind)
	if a, b := g.request("req_1").State, g.request("req_2").State; a != ringi.Granted || b != ringi.Refused {
		t.Errorf("the states are %s and %s, want approved and denied", a, b)
	}
}

func liveApproved(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1")
	useBy := g.clock.Now().Add(time.Hour)
	yes := approve("req_1", g.clock.Now())
	yes.UseBy = useBy
	g.decide("run_1", yes)
	for _, late := range []time.Duration{0, time.Microsecond, 100 * time.Hour} {
		g.clock.Set(useBy.Add(late))
		g.beat("own_1")
		c := claim(g.row("run_1"), "own_1", ringi.EventToolStarted)
		c.Changes = []ringi.RequestChange{spend("req_1")}
		g.refused(full(c, g.row("run_1"), "req_2", g.clock.Now()), past("req_1", ringi.Granted, useBy))
	}
	g.clock.Set(useBy.Add(-time.Microsecond))
	g.beat("own_1")
	c := claim(g.row("run_1"), "own_1", ringi.EventToolStarted)
	c.Changes = []ringi.RequestChange{spend("req_1")}
	g.commit(c)
	if s := g.request("req_1").State; s != ringi.Spent {
		t.Errorf("the state is %s, want spent", s)
	}
}

func expire(id string, from ringi.RequestState) ringi.RequestChange {
	return ringi.RequestChange{ID: id, From: from, To: ringi.Expired, Past: true}
}

func pastPending(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1")
	deadline := g.request("req_1").ExpiresAt
	c := settle(row, ringi.EventRequestClosed)
	c.Changes = []ringi.RequestChange{expire("req_1", ringi.Pending)}
	g.refused(c, past("req_1", ringi.Pending, deadline))
	g.clock.Set(deadline.Add(-time.Microsecond))
	g.refused(c, past("req_1", ringi.Pending, deadline))
	g.clock.Set(deadline)
	g.commit(c)
	got := g.request("req_1")
	if got.State != ringi.Expired || got.DecidedBy != "" || !got.DecidedAt.IsZero() {
		t.Errorf("the request is %+v, want expired by nobody", got)
	}
}

func pastApproved(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1")
	yes := approve("req_1", g.clock.Now())
	g.decide("run_1", yes)
	c := settle(g.row("run_1"), ringi.EventRequestClosed)
	c.Changes = []ringi.RequestChange{expire("req_1", ringi.Granted)}
	g.clock.Set(yes.UseBy.Add(-time.Microsecond))
	g.refused(c, past("req_1", ringi.Granted, yes.UseBy))
	g.clock.Set(yes.UseBy)
	g.commit(c)
	if s := g.request("req_1").State; s != ringi.Expired {
		t.Errorf("the state is %s, want expired", s)
	}
}

func zeroDeadline(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	c := next(row, ringi.EventApprovalRequested)
	c.Requests = []ringi.RequestRow{asked(row, "req_1", g.clock.Now())}
	c.Requests[0].ExpiresAt = time.Time{}
	g.commit(c)
	g.clock.Add(50 * 365 * 24 * time.Hour)
	c = settle(g.row("run_1"), ringi.EventRequestClosed)
	c.Changes = []ringi.RequestChange{expire("req_1", ringi.Pending)}
	g.refused(c, inState("req_1", ringi.Pending))
	order(t, "pending requests", ids(g.list(ringi.RequestQuery{Space: space})), "req_1")
	yes := approve("req_1", g.clock.Now())
	yes.UseBy = time.Time{}
	g.decide("run_1", yes)
	g.clock.Add(50 * 365 * 24 * time.Hour)
	c = settle(g.row("run_1"), ringi.EventRequestClosed)
	c.Changes = []ringi.RequestChange{expire("req_1", ringi.Granted)}
	g.refused(c, inState("req_1", ringi.Granted))
	c = next(g.row("run_1"), ringi.EventToolStarted)
	c.Changes = []ringi.RequestChange{spend("req_1")}
	g.commit(c)
}

// epochDeadline: a store that keeps "never" as the number zero would let a
// request from 1970 live for ever.
func epochDeadline(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	epoch := time.Unix(0, 0).UTC()
	c := next(row, ringi.EventApprovalRequested)
	c.Requests = []ringi.RequestRow{asked(row, "req_1", g.clock.Now()), asked(row, "req_2", g.clock.Now())}
	c.Requests[0].ExpiresAt = epoch
	g.commit(c)
	c = settle(g.row("run_1"), ringi.EventApprovalDecided)
	c.Changes = []ringi.RequestChange{approve("req_1", g.clock.Now())}
	g.refused(c, past("req_1", ringi.Pending, epoch))
	order(t, "pending requests", ids(g.list(ringi.RequestQuery{Space: space})), "req_2")
	yes := approve("req_2", g.clock.Now())
	yes.UseBy = epoch
	g.decide("run_1", yes)
	c = next(g.row("run_1"), ringi.EventToolStarted)
	c.Changes = []ringi.RequestChange{spend("req_2")}
	g.refused(c, past("req_2", ringi.Granted, epoch))
	same(t, "UseBy", g.request("req_2").UseBy, epoch)
}

func deciderIsKept(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1")
	want := g.request("req_1")
	yes := approve("req_1", g.clock.Now())
	g.decide("run_1", yes)
	want.State, want.DecidedAt, want.DecidedBy, want.UseBy = ringi.Granted, yes.DecidedAt, "ada", yes.UseBy
	same(t, "the approved request", g.request("req_1"), want)
	c := claim(g.row("run_1"), "own_1", ringi.EventToolStarted)
	c.Changes = []ringi.RequestChange{spend("req_1")}
	g.beat("own_1")
	g.commit(c)
	want.State = ringi.Spent
	same(t, "the spent request", g.request("req_1"), want)
}

// spentOnce: one approval, at most one start.
func spentOnce(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1")
	g.decide("run_1", approve("req_1", g.clock.Now()))
	g.beat("own_1")
	c := claim(g.row("run_1"), "own_1", ringi.EventToolStarted)
	c.Changes = []ringi.RequestChange{spend("req_1")}
	g.commit(c)

	again := next(g.row("run_1"), ringi.EventToolStarted)
	again.Changes = []ringi.RequestChange{spend("req_1")}
	g.refused(full(again, g.row("run_1"), "req_2", g.clock.Now()), inState("req_1", ringi.Spent))

	g.clock.Add(2 * lease)
	g.beat("own_2")
	other := claim(g.row("run_1"), "own_2", ringi.EventToolStarted)
	other.Changes = []ringi.RequestChange{spend("req_1")}
	g.refused(other, inState("req_1", ringi.Spent))
	twice := ringi.RequestChange{ID: "req_1", From: ringi.Pending, To: ringi.Granted}
	other.Changes = []ringi.RequestChange{twice, spend("req_1")}
	g.refused(other, inState("req_1", ringi.Spent))
	g.holds(t, "run_1", "own_1", 2, 2)
}

func otherRuns(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1")
	row := g.ask("run_2", "thr_2", "req_2")
	for _, id := range []string{"req_1", "req_9", "REQ_2", "req_2 ", ""} {
		c := settle(row, ringi.EventApprovalDecided)
		c.Changes = []ringi.RequestChange{approve(id, g.clock.Now())}
		g.refused(c, is(ringi.ErrNotFound))
	}
}

func changesInOrder(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1")
	g.beat("own_1")
	c := claim(row, "own_1", ringi.EventApprovalDecided, ringi.EventToolStarted)
	c.Requests = []ringi.RequestRow{asked(row, "req_2", g.clock.Now())}
	c.Changes = []ringi.RequestChange{
		spend("req_1"), approve("req_1", g.clock.Now()),
	}
	g.refused(c, inState("req_1", ringi.Pending))
	c.Changes = []ringi.RequestChange{
		approve("req_1", g.clock.Now()), spend("req_1"),
		{ID: "req_2", From: ringi.Pending, To: ringi.Withdrawn},
	}
	stale := *c
	stale.Changes = append([]ringi.RequestChange{}, c.Changes...)
	stale.Changes[0].UseBy = g.clock.Now() // over at the moment it begins
	g.refused(&stale, past("req_1", ringi.Granted, g.clock.Now()))
	g.commit(c)
	if a, b := g.request("req_1").State, g.request("req_2").State; a != ringi.Spent || b != ringi.Withdrawn {
		t.Errorf("the states are %s and %s, want spent and withdrawn", a, b)
	}
}

func oneOfTwoFails(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1", "req_2")
	g.decide("run_1", deny("req_2", g.clock.Now()))
	row := g.row("run_1")
	for _, pair := range [][2]string{{"req_1", "req_2"}, {"req_2", "req_1"}} {
		c := settle(row, ringi.EventApprovalDecided, ringi.EventApprovalDecided)
		c.Changes = []ringi.RequestChange{approve(pair[0], g.clock.Now()), approve(pair[1], g.clock.Now())}
		g.refused(full(c, row, "req_3", g.clock.Now()), inState("req_2", ringi.Refused))
	}
}
