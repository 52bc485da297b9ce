package agui

import (
	"fmt"
	"net/http"

	"github.com/ringi-dev/ringi/internal/chat"
)

// refuse answers a request that is none of the protocol's: the client throws the
// body as the error's message, so it is a sentence. What the protocol can say is
// told as RUN_ERROR.
func refuse(w http.ResponseWriter, p *chat.Problem) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Ringi-Code", p.Code)
	w.WriteHeader(p.Status)
	fmt.Fprintln(w, p.Text)
}

// as authenticates, and answers for what a route returns.
func (h *Handler) as(route func(http.ResponseWriter, *http.Request, *chat.Caller) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := h.chat.Identify(r)
		if err == nil {
			err = route(w, r, &c)
		}
		if err != nil {
			refuse(w, h.problem(r, err))
		}
	}
}

// problem is what a client is told of an error. What is the server's fault is
// logged, and not told.
func (h *Handler) problem(r *http.Request, err error) *chat.Problem {
	p := chat.ProblemOf(err)
	if p.Status >= http.StatusInternalServerError {
		h.chat.Logger.Error("answer agent's client", "path", r.URL.Path, "error", err)
	}
	return p
}

// streaming reads the body of a route that streams, and bounds how many streams
// its caller holds at once. From there on an error is an event.
func (h *Handler) streaming(route func(*stream) error) func(http.ResponseWriter, *http.Request, *chat.Caller) error {
	return func(w http.ResponseWriter, r *http.Request, c *chat.Caller) error {
		leave, err := h.chat.Streaming(c)
		if err != nil {
			return err
		}
		defer leave()
		in, err := h.read(r, c)
		if err != nil {
			return err
		}
		s := &stream{h: h, w: w, r: r, c: c, in: in}
		defer s.close()
		if err := route(s); err != nil && r.Context().Err() == nil {
			s.fail(h.problem(r, err))
		}
		return nil
	}
}

func (h *Handler) stop(w http.ResponseWriter, r *http.Request, c *chat.Caller) error {
	if err := h.chat.Name(c, r.PathValue("thread")); err != nil {
		return err
	}
	if err := h.chat.Stop(r.Context(), c); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// stream is the answer to one RunAgentInput.
type stream struct {
	h    *Handler
	w    http.ResponseWriter
	r    *http.Request
	c    *chat.Caller
	in   *input
	sink *chat.Sink // nil before the first event
}

func (s *stream) send(b []byte) error {
	if s.sink == nil {
		s.sink = chat.Open(s.w)
	}
	return s.sink.Send(b)
}

func (s *stream) close() {
	if s.sink != nil {
		s.sink.Close()
	}
}

// fail ends the stream with RUN_ERROR, the protocol's one word for what went
// wrong.
func (s *stream) fail(p *chat.Problem) {
	if s.sink == nil {
		s.w.Header().Set("Ringi-Code", p.Code)
	}
	var f chat.Frames
	runError(&f, p.Text, p.Code)
	if err := s.send(f.Buf); err != nil {
		h := s.h.chat
		h.Logger.Info("tell agent's client of an error", "error", err)
	}
}

func runError(f *chat.Frames, text, code string) {
	f.Begin("RUN_ERROR")
	f.Field("message", text)
	f.Field("code", code)
	f.End()
}
