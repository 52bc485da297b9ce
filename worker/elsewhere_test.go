package worker_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/worker"
)

// silent is a store that does not tell of changes.
type silent struct{ ringi.Store }

// elsewhere measures how long it takes from a decision of another process,
// which has no tools, until the worker's process has paid.
func elsewhere(t testing.TB, n int, hide bool) []time.Duration {
	path := filepath.Join(t.TempDir(), "ringi.db")
	w := worker.New(worker.Options{})
	opened := openSQLite(t, path, w.Wake)
	var store ringi.Store = opened
	if hide {
		store = silent{opened}
	}
	p := &till{}
	e := newEngine(t, engine.Config{Store: store, Registry: p.registry(t)})
	runs(t, w, store, e)
	other := newEngine(t, engine.Config{Store: openSQLite(t, path, nil)})
	var took []time.Duration
	for range n {
		r := suspended(t, e)
		time.Sleep(50 * time.Millisecond) // between two looks
		if _, err := other.Decide(t.Context(), r.Approve(ana)); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for p.count(r.RunID) == 0 {
			if time.Since(begun) > 90*time.Second {
				t.Fatal("a decision of another process is not seen")
			}
			time.Sleep(100 * time.Microsecond)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took
}

// A worker over a store that tells of changes sees what another process decided
// without a poll of its own.
func TestDecidedElsewhere(t *testing.T) {
	took := elsewhere(t, 20, false)
	t.Logf("p50 %s, p90 %s, most %s", took[10], took[18], took[19])
	if took[10] > 200*time.Millisecond { // its polls are 250 ms to 1 s apart
		t.Errorf("it takes %s in the middle", took[10])
	}
}

func BenchmarkDecidedElsewhere(b *testing.B) {
	for _, hide := range []bool{true, false} {
		b.Run(map[bool]string{true: "polled", false: "told"}[hide], func(b *testing.B) {
			took := elsewhere(b, 40, hide)
			b.ReportMetric(float64(took[20].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[39].Microseconds())/1000, "max-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
