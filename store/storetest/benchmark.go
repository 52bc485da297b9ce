package storetest

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ringi-dev/ringi"
)

// Benchmark measures the raw rate of commits and loads. open opens a new store
// under the wall clock; Benchmark closes it.
func Benchmark(b *testing.B, open func(b *testing.B, o Options) ringi.Store) {
	fresh := func(b *testing.B) ringi.Store {
		s := open(b, Options{Now: NewClock().Now, Path: filepath.Join(b.TempDir(), "ringi.db")})
		b.Cleanup(func() { s.Close() })
		if err := s.Beat(ctx, "own_1", lease); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.ResetTimer()
		return s
	}
	b.Run("CommitFirst", func(b *testing.B) { benchFirst(b, fresh(b)) })
	b.Run("CommitOne", func(b *testing.B) { benchNext(b, fresh(b), 1) })
	b.Run("CommitTwo", func(b *testing.B) { benchNext(b, fresh(b), 2) })
	b.Run("CommitDecision", func(b *testing.B) { benchDecision(b, fresh(b)) })
	b.Run("Load6", func(b *testing.B) { benchLoad(b, fresh(b)) })
	b.Run("Row", func(b *testing.B) {
		s := fresh(b)
		benchCommit(b, s, started("run_1", "thr_1", "own_1"))
		b.ResetTimer()
		for range b.N {
			if _, err := s.Row(ctx, space, "run_1"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchCommit(b *testing.B, s ringi.Store, c *ringi.Commit) {
	if err := s.Commit(ctx, c); err != nil {
		b.Fatal(err)
	}
}

// benchFirst makes runs on threads of their own.
func benchFirst(b *testing.B, s ringi.Store) {
	names := make([]string, b.N)
	for i := range names {
		names[i] = fmt.Sprintf("run_%026d", i)
	}
	c := started("", "", "own_1")
	c.Release, c.Row.Status = true, ringi.Completed
	b.ResetTimer()
	for _, n := range names {
		c.RunID, c.Row.Thread = n, n
		benchCommit(b, s, c)
	}
}

// benchNext writes n records a commit, into a new run after 50 commits.
func benchNext(b *testing.B, s ringi.Store, n int) {
	kinds := []ringi.EventKind{ringi.EventToolFinished, ringi.EventModelResponded}[:n]
	c := next(ringi.RunRow{Space: space, Owner: "own_1", Epoch: 1, Status: ringi.Running}, kinds...)
	b.ResetTimer()
	for i := range b.N {
		if i%50 == 0 {
			b.StopTimer()
			c.RunID, c.Expect = fmt.Sprintf("run_%026d", i), 1
			benchCommit(b, s, started(c.RunID, "thread of "+c.RunID, "own_1"))
			b.StartTimer()
		}
		for j := range c.Records {
			c.Records[j].Seq = c.Expect + int64(j) + 1
		}
		benchCommit(b, s, c)
		c.Expect += int64(n)
	}
}

// benchDecision approves requests of one run.
func benchDecision(b *testing.B, s ringi.Store) {
	at := NewClock().Now()
	row := ringi.RunRow{Space: space, ID: "run_1", Thread: "thr_1"}
	names := make([]string, b.N)
	c := started("run_1", "thr_1", "own_1")
	for i := range names {
		names[i] = fmt.Sprintf("req_%026d", i)
		c.Requests = append(c.Requests, asked(row, names[i], at))
	}
	benchCommit(b, s, c)
	row.Status = ringi.WaitingForApproval
	d := settle(row, ringi.EventApprovalDecided)
	d.Changes = make([]ringi.RequestChange, 1)
	b.ResetTimer()
	for i, n := range names {
		d.Expect, d.Records[0].Seq = int64(i)+1, int64(i)+2
		d.Changes[0] = approve(n, at)
		benchCommit(b, s, d)
	}
}

func benchLoad(b *testing.B, s ringi.Store) {
	c := started("run_1", "thr_1", "own_1")
	c.Records = records(0, everyKind[:6]...)
	benchCommit(b, s, c)
	b.ResetTimer()
	for range b.N {
		run, err := s.Load(ctx, space, "run_1")
		if err != nil || len(run.Records) != 6 {
			b.Fatal(len(run.Records), err)
		}
	}
}
