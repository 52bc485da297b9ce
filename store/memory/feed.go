package memory

import (
	"context"
	"sort"

	"github.com/ringi-dev/ringi"
)

var _ ringi.Feed = (*Store)(nil)

// grown says that a run's log grew, by one commit.
type grown struct {
	run  *run
	to   int64 // the newest number in the run's log
	last int64 // the number of that record in the feed
}

// feeds notes n records of a run, which its log has already. The lock is held.
func (d *data) feeds(r *run, n int) {
	last := int64(n)
	if len(d.feed) > 0 {
		last += d.feed[len(d.feed)-1].last
	}
	d.feed = append(d.feed, grown{r, r.row.Seq, last})
}

// Feed lists the records of all runs in the order of their commits.
func (s *Store) Feed(ctx context.Context, after int64, n int) ([]ringi.FeedRow, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	var rows []ringi.FeedRow
	feed, most := s.d.feed, limit(n, 100)
	for i := sort.Search(len(feed), func(i int) bool { return feed[i].last > after }); i < len(feed); i++ {
		g := feed[i]
		first := int64(1)
		if i > 0 {
			first += feed[i-1].last
		}
		for at := max(first, after+1); at <= g.last; at++ {
			if len(rows) == most {
				return rows, nil
			}
			row := ringi.FeedRow{N: at, Space: g.run.row.Space, RunID: g.run.row.ID, Seq: g.to - (g.last - at)}
			if row.Seq <= int64(len(g.run.records)) { // else a thief has cut the log
				row.Kind = g.run.records[row.Seq-1].Kind
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// FeedEnd returns the number of the newest record.
func (s *Store) FeedEnd(ctx context.Context) (int64, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if len(s.d.feed) == 0 {
		return 0, nil
	}
	return s.d.feed[len(s.d.feed)-1].last, nil
}
