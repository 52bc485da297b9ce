package identity

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// The library asks for the keys anew at every token that no known key fits, and
// anybody can make up such tokens: nobody must be able to have this server ask
// the issuer as often as he likes, nor to read what does not end.
const (
	asksAtOnce = 5
	asksEvery  = 5 * time.Second
	maxKeys    = 1 << 20
)

var errSpared = errors.New("the issuer was asked for its keys just now")

// sparing is a way to the issuer that asks it now and then alone.
type sparing struct {
	next http.RoundTripper
	now  func() time.Time

	mu   sync.Mutex
	left int
	at   time.Time // when left was counted
}

func newSparing(next http.RoundTripper, now func() time.Time) *sparing {
	if next == nil {
		next = http.DefaultTransport
	}
	if now == nil {
		now = time.Now
	}
	return &sparing{next: next, now: now, left: asksAtOnce, at: now()}
}

// RoundTrip implements http.RoundTripper.
func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.may() {
		return nil, errSpared
	}
	res, err := s.next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxKeys), res.Body}
	}
	return res, err
}

func (s *sparing) may() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if more := int(now.Sub(s.at) / asksEvery); more > 0 {
		s.left, s.at = min(s.left+more, asksAtOnce), now
	} else if now.Before(s.at) {
		s.at = now // the clock was set back
	}
	if s.left == 0 {
		return false
	}
	s.left--
	return true
}
