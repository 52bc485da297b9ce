package sqlite

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/ringi-dev/ringi/internal/sqltable"
)

func TestMigrationsAreNumbered(t *testing.T) {
	steps, err := sqltable.Steps(migrations)
	if err != nil || len(steps) == 0 || steps[0].Name != "0001_init.sql" {
		t.Fatalf("the steps are %v, %v", steps, err)
	}
	file := &fstest.MapFile{Data: []byte("SELECT 1")}
	for name, files := range map[string]fstest.MapFS{
		"gap":       {"migrations/0001_a.sql": file, "migrations/0003_b.sql": file},
		"twice":     {"migrations/0001_a.sql": file, "migrations/0001_b.sql": file},
		"no number": {"migrations/a.sql": file},
		"from two":  {"migrations/0002_a.sql": file},
	} {
		if steps, err := sqltable.Steps(files); err == nil {
			t.Errorf("%s: taken as %v", name, steps)
		}
	}
}

// A newer program has made the schema: this one must not touch it.
func TestNewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	openTest(t, path, Options{}).Close()
	th := newThief(t, path)
	if _, err := th.db.Exec(`INSERT INTO schema_migrations VALUES (4, '0004_later.sql', 0)`); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, Options{})
	if err == nil {
		s.Close()
		t.Fatal("it was opened")
	}
	if !strings.Contains(err.Error(), "version 4") {
		t.Errorf("the error is %v", err)
	}
	if _, err := th.db.Exec(`DELETE FROM schema_migrations WHERE version = 4`); err != nil {
		t.Fatal(err)
	}
	openTest(t, path, Options{})
}

// A step that fails leaves nothing of itself, nor of those before it.
func TestMigrationsAreOneTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	var c connection
	if _, err := prepareFile(path); err != nil {
		t.Fatal(err)
	}
	if err := c.connect(path); err != nil {
		t.Fatal(err)
	}
	defer c.disconnect()
	ctx := context.Background()
	tx, err := c.conn.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = applyMigrations(ctx, tx, []sqltable.Step{
		{Version: 1, Name: "0001_a.sql", SQL: `CREATE TABLE a (x); CREATE TABLE b (x);`}, {Version: 2, Name: "0002_b.sql", SQL: `CREATE TABLE c (x); nonsense;`},
	}, 1)
	if err == nil || !strings.Contains(err.Error(), "0002_b.sql") {
		t.Errorf("the error is %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := c.conn.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d tables are left, %v", n, err)
	}
}

// Many open a new file at once: one makes the schema, and all get one id.
func TestOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	stores := make([]*Store, 8)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			s, err := Open(path, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			stores[i] = s
		})
	}
	wg.Wait()
	for _, s := range stores {
		if s == nil {
			continue
		}
		if s.id != stores[0].id || !strings.HasPrefix(s.id, "store_") {
			t.Errorf("the ids are %q and %q", s.id, stores[0].id)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
