package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// commit applies c, which must be taken, and moves the clock by a millisecond.
func (g *stage) commit(c *ringi.Commit) {
	g.t.Helper()
	if err := g.Commit(ctx, c); err != nil {
		g.t.Fatalf("commit run %s behind %d: %v", c.RunID, c.Expect, err)
	}
	g.clock.Add(time.Millisecond)
}

// row returns a run's row.
func (g *stage) row(run string) ringi.RunRow {
	g.t.Helper()
	r, err := g.Row(ctx, space, run)
	if err != nil {
		g.t.Fatalf("read row of %s: %v", run, err)
	}
	return r
}

// load returns a run.
func (g *stage) load(run string) *ringi.StoredRun {
	g.t.Helper()
	r, err := g.Load(ctx, space, run)
	if err != nil {
		g.t.Fatalf("load %s: %v", run, err)
	}
	return r
}

// request returns a request's row.
func (g *stage) request(id string) ringi.RequestRow {
	g.t.Helper()
	r, err := g.Request(ctx, space, id)
	if err != nil {
		g.t.Fatalf("read request %s: %v", id, err)
	}
	return r
}

// beat renews the heartbeats of owners for the usual lease.
func (g *stage) beat(owners ...string) {
	g.t.Helper()
	for _, o := range owners {
		if err := g.Beat(ctx, o, lease); err != nil {
			g.t.Fatalf("beat %s: %v", o, err)
		}
	}
}

// begin makes a run that owner holds, and returns its row.
func (g *stage) begin(run, thread, owner string) ringi.RunRow {
	g.t.Helper()
	g.beat(owner)
	g.commit(started(run, thread, owner))
	return g.row(run)
}

// ask makes a run that waits with the given pending requests, and returns its
// row. Requests are created at the time of the clock.
func (g *stage) ask(run, thread string, ids ...string) ringi.RunRow {
	g.t.Helper()
	row := g.begin(run, thread, "owner of "+run)
	c := release(row, ringi.WaitingForApproval, ringi.EventModelResponded)
	for _, id := range ids {
		c.Records = append(c.Records, records(row.Seq+int64(len(c.Records)), ringi.EventApprovalRequested)...)
		c.Requests = append(c.Requests, asked(row, id, g.clock.Now()))
	}
	g.commit(headed(c))
	return g.row(run)
}

// decide applies one change in a settler's commit.
func (g *stage) decide(run string, changes ...ringi.RequestChange) {
	g.t.Helper()
	c := settle(g.row(run), ringi.EventApprovalDecided)
	c.Changes = changes
	g.commit(c)
}

// refusal looks at an error and says what is wrong with it; empty for nothing.
type refusal func(error) string

// is expects an error that wraps target.
func is(target error) refusal {
	return func(err error) string {
		if !errors.Is(err, target) {
			return fmt.Sprintf("error is %v, want %v", err, target)
		}
		return ""
	}
}

// plain expects an error that no caller branches on.
func plain(err error) string {
	if err == nil {
		return "no error"
	}
	for _, s := range []error{ringi.ErrConflict, ringi.ErrBusy, ringi.ErrLeaseLost, ringi.ErrRunOpen,
		ringi.ErrNotFound, ringi.ErrClock, ringi.ErrFinal, ringi.ErrCorrupt} {
		if errors.Is(err, s) {
			return fmt.Sprintf("error wraps %q, want a plain one: %v", s, err)
		}
	}
	if e := (*ringi.RequestStateError)(nil); errors.As(err, &e) {
		return fmt.Sprintf("error is a *RequestStateError, want a plain one: %v", err)
	}
	return ""
}

// inState expects a *RequestStateError for id with the present state and no
// deadline.
func inState(id string, state ringi.RequestState) refusal {
	return past(id, state, time.Time{})
}

// past expects a *RequestStateError for id whose time does not fit.
func past(id string, state ringi.RequestState, deadline time.Time) refusal {
	return func(err error) string {
		var e *ringi.RequestStateError
		if !errors.As(err, &e) {
			return fmt.Sprintf("error is %v, want a *RequestStateError", err)
		}
		if e.ID != id || e.State != state || !e.Deadline.Equal(deadline) {
			return fmt.Sprintf("error is %+v, want request %s in state %s with deadline %s", *e, id, state, deadline)
		}
		return ""
	}
}

// refused commits c, which must be refused so, and looks whether anything was
// written: rows, records, requests, tools, wake-ups.
func (g *stage) refused(c *ringi.Commit, want refusal) {
	g.t.Helper()
	before := g.state(c)
	if complaint := want(g.Commit(ctx, c)); complaint != "" {
		g.t.Errorf("commit run %s behind %d: %s", c.RunID, c.Expect, complaint)
	}
	if after := g.state(c); !reflect.DeepEqual(before, after) {
		g.t.Errorf("a refused commit wrote something:\nbefore %+v\nafter  %+v", before, after)
	}
}

// state reads all that a commit could have changed, into memory of its own: a
// store that shared its own would change what was read before.
func (g *stage) state(c *ringi.Commit) map[string]any {
	g.t.Helper()
	all := map[string]any{"woken": g.woken.list()}
	for _, sp := range []string{space, "other", c.Space} {
		runs, err := g.Runs(ctx, ringi.RunQuery{Space: sp, Limit: 1000})
		if err != nil {
			g.t.Fatal(err)
		}
		for _, r := range runs {
			run, err := g.Load(ctx, sp, r.ID)
			if err != nil {
				g.t.Fatal(err)
			}
			all["run "+sp+"/"+r.ID] = ringi.StoredRun{Row: run.Row, Records: cloned(run.Records)}
		}
		reqs, err := g.Requests(ctx, ringi.RequestQuery{Space: sp, State: everyState, Limit: 1000})
		if err != nil {
			g.t.Fatal(err)
		}
		for i := range reqs {
			reqs[i].People, reqs[i].Teams = slices.Clone(reqs[i].People), slices.Clone(reqs[i].Teams)
		}
		all["requests of "+sp] = slices.Clone(reqs)
	}
	for d := range c.Tools {
		b, err := g.Tool(ctx, d)
		all["tool "+d] = string(b)
		all["tool "+d+" is missing"] = errors.Is(err, ringi.ErrNotFound)
	}
	return all
}

// cloned returns a copy of records.
func cloned(recs []ringi.Record) []ringi.Record {
	recs = slices.Clone(recs)
	for i := range recs {
		r := &recs[i]
		r.Head, r.Payload, r.Salt = bytes.Clone(r.Head), bytes.Clone(r.Payload), bytes.Clone(r.Salt)
	}
	return recs
}

var everyState = []ringi.RequestState{ringi.Pending, ringi.Granted, ringi.Refused, ringi.Expired,
	ringi.Withdrawn, ringi.Stale, ringi.Spent}

var everyStatus = []ringi.RunStatus{ringi.Queued, ringi.Running, ringi.WaitingForApproval, ringi.WaitingForInput,
	ringi.WaitingForOutcome, ringi.Completed, ringi.Failed, ringi.Cancelled}

var everyKind = []ringi.EventKind{ringi.EventRunStarted, ringi.EventModelResponded, ringi.EventCallJudged,
	ringi.EventApprovalRequested, ringi.EventInputProposed, ringi.EventInputRefused, ringi.EventApprovalDecided,
	ringi.EventApprovalTakenBack, ringi.EventRequestClosed, ringi.EventToolStarted, ringi.EventToolFinished,
	ringi.EventOutcomeUnknown, ringi.EventOutcomeSettled, ringi.EventCancelRequested, ringi.EventRunFinished,
	ringi.EventRunErased}

// same compares two values of the vocabulary; times must be equal and UTC.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s is\n%+v, want\n%+v", what, got, want)
	}
}

// sameRecords compares records byte for byte, nil and empty apart.
func sameRecords(t *testing.T, got, want []ringi.Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		if g.Seq != w.Seq || g.Kind != w.Kind || g.Hash != w.Hash || !sameBytes(g.Head, w.Head) ||
			!sameBytes(g.Payload, w.Payload) || !sameBytes(g.Salt, w.Salt) {
			t.Errorf("record %d is\n%+v, want\n%+v", i, g, w)
		}
	}
}

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// ids returns the ids of rows in their order.
func ids[R ringi.RunRow | ringi.RequestRow](rows []R) []string {
	out := []string{}
	for _, r := range rows {
		switch r := any(r).(type) {
		case ringi.RunRow:
			out = append(out, r.ID)
		case ringi.RequestRow:
			out = append(out, r.ID)
		}
	}
	return out
}

// order compares the ids of a list.
func order(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	if len(got) <= 20 && len(want) <= 20 {
		t.Errorf("%s are %q, want %q", what, got, want)
		return
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	t.Errorf("%s: %d, want %d; from %d on they are %q, want %q", what, len(got), len(want), i,
		got[i:min(i+3, len(got))], want[i:min(i+3, len(want))])
}
