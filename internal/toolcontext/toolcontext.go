// Package toolcontext is the context that a tool's handler runs under: values
// and a deadline in one allocation, and a timer only where somebody waits for
// it.
package toolcontext

import (
	"context"
	"sync"
	"time"
)

// Key is the key under which the tool's own context is found.
type Key struct{}

// CheckedKey is the key under which the context itself is found, by the typed
// handler that takes Checked out of it.
type CheckedKey struct{}

// RunKey is the key under which the engine finds the run around a handler.
type RunKey struct{}

// Teller makes what is found under Key: most handlers never ask.
type Teller interface{ Tell() any }

// Context carries what the engine tells a handler. Base is the caller's
// context without its cancellation; Deadline is zero for none.
type Context struct {
	Base  context.Context
	Until time.Time
	Tool  Teller // answers Key
	Run   any    // answers RunKey

	// Checked is the input as the input check decoded it, and CheckedInput its
	// bytes: the handler is given it once, so that nothing is decoded twice.
	Checked      any
	CheckedInput string

	mu     sync.Mutex
	inner  context.Context // made when somebody waits
	cancel context.CancelFunc
}

var _ context.Context = (*Context)(nil)

// Deadline returns when the handler's time is over.
func (c *Context) Deadline() (time.Time, bool) {
	if c.Until.IsZero() {
		return c.Base.Deadline()
	}
	return c.Until, true
}

// Done makes the timer: most handlers never ask.
func (c *Context) Done() <-chan struct{} { return c.wake().Done() }

// Err reports whether the handler's time is over.
func (c *Context) Err() error {
	c.mu.Lock()
	inner := c.inner
	c.mu.Unlock()
	if inner != nil {
		return inner.Err()
	}
	if !c.Until.IsZero() && !time.Now().Before(c.Until) {
		return context.DeadlineExceeded
	}
	return c.Base.Err()
}

// Value answers the two keys, and else what the base or the inner context
// answers: with an inner one, package context finds its own cancellation.
func (c *Context) Value(key any) any {
	switch key.(type) {
	case CheckedKey:
		return c
	case Key:
		if c.Tool != nil {
			return c.Tool.Tell()
		}
	case RunKey:
		if c.Run != nil {
			return c.Run
		}
	}
	c.mu.Lock()
	inner := c.inner
	c.mu.Unlock()
	if inner != nil && inner != ended {
		return inner.Value(key)
	}
	return c.Base.Value(key)
}

func (c *Context) wake() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		if c.Until.IsZero() {
			c.inner, c.cancel = context.WithCancel(c.Base)
		} else {
			c.inner, c.cancel = context.WithDeadline(c.Base, c.Until)
		}
	}
	return c.inner
}

// Cancel ends the context: the handler has returned, or was given up. Where
// nobody waits yet, a later Done is closed at once.
func (c *Context) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner = ended
		return
	}
	if c.cancel != nil {
		c.cancel()
	}
}

// ended is a context that is over.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Detach keeps a context's values and drops its cancellation and deadline, as
// context.WithoutCancel does; asking it for a value allocates nothing.
func Detach(ctx context.Context) context.Context { return &detached{ctx} }

type detached struct{ values context.Context }

func (*detached) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*detached) Done() <-chan struct{}       { return nil }
func (*detached) Err() error                  { return nil }
func (d *detached) Value(key any) any         { return d.values.Value(key) }
