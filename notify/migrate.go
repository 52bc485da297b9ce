package notify

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date in one transaction. A schema that is
// newer than this program knows is refused.
func (b *Book) migrate(ctx context.Context) error {
	names, err := fs.Glob(migrations, "migrations/*.sql") // in the order of names
	if err != nil {
		return err
	}
	return b.change(ctx, func(tx *tx) error {
		if err := tx.alone(); err != nil {
			return err
		}
		if err := tx.exec(`CREATE TABLE IF NOT EXISTS notify_migrations (
			version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`); err != nil {
			return fmt.Errorf("make table notify_migrations: %w", err)
		}
		var have int
		if err := tx.row(`SELECT coalesce(max(version), 0) FROM notify_migrations`).Scan(&have); err != nil {
			return fmt.Errorf("read schema version: %w", err)
		}
		if have > len(names) {
			return fmt.Errorf("schema has version %d, this program knows %d: a newer program made it", have, len(names))
		}
		for i, name := range names[have:] {
			if err := tx.apply(have+i+1, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// apply runs one numbered step. Steps go forward only, without a gap, so that a
// version says which were applied.
func (tx *tx) apply(version int, path string) error {
	name := strings.TrimPrefix(path, "migrations/")
	number, _, _ := strings.Cut(name, "_")
	if n, err := strconv.Atoi(number); err != nil || n != version {
		return fmt.Errorf("migration %s is not number %04d", name, version)
	}
	body, err := fs.ReadFile(migrations, path)
	if err != nil {
		return err
	}
	// One statement at a time: not every driver takes several.
	for statement := range strings.SplitSeq(string(body), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := tx.ExecContext(tx.ctx, statement); err != nil {
			return fmt.Errorf("apply migration %s: %w", name, err)
		}
	}
	return tx.exec(`INSERT INTO notify_migrations (version, name, applied_at) VALUES (?, ?, ?)`, version, name, tx.now.UnixMicro())
}

// alone waits until no other transaction is at the same place, in any process.
// On SQLite there is none.
func (tx *tx) alone() error {
	if tx.b.o.Dialect != PostgreSQL {
		return nil
	}
	const notices = 0x72696e676e // a number that nobody else locks
	return tx.exec(`SELECT pg_advisory_xact_lock(?)`, int64(notices))
}

// readSecret reads the database's random bytes, and makes them with a new one.
func (b *Book) readSecret(ctx context.Context) error {
	return b.change(ctx, func(tx *tx) error {
		var fresh [32]byte
		rand.Read(fresh[:]) // never fails: the runtime ends the process instead
		if err := tx.exec(`INSERT INTO notify_secret (space, secret) VALUES (?, ?) ON CONFLICT DO NOTHING`, b.o.Space, hex.EncodeToString(fresh[:])); err != nil {
			return err
		}
		var text string
		if err := tx.row(`SELECT secret FROM notify_secret WHERE space = ?`, b.o.Space).Scan(&text); err != nil {
			return fmt.Errorf("read secret: %w", err)
		}
		var err error
		b.secret, err = hex.DecodeString(text)
		return err
	})
}
