package storetest

import (
	"slices"
	"sync"
	"time"
)

// Clock is a wall clock that a test moves by hand. It is safe for goroutines.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at 2 March 2031, 09:00 UTC.
func NewClock() *Clock {
	return &Clock{now: time.Date(2031, 3, 2, 9, 0, 0, 0, time.UTC)}
}

// Now returns the time at which the clock stands.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set puts the clock to t, forwards or back.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Add moves the clock by d; a negative d moves it back.
func (c *Clock) Add(d time.Duration) { c.Set(c.Now().Add(d)) }

// woken notes the runs that a store woke.
type woken struct {
	mu   sync.Mutex
	runs []string
}

func (w *woken) add(space, runID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = append(w.runs, space+"/"+runID)
}

func (w *woken) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.runs)
}
