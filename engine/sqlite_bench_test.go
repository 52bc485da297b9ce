package engine_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// The durable cycle on SQLite: start, suspend, approve, execute, finish. The
// raw rate of one-row commits stands beside it, taken in the same run.

func BenchmarkSQLiteCycle1(b *testing.B)  { sqliteCycles(b, 1) }
func BenchmarkSQLiteCycle64(b *testing.B) { sqliteCycles(b, 64) }

func sqliteCycles(b *testing.B, workers int) {
	store, err := sqlite.Open(filepath.Join(b.TempDir(), "ringi.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	counted := &counting{Store: store}
	e := benchEngine(b, engine.Config{Model: steps("refund", 1, 1), Store: counted, Keyring: keyring(b)})
	raw := rawCommits(b, store)
	counted.n.Store(0)
	b.ReportAllocs()
	b.ResetTimer()
	began := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if err := cycle(e); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	spent := time.Since(began).Seconds()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/spent, "cycles/s")
	b.ReportMetric(float64(counted.n.Load())/float64(b.N), "commits/cycle")
	b.ReportMetric(raw, "raw-commits/s")
	b.ReportMetric(float64(b.N)/spent/(raw/6), "x-raw/6")
}

// counting counts the commits that an engine makes.
type counting struct {
	ringi.Store
	n atomic.Int64
}

func (c *counting) Commit(ctx context.Context, ch *ringi.Commit) error {
	c.n.Add(1)
	return c.Store.Commit(ctx, ch)
}

func cycle(e *engine.Engine) error {
	ctx := context.Background()
	res, err := e.Run(ctx, ask)
	if err != nil {
		return err
	}
	if _, err := e.Decide(ctx, res.Pending[0].Approve(ringi.Principal{ID: "ana", Kind: ringi.Person, Auth: "test"})); err != nil {
		return err
	}
	res, err = e.Resume(ctx, res.RunID)
	if err != nil {
		return err
	}
	return res.Err()
}

// rawCommits is the rate of one-row commits, one after the other: what the
// disk gives.
func rawCommits(b *testing.B, store *sqlite.Store) float64 {
	began := time.Now()
	n := 0
	for ; time.Since(began) < 500*time.Millisecond; n++ {
		if err := store.SetFlag(context.Background(), "bench", time.Now().String()); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(began).Seconds()
}

// TestDurableCycleTakesSixCommits counts what a cycle costs a store.
func TestDurableCycleTakesSixCommits(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	counted := &counting{Store: w.store}
	w.cfg.Store = counted
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.decide(e, res.Pending[0].Approve(ana))
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
	if n := counted.n.Load(); n != 6 {
		t.Errorf("%d commits, want 6", n)
	}
}

// TestStoredBytesOfAnApproval holds what a cycle stores beyond its messages to
// 3 KB of headers and payloads, whatever their number. Hash and salt, 64 bytes
// a record, stand beside that.
func TestStoredBytesOfAnApproval(t *testing.T) {
	for _, n := range []int{1, 50} {
		w := newWorld(t)
		w.cfg.Keyring = keyring(t)
		w.says(calls("pay", `{"id":"A-1017","n":3}`))
		start := ringi.RunStart{}
		for range n {
			start.Messages = append(start.Messages, ringi.User("Refund order A-1017, please."))
		}
		e := w.engine()
		res := w.run(e, start)
		w.decide(e, res.Pending[0].Approve(ana))
		w.resume(e, res.RunID)
		run, err := w.store.Load(t.Context(), "default", res.RunID)
		if err != nil {
			t.Fatal(err)
		}
		bytes := 0
		for _, r := range run.Records {
			bytes += len(r.Head) + len(r.Payload)
		}
		row, err := w.store.Request(t.Context(), "default", res.Pending[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d bytes to be found by stand in the inbox's row", len(row.Text))
		if beyond := bytes - messageBytes(t, run); beyond > 3<<10 {
			t.Errorf("%d messages: %d bytes stored beyond them", n, beyond)
		} else {
			t.Logf("%d messages: %d bytes stored beyond them", n, beyond)
		}
	}
}

func messageBytes(t *testing.T, run *ringi.StoredRun) int {
	t.Helper()
	var events []ringi.Event
	for _, r := range run.Records {
		ev, err := audit.Decode(r)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, ev)
	}
	return audit.MessageBytes(events)
}
