package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

func lists(t *testing.T, o opener) {
	o.run(t, "RequestFilters", requestFilters)
	o.run(t, "F121_PendingPastItsTimeIsExpired", pendingPastItsTime)
	o.run(t, "RequestOrder", requestOrder)
	o.run(t, "RequestPages", requestPages)
	o.run(t, "RequestLimits", requestLimits)
	o.run(t, "RunFilters", runFilters)
	o.run(t, "RunPages", runPages)
	o.run(t, "RunLimits", runLimits)
	o.run(t, "EmptyLists", emptyLists)
}

// list lists requests.
func (g *stage) list(q ringi.RequestQuery) []ringi.RequestRow {
	g.t.Helper()
	rows, err := g.Requests(ctx, q)
	if err != nil {
		g.t.Fatalf("list requests %+v: %v", q, err)
	}
	return rows
}

// runs lists runs.
func (g *stage) runs(q ringi.RunQuery) []ringi.RunRow {
	g.t.Helper()
	rows, err := g.Runs(ctx, q)
	if err != nil {
		g.t.Fatalf("list runs %+v: %v", q, err)
	}
	return rows
}

// canRun returns the ids of the runs that wait for an owner.
func (g *stage) canRun() []string {
	g.t.Helper()
	rows, err := g.Runnable(ctx, 1000)
	if err != nil {
		g.t.Fatalf("list runnable runs: %v", err)
	}
	return ids(rows)
}

func requestFilters(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1", "req_2", "req_3")
	g.ask("run_2", "thr_2", "req_4")
	g.decide("run_1", approve("req_2", g.clock.Now()))
	g.decide("run_1", deny("req_3", g.clock.Now()))
	for _, c := range []struct {
		name string
		q    ringi.RequestQuery
		want []string
	}{
		{"pending", ringi.RequestQuery{}, []string{"req_1", "req_4"}},
		{"no states is pending", ringi.RequestQuery{State: []ringi.RequestState{}}, []string{"req_1", "req_4"}},
		{"approved", ringi.RequestQuery{State: []ringi.RequestState{ringi.Granted}}, []string{"req_2"}},
		{"two states", ringi.RequestQuery{State: []ringi.RequestState{ringi.Refused, ringi.Pending}}, []string{"req_1", "req_3", "req_4"}},
		{"every state", ringi.RequestQuery{State: everyState}, []string{"req_1", "req_2", "req_3", "req_4"}},
		{"made-up state", ringi.RequestQuery{State: []ringi.RequestState{"made_up"}}, nil},
		{"run", ringi.RequestQuery{RunID: "run_1"}, []string{"req_1"}},
		{"run and state", ringi.RequestQuery{RunID: "run_1", State: everyState}, []string{"req_1", "req_2", "req_3"}},
		{"thread", ringi.RequestQuery{Thread: "thr_2"}, []string{"req_4"}},
		{"run and thread", ringi.RequestQuery{RunID: "run_1", Thread: "thr_1", State: everyState}, []string{"req_1", "req_2", "req_3"}},
		{"run of another thread", ringi.RequestQuery{RunID: "run_1", Thread: "thr_2", State: everyState}, nil},
		{"letter case", ringi.RequestQuery{RunID: "RUN_1"}, nil},
		{"wildcard", ringi.RequestQuery{RunID: "run_%"}, nil},
	} {
		c.q.Space = space
		order(t, c.name, ids(g.list(c.q)), c.want...)
	}
	for _, r := range g.list(ringi.RequestQuery{Space: space, State: everyState}) {
		same(t, "the listed row", r, g.request(r.ID))
	}
}

func pendingPastItsTime(t *testing.T, g *stage) {
	row := g.ask("run_1", "thr_1", "req_1", "req_2")
	deadline := g.request("req_1").ExpiresAt
	c := settle(row, ringi.EventRequestClosed)
	c.Requests = []ringi.RequestRow{asked(row, "req_3", g.clock.Now())}
	c.Requests[0].ExpiresAt = time.Time{}
	g.commit(c)
	yes := approve("req_2", g.clock.Now())
	yes.UseBy = deadline
	g.decide("run_1", yes)

	expired := ringi.RequestQuery{Space: space, State: []ringi.RequestState{ringi.Expired}}
	g.clock.Set(deadline.Add(-time.Microsecond))
	order(t, "pending just before", ids(g.list(ringi.RequestQuery{Space: space})), "req_1", "req_3")
	order(t, "expired just before", ids(g.list(expired)))
	g.clock.Set(deadline)
	order(t, "pending at the deadline", ids(g.list(ringi.RequestQuery{Space: space})), "req_3")
	order(t, "expired at the deadline", ids(g.list(expired)), "req_1")
	// An approval past its use_by stays listed as what it is.
	order(t, "approved", ids(g.list(ringi.RequestQuery{Space: space, State: []ringi.RequestState{ringi.Granted}})), "req_2")
	if s := g.list(expired)[0].State; s != ringi.Expired {
		t.Errorf("the listed state is %s, want expired", s)
	}
	if s := g.request("req_1").State; s != ringi.Expired {
		t.Errorf("the state is %s, want expired as in the list", s)
	}
	// Shown is not recorded: the change still comes from pending.
	close := settle(g.row("run_1"), ringi.EventRequestClosed)
	close.Changes = []ringi.RequestChange{{ID: "req_1", From: ringi.Expired, To: ringi.Withdrawn}}
	g.refused(close, plain)
	close.Changes[0] = expire("req_1", ringi.Pending)
	g.commit(close)
	order(t, "expired once recorded", ids(g.list(expired)), "req_1")
}

func requestOrder(t *testing.T, g *stage) {
	at := g.clock.Now()
	for i, id := range []string{"req_c", "req_a", "req_b", "req_d"} {
		created := at.Add(-time.Duration(i/2) * time.Second) // c, a at at; b, d a second before
		run := "run of " + id
		row := g.begin(run, "thread of "+id, "own_1")
		c := release(row, ringi.WaitingForApproval, ringi.EventApprovalRequested)
		c.Requests = []ringi.RequestRow{asked(row, id, created)}
		g.commit(c)
	}
	order(t, "requests", ids(g.list(ringi.RequestQuery{Space: space})), "req_b", "req_d", "req_a", "req_c")
	order(t, "two", ids(g.list(ringi.RequestQuery{Space: space, Limit: 2})), "req_b", "req_d")
}

func requestPages(t *testing.T, g *stage) {
	var all []string
	for i := range 3 {
		var names []string
		for j := range 4 {
			names = append(names, fmt.Sprintf("req_%d%d", i, j))
		}
		g.ask(fmt.Sprintf("run_%d", i), fmt.Sprintf("thr_%d", i), names...)
		all = append(all, names...)
	}
	for _, size := range []int{1, 2, 5, 12, 20} {
		var got []string
		q := ringi.RequestQuery{Space: space, Limit: size}
		page := ids(g.list(q))
		for ; len(page) > 0 && len(got) <= len(all); page = ids(g.list(q)) {
			got = append(got, page...)
			q.After = page[len(page)-1]
		}
		order(t, fmt.Sprintf("pages of %d", size), got, all...)
	}
	// The cursor stays good when its request is settled meanwhile.
	g.decide("run_0", deny("req_03", g.clock.Now()))
	order(t, "behind a settled request", ids(g.list(ringi.RequestQuery{Space: space, After: "req_03", Limit: 2})), "req_10", "req_11")
	order(t, "behind another run's", ids(g.list(ringi.RequestQuery{Space: space, RunID: "run_2", After: "req_03", Limit: 2})), "req_20", "req_21")
	order(t, "behind the last", ids(g.list(ringi.RequestQuery{Space: space, After: "req_23"})))
	for _, q := range []ringi.RequestQuery{{Space: space, After: "req_99"}, {Space: "other", After: "req_03"}} {
		if rows, err := g.Requests(ctx, q); is(ringi.ErrNotFound)(err) != "" || len(rows) > 0 {
			t.Errorf("an unknown cursor gives %d rows, %v", len(rows), err)
		}
	}
}

func requestLimits(t *testing.T, g *stage) {
	row := g.begin("run_1", "thr_1", "own_1")
	c := next(row, ringi.EventApprovalRequested)
	for i := range 1010 {
		c.Requests = append(c.Requests, asked(row, fmt.Sprintf("req_%04d", i), g.clock.Now()))
	}
	g.commit(c)
	for limit, want := range map[int]int{0: 50, -1: 50, 1: 1, 51: 51, 1000: 1000, 1001: 1000, 1 << 40: 1000} {
		if got := len(g.list(ringi.RequestQuery{Space: space, Limit: limit})); got != want {
			t.Errorf("limit %d gives %d requests, want %d", limit, got, want)
		}
	}
}

func runFilters(t *testing.T, g *stage) {
	g.commit(release(g.begin("run_c", "thr_1", "own_1"), ringi.Completed, ringi.EventRunFinished))
	g.ask("run_a", "thr_1", "req_1")
	g.commit(first("run_b", "thr_2"))
	for _, c := range []struct {
		name string
		q    ringi.RunQuery
		want []string
	}{
		{"all, newest first", ringi.RunQuery{}, []string{"run_b", "run_a", "run_c"}},
		{"two", ringi.RunQuery{Limit: 2}, []string{"run_b", "run_a"}},
		{"behind one", ringi.RunQuery{After: "run_b"}, []string{"run_a", "run_c"}},
		{"behind the last", ringi.RunQuery{After: "run_c"}, nil},
		{"one behind one of a thread", ringi.RunQuery{Thread: "thr_1", After: "run_a", Limit: 1}, []string{"run_c"}},
		{"thread", ringi.RunQuery{Thread: "thr_1"}, []string{"run_a", "run_c"}},
		{"unknown thread", ringi.RunQuery{Thread: "thr_9"}, nil},
		{"status", ringi.RunQuery{Status: []ringi.RunStatus{ringi.Completed}}, []string{"run_c"}},
		{"two statuses", ringi.RunQuery{Status: []ringi.RunStatus{ringi.Completed, ringi.Queued}}, []string{"run_b", "run_c"}},
		{"thread and status", ringi.RunQuery{Thread: "thr_1", Status: []ringi.RunStatus{ringi.WaitingForApproval}}, []string{"run_a"}},
		{"no status of the thread", ringi.RunQuery{Thread: "thr_2", Status: []ringi.RunStatus{ringi.Completed}}, nil},
	} {
		c.q.Space = space
		order(t, c.name, ids(g.runs(c.q)), c.want...)
	}
	for _, r := range g.runs(ringi.RunQuery{Space: space}) {
		same(t, "the listed row", r, g.row(r.ID))
	}
}

func runPages(t *testing.T, g *stage) {
	var all []string
	for i := range 9 { // three threads, and neither ids nor times sort
		id := fmt.Sprintf("run_%d", (i*7)%9)
		c := first(id, fmt.Sprintf("thr_%d", i%3))
		c.Row.Status = ringi.Completed
		if err := g.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
		all = append([]string{id}, all...)
	}
	for _, size := range []int{1, 2, 4, 9, 20} {
		var got []string
		q := ringi.RunQuery{Space: space, Limit: size}
		page := ids(g.runs(q))
		for ; len(page) > 0 && len(got) <= len(all); page = ids(g.runs(q)) {
			got = append(got, page...)
			q.After = page[len(page)-1]
		}
		order(t, fmt.Sprintf("pages of %d", size), got, all...)
	}
	// The cursor is a place in the order, whatever else is asked for.
	order(t, "behind a run of another thread", ids(g.runs(ringi.RunQuery{Space: space, Thread: "thr_0", After: all[4]})), all[5], all[8])
	order(t, "behind a run of another status",
		ids(g.runs(ringi.RunQuery{Space: space, Status: []ringi.RunStatus{ringi.Failed}, After: all[4]})))
	g.commit(first("run_new", "thr_0"))
	order(t, "behind the same run once there is a newer one", ids(g.runs(ringi.RunQuery{Space: space, After: all[6]})), all[7:]...)
	for _, q := range []ringi.RunQuery{{Space: space, After: "run_99"}, {Space: "other", After: all[0]}} {
		if rows, err := g.Runs(ctx, q); is(ringi.ErrNotFound)(err) != "" || len(rows) > 0 {
			t.Errorf("an unknown cursor gives %d rows, %v", len(rows), err)
		}
	}
}

// runLimits also holds the order where the clock stands still and ids do not
// sort.
func runLimits(t *testing.T, g *stage) {
	var want []string
	for i := range 1005 {
		id := fmt.Sprintf("run_%d", (i*389)%1005)
		if err := g.Commit(ctx, first(id, "thread of "+id)); err != nil {
			t.Fatal(err)
		}
		want = append([]string{id}, want...)
	}
	for limit, n := range map[int]int{0: 100, -1: 100, 1: 1, 101: 101, 1000: 1000, 1001: 1000} {
		order(t, fmt.Sprintf("runs with limit %d", limit), ids(g.runs(ringi.RunQuery{Space: space, Limit: limit})), want[:n]...)
	}
	for limit, n := range map[int]int{0: 100, -1: 100, 1: 1, 1000: 1000, 1001: 1000} {
		rows, err := g.Runnable(ctx, limit)
		if err != nil || len(rows) != n || rows[0].ID != want[len(want)-1] {
			t.Errorf("limit %d gives %d runnable runs, %v; want %d, the oldest first", limit, len(rows), err, n)
		}
	}
}

func emptyLists(t *testing.T, g *stage) {
	g.ask("run_1", "thr_1", "req_1")
	for _, sp := range []string{"other", ""} {
		if rows := g.runs(ringi.RunQuery{Space: sp}); len(rows) != 0 {
			t.Errorf("space %q has %d runs", sp, len(rows))
		}
		if rows := g.list(ringi.RequestQuery{Space: sp, State: everyState}); len(rows) != 0 {
			t.Errorf("space %q has %d requests", sp, len(rows))
		}
		runs, err := g.Transcript(ctx, sp, "thr_1")
		if err != nil || len(runs) != 0 {
			t.Errorf("space %q has %d runs of the thread, %v", sp, len(runs), err)
		}
	}
	if runs, err := g.Transcript(ctx, space, "thr_9"); err != nil || len(runs) != 0 {
		t.Errorf("an unknown thread has %d runs, %v", len(runs), err)
	}
	if rows, err := g.Attempts(ctx, space, "run_9"); err != nil || len(rows) != 0 {
		t.Errorf("an unknown run has %d attempts, %v", len(rows), err)
	}
	if order(t, "runnable runs", g.canRun()); len(g.runs(ringi.RunQuery{Space: space, Thread: "thr_1"})) != 1 {
		t.Error("the thread has no run")
	}
}
