package notify

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

// SQLiteParams are what a data source name of SQLite needs behind its question
// mark for a Book (the driver is modernc.org/sqlite). The file is the caller's
// to make, readable by its owner alone: it holds people's addresses.
const SQLiteParams = sqltable.SQLiteParams

// Dialect is how a database writes placeholders. The zero value is SQLite's.
type Dialect = sqltable.Dialect

// The dialects.
const (
	SQLite     = sqltable.SQLite
	PostgreSQL = sqltable.PostgreSQL
)

// BookOptions say how a book is kept. The zero value is ready to use.
type BookOptions struct {
	// Space is the space that every query names; empty means "default".
	Space   string
	Dialect Dialect
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Book keeps how people are reached, what they are owed and what was sent. It
// is safe for goroutines, and several processes may share a database.
type Book struct {
	db     *sql.DB
	o      BookOptions
	secret []byte
	write  sync.Mutex // one writer a process: SQLite has one anyway
}

// Open opens the book in a database and brings its schema up to date. The
// database stays the caller's to close. For SQLite, see [SQLiteParams].
func Open(ctx context.Context, db *sql.DB, o BookOptions) (*Book, error) {
	if o.Space == "" {
		o.Space = "default"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if !o.Dialect.Known() {
		return nil, fmt.Errorf("open book of notices: unknown dialect %q", o.Dialect)
	}
	b := &Book{db: db, o: o}
	if err := sqltable.Patiently(ctx, b.migrate); err != nil {
		return nil, fmt.Errorf("open book of notices: %w", err)
	}
	if err := b.readSecret(ctx); err != nil {
		return nil, fmt.Errorf("open book of notices: %w", err)
	}
	return b, nil
}

func (b *Book) now() time.Time { return b.o.Now().UTC().Truncate(time.Microsecond) }

// tx is a transaction, with its time.
type tx struct {
	*sql.Tx
	b   *Book
	ctx context.Context
	now time.Time
}

// change runs f in a transaction.
func (b *Book) change(ctx context.Context, f func(*tx) error) error {
	b.write.Lock()
	defer b.write.Unlock()
	begun, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return notRecorded(err)
	}
	defer begun.Rollback() // does nothing after the commit
	if err := f(&tx{Tx: begun, b: b, ctx: ctx, now: b.now()}); err != nil {
		return err
	}
	if err := begun.Commit(); err != nil {
		return notRecorded(err)
	}
	return nil
}

func notRecorded(err error) error { return fmt.Errorf("%w: %w", ringi.ErrNotRecorded, err) }

// changed runs a statement and reports how many rows it changed.
func (tx *tx) changed(query string, args ...any) (int64, error) {
	res, err := tx.ExecContext(tx.ctx, tx.b.bind(query), args...)
	if err != nil {
		return 0, notRecorded(err)
	}
	return res.RowsAffected()
}

func (tx *tx) exec(query string, args ...any) error {
	_, err := tx.changed(query, args...)
	return err
}

func (tx *tx) row(query string, args ...any) *sql.Row {
	return tx.QueryRowContext(tx.ctx, tx.b.bind(query), args...)
}

func (tx *tx) list(scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := tx.QueryContext(tx.ctx, tx.b.bind(query), args...)
	return sqltable.Each(rows, err, scan)
}

func (b *Book) list(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := b.db.QueryContext(ctx, b.bind(query), args...)
	return sqltable.Each(rows, err, scan)
}

func (b *Book) bind(query string) string { return b.o.Dialect.Bind(query) }
