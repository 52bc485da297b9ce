package aisdk

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/ringi-dev/ringi"
)

// chat is one request's: who speaks, and in which conversation.
type chat struct {
	by     ringi.Principal
	id     string // the client's own
	thread string
	sdk    int
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !h.origin(w, r) {
		refuse(w, http.StatusForbidden, "origin", "This page may not use the chat: its origin is not among those that are allowed.")
		return
	}
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if r.URL.Path == "" { // mounted by StripPrefix at the very path
		u := *r.URL
		u.Path, u.RawPath = "/", ""
		r = r.Clone(r.Context())
		r.URL = &u
	}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, h.o.MaxBody)
	}
	h.mux.ServeHTTP(w, r)
}

// origin answers for pages of other origins (Fetch standard, CORS); false where
// the request's may not use the chat.
func (h *Handler) origin(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	w.Header().Add("Vary", "Origin")
	if origin == "" {
		// A page of another site that may not set the header cannot read the
		// answer, but could send a cookie along.
		return r.Method == http.MethodGet || r.Header.Get("Sec-Fetch-Site") != "cross-site"
	}
	if slices.Contains(h.o.Origins, origin) {
		head := w.Header()
		head.Set("Access-Control-Allow-Origin", origin)
		head.Set("Access-Control-Allow-Credentials", "true")
		head.Set("Access-Control-Expose-Headers", "Ringi-Code")
		if r.Method == http.MethodOptions {
			head.Set("Access-Control-Allow-Methods", "GET, POST")
			head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Ringi-AI-SDK, Last-Event-ID")
			head.Set("Access-Control-Max-Age", "600")
		}
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && u.Host == r.Host
}

// problem is an error that a client is told of. The SDK throws an answer's body
// as the error's message, so the body is a sentence.
type problem struct {
	status int
	code   string
	text   string
}

func (p *problem) Error() string { return p.text }

func problemf(status int, code, format string, args ...any) *problem {
	return &problem{status, code, fmt.Sprintf(format, args...)}
}

func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Ringi-Code", code)
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

// as authenticates, and answers for what a route returns.
func (h *Handler) as(route func(http.ResponseWriter, *http.Request, *chat) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := h.who(r)
		if err == nil {
			err = route(w, r, c)
		}
		if err == nil {
			return
		}
		p := problemOf(err)
		if p.status >= http.StatusInternalServerError {
			h.o.Logger.Error("answer chat", "path", r.URL.Path, "error", err)
		}
		refuse(w, p.status, p.code, p.text)
	}
}

// streaming bounds how many answers of a route its caller holds at once.
func (h *Handler) streaming(route func(http.ResponseWriter, *http.Request, *chat) error) func(http.ResponseWriter, *http.Request, *chat) error {
	return func(w http.ResponseWriter, r *http.Request, c *chat) error {
		leave, err := h.open.enter(c.by.ID, h.o.MaxStreams)
		if err != nil {
			return err
		}
		defer leave()
		return route(w, r, c)
	}
}

func (h *Handler) who(r *http.Request) (*chat, error) {
	by, err := h.o.Who(r)
	if err != nil || by.IsZero() {
		if err != nil {
			h.o.Logger.Info("chat refused", "error", err)
		}
		return nil, problemf(http.StatusUnauthorized, "unauthenticated", "Log in first.")
	}
	c := &chat{by: by, sdk: h.o.SDK}
	switch v := r.Header.Get("Ringi-AI-SDK"); v {
	case "":
	case "6", "7":
		c.sdk = int(v[0] - '0')
	default:
		return nil, problemf(http.StatusBadRequest, "sdk", "Ringi-AI-SDK is 6 or 7.")
	}
	if id := r.PathValue("id"); id != "" {
		return c, h.name(c, id)
	}
	return c, nil
}

// name says which of who speaks' chats is meant.
func (h *Handler) name(c *chat, id string) error {
	if id == "" || len(id) > 200 || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return problemf(http.StatusBadRequest, "chat_id", "A chat's id has 1 to 200 characters.")
	}
	if c.id != "" && c.id != id {
		return problemf(http.StatusBadRequest, "chat_id", "The address names another chat than the body.")
	}
	c.id, c.thread = id, Thread(h.o.Agent, c.by, id)
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

// problemOf is the one table from errors to answers. What is not in it is the
// server's fault, and not told.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problemf(http.StatusRequestEntityTooLarge, "too_large", "The chat is too long to be sent.")
	}
	if _, ok := errors.AsType[*ringi.DecidedError](err); ok {
		return problemf(http.StatusConflict, "decided", "Somebody else has decided this already.")
	}
	if in, ok := errors.AsType[*ringi.InputError](err); ok {
		return problemf(http.StatusUnprocessableEntity, string(in.Code), "This was not taken: %s", in)
	}
	for _, known := range []struct {
		err    error
		status int
		code   string
		text   string
	}{
		{ringi.ErrRunOpen, http.StatusConflict, "run_open", "The last message is still being answered, or waits for a decision."},
		{ringi.ErrNotPermitted, http.StatusForbidden, "not_permitted", "You may not decide this."},
		{ringi.ErrNoPrincipal, http.StatusUnauthorized, "unauthenticated", "Log in first."},
		{ringi.ErrExpired, http.StatusConflict, "expired", "This request has expired; nothing ran."},
		{ringi.ErrWithdrawn, http.StatusConflict, "withdrawn", "This request was withdrawn; nothing ran."},
		{ringi.ErrSpent, http.StatusConflict, "decided", "This approval is spent already."},
		{ringi.ErrStale, http.StatusConflict, "stale", "What was shown is not what would run. Reload the chat and look again."},
		{ringi.ErrAnswer, http.StatusUnprocessableEntity, "answer", "This request cannot be answered so."},
		{ringi.ErrNowDenied, http.StatusConflict, "denied_by_policy", "Policy denies this by now; nothing ran."},
		{ringi.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large", "This is too large."},
		{ringi.ErrNoAuthor, http.StatusForbidden, "no_author", "Four eyes need to know who speaks."},
		{ringi.ErrFinal, http.StatusConflict, "ended", "This answer has ended."},
		{ringi.ErrNotFound, http.StatusNotFound, "not_found", "There is no such chat."},
		{ringi.ErrBusy, http.StatusConflict, "busy", "Another process is at this; try again."},
		{ringi.ErrConflict, http.StatusConflict, "conflict", "Somebody was first; try again."},
	} {
		if errors.Is(err, known.err) {
			return &problem{known.status, known.code, known.text}
		}
	}
	return problemf(http.StatusInternalServerError, "internal", "An error occurred.")
}

// readBody reads a JSON body that means one thing to every reader (RFC 8259;
// names that come twice, and bytes that are no UTF-8, are refused).
func readBody(r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return problemf(http.StatusUnsupportedMediaType, "content_type", "A body is application/json.")
	}
	if err := json.UnmarshalRead(r.Body, into); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return err
		}
		return problemf(http.StatusBadRequest, "malformed", "The body could not be read.")
	}
	return nil
}
