package sqlite

import (
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
	sqlite3 "modernc.org/sqlite/lib"
)

// insertRecord appends one record of a run that the commit has just moved.
func (w *writer) insertRecord(c *ringi.Commit, r *ringi.Record) error {
	_, err := w.exec(`
		INSERT INTO records (space, run, seq, kind, head, payload, salt, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		c.Space, c.RunID, r.Seq, string(r.Kind), notNull(r.Head), r.Payload, r.Salt, r.Hash[:])
	return err
}

// insertRequest adds a request of the run, under the run's own thread, and what
// it is found by.
func (w *writer) insertRequest(c *ringi.Commit, r *ringi.RequestRow) error {
	if r.ID == "" || r.Space != c.Space || r.RunID != c.RunID {
		return fmt.Errorf("request %q of run %s in space %s is not the run's own", r.ID, r.RunID, r.Space)
	}
	first := rowNumber(r.CreatedAt.UnixMicro())
	made, err := w.exec(insertRequest,
		first, first+rowsOfATime, first, r.ID, r.CallID, string(r.Kind), r.Tool, string(r.State), r.Digest,
		r.Agent, r.Initiator, jsonList(r.People), jsonList(r.Teams), r.Text, string(r.Risk.OrHigh()),
		r.CreatedAt.UnixMicro(), orNull(r.ExpiresAt), orNull(r.DecidedAt), orNull(r.UseBy), r.DecidedBy,
		c.Space, c.RunID, r.Thread)
	switch {
	case isCode(err, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY) || isCode(err, sqlite3.SQLITE_CONSTRAINT_ROWID):
		return fmt.Errorf("request %s: there are %d of its microsecond already", r.ID, rowsOfATime)
	case isCode(err, sqlite3.SQLITE_CONSTRAINT):
		return fmt.Errorf("request %s is there already", r.ID)
	case err != nil:
		return err
	case made == 0:
		return fmt.Errorf("request %s names thread %s, which is not the run's", r.ID, r.Thread)
	}
	w.toFind = append(w.toFind, findable{w.inserted, r})
	return nil
}

// findable is a new request whose terms are not written yet.
type findable struct {
	n   int64
	row *ringi.RequestRow
}

// insertTerms writes the terms of the transaction's new requests. It comes last:
// FTS5 writes what it has collected when the next statement begins, so that the
// terms of all members together cost little more than those of one.
func (w *writer) insertTerms() error {
	for _, f := range w.toFind {
		w.terms = appendTerms(w.terms[:0], f.row)
		if _, err := w.exec(insertTerms, f.n, string(w.terms)); err != nil {
			return err
		}
	}
	return nil
}

// eraseTerms takes away what a request is found by. It goes by the row as it
// stands: who erases its columns does so afterwards.
func (w *writer) eraseTerms(r *ringi.RequestRow) error {
	var n int64
	if err := w.tx.QueryRow(`SELECT n FROM requests WHERE space = ? AND id = ?`, r.Space, r.ID).Scan(&n); err != nil {
		return w.unrecorded(found(err))
	}
	w.terms = appendTerms(w.terms[:0], r)
	_, err := w.exec(deleteTerms, n, string(w.terms))
	return err
}

const (
	insertRequest = `
	INSERT INTO requests (n, space, id, run, thread, call, kind, tool, state, digest,
	  agent, initiator, people, teams, text, risk, created_at, expires_at, decided_at, use_by, decided_by)
	SELECT coalesce((SELECT max(n) + 1 FROM requests WHERE n >= ? AND n < ?), ?),
	  space, ?, id, thread, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
	FROM runs WHERE space = ? AND id = ? AND thread = ?`
	insertTerms = `INSERT INTO request_terms (rowid, terms) VALUES (?, ?)`
	// Whoever deletes a request deletes its terms: the table knows them no more.
	deleteTerms = `INSERT INTO request_terms (request_terms, rowid, terms) VALUES ('delete', ?, ?)`
)

const (
	updateRequest = `
	UPDATE requests SET state = ?, decided_at = coalesce(?, decided_at), use_by = coalesce(?, use_by),
	  decided_by = coalesce(?, decided_by)
	WHERE space = ? AND id = ? AND run = ? AND state = ?`
	// A deadline that is none never comes.
	andPendingLive = ` AND (expires_at IS NULL OR expires_at > ?)`
	andGrantedLive = ` AND (use_by IS NULL OR use_by > ?)`
	andPendingPast = ` AND expires_at <= ?`
	andGrantedPast = ` AND use_by <= ?`

	changePendingLive = updateRequest + andPendingLive
	changeGrantedLive = updateRequest + andGrantedLive
	changePendingPast = updateRequest + andPendingPast
	changeGrantedPast = updateRequest + andGrantedPast
)

// changeRequest moves a request in one statement that holds every condition:
// the run, the state and the time.
func (w *writer) changeRequest(c *ringi.Commit, ch *ringi.RequestChange, now int64) error {
	var by any
	if ch.DecidedBy != "" {
		by = ch.DecidedBy
	}
	if w.changeArgs == nil {
		w.changeArgs = make([]any, 0, 16)
	}
	args := append(w.changeArgs[:0], string(ch.To), orNull(ch.DecidedAt), orNull(ch.UseBy), by,
		c.Space, ch.ID, c.RunID, string(ch.From))
	query := updateRequest
	switch granted := ch.From == ringi.Granted; {
	case ch.Live && granted:
		query, args = changeGrantedLive, append(args, now)
	case ch.Live:
		query, args = changePendingLive, append(args, now)
	case ch.Past && granted:
		query, args = changeGrantedPast, append(args, now)
	case ch.Past:
		query, args = changePendingPast, append(args, now)
	}
	moved, err := w.exec(query, args...)
	if err != nil {
		return err
	}
	if moved == 0 {
		return w.whyNotChanged(c, ch)
	}
	return nil
}

// whyNotChanged tells why a change moved nothing.
func (w *writer) whyNotChanged(c *ringi.Commit, ch *ringi.RequestChange) error {
	r, err := requestRow(w.tx.QueryRow(`SELECT `+requestColumns+`, state FROM requests
		WHERE space = ? AND id = ? AND run = ?`, c.Space, ch.ID, c.RunID).Scan)
	if errors.Is(err, ringi.ErrNotFound) {
		return fmt.Errorf("request %s of run %s: %w", ch.ID, c.RunID, err)
	}
	if err != nil {
		return w.unrecorded(err)
	}
	refused := &ringi.RequestStateError{ID: r.ID, State: r.State}
	if r.State == ch.From {
		refused.Deadline = r.ExpiresAt
		if r.State == ringi.Granted {
			refused.Deadline = r.UseBy
		}
	}
	return refused
}

// notNull keeps an empty slice out of the columns that hold none.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
