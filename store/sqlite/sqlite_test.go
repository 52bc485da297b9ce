package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

func openTest(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// first makes the commit that makes a queued run on a thread of its own.
func first(run string) *ringi.Commit {
	return &ringi.Commit{Space: "default", RunID: run, Records: records(0, ringi.EventRunStarted),
		Row: ringi.RunRow{Thread: "thread of " + run, Status: ringi.Queued}}
}

// settle makes the commit by which a settler appends one record.
func settle(run string, expect int64) *ringi.Commit {
	return &ringi.Commit{Space: "default", RunID: run, Expect: expect, Settle: true,
		Records: records(expect, ringi.EventCancelRequested)}
}

func records(seq int64, kinds ...ringi.EventKind) []ringi.Record {
	out := make([]ringi.Record, len(kinds))
	for i, k := range kinds {
		n := seq + int64(i) + 1
		out[i] = ringi.Record{Seq: n, Kind: k, Head: fmt.Appendf(nil, `{"seq":%d}`, n), Payload: fmt.Appendf(nil, `{"n":%d}`, n),
			Salt: make([]byte, 32), Hash: [32]byte{byte(n)}}
	}
	return out
}

func commit(t *testing.T, s *Store, c *ringi.Commit) {
	t.Helper()
	if err := s.Commit(context.Background(), c); err != nil {
		t.Fatal(err)
	}
}

// count returns the one number that a query gives.
func count(t *testing.T, s *Store, query string, args ...any) (n int64) {
	t.Helper()
	if err := s.read.QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPragmas(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "ringi.db"), Options{})
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "secure_delete": "1", "temp_store": "2"}
	for name, value := range want {
		var got string
		err := s.write(context.Background(), 0, func(w *writer) error { return w.tx.QueryRow("PRAGMA " + name).Scan(&got) })
		if err != nil || got != value {
			t.Errorf("the writer's %s is %q, %v; want %q", name, got, err, value)
		}
	}
	for name, value := range map[string]string{"query_only": "1", "busy_timeout": "10000", "temp_store": "2"} {
		var got string
		if err := s.read.QueryRow("PRAGMA " + name).Scan(&got); err != nil || got != value {
			t.Errorf("a reader's %s is %q, %v; want %q", name, got, err, value)
		}
	}
}

func TestReadersCannotWrite(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "ringi.db"), Options{})
	commit(t, s, first("run_1"))
	for _, query := range []string{
		`DELETE FROM records`, `PRAGMA query_only = 0; DELETE FROM records`, `CREATE TABLE t (x)`,
	} {
		if _, err := s.read.Exec(query); err == nil {
			t.Errorf("a reader could run %q", query)
		}
	}
	if n := count(t, s, `SELECT count(*) FROM records`); n != 1 {
		t.Errorf("%d records are left, want 1", n)
	}
}

func TestCloseRemovesTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	s := openTest(t, path, Options{})
	commit(t, s, first("run_1"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + suffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there after Close: %v", suffix, err)
		}
	}
	s = openTest(t, path, Options{})
	if n := count(t, s, `SELECT count(*) FROM records`); n != 1 {
		t.Errorf("%d records after reopening, want 1", n)
	}
}

// Close answers what waits, and refuses what comes later.
func TestCloseAnswersWhatWaits(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "ringi.db"), Options{})
	open := block(t, s)
	answers := make(chan error, 20)
	for i := range cap(answers) {
		go func() { answers <- s.Commit(context.Background(), first(fmt.Sprintf("run_%d", i))) }()
	}
	waitFor(t, s, cap(answers))
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for !s.queue.isClosed() {
		time.Sleep(time.Millisecond)
	}
	err := s.Commit(context.Background(), first("run_late"))
	if !errors.Is(err, ringi.ErrNotRecorded) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a commit after Close gives %v", err)
	}
	open()
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Errorf("a commit that waited: %v", err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// Two stores keep the newest time across a clean end, whatever wrote it.
func TestNewestTimeOutlivesClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	at := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	s := openTest(t, path, Options{Now: func() time.Time { return at }})
	ctx := context.Background()
	commit(t, s, first("run_1"))
	commit(t, s, first("run_2"))
	// The newest time is that of a mark without a record on the older run.
	at = at.Add(time.Minute)
	commit(t, s, &ringi.Commit{Space: "default", RunID: "run_1", Expect: 1, Settle: true, Row: ringi.RunRow{Corrupt: "broken"}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	at = at.Add(-time.Hour)
	s = openTest(t, path, Options{Now: func() time.Time { return at }})
	if now, err := s.Now(ctx); err != nil || !now.Equal(at.Add(time.Hour)) {
		t.Errorf("Now is %s, %v; want %s", now, err, at.Add(time.Hour))
	}
}

// Whoever takes away all records of a run does not hide it: the row says that
// there were some.
func TestRunWithoutRecordsIsShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	s := openTest(t, path, Options{})
	for _, run := range []string{"run_1", "run_2"} {
		c := first(run)
		c.Row.Thread, c.Row.Status = "thr_1", ringi.Completed
		commit(t, s, c)
	}
	if err := newThief(t, path).DeleteRecord("default", "run_1", 1); err != nil {
		t.Fatal(err)
	}
	runs, err := s.Transcript(context.Background(), "default", "thr_1")
	if err != nil || len(runs) != 2 || runs[0].Row.ID != "run_1" || runs[0].Row.Seq != 1 || len(runs[0].Records) != 0 || len(runs[1].Records) != 1 {
		t.Errorf("the transcript is %+v, %v", runs, err)
	}
	run, err := s.Load(context.Background(), "default", "run_1")
	if err != nil || run.Row.Seq != 1 || len(run.Records) != 0 {
		t.Errorf("the run is %+v, %v", run, err)
	}
}
