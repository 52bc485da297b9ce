package chat

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ringi-dev/ringi/live"
)

// writeTime is how long a reader may take to take what is sent.
const writeTime = 10 * time.Second

// Sink is an answer that is written bit by bit (WHATWG HTML, 9.2).
type Sink struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	expires time.Time // the write deadline
	Silent  time.Time // since
}

// Open begins such an answer; Close it.
func Open(w http.ResponseWriter) *Sink {
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache, no-transform")
	head.Set("X-Accel-Buffering", "no")
	return &Sink{w: w, rc: http.NewResponseController(w), Silent: time.Now()}
}

// Send writes, and flushes.
func (s *Sink) Send(b []byte) error {
	// A writer that knows no deadlines, or cannot flush, is a test's.
	if now := time.Now(); s.expires.Sub(now) < writeTime/2 {
		s.expires = now.Add(writeTime)
		if err := s.rc.SetWriteDeadline(s.expires); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	s.Silent = time.Now()
	if err := s.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// Close lifts the deadline: the connection may carry another request.
func (s *Sink) Close() {
	if err := s.rc.SetWriteDeadline(time.Time{}); err != nil {
		s.expires = time.Time{} // who cannot has set none
	}
}

// Emitter writes a run in a wire format. It knows what its client has.
type Emitter interface {
	// Sync adds what the view has and the client has not.
	Sync(v *View)
	// Live adds what the model says in the open turn.
	Live(v *View, frags []live.Fragment, st live.State)
	// Finish adds the end of the stream: the run has ended, or waits.
	Finish(v *View)
	// Take gives what was added since the last Take; it is good until the next
	// call.
	Take() ([]byte, error)
}

// ErrStopping ends a stream: the server is to stop.
var ErrStopping = errors.New("server stops")

// Follow streams a run until it ended or waits, and gives how it then stood. Its
// reader's going stops nothing of the run.
func (h *Server) Follow(ctx context.Context, s *Sink, c *Caller, runID string, e Emitter) (*View, error) {
	feed := h.Feed.Follow(runID)
	defer feed.Close()
	f := &following{h: h, c: c, run: runID, e: e, s: s, feed: feed}
	err := f.all(ctx)
	return f.v, err
}

type following struct {
	h    *Server
	c    *Caller
	run  string
	e    Emitter
	s    *Sink
	feed *live.Follower
	v    *View
	room []live.Fragment
}

func (f *following) all(ctx context.Context) error {
	timer := time.NewTimer(f.h.Look)
	defer timer.Stop()
	look := true
	for {
		if err := f.h.Still(f.c); err != nil {
			return err
		}
		var st live.State
		f.room, st = f.feed.Read(f.room[:0])
		if look || f.v == nil || st.Seq > f.v.Seq {
			v, err := f.h.View(ctx, f.c, f.run)
			if err != nil {
				return err
			}
			f.v = v
			f.e.Sync(v)
		}
		if st.Open && f.v.CloseBefore(st.Step) {
			f.e.Sync(f.v) // what waits for a turn's end comes before the next step
		}
		if f.v.Rests {
			f.e.Finish(f.v)
			return f.send()
		}
		f.e.Live(f.v, f.room, st)
		if err := f.send(); err != nil {
			return err
		}
		var err error
		if look, err = f.wait(ctx, timer, st.Driven); err != nil {
			return err
		}
	}
}

func (f *following) send() error {
	b, err := f.e.Take()
	if err != nil || len(b) == 0 {
		return err
	}
	return f.s.Send(b)
}

// wait waits for the feed's bell, or until it is time to look at the store: what
// others do rings no bell here.
func (f *following) wait(ctx context.Context, timer *time.Timer, driven bool) (look bool, err error) {
	pause := f.h.Look
	if driven {
		pause = max(4*pause, time.Second)
	}
	timer.Reset(pause)
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-f.h.Done:
		return false, ErrStopping
	case <-f.feed.Bell():
		return false, nil
	case <-timer.C:
	}
	if time.Since(f.s.Silent) > f.h.Heartbeat {
		if err := f.s.Send([]byte(": still here\n\n")); err != nil {
			return false, err
		}
	}
	row, err := f.h.Service.Row(ctx, f.run)
	if err != nil {
		return false, err
	}
	return row.Seq != f.v.Seq || row.Status != f.v.Row.Status, nil
}
