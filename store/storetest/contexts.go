package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// contexts: a context that has ended gives its error and writes nothing.
func contexts(t *testing.T, o opener) {
	o.run(t, "F123_Cancelled", func(t *testing.T, g *stage) {
		done, cancel := context.WithCancel(ctx)
		cancel()
		ended(t, g, done, context.Canceled)
	})
	o.run(t, "F123_PastItsDeadline", func(t *testing.T, g *stage) {
		done, cancel := context.WithDeadline(ctx, time.Unix(1, 0))
		defer cancel()
		ended(t, g, done, context.DeadlineExceeded)
	})
}

func ended(t *testing.T, g *stage, done context.Context, want error) {
	row := g.ask("run_1", "thr_1", "req_1")
	decided := settle(row, ringi.EventApprovalDecided)
	decided.Row.Status = ringi.Queued
	decided.Changes = []ringi.RequestChange{approve("req_1", g.clock.Now())}
	full(decided, row, "req_2", g.clock.Now())
	before := g.state(decided)
	for _, c := range []*ringi.Commit{decided, first("run_2", "thr_2"), settle(row)} {
		if err := g.Commit(done, c); !errors.Is(err, want) {
			t.Errorf("commit run %s: %v, want %v", c.RunID, err, want)
		}
	}
	for name, err := range g.everyCall(done, row) {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	same(t, "what is stored", g.state(decided), before)
	if _, err := g.Tool(ctx, "every call"); is(ringi.ErrNotFound)(err) != "" {
		t.Errorf("a tool was kept: %v", err)
	}
	if k, _ := g.Keys(ctx); len(k) != 0 {
		t.Errorf("a key was kept: %v", k)
	}
	if v, _ := g.Flag(ctx, "every call"); v != "" {
		t.Errorf("a flag was set to %q", v)
	}
	if a := g.attemptsOf(space, "run_1"); len(a) != 0 {
		t.Errorf("%d attempts were kept", len(a))
	}
	g.refused(claim(row, "own_every_call"), is(ringi.ErrLeaseLost)) // it never beat
	g.commit(decided)
}

// everyCall calls every method but Close and returns their errors.
func (g *stage) everyCall(ctx context.Context, row ringi.RunRow) map[string]error {
	all := map[string]error{
		"Commit":      g.Commit(ctx, settle(row, ringi.EventCancelRequested)),
		"Beat":        g.Beat(ctx, "own_every_call", lease),
		"SaveTool":    g.SaveTool(ctx, "every call", []byte("{}")),
		"Attempt":     g.Attempt(ctx, ringi.Attempt{Space: space, RunID: row.ID, Kind: "stale", At: g.clock.Now()}),
		"RememberKey": g.RememberKey(ctx, "every call", "check"),
		"ForgetKey":   g.ForgetKey(ctx, "every call"),
		"SetFlag":     g.SetFlag(ctx, "every call", "set"),
	}
	_, all["ID"] = g.ID(ctx)
	_, all["Now"] = g.Now(ctx)
	_, all["Clock"] = g.Clock(ctx)
	_, all["AcceptClock"] = g.AcceptClock(ctx, "every call", "")
	_, all["Load"] = g.Load(ctx, row.Space, row.ID)
	_, all["Row"] = g.Row(ctx, row.Space, row.ID)
	_, all["Transcript"] = g.Transcript(ctx, row.Space, row.Thread)
	_, all["Runs"] = g.Runs(ctx, ringi.RunQuery{Space: row.Space})
	_, all["Runnable"] = g.Runnable(ctx, 10)
	_, all["Spaces"] = g.Spaces(ctx)
	_, all["Request"] = g.Request(ctx, row.Space, "req_1")
	_, all["Requests"] = g.Requests(ctx, ringi.RequestQuery{Space: row.Space})
	_, all["RequestTally"] = g.RequestTally(ctx, ringi.RequestQuery{Space: row.Space}, time.Time{}, time.Now())
	_, all["RequestCount"] = g.RequestCount(ctx, ringi.RequestQuery{Space: row.Space}, 0)
	_, all["Tool"] = g.Tool(ctx, "every call")
	_, all["Attempts"] = g.Attempts(ctx, row.Space, row.ID)
	_, all["Keys"] = g.Keys(ctx)
	_, all["Flag"] = g.Flag(ctx, "every call")
	return all
}
