package sqltable

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// Step is one numbered step of a schema. Steps go forward only.
type Step struct {
	Version int
	Name    string
	SQL     string
}

// Steps reads migrations/*.sql in their order. They are numbered from 1 without
// a gap, so that a version says which were applied.
func Steps(from fs.FS) ([]Step, error) {
	names, err := fs.Glob(from, "migrations/*.sql") // in the order of names
	if err != nil {
		return nil, err
	}
	var steps []Step
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
		steps = append(steps, Step{version, name, string(body)})
	}
	return steps, nil
}

// Schema is what a group of tables is made by.
type Schema struct {
	Steps []Step
	// Table notes the steps that were applied.
	Table string
	// Lock is a number of its own: in PostgreSQL one process at a time applies.
	Lock int64
}

// Apply applies the steps that a schema does not have, in the caller's
// transaction. A schema that is newer than the steps is refused.
func (s Schema) Apply(ctx context.Context, tx *sql.Tx, d Dialect, now time.Time) error {
	if d == PostgreSQL { // of SQLite's transactions there is one
		if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, s.Lock); err != nil {
			return fmt.Errorf("wait for the schema: %w", err)
		}
	}
	if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS `+s.Table+` (
		version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`); err != nil {
		return fmt.Errorf("make table %s: %w", s.Table, err)
	}
	var have int
	if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM `+s.Table).Scan(&have); err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if have > len(s.Steps) {
		return fmt.Errorf("schema has version %d, this program knows %d: a newer program made it", have, len(s.Steps))
	}
	for _, step := range s.Steps[have:] {
		// One statement at a time: not every driver takes several.
		for statement := range strings.SplitSeq(step.SQL, ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("apply migration %s: %w", step.Name, err)
			}
		}
		if _, err := tx.ExecContext(ctx, d.Bind(`INSERT INTO `+s.Table+` (version, name, applied_at) VALUES (?, ?, ?)`),
			step.Version, step.Name, now.UnixMicro()); err != nil {
			return fmt.Errorf("note migration %s: %w", step.Name, err)
		}
	}
	return nil
}

// Patiently runs migrate again while SQLite is busy: turning a new file to its
// write-ahead log fails at once where another process does the same, whatever
// the time-out.
func Patiently(ctx context.Context, migrate func(context.Context) error) error {
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		err := migrate(ctx)
		if err == nil || !Busy(err) || ctx.Err() != nil || time.Since(begun) > 10*time.Second {
			return err
		}
	}
}
