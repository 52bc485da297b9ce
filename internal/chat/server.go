// Package chat is what handlers for chats share, whatever their wire format: a run
// as its user sees it, the seal on what was shown, who may decide, the stream that
// follows a run, and the errors that are told.
package chat

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/live"
)

// Options say what a chat serves; the handlers' own options explain them.
type Options struct {
	Service ringi.Service
	Agent   string
	Who     func(*http.Request) (ringi.Principal, error)
	Feed    *live.Feed
	Resume  func(ctx context.Context, runID string) (*ringi.Result, error)
	Origins []string
	Headers string // that pages of other origins may send, beside the usual ones
	Open    bool
	// WithdrawOpen lets a new message withdraw what the newest run waits for.
	WithdrawOpen bool
	MayDecide    func(ctx context.Context, by ringi.Principal, r ringi.ApprovalRequest) bool
	Key          []byte
	MaxBody      int64
	MaxStreams   int
	Heartbeat    time.Duration
	Look         time.Duration
	Now          func() time.Time
	Done         <-chan struct{}
	Logger       *slog.Logger
}

// Server answers for what every chat's handler does. Make one with [New]; it is
// safe for goroutines.
type Server struct {
	Options
	runs drivers
	open openStreams
}

// New checks options and fills their defaults in.
func New(o Options) (*Server, error) {
	if o.Service == nil || o.Who == nil {
		return nil, errors.New("make chat: service and who are needed")
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
	s := &Server{Options: o}
	s.runs.h = s
	return s, nil
}

// Enter prepares a request for its route; ok is false where it has its answer.
func (h *Server) Enter(w http.ResponseWriter, r *http.Request, refuse func(http.ResponseWriter, *Problem)) (_ *http.Request, ok bool) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !h.origin(w, r) {
		refuse(w, Problemf(http.StatusForbidden, "origin", "This page may not use the chat: its origin is not among those that are allowed."))
		return nil, false
	}
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return nil, false
	}
	if r.URL.Path == "" { // mounted by StripPrefix at the very path
		u := *r.URL
		u.Path, u.RawPath = "/", ""
		r = r.Clone(r.Context())
		r.URL = &u
	}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, h.MaxBody)
	}
	return r, true
}

// origin answers for pages of other origins (Fetch standard, CORS); false where
// the request's may not use the chat.
func (h *Server) origin(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	w.Header().Add("Vary", "Origin")
	if origin == "" {
		// A page of another site that may not set the header cannot read the
		// answer, but could send a cookie along.
		return r.Method == http.MethodGet || r.Header.Get("Sec-Fetch-Site") != "cross-site"
	}
	if slices.Contains(h.Origins, origin) {
		head := w.Header()
		head.Set("Access-Control-Allow-Origin", origin)
		head.Set("Access-Control-Allow-Credentials", "true")
		head.Set("Access-Control-Expose-Headers", "Ringi-Code")
		if r.Method == http.MethodOptions {
			head.Set("Access-Control-Allow-Methods", "GET, POST")
			head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID"+h.Headers)
			head.Set("Access-Control-Max-Age", "600")
		}
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && u.Host == r.Host
}

// Caller is who speaks, and in which conversation.
type Caller struct {
	By     ringi.Principal
	ID     string // the client's own of the conversation
	Thread string
	r      *http.Request
	known  time.Time // when Who was asked
}

// Identify says who sends a request.
func (h *Server) Identify(r *http.Request) (Caller, error) {
	by, err := h.Who(r)
	if err != nil || by.IsZero() {
		if err != nil {
			h.Logger.Info("chat refused", "error", err)
		}
		return Caller{}, Problemf(http.StatusUnauthorized, "unauthenticated", "Log in first.")
	}
	return Caller{By: by, r: r, known: time.Now()}, nil
}

// stillAge is how long an open stream takes its reader's name for granted.
const stillAge = time.Second

// Still ends a stream whose reader would be refused by now: he has logged out,
// was disabled, or his token is over.
func (h *Server) Still(c *Caller) error {
	if time.Since(c.known) < stillAge {
		return nil
	}
	by, err := h.Who(c.r)
	if err == nil && by.ID != c.By.ID {
		err = ringi.ErrNoPrincipal
	}
	if err != nil {
		return fmt.Errorf("ask again who reads: %w", err)
	}
	c.known = time.Now()
	return nil
}

// Name says which of who speaks' chats is meant.
func (h *Server) Name(c *Caller, id string) error {
	if id == "" || len(id) > 200 || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return Problemf(http.StatusBadRequest, "chat_id", "A chat's id has 1 to 200 characters.")
	}
	if c.ID != "" && c.ID != id {
		return Problemf(http.StatusBadRequest, "chat_id", "The address names another chat than the body.")
	}
	c.ID, c.Thread = id, Thread(h.Agent, c.By, id)
	return nil
}

// Thread is the thread of a chat: of this agent, this principal and the client's
// own id of it.
func Thread(agent string, by ringi.Principal, chatID string) string {
	b, err := json.Marshal([]string{"ringi-chat-thread-v1", agent, by.ID, chatID})
	if err != nil { // not UTF-8: then no two names are one
		b = []byte("raw\x00" + agent + "\x00" + by.ID + "\x00" + chatID)
	}
	sum := sha256.Sum256(b)
	return "thr_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// Newest is the chat's newest run; nil where there is none.
func (h *Server) Newest(ctx context.Context, c *Caller) (*ringi.RunRow, error) {
	rows, err := h.Service.Runs(ctx, ringi.RunQuery{Thread: c.Thread, Limit: 1})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// Runs are the chat's runs, oldest first.
func (h *Server) Runs(ctx context.Context, c *Caller) ([]ringi.RunRow, error) {
	var out []ringi.RunRow
	q := ringi.RunQuery{Thread: c.Thread, Limit: 1000}
	for {
		rows, err := h.Service.Runs(ctx, q)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
		if len(rows) < q.Limit {
			slices.Reverse(out)
			return out, nil
		}
		q.After = rows[len(rows)-1].ID
	}
}

// Stop ends the chat's run: what it waits for is withdrawn, a call in flight is
// recorded first.
func (h *Server) Stop(ctx context.Context, c *Caller) error {
	newest, err := h.Newest(ctx, c)
	if err != nil || newest == nil || newest.Status.Final() {
		return err
	}
	if err := h.Service.Cancel(ctx, newest.ID, c.By, "stopped by the user", false); err != nil && ProblemOf(err).Code != "ended" {
		return err
	}
	h.Drive(newest.ID)
	return nil
}

// Streaming takes one of the caller's places for a stream; leave gives it back.
func (h *Server) Streaming(c *Caller) (leave func(), err error) {
	return h.open.enter(c.By.ID, h.MaxStreams)
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
		return nil, Problemf(http.StatusTooManyRequests, "streams", "Too many of your pages are open.")
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
