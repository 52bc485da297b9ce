package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ringi-dev/ringi"
)

// resting is a run that was tried and did not end: it is left alone for a
// while, unless somebody moves it.
type resting struct {
	seq   int64 // where the run stood when it was tried
	tries int   // that moved nothing
	until time.Time
	said  string // the error that was told
}

// mayGo reports whether a run may be tried, that now stands at seq.
func (r *resting) mayGo(seq int64, now time.Time) bool {
	return seq != r.seq || !now.Before(r.until)
}

// forget drops what was not tried again for so long that it is surely not
// runnable any more: memory does not grow with the runs that wait for people.
func forget(rests map[string]*resting, after time.Duration) {
	old := time.Now().Add(-after)
	for id, r := range rests {
		if r.until.Before(old) {
			delete(rests, id)
		}
	}
}

// land takes what came of a run. A run that ended, or that was woken by name
// and went on, is forgotten; any other rests until somebody moves it or its
// time has come.
func (s *shift) land(ctx context.Context, o outcome) {
	f := s.flying[o.id]
	delete(s.flying, o.id)
	if ctx.Err() != nil {
		return
	}
	if o.err == nil && (o.res != nil && o.res.Status.Final() || f.seq == unseen && !f.again) {
		delete(s.rests, o.id)
		return
	}
	r := s.rests[o.id]
	if r == nil {
		r = &resting{}
		s.rests[o.id] = r
	}
	if f.seq != r.seq {
		r.tries = 0
	}
	r.seq = f.seq
	r.until = time.Now().Add(s.restOf(r.tries))
	r.tries++
	if o.err != nil {
		s.told.failed(o.id, r, o.err)
	}
	switch {
	case f.again:
		s.wakeOne(ctx, o.id)
	case f.woken && errors.Is(o.err, ringi.ErrBusy):
		s.wakeLater(o.id, r)
	}
}

// restOf is how long a run rests after so many tries that moved nothing.
func (s *shift) restOf(tries int) time.Duration {
	d := s.o.Rest
	for range tries {
		if d >= s.o.MaxRest {
			break
		}
		d *= 2
	}
	return min(d, s.o.MaxRest)
}

// wakeLater is for a run that was woken a moment before the one who held it
// let go, as where a decision meets the end of the call that asked for it.
func (s *shift) wakeLater(id string, r *resting) {
	const first, most = 2 * time.Millisecond, 6
	if r.tries > most {
		return
	}
	d := first << (r.tries - 1)
	r.until = time.Now().Add(d)
	time.AfterFunc(d, func() { s.w.Wake(s.o.Space, id) })
}

// teller writes each fault once, and not thousands of them.
type teller struct {
	log    *slog.Logger
	minute time.Time
	said   int
	looked string // what the last look failed with
}

// maxSaid is how many faults a minute are told as warnings.
const maxSaid = 20

// failed tells why a run could not go on: once for each run and reason. That
// somebody else has the run is no fault.
func (t *teller) failed(id string, r *resting, err error) {
	level := slog.LevelWarn
	for _, quiet := range []error{ringi.ErrBusy, ringi.ErrConflict, ringi.ErrLeaseLost, context.Canceled} {
		if errors.Is(err, quiet) {
			level = slog.LevelDebug
		}
	}
	text := err.Error()
	if text == r.said {
		level = slog.LevelDebug
	}
	r.said = text
	if level == slog.LevelWarn && !t.room() {
		level = slog.LevelDebug
	}
	t.log.Log(context.Background(), level, "run cannot go on here", "run", id, "error", err, "tries", r.tries)
}

// room reports whether one more warning is to be written in this minute.
func (t *teller) room() bool {
	if now := time.Now(); now.Sub(t.minute) > time.Minute {
		t.minute, t.said = now, 0
	}
	t.said++
	if t.said == maxSaid+1 {
		t.log.Warn("more runs cannot go on; further ones of this minute are told at level debug")
	}
	return t.said <= maxSaid
}

// look tells that the store cannot be looked at, once for each reason; nil says
// that it can.
func (t *teller) look(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		t.looked = ""
		return
	}
	level := slog.LevelError
	if err.Error() == t.looked {
		level = slog.LevelDebug
	}
	t.looked = err.Error()
	t.log.Log(context.Background(), level, "look for runs", "error", err)
}
