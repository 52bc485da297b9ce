package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date in one transaction, and gives a new
// store its id. A schema that is newer than this program knows is refused.
func migrate(c *connection, now int64) error {
	steps, err := sqltable.Steps(migrations)
	if err != nil {
		return err
	}
	ctx := context.Background()
	tx, err := c.transaction()
	if err != nil {
		return fmt.Errorf("begin migration: %w", err)
	}
	defer tx.Rollback() // does nothing after the commit
	if err := applyMigrations(ctx, tx, steps, now); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES ('id', ?) ON CONFLICT DO NOTHING`,
		ringi.NewID("store_", fromMicros(now)))
	if err != nil {
		return fmt.Errorf("write store id: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit migration: %w", err)
	}
	return nil
}

func applyMigrations(ctx context.Context, tx *sql.Tx, steps []sqltable.Step, now int64) error {
	_, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS schema_migrations (
		version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`)
	if err != nil {
		return fmt.Errorf("make table schema_migrations: %w", err)
	}
	var have int
	err = tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM schema_migrations`).Scan(&have)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if have > len(steps) {
		return fmt.Errorf("schema has version %d, this program knows %d: a newer program made it", have, len(steps))
	}
	for _, m := range steps[have:] {
		if _, err := tx.ExecContext(ctx, m.SQL); err != nil {
			return fmt.Errorf("apply migration %s: %w", m.Name, err)
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, ?)`,
			m.Version, m.Name, now)
		if err != nil {
			return fmt.Errorf("note migration %s: %w", m.Name, err)
		}
	}
	return nil
}
