package memory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

var ctx = context.Background()

// queued is the first commit of a run.
func queued(run string) *ringi.Commit {
	return &ringi.Commit{
		Space: "default", RunID: run,
		Records: []ringi.Record{{Seq: 1, Kind: ringi.EventRunStarted, Head: []byte("head"), Payload: []byte("payload"), Salt: []byte("salt")}},
		Row:     ringi.RunRow{Thread: "thread of " + run, Status: ringi.Queued},
	}
}

func Example() {
	s := New(Options{})
	defer s.Close()
	c := queued("run_1")
	if err := s.Commit(ctx, c); err != nil {
		fmt.Println(err)
	}
	fmt.Println(s.Commit(ctx, c)) // somebody made the run already
	run, _ := s.Load(ctx, "default", "run_1")
	fmt.Println(run.Row.Status, len(run.Records), string(run.Records[0].Payload))
	// Output:
	// commit: make run run_1: somebody was first
	// queued 1 payload
}

// The zero options are the wall clock and the bounds of the vocabulary.
func TestZeroOptions(t *testing.T) {
	s := New(Options{})
	before := time.Now().Truncate(time.Microsecond)
	now, err := s.Now(ctx)
	if err != nil || now.Before(before) || now.After(time.Now()) {
		t.Errorf("Now is %v, %v", now, err)
	}
	for i := range 1100 {
		if err := s.Attempt(ctx, ringi.Attempt{Space: "default", RunID: "run_1", Detail: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if a, _ := s.Attempts(ctx, "default", "run_1"); len(a) != 1000 || a[0].Detail != "100" {
		t.Errorf("%d attempts, the first %q; want the newest 1,000", len(a), a[0].Detail)
	}
	for i := range 100_000 {
		s.Attempt(ctx, ringi.Attempt{Space: "default", RunID: fmt.Sprint("run_", 2+i/500)})
	}
	if a, _ := s.Attempts(ctx, "default", "run_1"); len(a) != 0 {
		t.Errorf("%d attempts of the oldest run are left behind 100,000 newer ones", len(a))
	}
	if n := s.d.attempts.all.Len(); n != 100_000 || len(s.d.attempts.byRun) != 200 {
		t.Errorf("%d attempts of %d runs, want 100,000 of 200", n, len(s.d.attempts.byRun))
	}
}

// Wake is called without the lock: it may use the store.
func TestWakeMayUseTheStore(t *testing.T) {
	var woken []string
	var s *Store
	s = New(Options{Wake: func(space, runID string) {
		row, err := s.Row(ctx, space, runID)
		woken = append(woken, fmt.Sprint(row.ID, " ", row.Seq, " ", err))
	}})
	c := queued("run_1")
	c.Wake = true
	if err := s.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
	if len(woken) != 1 || woken[0] != "run_1 1 <nil>" {
		t.Errorf("woken: %q", woken)
	}
}

// Restart is another process: the data is the same, closing is each one's own.
func TestRestart(t *testing.T) {
	one := New(Options{})
	if err := one.Commit(ctx, queued("run_1")); err != nil {
		t.Fatal(err)
	}
	two := one.Restart()
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Load(ctx, "default", "run_1"); !errors.Is(err, errClosed) {
		t.Errorf("the closed store gives %v", err)
	}
	if run, err := two.Load(ctx, "default", "run_1"); err != nil || run.Row.Seq != 1 {
		t.Errorf("the restarted store gives %+v, %v", run, err)
	}
	a, _ := one.Restart().ID(ctx)
	if b, err := two.ID(ctx); err != nil || a != b {
		t.Errorf("the ids are %q and %q, %v", a, b, err)
	}
	if err := two.Commit(ctx, queued("run_1")); !errors.Is(err, ringi.ErrConflict) {
		t.Errorf("the run again gives %v", err)
	}
}

// Heartbeats of owners that are gone are forgotten: an engine has a new owner
// id each time it starts.
func TestDeadHeartbeatsAreForgotten(t *testing.T) {
	now := time.Date(2031, 3, 2, 9, 0, 0, 0, time.UTC)
	s := New(Options{Now: func() time.Time { return now }})
	for i := range 1000 {
		if err := s.Beat(ctx, fmt.Sprint("own_", i), time.Second); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	if n := len(s.d.beats); n != 1 {
		t.Errorf("%d heartbeats are kept, want 1", n)
	}
}

// The budget of design section 9: what a run costs is not the store's.
func TestAllocations(t *testing.T) {
	s := New(Options{})
	if err := s.Beat(ctx, "own_1", time.Hour); err != nil {
		t.Fatal(err)
	}
	commits := make([]*ringi.Commit, 501)
	for i := range commits {
		commits[i] = queued(fmt.Sprint("run_", i))
	}
	first := testing.AllocsPerRun(500, func() {
		if err := s.Commit(ctx, commits[0]); err != nil {
			t.Fatal(err)
		}
		commits = commits[1:]
	})
	if first > 6 {
		t.Errorf("the first commit takes %.0f allocations, want 6 at most", first)
	}
	c := queued("run_x")
	c.Owner, c.Claim, c.Row.Status = "own_1", true, ringi.Running
	if err := s.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
	c.Claim, c.Epoch, c.Expect = false, 1, 1
	c.Records = append(c.Records, c.Records[0])
	next := testing.AllocsPerRun(2, func() {
		c.Records[0].Seq, c.Records[1].Seq = c.Expect+1, c.Expect+2
		if err := s.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
		c.Expect += 2
	})
	if next > 6 {
		t.Errorf("a commit of two records takes %.0f allocations, want 6 at most", next)
	}
	load := testing.AllocsPerRun(500, func() {
		if run, err := s.Load(ctx, "default", "run_x"); err != nil || len(run.Records) != 7 {
			t.Fatal(run, err)
		}
	})
	if load > 6 {
		t.Errorf("a load of seven records takes %.0f allocations, want 6 at most", load)
	}
}
