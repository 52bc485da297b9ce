package notify

import (
	"testing"

	"github.com/ringi-dev/ringi/engine"
)

// A look with nothing new, over a store where requests wait.
func BenchmarkIdleLook(b *testing.B) {
	h := newHouse(b, func(*engine.Config, *Options) {})
	for range 500 {
		h.asks("local:cho")
	}
	if err := h.d.look(b.Context()); err != nil {
		b.Fatal(err)
	}
	h.d.mark = h.d.mark.Add(2 * overlap) // as if they were older than a look goes back
	b.ResetTimer()
	for b.Loop() {
		if err := h.d.look(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// From a request to the letters of it, with ten approvers.
func BenchmarkTake(b *testing.B) {
	h := newHouse(b, func(*engine.Config, *Options) {})
	for _, name := range []string{"ana", "ben", "cho", "dan", "eve", "fay", "gus", "hal", "ida", "jon"} {
		h.add(name, Settings{})
	}
	for b.Loop() {
		b.StopTimer()
		id := h.asks("local:zoe").Pending[0].ID
		b.StartTimer()
		if err := h.d.take(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
}
