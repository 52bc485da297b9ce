package memory

import (
	"sync"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/store/storetest"
)

// TestStore runs the suite. Restart plays the other process, so that the parts
// for durable and shared stores run too.
func TestStore(t *testing.T) {
	var mu sync.Mutex
	byPath := map[string]*data{}
	open := func(t *testing.T, o storetest.Options) ringi.Store {
		s := New(Options{Now: o.Now, Wake: o.Wake, MaxAttempts: o.MaxAttempts, MaxRunAttempts: o.MaxRunAttempts})
		mu.Lock()
		defer mu.Unlock()
		if d := byPath[o.Path]; d != nil {
			s.d = d
		}
		byPath[o.Path] = s.d
		return s
	}
	storetest.Exercise(t, open, storetest.Features{Durable: true, Shared: true, Wake: true, Bounds: true})
}

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, func(b *testing.B, o storetest.Options) ringi.Store { return New(Options{Now: o.Now}) })
}
