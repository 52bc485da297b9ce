package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

// spaces do not meet: what is another's does not exist, in the same words.
func spaces(t *testing.T, o opener) {
	o.run(t, "SameAnswerAsUnknown", sameAnswerAsUnknown)
	o.run(t, "SameIdsAreTwoThings", sameIDsAreTwoThings)
	o.run(t, "Listed", spacesListed)
}

// spacesListed: each space once, in the order of its bytes, whatever its runs
// do; a refused commit makes none.
func spacesListed(t *testing.T, g *stage) {
	listed := func(want ...string) {
		t.Helper()
		got, err := g.Spaces(ctx)
		if err != nil {
			t.Fatal(err)
		}
		order(t, "spaces", got, want...)
	}
	listed()
	for i, sp := range []string{"b", "a b", "B", "\u00e4", "b", "default", "a"} {
		c := first(fmt.Sprint("run_", i), fmt.Sprint("thr_", i))
		c.Space = sp
		g.commit(c)
	}
	for _, sp := range []string{"", "new"} {
		c := next(ringi.RunRow{Space: sp, ID: "run_1"}, ringi.EventToolStarted)
		if err := g.Commit(ctx, c); err == nil {
			t.Errorf("a commit in space %q was taken", sp)
		}
	}
	g.attempt("attempted", "run_1", "0")
	listed("B", "a", "a b", "b", "default", "\u00e4")
	g.ask("run_asks", "thr_asks", "req_1")
	g.commit(release(g.begin("run_ends", "thr_ends", "own_1"), ringi.Completed, ringi.EventRunFinished))
	listed("B", "a", "a b", "b", "default", "\u00e4")
}

func sameAnswerAsUnknown(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1")
	c := first("run_2", "thr_2")
	c.Space = "other"
	g.commit(c)
	g.beat("own_1")
	foreign := func(run string) ringi.RunRow {
		r := row
		r.Space, r.ID, r.Owner = "other", run, "own_1"
		return r
	}
	answers := map[string]func(run, req string) error{
		"Load":    func(run, _ string) error { _, err := g.Load(ctx, "other", run); return err },
		"Row":     func(run, _ string) error { _, err := g.Row(ctx, "other", run); return err },
		"Request": func(_, req string) error { _, err := g.Request(ctx, "other", req); return err },
		"Requests": func(_, req string) error {
			_, err := g.Requests(ctx, ringi.RequestQuery{Space: "other", After: req})
			return err
		},
		"Runs": func(run, _ string) error {
			_, err := g.Runs(ctx, ringi.RunQuery{Space: "other", After: run})
			return err
		},
		"owner's commit":   func(run, _ string) error { return g.Commit(ctx, next(foreign(run), ringi.EventToolStarted)) },
		"settler's commit": func(run, _ string) error { return g.Commit(ctx, settle(foreign(run), ringi.EventCancelRequested)) },
		"claim":            func(run, _ string) error { return g.Commit(ctx, claim(foreign(run), "own_1")) },
		"change": func(_, req string) error {
			r, err := g.Row(ctx, "other", "run_2")
			if err != nil {
				return err
			}
			c := settle(r, ringi.EventApprovalDecided)
			c.Changes = []ringi.RequestChange{approve(req, g.clock.Now())}
			return g.Commit(ctx, c)
		},
	}
	for name, ask := range answers {
		there, nowhere := ask("run_1", "req_1"), ask("run_9", "req_9")
		if is(ringi.ErrNotFound)(there) != "" || is(ringi.ErrNotFound)(nowhere) != "" {
			t.Errorf("%s: another space's gives %v, an unknown one %v; want ErrNotFound", name, there, nowhere)
			continue
		}
		words := strings.NewReplacer("run_9", "run_1", "req_9", "req_1").Replace(nowhere.Error())
		if there.Error() != words {
			t.Errorf("%s: another space's gives %q, an unknown one %q", name, there, nowhere)
		}
	}
	same(t, "the row", g.row("run_1"), row)
}

func sameIDsAreTwoThings(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1")
	g.beat("own_1")
	c := started("run_1", "thr_1", "own_1")
	c.Space, c.Records[0].Payload = "other", []byte("of the other space")
	r := row
	r.Space = "other"
	c.Requests = []ringi.RequestRow{asked(r, "req_1", g.clock.Now())}
	g.commit(c)
	other, err := g.Row(ctx, "other", "run_1")
	if err != nil {
		t.Fatal(err)
	}
	before := g.load("run_1")
	c = settle(other, ringi.EventApprovalDecided)
	c.Changes = []ringi.RequestChange{approve("req_1", g.clock.Now())}
	g.commit(c)
	same(t, "the run", g.load("run_1"), before)
	if s := g.request("req_1").State; s != ringi.Pending {
		t.Errorf("req_1 is %s, want pending", s)
	}
	if got, err := g.Request(ctx, "other", "req_1"); err != nil || got.State != ringi.Granted || got.Space != "other" {
		t.Errorf("the other space's req_1 is %+v, %v", got, err)
	}
	order(t, "runs", ids(g.runs(ringi.RunQuery{Space: "other"})), "run_1")
	if run, err := g.Load(ctx, "other", "run_1"); err != nil || string(run.Records[0].Payload) != "of the other space" || len(run.Records) != 2 {
		t.Errorf("the other space's run is %+v, %v", run, err)
	}
}
