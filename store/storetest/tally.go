package storetest

import (
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// tally: what was settled in a time.
func tally(t *testing.T, o opener) {
	o.run(t, "Day", tallyDay)
	o.run(t, "Nothing", tallyNothing)
}

// tallyDay has decisions of every kind within a time, on its two edges and
// outside of it.
func tallyDay(t *testing.T, g *stage) {
	forAda := func(tool string) func(*ringi.RequestRow) {
		return func(r *ringi.RequestRow) { r.Tool, r.People, r.Teams = tool, []string{"ada"}, nil }
	}
	forDesk := func(r *ringi.RequestRow) { r.Tool, r.People, r.Teams = "pay", nil, []string{"desk"} }
	g.inbox("run_1", forAda("pay"), forAda("pay"), forAda("mail"), forDesk, forDesk,
		func(r *ringi.RequestRow) { r.Tool, r.ExpiresAt = "mail", r.CreatedAt.Add(time.Minute) },
		func(r *ringi.RequestRow) { r.Tool, r.ExpiresAt = "mail", time.Time{} })
	begun := g.request("req_1_1").CreatedAt
	at := func(d time.Duration) time.Time { g.clock.Set(begun.Add(d)); return g.clock.Now() }
	first := at(time.Second)
	g.decide("run_1", approve("req_1_1", first))
	g.decide("run_1", deny("req_1_2", at(3*time.Second)))
	g.decide("run_1", approve("req_1_3", at(5*time.Second)))
	last := at(7 * time.Second)
	g.decide("run_1", approve("req_1_4", last))
	after := last.Add(time.Microsecond)
	want := ringi.RequestTally{Hasty: 1, Median: 5*time.Second - 2*time.Millisecond,
		Tools: []ringi.ToolTally{{Tool: "mail", Approved: 1}, {Tool: "pay", Approved: 2, Denied: 1}}}
	g.tallies("from the first to behind the last", ringi.RequestQuery{}, first, after, want)
	g.tallies("the last is outside", ringi.RequestQuery{}, first, last, ringi.RequestTally{Hasty: 1, Median: 3*time.Second - time.Millisecond,
		Tools: []ringi.ToolTally{{Tool: "mail", Approved: 1}, {Tool: "pay", Approved: 1, Denied: 1}}})
	g.tallies("state and page mean nothing", ringi.RequestQuery{State: []ringi.RequestState{ringi.Refused}, Limit: 1, After: "req_1_4"}, first, after, want)
	g.tallies("for ada", ringi.RequestQuery{For: ringi.Principal{ID: "ada"}}, first, after, ringi.RequestTally{Hasty: 1, Median: 3*time.Second - time.Millisecond,
		Tools: []ringi.ToolTally{{Tool: "mail", Approved: 1}, {Tool: "pay", Approved: 1, Denied: 1}}})
	g.tallies("of a tool", ringi.RequestQuery{Tool: "mail"}, first, after, ringi.RequestTally{Median: 5*time.Second - 2*time.Millisecond,
		Tools: []ringi.ToolTally{{Tool: "mail", Approved: 1}}})
	g.tallies("by a word", ringi.RequestQuery{Search: "clerk", For: ringi.Principal{Teams: []string{"desk"}}}, first, after,
		ringi.RequestTally{Median: 7*time.Second - 3*time.Millisecond, Tools: []ringi.ToolTally{{Tool: "pay", Approved: 1}}})
	deadline := g.request("req_1_6").ExpiresAt
	g.clock.Set(deadline.Add(-time.Microsecond))
	g.tallies("before the deadline", ringi.RequestQuery{}, after, deadline.Add(time.Hour), ringi.RequestTally{})
	g.clock.Set(deadline)
	lapsed := ringi.RequestTally{Tools: []ringi.ToolTally{{Tool: "mail", Expired: 1}}}
	g.tallies("expired by the clock alone", ringi.RequestQuery{}, after, deadline.Add(time.Hour), lapsed)
	g.decide("run_1", ringi.RequestChange{ID: "req_1_6", From: ringi.Pending, To: ringi.Expired, Past: true})
	g.tallies("expired and noted", ringi.RequestQuery{}, after, deadline.Add(time.Hour), lapsed)
	g.tallies("expired, by a word", ringi.RequestQuery{Search: "clerk"}, after, deadline.Add(time.Hour), lapsed)
	g.tallies("expired before", ringi.RequestQuery{}, deadline.Add(time.Microsecond), deadline.Add(time.Hour), ringi.RequestTally{})
}

func tallyNothing(t *testing.T, g *stage) {
	g.tallies("an empty store", ringi.RequestQuery{}, time.Time{}, g.clock.Now().Add(time.Hour), ringi.RequestTally{})
	g.ask("run_1", "thr_1", "req_1")
	g.decide("run_1", deny("req_1", g.clock.Now()))
	q := ringi.RequestQuery{Space: "other"}
	if got, err := g.RequestTally(ctx, q, time.Time{}, g.clock.Now().Add(time.Hour)); err != nil || len(got.Tools) > 0 {
		t.Errorf("another space: %+v, %v", got, err)
	}
	if _, err := g.RequestTally(ctx, ringi.RequestQuery{Space: space, Order: "made up"}, time.Time{}, g.clock.Now()); err == nil {
		t.Error("a made-up order is taken")
	}
}

// tallies holds a tally to what it says.
func (g *stage) tallies(name string, q ringi.RequestQuery, from, to time.Time, want ringi.RequestTally) {
	g.t.Helper()
	q.Space = space
	got, err := g.RequestTally(ctx, q, from, to)
	if err != nil {
		g.t.Errorf("%s: %v", name, err)
		return
	}
	same(g.t, name, got, want)
}
