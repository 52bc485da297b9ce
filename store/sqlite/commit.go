package sqlite

import (
	"context"
	"fmt"

	"github.com/ringi-dev/ringi"
	sqlite3 "modernc.org/sqlite/lib"
)

// Commit applies one change of one run, whole or not at all. It may share a
// transaction, and the sync that ends it, with the commits of other callers;
// what happens to one of them does nothing to the others. Beside the errors
// of ringi.Store it returns ErrNotRecorded where the disk is full or fails and
// the change is surely not made. A context that ends takes back a commit that
// still waits for its turn; one that has begun is answered.
func (s *Store) Commit(ctx context.Context, c *ringi.Commit) error {
	return s.CommitAdmitted(ctx, c, nil)
}

// CommitAdmitted is Commit with a question as its last condition. The one
// goroutine that writes asks it, in a transaction that keeps every other
// process out.
func (s *Store) CommitAdmitted(ctx context.Context, c *ringi.Commit, admit func(context.Context, ringi.Ledger) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("commit run %s: %w", c.RunID, err)
	}
	if err := checkShape(c); err != nil {
		return fmt.Errorf("commit run %s: %w", c.RunID, err)
	}
	err := s.write(ctx, size(c), func(w *writer) error { return w.commit(c, admit) })
	if err != nil {
		return fmt.Errorf("commit run %s: %w", c.RunID, err)
	}
	if c.Wake && s.o.Woken != nil {
		s.o.Woken(c.Space, c.RunID)
	}
	return nil
}

// size tells how much a commit writes, roughly.
func size(c *ringi.Commit) int {
	n := 0
	for _, r := range c.Records {
		n += len(r.Head) + len(r.Payload)
	}
	for _, r := range c.Requests {
		n += 16 * len(r.Text) // with its terms
	}
	for _, definition := range c.Tools {
		n += len(definition)
	}
	return n
}

// commit applies c in the open transaction. The run's row is moved first: one
// conditional UPDATE (or INSERT) that holds every condition on the run. Where
// it moves nothing, why tells the reason; if it is that another process has
// recorded a later time in the row, that is the time of this commit too.
func (w *writer) commit(c *ringi.Commit, admit func(context.Context, ringi.Ledger) error) error {
	now := w.s.now()
	moved, err := w.move(c, now)
	if err != nil {
		return err
	}
	if !moved {
		if now, err = w.why(c, now); err != nil {
			return err
		}
		if moved, err = w.move(c, now); err != nil {
			return err
		}
		if !moved {
			return fmt.Errorf("%w: the run was not moved, and nothing speaks against it", ringi.ErrNotRecorded)
		}
	}
	if err := w.append(c, now); err != nil {
		return err
	}
	if admit != nil {
		if err := w.admit(c, admit); err != nil {
			return err
		}
	}
	w.recorded = max(w.recorded, now)
	return w.wake(c)
}

// move moves the run's row, and reports whether it did.
func (w *writer) move(c *ringi.Commit, now int64) (bool, error) {
	move := w.hold
	switch {
	case needsClock(c) && now > w.s.clock.horizon():
		return false, nil
	case c.Expect == 0:
		move = w.create
	case c.Settle:
		move = w.settle
	case c.Claim:
		move = w.claim
	case c.Owner == "": // nobody holds nothing
		return false, nil
	}
	n, err := move(c, now)
	if isCode(err, sqlite3.SQLITE_CONSTRAINT) {
		return false, nil // the run is there, or its thread has an open one
	}
	return n == 1, err
}

// append writes what comes with the move: records, tools, requests, changes.
func (w *writer) append(c *ringi.Commit, now int64) error {
	for i := range c.Records {
		if err := w.insertRecord(c, &c.Records[i]); err != nil {
			return err
		}
	}
	for digest, definition := range c.Tools {
		if err := w.keepTool(digest, definition); err != nil {
			return err
		}
	}
	for i := range c.Requests {
		if err := w.insertRequest(c, &c.Requests[i]); err != nil {
			return err
		}
	}
	for i := range c.Changes {
		if err := w.changeRequest(c, &c.Changes[i], now); err != nil {
			return err
		}
	}
	return nil
}

// wake calls the wake-up function. It is not ours: a panic refuses the commit
// and does not end the process. The savepoint shows whether the transaction is
// still there: SQLite ends it where a statement of the function finds the disk
// full, and the function may have kept that to itself.
func (w *writer) wake(c *ringi.Commit) error {
	if !c.Wake || w.s.o.Wake == nil {
		return nil
	}
	if _, err := w.exec(`SAVEPOINT wake`); err != nil {
		return err
	}
	if err := w.callWake(c); err != nil {
		return fmt.Errorf("%w: wake run: %w", ringi.ErrNotRecorded, err)
	}
	_, err := w.exec(`RELEASE wake`)
	return err
}

// callWake keeps the end of the context away: it would interrupt a statement,
// and with it the transaction of the whole group.
func (w *writer) callWake(c *ringi.Commit) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return w.s.o.Wake(context.WithoutCancel(w.ctx), w.tx, c.Space, c.RunID)
}
