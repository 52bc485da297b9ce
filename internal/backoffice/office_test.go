package backoffice

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// fresh is the file of a new back office: it is made once and copied, as all
// are the same (see TestSeed).
var fresh = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "backoffice")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	o, err := Open(filepath.Join(dir, "office.db"))
	if err != nil {
		return nil, err
	}
	if err := o.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "office.db"))
})

// newOffice opens a back office in which nothing was done.
func newOffice(t *testing.T) *Office {
	t.Helper()
	file, err := fresh()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "office.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return openOffice(t, path)
}

func openOffice(t *testing.T, path string) *Office {
	t.Helper()
	o, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// dump is every row of the database as text.
func dump(t *testing.T, o *Office) string {
	t.Helper()
	var b strings.Builder
	for _, table := range []string{"customers", "orders", "items", "refunds", "outbox", "policies"} {
		rows, err := o.db.Query(`SELECT * FROM ` + table + ` ORDER BY rowid`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		cols, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			vals := make([]any, len(cols))
			for i := range vals {
				vals[i] = new(any)
			}
			if err := rows.Scan(vals...); err != nil {
				t.Fatal(err)
			}
			b.WriteString(table)
			for _, v := range vals {
				fmt.Fprintf(&b, "|%v", *v.(*any))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestSeed(t *testing.T) {
	a, b := openOffice(t, filepath.Join(t.TempDir(), "a.db")), openOffice(t, filepath.Join(t.TempDir(), "b.db"))
	text := dump(t, a)
	if text != dump(t, b) {
		t.Error("two new databases differ")
	}
	for table, want := range map[string]int{"customers": customerCount, "orders": orderCount, "policies": len(policyTexts), "outbox": 1} {
		if n := strings.Count("\n"+text, "\n"+table+"|"); n != want {
			t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
	for _, want := range []string{"山田 花子", "قابل للكسر", hostileName, "\u202e", "<script>"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the database", want)
		}
	}
	// Nothing was paid back beyond what an order cost, and names are unique
	// enough to be found.
	for n := range orderCount {
		of, err := orderBy(context.Background(), a.db, fmt.Sprintf("A-%d", 1001+n))
		if err != nil {
			t.Fatal(err)
		}
		if of.TotalCents <= 0 || of.left() < 0 || len(of.Items) == 0 || of.Currency == "" {
			t.Errorf("order %s: total %d, left %d, %d items, currency %q", of.ID, of.TotalCents, of.left(), len(of.Items), of.Currency)
		}
	}
	var names int
	if err := a.db.QueryRow(`SELECT count(DISTINCT name) FROM customers`).Scan(&names); err != nil || names != customerCount {
		t.Errorf("%d names (%v), want %d", names, err, customerCount)
	}
}

func TestOpenKeepsWhatWasDone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "office %?#.db")
	o, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.cancelOrder(context.Background(), cancelOrderIn{OrderID: "A-1057", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	was := dump(t, o)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if dump(t, again) != was {
		t.Error("the database is not as it was left")
	}
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v (%v), want 0600", info.Mode(), err)
		}
	}
}

func TestOpenRefusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.db")
	db, err := sql.Open("sqlite", dsn(other))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE mine (x)`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	newer := filepath.Join(dir, "newer.db")
	o, err := Open(newer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.db.Exec(`PRAGMA user_version = 9`); err != nil {
		t.Fatal(err)
	}
	o.Close()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{other: "another database", newer: "version is 9", text: "not a database", dir: "open back office"} {
		if o, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			if o != nil {
				o.Close()
			}
			t.Errorf("open %s: %v, want %q", filepath.Base(path), err, want)
		}
	}
}
