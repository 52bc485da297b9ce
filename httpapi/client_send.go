package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

const (
	// maxAnswerBytes is the largest answer that is read.
	maxAnswerBytes = 64 << 20
	// maxTries is how often a message is sent.
	maxTries = 4
	// firstPause is the pause before the second try; it doubles. A server's
	// Retry-After counts instead, up to maxPause: a longer one is an error.
	firstPause = 100 * time.Millisecond
	maxPause   = 30 * time.Second
)

// message is a request to the server, and where its answer goes.
type message struct {
	method, path string
	query        url.Values
	match        string
	body, out    any
	once         bool // its answer holds a secret, which is kept for no repeat
	// repeats, where set, is told whether the answer is 200 where the first is
	// 201, and no stored one: somebody did the same before.
	repeats *bool
}

func (c *Client) get(ctx context.Context, path string, q url.Values, out any) error {
	return c.send(ctx, message{method: http.MethodGet, path: path, query: q, out: out})
}

func (c *Client) post(ctx context.Context, path string, body, out any) error {
	return c.send(ctx, message{method: http.MethodPost, path: path, body: body, out: out})
}

// send sends a message, again where that is safe, and reads the answer.
func (c *Client) send(ctx context.Context, m message) error {
	var body []byte
	if m.body != nil {
		var err error
		if body, err = json.Marshal(m.body); err != nil {
			return fmt.Errorf("%s %s: %w", m.method, m.path, err)
		}
		if len(body) > MaxBody {
			return fmt.Errorf("%s %s: %w: a body holds at most 2 MiB", m.method, m.path, ringi.ErrTooLarge)
		}
	}
	key := ""
	if m.method == http.MethodPost {
		key = rand.Text()
	}
	for try := 1; ; try++ {
		pause, err := c.try(ctx, m, body, key)
		if err == nil || pause == 0 || m.once || try == maxTries {
			return err
		}
		pause = max(pause, firstPause<<(try-1)+mathrand.N(firstPause/2))
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// try sends a message once. A pause says that it may be sent again, after so
// long at least.
func (c *Client) try(ctx context.Context, m message, body []byte, key string) (pause time.Duration, err error) {
	what, address := m.method+" "+m.path, c.base+m.path
	if len(m.query) > 0 {
		address += "?" + m.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, m.method, address, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	for name, value := range map[string]string{"If-Match": m.match, "Idempotency-Key": key} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	sender := c.HTTP
	if sender == nil {
		sender = patient
	}
	res, err := sender.Do(req)
	if err != nil {
		return whenLost(ctx, err), fmt.Errorf("%s: %w", what, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return whenLost(ctx, err), fmt.Errorf("%s: read answer: %w", what, err)
	case len(b) > maxAnswerBytes:
		return 0, fmt.Errorf("%s: %w: answer", what, ringi.ErrTooLarge)
	case res.StatusCode/100 != 2:
		word, err := asError(res, b)
		return whenRefused(res, word), err
	}
	if m.repeats != nil {
		*m.repeats = res.StatusCode == http.StatusOK && res.Header.Get("Idempotency-Replayed") == ""
	}
	if err := json.Unmarshal(b, m.out); err != nil {
		return 0, fmt.Errorf("%s: read answer: %w", what, err)
	}
	return 0, nil
}

// whenLost is the pause after what did not come through. A certificate that is
// not to be trusted will not be.
func whenLost(ctx context.Context, err error) time.Duration {
	var untrusted *tls.CertificateVerificationError
	if ctx.Err() != nil || errors.As(err, &untrusted) {
		return 0
	}
	return firstPause
}

// whenRefused is the pause after an answer that asks for a repeat; 0 for one
// that a repeat does not change.
func whenRefused(res *http.Response, word string) time.Duration {
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout:
	case http.StatusServiceUnavailable:
		if !slices.Contains([]string{"", "stopping", "not-recorded"}, word) {
			return 0
		}
	case http.StatusConflict:
		if word != "in-flight" {
			return 0
		}
	default:
		return 0
	}
	after := retryAfter(res)
	if after > maxPause {
		return 0
	}
	return max(after, firstPause)
}

// retryAfter is the answer's Retry-After in seconds (RFC 9110, 10.2.3); 0 for
// none, and for a date.
func retryAfter(res *http.Response) time.Duration {
	n, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return time.Duration(n) * time.Second
}

// remoteError is an error of the server's service: it is what it was there, and
// says what the server said of it.
type remoteError struct {
	err     error
	problem *Problem
}

func (e *remoteError) Error() string {
	if e.problem != nil && e.problem.Detail != "" {
		return e.problem.Detail
	}
	return e.err.Error()
}

func (e *remoteError) Unwrap() []error {
	if e.problem == nil {
		return []error{e.err}
	}
	return []error{e.err, e.problem}
}

func problemIn(err error) *Problem {
	p, _ := errors.AsType[*Problem](err)
	return p
}

// asError gives a problem's word, and the error that it was made of.
func asError(res *http.Response, body []byte) (word string, _ error) {
	p := &Problem{}
	if json.Unmarshal(body, p) == nil {
		word = wordIn(p)
	}
	switch word {
	case "":
		return "", fmt.Errorf("the server answers %s", res.Status)
	case "already-decided", "spent":
		d := ringi.Decision{Answer: p.Answer, By: ringi.Principal{ID: p.DecidedBy}}
		return word, &remoteError{&ringi.DecidedError{Decision: d, State: p.State, At: p.DecidedAt}, p}
	case "call-started":
		return word, &remoteError{&ringi.StartedError{Attempt: p.Attempt, At: p.StartedAt}, p}
	case "invalid-input":
		return word, &remoteError{&ringi.InputError{Code: p.Code, Err: p}, p}
	case "too-many":
		return word, &remoteError{&access.LimitError{After: retryAfter(res)}, p}
	}
	for _, r := range table {
		if r.word == word && len(r.errs) > 0 {
			return word, &remoteError{r.errs[0], p}
		}
	}
	return word, p
}
