package ringitest

import (
	"context"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
)

// handle is a process's hold on a store. Once the process is dead every method
// returns ErrCrashed; one that was under way has ended before die returns.
type handle struct {
	store ringi.Store
	crash *Crash // nil: no crash points

	using sync.RWMutex
	dead  bool
	mu    sync.Mutex
	beats map[string]bool
}

var _ ringi.Store = (*handle)(nil)

func (h *handle) die() {
	h.using.Lock()
	defer h.using.Unlock()
	h.dead = true
}

func (h *handle) isDead() bool {
	h.using.RLock()
	defer h.using.RUnlock()
	return h.dead
}

// owners are those that beat through this handle.
func (h *handle) owners() map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.beats
}

// use calls the store while the process lives.
func use[T any](h *handle, f func() (T, error)) (T, error) {
	h.using.RLock()
	defer h.using.RUnlock()
	if h.dead {
		var none T
		return none, ErrCrashed
	}
	return f()
}

// do is use without a value.
func (h *handle) do(f func() error) error {
	_, err := use(h, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// Commit passes a change on, between its two crash points.
func (h *handle) Commit(ctx context.Context, c *ringi.Commit) error {
	n := h.crash.beforeCommit(h)
	err := h.do(func() error { return h.store.Commit(ctx, c) })
	if h.crash.afterCommit(h, n) {
		return ErrCrashed
	}
	return err
}

func (h *handle) Beat(ctx context.Context, owner string, lease time.Duration) error {
	return h.do(func() error {
		h.mu.Lock()
		if h.beats == nil {
			h.beats = map[string]bool{}
		}
		h.beats[owner] = true
		h.mu.Unlock()
		return h.store.Beat(ctx, owner, lease)
	})
}

// Close ends the use of this handle alone: the store outlives its processes.
func (h *handle) Close() error {
	h.die()
	return nil
}

func (h *handle) ID(ctx context.Context) (string, error) {
	return use(h, func() (string, error) { return h.store.ID(ctx) })
}

func (h *handle) Now(ctx context.Context) (time.Time, error) {
	return use(h, func() (time.Time, error) { return h.store.Now(ctx) })
}

func (h *handle) Clock(ctx context.Context) (ringi.StoreClock, error) {
	return use(h, func() (ringi.StoreClock, error) { return h.store.Clock(ctx) })
}

func (h *handle) AcceptClock(ctx context.Context, by, reason string) (ringi.ClockCorrection, error) {
	return use(h, func() (ringi.ClockCorrection, error) { return h.store.AcceptClock(ctx, by, reason) })
}

func (h *handle) Load(ctx context.Context, space, runID string) (*ringi.StoredRun, error) {
	return use(h, func() (*ringi.StoredRun, error) { return h.store.Load(ctx, space, runID) })
}

func (h *handle) Row(ctx context.Context, space, runID string) (ringi.RunRow, error) {
	return use(h, func() (ringi.RunRow, error) { return h.store.Row(ctx, space, runID) })
}

func (h *handle) Transcript(ctx context.Context, space, thread string) ([]*ringi.StoredRun, error) {
	return use(h, func() ([]*ringi.StoredRun, error) { return h.store.Transcript(ctx, space, thread) })
}

func (h *handle) Runs(ctx context.Context, q ringi.RunQuery) ([]ringi.RunRow, error) {
	return use(h, func() ([]ringi.RunRow, error) { return h.store.Runs(ctx, q) })
}

func (h *handle) Runnable(ctx context.Context, limit int) ([]ringi.RunRow, error) {
	return use(h, func() ([]ringi.RunRow, error) { return h.store.Runnable(ctx, limit) })
}

func (h *handle) Spaces(ctx context.Context) ([]string, error) {
	return use(h, func() ([]string, error) { return h.store.Spaces(ctx) })
}

func (h *handle) Request(ctx context.Context, space, id string) (ringi.RequestRow, error) {
	return use(h, func() (ringi.RequestRow, error) { return h.store.Request(ctx, space, id) })
}

func (h *handle) Requests(ctx context.Context, q ringi.RequestQuery) ([]ringi.RequestRow, error) {
	return use(h, func() ([]ringi.RequestRow, error) { return h.store.Requests(ctx, q) })
}

func (h *handle) RequestTally(ctx context.Context, q ringi.RequestQuery, from, to time.Time) (ringi.RequestTally, error) {
	return use(h, func() (ringi.RequestTally, error) { return h.store.RequestTally(ctx, q, from, to) })
}

func (h *handle) RequestCount(ctx context.Context, q ringi.RequestQuery, limit int) (int, error) {
	return use(h, func() (int, error) { return h.store.RequestCount(ctx, q, limit) })
}

func (h *handle) SaveTool(ctx context.Context, digest string, definition []byte) error {
	return h.do(func() error { return h.store.SaveTool(ctx, digest, definition) })
}

func (h *handle) Tool(ctx context.Context, digest string) ([]byte, error) {
	return use(h, func() ([]byte, error) { return h.store.Tool(ctx, digest) })
}

func (h *handle) Attempt(ctx context.Context, a ringi.Attempt) error {
	return h.do(func() error { return h.store.Attempt(ctx, a) })
}

func (h *handle) Attempts(ctx context.Context, space, runID string) ([]ringi.Attempt, error) {
	return use(h, func() ([]ringi.Attempt, error) { return h.store.Attempts(ctx, space, runID) })
}

func (h *handle) Keys(ctx context.Context) (map[string]string, error) {
	return use(h, func() (map[string]string, error) { return h.store.Keys(ctx) })
}

func (h *handle) RememberKey(ctx context.Context, id, check string) error {
	return h.do(func() error { return h.store.RememberKey(ctx, id, check) })
}

func (h *handle) ForgetKey(ctx context.Context, id string) error {
	return h.do(func() error { return h.store.ForgetKey(ctx, id) })
}

func (h *handle) Flag(ctx context.Context, name string) (string, error) {
	return use(h, func() (string, error) { return h.store.Flag(ctx, name) })
}

func (h *handle) SetFlag(ctx context.Context, name, value string) error {
	return h.do(func() error { return h.store.SetFlag(ctx, name, value) })
}
