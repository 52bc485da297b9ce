package inbox_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// ear is what a page hears.
type ear struct {
	mu     sync.Mutex
	kinds  []string
	all    string
	states map[string]string // request → state
	seqs   map[string]int64  // run → newest event
	missed bool
}

// hear listens at an address until the test ends.
func (b *browser) hear(path string) *ear {
	b.t.Helper()
	res, err := b.client.Get(b.h.server.URL + path)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		b.t.Fatalf("%s: %d %s", path, res.StatusCode, res.Header.Get("Content-Type"))
	}
	e := &ear{states: map[string]string{}, seqs: map[string]int64{}}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<24)
	go func() {
		for lines.Scan() {
			e.take(lines.Text())
		}
	}()
	return e
}

func (e *ear) take(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all += line + "\n"
	if kind, ok := strings.CutPrefix(line, "event: "); ok {
		e.kinds = append(e.kinds, kind)
	}
	data, ok := strings.CutPrefix(line, "data: ")
	if !ok {
		return
	}
	var said struct {
		News []struct {
			ID, Run, State string
			Seq            int64
		}
		Missed bool
	}
	if json.Unmarshal([]byte(data), &said) != nil {
		return
	}
	e.missed = e.missed || said.Missed
	for _, n := range said.News {
		if n.ID != "" {
			e.states[n.ID] = n.State
		}
		e.seqs[n.Run] = max(e.seqs[n.Run], n.Seq)
	}
}

func (e *ear) heard(kind string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.kinds, kind)
}

func (e *ear) state(id string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.states[id]
}

func (e *ear) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all
}

func since(t time.Time) string { return fmt.Sprint("/events?since=", t.UnixMilli()) }

func approvedBy(id string, r ringi.ApprovalRequest) ringi.Decision {
	return r.Approve(ringi.Principal{ID: id, Kind: ringi.Person, Auth: "test"})
}

func TestEventsTellIdsAndStatesAlone(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana, otto := h.add("Ana", access.RoleUser, access.RoleApprover), h.add("Otto", access.RoleUser)
	b, o := h.browser(ana), h.browser(otto)
	made := time.Now()
	r := h.asks(ana, kettle)
	mine, others := b.hear(since(made)), o.hear(since(made))
	page, run := b.hear("/events?request="+r.ID), b.hear("/events?run="+r.RunID)
	until(t, "what came since the list was made", func() bool { return mine.state(r.ID) == "pending" && page.state(r.ID) == "pending" && run.heard("all") })
	run.mu.Lock()
	before := run.seqs[r.RunID]
	run.mu.Unlock()
	another := h.asks(ana, kettle)
	until(t, "another request", func() bool { return mine.state(another.ID) == "pending" })
	if _, err := h.router.Decide(t.Context(), approvedBy(ana, r)); err != nil {
		t.Fatal(err)
	}
	until(t, "the decision", func() bool { return mine.state(r.ID) == "approved" && page.state(r.ID) == "approved" })
	until(t, "that the run has grown", func() bool { run.mu.Lock(); defer run.mu.Unlock(); return run.seqs[r.RunID] > before })
	for _, secret := range []string{"3490", "kettle", "Mira", "refund"} {
		if strings.Contains(mine.text(), secret) {
			t.Errorf("the stream tells %q", secret)
		}
	}
	until(t, "an answer to another", func() bool { return others.heard("all") })
	if strings.Contains(others.text(), r.ID) || strings.Contains(others.text(), another.ID) {
		t.Error("the stream tells another's request")
	}
	if page.state(another.ID) != "" || run.state(another.ID) != "" {
		t.Error("a request's page is told of another request")
	}
	for path, want := range map[string]int{"/events?run=run_unknown": 404, "/events?request=" + r.ID + "x": 404, "/events?since=yesterday": 400} {
		if res, err := b.client.Get(h.server.URL + path); err != nil || res.StatusCode != want {
			t.Errorf("%s: %v %v", path, res.StatusCode, err)
		}
	}
	if res, err := o.client.Get(h.server.URL + "/events?request=" + r.ID); err != nil || res.StatusCode != 404 {
		t.Errorf("another's request: %v %v", res.StatusCode, err)
	}
	if res, err := http.Get(h.server.URL + "/events"); err != nil || res.StatusCode != 401 {
		t.Errorf("nobody: %v %v", res.StatusCode, err)
	}
}

// Every open run is heard of, however many there are: the feed is followed, and
// not the newest rows.
func TestEventsOfTheOldestAmongManyRuns(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	oldest := h.asks(ana, kettle)
	for range 1000 {
		h.asks(ana, kettle)
	}
	b := h.browser(ana)
	list, page := b.hear(since(time.Now())), b.hear("/events?request="+oldest.ID)
	until(t, "the first words", func() bool { return list.heard("all") && page.heard("all") })
	if strings.Contains(list.text(), `"missed":true`) {
		t.Error("a list made now is told that it missed something")
	}
	if _, err := h.router.Decide(t.Context(), approvedBy(ana, oldest)); err != nil {
		t.Fatal(err)
	}
	until(t, "the decision", func() bool { return list.state(oldest.ID) == "approved" && page.state(oldest.ID) == "approved" })
}

// A list that was made long ago is told that it may have missed something.
func TestEventsSayWhatCannotBeTold(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	b := h.browser(h.add("Ana", access.RoleApprover))
	old := b.hear(since(time.Now().Add(-time.Hour)))
	until(t, "that something may be missed", func() bool { old.mu.Lock(); defer old.mu.Unlock(); return old.missed })
}

// One person's pages do not take everybody's place among those that listen, and
// a page that has gone gives its own back.
func TestEventsOfOnePersonAreBounded(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana, ben := h.browser(h.add("Ana", access.RoleApprover)), h.browser(h.add("Ben", access.RoleApprover))
	listen := func(b *browser) *http.Response {
		t.Helper()
		res, err := b.client.Get(h.server.URL + "/events")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	var open []*http.Response
	refused := 0
	for range 60 {
		if res := listen(ana); res.StatusCode == http.StatusOK {
			open = append(open, res)
		} else if refused++; res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Fatalf("refused with %d", res.StatusCode)
		}
	}
	if len(open) != 50 || refused != 10 {
		t.Errorf("%d pages of one person listen", len(open))
	}
	if res := listen(ben); res.StatusCode != http.StatusOK {
		t.Errorf("another person gets %d", res.StatusCode)
	}
	for _, res := range open {
		res.Body.Close()
	}
	until(t, "a place that was given back", func() bool { return listen(ana).StatusCode == http.StatusOK })
}
