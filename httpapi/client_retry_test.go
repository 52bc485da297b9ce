package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/httpapi"
)

// flaky is a server that answers with what its list says, one after another, and
// then that all is well.
type flaky struct {
	mu      sync.Mutex
	answers []func(http.ResponseWriter)
	keys    []string
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keys = append(f.keys, r.Header.Get("Idempotency-Key"))
	if len(f.answers) == 0 {
		w.Write([]byte(`{}`))
		return
	}
	answer := f.answers[0]
	f.answers = f.answers[1:]
	answer(w)
}

// asked are the keys of the requests that came, one for each.
func (f *flaky) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.keys)
}

func refusal(status int, word string, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		if word != "" {
			fmt.Fprintf(w, `{"type":"urn:ringi:problem:%s","title":"no","status":%d}`, word, status)
		}
	}
}

func cut(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// The client repeats what is safe to repeat, under one Idempotency-Key, and
// nothing else.
func TestClientRepeatsWhatIsSafe(t *testing.T) {
	read := func(c *httpapi.Client) error { _, err := c.Row(t.Context(), "run_1"); return err }
	cancel := func(c *httpapi.Client) error { return c.Cancel(t.Context(), "run_1", ringi.Principal{}, "", false) }
	secret := func(c *httpapi.Client) error { _, err := c.MakeToken(t.Context(), httpapi.TokenBody{}); return err }
	limit := func(err error) bool { _, ok := errors.AsType[*access.LimitError](err); return ok }
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	for _, c := range []struct {
		name    string
		do      func(*httpapi.Client) error
		answers []func(http.ResponseWriter)
		tries   int
		fails   func(error) bool // nil: it succeeds
	}{
		{"cut off, reading", read, []func(http.ResponseWriter){cut}, 2, nil},
		{"cut off, writing", cancel, []func(http.ResponseWriter){cut, cut}, 3, nil},
		{"cut off, with a secret", secret, []func(http.ResponseWriter){cut}, 1, func(err error) bool { return err != nil }},
		{"stopping", cancel, []func(http.ResponseWriter){refusal(503, "stopping"), refusal(503, "not-recorded")}, 3, nil},
		{"a proxy without a server", read, []func(http.ResponseWriter){refusal(502, ""), refusal(503, ""), refusal(504, "")}, 4, nil},
		{"in flight", cancel, []func(http.ResponseWriter){refusal(409, "in-flight")}, 2, nil},
		{"too many", read, []func(http.ResponseWriter){refusal(429, "too-many", "Retry-After", "1")}, 2, nil},
		{"too many for long", read, []func(http.ResponseWriter){refusal(429, "too-many", "Retry-After", "3600")}, 1, limit},
		{"always", read, []func(http.ResponseWriter){cut, cut, cut, cut, cut}, 4, func(err error) bool { return err != nil }},
		{"no key", read, []func(http.ResponseWriter){refusal(503, "no-key")}, 1, is(ringi.ErrNoKey)},
		{"conflict", cancel, []func(http.ResponseWriter){refusal(409, "conflict")}, 1, is(ringi.ErrConflict)},
		{"nobody", read, []func(http.ResponseWriter){refusal(401, "no-principal")}, 1, is(ringi.ErrNoPrincipal)},
		{"forbidden", cancel, []func(http.ResponseWriter){refusal(403, "forbidden")}, 1, is(access.ErrForbidden)},
		{"not found", read, []func(http.ResponseWriter){refusal(404, "not-found")}, 1, is(ringi.ErrNotFound)},
		{"expired", cancel, []func(http.ResponseWriter){refusal(410, "expired")}, 1, is(ringi.ErrExpired)},
		{"answer", cancel, []func(http.ResponseWriter){refusal(422, "answer-not-allowed")}, 1, is(ringi.ErrAnswer)},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &flaky{answers: c.answers}
			server := httptest.NewServer(f)
			defer server.Close()
			client, err := httpapi.NewClient(server.URL, "t")
			if err != nil {
				t.Fatal(err)
			}
			client.HTTP = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			begun := time.Now()
			err = c.do(client)
			if c.fails == nil && err != nil || c.fails != nil && !c.fails(err) {
				t.Errorf("it gives %v", err)
			}
			keys := f.asked()
			if len(keys) != c.tries {
				t.Errorf("%d tries, want %d", len(keys), c.tries)
			}
			for _, key := range keys {
				if key != keys[0] {
					t.Errorf("keys %q", keys)
				}
			}
			if writes := strings.Contains(c.name, "writing") || c.name == "in flight" || c.name == "stopping"; writes && keys[0] == "" {
				t.Error("a repeated POST without a key")
			}
			if c.name == "too many" && time.Since(begun) < time.Second {
				t.Error("Retry-After does not count")
			}
		})
	}
}

// A ctx that ends ends the repeats, and a body that is too large is not sent.
func TestClientHasBounds(t *testing.T) {
	f := &flaky{answers: []func(http.ResponseWriter){refusal(429, "too-many", "Retry-After", "20")}}
	server := httptest.NewServer(f)
	defer server.Close()
	client, err := httpapi.NewClient(server.URL, "t")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := client.Row(ctx, "run_1"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 30*time.Second {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
	tries := len(f.asked())
	if err := client.Cancel(t.Context(), "run_1", ringi.Principal{}, strings.Repeat("x", httpapi.MaxBody), false); !errors.Is(err, ringi.ErrTooLarge) || len(f.asked()) != tries {
		t.Errorf("a body that is too large: %v, %d tries", err, len(f.asked())-tries)
	}
	if _, err := client.Requests(t.Context(), ringi.RequestQuery{Search: strings.Repeat("x", 201)}); !errors.Is(err, ringi.ErrTooLarge) {
		t.Errorf("a search that is too long: %v", err)
	}
}
