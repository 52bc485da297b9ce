package worker_test

import (
	"slices"
	"testing"
	"time"
)

// report gives the median and the 99th percentile in microseconds. A negative
// one is what happened before the benchmark's own goroutine went on.
func report(b *testing.B, d []time.Duration, what string) {
	slices.Sort(d)
	b.ReportMetric(float64(d[len(d)/2].Microseconds()), what+"-p50-µs")
	b.ReportMetric(float64(d[len(d)*99/100].Microseconds()), what+"-p99-µs")
}
