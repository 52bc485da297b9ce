package sqlite

import (
	"sync/atomic"
	"time"
)

// clockSlack is how far the newest recorded time may be ahead of the wall
// clock before nothing is decided, spent or claimed.
const clockSlack = 2 * time.Minute

// clock tells the store's time in microseconds: the later of the wall clock
// and the newest time recorded, so that what has expired stays expired when
// the machine's clock is set back.
type clock struct {
	wall   func() time.Time
	newest atomic.Int64
}

func (c *clock) now() int64 { return max(c.wall().UnixMicro(), c.newest.Load()) }

// horizon returns the time beyond which a recorded time proves that the wall
// clock is wrong.
func (c *clock) horizon() int64 { return c.wall().Add(clockSlack).UnixMicro() }

// advance notes a time that has been recorded.
func (c *clock) advance(t int64) {
	for old := c.newest.Load(); t > old; old = c.newest.Load() {
		if c.newest.CompareAndSwap(old, t) {
			return
		}
	}
}

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// orNull returns the column of a time that may be none.
func orNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}
