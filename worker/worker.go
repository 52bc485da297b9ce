// Package worker goes on with runs that wait for an owner: it looks for them,
// asks an engine to resume them, several at once, and has requests expire that
// are past their time.
//
// A worker is woken by its own process where something becomes runnable (see
// Wake), and by a store that tells what other processes commit
// (ringi.ChangeTeller); it looks at the store from time to time for all else:
// runs of a process that died, requests past their time. A wake-up may be lost, repeated or late, and nothing breaks but the
// delay: what may run is the store's to say, and who runs it the lease's.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
)

// Engine is what a worker drives: an engine, or a route to several.
type Engine interface {
	// Resume goes on with a run until it ends, waits, or cannot go on here. A
	// cancelled ctx starts nothing more; a call in flight is finished and
	// recorded.
	Resume(ctx context.Context, runID string) (*ringi.Result, error)
	// Expire records that requests are past their time, of limit runs at most.
	Expire(ctx context.Context, limit int) (int, error)
}

// Options say how a worker works. The zero value is ready to use.
type Options struct {
	// AtOnce is how many runs are resumed at once: 0 means 16.
	AtOnce int
	// Poll is how often the store is looked at while there is work: 0 means
	// 250 ms. Where nothing is found the pause doubles, up to Idle: 0 means
	// 1 s, and Poll where that is longer.
	Poll, Idle time.Duration
	// Rest is how long a run is left alone after a try that moved nothing: 0
	// means 250 ms. It doubles with every such try, up to MaxRest: 0 means
	// 1 minute. A run that somebody moves is tried at once.
	Rest, MaxRest time.Duration
	// Expire is how often requests past their time are recorded as expired: 0
	// means 30 s, a negative one never. Nothing depends on it: whoever reads,
	// decides or spends compares the time itself.
	Expire time.Duration
	// Grace is how long calls in flight may take once the worker is to stop: 0
	// means 30 s.
	Grace time.Duration
	// Space is the space that the engine works in: empty means "default".
	Space string
	// Logger takes what an operator should know; nil discards it.
	Logger *slog.Logger
}

// Worker resumes runs. Make one with [New]; it is safe for concurrent use.
type Worker struct {
	o    Options
	bell chan struct{} // one token: somebody was woken

	mu    sync.Mutex
	woken map[string]bool // by run id
	// state is what Check tells.
	working bool
	looked  time.Time // when the loop last went round
	failed  error     // of the last look at the store
}

// maxWoken bounds the runs that are known by name alone. What does not fit is
// found by looking at the store.
const maxWoken = 10_000

// New makes a worker. It does nothing before Run, but remembers whom it is to
// wake: so a store can be given Wake before there is an engine over it.
func New(o Options) *Worker {
	or(&o.AtOnce, 16)
	or(&o.Poll, 250*time.Millisecond)
	or(&o.Idle, time.Second)
	o.Idle = max(o.Idle, o.Poll)
	or(&o.Rest, 250*time.Millisecond)
	or(&o.MaxRest, time.Minute)
	if o.Expire == 0 {
		o.Expire = 30 * time.Second
	}
	or(&o.Grace, 30*time.Second)
	if o.Space == "" {
		o.Space = "default"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Worker{o: o, bell: make(chan struct{}, 1), woken: map[string]bool{}}
}

func or[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Wake says that a run may have become runnable. It has the form of the stores'
// options (memory.Options.Wake, sqlite.Options.Woken), keeps nobody waiting and
// may be called at any time, also for a run that needs nothing.
func (w *Worker) Wake(space, runID string) {
	if space != w.o.Space {
		return
	}
	w.mu.Lock()
	if len(w.woken) < maxWoken {
		w.woken[runID] = true
	}
	w.mu.Unlock()
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// takeWoken returns whom Wake named since the last time, and whether there
// were more than it keeps.
func (w *Worker) takeWoken() (ids map[string]bool, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids, w.woken = w.woken, make(map[string]bool)
	return ids, len(ids) == maxWoken
}

// ErrStopped is why [Worker.Check] fails where the worker does not work.
var ErrStopped = errors.New("worker does not run")

// Check reports whether the worker works: nil, or what is wrong. ErrStopped
// before and after Run.
func (w *Worker) Check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch since := time.Since(w.looked); {
	case !w.working:
		return ErrStopped
	case w.failed != nil:
		return fmt.Errorf("look for runs: %w", w.failed)
	case since > 10*w.o.Idle+lookLimit:
		return fmt.Errorf("worker stands still for %s", since.Round(time.Second))
	}
	return nil
}

func (w *Worker) note(working bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.working, w.looked = working, time.Now()
}

func (w *Worker) noteLook(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = err
}

// Run works until ctx is done. Then no run is taken any more, the runs that it
// drives start nothing more, and what they have in flight is finished and
// recorded: Run returns when that is done, or after Options.Grace with an error
// that names what did not end. Such a run is taken up by whoever comes next,
// once its lease has ended. A worker runs once at a time.
func (w *Worker) Run(ctx context.Context, store ringi.Store, e Engine) error {
	w.mu.Lock()
	busy := w.working
	w.working = true
	w.mu.Unlock()
	if busy {
		return errors.New("run worker: it runs already")
	}
	w.note(true)
	defer w.note(false)
	return newShift(w, store, e).work(ctx)
}
