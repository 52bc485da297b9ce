package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
)

// Load returns a copy of a run with all its records.
func (s *Store) Load(ctx context.Context, space, runID string) (*ringi.StoredRun, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	out := &ringi.StoredRun{}
	s.d.mu.Lock()
	r := s.d.spaces[space].run(runID)
	if r != nil {
		r.seal()
		out.Row, out.Records = r.row, r.records
	}
	s.d.mu.Unlock()
	if r == nil {
		return nil, noRun(runID)
	}
	copyOut(out)
	return out, nil
}

// Row returns a run's row.
func (s *Store) Row(ctx context.Context, space, runID string) (ringi.RunRow, error) {
	if err := s.begin(ctx); err != nil {
		return ringi.RunRow{}, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	r := s.d.spaces[space].run(runID)
	if r == nil {
		return ringi.RunRow{}, noRun(runID)
	}
	r.seal()
	return r.row, nil
}

// Transcript returns copies of the ended runs of a thread, as they were made.
func (s *Store) Transcript(ctx context.Context, space, thread string) ([]*ringi.StoredRun, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	var out []*ringi.StoredRun
	s.d.mu.Lock()
	if sp := s.d.spaces[space]; sp != nil && sp.threads[thread] != nil {
		for _, r := range sp.threads[thread].runs {
			if r.row.Status.Final() {
				r.seal()
				out = append(out, &ringi.StoredRun{Row: r.row, Records: r.records})
			}
		}
	}
	s.d.mu.Unlock()
	for _, r := range out {
		copyOut(r)
	}
	return out, nil
}

// Runs lists run rows, newest first.
func (s *Store) Runs(ctx context.Context, q ringi.RunQuery) ([]ringi.RunRow, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	var from []*run
	if sp := s.d.spaces[q.Space]; sp != nil && q.Thread == "" {
		from = sp.order
	} else if sp != nil && sp.threads[q.Thread] != nil {
		from = sp.threads[q.Thread].runs
	}
	if q.After != "" {
		cursor := s.d.spaces[q.Space].run(q.After)
		if cursor == nil {
			return nil, noRun(q.After)
		}
		from = from[:madeBefore(from, cursor)]
	}
	var out []ringi.RunRow
	for i := len(from) - 1; i >= 0 && len(out) < limit(q.Limit, 100); i-- {
		if len(q.Status) == 0 || slices.Contains(q.Status, from[i].row.Status) {
			from[i].seal()
			out = append(out, from[i].row)
		}
	}
	return out, nil
}

// madeBefore counts the runs of a list, in the order in which they were made,
// that were made before r.
func madeBefore(runs []*run, r *run) int {
	n, _ := slices.BinarySearchFunc(runs, r, func(a, b *run) int { return cmp.Compare(a.number, b.number) })
	return n
}

// limit is a list's limit: the default for none, 1,000 at most.
func limit(n, none int) int {
	if n <= 0 {
		return none
	}
	return min(n, 1000)
}

// Runnable lists runs that wait for an owner, oldest first. It looks at the
// runs that have not ended and at no others.
func (s *Store) Runnable(ctx context.Context, n int) ([]ringi.RunRow, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	wall, d := s.wall(), s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	at := max(wall, d.newest)
	var out []ringi.RunRow
	for r := d.firstOpen; r != nil && len(out) < limit(n, 100); r = r.nextOpen {
		if d.runnable(&r.row, at) {
			r.seal()
			out = append(out, r.row)
		}
	}
	return out, nil
}

func (d *data) runnable(row *ringi.RunRow, at int64) bool {
	if row.Corrupt != "" || row.Owner != "" && d.lives(row.Owner, at) {
		return false
	}
	switch {
	case row.Status == ringi.Queued:
		return true
	case row.Status == ringi.Running:
		// Without an owner it is a gate's, between two calls.
		return row.Owner != "" || reached(row.Deadline, timeOf(at))
	case row.Status.Waiting():
		return reached(row.Deadline, timeOf(at))
	}
	return false
}

// reached reports whether a deadline has come; the zero one never does.
func reached(deadline, now time.Time) bool { return !deadline.IsZero() && !now.Before(deadline) }

// Spaces lists the spaces that hold a run. A request is never without one.
func (s *Store) Spaces(ctx context.Context) ([]string, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return slices.Sorted(maps.Keys(s.d.spaces)), nil
}

// Request returns a copy of one request's row; a pending one past its time
// shows as expired.
func (s *Store) Request(ctx context.Context, space, id string) (ringi.RequestRow, error) {
	if err := s.begin(ctx); err != nil {
		return ringi.RequestRow{}, err
	}
	wall := s.wall()
	s.d.mu.Lock()
	q := s.d.spaces[space].request(id)
	if q == nil {
		s.d.mu.Unlock()
		return ringi.RequestRow{}, noRequest(id)
	}
	row := q.row
	row.State = shown(&row, timeOf(max(wall, s.d.newest)))
	s.d.mu.Unlock()
	return copyLists(row), nil
}

// shown is the state that a row is listed under.
func shown(row *ringi.RequestRow, now time.Time) ringi.RequestState {
	if row.State == ringi.Pending && reached(row.ExpiresAt, now) {
		return ringi.Expired
	}
	return row.State
}

// Requests lists copies of request rows in the order that q asks for.
func (s *Store) Requests(ctx context.Context, q ringi.RequestQuery) ([]ringi.RequestRow, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if err := q.Check(); err != nil {
		return nil, err
	}
	wall := s.wall()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	out, err := s.d.list(&q, timeOf(max(wall, s.d.newest)))
	for i := range out {
		out[i] = copyLists(out[i])
	}
	return out, err
}

// RequestCount counts the rows that q selects, up to limit.
func (s *Store) RequestCount(ctx context.Context, q ringi.RequestQuery, limit int) (int, error) {
	if limit <= 0 {
		limit = 1000
	}
	q.Limit, q.After = limit, ""
	rows, err := s.Requests(ctx, q)
	return len(rows), err
}

// RequestTally counts what was settled from a time on and before another.
func (s *Store) RequestTally(ctx context.Context, q ringi.RequestQuery, from, to time.Time) (ringi.RequestTally, error) {
	if err := s.begin(ctx); err != nil {
		return ringi.RequestTally{}, err
	}
	if err := q.Check(); err != nil {
		return ringi.RequestTally{}, err
	}
	wall := s.wall()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	now, sp := timeOf(max(wall, s.d.newest)), s.d.spaces[q.Space]
	if sp == nil {
		return ringi.RequestTally{}, nil
	}
	return q.Tally(func(yield func(*ringi.RequestRow) bool) {
		for _, r := range sp.byAge {
			row := r.row
			if row.State = shown(&row, now); !yield(&row) {
				return
			}
		}
	}, from, to), nil
}

// list returns rows whose lists are still the store's. The lock is held.
func (d *data) list(q *ringi.RequestQuery, now time.Time) ([]ringi.RequestRow, error) {
	var from byAge
	sp := d.spaces[q.Space]
	if sp != nil && q.RunID == "" {
		from = sp.byAge
	} else if r := sp.run(q.RunID); r != nil {
		from = r.requests
	}
	var after *request
	if q.After != "" {
		if after = sp.request(q.After); after == nil {
			return nil, noRequest(q.After)
		}
	}
	if after != nil && q.Order == ringi.OldestFirst {
		from = from[from.behind(after):]
	}
	matches, most := q.Matcher(), limit(q.Limit, 50)
	var out []ringi.RequestRow
	for _, r := range from {
		if q.Order == ringi.OldestFirst && len(out) == most {
			break
		}
		row := r.row
		row.State = shown(&row, now)
		if matches(&row) && (after == nil || q.Compare(&row, &after.row) > 0) {
			out = append(out, row)
		}
	}
	if q.Order != ringi.OldestFirst {
		slices.SortFunc(out, func(a, b ringi.RequestRow) int { return q.Compare(&a, &b) })
	}
	return out[:min(len(out), most)], nil
}

// byAge is a list of requests, oldest first, then by id.
type byAge []*request

func older(a, b *request) int {
	if c := a.row.CreatedAt.Compare(b.row.CreatedAt); c != 0 {
		return c
	}
	return cmp.Compare(a.row.ID, b.row.ID)
}

// behind returns the first place behind r.
func (l byAge) behind(r *request) int {
	i, found := slices.BinarySearchFunc(l, r, older)
	if found {
		i++
	}
	return i
}

// add puts r in its place, which is the end for nearly all.
func (l *byAge) add(r *request) {
	if n := len(*l); n == 0 || older((*l)[n-1], r) < 0 {
		*l = append(*l, r)
		return
	}
	*l = slices.Insert(*l, l.behind(r), r)
}
