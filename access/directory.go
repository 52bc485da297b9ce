package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

// SQLiteParams are what a data source name of SQLite needs behind its question
// mark for a Directory (the driver is modernc.org/sqlite): writers begin with
// the lock, wait for it, sync, and overwrite what they delete. The file is the
// caller's to make, readable by its owner alone.
const SQLiteParams = sqltable.SQLiteParams

// Dialect is how a database writes placeholders. The zero value is SQLite's.
type Dialect = sqltable.Dialect

// The dialects.
const (
	SQLite     = sqltable.SQLite
	PostgreSQL = sqltable.PostgreSQL
)

// Options say how a directory works. The zero value is ready to use.
type Options struct {
	// Space is the space that every query names; empty means "default".
	Space   string
	Dialect Dialect
	// Now is the wall clock; nil means time.Now. The directory's time never goes
	// back.
	Now func() time.Time
	// TokenAge is the longest that a token may live; 0 means 90 days. A longer
	// wish is refused, not cut.
	TokenAge time.Duration
	// SessionIdle ends a session that nobody used for so long; 0 means 12 hours.
	SessionIdle time.Duration
	// SessionAge ends a session so long after its login; 0 means 30 days.
	SessionAge time.Duration
	// LinkAge is how long a login link is good; 0 means ten minutes.
	LinkAge time.Duration
	// NoLinks switches login links off: none is made or taken, and a session that
	// one began is over.
	NoLinks bool
	// AnswerAge is how long an answer is kept; 0 means 24 hours.
	AnswerAge time.Duration
	// TryAge is how long a request with an idempotency key may be in flight
	// before a repeat takes over; 0 means five minutes. It must be longer than
	// any handler lives.
	TryAge time.Duration
	// PresenceAge is how long a look counts; 0 means 30 seconds.
	PresenceAge time.Duration
	// Previews are, by role, the most sensitive data class of a preview that the
	// role is shown (S-17); roles add up. nil: each role is shown all. With any,
	// a role without an entry is shown no preview.
	Previews map[Role]ringi.DataClass
	// SamePerson joins logins: each list holds the ids of one person. See
	// [Directory.Persons].
	SamePerson [][]string
}

func (o Options) withDefaults() Options {
	if o.Space == "" {
		o.Space = "default"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	for age, def := range map[*time.Duration]time.Duration{
		&o.TokenAge: 90 * 24 * time.Hour, &o.SessionIdle: 12 * time.Hour, &o.SessionAge: 30 * 24 * time.Hour,
		&o.LinkAge: 10 * time.Minute, &o.AnswerAge: 24 * time.Hour, &o.TryAge: 5 * time.Minute, &o.PresenceAge: 30 * time.Second,
	} {
		if *age == 0 {
			*age = def
		}
	}
	return o
}

func (o Options) check() error {
	if !o.Dialect.Known() {
		return fmt.Errorf("%w: unknown dialect %q", ErrInvalid, o.Dialect)
	}
	for _, age := range []time.Duration{o.TokenAge, o.SessionIdle, o.SessionAge, o.LinkAge, o.AnswerAge, o.TryAge, o.PresenceAge} {
		if age < 0 {
			return fmt.Errorf("%w: an age below zero", ErrInvalid)
		}
	}
	for role, class := range o.Previews {
		if !slices.Contains(Roles(), role) || class == "" || !class.Known() {
			return fmt.Errorf("%w: previews of class %q for role %q", ErrInvalid, class, role)
		}
	}
	for _, ids := range o.SamePerson {
		for _, id := range ids {
			if err := checkID(id); err != nil {
				return fmt.Errorf("same person: %w", err)
			}
		}
	}
	return checkWord("space", o.Space)
}

// Directory keeps who there is. It is safe for goroutines, and several
// processes may share a database.
type Directory struct {
	db    *sql.DB
	o     Options
	last  atomic.Int64 // the newest time given out
	write sync.Mutex   // one writer a process: SQLite has one anyway
	seen  seen
	same  map[string]string // login to the first login of the same person

	preparing sync.RWMutex
	stmts     map[string]*sql.Stmt // by query; there are as many as queries here
}

// Open opens the directory in a database and brings its schema up to date. The
// database stays the caller's to close. For SQLite, see [SQLiteParams].
func Open(ctx context.Context, db *sql.DB, o Options) (*Directory, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	d := &Directory{db: db, o: o, same: joined(o.SamePerson), stmts: map[string]*sql.Stmt{}}
	if err := sqltable.Patiently(ctx, d.migrate); err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	var newest int64
	if err := d.row(ctx, `SELECT coalesce(max(at), 0) FROM changes WHERE space = ?`, o.Space).Scan(&newest); err != nil {
		return nil, fmt.Errorf("open directory: read newest time: %w", err)
	}
	d.last.Store(max(d.last.Load(), newest))
	return d, nil
}

// Space returns the space that the directory is of.
func (d *Directory) Space() string { return d.o.Space }

// now returns the directory's time: the wall clock, but never earlier than the
// time that it gave out before. So what has ended stays ended.
func (d *Directory) now() int64 {
	wall := d.o.Now().UnixMicro()
	for {
		last := d.last.Load()
		if wall <= last {
			return last
		}
		if d.last.CompareAndSwap(last, wall) {
			return wall
		}
	}
}

// change runs f in a transaction.
func (d *Directory) change(ctx context.Context, f func(*tx) error) error {
	d.write.Lock()
	defer d.write.Unlock()
	begun, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return notRecorded(err)
	}
	defer begun.Rollback() // does nothing after the commit
	if err := f(&tx{Tx: begun, d: d, ctx: ctx, now: d.now()}); err != nil {
		return err
	}
	if err := begun.Commit(); err != nil {
		return notRecorded(err)
	}
	return nil
}

func notRecorded(err error) error { return fmt.Errorf("%w: %w", ringi.ErrNotRecorded, err) }

func (d *Directory) row(ctx context.Context, query string, args ...any) *sql.Row {
	if s := d.prepared(ctx, query); s != nil {
		return s.QueryRowContext(ctx, args...)
	}
	return d.db.QueryRowContext(ctx, d.bind(query), args...)
}

// list runs a query and hands each row to scan.
func (d *Directory) list(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	ask := func() (*sql.Rows, error) { return d.db.QueryContext(ctx, d.bind(query), args...) }
	if s := d.prepared(ctx, query); s != nil {
		ask = func() (*sql.Rows, error) { return s.QueryContext(ctx, args...) }
	}
	rows, err := ask()
	return sqltable.Each(rows, err, scan)
}

// prepared returns a query as a statement that is kept, and nil where it cannot
// be prepared now: then the query itself tells why. Closing the database closes
// them.
func (d *Directory) prepared(ctx context.Context, query string) *sql.Stmt {
	d.preparing.RLock()
	s := d.stmts[query]
	d.preparing.RUnlock()
	if s != nil {
		return s
	}
	d.preparing.Lock()
	defer d.preparing.Unlock()
	if s := d.stmts[query]; s != nil {
		return s
	}
	s, err := d.db.PrepareContext(ctx, d.bind(query))
	if err != nil {
		return nil
	}
	d.stmts[query] = s
	return s
}

func (d *Directory) bind(query string) string { return d.o.Dialect.Bind(query) }

func none(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// words is a list as a column holds it.
func words[S ~string](list []S) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return strings.Join(out, " ")
}

func split[S ~string](column string) []S {
	var out []S
	for w := range strings.FieldsSeq(column) {
		out = append(out, S(w))
	}
	return out
}
