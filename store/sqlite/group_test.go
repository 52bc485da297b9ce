package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// block holds the writer until the function that it returns is called, so that
// what comes meanwhile waits and goes in one group.
func block(t *testing.T, s *Store) (open func()) {
	t.Helper()
	entered, gate := make(chan bool), make(chan bool)
	go s.write(context.Background(), 0, func(*writer) error {
		entered <- true
		<-gate
		return errors.New("it wrote nothing")
	})
	<-entered
	return func() { close(gate) }
}

// waitFor waits until n jobs wait.
func waitFor(t *testing.T, s *Store, n int) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		s.queue.mu.Lock()
		have := len(s.queue.jobs)
		s.queue.mu.Unlock()
		if have == n {
			return
		}
		if time.Since(start) > 90*time.Second {
			t.Fatalf("%d jobs wait, want %d", have, n)
		}
	}
}

// group commits all in one group, in their order, and returns the answers.
func group(t *testing.T, s *Store, commits ...*ringi.Commit) []error {
	t.Helper()
	open := block(t, s)
	errs := make([]error, len(commits))
	done := make(chan bool)
	for i, c := range commits {
		go func() { errs[i] = s.Commit(context.Background(), c); done <- true }()
		waitFor(t, s, i+1)
	}
	open()
	for range commits {
		<-done
	}
	return errs
}

// transactions counts the transactions that are recorded while f runs.
func transactions(t *testing.T, s *Store, f func()) int {
	t.Helper()
	var before, after int
	read := func(n *int) {
		if err := s.write(context.Background(), 0, func(w *writer) error {
			*n = w.commits
			return errors.New("it wrote nothing")
		}); err == nil {
			t.Fatal("reading the counter was taken for a change")
		}
	}
	read(&before)
	f()
	read(&after)
	return after - before
}

// withRequest adds a request, a tool and changes.
func withRequest(c *ringi.Commit, id string, changes ...ringi.RequestChange) *ringi.Commit {
	c.Requests = append(c.Requests, ringi.RequestRow{Space: c.Space, RunID: c.RunID, Thread: "thread of " + c.RunID, ID: id, State: ringi.Pending})
	c.Changes = changes
	c.Tools = map[string][]byte{"digest of " + id: []byte("{}")}
	return c
}

// A member that fails at its very end, after everything else of it was
// written, leaves nothing; those before and behind it in the group stand.
func TestLateConflictLeavesNothing(t *testing.T) {
	var woken []string
	s := openTest(t, filepath.Join(t.TempDir(), "ringi.db"), Options{
		Wake: func(_ context.Context, _ *sql.Tx, _, run string) error { woken = append(woken, run); return nil },
	})
	for i := range 6 {
		commit(t, s, first(fmt.Sprintf("run_%d", i)))
	}
	wrong := ringi.RequestChange{ID: "req_3", From: ringi.Granted, To: ringi.Spent}
	late := withRequest(settle("run_3", 1), "req_3", wrong)
	late.Wake = true
	twice := settle("run_1", 1)
	var errs []error
	made := transactions(t, s, func() {
		errs = group(t, s,
			withRequest(settle("run_0", 1), "req_0"), settle("run_1", 1), twice, late,
			withRequest(settle("run_4", 1), "req_4"), first("run_5"), withRequest(first("run_6"), "req_6"))
	})
	if made != 1 {
		t.Errorf("%d transactions, want 1", made)
	}
	var state *ringi.RequestStateError
	for i, want := range []error{nil, nil, ringi.ErrConflict, nil, nil, ringi.ErrConflict, nil} {
		if i == 3 {
			if !errors.As(errs[i], &state) || state.State != ringi.Pending {
				t.Errorf("the late conflict gives %v", errs[i])
			}
			continue
		}
		if !errors.Is(errs[i], want) {
			t.Errorf("member %d gives %v, want %v", i, errs[i], want)
		}
	}
	for i, seq := range []int64{2, 2, 1, 1, 2, 1, 1} {
		run, err := s.Load(context.Background(), "default", fmt.Sprintf("run_%d", i))
		if err != nil || run.Row.Seq != seq || len(run.Records) != int(seq) {
			t.Errorf("run %d: %v, %+v; want %d records", i, err, run, seq)
		}
	}
	if n := count(t, s, `SELECT count(*) FROM requests`); n != 3 {
		t.Errorf("%d requests, want those of the three that were taken", n)
	}
	if n := count(t, s, `SELECT count(*) FROM tools WHERE digest = 'digest of req_3'`); n != 0 {
		t.Error("the refused member left its tool")
	}
	if len(woken) != 0 {
		t.Errorf("woken: %q, want none", woken)
	}
}

// Without a failure a group is one transaction; a group that refuses all is
// none.
func TestGroupIsOneTransaction(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "ringi.db"), Options{})
	var commits []*ringi.Commit
	for i := range 64 {
		commits = append(commits, first(fmt.Sprintf("run_%d", i)))
	}
	for want := range 2 {
		n := transactions(t, s, func() {
			for i, err := range group(t, s, commits...) {
				if want == 0 && err != nil || want == 1 && !errors.Is(err, ringi.ErrConflict) {
					t.Errorf("member %d: %v", i, err)
				}
			}
		})
		if n != 1-want {
			t.Errorf("%d transactions, want %d", n, 1-want)
		}
	}
	if n := count(t, s, `SELECT count(*) FROM runs`); n != 64 {
		t.Errorf("%d runs, want 64", n)
	}
}

// A commit that still waits is taken back by its context; one that the writer
// has is answered.
func TestContextTakesBackWhatWaits(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "ringi.db"), Options{})
	open := block(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	waits, stays := make(chan error), make(chan error)
	go func() { waits <- s.Commit(ctx, first("run_1")) }()
	waitFor(t, s, 1)
	go func() { stays <- s.Commit(context.Background(), first("run_2")) }()
	waitFor(t, s, 2)
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("the commit that waited gives %v", err)
	}
	open()
	if err := <-stays; err != nil {
		t.Error(err)
	}
	if _, err := s.Row(context.Background(), "default", "run_1"); !errors.Is(err, ringi.ErrNotFound) {
		t.Errorf("the run of the commit taken back: %v", err)
	}

	// Taken, then cancelled: the answer is the writer's.
	ctx, cancel = context.WithCancel(context.Background())
	err := s.write(ctx, 0, func(w *writer) error {
		cancel()
		return w.commit(first("run_3"), nil)
	})
	if err != nil {
		t.Errorf("the commit that was taken gives %v", err)
	}
	if _, err := s.Row(context.Background(), "default", "run_3"); err != nil {
		t.Error(err)
	}
}

// What Wake writes stands or falls with the commit, and its error or panic
// refuses the commit and nobody else's.
func TestWake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	s := openTest(t, path, Options{Wake: func(ctx context.Context, tx *sql.Tx, space, run string) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO jobs (run) VALUES (?)`, space+"/"+run); err != nil {
			return err
		}
		switch run {
		case "run_err":
			return errors.New("no room in the queue")
		case "run_panic":
			panic("boom")
		}
		return nil
	}})
	if _, err := newThief(t, path).db.Exec(`CREATE TABLE jobs (run TEXT)`); err != nil {
		t.Fatal(err)
	}
	wake := func(run string) *ringi.Commit {
		c := first(run)
		c.Wake = true
		return c
	}
	for name, errs := range map[string][]error{
		"in one group": group(t, s, wake("run_1"), wake("run_err"), wake("run_panic"), wake("run_2")),
		"alone":        {nil, s.Commit(context.Background(), wake("run_err")), s.Commit(context.Background(), wake("run_panic")), nil},
	} {
		for i, want := range []string{"", "no room in the queue", "boom", ""} {
			if want == "" && errs[i] != nil {
				t.Errorf("%s: member %d: %v", name, i, errs[i])
			}
			if want != "" && (!errors.Is(errs[i], ringi.ErrNotRecorded) || !strings.Contains(errs[i].Error(), want)) {
				t.Errorf("%s: member %d: %v, want ErrNotRecorded with %q", name, i, errs[i], want)
			}
		}
	}
	if n := count(t, s, `SELECT count(*) FROM jobs WHERE run IN ('default/run_1', 'default/run_2')`); n != 2 {
		t.Errorf("%d jobs of the runs that were made, want 2", n)
	}
	for _, table := range []string{"jobs", "runs", "records"} {
		if n := count(t, s, `SELECT count(*) FROM `+table); n != 2 {
			t.Errorf("%d rows in %s, want 2", n, table)
		}
	}
}

// Woken comes after the commit is recorded, and for no commit that is refused.
func TestWoken(t *testing.T) {
	var s *Store
	woken := map[string]ringi.RunStatus{}
	s = openTest(t, filepath.Join(t.TempDir(), "ringi.db"), Options{Woken: func(space, run string) {
		row, err := s.Row(t.Context(), space, run)
		if err != nil {
			t.Errorf("woken for %s, which cannot be read: %v", run, err)
		}
		woken[run] = row.Status
	}})
	c := first("run_1")
	c.Wake = true
	again := first("run_1")
	again.Wake = true
	if err := errors.Join(s.Commit(t.Context(), c), s.Commit(t.Context(), first("run_2"))); err != nil {
		t.Fatal(err)
	}
	if len(woken) != 1 || woken["run_1"] != c.Row.Status {
		t.Errorf("woken %v, want run_1 alone, as it was committed", woken)
	}
	clear(woken)
	if err := s.Commit(t.Context(), again); !errors.Is(err, ringi.ErrConflict) || len(woken) != 0 {
		t.Errorf("the second first commit gives %v and wakes %v", err, woken)
	}
}
