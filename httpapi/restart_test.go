package httpapi_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi/httpapi"
)

// another is a second server over the same service, as after a restart.
func (w *world) another(change func(*httpapi.Options)) *world {
	w.t.Helper()
	o := w.o
	if change != nil {
		change(&o)
	}
	h, err := httpapi.New(o)
	w.must(err)
	server := httptest.NewServer(h)
	w.t.Cleanup(server.Close)
	next := &world{t: w.t, url: server.URL, dir: w.dir, token: w.token, router: w.router}
	return next
}

// A cursor goes on at another server, and after a restart, where the secret is
// the same; where it is another one, or somebody else's cursor, it is refused.
func TestCursorsOutliveTheProcess(t *testing.T) {
	w := newWorld(t, setting{options: func(o *httpapi.Options) { o.Secret = []byte(strings.Repeat("s", 32)) }})
	first := w.start("uma", "shop", "refund 5")
	w.start("uma", "shop", "refund 6")
	var page struct {
		Requests []request
		Next     string
	}
	w.do("ben", "GET", "/v1/approvals?limit=1", "").into(t, &page)
	if len(page.Requests) != 1 || page.Requests[0].ID != first.Pending[0].ID || page.Next == "" {
		t.Fatalf("%+v", page)
	}
	next := "/v1/approvals?limit=1&cursor=" + page.Next
	restarted := w.another(nil)
	page.Next = ""
	restarted.do("ben", "GET", next, "").into(t, &page)
	if len(page.Requests) != 1 || page.Requests[0].ID == first.Pending[0].ID || page.Next != "" {
		t.Errorf("after a restart: %+v", page)
	}
	if got := restarted.do("bea", "GET", next, ""); got.status != 400 {
		t.Errorf("somebody else's: %d", got.status)
	}
	foreign := w.another(func(o *httpapi.Options) { o.Secret = []byte(strings.Repeat("x", 32)) })
	if got := foreign.do("ben", "GET", next, ""); got.status != 400 {
		t.Errorf("of another secret: %d", got.status)
	}
	if _, err := httpapi.New(httpapi.Options{Service: w.router, Directory: w.dir, Authenticator: w.o.Authenticator, Secret: []byte("short")}); err == nil {
		t.Error("a short secret is taken")
	}
}

// A stream goes on at another server: what changed meanwhile is told there, and
// nothing that its reader may not see.
func TestInboxStreamsOutliveTheProcess(t *testing.T) {
	w := newWorld(t, setting{options: func(o *httpapi.Options) { o.Secret = []byte(strings.Repeat("s", 32)) }})
	events := w.follow(t.Context(), "bea", "/v1/events", "")
	w.start("uma", "shop", "refund 5")
	seen, _ := next(t, events)
	meanwhile := w.start("uma", "shop", "refund 6")
	w.start("uma", "shop", "teamwork 7") // not bea's
	decided := w.start("uma", "shop", "refund 8")
	if got := w.decide("ben", w.asked("ben", decided), `{"answer":"deny"}`); got.status != 201 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	restarted := w.another(nil)
	events = restarted.follow(t.Context(), "bea", "/v1/events", seen.id)
	want := map[string]bool{meanwhile.Pending[0].ID: true, decided.Pending[0].ID: true}
	var last sse
	for len(want) > 0 {
		if last, _ = next(t, events); last.kind != "approval" {
			t.Fatalf("going on gave %+v", last)
		}
		for id := range want {
			if strings.Contains(last.data, id) {
				delete(want, id)
			}
		}
	}
	fresh := w.start("uma", "shop", "refund 9")
	for !strings.Contains(last.data, fresh.Pending[0].ID) {
		last, _ = next(t, events)
		if strings.Contains(last.data, "teamwork") || last.kind != "approval" {
			t.Fatalf("%+v", last)
		}
	}
	again := restarted.follow(t.Context(), "bea", "/v1/events", last.id)
	newest := w.start("uma", "shop", "refund 10")
	if ev, _ := next(t, again); !strings.Contains(ev.data, newest.Pending[0].ID) {
		t.Errorf("from the id of this process: %+v", ev)
	}
	foreign := w.another(func(o *httpapi.Options) { o.Secret = nil })
	if ev, _ := next(t, foreign.follow(t.Context(), "bea", "/v1/events", seen.id)); ev.kind != "reset" {
		t.Errorf("an id of another secret gave %+v", ev)
	}
}
