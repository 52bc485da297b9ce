package aisdk

import (
	"fmt"
	"net/http"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
)

// caller is who sends one request.
type caller struct {
	chat.Caller
	sdk int
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r, ok := h.chat.Enter(w, r, refuse); ok {
		h.mux.ServeHTTP(w, r)
	}
}

// refuse tells an error. The SDK throws an answer's body as the error's message,
// so the body is a sentence.
func refuse(w http.ResponseWriter, p *chat.Problem) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Ringi-Code", p.Code)
	w.WriteHeader(p.Status)
	fmt.Fprintln(w, p.Text)
}

// as authenticates, and answers for what a route returns.
func (h *Handler) as(route func(http.ResponseWriter, *http.Request, *caller) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := h.who(r)
		if err == nil {
			err = route(w, r, c)
		}
		if err == nil {
			return
		}
		p := chat.ProblemOf(err)
		if p.Status >= http.StatusInternalServerError {
			h.o.Logger.Error("answer chat", "path", r.URL.Path, "error", err)
		}
		refuse(w, p)
	}
}

// streaming bounds how many answers of a route its caller holds at once.
func (h *Handler) streaming(route func(http.ResponseWriter, *http.Request, *caller) error) func(http.ResponseWriter, *http.Request, *caller) error {
	return func(w http.ResponseWriter, r *http.Request, c *caller) error {
		leave, err := h.chat.Streaming(&c.Caller)
		if err != nil {
			return err
		}
		defer leave()
		return route(w, r, c)
	}
}

func (h *Handler) who(r *http.Request) (*caller, error) {
	who, err := h.chat.Identify(r)
	if err != nil {
		return nil, err
	}
	c := &caller{Caller: who, sdk: h.o.SDK}
	switch v := r.Header.Get("Ringi-AI-SDK"); v {
	case "":
	case "6", "7":
		c.sdk = int(v[0] - '0')
	default:
		return nil, chat.Problemf(http.StatusBadRequest, "sdk", "Ringi-AI-SDK is 6 or 7.")
	}
	if id := r.PathValue("id"); id != "" {
		return c, h.chat.Name(&c.Caller, id)
	}
	return c, nil
}

// Thread is the thread of a chat: of this agent, this principal and the client's
// own id of it.
func Thread(agent string, by ringi.Principal, chatID string) string {
	return chat.Thread(agent, by, chatID)
}
