package ringitest

import (
	"fmt"
	"sync"
	"time"
)

// Clock is a clock that stands still until it is moved. The zero value stands
// at Monday 2026-01-05 09:00:00 UTC. It is safe for concurrent use. Give its
// method to what takes a clock: engine.Config{Now: clock.Now}.
type Clock struct {
	mu    sync.Mutex
	moved time.Duration
}

// Now returns where the clock stands.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC).Add(c.moved)
}

// Advance moves the clock on; a negative duration moves it back.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved += d
}

// IDs makes ids that are the same in every run of a test: run_0001, run_0002,
// thr_0001, counted by prefix. The zero value is ready, and safe for
// concurrent use. One value serves one store.
type IDs struct {
	mu   sync.Mutex
	made map[string]int
}

// New makes the next id of a prefix; it is what engine.Config.NewID takes.
func (i *IDs) New(prefix string, _ time.Time) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.made == nil {
		i.made = map[string]int{}
	}
	i.made[prefix]++
	return fmt.Sprintf("%s%04d", prefix, i.made[prefix])
}
