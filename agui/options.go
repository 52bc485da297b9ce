package agui

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
	"github.com/ringi-dev/ringi/live"
)

// Options say what is served. Service and Who are needed.
type Options struct {
	Service ringi.Service
	// Agent names the agent of the runs; empty where the service has one.
	Agent string
	// Who says who sends a request. An error is answered with 401, and so is a
	// principal without an id. Only a Person decides.
	Who func(*http.Request) (ringi.Principal, error)
	// Feed brings deltas of runs that are driven in this process: give its Publish
	// to engine.Config.Live. nil: text comes a turn at a time.
	Feed *live.Feed
	// Resume goes on with runs, where no worker does: engine.Engine has it. nil
	// leaves that to a worker.
	Resume func(ctx context.Context, runID string) (*ringi.Result, error)
	// Origins are the pages of other origins that may use the handler, exact
	// (https://shop.example). None: only pages of the server's own.
	Origins []string
	// Open lets the user see inputs and results of his runs. Else he sees them only
	// of calls that he may decide (S-28).
	Open bool
	// MayDecide narrows who may decide here; nil: whom the request allows.
	MayDecide func(ctx context.Context, by ringi.Principal, r ringi.ApprovalRequest) bool
	// Link is where a request is decided outside of this page; nil shows none.
	Link func(requestID string) string
	// WithdrawOpen lets a new message withdraw what the run waits for. Else it is
	// refused while something waits.
	WithdrawOpen bool
	// Key seals what was shown, 32 bytes or more, the same in every process that
	// serves the threads. Empty: what comes back is held against the store alone.
	Key []byte
	// ErrorText is what a client is told of a run that failed; nil says "An error
	// occurred."
	ErrorText func(ringi.Reason) string
	// MaxBody bounds a body, which carries the whole history: 0 means 8 MiB.
	MaxBody int64
	// MaxStreams bounds the streams that one principal holds at once: 0 means 32.
	MaxStreams int
	// Heartbeat is how often a silent stream says that it lives: 0 means 15 s.
	Heartbeat time.Duration
	// Look is how often the store is asked for what others did: 0 means 250 ms.
	Look time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Done ends streams when the server is to stop; nil never does.
	Done <-chan struct{}
	// Logger takes what went wrong; nil discards it. Inputs are never logged.
	Logger *slog.Logger
}

// Handler serves an agent. Make one with [New]; it is safe for goroutines.
type Handler struct {
	o    Options
	chat *chat.Server
	mux  *http.ServeMux
}

// New makes an agent's handler. Mount it with http.StripPrefix where it does not
// stand at the root.
func New(o Options) (*Handler, error) {
	s, err := chat.New(chat.Options{Service: o.Service, Agent: o.Agent, Who: o.Who, Feed: o.Feed, Resume: o.Resume, Origins: o.Origins,
		Open: o.Open, WithdrawOpen: o.WithdrawOpen, MayDecide: o.MayDecide, Key: o.Key, MaxBody: o.MaxBody, MaxStreams: o.MaxStreams, Heartbeat: o.Heartbeat, Look: o.Look, Now: o.Now,
		Done: o.Done, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	h := &Handler{o: o, chat: s, mux: http.NewServeMux()}
	h.mux.HandleFunc("POST /{$}", h.as(h.streaming(h.run)))
	h.mux.HandleFunc("POST /connect", h.as(h.streaming(h.connect)))
	h.mux.HandleFunc("POST /{thread}/stop", h.as(h.stop))
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r, ok := h.chat.Enter(w, r, refuse); ok {
		h.mux.ServeHTTP(w, r)
	}
}

// Close waits for the runs that the handler goes on with (Options.Resume): it
// takes no new ones. Where ctx ends first, what runs is left to whoever comes
// next.
func (h *Handler) Close(ctx context.Context) error { return h.chat.Close(ctx) }

// Thread is the thread behind a client's threadId: of this agent and this
// principal. It is the same as a chat's of package aisdk.
func Thread(agent string, by ringi.Principal, threadID string) string {
	return chat.Thread(agent, by, threadID)
}
