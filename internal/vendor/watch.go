package vendor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/ringi-dev/ringi"
)

// Limits bound one call of a vendor. Zero fields take the defaults.
type Limits struct {
	// Idle is how long the vendor may be silent: before its answer begins, and
	// between two pieces of it. Zero: 5 min, as models think before they speak.
	Idle time.Duration
	// Total bounds the whole call. Zero: 30 min.
	Total time.Duration
}

const (
	maxFault = 64 << 10  // bytes of an error's body
	maxTold  = 1 << 10   // bytes of a vendor's text in an error
	maxBody  = 256 << 20 // bytes of a stream
)

var (
	errIdle  = errors.New("the vendor was silent for too long")
	errTotal = errors.New("the vendor took too long")
	errFlood = errors.New("the vendor's answer is too large")
)

// Watched is a watch over one HTTP call that somebody's SDK makes.
type Watched struct {
	provider string
	secrets  []string
	outer    context.Context
	ctx      context.Context
	cancel   context.CancelCauseFunc
	idle     time.Duration
	silence  *time.Timer
	total    *time.Timer

	mu     sync.Mutex
	answer Answer
}

// Answer is what a vendor answered, as far as an error needs it.
type Answer struct {
	Status int // zero: there was no answer
	Header http.Header
	// Body is the beginning of an answer that is an error.
	Body []byte
}

type callKey struct{}

// Watch begins a call: what an SDK sends under the returned context, through a
// [Transport], is watched until End. Secrets are kept out of every error.
func Watch(ctx context.Context, provider string, l Limits, secrets ...string) (context.Context, *Watched) {
	if l.Idle <= 0 {
		l.Idle = 5 * time.Minute
	}
	if l.Total <= 0 {
		l.Total = 30 * time.Minute
	}
	c := &Watched{provider: provider, outer: ctx, idle: l.Idle}
	for _, s := range secrets {
		if s != "" {
			c.secrets = append(c.secrets, s, "[key]")
		}
	}
	inner, cancel := context.WithCancelCause(ctx)
	c.cancel = cancel
	c.ctx = context.WithValue(inner, callKey{}, c)
	c.silence = time.AfterFunc(l.Idle, func() { cancel(errIdle) })
	c.total = time.AfterFunc(l.Total, func() { cancel(errTotal) })
	return c.ctx, c
}

// End ends the call, and with it whatever of it still runs.
func (c *Watched) End() {
	c.silence.Stop()
	c.total.Stop()
	c.cancel(context.Canceled)
}

// Client follows no redirect: a key goes to the server that it was given for, and
// to no other.
func Client(base http.RoundTripper) *http.Client {
	return &http.Client{Transport: base, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Transport carries watched calls. The zero value uses http.DefaultTransport.
type Transport struct{ Base http.RoundTripper }

// RoundTrip sends a request and watches its answer.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	res, err := base.RoundTrip(req)
	c, ok := req.Context().Value(callKey{}).(*Watched)
	if !ok || err != nil {
		return res, err
	}
	c.heard()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = Answer{Status: res.StatusCode, Header: res.Header}
	if res.StatusCode < 400 {
		res.Body = &body{call: c, from: res.Body}
		return res, nil
	}
	c.answer.Body, _ = io.ReadAll(io.LimitReader(res.Body, maxFault))
	res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(c.answer.Body))
	return res, nil
}

// heard begins the silence anew.
func (c *Watched) heard() { c.silence.Reset(c.idle) }

type body struct {
	call *Watched
	from io.ReadCloser
	n    int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if n > 0 {
		b.call.heard()
	}
	if b.n += int64(n); b.n > maxBody {
		b.call.cancel(errFlood)
		return 0, errFlood
	}
	return n, err
}

func (b *body) Close() error { return b.from.Close() }

// Said is what a vendor's error says. Zero fields are taken from the status
// and the headers.
type Said struct {
	Class      ringi.ModelErrorClass
	Code, Text string
	RetryAfter time.Duration
}

// Err names a fault of the call: err is what the SDK returned, nil for a stream
// that ended early. read reads a vendor's own error and may be nil. Where the
// caller's context has ended, that is the error, unclassed.
func (c *Watched) Err(err error, read func(Answer) Said) error {
	if c.outer.Err() != nil {
		return context.Cause(c.outer)
	}
	var named *ringi.ModelError
	if errors.As(err, &named) {
		return err
	}
	c.mu.Lock()
	a := c.answer
	c.mu.Unlock()
	e := &ringi.ModelError{Provider: c.provider, Status: a.Status}
	switch cause := context.Cause(c.ctx); {
	case errors.Is(cause, errIdle), errors.Is(cause, errTotal):
		e.Class, e.Err = ringi.ModelTimeout, cause
	case errors.Is(cause, errFlood):
		e.Class, e.Err = ringi.ModelBroken, cause
	case a.Status >= 400:
		c.said(e, a, read)
	case a.Status == 0 && err != nil:
		e.Class, e.Err = ringi.ModelConnection, errors.New(c.Told(unaddressed(err).Error()))
	case err == nil:
		e.Class, e.Err = ringi.ModelBroken, errors.New("the answer ended early")
	default:
		e.Class, e.Err = ringi.ModelBroken, errors.New("the answer is broken: "+c.Told(err.Error()))
	}
	return e
}

// unaddressed takes the address from an error of net/http: it may hold a key.
func unaddressed(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func (c *Watched) said(e *ringi.ModelError, a Answer, read func(Answer) Said) {
	var s Said
	if read != nil {
		s = read(a)
	}
	if e.Class = s.Class; e.Class == "" {
		e.Class = ClassOf(a.Status)
	}
	if e.RetryAfter = s.RetryAfter; e.RetryAfter == 0 {
		e.RetryAfter = RetryAfter(a.Header, time.Now())
	}
	e.Code = c.Told(s.Code)
	if s.Text == "" {
		s.Text = http.StatusText(a.Status)
	}
	e.Err = errors.New(c.Told(s.Text))
}

// Fault makes the error of a fault that a stream itself tells.
func (c *Watched) Fault(s Said) error {
	if s.Class == "" {
		s.Class = ringi.ModelServer
	}
	return &ringi.ModelError{Class: s.Class, Provider: c.provider, Code: c.Told(s.Code), RetryAfter: s.RetryAfter, Err: errors.New(c.Told(s.Text))}
}

// Told is a vendor's text as an error may hold it: without secrets and control
// characters, and bounded.
func (c *Watched) Told(text string) string {
	text = strings.NewReplacer(c.secrets...).Replace(text)
	if len(text) > maxTold {
		text = text[:maxTold] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// ClassOf is the class of an HTTP status, where a vendor says nothing better.
func ClassOf(status int) ringi.ModelErrorClass {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return ringi.ModelAuth
	case status == http.StatusPaymentRequired:
		return ringi.ModelQuota
	case status == http.StatusRequestTimeout:
		return ringi.ModelTimeout
	case status == http.StatusTooManyRequests:
		return ringi.ModelRateLimit
	case status == http.StatusServiceUnavailable, status == 529:
		return ringi.ModelOverloaded
	case status >= 500:
		return ringi.ModelServer
	}
	return ringi.ModelBadRequest
}

// RetryAfter reads how long a server asks to wait: retry-after-ms, which model
// vendors send, or Retry-After in seconds or as a date (RFC 9110, 10.2.3). Zero
// where it does not say.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil && ms > 0 && ms < 1e10 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 && s < 1e8 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
