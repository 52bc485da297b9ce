package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
)

// heart is an engine's one heartbeat row and the set of runs that it drives.
// It beats only while there are running runs, so an engine that has nothing to
// do, or has died, loses its leases by time.
type heart struct {
	e     *Engine
	owner string
	every time.Duration

	mu     sync.Mutex
	active map[string]*activation // by run id
	// calls are those that a gate runs here, beside each other.
	calls map[*activation]bool
	// undriven are runs that this engine may still own and nobody drives: an
	// activation ended in an error, and giving the run back failed too.
	undriven map[string]undriven // by run id
	timer    *time.Timer

	beating sync.Mutex
	last    time.Time // of the last beat, in the store's time
}

func newHeart(e *Engine) *heart {
	return &heart{
		e: e, owner: ringi.NewID("own_", time.Now()), every: e.cfg.Lease / 3,
		active: map[string]*activation{}, calls: map[*activation]bool{}, undriven: map[string]undriven{},
	}
}

// enter takes a run for one activation of this engine. ErrBusy where another
// drives it.
func (h *heart) enter(a *activation) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, busy := h.active[a.id]; busy {
		return fmt.Errorf("resume run %s: %w", a.id, ringi.ErrBusy)
	}
	h.active[a.id] = a
	delete(h.undriven, a.id)
	h.wind()
	return nil
}

// wind starts the timer with the first thing to look after. The lock is held.
func (h *heart) wind() {
	switch {
	case len(h.active)+len(h.calls) != 1:
	case h.timer == nil:
		h.timer = time.AfterFunc(h.every, h.tick)
	default:
		h.timer.Reset(h.every)
	}
}

// watch looks after a gate's call while it runs, to cut it where its run is
// cancelled with now.
func (h *heart) watch(a *activation) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[a] = true
	h.wind()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.calls, a)
		h.rest()
	}
}

// rest stops the timer with the last thing to look after. The lock is held.
func (h *heart) rest() {
	if len(h.active)+len(h.calls) == 0 {
		h.timer.Stop()
	}
}

// leave ends an activation.
func (h *heart) leave(a *activation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.active, a.id)
	h.rest()
}

// undriven is a lease that this engine may still hold, by its epoch: a later
// one is somebody's who drives the run.
type undriven struct {
	space string
	epoch int64
}

// orphan remembers a run that could not be given back.
func (h *heart) orphan(a *activation) {
	epoch := a.l.epoch
	if !a.l.held { // a claim whose commit reported a failure
		epoch = a.s.row.Epoch + 1
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.undriven[a.id] = undriven{a.space, epoch}
}

// beat renews the heartbeat where a third of the lease has passed in the
// store's time. Every commit of an owner asks for it, and waits for one that
// is on its way: a claim without a living heartbeat is refused.
func (h *heart) beat(ctx context.Context, at time.Time) error {
	h.beating.Lock()
	defer h.beating.Unlock()
	if since := at.Sub(h.last); !h.last.IsZero() && since >= 0 && since < h.every {
		return nil // less than nothing: the clock was corrected
	}
	if err := h.e.store.Beat(ctx, h.owner, h.e.cfg.Lease); err != nil {
		return fmt.Errorf("beat: %w", err)
	}
	h.last = at
	return nil
}

// tick beats while calls take long, gives back what nobody drives, and cuts
// calls whose run was cancelled with now by another process.
func (h *heart) tick() {
	ctx, cancel := context.WithTimeout(context.Background(), h.every)
	defer cancel()
	if err := h.e.store.Beat(ctx, h.owner, h.e.cfg.Lease); err != nil {
		h.e.log.Warn("beat", "error", err)
	}
	h.mu.Lock()
	lost := maps.Clone(h.undriven)
	running := make([]*activation, 0, len(h.active))
	for _, a := range h.active {
		running = append(running, a)
	}
	for a := range h.calls {
		running = append(running, a)
	}
	h.mu.Unlock()
	for id, u := range lost {
		if h.e.giveBackLost(ctx, id, u) {
			h.mu.Lock()
			if h.undriven[id] == u {
				delete(h.undriven, id)
			}
			h.mu.Unlock()
		}
	}
	for _, a := range running {
		a.lookForCancel(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.active)+len(h.calls) > 0 {
		h.timer.Reset(h.every)
	}
}

// find returns the activation that drives a run here, or nil.
func (h *heart) find(runID string) *activation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.active[runID]
}

// giveBackLost frees a run that this engine owns and nobody drives.
func (e *Engine) giveBackLost(ctx context.Context, runID string, u undriven) bool {
	row, err := e.store.Row(ctx, u.space, runID)
	if err != nil {
		return errors.Is(err, ringi.ErrNotFound)
	}
	if row.Owner != e.heart.owner || row.Epoch != u.epoch {
		return true
	}
	row.Status = ringi.Queued
	err = e.store.Commit(ctx, &ringi.Commit{
		Space: u.space, RunID: runID, Expect: row.Seq, Owner: row.Owner, Epoch: u.epoch,
		Release: true, Row: row, Wake: true,
	})
	return err == nil
}
