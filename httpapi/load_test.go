package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// Fifty approvers decide five hundred requests, all of them all at once: each
// request is decided once, what was approved runs once, and whoever came second
// is told who was first.
func TestFiftyApproversFiveHundredRequests(t *testing.T) {
	runs, each, people := 50, 10, 50
	if testing.Short() {
		runs, people = 10, 10
	}
	w := newWorld(t, setting{})
	approvers := make([]string, people)
	for i := range approvers {
		name := fmt.Sprint("approver", i)
		u := access.User{ID: access.LocalID(name), Name: name, Roles: []access.Role{access.RoleApprover}}
		w.must(w.dir.AddUser(t.Context(), operator, u))
		w.tokenFor(access.NewToken{Kind: access.PersonToken, Name: name, Owner: u.ID, Scopes: []access.Scope{access.ScopeRead, access.ScopeDecide}})
		approvers[i] = name
	}
	var all []request
	for range runs {
		r := w.start("uma", "shop", "refund"+strings.Repeat(" 5", each))
		for i := range r.Pending {
			all = append(all, w.asked("ben", run{Pending: r.Pending[i : i+1]}))
		}
	}
	begun := time.Now()
	var mu sync.Mutex
	first := map[string][]string{} // request → who was told 201, and what he said
	counts := map[int]int{}
	var wg sync.WaitGroup
	for i, who := range approvers {
		wg.Go(func() {
			answer := []string{"approve", "deny"}[i%2]
			for j := range each * 3 { // each request is tried by about three
				q := all[(i*each+j*17)%len(all)]
				got := w.decide(who, q, `{"answer":"`+answer+`"}`)
				mu.Lock()
				counts[got.status]++
				if got.status == 201 {
					first[q.ID] = append(first[q.ID], access.LocalID(who)+" "+answer)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	for _, q := range all { // those that nobody came to
		if len(first[q.ID]) == 0 {
			if got := w.decide("ben", q, `{"answer":"deny"}`); got.status == 201 {
				first[q.ID] = append(first[q.ID], "local:ben deny")
			}
		}
	}
	for _, q := range all {
		if len(first[q.ID]) != 1 {
			t.Errorf("request %s was decided %d times: %v", q.ID, len(first[q.ID]), first[q.ID])
		}
	}
	for status := range counts {
		if status != 201 && status != 409 {
			t.Errorf("%d answers of status %d", counts[status], status)
		}
	}
	w.recorded(all, first)
	t.Logf("%d requests, %d decisions tried in %s: %v", len(all), people*each*3, took, counts)
}

// recorded holds what was answered against the log and against what ran.
func (w *world) recorded(all []request, first map[string][]string) {
	done := map[string]bool{}
	for _, q := range all {
		if done[q.RunID] {
			continue
		}
		done[q.RunID] = true
		for end := time.Now().Add(90 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			row, err := w.router.Row(w.t.Context(), q.RunID)
			w.must(err)
			if row.Status.Final() {
				break
			}
			if time.Now().After(end) {
				w.t.Fatalf("run %s is %s", row.ID, row.Status)
			}
		}
		events, err := w.router.Events(w.t.Context(), q.RunID, 0)
		w.must(err)
		for _, ev := range events {
			if d, ok := ev.Body.(*ringi.ApprovalDecided); ok {
				if said := d.By.ID + " " + string(d.Answer); len(first[d.Request]) != 1 || first[d.Request][0] != said {
					w.t.Errorf("request %s: %v was told that he decided, and the log has %s", d.Request, first[d.Request], said)
				}
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range all {
		want := 0
		if strings.HasSuffix(strings.Join(first[q.ID], ""), " approve") {
			want = 1
		}
		if n := w.ran[q.Call.ID]; n != want {
			w.t.Errorf("call %s ran %d times, want %d: %v", q.Call.ID, n, want, first[q.ID])
		}
	}
}

func TestS25_IdempotencyKey(t *testing.T) {
	w := newWorld(t, setting{})
	body := `{"agent":"shop","text":"refund 5"}`
	first := w.do("uma", "POST", "/v1/runs", body, "Idempotency-Key", "k")
	again := w.do("uma", "POST", "/v1/runs", body, "Idempotency-Key", "k")
	if first.status != 201 || again.status != 200 || again.header.Get("Idempotency-Replayed") != "true" || again.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("%d %s, then %d %s", first.status, first.body, again.status, again.body)
	}
	if got := w.do("udo", "POST", "/v1/runs", body, "Idempotency-Key", "k"); got.status != 201 || got.header.Get("Location") == first.header.Get("Location") {
		t.Errorf("another's key: %d %s", got.status, got.body)
	}
	if got := w.do("uma", "POST", "/v1/runs", `{"agent":"shop","text":"refund 6"}`, "Idempotency-Key", "k"); got.status != 422 {
		t.Errorf("another body: %d", got.status)
	}
	// Every POST takes one, and a repeat has no second effect.
	r := w.start("uma", "shop", "refund 5 6")
	q := w.asked("ben", r)
	for range 2 {
		if got := w.decide("ben", q, `{"answer":"approve"}`, "Idempotency-Key", "d"); got.status/100 != 2 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	for range 2 {
		if got := w.do("uma", "POST", "/v1/approvals/"+r.Pending[1].ID+"/withdrawal", `{}`, "Idempotency-Key", "d"); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
		if got := w.do("uma", "POST", "/v1/runs/"+r.RunID+"/cancel", `{}`, "Idempotency-Key", "d"); got.status != 200 && got.status != 409 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	// What was refused is tried anew; who lost the right gets no stored answer.
	r = w.start("uma", "shop", "refund 5")
	q = w.asked("ben", r)
	path, good := "/v1/approvals/"+q.ID+"/decisions", `{"digest":"`+q.Digest+`","answer":"approve"}`
	if got := w.do("ben", "POST", path, good, "Idempotency-Key", "e", "If-Match", `"x.pending"`); got.status != 412 {
		t.Errorf("%d", got.status)
	}
	if got := w.do("ben", "POST", path, good, "Idempotency-Key", "e", "If-Match", q.tag()); got.status != 201 {
		t.Errorf("%d %s", got.status, got.body)
	}
	u, err := w.dir.User(t.Context(), access.LocalID("ben"))
	w.must(err)
	u.Roles = []access.Role{access.RoleUser}
	w.must(w.dir.SetUser(t.Context(), operator, u))
	if got := w.do("ben", "POST", path, good, "Idempotency-Key", "e", "If-Match", q.tag()); got.status != 403 {
		t.Errorf("after the right is gone: %d %s", got.status, got.body)
	}
}

// A start whose first try died after it was recorded is found again.
func TestS25_AStartThatDiedIsFoundAgain(t *testing.T) {
	w := newWorld(t, setting{})
	body := `{"agent":"shop","text":"say hi"}`
	first := w.do("uma", "POST", "/v1/runs", body, "Idempotency-Key", "k")
	_, err := w.db.Exec(`UPDATE answers SET state = 'in_flight', started_at = started_at - 600000000`)
	w.must(err)
	again := w.do("uma", "POST", "/v1/runs", body, "Idempotency-Key", "k")
	var a, b run
	first.into(t, &a)
	again.into(t, &b)
	if a.RunID == "" || a.RunID != b.RunID {
		t.Errorf("%s, then %d %s", first.body, again.status, again.body)
	}
}

func TestBatchOfDecisions(t *testing.T) {
	w := newWorld(t, setting{})
	r := w.start("uma", "shop", "refund 5 6 7")
	var items []map[string]any
	for i, answer := range []string{"approve", "deny", "approve"} {
		q := w.asked("ben", run{Pending: r.Pending[i : i+1]})
		items = append(items, map[string]any{"id": q.ID, "if_match": q.tag(), "digest": q.Digest, "answer": answer})
	}
	items[2]["digest"] = "other"
	items = append(items, map[string]any{"id": "req_none", "if_match": "x", "digest": "x", "answer": "deny"},
		map[string]any{"id": items[2]["id"], "digest": "x", "answer": "deny"})
	got := w.do("ben", "POST", "/v1/approval-batches", mustJSON(t, map[string]any{"items": items}))
	var out struct {
		Results []struct {
			ID      string
			Status  int
			Problem *struct{ Type string }
		}
	}
	got.into(t, &out)
	var statuses []int
	for i, one := range out.Results {
		statuses = append(statuses, one.Status)
		if one.ID != items[i]["id"] || (one.Problem == nil) != (one.Status == 201) {
			t.Errorf("result %d is %+v", i, one)
		}
	}
	if fmt.Sprint(got.status, statuses) != "200 [201 201 409 404 428]" {
		t.Errorf("%d %s", got.status, got.body)
	}
	for n, want := range map[int]int{0: 422, 50: 200, 51: 422} {
		many := make([]map[string]any, n)
		for i := range many {
			many[i] = items[3]
		}
		if got := w.do("ben", "POST", "/v1/approval-batches", mustJSON(t, map[string]any{"items": many})); got.status != want {
			t.Errorf("a batch of %d: %d", n, got.status)
		}
	}
}

func TestLongPollAndETag(t *testing.T) {
	w := newWorld(t, setting{})
	r := w.start("uma", "shop", "refund 5")
	q := w.asked("ben", r)
	path := "/v1/approvals/" + q.ID
	if got := w.do("ben", "GET", path, "", "If-None-Match", q.tag()); got.status != 304 || got.body != "" {
		t.Errorf("the same version: %d %s", got.status, got.body)
	}
	begun := time.Now()
	if got := w.do("ben", "GET", path+"?wait=300ms", "", "If-None-Match", q.tag()); got.status != 304 || time.Since(begun) < 250*time.Millisecond {
		t.Errorf("nothing happened: %d after %s", got.status, time.Since(begun))
	}
	for _, wait := range []string{"61s", "-1s", "soon"} {
		if got := w.do("ben", "GET", path+"?wait="+wait, ""); got.status != 422 {
			t.Errorf("wait=%s: %d", wait, got.status)
		}
	}
	woken := make(chan reply, 1)
	go func() { woken <- w.do("uma", "GET", path+"?wait=20s", "") }()
	time.Sleep(30 * time.Millisecond)
	w.decide("ben", q, `{"answer":"deny","reason":"no"}`)
	got := <-woken
	var now request
	got.into(t, &now)
	if now.State != "denied" || got.header.Get("ETag") != `"`+q.ID+`.denied"` {
		t.Errorf("%d %s %s", got.status, got.header.Get("ETag"), got.body)
	}
	if again := w.asked("ben", r); again.Reason != "no" {
		t.Errorf("the reason is %q", again.Reason)
	}
	var events map[string]any
	w.do("ada", "GET", "/v1/runs/"+r.RunID+"/events", "").into(t, &events)
	if b, _ := json.Marshal(events); !strings.Contains(string(b), `"channel":"api:loopback"`) || !strings.Contains(string(b), `"auth":"token:`) {
		t.Errorf("the log does not say how it was decided: %s", b)
	}
}

// A thread is its authors' own: another's is as unknown as one that is none.
func TestS21_NobodyWritesIntoAnothersThread(t *testing.T) {
	w := newWorld(t, setting{})
	r := w.start("uma", "shop", "say hi")
	var bodies []string
	for _, thread := range []string{r.Thread, "thr_none"} {
		got := w.do("udo", "POST", "/v1/runs", `{"agent":"shop","text":"say hi","thread":"`+thread+`"}`)
		if got.status != 404 {
			t.Errorf("%s: %d %s", thread, got.status, got.body)
		}
		bodies = append(bodies, got.body)
	}
	if bodies[0] != bodies[1] {
		t.Errorf("%s differs from %s", bodies[0], bodies[1])
	}
	if got := w.do("uma", "POST", "/v1/runs?wait=20s", `{"agent":"shop","text":"say more","thread":"`+r.Thread+`"}`); got.status != 201 {
		t.Errorf("his own: %d %s", got.status, got.body)
	}
	var page struct {
		Messages []struct{ Role, Text, Author string }
	}
	w.do("uma", "GET", "/v1/threads/"+r.Thread+"/messages", "").into(t, &page)
	if fmt.Sprint(page.Messages) != "[{user say hi local:uma} {assistant done } {user say more local:uma} {assistant done }]" {
		t.Errorf("messages %v", page.Messages)
	}
	if got := w.do("bot", "POST", "/v1/runs", `{"agent":"other","text":"say hi"}`); got.status != 404 {
		t.Errorf("an agent that the token is not for: %d %s", got.status, got.body)
	}
}
