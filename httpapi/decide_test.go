package httpapi_test

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A person approves over HTTP, and the agent goes on.
func TestApproveAndTheRunGoesOn(t *testing.T) {
	w := newWorld(t, setting{})
	r := w.start("uma", "shop", "refund 5")
	if r.Status != "waiting_for_approval" || len(r.Pending) != 1 {
		t.Fatalf("run %+v", r)
	}
	q := w.asked("ben", r)
	got := w.decide("ben", q, `{"answer":"approve"}`)
	if got.status != 201 {
		t.Fatalf("decide: %d %s", got.status, got.body)
	}
	got = w.do("uma", "GET", "/v1/runs/"+r.RunID+"?wait=20s", "")
	var now run
	got.into(t, &now)
	if now.Status != "completed" || now.Text != "done" {
		t.Errorf("run %s", got.body)
	}
	if n := w.ran[q.Call.ID]; n != 1 {
		t.Errorf("the call ran %d times", n)
	}
}

func TestDecisionsNameTheVersionThatWasSeen(t *testing.T) {
	w := newWorld(t, setting{})
	q := w.asked("ben", w.start("uma", "shop", "refund 5"))
	path, body := "/v1/approvals/"+q.ID+"/decisions", `{"answer":"approve","digest":"`+q.Digest+`"}`
	for _, c := range []struct {
		name, match, body string
		status            int
		word              string
	}{
		{"no If-Match", "", body, 428, "match-required"},
		{"any version", "*", body, 428, "match-required"},
		{"another version", `"other.pending"`, body, 412, "version-differs"},
		{"a weak tag", "W/" + q.tag(), body, 412, "version-differs"},
		{"another digest", q.tag(), `{"answer":"approve","digest":"other"}`, 409, "stale"},
		{"no digest", q.tag(), `{"answer":"approve"}`, 422, "invalid-request"},
		{"a principal in the body", q.tag(), strings.Replace(body, "{", `{"by":{"id":"local:bea"},`, 1), 422, "invalid-request"},
		{"an answer that is none", q.tag(), strings.Replace(body, "approve", "shrug", 1), 422, "invalid-request"},
		{"a name twice", q.tag(), strings.Replace(body, "{", `{"answer":"deny",`, 1), 400, "malformed"},
		{"a twin by letter case", q.tag(), strings.Replace(body, "{", `{"Answer":"deny",`, 1), 400, "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var header []string
			if c.match != "" {
				header = []string{"If-Match", c.match}
			}
			got := w.do("ben", "POST", path, c.body, header...)
			if p := got.problem(t); got.status != c.status || p.Type != "urn:ringi:problem:"+c.word {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	if got := w.asked("ben", run{Pending: []request{q}}); got.State != "pending" {
		t.Errorf("it is %s", got.State)
	}
}

func TestTheSecondDeciderIsToldWhoWasFirst(t *testing.T) {
	w := newWorld(t, setting{idle: true})
	var r run
	w.do("uma", "POST", "/v1/runs", `{"agent":"shop","text":"refund 5"}`).into(t, &r)
	if _, err := w.router.Resume(t.Context(), r.RunID); err != nil {
		t.Fatal(err)
	}
	w.do("uma", "GET", "/v1/runs/"+r.RunID, "").into(t, &r)
	q := w.asked("ben", r)
	if got := w.decide("ben", q, `{"answer":"approve","note":"n"}`); got.status != 201 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := w.decide("ben", q, `{"answer":"approve"}`); got.status != 200 || !strings.Contains(got.body, `"state":"approved"`) {
		t.Errorf("the same again: %d %s", got.status, got.body)
	}
	for _, who := range []string{"bea", "ben"} {
		got := w.decide(who, q, `{"answer":"deny"}`)
		p := got.problem(t)
		if got.status != 409 || p.Type != "urn:ringi:problem:already-decided" || p.DecidedBy != "local:ben" || p.State != "approved" {
			t.Errorf("%s: %d %s", who, got.status, got.body)
		}
	}
}

// An answer in the tool's place reaches the model, and the tool does not run.
func TestRespondInTheToolsPlace(t *testing.T) {
	w := newWorld(t, setting{})
	r := w.start("uma", "shop", "refund 5")
	q := w.asked("ben", r)
	if got := w.decide("ben", q, `{"answer":"respond","result":"done by hand"}`); got.status != 201 || !strings.Contains(got.body, `"state":"spent"`) {
		t.Fatalf("%d %s", got.status, got.body)
	}
	got := w.do("ada", "GET", "/v1/runs/"+r.RunID+"?wait=20s", "")
	if !strings.Contains(got.body, `"output":"done by hand"`) || !strings.Contains(got.body, `"status":"completed"`) {
		t.Errorf("%s", got.body)
	}
	if n := w.ran[q.Call.ID]; n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
	if got := w.decide("bea", q, `{"answer":"approve"}`); got.problem(t).Type != "urn:ringi:problem:spent" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// What ran and did not come back is settled by a person's word.
func TestAnOutcomeIsSettled(t *testing.T) {
	w := newWorld(t, setting{idle: true, timeout: 300 * time.Millisecond})
	var r run
	w.do("uma", "POST", "/v1/runs", `{"agent":"shop","text":"refund 5"}`).into(t, &r)
	resume := func(ctx context.Context) {
		if _, err := w.router.Resume(ctx, r.RunID); err != nil {
			t.Log(err)
		}
		w.do("uma", "GET", "/v1/runs/"+r.RunID, "").into(t, &r)
	}
	resume(t.Context())
	if got := w.decide("ben", w.asked("ben", r), `{"answer":"approve"}`); got.status != 201 {
		t.Fatal(got.body)
	}
	w.mu.Lock()
	w.hang = true
	w.mu.Unlock()
	resume(t.Context())
	if r.Status != "waiting_for_outcome" || len(r.Pending) != 1 {
		t.Fatalf("run %+v", r)
	}
	q := w.asked("ben", r)
	if got := w.decide("ben", q, `{"answer":"approve"}`); got.problem(t).Type != "urn:ringi:problem:answer-not-allowed" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.decide("ben", q, `{"answer":"ran","result":"it did"}`); got.status != 201 {
		t.Errorf("%d %s", got.status, got.body)
	}
	resume(t.Context())
	if r.Status != "completed" {
		t.Errorf("run %+v", r)
	}
}
