package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
)

// shift is one Run of a worker. One goroutine has all its fields; the runs are
// driven by others, which report what came of it.
type shift struct {
	w      *Worker
	o      Options
	store  ringi.Store
	engine Engine
	told   teller

	queue  []taken             // found, waiting for a free hand
	queued map[string]bool     // in queue
	flying map[string]*flight  // being resumed
	rests  map[string]*resting // tried lately
	ended  chan outcome

	changes ringi.ChangeTeller // nil where the store tells of no changes
	next    time.Time          // of the next look at the store
	pause   time.Duration      // between two looks
	more    bool               // the last look did not show all
	beyond  string             // where the search behind the stuck runs goes on
	swept   time.Time          // when Expire was last called
	sweeps  bool               // Expire is at work
	sweeped chan struct{}
}

// taken is a run that is to be resumed, as it was seen.
type taken struct {
	id string
	// seq is the row's number, or unseen for a run known by its name alone.
	seq   int64
	woken bool
}

const unseen = -1

// flight is a run that is being resumed.
type flight struct {
	taken
	again bool // it was woken meanwhile
}

// outcome is what came of a flight.
type outcome struct {
	id  string
	res *ringi.Result
	err error
}

// lookLimit bounds one look at the store.
const lookLimit = 10 * time.Second

func newShift(w *Worker, store ringi.Store, e Engine) *shift {
	changes, _ := store.(ringi.ChangeTeller)
	return &shift{
		changes: changes,
		w:       w, o: w.o, store: store, engine: e, told: teller{log: w.o.Logger},
		queued: map[string]bool{}, flying: map[string]*flight{}, rests: map[string]*resting{},
		ended: make(chan outcome, w.o.AtOnce), pause: w.o.Poll, sweeped: make(chan struct{}, 1),
	}
}

// work is the worker's loop.
func (s *shift) work(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	elsewhere := s.elsewhere()
	for {
		s.fly(ctx)
		if s.more && len(s.queue) == 0 && len(s.flying) < s.o.AtOnce {
			s.more, s.next = false, time.Now()
		}
		timer.Reset(time.Until(s.next))
		select {
		case <-ctx.Done():
			return s.stop()
		case <-s.w.bell:
			s.wake(ctx)
			s.pause = s.o.Poll // there is work
			if soon := time.Now().Add(s.pause); soon.Before(s.next) {
				s.next = soon
			}
		case <-elsewhere: // another process may have decided
			elsewhere = s.elsewhere()
			s.next = time.Now()
		case o := <-s.ended:
			s.land(ctx, o)
		case <-s.sweeped:
			s.sweeps = false
		case <-timer.C:
			s.look(ctx)
			s.sweep(ctx)
			// Several workers do not look in step.
			s.next = time.Now().Add(s.pause*9/10 + rand.N(s.pause/5+1))
		}
		s.w.note(true)
	}
}

// elsewhere is closed once another process has committed; nil, which never is,
// where the store does not tell.
func (s *shift) elsewhere() <-chan struct{} {
	if s.changes == nil {
		return nil
	}
	return s.changes.ChangedElsewhere()
}

// fly starts what is queued, as far as hands are free.
func (s *shift) fly(ctx context.Context) {
	for len(s.queue) > 0 && len(s.flying) < s.o.AtOnce && ctx.Err() == nil {
		t := s.queue[0]
		s.queue = s.queue[1:]
		delete(s.queued, t.id)
		s.flying[t.id] = &flight{taken: t}
		go s.resume(ctx, t.id)
	}
	if len(s.queue) == 0 {
		s.queue = nil
	}
}

// resume drives one run. Whatever ends it is reported, and ends nobody else.
func (s *shift) resume(ctx context.Context, id string) {
	o := outcome{id: id, err: fmt.Errorf("resume run %s: its goroutine was ended", id)}
	defer func() {
		if p := recover(); p != nil {
			o.err = fmt.Errorf("resume run %s: panic: %v", id, p)
			s.o.Logger.Error("resuming a run panicked", "run", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
		s.ended <- o
	}()
	o.res, o.err = s.engine.Resume(ctx, id)
}

// enqueue puts a run in the queue, once.
func (s *shift) enqueue(t taken) {
	if s.flying[t.id] == nil && !s.queued[t.id] {
		s.queued[t.id] = true
		s.queue = append(s.queue, t)
	}
}

// sweep has requests expire, beside the loop.
func (s *shift) sweep(ctx context.Context) {
	if s.o.Expire < 0 || s.sweeps || time.Since(s.swept) < s.o.Expire {
		return
	}
	s.sweeps, s.swept = true, time.Now()
	go func() {
		defer func() {
			if p := recover(); p != nil {
				s.o.Logger.Error("expiring requests panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
			s.sweeped <- struct{}{}
		}()
		if _, err := s.engine.Expire(ctx, 100); err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("expire requests", "error", err)
		}
	}()
}

// stop waits for what is in flight, for as long as the grace lasts.
func (s *shift) stop() error {
	if n := len(s.flying); n > 0 {
		s.o.Logger.Info("worker stops: waiting for calls in flight", "runs", n)
	}
	limit := time.NewTimer(s.o.Grace)
	defer limit.Stop()
	for len(s.flying) > 0 || s.sweeps {
		select {
		case o := <-s.ended:
			delete(s.flying, o.id)
		case <-s.sweeped:
			s.sweeps = false
		case <-limit.C:
			return s.unfinished()
		}
	}
	return nil
}

func (s *shift) unfinished() error {
	ids := make([]string, 0, len(s.flying))
	for id := range s.flying {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(ids) == 0 {
		return fmt.Errorf("stop worker: expiring requests did not end within %s", s.o.Grace)
	}
	return fmt.Errorf("stop worker: %d runs did not end within %s: %s", len(ids), s.o.Grace, strings.Join(ids[:min(len(ids), 10)], ", "))
}
