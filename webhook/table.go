package webhook

import (
	"context"
	"database/sql"
	"embed"
	"sync"
	"time"

	"github.com/ringi-dev/ringi/internal/sqltable"
)

// Dialect is how a database writes placeholders. The zero value is SQLite's.
type Dialect = sqltable.Dialect

// The dialects.
const (
	SQLite     = sqltable.SQLite
	PostgreSQL = sqltable.PostgreSQL
)

//go:embed migrations/*.sql
var migrations embed.FS

// tables are the outbox's tables.
type tables struct {
	db      *sql.DB
	dialect Dialect
	write   sync.Mutex // one writer a process: SQLite has one anyway
}

// migrate brings the schema up to date. A schema that is newer than this program
// knows is refused.
func (t *tables) migrate(ctx context.Context, now time.Time) error {
	steps, err := sqltable.Steps(migrations)
	if err != nil {
		return err
	}
	schema := sqltable.Schema{Steps: steps, Table: "webhook_migrations", Lock: 0x776562686f6f6b}
	return sqltable.Patiently(ctx, func(ctx context.Context) error {
		return t.change(ctx, func(tx *tx) error { return schema.Apply(ctx, tx.Tx, t.dialect, now) })
	})
}

// change runs f in a transaction.
func (t *tables) change(ctx context.Context, f func(*tx) error) error {
	t.write.Lock()
	defer t.write.Unlock()
	begun, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer begun.Rollback() // does nothing after the commit
	if err := f(&tx{begun, t, ctx}); err != nil {
		return err
	}
	return begun.Commit()
}

// list runs a query and hands each row to scan.
func (t *tables) list(ctx context.Context, scan func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := t.db.QueryContext(ctx, t.bind(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (t *tables) bind(query string) string { return t.dialect.Bind(query) }

// tx is a transaction that binds placeholders.
type tx struct {
	*sql.Tx
	t   *tables
	ctx context.Context
}

func (tx *tx) exec(query string, args ...any) error {
	_, err := tx.changed(query, args...)
	return err
}

// changed runs a statement and reports how many rows it changed.
func (tx *tx) changed(query string, args ...any) (int64, error) {
	res, err := tx.ExecContext(tx.ctx, tx.t.bind(query), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (tx *tx) row(query string, args ...any) *sql.Row {
	return tx.QueryRowContext(tx.ctx, tx.t.bind(query), args...)
}
