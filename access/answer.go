package access

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

// MaxAnswer is the largest body that is stored for an idempotency key: 256 KiB.
// A larger one is not kept.
const MaxAnswer = 256 << 10

// Call is a request that came with an idempotency key.
type Call struct {
	// Route and Owner are what the caller was found to be allowed: [May] is
	// asked before anything is looked up.
	Route Route
	Owner Owner
	// Method and Path name the address; Path has the ids in it.
	Method, Path string
	// Key is the header Idempotency-Key: 1 to 255 visible ASCII characters.
	Key string
	// Body is the request's; its digest is kept.
	Body []byte
}

// Answer is what a request was answered.
type Answer struct {
	Status int
	// Type is the content type, Location the header of that name.
	Type, Location string
	Body           []byte
	// Secret says that the body must not be stored: a token, a link.
	Secret bool
	// Run is the run that it speaks of, so that erasing the run erases it.
	Run string
}

// Try is the right to answer a call: exactly one of Answer, which is to be sent
// again, or the duty to end the try with Finish, Doubt or Abandon.
type Try struct {
	// Answer is what the call was answered before; nil for a new one.
	Answer *Answer
	// Again says that an earlier try ended in doubt or not at all (its process
	// died, or took longer than [Options.TryAge]): what it did may have been done.
	Again bool

	d   *Directory
	who string
	c   Call
	id  string
}

// Begin takes a call with an idempotency key. The key is the principal's own,
// for one method and path, and for 24 hours. Rights are asked first: who lost
// them gets no stored answer.
//
// Errors: those of [May]; [ErrInvalid] for a key that is none, [ErrReused] for
// another body, [ErrInFlight] while the first try runs, [ErrNotKept] where it
// was answered and the answer is not stored.
func (d *Directory) Begin(ctx context.Context, w Who, c Call) (*Try, error) {
	err := d.may(w, c.Route, c.Owner)
	if err == nil {
		err = c.check()
	}
	var try *Try
	if err == nil {
		err = d.change(ctx, func(tx *tx) error {
			try, err = tx.begin(w.Principal.ID, c)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("begin call: %w", err)
	}
	return try, nil
}

func (c Call) check() error {
	if c.Key == "" || len(c.Key) > 255 || strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%w: an idempotency key has 1 to 255 visible ASCII characters", ErrInvalid)
	}
	if c.Method == "" || c.Path == "" {
		return fmt.Errorf("%w: a call has a method and a path", ErrInvalid)
	}
	return nil
}

// The states of an answer.
const (
	inFlight = "in_flight"
	answered = "answered"
	notKept  = "not_kept"
)

func (tx *tx) begin(who string, c Call) (*Try, error) {
	sum := sha256.Sum256(c.Body)
	digest := hex.EncodeToString(sum[:])
	c.Body = nil
	try := &Try{d: tx.d, who: who, c: c, id: ringi.NewID("try_", sqltable.Time(tx.now))}
	// One whose day is over is as if it had never been.
	if err := tx.exec(`DELETE FROM answers WHERE space = ? AND principal = ? AND method = ? AND path = ? AND idem_key = ? AND started_at <= ?`,
		tx.d.o.Space, who, c.Method, c.Path, c.Key, tx.now-tx.d.o.AnswerAge.Microseconds()); err != nil {
		return nil, notRecorded(err)
	}
	n, err := tx.changed(`INSERT INTO answers (space, principal, method, path, idem_key, digest, try, state, started_at, status, kind, location, body, run)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '', '', '', '') ON CONFLICT DO NOTHING`,
		tx.d.o.Space, who, c.Method, c.Path, c.Key, digest, try.id, inFlight, tx.now)
	if err != nil {
		return nil, notRecorded(err)
	}
	if n == 1 {
		return try, nil
	}
	return try, tx.repeat(try, digest)
}

// repeat answers a call whose key is known.
func (tx *tx) repeat(try *Try, digest string) error {
	var first, before, state, body string
	var started int64
	var a Answer
	err := tx.row(`SELECT digest, try, state, started_at, status, kind, location, body, run FROM answers
		WHERE space = ? AND principal = ? AND method = ? AND path = ? AND idem_key = ?`, try.key()...).
		Scan(&first, &before, &state, &started, &a.Status, &a.Type, &a.Location, &body, &a.Run)
	switch {
	case err != nil:
		return notRecorded(err)
	case !equal(first, digest):
		return ErrReused
	case state == notKept:
		return ErrNotKept
	case state == answered:
		if a.Body, err = base64.StdEncoding.DecodeString(body); err != nil {
			return fmt.Errorf("read stored answer: %w", err)
		}
		try.Answer = &a
		return nil
	case tx.now < started+tx.d.o.TryAge.Microseconds():
		return ErrInFlight
	}
	args := append([]any{try.id, tx.now}, try.key()...)
	n, err := tx.changed(`UPDATE answers SET try = ?, started_at = ?
		WHERE space = ? AND principal = ? AND method = ? AND path = ? AND idem_key = ? AND try = ? AND state = ?`, append(args, before, inFlight)...)
	switch {
	case err != nil:
		return notRecorded(err)
	case n == 0:
		return ErrInFlight // somebody else took over, or the first has answered just now
	}
	try.Again = true
	return nil
}

func (t *Try) key() []any { return []any{t.d.o.Space, t.who, t.c.Method, t.c.Path, t.c.Key} }

// Finish stores the answer of a new try; repeats get it from now on. Where
// another try took over in the meantime its answer stands, and this one is not
// stored. Call it with a context that the client's leaving does not end.
func (t *Try) Finish(ctx context.Context, a Answer) error {
	state := answered
	if a.Secret || len(a.Body) > MaxAnswer {
		state, a.Body, a.Location = notKept, nil, ""
	}
	return t.end(ctx, "finish call", `UPDATE answers SET state = ?, status = ?, kind = ?, location = ?, body = ?, run = ?`+ofTry,
		state, a.Status, a.Type, a.Location, base64.StdEncoding.EncodeToString(a.Body), a.Run)
}

// Doubt ends the try without an answer where something may have been done: it is
// over, and nobody knows more. The next try is told so at once, by its Again.
func (t *Try) Doubt(ctx context.Context) error {
	// As old as a try that is given up, and not as an answer that is no longer
	// kept: the key stays taken.
	return t.end(ctx, "end call in doubt", `UPDATE answers SET started_at = started_at - ?`+ofTry+` AND state = '`+inFlight+`'`, t.d.o.TryAge.Microseconds())
}

// Abandon gives the key back: nothing was done. It is for calls that were
// refused before they had any effect, so that a repeat is tried anew.
func (t *Try) Abandon(ctx context.Context) error {
	return t.end(ctx, "abandon call", `DELETE FROM answers`+ofTry+` AND state = '`+inFlight+`'`)
}

// ofTry narrows a statement to a try's own row, while no other took over.
const ofTry = ` WHERE space = ? AND principal = ? AND method = ? AND path = ? AND idem_key = ? AND try = ?`

// end runs a statement, whose last values name the try, for a try that is to be
// ended: a repeat, which was handed its answer, is not.
func (t *Try) end(ctx context.Context, what, statement string, values ...any) error {
	if t.Answer != nil {
		return nil
	}
	err := t.d.change(ctx, func(tx *tx) error {
		if err := tx.exec(statement, append(append(values, t.key()...), t.id)...); err != nil {
			return notRecorded(err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// EraseRun forgets the answers that speak of a run: repeats get [ErrNotKept].
// Whoever erases the run calls it.
func (d *Directory) EraseRun(ctx context.Context, run string) error {
	err := d.change(ctx, func(tx *tx) error {
		if err := tx.exec(`UPDATE answers SET state = ?, body = '', location = '' WHERE space = ? AND run = ? AND run <> ''`,
			notKept, d.o.Space, run); err != nil {
			return notRecorded(err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("erase run: %w", err)
	}
	return nil
}
