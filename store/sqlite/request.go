package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
)

// Request returns one request row; a pending one past its time is shown as
// expired.
func (s *Store) Request(ctx context.Context, space, id string) (ringi.RequestRow, error) {
	row, err := requestRow(s.readRequest.QueryRowContext(ctx, s.now(), space, id).Scan)
	if err != nil {
		return ringi.RequestRow{}, fmt.Errorf("read request %s: %w", id, err)
	}
	return row, nil
}

const readRequest = `SELECT ` + requestColumns + `, iif(state = 'pending' AND expires_at <= ?, 'expired', state)
	FROM requests WHERE space = ? AND id = ?`

// Requests lists request rows of a space in the order of their creation, then
// of their ids.
func (s *Store) Requests(ctx context.Context, q ringi.RequestQuery) ([]ringi.RequestRow, error) {
	after := position{}
	if q.After != "" {
		row, err := s.Request(ctx, q.Space, q.After)
		if err != nil {
			return nil, fmt.Errorf("list requests after %s: %w", q.After, err)
		}
		after = position{row.CreatedAt.UnixMicro(), row.ID}
	}
	query, args := requestsQuery(q, after, s.now())
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	list, err := collect(rows, requestRow)
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	return list, nil
}

// position is a place in the order of requests; the zero value is before all.
type position struct {
	created int64
	id      string
}

// requestsQuery joins one ordered query a state, each over an index, so that a
// page costs what is on it however many requests there are.
func requestsQuery(q ringi.RequestQuery, after position, now int64) (string, []any) {
	states := slices.Clone(q.State)
	if len(states) == 0 {
		states = []ringi.RequestState{ringi.Pending}
	}
	slices.Sort(states)
	limit := bounded(q.Limit, 50)
	var parts []string
	var args []any
	part := func(shown ringi.RequestState, state ringi.RequestState, test string, testArgs ...any) {
		where, whereArgs := requestsWhere(q, state, after)
		parts = append(parts, `SELECT * FROM (SELECT `+requestColumns+`, '`+string(shown)+`' FROM requests WHERE `+
			where+test+` ORDER BY created_at, id LIMIT ?)`)
		args = append(append(append(args, whereArgs...), testArgs...), limit)
	}
	for _, state := range slices.Compact(states) {
		switch state {
		case ringi.Pending:
			part(state, state, ` AND (expires_at IS NULL OR expires_at > ?)`, now)
		case ringi.Expired:
			part(state, state, ``)
			part(state, ringi.Pending, ` AND expires_at <= ?`, now)
		case ringi.Granted, ringi.Refused, ringi.Withdrawn, ringi.Stale, ringi.Spent:
			part(state, state, ``)
		}
	}
	if len(parts) == 0 { // no state that there is
		return `SELECT ` + requestColumns + `, state FROM requests WHERE space = ? AND id = ''`, []any{q.Space}
	}
	return strings.Join(parts, ` UNION ALL `) + ` ORDER BY created_at, id LIMIT ?`, append(args, limit)
}

func requestsWhere(q ringi.RequestQuery, state ringi.RequestState, after position) (string, []any) {
	where, args := `space = ?`, []any{q.Space}
	// A run has few requests, and a thread few runs: there the plus keeps the
	// index of the states away.
	if q.RunID != "" {
		where, args = where+` AND run = ?`, append(args, q.RunID)
	}
	if q.Thread != "" {
		where += ` AND thread = ? AND run IN (SELECT id FROM runs WHERE runs.space = ? AND runs.thread = ?)`
		args = append(args, q.Thread, q.Space, q.Thread)
	}
	if q.RunID != "" || q.Thread != "" {
		where += ` AND +state = ?`
	} else {
		where += ` AND state = ?`
	}
	args = append(args, string(state))
	if after.id != "" {
		where, args = where+` AND (created_at, id) > (?, ?)`, append(args, after.created, after.id)
	}
	return where, args
}

const requestColumns = `space, id, run, thread, call, kind, tool, digest, body, created_at,
	expires_at, decided_at, use_by, decided_by`

// requestRow reads requestColumns and the state.
func requestRow(scan func(...any) error) (ringi.RequestRow, error) {
	var r ringi.RequestRow
	var body blob
	var created, expires, decided, useBy moment
	err := scan(&r.Space, &r.ID, &r.RunID, &r.Thread, &r.CallID, &r.Kind, &r.Tool, &r.Digest, &body,
		&created, &expires, &decided, &useBy, &r.DecidedBy, &r.State)
	if err != nil {
		return ringi.RequestRow{}, found(err)
	}
	r.Body = body
	r.CreatedAt, r.ExpiresAt = time.Time(created), time.Time(expires)
	r.DecidedAt, r.UseBy = time.Time(decided), time.Time(useBy)
	return r, nil
}
