package access

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrations embed.FS

// step is one numbered step of the schema. Steps go forward only.
type step struct {
	version int
	name    string
	sql     string
}

// migrate brings the schema up to date in one transaction. A schema that is
// newer than this program knows is refused.
func (d *Directory) migrate(ctx context.Context) error {
	steps, err := readSteps(migrations)
	if err != nil {
		return err
	}
	return d.change(ctx, func(tx *tx) error { return tx.apply(steps) })
}

func (tx *tx) apply(steps []step) error {
	if err := tx.alone(); err != nil {
		return err
	}
	if err := tx.exec(`CREATE TABLE IF NOT EXISTS access_migrations (
		version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`); err != nil {
		return fmt.Errorf("make table access_migrations: %w", err)
	}
	var have int
	if err := tx.row(`SELECT coalesce(max(version), 0) FROM access_migrations`).Scan(&have); err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if have > len(steps) {
		return fmt.Errorf("schema has version %d, this program knows %d: a newer program made it", have, len(steps))
	}
	for _, s := range steps[have:] {
		// One statement at a time: not every driver takes several.
		for statement := range strings.SplitSeq(s.sql, ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := tx.Tx.ExecContext(tx.ctx, statement); err != nil {
				return fmt.Errorf("apply migration %s: %w", s.name, err)
			}
		}
		if err := tx.exec(`INSERT INTO access_migrations (version, name, applied_at) VALUES (?, ?, ?)`,
			s.version, s.name, tx.now); err != nil {
			return fmt.Errorf("note migration %s: %w", s.name, err)
		}
	}
	return nil
}

// readSteps returns the steps in order. They are numbered from 1 without a gap,
// so that a version says which steps were applied.
func readSteps(from fs.FS) ([]step, error) {
	names, err := fs.Glob(from, "migrations/*.sql") // in the order of names
	if err != nil {
		return nil, err
	}
	var steps []step
	for i, path := range names {
		name := strings.TrimPrefix(path, "migrations/")
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s is not number %04d", name, i+1)
		}
		body, err := fs.ReadFile(from, path)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step{version, name, string(body)})
	}
	return steps, nil
}

// tx is a transaction, with its time and the rebound placeholders.
type tx struct {
	*sql.Tx
	d   *Directory
	ctx context.Context
	now int64
}

// alone waits until no other transaction is at the same place, in any process.
// On SQLite there is none.
func (tx *tx) alone() error {
	if tx.d.o.Dialect != PostgreSQL {
		return nil
	}
	const ringi = 0x72696e6769 // a number that nobody else locks
	if err := tx.exec(`SELECT pg_advisory_xact_lock(?)`, int64(ringi)); err != nil {
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
