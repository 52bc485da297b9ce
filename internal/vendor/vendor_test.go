package vendor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second}, {"Retry-After", "0.5", 500 * time.Millisecond}, {"Retry-After", "0", 0}, {"Retry-After", "-3", 0},
		{"Retry-After", "soon", 0}, {"Retry-After", "", 0}, {"Retry-After", "1e300", 0}, {"Retry-After", "NaN", 0}, {"Retry-After", "Inf", 0},
		{"Retry-After", "Mon, 05 Jan 2026 09:01:30 GMT", 90 * time.Second}, {"Retry-After", "Mon, 05 Jan 2026 08:00:00 GMT", 0},
		{"Retry-After-Ms", "250", 250 * time.Millisecond}, {"Retry-After-Ms", "x", 0}, {"Retry-After-Ms", "1e300", 0},
	} {
		h := http.Header{}
		h.Set(c.name, c.value)
		if got := RetryAfter(h, now); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.name, c.value, got, c.want)
		}
	}
}

func TestSeal(t *testing.T) {
	for _, data := range []string{"", "{}", "a\nb\r\n\x00"} {
		if got, ok := Open("a/b \"c\"", Seal("a/b \"c\"", data)); !ok || got != data {
			t.Errorf("%q came back as %q, %t", data, got, ok)
		}
	}
	for _, opaque := range []string{"", "a", "b\n{}", "aa\n{}", "\n{}"} {
		if got, ok := Open("a", opaque); ok {
			t.Errorf("%q was opened as %q", opaque, got)
		}
	}
}

func TestLabel(t *testing.T) {
	for name, want := range map[string]string{"": "unnamed", "pay": "pay", "a.b c": "a_b_c", "ä": "__", strings.Repeat("x", 70): strings.Repeat("x", 64)} {
		if got := Label(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// The same conversation gives the same ids, however long it has become, so that
// what was sent is sent again.
func TestS39_IDsDependOnWhatStandsBefore(t *testing.T) {
	var msgs []ringi.Message
	for _, ids := range [][]string{{"", "a", "a"}, {"fc:1/α", "", strings.Repeat("x", 41)}, {"a", "b"}, {""}} {
		m := ringi.Message{Role: ringi.RoleAssistant}
		r := ringi.Message{Role: ringi.RoleTool}
		for _, id := range ids {
			m.Calls = append(m.Calls, ringi.ToolCall{ModelID: id, Tool: "t"})
			r.Results = append(r.Results, ringi.ToolResult{ModelID: id, Tool: "t"})
		}
		msgs = append(msgs, ringi.User("go"), m, r)
	}
	ids := func(n int) []string {
		entries, err := Conversation(msgs[:n], Form{MaxID: 40})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range entries {
			for i, c := range e.Calls {
				out = append(out, c.ID)
				if !plain(c.ID) || len(c.ID) > 40 || c.ID == "" {
					t.Errorf("id %q of call %d", c.ID, i)
				}
			}
		}
		return out
	}
	whole := ids(len(msgs))
	seen := map[string]bool{}
	for _, id := range whole {
		if seen[id] {
			t.Errorf("id %q stands there twice", id)
		}
		seen[id] = true
	}
	for n := 3; n <= len(msgs); n += 3 {
		if got := ids(n); fmt.Sprint(got) != fmt.Sprint(whole[:len(got)]) {
			t.Errorf("%d messages: %q, want the beginning of %q", n, got, whole)
		}
	}
	if whole[1] != "a" || whole[7] != "b" {
		t.Errorf("ids that every vendor takes were replaced: %q", whole)
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// endless never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

func TestWatched_AnAnswerHasAnEnd(t *testing.T) {
	for status, class := range map[int]ringi.ModelErrorClass{200: ringi.ModelBroken, 500: ringi.ModelServer} {
		ctx, call := Watch(t.Context(), "test", Limits{})
		req, err := http.NewRequestWithContext(ctx, "POST", "http://x", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := Transport{tripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: endless{}, Header: http.Header{}}, nil
		})}.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		if e, ok := ringi.ModelErrorOf(call.Err(err, nil)); !ok || e.Class != class {
			t.Errorf("%d: %v", status, call.Err(err, nil))
		}
		call.End()
	}
}

func TestWatched_TellsNoSecret(t *testing.T) {
	_, call := Watch(t.Context(), "test", Limits{}, "", "topsecret")
	defer call.End()
	got := call.Told("a topsecret\x00\n" + strings.Repeat("ä", 1000))
	if strings.Contains(got, "topsecret") || strings.ContainsAny(got, "\x00\n") || len(got) > maxTold+8 || !strings.HasPrefix(got, "a [key]  ä") {
		t.Errorf("told %q", got)
	}
	if err := call.Err(errors.New("topsecret"), nil); strings.Contains(err.Error(), "topsecret") {
		t.Errorf("told %v", err)
	}
	if err := call.Fault(Said{Text: "topsecret", Code: "topsecret"}); strings.Contains(err.Error(), "topsecret") {
		t.Errorf("told %v", err)
	}
}

// A request that nobody watches passes as it is.
func TestTransport_Unwatched(t *testing.T) {
	want := &http.Response{StatusCode: 500, Body: http.NoBody}
	req, _ := http.NewRequestWithContext(context.Background(), "GET", "http://x", nil)
	got, err := Transport{tripper(func(*http.Request) (*http.Response, error) { return want, nil })}.RoundTrip(req)
	if got != want || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
