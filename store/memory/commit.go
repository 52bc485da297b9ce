package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
)

// Commit applies one change of one run, whole or not at all. It looks first and
// writes last: nothing after the first write can fail.
func (s *Store) Commit(ctx context.Context, c *ringi.Commit) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := shape(c); err != nil {
		return fmt.Errorf("commit run %s: %w", c.RunID, err)
	}
	in := copyIn(c)
	wall := s.wall()
	if err := s.d.commit(c, in, wall); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if c.Wake && s.opts.Wake != nil {
		s.opts.Wake(c.Space, c.RunID)
	}
	return nil
}

// shape checks what needs no look at what is stored.
func shape(c *ringi.Commit) error {
	switch {
	case c.Space == "" || c.RunID == "":
		return errors.New("space and run id are needed")
	case c.Expect < 0:
		return errors.New("expected sequence number is negative")
	case c.Claim && c.Owner == "":
		return errors.New("claim names no owner")
	case c.Expect == 0 && (len(c.Records) == 0 || c.Row.Thread == "" || c.Row.Status == ""):
		return errors.New("first commit needs records, a thread and a status")
	}
	for i := range c.Records {
		if want := c.Expect + int64(i) + 1; c.Records[i].Seq != want {
			return fmt.Errorf("record %d has sequence number %d, want %d", i, c.Records[i].Seq, want)
		}
	}
	if c.Settle {
		if err := settlerShape(c); err != nil {
			return err
		}
	}
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Live && ch.Past {
			return fmt.Errorf("change of request %s is both live and past", ch.ID)
		}
		if !moves(ch.From, ch.To) {
			return fmt.Errorf("change of request %s: %q does not move to %q", ch.ID, ch.From, ch.To)
		}
	}
	return requestShape(c)
}

// settlerShape holds a settler to what one may do without a lease.
func settlerShape(c *ringi.Commit) error {
	switch {
	case c.Owner != "":
		return errors.New("settler names an owner")
	case c.Expect == 0:
		return errors.New("settler makes no run")
	case c.Claim || c.Release || c.Progress:
		return errors.New("settler does not claim, release or progress")
	case c.Row.Status == ringi.Running:
		return errors.New("settler gives the status running, not the one that the run has if nobody runs it")
	}
	for i := range c.Records {
		if k := c.Records[i].Kind; !k.Settles() {
			return fmt.Errorf("settler writes %q", k)
		}
	}
	return nil
}

// moves is the table of ringi.RequestState.
func moves(from, to ringi.RequestState) bool {
	switch to {
	case ringi.Granted, ringi.Refused:
		return from == ringi.Pending
	case ringi.Expired, ringi.Withdrawn, ringi.Stale:
		return from == ringi.Pending || from == ringi.Granted
	case ringi.Spent:
		return from == ringi.Granted
	}
	return false
}

func requestShape(c *ringi.Commit) error {
	seen := map[string]bool(nil)
	for i := range c.Requests {
		q := &c.Requests[i]
		if q.ID == "" || q.Space != c.Space || q.RunID != c.RunID {
			return fmt.Errorf("request %q is not one of this run", q.ID)
		}
		if len(c.Requests) == 1 {
			break
		}
		if seen == nil {
			seen = make(map[string]bool, len(c.Requests))
		}
		if seen[q.ID] {
			return fmt.Errorf("request %s is there twice", q.ID)
		}
		seen[q.ID] = true
	}
	return nil
}

// incoming is a commit's bytes, copied before the lock is taken.
type incoming struct {
	records  []ringi.Record
	requests []*request
	tools    map[string][]byte
}

func copyIn(c *ringi.Commit) incoming {
	n := 0
	for i := range c.Records {
		n += len(c.Records[i].Head) + len(c.Records[i].Payload) + len(c.Records[i].Salt)
	}
	for i := range c.Requests {
		n += len(c.Requests[i].Body)
	}
	for _, def := range c.Tools {
		n += len(def)
	}
	k := make(block, 0, n)
	in := incoming{records: copyRecords(&k, c.Records)}
	if len(c.Requests) > 0 {
		kept := make([]request, len(c.Requests))
		in.requests = make([]*request, len(c.Requests))
		for i, q := range c.Requests {
			q.Body = k.cut(q.Body)
			kept[i].row = cutTimes(q)
			in.requests[i] = &kept[i]
		}
	}
	if len(c.Tools) > 0 {
		in.tools = make(map[string][]byte, len(c.Tools))
		for digest, def := range c.Tools {
			in.tools[digest] = k.cut(def)
		}
	}
	return in
}

// copyRecords returns a copy of records whose bytes lie in k.
func copyRecords(k *block, records []ringi.Record) []ringi.Record {
	if len(records) == 0 {
		return nil
	}
	out := make([]ringi.Record, len(records))
	for i := range records {
		out[i] = records[i]
		out[i].Head = k.cut(records[i].Head)
		out[i].Payload = k.cut(records[i].Payload)
		out[i].Salt = k.cut(records[i].Salt)
	}
	return out
}

func cutTimes(q ringi.RequestRow) ringi.RequestRow {
	q.CreatedAt, q.ExpiresAt = micros(q.CreatedAt), micros(q.ExpiresAt)
	q.DecidedAt, q.UseBy = micros(q.DecidedAt), micros(q.UseBy)
	return q
}

// commit checks and applies a change under the lock.
func (d *data) commit(c *ringi.Commit, in incoming, wall int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := max(wall, d.newest)
	r, err := d.admit(c, wall, at)
	if err != nil {
		return err
	}
	var few [4]move
	moved, err := d.stage(few[:0], c, in.requests, timeOf(at))
	if err != nil {
		return err
	}
	if r == nil {
		r = d.make(c, timeOf(at))
	}
	d.newest = at
	d.write(r, c, in, timeOf(at))
	for i := range moved {
		moved[i].apply()
	}
	return nil
}

// admit checks all but the requests. It returns no run for the first commit.
func (d *data) admit(c *ringi.Commit, wall, at int64) (*run, error) {
	r := d.spaces[c.Space].run(c.RunID)
	switch {
	case c.Expect == 0 && r != nil:
		return nil, fmt.Errorf("make run %s: %w", c.RunID, ringi.ErrConflict)
	case c.Expect == 0:
	case r == nil:
		return nil, noRun(c.RunID)
	case r.row.Corrupt != "" && (c.Claim || len(c.Records) > 0):
		return nil, fmt.Errorf("run %s: %w: %s", c.RunID, ringi.ErrCorrupt, r.row.Corrupt)
	}
	if err := d.leased(r, c, at); err != nil {
		return nil, err
	}
	if d.newest-wall > clockSlack && needsClock(c) {
		return nil, fmt.Errorf("run %s: %w by %s", c.RunID, ringi.ErrClock, time.Duration(d.newest-wall)*time.Microsecond)
	}
	if r == nil {
		return nil, d.threadIsFree(c)
	}
	switch s := c.Row.Status; {
	case c.Settle && s.Final() && !r.row.Status.Final():
		return nil, fmt.Errorf("run %s: settler ends no run", c.RunID)
	case !c.Settle && r.row.Status.Final() && s != "" && s != r.row.Status:
		return nil, fmt.Errorf("run %s is %s: %w", c.RunID, r.row.Status, ringi.ErrFinal)
	}
	return r, nil
}

// leased checks lease, sequence number and epoch. r is nil for a run to be
// made.
func (d *data) leased(r *run, c *ringi.Commit, at int64) error {
	var owner string
	var epoch, seq int64
	if r != nil {
		owner, epoch, seq = r.row.Owner, r.row.Epoch, r.row.Seq
	}
	switch {
	case c.Settle:
	case c.Claim:
		if owner != "" && owner != c.Owner && d.lives(owner, at) {
			return fmt.Errorf("claim run %s: %w", c.RunID, ringi.ErrBusy)
		}
		if !d.lives(c.Owner, at) {
			return fmt.Errorf("claim run %s: %w: %q has no living heartbeat", c.RunID, ringi.ErrLeaseLost, c.Owner)
		}
		if c.Epoch != epoch {
			return fmt.Errorf("claim run %s at epoch %d, not %d: %w", c.RunID, epoch, c.Epoch, ringi.ErrConflict)
		}
	case r == nil && c.Owner == "":
	case r == nil || c.Owner == "" || c.Owner != owner || c.Epoch != epoch:
		return fmt.Errorf("run %s: %w", c.RunID, ringi.ErrLeaseLost)
	}
	if c.Expect != seq {
		return fmt.Errorf("run %s is at %d, not %d: %w", c.RunID, seq, c.Expect, ringi.ErrConflict)
	}
	return nil
}

// clockSlack is how far the wall clock may be behind the newest recorded time
// before it is not trusted: two minutes, in microseconds.
const clockSlack = 2 * 60 * 1_000_000

// needsClock reports whether a commit decides, spends or claims.
func needsClock(c *ringi.Commit) bool {
	return c.Claim || slices.ContainsFunc(c.Changes, func(ch ringi.RequestChange) bool {
		return ch.Live || ch.Past || ch.To == ringi.Granted || ch.To == ringi.Refused || ch.To == ringi.Spent
	})
}

func (d *data) threadIsFree(c *ringi.Commit) error {
	sp := d.spaces[c.Space]
	if sp == nil || c.Row.Status.Final() {
		return nil
	}
	if th := sp.threads[c.Row.Thread]; th != nil && th.open != nil {
		return fmt.Errorf("thread %s: %w: %s", c.Row.Thread, ringi.ErrRunOpen, th.open.row.ID)
	}
	return nil
}

// move is a request and the row that it will have.
type move struct {
	of *request
	to ringi.RequestRow
}

func (m *move) apply() { m.of.row = m.to }

// stage checks new requests and changes, and returns what the changes lead to.
func (d *data) stage(moved []move, c *ringi.Commit, made []*request, now time.Time) ([]move, error) {
	if len(made) == 0 && len(c.Changes) == 0 {
		return nil, nil
	}
	thread := c.Row.Thread
	sp := d.spaces[c.Space]
	if r := sp.run(c.RunID); r != nil {
		thread = r.row.Thread
	}
	for _, q := range made {
		if q.row.Thread != thread {
			return nil, fmt.Errorf("request %s is not of thread %s", q.row.ID, thread)
		}
		if sp.request(q.row.ID) != nil {
			return nil, fmt.Errorf("request %s is there already", q.row.ID)
		}
	}
	for i := range c.Changes {
		ch := &c.Changes[i]
		m, err := present(moved, made, sp.request(ch.ID), ch.ID, c.RunID)
		if err != nil {
			return nil, err
		}
		if err := change(&m.to, ch, now); err != nil {
			return nil, err
		}
		moved = append(moved, m)
	}
	return moved, nil
}

// present returns a request of the run as the changes before have left it.
func present(moved []move, made []*request, kept *request, id, runID string) (move, error) {
	for i := len(moved) - 1; i >= 0; i-- {
		if moved[i].to.ID == id {
			return moved[i], nil
		}
	}
	if kept != nil && kept.row.RunID == runID {
		return move{kept, kept.row}, nil
	}
	for _, q := range made {
		if q.row.ID == id {
			return move{q, q.row}, nil
		}
	}
	return move{}, noRequest(id)
}

// change moves a row, or says why it may not.
func change(q *ringi.RequestRow, ch *ringi.RequestChange, now time.Time) error {
	if q.State != ch.From {
		return &ringi.RequestStateError{ID: q.ID, State: q.State}
	}
	deadline := q.ExpiresAt
	if q.State == ringi.Granted {
		deadline = q.UseBy
	}
	reached := !deadline.IsZero() && !now.Before(deadline)
	if ch.Live && reached || ch.Past && !reached {
		return &ringi.RequestStateError{ID: q.ID, State: q.State, Deadline: deadline}
	}
	q.State = ch.To
	if !ch.DecidedAt.IsZero() {
		q.DecidedAt = micros(ch.DecidedAt)
	}
	if !ch.UseBy.IsZero() {
		q.UseBy = micros(ch.UseBy)
	}
	if ch.DecidedBy != "" {
		q.DecidedBy = ch.DecidedBy
	}
	return nil
}

// make adds a run to its space and thread.
func (d *data) make(c *ringi.Commit, now time.Time) *run {
	sp := d.space(c.Space)
	th := sp.threads[c.Row.Thread]
	if th == nil {
		th = &thread{}
		sp.threads[c.Row.Thread] = th
	}
	d.made++
	r := &run{number: d.made, thread: th, row: ringi.RunRow{
		Space: c.Space, ID: c.RunID, Thread: c.Row.Thread, Agent: c.Row.Agent, Parent: c.Row.Parent, CreatedAt: now,
	}}
	sp.runs[c.RunID] = r
	sp.order = append(sp.order, r)
	th.runs = append(th.runs, r)
	return r
}

// write applies an admitted commit to a run and what belongs to it.
func (d *data) write(r *run, c *ringi.Commit, in incoming, now time.Time) {
	row := &r.row
	if n := len(in.records); n > 0 {
		row.Seq, row.Head, row.MAC = c.Expect+int64(n), c.Row.Head, c.Row.MAC
		if r.records == nil {
			r.records = in.records
		} else {
			r.records = append(r.records, in.records...)
		}
	}
	if c.Row.Corrupt != "" {
		row.Corrupt = c.Row.Corrupt
	}
	if takesStatus(row.Status, c) {
		row.Status, row.Reason, row.Deadline = c.Row.Status, c.Row.Reason, micros(c.Row.Deadline)
	}
	if c.Claim {
		row.Owner = c.Owner
		row.Epoch++
		row.Attempts++
	}
	if c.Progress {
		row.Attempts = 0
	}
	if c.Release {
		row.Owner = ""
	}
	row.UpdatedAt = now
	d.index(r)
	for _, q := range in.requests {
		sp := d.spaces[c.Space]
		sp.requests[q.row.ID] = q
		sp.byAge.add(q)
		r.requests.add(q)
	}
	for digest, def := range in.tools {
		if _, known := d.tools[digest]; !known {
			d.tools[digest] = def
		}
	}
}

// takesStatus reports whether a commit's status counts.
func takesStatus(was ringi.RunStatus, c *ringi.Commit) bool {
	free := func(s ringi.RunStatus) bool { return s == ringi.Queued || s.Waiting() }
	return c.Row.Status != "" && (!c.Settle || free(was) && free(c.Row.Status))
}

// index puts a run among the open ones of the data and of its thread, or takes
// it away. The open ones stay in the order in which they were made.
func (d *data) index(r *run) {
	open, listed := !r.row.Status.Final(), r.prevOpen != nil || d.firstOpen == r
	switch {
	case open && !listed:
		r.thread.open = r
		before := d.lastOpen
		for before != nil && before.number > r.number {
			before = before.prevOpen
		}
		d.link(before, r)
	case !open && listed:
		if r.thread.open == r {
			r.thread.open = nil
		}
		d.unlink(r)
	}
}

// link puts r behind before, or first.
func (d *data) link(before, r *run) {
	after := d.firstOpen
	if before != nil {
		after = before.nextOpen
		before.nextOpen = r
	} else {
		d.firstOpen = r
	}
	r.prevOpen, r.nextOpen = before, after
	if after != nil {
		after.prevOpen = r
	} else {
		d.lastOpen = r
	}
}

func (d *data) unlink(r *run) {
	if r.prevOpen != nil {
		r.prevOpen.nextOpen = r.nextOpen
	} else {
		d.firstOpen = r.nextOpen
	}
	if r.nextOpen != nil {
		r.nextOpen.prevOpen = r.prevOpen
	} else {
		d.lastOpen = r.prevOpen
	}
	r.prevOpen, r.nextOpen = nil, nil
}
