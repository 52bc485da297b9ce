package access

import (
	"context"
	"database/sql"
	"embed"

	"github.com/ringi-dev/ringi/internal/sqltable"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date in one transaction. A schema that is
// newer than this program knows is refused.
func (d *Directory) migrate(ctx context.Context) error {
	steps, err := sqltable.Steps(migrations)
	if err != nil {
		return err
	}
	schema := sqltable.Schema{Steps: steps, Table: "access_migrations", Lock: lock}
	return d.change(ctx, func(tx *tx) error { return schema.Apply(ctx, tx.Tx, d.o.Dialect, sqltable.Time(tx.now)) })
}

// tx is a transaction, with its time and the rebound placeholders.
type tx struct {
	*sql.Tx
	d   *Directory
	ctx context.Context
	now int64
}

// lock is a number that nobody else locks.
const lock = 0x72696e6769

// alone waits until no other transaction is at the same place, in any process.
// On SQLite there is none.
func (tx *tx) alone() error {
	if tx.d.o.Dialect != PostgreSQL {
		return nil
	}
	if err := tx.exec(`SELECT pg_advisory_xact_lock(?)`, int64(lock)); err != nil {
		return notRecorded(err)
	}
	return nil
}

func (tx *tx) exec(query string, args ...any) error {
	_, err := tx.Tx.ExecContext(tx.ctx, tx.d.bind(query), args...)
	return err
}

// changed runs a statement and reports how many rows it changed.
func (tx *tx) changed(query string, args ...any) (int64, error) {
	res, err := tx.Tx.ExecContext(tx.ctx, tx.d.bind(query), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (tx *tx) row(query string, args ...any) *sql.Row {
	return tx.Tx.QueryRowContext(tx.ctx, tx.d.bind(query), args...)
}
