//go:build unix

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ringi-dev/ringi"
)

// pages sets how many pages the file may have; 0 asks for those it has.
func pages(t *testing.T, s *Store, limit int64) (n int64) {
	t.Helper()
	query := `PRAGMA page_count`
	if limit > 0 {
		query = fmt.Sprintf(`PRAGMA max_page_count = %d`, limit)
	}
	err := s.write(context.Background(), 0, func(w *writer) error { return w.tx.QueryRow(query).Scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A full disk refuses with a typed error and leaves nothing; a member of
// the group for which there is room is taken; and with room all goes on.
func TestFullDisk(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "ringi.db"), Options{})
	for i := range 5 {
		commit(t, s, first(fmt.Sprintf("run_%d", i)))
	}
	large := func(run string) *ringi.Commit {
		c := settle(run, 1)
		c.Records[0].Payload = make([]byte, 1<<20)
		return withRequest(c, "req_"+run)
	}
	pages(t, s, pages(t, s, 0)+8)

	errs := group(t, s, settle("run_0", 1), large("run_1"), settle("run_2", 1), large("run_3"))
	for i, err := range errs {
		if full := i%2 == 1; full && !errors.Is(err, ringi.ErrNotRecorded) || !full && err != nil {
			t.Errorf("member %d of a group: %v", i, err)
		}
	}
	if err := s.Commit(context.Background(), large("run_4")); !errors.Is(err, ringi.ErrNotRecorded) || !strings.Contains(err.Error(), "full") {
		t.Errorf("a commit alone: %v", err)
	}
	for i, seq := range []int64{2, 1, 2, 1, 1} {
		run, err := s.Load(context.Background(), "default", fmt.Sprintf("run_%d", i))
		if err != nil || run.Row.Seq != seq || len(run.Records) != int(seq) {
			t.Errorf("run %d: %v, %+v", i, err, run.Row)
		}
	}
	for _, table := range []string{"requests", "tools"} {
		if n := count(t, s, `SELECT count(*) FROM `+table); n != 0 {
			t.Errorf("%d rows in %s, want none", n, table)
		}
	}

	pages(t, s, 1<<20)
	for i, err := range group(t, s, large("run_1"), large("run_3"), large("run_4")) {
		if err != nil {
			t.Errorf("member %d with room again: %v", i, err)
		}
	}
	if err := intact(s); err != nil {
		t.Error(err)
	}
}

// The same where the log cannot grow: the write fails in COMMIT itself. The
// limit is a process's, so that the part is played by one of its own.
func TestFullDiskInTheLog(t *testing.T) {
	out, err := childCommand("full", filepath.Join(t.TempDir(), "ringi.db")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func fullChild(args []string) error {
	signal.Ignore(syscall.SIGXFSZ) // the write then fails with EFBIG
	ctx := context.Background()
	s, err := Open(args[0], Options{})
	if err != nil {
		return err
	}
	const runs = 8
	acknowledged := make([]int64, runs)
	for i := range runs {
		c := first(fmt.Sprintf("run_%d", i))
		c.Row.Head = c.Records[0].Hash
		if err := s.Commit(ctx, c); err != nil {
			return err
		}
		acknowledged[i] = 1
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	for round := range 3 {
		small := syscall.Rlimit{Cur: uint64(round+1) * 500_001, Max: limit.Max}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
			return err
		}
		errs := make([]error, runs)
		var wg sync.WaitGroup
		for i := range runs {
			wg.Go(func() {
				for errs[i] == nil {
					if errs[i] = s.Commit(ctx, step(fmt.Sprintf("run_%d", i), acknowledged[i])); errs[i] == nil {
						acknowledged[i] += 2
					}
				}
			})
		}
		wg.Wait()
		for i, err := range errs {
			if !errors.Is(err, ringi.ErrNotRecorded) {
				return fmt.Errorf("run %d: %w", i, err)
			}
			if row, err := s.Row(ctx, "default", fmt.Sprintf("run_%d", i)); err != nil || row.Seq != acknowledged[i] {
				return fmt.Errorf("run %d is at %d where %d was acknowledged: %w", i, row.Seq, acknowledged[i], err)
			}
		}
		fmt.Printf("round %d: %v: %v\n", round, acknowledged, errs[0])
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		for i := range runs {
			run := fmt.Sprintf("run_%d", i)
			if err := s.Commit(ctx, step(run, acknowledged[i])); err != nil {
				return fmt.Errorf("with room again: %w", err)
			}
			acknowledged[i] += 2
			if err := whole(ctx, s, run, acknowledged[i]); err != nil {
				return err
			}
		}
	}
	return errors.Join(intact(s), s.Close())
}

// Where it is not the write that failed the answer is "not recorded" only once
// another commit stands where the lost one may still lie.
func TestFailedCommitIsWrittenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	s := openTest(t, path, Options{})
	w := &writer{s: s}
	if err := w.begin(); err != nil {
		t.Fatal(err)
	}
	w.rollback()
	failed := errors.New("sync failed")
	if err := w.afterFailedCommit(failed); !errors.Is(err, ringi.ErrNotRecorded) || !errors.Is(err, failed) {
		t.Errorf("the error is %v, want ErrNotRecorded", err)
	}
	if n := count(t, s, `SELECT count(*) FROM meta WHERE key = 'overwritten'`); n != 1 {
		t.Errorf("nothing was written over the failed commit")
	}
	if _, err := newThief(t, path).db.Exec(`ALTER TABLE meta RENAME TO gone`); err != nil {
		t.Fatal(err)
	}
	err := w.afterFailedCommit(failed)
	if errors.Is(err, ringi.ErrNotRecorded) || !errors.Is(err, failed) || !strings.Contains(err.Error(), "may or may not") {
		t.Errorf("the error is %v, want one that does not promise", err)
	}
	if err := w.disconnect(); err != nil {
		t.Error(err)
	}
}
