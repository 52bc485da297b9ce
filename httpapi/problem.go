package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// typePrefix begins the type of every problem (RFC 9457, 3.1.1).
const typePrefix = "urn:ringi:problem:"

// Problem is the body of every error: application/problem+json (RFC 9457).
type Problem struct {
	// Type is "urn:ringi:problem:" and a word of the table in docs/errors.md.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says more to people. Programs read Type.
	Detail string `json:"detail,omitempty"`
	// State, Answer, DecidedBy and DecidedAt say who was first, to those who may
	// know it.
	State     ringi.RequestState `json:"state,omitempty"`
	Answer    ringi.Answer       `json:"answer,omitempty"`
	DecidedBy string             `json:"decided_by,omitempty"`
	DecidedAt time.Time          `json:"decided_at,omitzero"`
	// ETag is the request's present one, for 412.
	ETag string `json:"etag,omitempty"`
	// Code is what a model would be told of an input.
	Code ringi.ResultCode `json:"code,omitempty"`
	// Attempt and StartedAt say which start of a call was first.
	Attempt   int       `json:"attempt,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	// Errors are faults at places of the request.
	Errors []Fault `json:"errors,omitempty"`

	header http.Header
}

// Fault is what is wrong at one place of a request. It never repeats a value.
type Fault struct {
	// Pointer is the place in the body (RFC 6901), or "query/…", "header/…".
	Pointer string `json:"pointer,omitempty"`
	Detail  string `json:"detail"`
}

// Error returns title and detail.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

// GetStatus, GetHeaders and ContentType are what package huma asks an error.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the headers that go with the problem.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType returns application/problem+json.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// row is a line of the table of errors.
type row struct {
	word   string
	status int
	title  string
	// errs are the errors that lead to it; none where code asks by word.
	errs []error
	// tell says that the error's own text goes out as the detail.
	tell bool
	// unsure says that what was asked for may have been done.
	unsure bool
	when   string
}

// Errors of this package that the table knows.
var (
	errMethod     = errors.New("method not allowed")
	errNoAddress  = errors.New("there is nothing at this address")
	errMatch      = errors.New("If-Match names another version")
	errNoMatch    = errors.New("If-Match is missing")
	errUnclear    = errors.New("an earlier try began and did not end")
	errMalformed  = errors.New("malformed")
	errUnread     = errors.New("request is not valid")
	errMediaType  = errors.New("content type is not application/json")
	errSlow       = errors.New("request came too slowly")
	errStreams    = errors.New("too many streams and polls at once")
	errNoVerify   = errors.New("verification is not offered here")
	errNoCount    = errors.New("nothing is counted here")
	errAccept     = errors.New("nothing acceptable")
	errUnexpected = errors.New("unexpected")
)

// table is the one table from error to status. The first line that fits counts.
// docs/errors.md is printed from it.
var table = []row{
	{word: "no-principal", status: 401, title: "Nobody is known", errs: []error{ringi.ErrNoPrincipal}, when: "No token or session, or one that is unknown, ended or revoked. All alike."},
	{word: "cross-origin", status: 403, title: "The request comes from another page", errs: []error{access.ErrCrossOrigin}, when: "A session's cookie without its form token, or from a page of another origin."},
	{word: "forbidden", status: 403, title: "You may not do this", errs: []error{access.ErrForbidden}, when: "No role or scope of the caller's has the route, or not for what he may read."},
	{word: "not-permitted", status: 403, title: "You may not decide this request", errs: []error{ringi.ErrNotPermitted}, tell: true, when: "Deciders, four eyes, or the tool's own gate."},
	{word: "not-found", status: 404, title: "Not found", errs: []error{ringi.ErrNotFound, errNoAddress, errNoVerify, errNoCount}, when: "Another's id, another space's and an unknown one alike; an address that is none."},
	{word: "method-not-allowed", status: 405, title: "Method not allowed", errs: []error{errMethod}, when: "The address has other methods; they are in the header Allow."},
	{word: "not-acceptable", status: 406, title: "Not acceptable", errs: []error{errAccept}, when: "A stream was asked for where there is none."},
	{word: "too-slow", status: 408, title: "The request came too slowly", errs: []error{errSlow}, when: "The body did not come within 5 s."},
	{word: "spent", status: 409, title: "The approval is spent", errs: []error{ringi.ErrSpent}, when: "What was approved has begun to run, or a result was given in its place."},
	{word: "already-decided", status: 409, title: "The request is decided already", errs: nil, when: "Somebody else was first, or you decided otherwise; `state`, `answer`, `decided_by` and `decided_at` say how."},
	{word: "stale", status: 409, title: "The request shows something else now", errs: []error{ringi.ErrStale}, tell: true, when: "The digest is another, a successor took its place, or the tool or policy changed."},
	{word: "policy-denies", status: 409, title: "Policy denies the call now", errs: []error{ringi.ErrNowDenied}, tell: true, when: "What policy would refuse now cannot be approved."},
	{word: "call-waiting", status: 409, title: "The call waits for a person", when: "A call of a foreign loop whose approval, or outcome, is not settled."},
	{word: "call-started", status: 409, title: "The call was started already", when: "The right to run is given once; `attempt` and `started_at` say which start was first."},
	{word: "call-finished", status: 409, title: "The call has its result", when: "It ran, or was refused: the call says what the model is told."},
	{word: "not-started", status: 409, title: "The call was not started so", errs: []error{ringi.ErrNotStarted}, tell: true, when: "A result for a start that never was."},
	{word: "late", status: 410, title: "The result came late", errs: []error{ringi.ErrLate}, when: "The call was given up. What came is kept for whoever says what became of it."},
	{word: "busy", status: 409, title: "The run is being worked on", errs: []error{ringi.ErrBusy, ringi.ErrLeaseLost}, when: "Another process holds the run. Try again."},
	{word: "conflict", status: 409, title: "Somebody was first", errs: []error{ringi.ErrConflict}, when: "Others wrote at the same time, again and again. Try again."},
	{word: "run-open", status: 409, title: "The thread has an open run", errs: []error{ringi.ErrRunOpen}, when: "A new run would overtake one that waits; see `withdraw_open`."},
	{word: "exists", status: 409, title: "It exists already", errs: []error{access.ErrExists}, tell: true, when: "A user's id, or a client's name that is somebody else's."},
	{word: "last-admin", status: 409, title: "The last admin stays", errs: []error{access.ErrLastAdmin}, when: "Nobody would be left who manages."},
	{word: "run-ended", status: 409, title: "The run has ended", errs: []error{ringi.ErrFinal}, tell: true, when: "Nothing can be done with an ended run."},
	{word: "in-flight", status: 409, title: "The first request with this key has not ended", errs: []error{access.ErrInFlight}, when: "Same Idempotency-Key while the first try runs."},
	{word: "not-kept", status: 409, title: "The request was answered already", errs: []error{access.ErrNotKept}, when: "Same Idempotency-Key, and the stored answer is not kept: too large, or erased."},
	{word: "unclear", status: 409, title: "An earlier try may have been carried out", errs: []error{errUnclear}, when: "Same Idempotency-Key; the first try began and did not end. Look at what there is."},
	{word: "expired", status: 410, title: "The request has expired", errs: []error{ringi.ErrExpired}, tell: true, when: "Its time is over. Nothing ran."},
	{word: "withdrawn", status: 410, title: "The request was withdrawn", errs: []error{ringi.ErrWithdrawn}, when: "Who asked withdrew it, or its run ended."},
	{word: "version-differs", status: 412, title: "You saw another version", errs: []error{errMatch}, when: "If-Match is not the request's present ETag; `etag` is."},
	{word: "too-large", status: 413, title: "Too large", errs: []error{ringi.ErrTooLarge}, tell: true, when: "A body above 2 MiB; a reason or note above 8 KiB, a result above 64 KiB."},
	{word: "media-type", status: 415, title: "Not JSON", errs: []error{errMediaType}, when: "A body whose content type is not application/json."},
	{word: "key-reused", status: 422, title: "The key came with another body before", errs: []error{access.ErrReused}, when: "Same Idempotency-Key, other body."},
	{word: "invalid-input", status: 422, title: "The input is not valid", errs: nil, tell: true, when: "An edit, typed values or a result that the tool's schema refuses."},
	{word: "answer-not-allowed", status: 422, title: "The request does not take this answer", errs: []error{ringi.ErrAnswer}, tell: true, when: "Not among its `answers`, or not in its state."},
	{word: "no-author", status: 422, title: "A user message has no author", errs: []error{ringi.ErrNoAuthor}, when: "Four eyes need one."},
	{word: "authority", status: 422, title: "Messages carry no authority", errs: []error{ringi.ErrAuthority}, when: "A message of another role than user, or with approval parts."},
	{word: "invalid-request", status: 422, title: "The request is not valid", errs: []error{errUnread}, tell: true, when: "A member or parameter that is unknown, missing or of a wrong kind; `errors` says which."},
	{word: "malformed", status: 400, title: "The request cannot be read", errs: []error{errMalformed, access.ErrInvalid}, tell: true, when: "A body that is no JSON or means two things; a bad cursor, or a bad Idempotency-Key."},
	{word: "match-required", status: 428, title: "If-Match is required", errs: []error{errNoMatch}, when: "A decision names the version that was seen: the request's ETag."},
	{word: "too-many", status: 429, title: "Too many requests", errs: []error{errStreams}, tell: true, when: "More requests, streams or polls at once than allowed. Retry-After says when."},
	{word: "no-key", status: 503, title: "The server lacks the store's key", errs: []error{ringi.ErrNoKey}, when: "Nothing can be checked or signed."},
	{word: "policy-missing", status: 503, title: "The server lacks what judges the run", errs: []error{ringi.ErrPolicyMissing}, when: "Its agent, tool or policy function is not here."},
	{word: "clock", status: 503, title: "The clock is not to be trusted", errs: []error{ringi.ErrClock}, when: "It is behind the newest recorded time."},
	{word: "not-recorded", status: 503, title: "It could not be recorded", errs: []error{ringi.ErrNotRecorded}, unsure: true, when: "What cannot be recorded does not run. Repeat with the same Idempotency-Key."},
	{word: "stopping", status: 503, title: "The server is stopping", errs: []error{context.Canceled, context.DeadlineExceeded}, unsure: true, when: "It ends, or did not come to it in time."},
	{word: "simulated", status: 503, title: "The store is a simulation", errs: []error{ringi.ErrSimulated}, when: "It holds a replay."},
	{word: "corrupt", status: 500, title: "The log does not verify", errs: []error{ringi.ErrCorrupt}, when: "The run's log is not what was written. Nothing of it runs."},
	{word: "internal", status: 500, title: "Something went wrong", errs: []error{errUnexpected}, unsure: true, when: "Anything else. The server's log says what."},
}

// wordOf returns the line of an error.
func wordOf(err error) *row {
	word := ""
	if limit := (*access.LimitError)(nil); errors.As(err, &limit) {
		word = "too-many"
	}
	if input := (*ringi.InputError)(nil); errors.As(err, &input) {
		word = "invalid-input"
	}
	if first := (*ringi.DecidedError)(nil); errors.As(err, &first) && first.State != ringi.Spent {
		word = "already-decided"
	}
	if !errors.Is(err, ringi.ErrLate) {
		word = cmp.Or(word, wordOfCall(err))
	}
	for i := range table {
		if table[i].word == word && word != "" {
			return &table[i]
		}
		for _, e := range table[i].errs {
			if word == "" && errors.Is(err, e) {
				return &table[i]
			}
		}
	}
	return &table[len(table)-1]
}

// wordOfCall is the line of what a call of a foreign loop is refused with.
func wordOfCall(err error) string {
	if w := (*ringi.WaitingError)(nil); errors.As(err, &w) {
		return "call-waiting"
	}
	if has := (*ringi.ResultError)(nil); errors.As(err, &has) {
		return "call-finished"
	}
	if first := (*ringi.StartedError)(nil); errors.As(err, &first) {
		return "call-started"
	}
	return ""
}

// problemOf turns an error into what who is told of it.
func problemOf(who access.Who, err error) *Problem {
	if p := (*Problem)(nil); errors.As(err, &p) {
		return p
	}
	r := wordOf(err)
	p := &Problem{Type: typePrefix + r.word, Title: r.title, Status: r.status, header: http.Header{}}
	if r.tell {
		p.Detail = err.Error()
	}
	if first := (*ringi.DecidedError)(nil); errors.As(err, &first) {
		p.State, p.DecidedAt = first.State, first.At
		if who.Has(access.RoleApprover) || who.Has(access.RoleAdmin) {
			p.Answer, p.DecidedBy = first.Decision.Answer, first.Decision.By.ID
		}
	}
	if input := (*ringi.InputError)(nil); errors.As(err, &input) {
		p.Code = input.Code
	}
	if first := (*ringi.StartedError)(nil); errors.As(err, &first) {
		p.Attempt, p.StartedAt = first.Attempt, first.At
	}
	if limit := (*access.LimitError)(nil); errors.As(err, &limit) {
		p.header.Set("Retry-After", seconds(limit.After))
	}
	if errors.Is(err, errStreams) {
		p.header.Set("Retry-After", "5")
	}
	if r.status == http.StatusUnauthorized {
		p.header.Set("WWW-Authenticate", `Bearer realm="ringi"`) // RFC 6750, 3
	}
	if tag := (*matchError)(nil); errors.As(err, &tag) {
		p.ETag = tag.etag
	}
	return p
}

// matchError is errMatch with the present version.
type matchError struct{ etag string }

func (e *matchError) Error() string { return errMatch.Error() }
func (e *matchError) Unwrap() error { return errMatch }

// fromHuma turns the refusals that package huma makes itself into problems. The
// values that it repeats are left out: they may be secrets.
func fromHuma(_ huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	r := wordOf(map[int]error{400: errMalformed, 406: errAccept, 408: errSlow, 413: ringi.ErrTooLarge, 415: errMediaType, 422: errUnread}[m.Status])
	p := &Problem{Type: typePrefix + r.word, Title: r.title, Status: m.Status}
	if m.Status == http.StatusRequestEntityTooLarge {
		p.Detail = "a body holds at most 2 MiB"
	}
	for _, d := range m.Errors {
		where, inBody := strings.CutPrefix(d.Location, "body")
		if inBody {
			where = strings.ReplaceAll(where, ".", "/")
		} else {
			where = strings.Replace(where, ".", "/", 1)
		}
		p.Errors = append(p.Errors, Fault{Pointer: where, Detail: d.Message})
	}
	return p, nil
}

// Table prints the table of errors as Markdown.
func Table() string {
	var b strings.Builder
	b.WriteString("| status | type | when |\n|---|---|---|\n")
	for _, r := range table {
		b.WriteString("| " + itoa(r.status) + " | `" + r.word + "` | " + r.title + ". " + r.when + " |\n")
	}
	return b.String()
}
