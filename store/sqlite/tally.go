package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"

	"github.com/ringi-dev/ringi"
)

// RequestTally counts what was settled from a time on and before another. A
// search finds its rows by their terms, everything else goes through the rows of
// that time.
func (s *Store) RequestTally(ctx context.Context, q ringi.RequestQuery, from, to time.Time) (ringi.RequestTally, error) {
	if err := q.Check(); err != nil {
		return ringi.RequestTally{}, fmt.Errorf("tally requests: %w", err)
	}
	q.Limit, q.After, q.Order = 0, "", ringi.NewestFirst
	var failed error
	rows := s.settledRows(ctx, from, to, q, &failed)
	if len(q.Words()) > 0 {
		q.State = []ringi.RequestState{ringi.Granted, ringi.Refused, ringi.Expired, ringi.Withdrawn, ringi.Stale, ringi.Spent}
		list, err := s.list(ctx, q, nil, math.MaxInt32)
		failed, rows = err, func(yield func(*ringi.RequestRow) bool) {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
	t := q.Tally(rows, from, to)
	if failed != nil {
		return ringi.RequestTally{}, fmt.Errorf("tally requests: %w", failed)
	}
	return t, nil
}

// readTally is every row that may count: decided in the time, noted as expired
// in it, or past a deadline in it and not yet noted. None is in two of them, as
// what is decided first and lapses later has been decided.
const readTally = `SELECT ` + requestColumns + `, iif(state = 'pending' AND expires_at <= ?, 'expired', state) FROM requests INDEXED BY requests_decided
	WHERE space = ? AND decided_at >= ? AND decided_at < ?
	UNION ALL SELECT ` + requestColumns + `, state FROM requests INDEXED BY requests_expired
	WHERE space = ? AND state = 'expired' AND expires_at >= ? AND expires_at < ? AND decided_at IS NULL
	UNION ALL SELECT ` + requestColumns + `, 'expired' FROM requests INDEXED BY requests_soonest
	WHERE space = ? AND state = 'pending' AND deadline >= ? AND deadline < ? AND decided_at IS NULL`

// settledRows reads the rows of a time one by one; an error is left in failed.
func (s *Store) settledRows(ctx context.Context, from, to time.Time, q ringi.RequestQuery, failed *error) func(func(*ringi.RequestRow) bool) {
	return func(yield func(*ringi.RequestRow) bool) {
		now, since, until := s.now(), from.UnixMicro(), to.UnixMicro()
		rows, err := s.read.QueryContext(ctx, readTally, now, q.Space, since, until, q.Space, since, until, q.Space, since, min(until, now+1))
		if err != nil {
			*failed = err
			return
		}
		defer rows.Close()
		*failed = eachRow(rows, yield)
	}
}

func eachRow(rows *sql.Rows, yield func(*ringi.RequestRow) bool) error {
	for rows.Next() {
		r, err := requestRow(rows.Scan)
		if err != nil {
			return err
		}
		if !yield(&r) {
			return nil
		}
	}
	return rows.Err()
}
