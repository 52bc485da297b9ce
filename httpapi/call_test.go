package httpapi_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/httpapi"
)

// withCalls makes the agents take calls of foreign loops: of two external
// tools, and of what nobody registered.
func withCalls(c *engine.Config) {
	for _, t := range []ringi.Tool{
		{Name: "wire", Description: "Wires money.", Effect: ringi.NonIdempotentWrite, AllowEdit: true, AllowRespond: true, Timeout: 10 * time.Second, InputSchema: refundSchema},
		{Name: "peek", Effect: ringi.ReadOnly, Timeout: time.Minute},
	} {
		if err := c.Registry.AddExternal(t); err != nil {
			panic(err)
		}
	}
	c.ForeignTools = true
}

func newCallWorld(t testing.TB, change ...func(*engine.Config)) *world {
	w := newWorld(t, setting{engine: func(c *engine.Config) {
		withCalls(c)
		for _, f := range change {
			f(c)
		}
	}})
	agent := []access.Scope{access.ScopeRead, access.ScopeRun, access.ScopeCall}
	w.tokenFor(access.NewToken{Kind: access.AgentToken, Name: "crm", Unowned: true, Agents: []string{"shop"}, Scopes: agent})
	w.tokenFor(access.NewToken{Kind: access.AgentToken, Name: "ubot", Owner: access.LocalID("ben"), Agents: []string{"shop"}, Scopes: agent})
	w.tokenFor(access.NewToken{Kind: access.AgentToken, Name: "mute", Unowned: true, Agents: []string{"shop"}, Scopes: []access.Scope{access.ScopeRead, access.ScopeRun}})
	return w
}

// call asks for a call, which is new or known.
func (w *world) call(who, body string, header ...string) httpapi.LoopCall {
	w.t.Helper()
	got := w.do(who, "POST", "/v1/calls", body, header...)
	if got.status != 201 && got.status != 200 {
		w.t.Fatalf("judge: %d %s", got.status, got.body)
	}
	var c httpapi.LoopCall
	got.into(w.t, &c)
	return c
}

func (w *world) stands(who, id string, want ringi.CallState) httpapi.LoopCall {
	w.t.Helper()
	got := w.do(who, "GET", "/v1/calls/"+id+"?wait=20s", "")
	var c httpapi.LoopCall
	got.into(w.t, &c)
	if c.State != want {
		w.t.Fatalf("the call is %s, want %s: %s", c.State, want, got.body)
	}
	return c
}

// approve answers what a call waits for, as ben.
func (w *world) settle(c httpapi.LoopCall, body string) {
	w.t.Helper()
	q := w.asked("ben", run{Pending: []request{{ID: c.Approval.ID}}})
	if got := w.decide("ben", q, body); got.status != 201 {
		w.t.Fatalf("decide: %d %s", got.status, got.body)
	}
}

func (w *world) claim(who, id string) httpapi.ClaimedCall {
	w.t.Helper()
	got := w.do(who, "POST", "/v1/calls/"+id+"/start", `{}`)
	if got.status != 200 {
		w.t.Fatalf("start: %d %s", got.status, got.body)
	}
	var c httpapi.ClaimedCall
	got.into(w.t, &c)
	return c
}

func wants(t testing.TB, got reply, status int, word string) httpapi.Problem {
	t.Helper()
	p := got.problem(t)
	if got.status != status || p.Type != "urn:ringi:problem:"+word {
		t.Errorf("%d %s, want %d %s", got.status, got.body, status, word)
	}
	return p
}

const wire5 = `{"agent":"shop","tool":"wire","input":" {\"amount\":5 , \"pin\":\"PIN-5-secret\"}","model_id":"toolu_1"}`

// A foreign loop's call, from the question to the result.
func TestCallsOverHTTP(t *testing.T) {
	w := newCallWorld(t)
	got := w.do("bot", "POST", "/v1/calls", wire5)
	var c httpapi.LoopCall
	got.into(t, &c)
	if got.status != 201 || c.State != "waiting" || c.Tool != "wire" || c.Foreign != "" || c.Approval.URL != "/v1/approvals/"+c.Approval.ID || got.header.Get("Location") != "/v1/calls/"+c.ID {
		t.Fatalf("%d %s", got.status, got.body)
	}
	wants(t, w.do("bot", "POST", "/v1/calls/"+c.ID+"/start", `{}`), 409, "call-waiting")
	wants(t, w.do("bot", "POST", "/v1/calls/"+c.ID+"/result", `{"attempt":1,"output":"x"}`), 409, "not-started")
	begun := time.Now()
	time.AfterFunc(100*time.Millisecond, func() { w.settle(c, `{"answer":"approve"}`) })
	w.stands("bot", c.ID, "run")
	if time.Since(begun) > 18*time.Second {
		t.Error("the poll did not end with the approval")
	}
	s := w.claim("bot", c.ID)
	if s.Input != ` {"amount":5 , "pin":"PIN-5-secret"}` || s.Attempt != 1 || s.Key == "" || len(s.SHA256) != 64 || s.Until.IsZero() {
		t.Errorf("%+v", s)
	}
	second := wants(t, w.do("bot", "POST", "/v1/calls/"+c.ID+"/start", `{}`), 409, "call-started")
	if second.Attempt != 1 || !second.StartedAt.Equal(s.StartedAt) {
		t.Errorf("a second claim is told %+v", second)
	}
	wants(t, w.do("bot", "POST", "/v1/runs/"+c.RunID+"/close", `{}`), 409, "busy")
	got = w.do("bot", "POST", "/v1/calls/"+c.ID+"/result", `{"attempt":1,"output":"wired 5"}`, "Idempotency-Key", "r1")
	got.into(t, &c)
	if got.status != 200 || c.State != "done" || c.Result.Text != "wired 5" || c.ModelID != "toolu_1" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if again := w.do("bot", "POST", "/v1/calls/"+c.ID+"/result", `{"attempt":1,"output":"wired 5"}`, "Idempotency-Key", "r1"); again.status != 200 || again.body != got.body {
		t.Errorf("the same result again: %d %s", again.status, again.body)
	}
	wants(t, w.do("bot", "POST", "/v1/calls/"+c.ID+"/result", `{"attempt":1,"output":"wired twice"}`), 409, "call-finished")
	wants(t, w.do("bot", "POST", "/v1/calls/"+c.ID+"/start", `{}`), 409, "call-finished")
	for range 2 {
		if got := w.do("bot", "POST", "/v1/runs/"+c.RunID+"/close", `{}`); got.status != 200 || !strings.Contains(got.body, `"status":"completed"`) {
			t.Errorf("close: %d %s", got.status, got.body)
		}
	}
	wants(t, w.do("bot", "POST", "/v1/calls", strings.Replace(wire5, "{", `{"run_id":"`+c.RunID+`",`, 1)), 409, "run-ended")
}

// One run holds many calls, and each goes its own way.
func TestCallsEndAsPeopleSay(t *testing.T) {
	w := newCallWorld(t)
	first := w.call("bot", wire5)
	more := func(amount int) httpapi.LoopCall {
		return w.call("bot", fmt.Sprintf(`{"run_id":%q,"tool":"wire","input":"{\"amount\":%d}"}`, first.RunID, amount))
	}
	denied, edited, told := more(6), more(7), more(8)
	if denied.RunID != first.RunID || denied.Thread != first.Thread {
		t.Errorf("%+v", denied)
	}
	w.settle(denied, `{"answer":"deny","reason":"too much, ask Ada"}`)
	if c := w.stands("bot", denied.ID, "refused"); !strings.Contains(c.Result.Text, "too much, ask Ada") || c.Result.Code != ringi.CodeDeniedByPerson {
		t.Errorf("the model reads %+v", c.Result)
	}
	wants(t, w.do("bot", "POST", "/v1/calls/"+denied.ID+"/start", `{}`), 409, "call-finished")
	w.settle(edited, `{"answer":"edit","input":{"amount":3},"and_approve":true}`)
	w.stands("bot", edited.ID, "run")
	if s := w.claim("bot", edited.ID); s.Input != `{"amount":3}` {
		t.Errorf("the person's bytes are %s", s.Input)
	}
	w.settle(told, `{"answer":"respond","result":"paid by hand"}`)
	if c := w.stands("bot", told.ID, "done"); c.Result.Origin != ringi.OriginPerson {
		t.Errorf("%+v", c.Result)
	}
	bad := w.call("bot", `{"agent":"shop","tool":"wire","input":"{\"amount\":5000}"}`)
	if bad.State != "refused" || bad.Result.Code != ringi.CodeInvalidInput {
		t.Errorf("%+v", bad)
	}
	peek := w.call("bot", `{"agent":"shop","tool":"peek","input":""}`)
	if peek.State != "run" || peek.Approval != nil {
		t.Errorf("%+v", peek)
	}
	if s := w.claim("bot", peek.ID); s.Input != "{}" {
		t.Errorf("%+v", s)
	}
	got := w.do("bot", "POST", "/v1/calls/"+peek.ID+"/result", `{"attempt":1,"error":"no such order","not_done":true}`)
	if !strings.Contains(got.body, `"code":"not_done"`) || !strings.Contains(got.body, "no such order") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.do("bot", "POST", "/v1/approvals/"+first.Approval.ID+"/withdrawal", `{"reason":"never mind"}`); got.status != 200 {
		t.Errorf("withdraw: %d %s", got.status, got.body)
	}
	w.stands("bot", first.ID, "refused")
}

// A start that nobody finishes is an unknown outcome, and a late result is
// evidence for the person who says what happened.
func TestCallsThatAreNotFinished(t *testing.T) {
	w := newCallWorld(t, func(c *engine.Config) { c.Limits.ToolTimeout = 300 * time.Millisecond })
	c := w.call("bot", wire5)
	w.settle(c, `{"answer":"approve"}`)
	w.claim("bot", c.ID)
	for c = w.call2("bot", c.ID); c.State == "running"; c = w.call2("bot", c.ID) { // until the worker has looked
		time.Sleep(10 * time.Millisecond)
	}
	if c.State != "waiting" || c.Approval.Kind != ringi.KindOutcome {
		t.Fatalf("%+v", c)
	}
	wants(t, w.do("bot", "POST", "/v1/calls/"+c.ID+"/result", `{"attempt":1,"output":"it went out"}`), 410, "late")
	q := w.do("ben", "GET", "/v1/approvals/"+c.Approval.ID, "")
	if !strings.Contains(q.body, "it went out") {
		t.Errorf("the evidence is missing: %s", q.body)
	}
	w.settle(c, `{"answer":"ran","result":"it went out"}`)
	w.stands("bot", c.ID, "done")
	doubt := w.call("bot", wire5)
	w.settle(doubt, `{"answer":"approve"}`)
	w.claim("bot", doubt.ID)
	got := w.do("bot", "POST", "/v1/calls/"+doubt.ID+"/result", `{"attempt":1,"unknown":true,"output":"connection reset"}`)
	doubt = w.call2("bot", doubt.ID)
	if got.status != 200 && got.status != 410 || doubt.State != "waiting" || doubt.Approval.Kind != ringi.KindOutcome {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// call2 reads a call now.
func (w *world) call2(who, id string) httpapi.LoopCall {
	w.t.Helper()
	var c httpapi.LoopCall
	w.do(who, "GET", "/v1/calls/"+id, "").into(w.t, &c)
	return c
}

// A key is one call, for as long as its run is open: over a repeat that is
// answered from what is stored, and over one whose first try died.
func TestCallsAreIdempotent(t *testing.T) {
	w := newCallWorld(t)
	c := w.call("bot", wire5, "Idempotency-Key", "turn-1-call-1")
	w.settle(c, `{"answer":"approve"}`)
	got := w.do("bot", "POST", "/v1/calls", wire5, "Idempotency-Key", "turn-1-call-1")
	var again httpapi.LoopCall
	got.into(t, &again)
	if got.status != 200 || again.ID != c.ID || again.State != "run" || got.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%d %s", got.status, got.body)
	}
	_, err := w.db.Exec(`UPDATE answers SET ended_at = 0, started_at = started_at - 600000000`)
	if err != nil {
		_, err = w.db.Exec(`DELETE FROM answers`) // the store of answers is lost
	}
	w.must(err)
	if again := w.call("bot", wire5, "Idempotency-Key", "turn-1-call-1"); again.ID != c.ID {
		t.Errorf("without the stored answer it is another call: %+v", again)
	}
	wants(t, w.do("bot", "POST", "/v1/calls", strings.Replace(wire5, "5 ,", "6 ,", 1), "Idempotency-Key", "turn-1-call-1"), 422, "key-reused")
	if other := w.call("crm", wire5, "Idempotency-Key", "turn-1-call-1"); other.ID == c.ID {
		t.Error("another client has the same call")
	}
	s := w.do("bot", "POST", "/v1/calls/"+c.ID+"/start", `{}`, "Idempotency-Key", "s1")
	if s.status != 200 {
		t.Fatalf("%d %s", s.status, s.body)
	}
	// A loop that died with the right in its hand must not get it again.
	wants(t, w.do("bot", "POST", "/v1/calls/"+c.ID+"/start", `{}`, "Idempotency-Key", "s1"), 409, "not-kept")
	var n int
	w.must(w.db.QueryRow(`SELECT count(*) FROM answers WHERE body LIKE '%PIN-5%'`).Scan(&n))
	if n != 0 {
		t.Error("what shall run is kept among the answers")
	}
}

// A name of the client's own is one open run, without an id of ours, and nobody
// else's.
func TestCallsOfAConversation(t *testing.T) {
	w := newCallWorld(t)
	body := `{"agent":"shop","conversation":"order 17","tool":"peek","input":"{}"}`
	a, b, other := w.call("bot", body), w.call("bot", body), w.call("crm", body)
	if a.RunID != b.RunID || a.ID == b.ID || other.RunID == a.RunID {
		t.Errorf("%+v %+v %+v", a, b, other)
	}
	if got := w.do("bot", "POST", "/v1/runs/"+a.RunID+"/close", `{}`); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if c := w.call("bot", body); c.RunID == a.RunID || c.Thread != a.Thread {
		t.Errorf("after its end: %+v", c)
	}
}

// S-11: claimed a hundred times at once, one gets it.
func TestS11_AHundredClaimsOverHTTP(t *testing.T) {
	w := newCallWorld(t, func(c *engine.Config) {})
	for _, body := range []string{`{"agent":"shop","tool":"rm","input":"{}"}`, `{"agent":"shop","tool":"peek","input":"{}"}`} {
		c := w.call("bot", body)
		if c.State == "waiting" {
			w.settle(c, `{"answer":"approve"}`)
		}
		var got atomic.Int32
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				switch r := w.do("bot", "POST", "/v1/calls/"+c.ID+"/start", `{}`); r.status {
				case 200:
					got.Add(1)
				case 409:
				default:
					t.Errorf("%d %s", r.status, r.body)
				}
			})
		}
		all.Wait()
		if got.Load() != 1 {
			t.Errorf("%d got the right to run", got.Load())
		}
	}
}

// S-11: another client's call is as unknown as one that does not exist, and
// nobody but an agent's token has calls at all.
func TestS11_AnothersCallIsUnknown(t *testing.T) {
	w := newCallWorld(t)
	c := w.call("bot", wire5)
	mine := map[string]httpapi.LoopCall{"bot": c, "none": {ID: "call_x_1_0", RunID: "run_none", Thread: "thr_none", Approval: &httpapi.CallApproval{ID: "req_none"}}}
	ask := func(who string, c httpapi.LoopCall, approvals bool) []reply {
		out := []reply{
			w.do(who, "GET", "/v1/calls/"+c.ID, ""),
			w.do(who, "POST", "/v1/calls/"+c.ID+"/start", `{}`),
			w.do(who, "POST", "/v1/calls/"+c.ID+"/result", `{"attempt":1,"output":"x"}`),
			w.do(who, "POST", "/v1/runs/"+c.RunID+"/close", `{}`),
			w.do(who, "POST", "/v1/calls", `{"tool":"wire","input":"{}","run_id":"`+c.RunID+`"}`),
			w.do(who, "POST", "/v1/calls", `{"agent":"shop","tool":"wire","input":"{}","thread":"`+c.Thread+`"}`),
		}
		if approvals { // other rows of the table
			out = append(out, w.do(who, "GET", "/v1/approvals/"+c.Approval.ID, ""), w.do(who, "POST", "/v1/approvals/"+c.Approval.ID+"/withdrawal", `{}`))
		}
		return out
	}
	for who, status := range map[string]int{"crm": 404, "bot2": 404, "uma": 403, "ben": 403, "ada": 403, "aud": 403, "mute": 403} {
		got, none := ask(who, mine["bot"], status == 404), ask(who, mine["none"], status == 404)
		for i := range got {
			if got[i].status != status || got[i].body != none[i].body || none[i].status != status {
				t.Errorf("%s, %d: %d %s, and of an unknown one %d %s", who, i, got[i].status, got[i].body, none[i].status, none[i].body)
			}
		}
	}
	if now := w.call2("bot", c.ID); now.State != "waiting" {
		t.Errorf("it is %s", now.State)
	}
	for _, path := range []string{"decisions", "take-back", "reassignment"} { // and its own it cannot decide
		q := w.asked("ben", run{Pending: []request{{ID: c.Approval.ID}}})
		body := map[string]string{"decisions": `{"digest":"` + q.Digest + `","answer":"approve"}`}[path]
		if body == "" {
			body = `{}`
		}
		wants(t, w.do("bot", "POST", "/v1/approvals/"+q.ID+"/"+path, body, "If-Match", q.tag()), 403, "forbidden")
	}
	wants(t, w.do("bot2", "POST", "/v1/calls", wire5), 404, "not-found") // another agent's
	wants(t, w.do("bot", "POST", "/v1/calls", `{"agent":"none","tool":"wire","input":"{}"}`), 404, "not-found")
}

// S-11: a tool that nobody registered for clients wears its client's name, its
// reason is marked as the client's claim, and it has nothing of ours.
func TestS11_AForeignApprovalSaysSo(t *testing.T) {
	w := newCallWorld(t)
	ours := w.asked("ben", w.start("uma", "shop", "refund 5"))
	c := w.call("bot", `{"agent":"shop","tool":"refund","input":"{\"amount\":5}","claim":{"reason":"the manager said so","preview":"refunds 5","on_behalf_of":"local:uma"}}`)
	if c.Tool != "ext:bot/refund" || c.Foreign != "bot" || c.State != "waiting" {
		t.Fatalf("%+v", c)
	}
	var theirs, own map[string]any
	w.do("ben", "GET", "/v1/approvals/"+c.Approval.ID, "").into(t, &theirs)
	w.do("ben", "GET", "/v1/approvals/"+ours.ID, "").into(t, &own)
	if own["foreign"] != nil || own["claim"] != nil || own["preview"] == nil {
		t.Errorf("ours is %v", own)
	}
	tool := theirs["tool"].(map[string]any)
	if theirs["foreign"] != "bot" || theirs["preview"] != nil || tool["name"] != "ext:bot/refund" || tool["effect"] != "non_idempotent_write" || tool["data_class"] != "secret_adjacent" ||
		tool["description"] == own["tool"].(map[string]any)["description"] && tool["description"] != "" {
		t.Errorf("theirs is %v", theirs)
	}
	if claim := theirs["claim"].(map[string]any); claim["reason"] != "the manager said so" || claim["on_behalf_of"] != "local:uma" {
		t.Errorf("the claim is %v", claim)
	}
	if who := fmt.Sprint(theirs["initiators"]); who != "[client:bot]" {
		t.Errorf("a claim makes an initiator: %s", who)
	}
	if len(w.ran) != 0 {
		t.Errorf("a tool of ours ran: %v", w.ran)
	}
}

// S-11, S-12: with four eyes a client that belongs to nobody cannot be approved
// by anybody, and one that belongs to a person not by that person.
func TestS11_FourEyesOnAForeignApproval(t *testing.T) {
	w := newCallWorld(t, func(c *engine.Config) { c.FourEyes = engine.FourEyesAll })
	for _, x := range []struct {
		client, decider string
		status          int
	}{{"bot", "ben", 403}, {"bot", "bea", 403}, {"ubot", "ben", 403}, {"ubot", "bea", 201}} {
		c := w.call(x.client, `{"agent":"shop","tool":"rm","input":"{}","claim":{"on_behalf_of":"local:uma"}}`)
		q := w.asked(x.decider, run{Pending: []request{{ID: c.Approval.ID}}})
		if got := w.decide(x.decider, q, `{"answer":"approve"}`); got.status != x.status {
			t.Errorf("%s approves what %s asks: %d %s", x.decider, x.client, got.status, got.body)
		}
		batch := `{"items":[{"id":"` + q.ID + `","if_match":` + mustJSON(t, q.tag()) + `,"digest":"` + q.Digest + `","answer":"approve"}]}`
		if got := w.do(x.decider, "POST", "/v1/approval-batches", batch); x.status == 403 && !strings.Contains(got.body, "not-permitted") {
			t.Errorf("%s approves it in a batch: %d %s", x.decider, got.status, got.body)
		}
		if now := w.call2(x.client, c.ID); (now.State == "run") != (x.status == 201) {
			t.Errorf("it is %s", now.State)
		}
		if x.status == 403 {
			if got := w.decide(x.decider, q, `{"answer":"deny"}`); got.status != 201 {
				t.Errorf("%s denies it: %d %s", x.decider, got.status, got.body)
			}
		}
	}
}

func TestCallsThatMakeNoSense(t *testing.T) {
	w := newCallWorld(t)
	c := w.call("bot", `{"agent":"shop","tool":"peek","input":"{}"}`)
	for name, x := range map[string]struct {
		path, body string
		status     int
		word       string
	}{
		"no tool":                {"/v1/calls", `{"input":"{}"}`, 422, "invalid-request"},
		"an empty tool":          {"/v1/calls", `{"tool":"","input":"{}"}`, 422, "invalid-request"},
		"a tool that is long":    {"/v1/calls", `{"tool":"` + strings.Repeat("x", 129) + `","input":"{}"}`, 422, "invalid-request"},
		"no input":               {"/v1/calls", `{"tool":"peek"}`, 422, "invalid-request"},
		"an input that is JSON":  {"/v1/calls", `{"tool":"peek","input":{}}`, 422, "invalid-request"},
		"a principal":            {"/v1/calls", `{"tool":"peek","input":"{}","by":"local:ada"}`, 422, "invalid-request"},
		"an unknown zone":        {"/v1/calls", `{"tool":"peek","input":"{}","zone":"moon"}`, 422, "invalid-request"},
		"a wait that is long":    {"/v1/calls?wait=1h", `{"tool":"peek","input":"{}"}`, 422, "invalid-request"},
		"a claim that is large":  {"/v1/calls", `{"agent":"shop","tool":"peek","input":"{}","claim":{"reason":"` + strings.Repeat("x", 8<<10+1) + `"}}`, 413, "too-large"},
		"another agent's run":    {"/v1/calls", `{"agent":"other","tool":"peek","input":"{}","run_id":"` + c.RunID + `"}`, 422, "invalid-request"},
		"two names of a run":     {"/v1/calls", `{"tool":"peek","input":"{}","conversation":"c","run_id":"` + c.RunID + `"}`, 422, "invalid-request"},
		"no attempt":             {"/v1/calls/" + c.ID + "/result", `{"output":"x"}`, 422, "invalid-request"},
		"output and error":       {"/v1/calls/" + c.ID + "/result", `{"attempt":1,"output":"x","error":"y"}`, 422, "invalid-request"},
		"not done and unknown":   {"/v1/calls/" + c.ID + "/result", `{"attempt":1,"not_done":true,"unknown":true}`, 422, "invalid-request"},
		"output of what did not": {"/v1/calls/" + c.ID + "/result", `{"attempt":1,"not_done":true,"output":"x"}`, 422, "invalid-request"},
		"a start that says more": {"/v1/calls/" + c.ID + "/start", `{"input":"{}"}`, 422, "invalid-request"},
	} {
		t.Run(name, func(t *testing.T) { wants(t, w.do("bot", "POST", x.path, x.body), x.status, x.word) })
	}
	own := w.start("bot", "shop", "refund 5")
	wants(t, w.do("bot", "POST", "/v1/runs/"+own.RunID+"/close", `{}`), 404, "not-found")
	wants(t, w.do("bot", "GET", "/v1/calls/"+own.Pending[0].Call.ID, ""), 404, "not-found") // a call of ours
	wants(t, w.do("bot", "POST", "/v1/calls", `{"tool":"peek","input":"{}","run_id":"`+own.RunID+`"}`), 404, "not-found")
}

// The Go client is the same gate.
func TestClientCalls(t *testing.T) {
	w := newCallWorld(t)
	ctx, bot := t.Context(), w.client("bot")
	c, err := bot.JudgeCall(ctx, ringi.CallStart{Agent: "shop", Tool: "wire", Input: `{"amount":5}`, ModelID: "m1", Claim: &ringi.Claim{Reason: "r"}})
	if err != nil || c.State != ringi.CallWaits || c.Request == nil {
		t.Fatalf("%+v %v", c, err)
	}
	_, err = bot.StartCall(ctx, c.Call.ID)
	if waits := (*ringi.WaitingError)(nil); !errors.As(err, &waits) || waits.Request.ID != c.Request.ID {
		t.Errorf("start of what waits: %v", err)
	}
	q, err := w.client("ben").Request(ctx, c.Request.ID)
	w.must(err)
	_, err = w.client("ben").Decide(ctx, q.Approve(ringi.Principal{}))
	w.must(err)
	s, err := bot.StartCall(ctx, c.Call.ID)
	if err != nil || s.Call.Input != `{"amount":5}` || s.Attempt != 1 || s.Key == "" {
		t.Fatalf("%+v %v", s, err)
	}
	_, err = bot.StartCall(ctx, c.Call.ID)
	if first := (*ringi.StartedError)(nil); !errors.As(err, &first) || first.Attempt != 1 || !first.At.Equal(s.StartedAt) {
		t.Errorf("start of what was started: %v", err)
	}
	if _, err := bot.FinishCall(ctx, c.Call.ID, 7, ringi.ToolResult{}); !errors.Is(err, ringi.ErrNotStarted) {
		t.Errorf("a start that never was: %v", err)
	}
	end, err := bot.FinishCall(ctx, c.Call.ID, s.Attempt, ringi.ToolResult{Outcome: ringi.OutcomeError, Code: ringi.CodeNotDone})
	if err != nil || end.State != ringi.CallDone || end.Result.Code != ringi.CodeNotDone {
		t.Errorf("%+v %v", end, err)
	}
	_, err = bot.StartCall(ctx, c.Call.ID)
	if has := (*ringi.ResultError)(nil); !errors.As(err, &has) || has.Result.Code != ringi.CodeNotDone {
		t.Errorf("start of what has ended: %v", err)
	}
	if now, err := bot.Call(ctx, c.Call.ID); err != nil || now.State != ringi.CallDone || now.Call.ModelID != "m1" {
		t.Errorf("%+v %v", now, err)
	}
	if _, err := bot.FinishCall(ctx, c.Call.ID, 1, ringi.ToolResult{Code: ringi.CodeDeniedByPolicy}); !errors.Is(err, ringi.ErrAnswer) {
		t.Errorf("a code that is not a tool's: %v", err)
	}
	w.must(bot.CloseCalls(ctx, c.RunID))
	if _, err := bot.Call(ctx, "call_none_1_0"); !errors.Is(err, ringi.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// The commands of docs/calls.md do what the page says.
func TestCommandsOfTheCallsPage(t *testing.T) {
	shell := foreign(t, "sh")
	if out, _ := exec.Command(foreign(t, "curl"), "--help", "all").Output(); !strings.Contains(string(out), "--json") {
		t.Skip("this curl has no --json (7.82): the page's commands are not tried")
	}
	page, err := os.ReadFile("../docs/calls.md")
	w := newCallWorld(t)
	w.must(err)
	env := append(os.Environ(), "URL="+w.url, "LOOP="+w.token["bot"])
	var outs []string
	for i, block := range strings.Split(string(page), "```sh\n")[1:] {
		command, _, _ := strings.Cut(block, "```")
		cmd := exec.Command(shell, "-c", command)
		cmd.Env = env
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		outs = append(outs, string(out))
		if i == 0 {
			var c httpapi.LoopCall
			reply{body: string(out)}.into(t, &c)
			w.settle(c, `{"answer":"approve"}`)
			env = append(env, "CALL="+c.ID, "RUN="+c.RunID)
		}
	}
	for i, want := range []string{`"state":"waiting"`, `"state":"run"`, `"input":"{\"amount\": 5}"`, `"text":"wired 5"`, `"status":"completed"`} {
		if i >= len(outs) || !strings.Contains(outs[i], want) {
			t.Errorf("command %d does not answer %s: %q", i, want, outs)
		}
	}
}

// The offer says which tools a client may name.
func TestCallsOfTheOffer(t *testing.T) {
	w := newCallWorld(t)
	var offer struct {
		Tools []struct {
			Name     string
			External bool
		}
	}
	w.do("bot", "GET", "/v1/tools?agent=shop", "").into(t, &offer)
	var names []string
	for _, t := range offer.Tools {
		if t.External {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"peek", "wire"}) {
		t.Errorf("external: %v", names)
	}
}
