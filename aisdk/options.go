package aisdk

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
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
	mux  *http.ServeMux
	seen seen
	runs drivers
	open openStreams
}

// New makes a chat's handler. Mount it with http.StripPrefix where it does not
// stand at the root.
func New(o Options) (*Handler, error) {
	if o.Service == nil || o.Who == nil {
		return nil, errors.New("make chat: service and who are needed")
	}
	if o.SDK == 0 {
		o.SDK = 7
	}
	if o.SDK != 6 && o.SDK != 7 {
		return nil, errors.New("make chat: SDK is 6 or 7")
	}
	if n := len(o.Key); n > 0 && n < 32 {
		return nil, errors.New("make chat: a key has 32 bytes or more")
	}
	for _, origin := range o.Origins {
		if scheme, host, ok := strings.Cut(origin, "://"); !ok || scheme != "https" && scheme != "http" || host == "" || strings.ContainsAny(host, "/*?#") {
			return nil, errors.New("make chat: an origin is like https://shop.example, nothing behind it")
		}
	}
	o.Origins = slices.Clone(o.Origins)
	if o.MaxBody <= 0 {
		o.MaxBody = 8 << 20
	}
	if o.MaxStreams <= 0 {
		o.MaxStreams = 32
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Look <= 0 {
		o.Look = 250 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Feed == nil {
		o.Feed = &live.Feed{}
	}
	h := &Handler{o: o, mux: http.NewServeMux()}
	h.runs.h = h
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
