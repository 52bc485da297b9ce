package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/ringi-dev/ringi"
)

// feeds holds a store to [ringi.Feed], where it is one.
func feeds(t *testing.T, o opener) {
	o.run(t, "InOrderOfCommits", feedInOrder)
	o.run(t, "MissesNothing", feedMissesNothing)
}

func feeding(t *testing.T, s ringi.Store) ringi.Feed {
	f, ok := s.(ringi.Feed)
	if !ok {
		t.Skip("the store is no ringi.Feed")
	}
	return f
}

func feedInOrder(t *testing.T, g *stage) {
	f := feeding(t, g.Store)
	if end, err := f.FeedEnd(ctx); end != 0 || err != nil {
		t.Fatalf("empty store: end %d, %v", end, err)
	}
	g.commit(first("run_a", "thr_a"))
	other := first("run_a", "thr_a")
	other.Space = "other"
	g.commit(other)
	g.commit(settle(g.row("run_a"), ringi.EventApprovalDecided, ringi.EventApprovalDecided))
	c := next(g.row("run_a"))
	c.Row.Corrupt = "record 1: hash differs"
	c.Records, c.Settle, c.Owner = nil, true, ""
	g.commit(c) // a commit without records is in no feed
	var got []string
	for after := int64(0); ; {
		rows, err := f.Feed(ctx, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 {
			break
		}
		for _, r := range rows {
			if r.N <= after {
				t.Fatalf("row %+v behind %d", r, after)
			}
			after = r.N
			got = append(got, fmt.Sprint(r.Space, " ", r.RunID, " ", r.Seq, " ", r.Kind))
		}
	}
	order(t, "rows of the feed", got, space+" run_a 1 run_started", "other run_a 1 run_started", space+" run_a 2 approval_decided", space+" run_a 3 approval_decided")
}

// Who follows the feed while many commit sees every record once, each run's in
// its order, and nothing comes in behind him.
func feedMissesNothing(t *testing.T, g *stage) {
	f := feeding(t, g.Store)
	const writers, each = 8, 40
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			run := fmt.Sprint("run_", w)
			err := g.Commit(ctx, first(run, "thread of "+run))
			for err == nil {
				var row ringi.RunRow
				if row, err = g.Row(ctx, space, run); err != nil || row.Seq == each {
					break
				}
				c := settle(row, ringi.EventApprovalDecided)
				if err = g.Commit(ctx, c); err == nil && g.Commit(ctx, c) == nil { // takes its number back
					t.Error("a commit behind another was taken")
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	seen, last, got := map[string]int64{}, int64(0), 0
	for got < writers*each && !t.Failed() {
		rows, err := f.Feed(ctx, last, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.N <= last || r.Space != space || r.Seq != seen[r.RunID]+1 || r.Kind == "" {
				t.Fatalf("row %+v behind %d, after number %d", r, last, seen[r.RunID])
			}
			last, seen[r.RunID] = r.N, r.Seq
			got++
		}
	}
	wg.Wait()
	if rows, err := f.Feed(ctx, last, 0); len(rows) != 0 || err != nil {
		t.Errorf("behind the last: %v, %v", rows, err)
	}
	if end, err := f.FeedEnd(ctx); end != last || err != nil {
		t.Errorf("end %d, %v; the last row was %d", end, err, last)
	}
}
