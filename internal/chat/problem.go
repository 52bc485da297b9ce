package chat

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/mask"
)

// Problem is an error that a client is told of.
type Problem struct {
	Status int
	Code   string
	Text   string
}

func (p *Problem) Error() string { return p.Text }

// Problemf makes a problem.
func Problemf(status int, code, format string, args ...any) *Problem {
	return &Problem{status, code, fmt.Sprintf(format, args...)}
}

// ProblemOf is the one table from errors to answers. What is not in it is the
// server's fault, and not told.
func ProblemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return Problemf(http.StatusRequestEntityTooLarge, "too_large", "The chat is too long to be sent.")
	}
	if _, ok := errors.AsType[*ringi.DecidedError](err); ok {
		return Problemf(http.StatusConflict, "decided", "Somebody else has decided this already.")
	}
	if in, ok := errors.AsType[*ringi.InputError](err); ok {
		return Problemf(http.StatusUnprocessableEntity, string(in.Code), "This was not taken: %s", in)
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
			return &Problem{known.status, known.code, known.text}
		}
	}
	return Problemf(http.StatusInternalServerError, "internal", "An error occurred.")
}

// ReadBody reads a JSON body that means one thing to every reader (RFC 8259;
// names that come twice, and bytes that are no UTF-8, are refused).
func ReadBody(r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return Problemf(http.StatusUnsupportedMediaType, "content_type", "A body is application/json.")
	}
	if err := json.UnmarshalRead(r.Body, into); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return err
		}
		return Problemf(http.StatusBadRequest, "malformed", "The body could not be read.")
	}
	return nil
}

// Settled says why an answer comes too late.
func Settled(a *Ask) error {
	switch a.State {
	case ringi.Expired:
		return ringi.ErrExpired
	case ringi.Withdrawn:
		return ringi.ErrWithdrawn
	case ringi.Stale:
		return ringi.ErrStale
	}
	return Problemf(http.StatusConflict, "decided", "Somebody else has decided this already, and not so.")
}

// BoolText is a boolean as JSON.
func BoolText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// Proposed refuses a proposal that holds a masked value: who wrote it was not
// shown what stands there.
func Proposed(tool, input string) error {
	if strings.Contains(input, mask.Mark) {
		return &ringi.InputError{Tool: tool, Code: ringi.CodeInvalidInput, Err: errors.New("the input holds a masked value: write the value itself")}
	}
	return nil
}
