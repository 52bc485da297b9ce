package aisdk

import (
	"net/http"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
)

// stream gives the newest assistant message from its first part, and goes on with
// it while its run goes on.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, c *caller) error {
	newest, err := h.chat.Newest(r.Context(), &c.Caller)
	if err != nil {
		return err
	}
	if newest == nil || h.seen.has(c.Thread, newest, h.o.Now()) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	h.chat.Drive(newest.ID)
	e := newEmitter(h, c)
	e.start(newest.ID)
	h.follow(w, r, c, newest.ID, e)
	return nil
}

// follow streams a run until it ended or waits, or its reader has gone. That
// stops nothing of the run.
func (h *Handler) follow(w http.ResponseWriter, r *http.Request, c *caller, runID string, e *emitter) {
	s := chat.Open(w)
	defer s.Close()
	w.Header().Set("x-vercel-ai-ui-message-stream", "v1")
	w.WriteHeader(http.StatusOK)
	v, err := h.chat.Follow(r.Context(), s, &c.Caller, runID, e)
	switch {
	case err == nil:
		h.seen.put(c.Thread, runID, v.Seq, h.o.Now())
	case r.Context().Err() == nil:
		h.o.Logger.Error("stream chat", "run", runID, "error", err)
	}
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
