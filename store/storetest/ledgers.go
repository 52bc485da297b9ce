package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// errFull is what the tests' question says against a commit.
var errFull = errors.New("the limit is reached")

// room lets a commit in while a sum stays within a limit.
func room(name string, amount, limit int64) func(context.Context, ringi.Ledger) error {
	return func(ctx context.Context, l ringi.Ledger) error {
		sum, err := l.Sum(ctx, name)
		if err != nil {
			return err
		}
		if sum+amount > limit {
			return errFull
		}
		return l.Add(ctx, name, amount)
	}
}

// ledgers holds a store to [ringi.AdmittingStore], where it is one.
func ledgers(t *testing.T, o opener) {
	o.run(t, "RefusedIsNotMade", func(t *testing.T, g *stage) {
		s := admitting(t, g.Store)
		if err := s.CommitAdmitted(ctx, first("run_a", "thr_a"), room("pay", 30, 29)); !errors.Is(err, errFull) {
			t.Fatalf("a commit that is not let in: %v", err)
		}
		if _, err := s.Row(ctx, space, "run_a"); !errors.Is(err, ringi.ErrNotFound) {
			t.Errorf("the run is there: %v", err)
		}
		if got := g.sum("pay"); got != 0 {
			t.Errorf("sum %d", got)
		}
		if err := s.CommitAdmitted(ctx, first("run_a", "thr_a"), room("pay", 30, 30)); err != nil {
			t.Fatal(err)
		}
		if got := g.sum("pay"); got != 30 {
			t.Errorf("sum %d, want 30", got)
		}
	})
	o.run(t, "NotAskedWhereSomethingElseSpeaksAgainst", func(t *testing.T, g *stage) {
		s := admitting(t, g.Store)
		g.commit(first("run_a", "thr_a"))
		c := first("run_a", "thr_b") // it is made already
		err := s.CommitAdmitted(ctx, c, func(context.Context, ringi.Ledger) error {
			t.Error("asked")
			return nil
		})
		if !errors.Is(err, ringi.ErrConflict) {
			t.Errorf("made twice: %v", err)
		}
	})
	o.run(t, "Ledger", ledgerItself)
	o.run(t, "AtOnce", func(t *testing.T, g *stage) { admitAtOnce(t, g, g.Store, g.Store) })
	if o.features.Shared {
		o.run(t, "TwoProcesses", func(t *testing.T, g *stage) { admitAtOnce(t, g, g.Store, g.another(nil)) })
	}
	if o.features.Durable {
		o.run(t, "Reopen", func(t *testing.T, g *stage) {
			if err := admitting(t, g.Store).CommitAdmitted(ctx, first("run_a", "thr_a"), room("pay", 30, 100)); err != nil {
				t.Fatal(err)
			}
			if err := g.Store.Close(); err != nil {
				t.Fatal(err)
			}
			if got := g.with(g.another(nil)).sum("pay"); got != 30 {
				t.Errorf("sum %d after a restart", got)
			}
		})
	}
}

func admitting(t *testing.T, s ringi.Store) ringi.AdmittingStore {
	t.Helper()
	a, ok := s.(ringi.AdmittingStore)
	if !ok {
		t.Skip("the store keeps no ledger")
	}
	return a
}

// sum reads a sum by a commit that is not let in.
func (g *stage) sum(name string) int64 {
	g.t.Helper()
	var got int64
	err := admitting(g.t, g.Store).CommitAdmitted(ctx, first("run_look", "thr_look"), func(ctx context.Context, l ringi.Ledger) (err error) {
		if got, err = l.Sum(ctx, name); err != nil {
			return err
		}
		return errFull
	})
	if !errors.Is(err, errFull) {
		g.t.Fatal(err)
	}
	return got
}

// ledgerItself: sums are the space's own, bounded, and over with their commit.
func ledgerItself(t *testing.T, g *stage) {
	s := admitting(t, g.Store)
	var kept ringi.Ledger
	run := 0
	within := func(sp string, f func(context.Context, ringi.Ledger) error) error {
		run++
		c := first(fmt.Sprintf("run_%d", run), fmt.Sprintf("thr_%d", run))
		c.Space = sp
		return s.CommitAdmitted(ctx, c, f)
	}
	must := func(sp string, f func(context.Context, ringi.Ledger)) {
		t.Helper()
		if err := within(sp, func(ctx context.Context, l ringi.Ledger) error { f(ctx, l); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	must(space, func(ctx context.Context, l ringi.Ledger) {
		kept = l
		for _, n := range []int64{math.MaxInt64, -7} {
			if err := l.Add(ctx, "pay", n); err != nil {
				t.Error(err)
			}
		}
		if err := l.Add(ctx, "pay", 8); !errors.Is(err, ringi.ErrTooLarge) {
			t.Errorf("a sum above all numbers: %v", err)
		}
		for _, name := range []string{"", strings.Repeat("x", 201), "\xff"} {
			if err := l.Add(ctx, name, 1); !errors.Is(err, ringi.ErrTooLarge) {
				t.Errorf("name %q: %v", name, err)
			}
		}
	})
	must("another", func(ctx context.Context, l ringi.Ledger) {
		if n, err := l.Sum(ctx, "pay"); n != 0 || err != nil {
			t.Errorf("another space has %d, %v", n, err)
		}
	})
	if got := g.sum("pay"); got != math.MaxInt64-7 {
		t.Errorf("sum %d", got)
	}
	if err := kept.Add(ctx, "pay", -1); err == nil {
		t.Error("a ledger is used behind its commit")
	}
	if err := within(space, func(context.Context, ringi.Ledger) error { panic("no") }); err == nil {
		t.Error("a panic lets in")
	}
}

// admitAtOnce: many commits at once, in two stores, and no more than fit.
func admitAtOnce(t *testing.T, g *stage, one, two ringi.Store) {
	admitting(t, one)
	const runs, amount, limit = 40, 30, 400 // 13 fit
	var mu sync.Mutex
	in := 0
	var all sync.WaitGroup
	for i := range runs {
		s := admitting(t, []ringi.Store{one, two}[i%2])
		all.Go(func() {
			var err error
			for begun := time.Now(); time.Since(begun) < 10*time.Second; {
				err = s.CommitAdmitted(ctx, first(fmt.Sprintf("run_%d", i), fmt.Sprintf("thr_%d", i)), room("pay", amount, limit))
				if !errors.Is(err, ringi.ErrNotRecorded) {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				in++
			case !errors.Is(err, errFull):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if in != limit/amount || g.sum("pay") != int64(in*amount) {
		t.Errorf("%d are in, the sum is %d", in, g.sum("pay"))
	}
}
