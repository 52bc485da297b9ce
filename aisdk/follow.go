package aisdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/live"
)

// writeTime is how long a reader may take to take what is sent.
const writeTime = 10 * time.Second

// sink is an answer that is written bit by bit (WHATWG HTML, 9.2).
type sink struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	expires time.Time // the write deadline
	silent  time.Time // since
}

func open(w http.ResponseWriter) *sink {
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache, no-transform")
	head.Set("X-Accel-Buffering", "no")
	return &sink{w: w, rc: http.NewResponseController(w), silent: time.Now()}
}

func (s *sink) send(b []byte) error {
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
	s.silent = time.Now()
	if err := s.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// close lifts the deadline: the connection may carry another request.
func (s *sink) close() {
	if err := s.rc.SetWriteDeadline(time.Time{}); err != nil {
		s.expires = time.Time{} // who cannot has set none
	}
}

// stream gives the newest assistant message from its first part, and goes on with
// it while its run goes on.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, c *chat) error {
	newest, err := h.newest(r.Context(), c)
	if err != nil {
		return err
	}
	if newest == nil || h.seen.has(c.thread, newest, h.o.Now()) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	h.runs.drive(newest.ID)
	e := newEmitter(h, c)
	e.start(newest.ID)
	h.follow(w, r, c, newest.ID, e)
	return nil
}

// follow streams a run until it ended or waits, or its reader has gone. That
// stops nothing of the run.
func (h *Handler) follow(w http.ResponseWriter, r *http.Request, c *chat, runID string, e *emitter) {
	s := open(w)
	defer s.close()
	w.Header().Set("x-vercel-ai-ui-message-stream", "v1")
	w.WriteHeader(http.StatusOK)
	feed := h.o.Feed.Follow(runID)
	defer feed.Close()
	f := &following{h: h, c: c, r: r, run: runID, e: e, s: s, feed: feed, known: time.Now()}
	if err := f.all(r.Context()); err != nil && r.Context().Err() == nil {
		h.o.Logger.Error("stream chat", "run", runID, "error", err)
	}
}

type following struct {
	h     *Handler
	c     *chat
	r     *http.Request
	run   string
	e     *emitter
	s     *sink
	feed  *live.Follower
	v     *view
	room  []live.Fragment
	known time.Time // when Who was asked
}

func (f *following) all(ctx context.Context) error {
	timer := time.NewTimer(f.h.o.Look)
	defer timer.Stop()
	look := true
	for {
		if err := f.h.still(f.r, f.c, &f.known); err != nil {
			return err
		}
		var st live.State
		f.room, st = f.feed.Read(f.room[:0])
		if look || f.v == nil || st.Seq > f.v.seq {
			v, err := f.h.view(ctx, f.c, f.run)
			if err != nil {
				return err
			}
			f.v = v
			f.e.sync(v)
		}
		if st.Open && f.v.closeBefore(st.Step) {
			f.e.sync(f.v) // what waits for a turn's end comes before the next step
		}
		if f.v.rests {
			f.e.finish(f.v)
			if err := f.s.send(f.e.buf); err != nil {
				return err
			}
			f.h.seen.put(f.c.thread, f.run, f.v.seq, f.h.o.Now())
			return nil
		}
		f.e.live(f.v, f.room, st)
		if len(f.e.buf) > 0 {
			if err := f.s.send(f.e.buf); err != nil {
				return err
			}
			f.e.buf = f.e.buf[:0]
		}
		var err error
		if look, err = f.wait(ctx, timer, st.Driven); err != nil {
			return err
		}
	}
}

// wait waits for the feed's bell, or until it is time to look at the store: what
// others do rings no bell here.
func (f *following) wait(ctx context.Context, timer *time.Timer, driven bool) (look bool, err error) {
	pause := f.h.o.Look
	if driven {
		pause = max(4*pause, time.Second)
	}
	timer.Reset(pause)
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-f.h.o.Done:
		return false, errStopping
	case <-f.feed.Bell():
		return false, nil
	case <-timer.C:
	}
	if time.Since(f.s.silent) > f.h.o.Heartbeat {
		if err := f.s.send([]byte(": still here\n\n")); err != nil {
			return false, err
		}
	}
	row, err := f.h.o.Service.Row(ctx, f.run)
	if err != nil {
		return false, err
	}
	return row.Seq != f.v.seq || row.Status != f.v.row.Status, nil
}

var errStopping = errors.New("server stops")

// stillAge is how long an open stream takes its reader's name for granted.
const stillAge = time.Second

// still ends a stream whose reader would be refused by now: he has logged out,
// was disabled, or his token is over.
func (h *Handler) still(r *http.Request, c *chat, known *time.Time) error {
	if time.Since(*known) < stillAge {
		return nil
	}
	by, err := h.o.Who(r)
	if err == nil && by.ID != c.by.ID {
		err = ringi.ErrNoPrincipal
	}
	if err != nil {
		return fmt.Errorf("ask again who reads: %w", err)
	}
	*known = time.Now()
	return nil
}

// closeBefore marks the steps before one that the model is at: they are over. It
// reports whether that was news.
func (v *view) closeBefore(step int) (news bool) {
	for i, s := range v.steps {
		if !s.closed && i+1 < step {
			s.closed, news = true, true
		}
	}
	return news
}

// openStreams counts the streams of each principal.
type openStreams struct {
	mu sync.Mutex
	by map[string]int
}

// enter takes a place; leave gives it back.
func (o *openStreams) enter(by string, most int) (leave func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by[by] >= most {
		return nil, problemf(http.StatusTooManyRequests, "streams", "Too many of your pages are open.")
	}
	if o.by == nil {
		o.by = map[string]int{}
	}
	o.by[by]++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.by[by]--; o.by[by] == 0 {
			delete(o.by, by)
		}
	}, nil
}

// seen remembers what the last finished stream of a chat held. It is memory
// alone: what is forgotten is streamed once more.
type seen struct {
	mu    sync.Mutex
	marks map[string]mark
}

type mark struct {
	run  string
	seq  int64
	hint time.Time // when somebody was told that there is something new
}

// hinted is how long after such a word a chat is streamed in any case: several
// pages may have heard it.
const hinted = 5 * time.Second

// maxMarks bounds the chats that are remembered.
const maxMarks = 10_000

func (s *seen) put(thread, run string, seq int64, _ time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marks == nil || len(s.marks) >= maxMarks {
		s.marks = map[string]mark{}
	}
	m := s.marks[thread]
	m.run, m.seq = run, seq
	s.marks[thread] = m
}

func (s *seen) hint(thread string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.marks[thread]; ok {
		m.hint = now
		s.marks[thread] = m
	}
}

// has reports whether nothing has changed since the last finished stream.
func (s *seen) has(thread string, row *ringi.RunRow, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.marks[thread]
	return ok && m.run == row.ID && m.seq == row.Seq && (row.Status.Waiting() || row.Status.Final()) && now.Sub(m.hint) > hinted
}

// drivers go on with runs where no worker does.
type drivers struct {
	h    *Handler
	mu   sync.Mutex
	runs map[string]bool // true: once more
	wg   sync.WaitGroup
	over bool
}

// drive goes on with a run, beside the request that made it runnable.
func (d *drivers) drive(runID string) {
	if d.h.o.Resume == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, busy := d.runs[runID]; busy || d.over {
		if busy {
			d.runs[runID] = true
		}
		return
	}
	if d.runs == nil {
		d.runs = map[string]bool{}
	}
	d.runs[runID] = false
	d.wg.Add(1)
	go d.work(runID)
}

func (d *drivers) work(runID string) {
	defer d.wg.Done()
	for {
		_, err := d.h.o.Resume(context.Background(), runID)
		if err != nil && !errors.Is(err, ringi.ErrBusy) {
			d.h.o.Logger.Error("go on with run of chat", "run", runID, "error", err)
		}
		d.mu.Lock()
		again := d.runs[runID] && !d.over
		if again {
			d.runs[runID] = false
		} else {
			delete(d.runs, runID)
		}
		d.mu.Unlock()
		if !again {
			return
		}
	}
}

// Close waits for the runs that the handler goes on with (Options.Resume): it
// takes no new ones. Where ctx ends first, what runs is left to whoever comes
// next.
func (h *Handler) Close(ctx context.Context) error {
	h.runs.mu.Lock()
	h.runs.over = true
	h.runs.mu.Unlock()
	done := make(chan struct{})
	go func() { h.runs.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
