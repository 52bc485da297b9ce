package sqlite

import (
	"context"
	"fmt"

	"github.com/ringi-dev/ringi"
)

var _ ringi.Feed = (*Store)(nil)

const listFeed = `SELECT n, space, run, seq, kind FROM records WHERE n > ? ORDER BY n LIMIT ?`

// Feed lists the records of all runs in the order of their commits. A record's
// row number is given by the one writer of the file in the transaction that it
// belongs to, and no record is ever deleted.
func (s *Store) Feed(ctx context.Context, after int64, limit int) ([]ringi.FeedRow, error) {
	rows, err := s.read.QueryContext(ctx, listFeed, after, bounded(limit, 100))
	if err != nil {
		return nil, fmt.Errorf("list feed after %d: %w", after, err)
	}
	list, err := collect(rows, func(scan func(...any) error) (r ringi.FeedRow, err error) {
		err = scan(&r.N, &r.Space, &r.RunID, &r.Seq, &r.Kind)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("list feed after %d: %w", after, err)
	}
	return list, nil
}

// FeedEnd returns the number of the newest record.
func (s *Store) FeedEnd(ctx context.Context) (n int64, err error) {
	if err := s.read.QueryRowContext(ctx, `SELECT coalesce(max(n), 0) FROM records`).Scan(&n); err != nil {
		return 0, fmt.Errorf("read end of feed: %w", err)
	}
	return n, nil
}
