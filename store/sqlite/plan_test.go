package sqlite

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// scan finds a walk over a whole table; one over the result of a part of the
// query, which is no longer than its limit, is none.
var scan = regexp.MustCompile(`SCAN (runs|records|rec|requests|owners|attempts|o)\b`)

// The queries whose cost must not grow with the store use an index, and the
// pages of the inbox need no sorting of what lies in it.
func TestQueryPlans(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "ringi.db"), Options{})
	now := time.Now().UnixMicro()
	requests := func(q ringi.RequestQuery, after *ringi.RequestRow) (string, []any) {
		q.Space = "default"
		return requestsQuery(requestColumns+", ", q, after, now, 50)
	}
	runs := func(q ringi.RunQuery) (string, []any) {
		q.Space = "default"
		return runsQuery(q)
	}
	one := func(query string, args ...any) func() (string, []any) {
		return func() (string, []any) { return query, args }
	}
	page := &ringi.RequestRow{CreatedAt: time.Now(), ID: "req_1"}
	for name, c := range map[string]struct {
		query  func() (string, []any)
		index  string
		sorted bool // sorting is allowed: few rows are left
	}{
		"inbox":           {func() (string, []any) { return requests(ringi.RequestQuery{}, nil) }, "requests_state", false},
		"inbox next page": {func() (string, []any) { return requests(ringi.RequestQuery{}, page) }, "requests_state", false},
		"inbox of expired": {func() (string, []any) {
			return requests(ringi.RequestQuery{State: []ringi.RequestState{ringi.Expired}}, page)
		}, "requests_state", true}, // what is sorted is a page a part
		"inbox of many states": {func() (string, []any) {
			return requests(ringi.RequestQuery{State: []ringi.RequestState{ringi.Granted, ringi.Refused, ringi.Spent}}, nil)
		}, "requests_state", true},
		"newest":  {func() (string, []any) { return requests(ringi.RequestQuery{Order: ringi.NewestFirst}, page) }, "requests_state", false},
		"soonest": {func() (string, []any) { return requests(ringi.RequestQuery{Order: ringi.SoonestFirst}, page) }, "requests_soonest", false},
		"risk":    {func() (string, []any) { return requests(ringi.RequestQuery{Risk: ringi.RiskLow}, page) }, "requests_risk", false},
		"risk of decided ones": {func() (string, []any) {
			return requests(ringi.RequestQuery{Risk: ringi.RiskHigh, State: []ringi.RequestState{ringi.Spent}}, page)
		}, "requests_risk", false},
		"terms": {func() (string, []any) {
			query, args := termsQuery(&ringi.RequestQuery{Space: "default", Tool: "pay"}, "a", page)
			return "SELECT n" + query + " ORDER BY request_terms.rowid", args
		}, "PRIMARY KEY", false},
		"terms, newest": {func() (string, []any) {
			query, args := termsQuery(&ringi.RequestQuery{Space: "default", Order: ringi.NewestFirst}, "a", page)
			return "SELECT n" + query + " ORDER BY request_terms.rowid DESC", args
		}, "PRIMARY KEY", false},
		"requests of a run":    {func() (string, []any) { return requests(ringi.RequestQuery{RunID: "run_1"}, page) }, "requests_run", true},
		"requests of a thread": {func() (string, []any) { return requests(ringi.RequestQuery{Thread: "thr_1"}, nil) }, "requests_run", true},
		"tally":                {one(readTally, now, "default", now, now, "default", now, now, "default", now, now), "requests_decided", true},
		"tally of expired":     {one(readTally, now, "default", now, now, "default", now, now, "default", now, now), "requests_expired", true},
		"tally of past ones":   {one(readTally, now, "default", now, now, "default", now, now, "default", now, now), "requests_soonest", true},
		"request":              {one(readRequest, now, "default", "req_1"), "requests_id", false},
		"run":                  {one(readRun, "default", "run_1"), "runs_id", false},
		"records":              {one(readRecords, "default", "run_1"), "records_run", false},
		"transcript":           {one(readTranscript, "default", "thr_1"), "runs_thread", false},
		"runnable":             {one(readRunnable, now, 1, now, 1, now, now, 1, 1), "runs_ready", true},
		"runnable by deadline": {one(readRunnable, now, 1, now, 1, now, now, 1, 1), "runs_deadline", true},
		"spaces by runs":       {one(readSpaces), "runs_space", true},
		"spaces by requests":   {one(readSpaces), "requests_run", true},
		"runs":                 {func() (string, []any) { return runs(ringi.RunQuery{}) }, "runs_space", false},
		"runs of a thread":     {func() (string, []any) { return runs(ringi.RunQuery{Thread: "thr_1"}) }, "runs_thread", false},
		"runs by status": {func() (string, []any) {
			return runs(ringi.RunQuery{Status: []ringi.RunStatus{ringi.Failed, ringi.Queued}})
		}, "runs_space", false},
	} {
		t.Run(name, func(t *testing.T) {
			query, args := c.query()
			plan := explain(t, s, query, args)
			if m := scan.FindString(plan); m != "" {
				t.Errorf("the plan has %q:\n%s", m, plan)
			}
			if !strings.Contains(plan, c.index) {
				t.Errorf("the plan does not use %s:\n%s", c.index, plan)
			}
			if !c.sorted && strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("the plan sorts:\n%s", plan)
			}
		})
	}
}

func explain(t *testing.T, s *Store, query string, args []any) string {
	t.Helper()
	rows, err := s.read.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}

// The statements that write find their rows by an index too.
func TestWritePlans(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "ringi.db"), Options{})
	for _, query := range []string{
		holdKeeping, holdMoving, holdEnding, claimKeeping, claimMoving, claimEnding, settleKeep, settleMoving, settleEnded,
		updateRequest, changePendingLive, changeGrantedLive, changePendingPast, changeGrantedPast,
	} {
		plan := explain(t, s, query, make([]any, strings.Count(query, "?")))
		if scan.MatchString(plan) || !strings.Contains(plan, "runs_id") && !strings.Contains(plan, "requests_id") {
			t.Errorf("the plan of\n%s\nis\n%s", query, plan)
		}
	}
}
