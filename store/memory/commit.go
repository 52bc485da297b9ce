package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
)

// Commit applies one change of one run, whole or not at all. It looks first and
// writes last: nothing after the first write can fail.
func (s *Store) Commit(ctx context.Context, c *ringi.Commit) error {
	return s.CommitAdmitted(ctx, c, nil)
}

// CommitAdmitted is Commit with a question as its last condition; it is asked
// under the lock that all of the store's methods take.
func (s *Store) CommitAdmitted(ctx context.Context, c *ringi.Commit, admit func(context.Context, ringi.Ledger) error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := shape(c); err != nil {
		return fmt.Errorf("commit run %s: %w", c.RunID, err)
	}
	in := copyIn(c)
	wall := s.wall()
	if err := s.d.commit(ctx, c, in, wall, admit); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if c.Wake && s.opts.Wake != nil {
		s.opts.Wake(c.Space, c.RunID)
	}
	return nil
}

// commit checks and applies a change under the lock.
func (d *data) commit(ctx context.Context, c *ringi.Commit, in incoming, wall int64, admit func(context.Context, ringi.Ledger) error) error {
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
	if admit != nil {
		sums, err := d.ask(ctx, c.Space, admit)
		if err != nil {
			return err
		}
		maps.Copy(d.ledger, sums)
	}
	if r == nil {
		r = d.make(c, timeOf(at))
	}
	d.newest, d.newly = at, r
	d.write(r, c, in, timeOf(at))
	for i := range moved {
		moved[i].apply()
	}
	return nil
}

// admit checks all but the requests. It returns no run for the first commit.
func (d *data) admit(c *ringi.Commit, wall, at int64) (*run, error) {
	r := d.newly
	if r == nil || r.row.ID != c.RunID || r.row.Space != c.Space {
		r = d.spaces[c.Space].run(c.RunID)
	}
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
		if err := d.threadIsFree(c); err != nil {
			return nil, err
		}
		return nil, d.follows(c)
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

// follows holds the newest run of a thread against what its writer knew.
func (d *data) follows(c *ringi.Commit) error {
	newest := ringi.NoRun
	if sp := d.spaces[c.Space]; sp != nil {
		if th := sp.threads[c.Row.Thread]; th != nil && len(th.runs) > 0 {
			newest = th.runs[len(th.runs)-1].row.ID
		}
	}
	if c.Follows != "" && c.Follows != newest {
		return fmt.Errorf("thread %s: %w: its newest run is %s", c.Row.Thread, ringi.ErrConflict, newest)
	}
	return nil
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
