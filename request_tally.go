package ringi

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"
)

// Hasty is the time below which nobody can have read what he decided.
const Hasty = 2 * time.Second

// RequestTally is what became of requests in a span of time.
type RequestTally struct {
	// Tools counts by tool, sorted by name; those of which nothing was settled
	// are left out.
	Tools []ToolTally `json:"tools,omitempty"`
	// Hasty counts decisions within [Hasty] of the question.
	Hasty int `json:"hasty"`
	// Median is the median time from the question to the decision, of two in the
	// middle the longer; 0 where nothing was decided.
	Median time.Duration `json:"median"`
}

// ToolTally counts the requests of one tool.
type ToolTally struct {
	Tool string `json:"tool"`
	// Approved and Denied were decided by a person, Expired by nobody. Every
	// answer but deny is an approval, whatever became of it later.
	Approved int `json:"approved"`
	Denied   int `json:"denied"`
	Expired  int `json:"expired"`
}

// Sum adds up the tools.
func (t RequestTally) Sum() ToolTally {
	var sum ToolTally
	for _, one := range t.Tools {
		sum.Approved, sum.Denied, sum.Expired = sum.Approved+one.Approved, sum.Denied+one.Denied, sum.Expired+one.Expired
	}
	return sum
}

// Tally counts the rows that were settled from a time on and before another:
// decided, or expired undecided. A row's State is the one that is listed, and q
// selects the rows as it selects a list, but for State, Limit and After. It is
// what a Store's RequestTally returns for all of its rows.
func (q RequestQuery) Tally(rows iter.Seq[*RequestRow], from, to time.Time) RequestTally {
	var out RequestTally
	tools := map[string]*ToolTally{}
	var took []time.Duration
	q.State = []RequestState{Pending, Granted, Refused, Expired, Withdrawn, Stale, Spent}
	matches := q.Matcher()
	for r := range rows {
		decided := !r.DecidedAt.IsZero()
		at := r.DecidedAt
		if !decided && r.State == Expired {
			at = r.ExpiresAt
		}
		if at.IsZero() || at.Before(from) || !at.Before(to) || !matches(r) {
			continue
		}
		tool := tools[r.Tool]
		if tool == nil {
			tool = &ToolTally{Tool: r.Tool}
			tools[r.Tool] = tool
		}
		switch {
		case !decided:
			tool.Expired++
			continue
		case r.State == Refused:
			tool.Denied++
		default:
			tool.Approved++
		}
		d := at.Sub(r.CreatedAt)
		if took = append(took, d); d < Hasty {
			out.Hasty++
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		out.Median = took[len(took)/2]
	}
	for _, t := range tools {
		out.Tools = append(out.Tools, *t)
	}
	slices.SortFunc(out.Tools, func(a, b ToolTally) int { return cmp.Compare(a.Tool, b.Tool) })
	return out
}

// RequestCounter counts requests without reading their logs. A Service that is
// one lets an inbox show how many wait, and the numbers of the day.
type RequestCounter interface {
	// RequestCount counts what Requests would list were it not for Limit and
	// After, up to limit (0: 1,000; at most 1,000).
	RequestCount(ctx context.Context, q RequestQuery, limit int) (int, error)
	// RequestTally counts what was settled from a time on and before another
	// among the requests that q selects, whatever its State, Limit and After.
	RequestTally(ctx context.Context, q RequestQuery, from, to time.Time) (RequestTally, error)
}
