package storetest

import (
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// reopen: what was committed is there after the process has ended (F126).
func reopen(t *testing.T, o opener) {
	if !o.features.Durable {
		t.Skip("the store dies with its process")
	}
	o.run(t, "F126_AllIsThere", allIsThere)
	o.run(t, "GoesOn", goesOn)
	o.run(t, "S36_ClockSetBackMeanwhile", clockSetBackMeanwhile)
	o.run(t, "AttemptsStayBounded", func(t *testing.T, g *stage) {
		for i := range 3 {
			for range 400 {
				g.attempt(space, "run_1", "before")
			}
			if a := g.attemptsOf(space, "run_1"); len(a) != min(400*(i+1), 1000) {
				t.Errorf("%d attempts after %d rounds", len(a), i+1)
			}
			g.restart()
		}
	})
}

// restart closes the store and opens it again.
func (g *stage) restart() {
	g.t.Helper()
	if err := g.Close(); err != nil {
		g.t.Fatalf("close: %v", err)
	}
	g.Store = g.another(nil)
}

func allIsThere(t *testing.T, g *stage) {
	g.commit(release(g.begin("run_1", "thr_1", "own_1"), ringi.Completed, ringi.EventRunFinished))
	row := g.ask("run_2", "thr_1", "req_1", "req_2", "req_3")
	g.decide("run_2", approve("req_2", g.clock.Now()))
	g.begin("run_3", "thr_3", "own_1")
	c := full(first("run_1", "thr_1"), ringi.RunRow{Space: "other", ID: "run_1", Thread: "thr_1"}, "req_4", g.clock.Now())
	c.Space = "other"
	g.commit(c)
	erased := next(g.row("run_3"), ringi.EventToolFinished, ringi.EventToolFinished)
	erased.Records[0].Payload, erased.Records[0].Salt, erased.Records[1].Payload = nil, nil, []byte{}
	g.commit(erased)
	g.attempt(space, "run_2", "0")
	g.attempt(space, "run_2", "1")
	for _, err := range []error{g.SaveTool(ctx, "sha256:1", []byte("{}")), g.RememberKey(ctx, "k1", "check"), g.SetFlag(ctx, "simulated", "yes")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	id, _ := g.ID(ctx)
	want, script := g.state(c), g.transcript("thr_1")
	run3 := g.load("run_3")

	for range 2 {
		g.restart()
		same(t, "what is stored", g.state(c), want)
		same(t, "the transcript", g.transcript("thr_1"), script)
		sameRecords(t, g.load("run_3").Records, run3.Records)
		g.tool("sha256:1", "{}")
		g.attempted(space, "run_2", 0, 2)
		if again, err := g.ID(ctx); err != nil || again != id {
			t.Errorf("the id is %q, %v; want %q", again, err, id)
		}
		if k, err := g.Keys(ctx); err != nil || k["k1"] != "check" || len(k) != 1 {
			t.Errorf("the keys are %v, %v", k, err)
		}
		if v, err := g.Flag(ctx, "simulated"); err != nil || v != "yes" {
			t.Errorf("the flag is %q, %v", v, err)
		}
		order(t, "pending requests", ids(g.list(ringi.RequestQuery{Space: space})), "req_1", "req_3")
		g.refused(first("run_4", row.Thread), is(ringi.ErrRunOpen))
		g.beat("own_2")
		g.refused(claim(g.row("run_3"), "own_2"), is(ringi.ErrBusy)) // its heartbeat outlives the process
	}
}

func (g *stage) transcript(thread string) []ringi.StoredRun {
	g.t.Helper()
	runs, err := g.Transcript(ctx, space, thread)
	if err != nil {
		g.t.Fatalf("read transcript: %v", err)
	}
	var out []ringi.StoredRun
	for _, r := range runs {
		out = append(out, *r)
	}
	return out
}

// goesOn: a click on the old button works, and the run ends.
func goesOn(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1")
	g.restart()
	c := settle(g.row("run_1"), ringi.EventApprovalDecided)
	c.Row.Status, c.Changes = ringi.Queued, []ringi.RequestChange{approve("req_1", g.clock.Now())}
	g.commit(c)
	g.restart()
	order(t, "runnable runs", g.canRun(), "run_1")
	g.beat("own_2")
	c = claim(g.row("run_1"), "own_2", ringi.EventToolStarted)
	c.Changes = []ringi.RequestChange{spend("req_1")}
	g.commit(c)
	frozen := g.row("run_1")
	g.restart() // killed in the call
	again := next(frozen, ringi.EventToolStarted)
	again.Changes = []ringi.RequestChange{spend("req_1")}
	g.refused(again, inState("req_1", ringi.Spent))
	order(t, "runnable runs", g.canRun())
	g.clock.Add(lease)
	order(t, "runnable runs once the owner is dead", g.canRun(), "run_1")
	g.beat("own_3")
	g.commit(claim(g.row("run_1"), "own_3", ringi.EventOutcomeUnknown))
	g.refused(next(frozen, ringi.EventToolFinished), is(ringi.ErrLeaseLost))
	g.holds(t, "run_1", "own_3", 3, 3)
	g.commit(release(g.row("run_1"), ringi.Failed, ringi.EventRunFinished))
	g.restart()
	gapless(t, g, "run_1")
	g.commit(first("run_2", "thr_1"))
}

func clockSetBackMeanwhile(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1")
	newest := g.row("run_1").UpdatedAt
	g.clock.Set(newest.Add(-time.Hour))
	g.restart()
	g.now(newest)
	c := settle(g.row("run_1"), ringi.EventApprovalDecided)
	c.Changes = []ringi.RequestChange{approve("req_1", newest)}
	g.refused(c, is(ringi.ErrClock))
	g.refused(started("run_2", "thr_2", "own_1"), plainOr(ringi.ErrClock, ringi.ErrLeaseLost))
	g.clock.Set(newest.Add(-time.Minute))
	g.restart()
	g.now(newest)
	g.commit(c)
	if got := g.row("run_1").UpdatedAt; !got.Equal(newest) {
		t.Errorf("UpdatedAt is %s, want %s", got, newest)
	}
}
