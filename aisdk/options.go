package aisdk

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
	"github.com/ringi-dev/ringi/live"
)

// Options say what a chat serves. Service and Who are needed.
type Options struct {
	Service ringi.Service
	// Agent names the agent of the chat's runs; empty where the service has one.
	Agent string
	// Who says who sends a request. An error is answered with 401, and so is a
	// principal without an id. Only a Person decides. It is asked again, every
	// second, of a stream that is open: an error, or another principal, ends it.
	Who func(*http.Request) (ringi.Principal, error)
	// Feed brings deltas of runs that are driven in this process: give its Publish
	// to engine.Config.Live. nil: text comes a turn at a time.
	Feed *live.Feed
	// Resume goes on with runs, where no worker does: engine.Engine has it. nil
	// leaves that to a worker.
	Resume func(ctx context.Context, runID string) (*ringi.Result, error)
	// Origins are the pages of other origins that may use the chat, exact
	// (https://shop.example). None: only pages of the server's own.
	Origins []string
	// Open lets the chat's user see inputs and results of his runs. Else he sees
	// them only of calls that he may decide (S-28).
	Open bool
	// MayDecide narrows who may decide in the chat; nil: whom the request allows.
	MayDecide func(ctx context.Context, by ringi.Principal, r ringi.ApprovalRequest) bool
	// Link is where a request is decided outside of the chat; nil shows none.
	Link func(requestID string) string
	// WithdrawOpen lets a new message withdraw what the chat's run waits for. Else
	// it is refused while something waits.
	WithdrawOpen bool
	// Key seals what was shown, 32 bytes or more, the same in every process that
	// serves the chat. Empty: what comes back is held against the store alone.
	Key []byte
	// SDK is the major version of the package ai that clients use: 6 or 7. 0 means
	// 7. A client says otherwise with the header Ringi-AI-SDK.
	SDK int
	// ErrorText is what a chat is told of a run that failed; nil says "An error
	// occurred."
	ErrorText func(ringi.Reason) string
	// MaxBody bounds a body, which carries the whole chat: 0 means 8 MiB.
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

// Handler serves a chat. Make one with [New]; it is safe for goroutines.
type Handler struct {
	o    Options
	chat *chat.Server
	mux  *http.ServeMux
	seen seen
}

// New makes a chat's handler. Mount it with http.StripPrefix where it does not
// stand at the root.
func New(o Options) (*Handler, error) {
	if o.SDK == 0 {
		o.SDK = 7
	}
	if o.SDK != 6 && o.SDK != 7 {
		return nil, errors.New("make chat: SDK is 6 or 7")
	}
	s, err := chat.New(chat.Options{Service: o.Service, Agent: o.Agent, Who: o.Who, Feed: o.Feed, Resume: o.Resume, Origins: o.Origins, Headers: ", Ringi-AI-SDK",
		Open: o.Open, WithdrawOpen: o.WithdrawOpen, MayDecide: o.MayDecide, Key: o.Key, MaxBody: o.MaxBody, MaxStreams: o.MaxStreams, Heartbeat: o.Heartbeat, Look: o.Look, Now: o.Now,
		Done: o.Done, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	// What was left out is filled in there.
	o.Feed, o.Heartbeat, o.Look, o.Now, o.Logger = s.Feed, s.Heartbeat, s.Look, s.Now, s.Logger
	h := &Handler{o: o, chat: s, mux: http.NewServeMux()}
	h.routes()
	return h, nil
}

func (h *Handler) routes() {
	h.mux.HandleFunc("POST /{$}", h.as(h.streaming(h.post)))
	h.mux.HandleFunc("POST /{id}", h.as(h.streaming(h.post)))
	h.mux.HandleFunc("GET /{id}/stream", h.as(h.streaming(h.stream)))
	h.mux.HandleFunc("GET /{id}/messages", h.as(h.messages))
	h.mux.HandleFunc("GET /{id}/events", h.as(h.streaming(h.events)))
	h.mux.HandleFunc("POST /{id}/decisions", h.as(h.decide))
	h.mux.HandleFunc("POST /{id}/stop", h.as(h.stop))
}

// Close waits for the runs that the handler goes on with (Options.Resume): it
// takes no new ones. Where ctx ends first, what runs is left to whoever comes
// next.
func (h *Handler) Close(ctx context.Context) error { return h.chat.Close(ctx) }
