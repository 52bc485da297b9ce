package bench

import (
	"context"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func TestProbe(t *testing.T) {
	for range 2 {
		for _, mk := range []maker{ringiSide, fantasySide} {
			s := mk(t, toolCall, nil)
			ctx := context.Background()
			for range 100 {
				s.run(ctx)
			}
			for range 3 {
				runtime.GC()
				var m0, m1, m2 runtime.MemStats
				runtime.ReadMemStats(&m0)
				var u0, u1 syscall.Rusage
				syscall.Getrusage(0, &u0)
				b := time.Now()
				const n = 2000
				for range n {
					s.run(ctx)
				}
				d := time.Since(b)
				syscall.Getrusage(0, &u1)
				runtime.ReadMemStats(&m1)
				runtime.GC()
				runtime.ReadMemStats(&m2)
				t.Logf("%s wall %v cpu u %v s %v minflt/run %.2f gcs %d alloc/run %d retained/run %d sys %d", s.name, d/n,
					time.Duration(u1.Utime.Nano()-u0.Utime.Nano())/n, time.Duration(u1.Stime.Nano()-u0.Stime.Nano())/n,
					float64(u1.Minflt-u0.Minflt)/n, m1.NumGC-m0.NumGC, (m1.TotalAlloc-m0.TotalAlloc)/n, int64(m2.HeapAlloc-m0.HeapAlloc)/n, m1.HeapSys>>20)
			}
		}
	}
}
