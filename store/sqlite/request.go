package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
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

// Requests lists request rows of a space in the order that q asks for.
func (s *Store) Requests(ctx context.Context, q ringi.RequestQuery) ([]ringi.RequestRow, error) {
	if err := q.Check(); err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	var after *ringi.RequestRow
	if q.After != "" {
		row, err := s.Request(ctx, q.Space, q.After)
		if err != nil {
			return nil, fmt.Errorf("list requests after %s: %w", q.After, err)
		}
		after = &row
	}
	list, err := s.inOrder(ctx, q, after, bounded(q.Limit, 50))
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	return list, nil
}

// fewMatches is up to how many rows of a filter are sorted by their risk.
const fewMatches = 200

// inOrder lists the riskiest first as one list a risk, each the oldest first:
// what narrows a list to a risk is indexed. A filter that few rows pass is asked
// once.
func (s *Store) inOrder(ctx context.Context, q ringi.RequestQuery, after *ringi.RequestRow, limit int) ([]ringi.RequestRow, error) {
	if q.Order != ringi.RiskiestFirst {
		return s.list(ctx, q, after, limit)
	}
	if q.Filters() {
		all := q
		all.Order = ringi.OldestFirst
		list, err := s.list(ctx, all, nil, fewMatches)
		if err != nil {
			return nil, err
		}
		if len(list) < fewMatches {
			list = slices.DeleteFunc(list, func(r ringi.RequestRow) bool { return after != nil && q.Compare(&r, after) <= 0 })
			slices.SortFunc(list, func(a, b ringi.RequestRow) int { return q.Compare(&a, &b) })
			return list[:min(limit, len(list))], nil
		}
	}
	var out []ringi.RequestRow
	for _, risk := range ringi.Risks() {
		switch {
		case q.Risk != "" && q.Risk.OrHigh() != risk:
			continue
		case after != nil && after.Risk != risk:
			continue // another's page came before
		}
		one := q
		one.Order, one.Risk = ringi.OldestFirst, risk
		list, err := s.list(ctx, one, after, limit-len(out))
		if err != nil {
			return nil, err
		}
		if out, after = append(out, list...), nil; len(out) >= limit {
			break
		}
	}
	return out, nil
}

// RequestCount counts the rows that q selects, up to limit.
func (s *Store) RequestCount(ctx context.Context, q ringi.RequestQuery, limit int) (int, error) {
	if err := q.Check(); err != nil {
		return 0, fmt.Errorf("count requests: %w", err)
	}
	limit, q.Order = bounded(limit, 1000), ringi.OldestFirst
	if q.Filters() {
		list, err := s.list(ctx, q, nil, limit)
		if err != nil {
			return 0, fmt.Errorf("count requests: %w", err)
		}
		return len(list), nil
	}
	query, args := requestsQuery("created_at, id, expires_at, ", q, nil, s.now(), limit)
	n := 0
	if err := s.read.QueryRowContext(ctx, `SELECT count(*) FROM (`+query+`)`, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count requests: %w", err)
	}
	return n, nil
}

// list chooses the way. Without a filter a page is what an index gives, and so
// are the few requests of a run or thread; the rest is searched for.
func (s *Store) list(ctx context.Context, q ringi.RequestQuery, after *ringi.RequestRow, limit int) ([]ringi.RequestRow, error) {
	found := &page{q: &q, matches: q.Matcher(), limit: limit}
	switch {
	case !q.Filters():
		query, args := requestsQuery(requestColumns+", ", q, after, s.now(), limit)
		err := s.collect(ctx, found, after, query, args)
		return found.rows, err
	case q.RunID != "" || q.Thread != "":
		_, err := s.walk(ctx, found, after, math.MaxInt32)
		return found.rows, err
	}
	err := s.search(ctx, found, after)
	return found.rows, err
}

// page collects rows that match, in the order of the query.
type page struct {
	q       *ringi.RequestQuery
	matches func(*ringi.RequestRow) bool
	limit   int
	rows    []ringi.RequestRow
	// byNumber is set where rows come in the order of their numbers.
	byNumber bool
}

func (p *page) full() bool { return len(p.rows) >= p.limit }

// walk looks at up to most rows behind after, in the order of the query, until
// the page is full. It returns the last row that it has looked at, nil where
// there is none behind it. The index gives the rows, and what they are held
// against is asked of SQLite before one is read.
func (s *Store) walk(ctx context.Context, p *page, after *ringi.RequestRow, most int) (*ringi.RequestRow, error) {
	inner, args := requestsQuery("n AS m, created_at, id, expires_at, ", *p.q, after, s.now(), most)
	where, whereArgs := conditions(p.q)
	err := s.collect(ctx, p, after, `SELECT `+requestColumns+`, shown FROM (SELECT m, shown FROM (`+inner+`))
		CROSS JOIN requests ON n = m WHERE true`+where, append(slices.Clone(args), whereArgs...))
	if err != nil || p.full() || most == math.MaxInt32 {
		return nil, err
	}
	var last ringi.RequestRow
	var created, expires moment
	err = s.read.QueryRowContext(ctx, `SELECT created_at, id, expires_at FROM (`+inner+`) LIMIT 1 OFFSET ?`, append(args, most-1)...).
		Scan(&created, &last.ID, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	last.CreatedAt, last.ExpiresAt = time.Time(created), time.Time(expires)
	return &last, err
}

// collect adds the rows of a query that match, up to a full page. A page whose
// query is in the order of creation by row numbers is read on to the last row
// of the same microsecond: see byTerms.
func (s *Store) collect(ctx context.Context, p *page, behind *ringi.RequestRow, query string, args []any) error {
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
		if p.full() && !(p.byNumber && p.rows[len(p.rows)-1].CreatedAt.Equal(r.CreatedAt)) {
			break
		}
		if p.matches(&r) && (behind == nil || p.q.Compare(&r, behind) > 0) {
			p.rows = append(p.rows, r)
		}
		if p.full() && !p.byNumber {
			break
		}
	}
	return rows.Err()
}

// conditions are those of q on a row's own columns, as far as SQLite can tell:
// what they let through is held against the query once more.
func conditions(q *ringi.RequestQuery) (string, []any) {
	var where strings.Builder
	var args []any
	add := func(test string, value ...any) {
		where.WriteString(` AND ` + test)
		args = append(args, value...)
	}
	for _, c := range [][2]string{{"tool", q.Tool}, {"agent", q.Agent}, {"kind", string(q.Kind)}, {"initiator", q.Initiator}, {"risk", riskOf(q)}} {
		if c[1] != "" {
			add(c[0]+` = ?`, c[1])
		}
	}
	for _, word := range q.Words() {
		add(`instr(text, ?)`, word)
	}
	if p := q.For; (p.ID != "" || len(p.Teams) > 0) && len(p.Teams) <= mostTeams {
		some, ids := []string{`people = '' AND teams = ''`}, []any{}
		if p.ID != "" {
			some, ids = append(some, `instr(people, ?)`), append(ids, jsonText(p.ID))
		}
		for _, team := range p.Teams {
			some, ids = append(some, `instr(teams, ?)`), append(ids, jsonText(team))
		}
		add(`(`+strings.Join(some, ` OR `)+`)`, ids...)
	}
	return where.String(), args
}

// riskOf is the column's value for the risk that q asks for; empty for any.
func riskOf(q *ringi.RequestQuery) string {
	if q.Risk == "" {
		return ""
	}
	return string(q.Risk.OrHigh())
}

// noDeadline stands for none where requests are ordered by their deadlines.
const noDeadline = math.MaxInt64

// requestsQuery joins one ordered query a state, each over an index, so that a
// page costs what is on it however many requests there are. columns end with a
// comma; the state that is shown follows them.
func requestsQuery(columns string, q ringi.RequestQuery, after *ringi.RequestRow, now int64, limit int) (string, []any) {
	order := ` ORDER BY ` + orderOf(q.Order) + ` LIMIT ?`
	var parts []string
	var args []any
	part := func(shown, state ringi.RequestState, test string, testArgs ...any) {
		where, whereArgs := requestsWhere(q, state, after)
		parts = append(parts, `SELECT * FROM (SELECT `+columns+`'`+string(shown)+`' AS shown FROM requests`+
			where+test+order+`)`)
		args = append(append(append(args, whereArgs...), testArgs...), limit)
	}
	for _, state := range statesOf(q) {
		switch state {
		case ringi.Pending:
			if q.Order == ringi.SoonestFirst {
				part(state, state, ` AND deadline > ?`, now)
				continue
			}
			part(state, state, ` AND (expires_at IS NULL OR expires_at > ?)`, now)
		case ringi.Expired:
			part(state, state, ``)
			part(state, ringi.Pending, ` AND expires_at <= ?`, now)
		case ringi.Granted, ringi.Refused, ringi.Withdrawn, ringi.Stale, ringi.Spent:
			part(state, state, ``)
		}
	}
	if len(parts) == 0 { // no state that there is
		return `SELECT ` + columns + `state AS shown FROM requests WHERE space = ? AND id = ''`, []any{q.Space}
	}
	if len(parts) == 1 {
		return parts[0], args
	}
	order = strings.ReplaceAll(order, `deadline`, `ifnull(expires_at, 9223372036854775807)`) // no column of the parts
	return `SELECT * FROM (` + strings.Join(parts, ` UNION ALL `) + `)` + order, append(args, limit)
}

// statesOf are the states that a query asks for, each once.
func statesOf(q ringi.RequestQuery) []ringi.RequestState {
	if len(q.State) == 0 {
		return []ringi.RequestState{ringi.Pending}
	}
	states := slices.Clone(q.State)
	slices.Sort(states)
	return slices.Compact(states)
}

func orderOf(o ringi.RequestOrder) string {
	switch o {
	case ringi.NewestFirst:
		return `created_at DESC, id DESC`
	case ringi.SoonestFirst:
		return `deadline, created_at, id`
	}
	return `created_at, id`
}

func requestsWhere(q ringi.RequestQuery, state ringi.RequestState, after *ringi.RequestRow) (string, []any) {
	where, args := ` WHERE space = ?`, []any{q.Space}
	// A run has few requests, and a thread few runs: there the plus keeps the
	// index of the states away.
	if q.RunID != "" {
		where, args = where+` AND run = ?`, append(args, q.RunID)
	}
	if q.Thread != "" {
		where += ` AND thread = ? AND run IN (SELECT id FROM runs WHERE runs.space = ? AND runs.thread = ?)`
		args = append(args, q.Thread, q.Space, q.Thread)
	}
	few := q.RunID != "" || q.Thread != ""
	switch { // the state is one of ours: it stands in the text for the partial index
	case few:
		where += ` AND +state = '` + string(state) + `'`
	case q.Order == ringi.SoonestFirst && state == ringi.Pending:
		where = ` INDEXED BY requests_soonest` + where + ` AND state = 'pending'`
	default:
		where += ` AND state = '` + string(state) + `'`
	}
	if risk := riskOf(&q); risk != "" { // SQLite takes requests_risk for it
		where, args = where+` AND risk = ?`, append(args, risk)
	}
	if after == nil {
		return where, args
	}
	created := after.CreatedAt.UnixMicro()
	switch q.Order {
	case ringi.NewestFirst:
		return where + ` AND (created_at, id) < (?, ?)`, append(args, created, after.ID)
	case ringi.SoonestFirst:
		deadline := int64(noDeadline)
		if !after.ExpiresAt.IsZero() {
			deadline = after.ExpiresAt.UnixMicro()
		}
		return where + ` AND (deadline, created_at, id) > (?, ?, ?)`, append(args, deadline, created, after.ID)
	}
	return where + ` AND (created_at, id) > (?, ?)`, append(args, created, after.ID)
}

const requestColumns = `space, id, run, thread, call, kind, tool, digest, agent, initiator, people, teams, text, risk, created_at,
	expires_at, decided_at, use_by, decided_by`

// requestRow reads requestColumns and the state.
func requestRow(scan func(...any) error) (ringi.RequestRow, error) {
	var r ringi.RequestRow
	var created, expires, decided, useBy moment
	err := scan(&r.Space, &r.ID, &r.RunID, &r.Thread, &r.CallID, &r.Kind, &r.Tool, &r.Digest,
		&r.Agent, &r.Initiator, (*texts)(&r.People), (*texts)(&r.Teams), &r.Text, &r.Risk,
		&created, &expires, &decided, &useBy, &r.DecidedBy, &r.State)
	if err != nil {
		return ringi.RequestRow{}, found(err)
	}
	r.CreatedAt, r.ExpiresAt = time.Time(created), time.Time(expires)
	r.DecidedAt, r.UseBy = time.Time(decided), time.Time(useBy)
	return r, nil
}
