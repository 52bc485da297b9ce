package sqlite

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi"
)

const (
	// fewRows is how many rows are looked at one by one before terms are asked:
	// what many rows have is found among them, and where no more are in these
	// states all is.
	fewRows = 1500
	// mostSorted is how many rows are sorted by their deadlines.
	mostSorted = 5000
	// rarePieces is how many pieces of a search the terms are asked for, the
	// rarest; probe is how many rows of each are counted to find those.
	rarePieces, probe = 4, 200

	// rowsOfATime is how many requests may have one microsecond.
	rowsOfATime = 1 << 11
	// farTime bounds the times that have row numbers of their own: those beyond
	// the year 2112 share the last.
	farTime = 1<<52 - 2
)

// rowNumber is the first row number of a time.
func rowNumber(created int64) int64 {
	return max(min(created, farTime), -farTime) * rowsOfATime
}

// search fills the page behind after: first row by row, then by terms, whose
// rows come in the order of their numbers, that of creation.
func (s *Store) search(ctx context.Context, p *page, after *ringi.RequestRow) error {
	last, err := s.walk(ctx, p, after, fewRows)
	if err != nil || last == nil || p.full() {
		return err
	}
	terms, err := s.rarest(ctx, p.q)
	if err != nil {
		return err
	}
	if terms == "" { // too many teams to ask for
		_, err := s.walk(ctx, p, last, math.MaxInt32)
		return err
	}
	if p.q.Order != ringi.SoonestFirst {
		return s.byTerms(ctx, p, terms, last, p.limit)
	}
	all := &page{q: p.q, matches: p.matches, limit: mostSorted}
	if err := s.byTerms(ctx, all, terms, nil, mostSorted); err != nil {
		return err
	}
	if all.full() { // too many: those that are soonest are not far
		_, err := s.walk(ctx, p, last, math.MaxInt32)
		return err
	}
	for i := range all.rows {
		if p.q.Compare(&all.rows[i], last) > 0 {
			p.rows = append(p.rows, all.rows[i])
		}
	}
	p.cut()
	return nil
}

// cut sorts what was found and keeps a page of it.
func (p *page) cut() {
	slices.SortFunc(p.rows, func(a, b ringi.RequestRow) int { return p.q.Compare(&a, &b) })
	p.rows = p.rows[:min(len(p.rows), p.limit)]
}

// byTerms adds the rows that the terms find behind a row, in the order of
// creation. Rows of one microsecond come in no order: they are read to their
// last, and sorted.
func (s *Store) byTerms(ctx context.Context, p *page, terms string, behind *ringi.RequestRow, limit int) error {
	query, args := termsQuery(p.q, terms, behind, s.now())
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := requestRow(rows.Scan)
		if err != nil {
			return err
		}
		if n := len(p.rows); n >= limit && rowNumber(p.rows[n-1].CreatedAt.UnixMicro()) != rowNumber(r.CreatedAt.UnixMicro()) {
			break
		}
		if p.matches(&r) && (behind == nil || p.q.Compare(&r, behind) > 0) {
			p.rows = append(p.rows, r)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	p.cut()
	return nil
}

// termsQuery finds rows by terms. The oldest pending request bounds those that
// can be pending, so that older ones that are settled are passed over unseen.
func termsQuery(q *ringi.RequestQuery, terms string, behind *ringi.RequestRow, now int64) (string, []any) {
	var stored []string
	states := statesOf(*q)
	for _, state := range states {
		stored = append(stored, `'`+string(known(state))+`'`)
		if state == ringi.Expired {
			stored = append(stored, `'pending'`)
		}
	}
	where, args := ` WHERE request_terms MATCH ?`, []any{terms}
	switch {
	case behind == nil:
	case q.Order == ringi.NewestFirst:
		where, args = where+` AND request_terms.rowid < ?`, append(args, rowNumber(behind.CreatedAt.UnixMicro())+rowsOfATime)
	default:
		where, args = where+` AND request_terms.rowid >= ?`, append(args, rowNumber(behind.CreatedAt.UnixMicro()))
	}
	if len(states) == 1 && states[0] == ringi.Pending && (behind == nil || q.Order == ringi.NewestFirst) {
		where += ` AND request_terms.rowid >= (SELECT n FROM requests WHERE space = ? AND state = 'pending' ORDER BY created_at, id LIMIT 1)`
		args = append(args, q.Space)
	}
	down := ``
	if q.Order == ringi.NewestFirst {
		down = ` DESC`
	}
	return `SELECT ` + requestColumns + `, iif(state = 'pending' AND expires_at <= ?, 'expired', state)
		FROM request_terms CROSS JOIN requests ON requests.n = request_terms.rowid` + where +
		` AND state IN (` + strings.Join(stored, ", ") + `) ORDER BY request_terms.rowid` + down, append([]any{now}, args...)
}

// known is a state that there is; "" for another.
func known(s ringi.RequestState) ringi.RequestState {
	switch s {
	case ringi.Pending, ringi.Granted, ringi.Refused, ringi.Expired, ringi.Withdrawn, ringi.Stale, ringi.Spent:
		return s
	}
	return ""
}

// rarest is the query of terms with the rarest pieces of the search alone: a
// piece that nearly every row has costs much and narrows little.
func (s *Store) rarest(ctx context.Context, q *ringi.RequestQuery) (string, error) {
	pieces, rest := termsOf(*q)
	if len(pieces) > rarePieces {
		spread := map[string]int64{}
		for _, p := range pieces {
			var n, first, last int64
			err := s.read.QueryRowContext(ctx, `SELECT count(*), ifnull(min(rowid), 0), ifnull(max(rowid), 0)
				FROM (SELECT rowid FROM request_terms WHERE request_terms MATCH ? ORDER BY rowid LIMIT ?)`, p, probe).Scan(&n, &first, &last)
			if err != nil {
				return "", fmt.Errorf("count rows of a term: %w", err)
			}
			spread[p] = last - first
			if n < probe {
				spread[p] = math.MaxInt64 - n // there are no more
			}
		}
		slices.SortStableFunc(pieces, func(a, b string) int { return cmpDown(spread[a], spread[b]) })
		pieces = pieces[:rarePieces]
	}
	return strings.Join(append(pieces, rest...), " AND "), nil
}

func cmpDown(a, b int64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}
