package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Who follows the feed while many commit sees every record once, each run's in
// its order, and nothing comes in behind him.
func TestFeedMissesNothing(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "ringi.db"), Options{})
	if end, err := s.FeedEnd(t.Context()); end != 0 || err != nil {
		t.Fatalf("empty store: end %d, %v", end, err)
	}
	const writers, each = 8, 40
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			run := fmt.Sprint("run_", w)
			if err := s.Commit(t.Context(), first(run)); err != nil {
				t.Error(err)
			}
			for seq := int64(1); seq < each; seq++ {
				if err := s.Commit(t.Context(), settle(run, seq)); err != nil {
					t.Error(err)
				}
				if err := s.Commit(t.Context(), settle(run, seq-1)); err == nil { // takes its number back
					t.Error("a commit behind another was taken")
				}
			}
		})
	}
	seen, last, got := map[string]int64{}, int64(0), 0
	for got < writers*each && !t.Failed() {
		rows, err := s.Feed(t.Context(), last, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.N <= last || r.Space != "default" || r.Seq != seen[r.RunID]+1 || r.Kind == "" {
				t.Fatalf("row %+v behind %d, after seq %d", r, last, seen[r.RunID])
			}
			last, seen[r.RunID] = r.N, r.Seq
			got++
		}
	}
	wg.Wait()
	if rows, err := s.Feed(t.Context(), last, 0); len(rows) != 0 || err != nil {
		t.Errorf("behind the last: %v, %v", rows, err)
	}
	if end, err := s.FeedEnd(t.Context()); end != last || err != nil {
		t.Errorf("end %d, %v; the last row was %d", end, err, last)
	}
	plan := explain(t, s, `SELECT n, space, run, seq, kind FROM records WHERE n > ? ORDER BY n LIMIT ?`, []any{0, 1})
	if !strings.Contains(plan, "PRIMARY KEY") {
		t.Errorf("the plan is no range of the primary key:\n%s", plan)
	}
}
