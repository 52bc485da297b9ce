package webhook

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Dialect is how a database writes placeholders.
type Dialect string

// The dialects.
const (
	SQLite     Dialect = ""           // ?
	PostgreSQL Dialect = "postgresql" // $1
)

//go:embed migrations/*.sql
var migrations embed.FS

// tables are the outbox's tables.
type tables struct {
	db      *sql.DB
	dialect Dialect
	write   sync.Mutex // one writer a process: SQLite has one anyway
}

// migrate brings the schema up to date. Turning a new file of SQLite to its
// write-ahead log fails at once where another process does the same, whatever
// the time-out.
func (t *tables) migrate(ctx context.Context, now int64) error {
	steps, err := fs.Glob(migrations, "migrations/*.sql") // in the order of names
	if err != nil {
		return err
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		err := t.change(ctx, func(tx *tx) error { return tx.apply(steps, now) })
		if err == nil || !busy(err) || ctx.Err() != nil || time.Since(begun) > 10*time.Second {
			return err
		}
	}
}

// busy reports whether SQLite said SQLITE_BUSY.
func busy(err error) bool {
	var coded interface{ Code() int }
	return errors.As(err, &coded) && coded.Code()&0xff == 5
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

// bind writes the placeholders as the database reads them. No query here has a
// question mark that is none.
func (t *tables) bind(query string) string {
	if t.dialect != PostgreSQL {
		return query
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		query = after
	}
}

// tx is a transaction that binds placeholders.
type tx struct {
	*sql.Tx
	t   *tables
	ctx context.Context
}

// apply applies the steps that the schema does not have. They go forward only;
// a schema that is newer than this program knows is refused.
func (tx *tx) apply(steps []string, now int64) error {
	if tx.t.dialect == PostgreSQL {
		const alone = 0x776562686f6f6b // a number that nobody else locks
		if err := tx.exec(`SELECT pg_advisory_xact_lock(?)`, int64(alone)); err != nil {
			return err
		}
	}
	if err := tx.exec(`CREATE TABLE IF NOT EXISTS webhook_migrations (
		version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`); err != nil {
		return fmt.Errorf("make table webhook_migrations: %w", err)
	}
	var have int
	if err := tx.row(`SELECT coalesce(max(version), 0) FROM webhook_migrations`).Scan(&have); err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if have > len(steps) {
		return fmt.Errorf("schema has version %d, this program knows %d: a newer program made it", have, len(steps))
	}
	for i, path := range steps[have:] {
		text, err := fs.ReadFile(migrations, path)
		if err != nil {
			return err
		}
		// One statement at a time: not every driver takes several.
		for statement := range strings.SplitSeq(string(text), ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := tx.ExecContext(tx.ctx, statement); err != nil {
				return fmt.Errorf("apply migration %s: %w", path, err)
			}
		}
		if err := tx.exec(`INSERT INTO webhook_migrations (version, name, applied_at) VALUES (?, ?, ?)`, have+i+1, path, now); err != nil {
			return fmt.Errorf("note migration %s: %w", path, err)
		}
	}
	return nil
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
