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

// feed is what grew, in the order of the commits: in pieces, so that one more is
// no copy of all.
type feed [][]grown

const piece = 512

func (f *feed) add(g grown) {
	if n := len(*f); n == 0 || len((*f)[n-1]) == piece {
		*f = append(*f, make([]grown, 0, piece))
	}
	end := &(*f)[len(*f)-1]
	*end = append(*end, g)
}

func (f feed) at(i int) grown { return f[i/piece][i%piece] }

func (f feed) len() int {
	if len(f) == 0 {
		return 0
	}
	return (len(f)-1)*piece + len(f[len(f)-1])
}

// end is the number of the newest record.
func (f feed) end() int64 {
	if n := f.len(); n > 0 {
		return f.at(n - 1).last
	}
	return 0
}

// feeds notes n records of a run, which its log has already. The lock is held.
func (d *data) feeds(r *run, n int) {
	d.feed.add(grown{r, r.row.Seq, d.feed.end() + int64(n)})
}

// Feed lists the records of all runs in the order of their commits.
func (s *Store) Feed(ctx context.Context, after int64, n int) ([]ringi.FeedRow, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	var rows []ringi.FeedRow
	f, most := s.d.feed, limit(n, 100)
	all := f.len()
	for i := sort.Search(all, func(i int) bool { return f.at(i).last > after }); i < all; i++ {
		g := f.at(i)
		first := int64(1)
		if i > 0 {
			first += f.at(i - 1).last
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
	return s.d.feed.end(), nil
}
