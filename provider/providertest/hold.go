package providertest

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

// HoldStream holds a provider to what is true of whatever a server streams, for
// fuzzing: there is one end, a turn or one error with a class, and nothing behind
// it; every call has a name. And the same stream cut somewhere gives the same calls
// or none that run: never a call with half an input (S-38). It gives the turn.
//
// model makes the model under test over a transport, with an address that nobody
// has.
func HoldStream(t testing.TB, model func(http.RoundTripper) ringi.Model, stream string, cut uint) *ringi.ModelTurn {
	t.Helper()
	whole := held(t, model(canned(http.StatusOK, "", stream)))
	if len(stream) == 0 {
		return whole
	}
	part := held(t, model(canned(http.StatusOK, "", stream[:cut%uint(len(stream))])))
	switch {
	case part == nil || !part.Finish.Clean() || len(part.Calls) == 0:
	case whole == nil || !whole.Finish.Clean():
		// What stood behind the cut spoilt the turn: it was whole before.
	case !reflect.DeepEqual(part.Calls, whole.Calls):
		t.Errorf("cut at byte %d of %q: calls %+v, whole %+v", cut%uint(len(stream)), stream, part.Calls, whole.Calls)
	}
	return whole
}

// HoldFault holds a provider to what is true of whatever an answer with an error's
// status says: one error with a class, a time to wait that is none or after now,
// and no turn.
func HoldFault(t testing.TB, model func(http.RoundTripper) ringi.Model, status int, retryAfter, body string) {
	t.Helper()
	if status < 400 || status > 599 {
		status = 400 + max(status, -status)%200
	}
	if status < 400 {
		status = 400 // of the least number there is no opposite
	}
	turns := 0
	var last error
	for ev, err := range model(canned(status, retryAfter, body)).Generate(context.Background(), oneRequest()) {
		if last != nil {
			t.Errorf("something behind the error: %+v, %v", ev, err)
		}
		if last = err; ev.Turn != nil {
			turns++
		}
	}
	e, ok := ringi.ModelErrorOf(last)
	if turns > 0 || !ok || e.Class == "" || e.Status != status || e.RetryAfter < 0 {
		t.Errorf("status %d, %q: %d turns, error %+v", status, body, turns, last)
	}
}

// held asks a model once and checks the form of what comes.
func held(t testing.TB, m ringi.Model) *ringi.ModelTurn {
	t.Helper()
	var turn *ringi.ModelTurn
	faults := 0
	for ev, err := range m.Generate(context.Background(), oneRequest()) {
		if turn != nil || faults > 0 {
			t.Errorf("something behind the end: %+v, %v", ev, err)
		}
		if err != nil {
			faults++
			if e, ok := ringi.ModelErrorOf(err); !ok || e.Class == "" {
				t.Errorf("error without a class: %v", err)
			}
		}
		if ev.Turn != nil {
			turn = ev.Turn
		}
	}
	if (turn != nil) == (faults > 0) {
		t.Errorf("turn %+v and %d errors", turn, faults)
	}
	if turn == nil {
		return nil
	}
	for _, c := range turn.Calls {
		if c.Tool == "" {
			t.Errorf("a call without a name: %+v", turn)
		}
	}
	return turn
}

// canned answers every request with the same.
func canned(status int, retryAfter, body string) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {"text/event-stream"}}
		if retryAfter != "" {
			h.Set("Retry-After", retryAfter)
		}
		if r.Body != nil {
			r.Body.Close()
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip answers a request.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
