package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/httpapi"
	"github.com/ringi-dev/ringi/internal/sight"
)

// S-34: a secret is in every place that a model, a person or a tool can write
// to. No reader gets it from any address, stream, error or log line; whoever may
// see the input sees that it is masked.
func TestS34_MarkerSweep(t *testing.T) {
	w := newWorld(t, setting{options: func(o *httpapi.Options) { o.Open = func(string) bool { return true } }})
	r := w.start("uma", "shop", "refund 5 6") // input, preview, output
	secret := []string{"PIN-5-secret", "PIN-6-secret", "W0RD-typed", "PIN-7-edited"}
	inbox := w.follow(t.Context(), "ben", "/v1/events", "")
	q := w.asked("ben", r)
	if len(q.Masked) != 1 || q.Masked[0] != "/pin" || !strings.Contains(q.Call.Input, `"[masked]"`) {
		t.Errorf("ben sees %+v", q)
	}
	var bodies []string
	keep := func(got reply) reply { bodies = append(bodies, got.body, fmt.Sprint(got.header)); return got }
	got := keep(w.decide("ben", q, `{"answer":"edit","input":{"amount":7,"pin":"PIN-7-edited"}}`))
	if got.status != 201 {
		t.Fatalf("edit: %d %s", got.status, got.body)
	}
	keep(w.decide("ben", q, `{"answer":"edit","input":{"amount":5000,"pin":"PIN-7-edited"}}`))
	var set struct{ Request request }
	got.into(t, &set)
	keep(w.decide("ben", set.Request, `{"answer":"approve","reason":"as PIN-7-edited says","note":"PIN-5-secret"}`))
	second := w.asked("ben", run{Pending: r.Pending[1:]})
	keep(w.decide("ben", second, `{"answer":"approve"}`))
	keep(w.do("uma", "GET", "/v1/runs/"+r.RunID+"?wait=20s", ""))
	asks := w.start("bot", "shop", "identify 1")
	typed := w.asked("ben", asks)
	got = keep(w.decide("ben", typed, `{"answer":"fill","input":{"word":"W0RD-typed"}}`))
	if got.status != 201 {
		t.Fatalf("fill: %d %s", got.status, got.body)
	}
	got.into(t, &set)
	if got := keep(w.decide("ben", set.Request, `{"answer":"approve"}`)); got.status != 201 {
		t.Fatalf("approve typed values: %d %s", got.status, got.body)
	}
	keep(w.do("bot", "GET", "/v1/runs/"+asks.RunID+"?wait=20s", ""))
	reads := append(w.documented("GET"), "/v1/approvals?state=pending,approved,denied,spent,stale,expired,withdrawn", "/v1/approvals?q=PIN-5-secret", "/v1/tools?agent=shop")
	for _, who := range []string{"uma", "udo", "ben", "bea", "ada", "aud", "pay", "nil", "bot", "bot2"} {
		for _, run := range []run{r, asks} {
			for _, path := range reads {
				keep(w.ask(who, address{method: "GET", path: path}, thing{run: run}))
			}
			for _, a := range addresses { // whatever they do by now: each answers
				if a.method == "POST" && !strings.HasSuffix(a.path, "/reveal") {
					keep(w.ask(who, a, thing{run: run}))
				}
			}
		}
	}
	for range 3 {
		ev, _ := next(t, inbox)
		bodies = append(bodies, ev.data)
	}
	for ev := range w.follow(t.Context(), "ben", "/v1/runs/"+r.RunID+"/events", "") {
		bodies = append(bodies, ev.data)
	}
	for _, text := range append(bodies, w.log.String()) {
		for _, s := range secret {
			if strings.Contains(text, s) {
				i := strings.Index(text, s)
				t.Errorf("%s is in …%s…", s, text[max(0, i-300):min(len(text), i+100)])
			}
		}
	}
	if all := strings.Join(bodies, ""); !strings.Contains(all, "would do") || !strings.Contains(all, `did {\"amount\":7,`) {
		t.Error("the sweep saw no preview or no output: it looks at nothing")
	}
}

// S-28: every field of one request holds a marker of its own; the table says
// which reader gets which. Verdict, bytes and reason are a client's; that
// something waits, and its tool's name, a chat user's.
func TestS28_WhoSeesWhat(t *testing.T) {
	full := ringi.ApprovalRequest{ID: "M-id", Space: "default", Agent: "shop", Thread: "M-thread", RunID: "M-run", Kind: ringi.KindApproval, State: ringi.Refused,
		Digest: "M-digest", Signature: "M-signature", Call: ringi.ToolCall{ID: "M-call", ModelID: "M-model", Tool: "M-tool", Input: `{"a":"M-input","s":"M-secret"}`, Raw: `{"a":"M-raw"}`},
		Proposed: `{"a":"M-proposed"}`, ProposedBy: "M-editor", Supplied: []string{"M-key"}, Replaces: "M-before",
		Tool:       ringi.Tool{Name: "M-tool", Description: "M-description", InputSchema: []byte(`{"properties":{"s":{"writeOnly":true}}}`)},
		ToolDigest: "M-tooldigest", Verdict: ringi.Verdict{Status: ringi.UserApproval, Source: "rule", Reason: "M-verdict"},
		Preview: &ringi.Preview{Text: "M-preview", Precondition: "M-etag"}, PreviewError: "M-failed", InputSchema: []byte(`{"title":"M-asked"}`),
		Initiators: []string{"M-initiator"}, Deciders: ringi.Deciders{People: []string{"M-decider"}}, Answers: []ringi.Answer{"M-answer"},
		Why: "M-why", Evidence: "M-evidence", DecidedBy: "M-by"}
	always := "id thread run call tool before"
	input := always + " input raw proposed model key reason why"
	for who, want := range map[sight.Sight]string{
		sight.None:   "id run",
		sight.Heads:  "id run",
		sight.Waits:  always,
		sight.Client: input + " verdict",
		sight.Shown:  input + " preview",
		sight.Full:   input + " verdict preview digest signature editor description tooldigest etag failed asked initiator decider answer evidence by",
	} {
		b := mustJSON(t, who.Request(full, func(ringi.DataClass) bool { return true }, "M-reason"))
		for _, marker := range strings.Fields("id thread run call tool before input raw proposed model key reason why verdict preview digest signature editor description " +
			"tooldigest etag failed asked initiator decider answer evidence by secret") {
			has := strings.Contains(b, "M-"+marker+`"`)
			if wants := strings.Contains(" "+want+" ", " "+marker+" "); has != wants {
				// An input is JSON inside a string: its closing quote is escaped.
				if has = strings.Contains(b, "M-"+marker+`\"`); has != wants {
					t.Errorf("sight %d: M-%s is seen: %v, want %v", who, marker, has, wants)
				}
			}
		}
	}
}

// S-28: which sight each reader has of his own, another's, and what he is asked.
func TestS28_SightOfEachRole(t *testing.T) {
	person := func(roles ...access.Role) access.Who {
		return access.Who{Principal: ringi.Principal{ID: "p", Kind: ringi.Person}, Roles: roles, Space: "default"}
	}
	client := access.Who{Principal: ringi.Principal{ID: "c", Kind: ringi.ServiceAccount}, Roles: []access.Role{access.RoleAgent}, Space: "default",
		TokenID: "t", Scopes: access.Scopes(), Agents: []string{access.EveryAgent}}
	granted := person(access.RoleAuditor)
	granted.Payloads = true
	both := person(access.RoleUser, access.RoleApprover)
	for _, c := range []struct {
		name  string
		who   access.Who
		owner access.Owner
		open  bool
		want  sight.Sight
	}{
		{"nobody", access.Who{}, access.Own, true, sight.None},
		{"no role", person(), access.Own | access.Asked, true, sight.None},
		{"user, own", person(access.RoleUser), access.Own, false, sight.Waits},
		{"user, own, asked of everybody", person(access.RoleUser), access.Own | access.Asked, false, sight.Waits},
		{"user, own, agent allows", person(access.RoleUser), access.Own, true, sight.Shown},
		{"user, another's", person(access.RoleUser), access.Other, true, sight.None},
		{"client, own", client, access.Own, true, sight.Client},
		{"client, another's", client, access.Other, true, sight.None},
		{"approver, asked", person(access.RoleApprover), access.Asked, false, sight.Full},
		{"approver, not asked", person(access.RoleApprover), access.Other, true, sight.None},
		{"user and approver, own and not asked", both, access.Own, false, sight.Waits},
		{"user and approver, own and asked", both, access.Own | access.Asked, false, sight.Full},
		{"auditor", person(access.RoleAuditor), access.Other, true, sight.Heads},
		{"auditor with payloads", granted, access.Other, false, sight.Full},
		{"admin", person(access.RoleAdmin), access.Other, false, sight.Full},
	} {
		if got := sight.Of(c.who, c.owner, c.open); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// S-28 over HTTP: bodies of one request for its readers.
func TestS28_BodiesOverHTTP(t *testing.T) {
	w := newWorld(t, setting{})
	mine := w.start("uma", "shop", "refund 5")
	bots := w.start("bot", "shop", "refund 5")
	for _, c := range []struct {
		who       string
		run       run
		sees, not string
	}{
		{"uma", mine, `"tool":"refund"`, "input digest preview verdict deciders tool_digest answers initiators amount"},
		{"bot", bots, `"verdict"`, "digest preview deciders tool_digest answers initiators"},
		{"ben", mine, `"answers"`, "secret"},
		{"ada", mine, `"initiators"`, "secret"},
	} {
		got := w.do(c.who, "GET", "/v1/approvals/"+c.run.Pending[0].ID, "")
		if got.status != 200 || !strings.Contains(got.body, c.sees) {
			t.Errorf("%s: %d %s", c.who, got.status, got.body)
		}
		for _, word := range strings.Fields(c.not) {
			if strings.Contains(got.body, word) && !(c.who == "bot" && word == "digest" && !strings.Contains(got.body, `"digest"`)) {
				t.Errorf("%s sees %q: %s", c.who, word, got.body)
			}
		}
	}
	if got := w.do("aud", "GET", "/v1/runs/"+mine.RunID+"/events", ""); got.status != 200 || strings.Contains(got.body, "body") {
		t.Errorf("an auditor: %d %s", got.status, got.body)
	}
	if got := w.do("pay", "GET", "/v1/runs/"+mine.RunID+"/events", ""); !strings.Contains(got.body, `"amount\":5`) || strings.Contains(got.body, "-secret") {
		t.Errorf("an auditor with payloads: %s", got.body)
	}
	if got := w.do("uma", "GET", "/v1/runs/"+mine.RunID+"/events", ""); !strings.Contains(got.body, "I shall refund 5") || strings.Contains(got.body, "amount") {
		t.Errorf("a chat user: %s", got.body)
	}
}
