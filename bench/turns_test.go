package bench

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"
)

// compare lets both sides run in turns, in one process: a turn of one, a turn
// of the other, and the next time the other first. What slows the machine
// slows both, so the ratios count, not the times.
//
// The benchmark's own clock runs over both sides and decides only how many
// turns there are. Every number in the report is of its side alone.
func compare(b *testing.B, r row) {
	b.Run("ringi", func(b *testing.B) { measure(b, r).report(b, 0) })
	b.Run("fantasy", func(b *testing.B) { measure(b, r).report(b, 1) })
}

// turns is what was measured, by side: Ringi first, then fantasy.
type turns struct {
	loop   [2][]float64 // ns a run, turn by turn
	model  [2][]float64 // ns that the model alone takes of that
	cpu    [2]float64   // ns of processor a run, over all turns
	bytes  [2]float64
	allocs [2]float64
}

// renew is how many turns of each side share an engine and an agent. A store
// that only grows would measure the collector, on both sides.
const renew = 100

// measure runs b.N runs of each side.
func measure(b *testing.B, r row) *turns {
	b.ReportAllocs()
	ctx := context.Background()
	var t turns
	var sides [2]side
	for left, n := b.N, 0; left > 0; n++ {
		if n%renew == 0 {
			b.StopTimer()
			sides = [2]side{fresh(b, r, ringiSide), fresh(b, r, fantasySide)}
			b.StartTimer()
		}
		runs := min(left, r.turn)
		left -= runs
		for k := range sides {
			k ^= n & 1
			t.model[k] = append(t.model[k], timed(b, runs, ctx, sides[k].model))
			cpu := cpuTime()
			t.loop[k] = append(t.loop[k], timed(b, runs, ctx, sides[k].run))
			t.cpu[k] += float64(cpuTime()-cpu) / float64(b.N)
		}
	}
	b.StopTimer()
	for k, setUp := range []maker{ringiSide, fantasySide} {
		t.allocs[k], t.bytes[k] = allocated(b, fresh(b, r, setUp))
	}
	return &t
}

// fresh makes a side and lets it run a little: what it does once is done.
func fresh(b *testing.B, r row, setUp maker) side {
	s := setUp(b, r, nil)
	timed(b, 3, context.Background(), s.run)
	return s
}

func timed(b *testing.B, runs int, ctx context.Context, run func(context.Context) error) float64 {
	begun := time.Now()
	for range runs {
		if err := run(ctx); err != nil {
			b.Fatal(err)
		}
	}
	return float64(time.Since(begun)) / float64(runs)
}

// allocated counts the allocations and the bytes of a run.
func allocated(b *testing.B, s side) (allocs, bytes float64) {
	const runs = 50
	ctx := context.Background()
	once := func() {
		if err := s.run(ctx); err != nil {
			b.Fatal(err)
		}
	}
	allocs = testing.AllocsPerRun(runs, once)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		once()
	}
	runtime.ReadMemStats(&after)
	return allocs, float64(after.TotalAlloc-before.TotalAlloc) / runs
}

// report tells of side k, and how Ringi stands to fantasy: below 1 is faster.
// The ratios leave the models' own cost out. ratio-of-min is of the fastest
// turns, which hold no collection; median-ratio is of the middle pair of turns;
// ratio-of-cpu is of all turns together, the collector's share in it.
func (t *turns) report(b *testing.B, k int) {
	b.ReportMetric(mean(t.loop[k]), "ns/op")
	b.ReportMetric(t.bytes[k], "B/op")
	b.ReportMetric(t.allocs[k], "allocs/op")
	b.ReportMetric(slices.Min(t.loop[k]), "min-ns")
	b.ReportMetric(median(t.loop[k]), "median-ns")
	b.ReportMetric(slices.Min(t.model[k]), "model-ns")

	net := func(k int) float64 { return slices.Min(t.loop[k]) - slices.Min(t.model[k]) }
	b.ReportMetric(net(0)/net(1), "ratio-of-min")
	pairs := make([]float64, len(t.loop[0]))
	for i := range pairs {
		pairs[i] = (t.loop[0][i] - t.model[0][i]) / (t.loop[1][i] - t.model[1][i])
	}
	b.ReportMetric(median(pairs), "median-ratio")
	if t.cpu[0] > 0 && t.cpu[1] > 0 {
		b.ReportMetric(t.cpu[k], "cpu-ns")
		b.ReportMetric((t.cpu[0]-slices.Min(t.model[0]))/(t.cpu[1]-slices.Min(t.model[1])), "ratio-of-cpu")
	}
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
