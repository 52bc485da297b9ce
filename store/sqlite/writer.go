package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ringi-dev/ringi"
	sqlite3 "modernc.org/sqlite/lib"
)

// writer is the one goroutine that writes. All its fields are its own.
type writer struct {
	s *Store
	connection
	tx *sql.Tx
	// ctx is the context of the member that is being applied, for Wake.
	ctx context.Context
	// commits counts the transactions that were recorded.
	commits int
	// recorded is the newest time written in this transaction.
	recorded int64
	// accepted is the time that a correction of the clock accepts in this
	// transaction; 0 for none.
	accepted int64
	// version is the data version that SQLite gave last: see lookElsewhere. seen
	// is the log's file at the last look: see look.
	version                 int64
	looked, asked, suspects time.Time
	seen                    sight
	// Room for the arguments of a statement.
	moveArgs, changeArgs []any
	// toFind are the new requests of the transaction, whose terms are written
	// at its end; terms is room for those of one.
	toFind []findable
	terms  []byte
}

// loop writes groups until the queue is closed and empty.
func (w *writer) loop() {
	defer close(w.s.stopped)
	var group []*job
	for {
		// The flag is read first: what was let in before it is taken below.
		closed := w.s.queue.isClosed()
		group = w.s.queue.take(group[:0])
		switch {
		case len(group) > 0:
			w.run(group)
			clear(group)
			w.glance()
		case closed:
			w.noteNewest()
			// The readers go first: the last connection moves the log into the
			// file and removes it, which one that only reads cannot do.
			w.s.closed = errors.Join(w.s.read.Close(), w.disconnect())
			return
		default:
			w.rest()
		}
	}
}

// run writes a group and answers each member. The first try has no savepoints:
// nearly every refusal is found before the member has written anything, and a
// savepoint costs a copy of every page that is touched. A member that fails
// late takes the transaction back, and the group is applied again with a
// savepoint for each. Where the transaction as a whole cannot be, each member
// is tried alone: one that is too large for the disk then fails alone.
func (w *writer) run(group []*job) {
	results := make([]error, len(group))
	err := w.transact(group, results, false)
	if errors.Is(err, errLate) {
		err = w.transact(group, results, true)
	}
	if errors.Is(err, errTakenBack) && len(group) > 1 {
		for i := range group {
			w.run(group[i : i+1])
		}
		return
	}
	w.s.watch.ring(false) // also after an error: something may be recorded
	for i, j := range group {
		if err != nil {
			results[i] = err
		}
		j.done <- results[i]
	}
}

var (
	// errLate says that a member without a savepoint failed after it had
	// written, so that all was taken back.
	errLate = errors.New("a member failed late")
	// errTakenBack says that the transaction was surely taken back.
	errTakenBack = errors.New("transaction taken back")
)

// transact applies a group in one transaction. results gets each member's own
// error; the error returned is that of the whole.
func (w *writer) transact(group []*job, results []error, savepoints bool) error {
	if err := w.begin(); err != nil {
		return fmt.Errorf("%w: begin transaction: %w", ringi.ErrNotRecorded, err)
	}
	w.recorded, w.accepted, w.toFind = 0, 0, w.toFind[:0]
	defer func() { clear(w.toFind) }() // keep no caller's rows
	applied := 0
	for i, j := range group {
		var err error
		if results[i], err = w.member(j, savepoints, len(group) == 1); err != nil {
			w.rollback()
			return err
		}
		if results[i] == nil {
			applied++
		}
	}
	if applied == 0 {
		w.rollback()
		return nil
	}
	if err := w.insertTerms(); err != nil {
		w.rollback()
		return fmt.Errorf("%w: %w", errTakenBack, err)
	}
	if err := w.tx.Commit(); err != nil {
		return w.afterFailedCommit(err)
	}
	w.commits++
	if w.accepted != 0 {
		w.s.clock.accepted.Store(w.accepted)
		w.s.clock.newest.Store(w.accepted)
	}
	w.s.clock.advance(w.recorded)
	return nil
}

// member applies one member, so that one that fails leaves nothing: it has
// written nothing, or its savepoint takes it back, or it is alone and the
// transaction does. broken is an error of the transaction.
func (w *writer) member(j *job, savepoint, alone bool) (result, broken error) {
	w.ctx, w.changed, w.broken = j.ctx, 0, false
	before := len(w.toFind)
	defer func() {
		if result != nil {
			w.toFind = w.toFind[:before]
		}
	}()
	if !savepoint {
		result = j.apply(w)
		switch {
		case w.broken:
			return nil, fmt.Errorf("%w: %w", errTakenBack, result)
		case result != nil && w.changed > 0 && !alone:
			return nil, errLate
		}
		return result, nil
	}
	if _, err := w.exec(`SAVEPOINT member`); err != nil {
		return nil, fmt.Errorf("%w: %w", errTakenBack, err)
	}
	if result = j.apply(w); w.broken {
		return nil, fmt.Errorf("%w: %w", errTakenBack, result)
	}
	if result != nil {
		if _, err := w.exec(`ROLLBACK TO member`); err != nil {
			return nil, fmt.Errorf("%w: %w: %w", errTakenBack, result, err)
		}
	}
	if _, err := w.exec(`RELEASE member`); err != nil {
		return nil, fmt.Errorf("%w: %w", errTakenBack, err)
	}
	return result, nil
}

// begin opens a transaction, on a new connection where the last was given up.
func (w *writer) begin() error {
	if w.conn == nil {
		if err := w.connect(w.s.path); err != nil {
			return err
		}
	}
	tx, err := w.transaction()
	if err != nil && !isCode(err, sqlite3.SQLITE_BUSY) {
		w.disconnect()
	}
	w.tx = tx
	return err
}

// rollback takes the transaction back. Where a statement failed SQLite may have
// done so already, and then says that there is none. Where it fails otherwise
// the connection is given up: closing it ends the transaction.
func (w *writer) rollback() {
	err := w.tx.Rollback()
	if err != nil && !(w.broken && isCode(err, sqlite3.SQLITE_ERROR)) {
		w.disconnect()
	}
}

// afterFailedCommit finds out what a COMMIT that failed has left. The driver
// has taken the transaction back, and nobody sees it.
//
// Where a write failed (a full disk is one case) the last frame of the
// transaction is not in the log, and without it the others count for nothing.
// Where anything else failed, such as the sync, the whole transaction may be
// in the log behind the end that SQLite knows, and a crash now would bring it
// to life. The next commit is written over it; so one more, that means
// nothing, makes sure.
func (w *writer) afterFailedCommit(failed error) error {
	if isCode(failed, sqlite3.SQLITE_FULL) || isCode(failed, sqlite3.SQLITE_IOERR_WRITE) {
		return fmt.Errorf("%w: %w: commit: %w", ringi.ErrNotRecorded, errTakenBack, failed)
	}
	w.disconnect()
	if err := w.overwrite(); err != nil {
		w.disconnect()
		return fmt.Errorf("commit may or may not be recorded: %w (then: %v)", failed, err)
	}
	return fmt.Errorf("%w: %w: commit: %w", ringi.ErrNotRecorded, errTakenBack, failed)
}

// overwrite commits a change that means nothing.
func (w *writer) overwrite() error {
	if err := w.begin(); err != nil {
		return err
	}
	_, err := w.exec(`INSERT INTO meta (key, value) VALUES ('overwritten', '1')
		ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1`)
	if err != nil {
		w.rollback()
		return err
	}
	return w.tx.Commit()
}

// noteNewest keeps the newest recorded time for the next Open. It is a service
// to it and no promise: see learn.
func (w *writer) noteNewest() {
	w.s.now() // heeds: a time that was corrected must not come back
	newest := w.s.clock.newest.Load()
	if w.commits == 0 || w.begin() != nil {
		return
	}
	_, err := w.exec(`INSERT INTO meta (key, value) VALUES ('newest', ?)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value`, strconv.FormatInt(newest, 10))
	if err != nil || w.tx.Commit() != nil {
		w.disconnect()
	}
}
