package inbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/inbox"
	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/ringitest"
)

func TestDenyKeepsReasonAndNoteApart(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	r := h.asks(ana, kettle)
	b := h.browser(ana).open("/a/" + r.ID)
	b.send("/decide", map[string]string{"answer": "deny"}, "reason", "not this kettle", "note", "ask Ben next time")
	b.want(200, "refund: denied, by you")
	b.open("/a/"+r.ID).want(200, "Reason, read by the model not this kettle", "Note, for people ask Ben next time", "by inbox, on the server's own machine")
	var told string
	for _, e := range events(t, h, r.RunID) {
		if d, ok := e.Body.(*ringi.ApprovalDecided); ok {
			told = fmt.Sprint(d.Answer, d.Reason, d.Note, d.Channel, d.By.ID, d.Digest == r.Digest)
		}
	}
	if told != "denynot this kettleask Ben next timeinbox:loopback"+ana+"true" {
		t.Errorf("recorded %s", told)
	}
}

func events(t *testing.T, h *house, run string) []ringi.Event {
	t.Helper()
	list, err := h.router.Events(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEditShowsErrorsAndTheDifference(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	r := h.asks(ana, kettle)
	b := h.browser(ana).open("/a/" + r.ID + "/edit")
	fields := map[string]string{"by": "fields"}
	b.send("/edit", fields).want(422, "Nothing is changed")
	b.send("/edit", fields, "f.amount_cents", "ten").want(422, "This is no number")
	b.send("/edit", fields, "f.amount_cents", "-5").want(422, "The tool does not take this input")
	if !strings.Contains(b.page, `aria-invalid="true"`) {
		t.Error("no field is marked")
	}
	raw := map[string]string{"by": "raw"}
	b.send("/edit", raw, "raw", "{\n  \"order_id\": \"A-1042\",\n  \"amount_cents\": 01\n}").want(422, "Line 3, column")
	b.send("/edit", raw, "raw", `{"order_id":"A-1042","amount_cents":10,"amount_cents":20}`).want(422, "Line 1, column")
	if got := h.get(r.ID); got.State != ringi.Pending {
		t.Fatalf("refused input settled the request: %s", got.State)
	}
	b.send("/edit", fields, "f.amount_cents", "2000").want(200, "What Ana changed", "3490", "2000", "20.00 EUR")
	if got := h.get(r.ID); got.State != ringi.Stale {
		t.Errorf("the first request is %s", got.State)
	}
	b.open("/a/"+r.ID).want(200, "Another request took its place")
}

// Members that nobody touched keep their bytes: order, spelling, line ends.
func TestEditKeepsBytes(t *testing.T) {
	input := `{"b":"two\r\nlines","a":1.50,"z":{"deep":[1,2.0]},"s":"x"}`
	h, ana, r := oneCall(t, `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"string"},"s":{"type":"string"},"z":{"type":"object"}}}`, input)
	b := h.browser(ana).open("/a/" + r.ID + "/edit")
	b.send("/edit", map[string]string{"by": "fields"}, "f.s", "y").want(200)
	var next ringi.ApprovalRequest
	for _, p := range pending(t, h) {
		next = p
	}
	if want := `{"b":"two\r\nlines","a":1.50,"z":{"deep":[1,2.0]},"s":"y"}`; string(next.Call.Input) != want {
		t.Errorf("input %s, want %s", next.Call.Input, want)
	}
}

func pending(t *testing.T, h *house) []ringi.ApprovalRequest {
	t.Helper()
	p, err := h.router.Requests(t.Context(), ringi.RequestQuery{})
	if err != nil {
		t.Fatal(err)
	}
	return p.Requests
}

// oneCall is a house in which one call of the tool "act" waits.
func oneCall(t *testing.T, schema string, inputs ...string) (*house, string, ringi.ApprovalRequest) {
	t.Helper()
	h, ana := actHouse(t, schema, "", inputs...)
	return h, ana, h.asks(ana, "do it")
}

func actHouse(t *testing.T, schema, text string, inputs ...string) (*house, string) {
	t.Helper()
	reg := ringi.NewRegistry()
	if err := reg.Add(ringi.Tool{Name: "act", Effect: ringi.IdempotentWrite, AllowEdit: true, AllowRespond: true, InputSchema: json.RawMessage(schema)},
		func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
			return ringi.ToolResult{Output: "done"}, nil
		}); err != nil {
		t.Fatal(err)
	}
	var calls []ringi.ToolCall
	for _, in := range inputs {
		calls = append(calls, ringitest.Call("act", in))
	}
	turn := ringi.ModelTurn{Text: text, Calls: calls, Finish: ringi.FinishCalls}
	h := newHouse(t, houseOptions{idle: true, reg: reg, model: ringitest.Script(ringitest.Turn(turn), ringitest.Text("done"))})
	return h, h.add("Ana", access.RoleUser, access.RoleApprover)
}

func TestStaleAndSecond(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana, ben := h.add("Ana", access.RoleUser, access.RoleApprover), h.add("Ben", access.RoleApprover)
	r := h.asks(ana, kettle)
	a, b := h.browser(ana).open("/a/"+r.ID), h.browser(ben).open("/a/"+r.ID)
	path, form := a.form("/decide", map[string]string{"answer": "deny"})
	form.Set("digest", strings.Repeat("0", 64))
	form.Set("reason", "typed at length")
	a.post(path, form).want(409, "This page was out of date", "Nothing was decided", "typed at length")
	form.Set("answer", "approve")
	form.Set("sure", "1")
	a.post(path, form).want(409, "This page was out of date")
	if got := h.get(r.ID).State; got != ringi.Pending {
		t.Fatalf("a stale page decided: %s", got)
	}
	b.send("/decide", map[string]string{"answer": "approve"}).send("/decide", map[string]string{"sure": "1"}).want(200, "by you")
	a.open("/").page = a.page
	form.Set("digest", r.Digest)
	form.Set("answer", "deny")
	a.post(path, form).want(409, "Somebody was first", "Ben was first", "typed at length")
}

// What cannot be decided by a form sent twice, from elsewhere, or by GET.
func TestF35_F146_FormsOnceAndOurs(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	r := h.asks(ana, kettle)
	b := h.browser(ana).open("/a/" + r.ID)
	path, form := b.form("/decide", map[string]string{"answer": "approve"})
	form.Set("sure", "1")
	b.open(path + "?" + form.Encode()).want(404)
	bad := url.Values{}
	for k, v := range form {
		bad[k] = v
	}
	bad.Set("csrf", "x")
	b.post(path, bad).want(403, "This form is not of your session")
	if got := h.get(r.ID).State; got != ringi.Pending {
		t.Fatalf("decided: %s", got)
	}
	b.post(path, form).want(200, "by you")
	b.post(path, form).want(200, "by you")
	link := strings.TrimPrefix(h.link(ana), h.server.URL)
	c := h.browser("").open(link)
	c.open(link).want(200, "logs you in once") // looking spends nothing
	c.send("/login", nil).want(200, "Log out")
	h.browser("").open(link).send("/login", nil).want(401, "used already")
	if d := h.browser("").open("/a/" + r.ID); !strings.HasPrefix(d.at.RequestURI(), "/login?to=%2Fa%2F") {
		t.Errorf("without a session: %s", d.at)
	}
}

func TestWhoSeesWhat(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana, uma := h.add("Ana", access.RoleApprover), h.add("Uma", access.RoleUser)
	other, aud := h.add("Otto", access.RoleUser), h.add("Audrey", access.RoleAuditor)
	r := h.asks(uma, kettle)
	u := h.browser(uma).open("/a/"+r.ID).want(200, "You asked for this run")
	for _, secret := range []string{"34.90", "3490", "Harbour Bank", "arrived broken", `value="approve"`, "the tool declares"} {
		if strings.Contains(u.page, secret) {
			t.Errorf("S-28: who asked sees %q", secret)
		}
	}
	if u.open("/run/" + r.RunID); strings.Contains(u.page, "arrived broken\"") || u.status != 200 {
		t.Errorf("S-28: the run shows the input to who asked for it: %d", u.status)
	}
	for _, who := range []string{other, aud} {
		b := h.browser(who)
		hidden, unknown := b.open("/a/"+r.ID), b.status
		_ = hidden
		b.open("/a/req_unknown")
		if unknown != b.status {
			t.Errorf("%s: another's is %d, an unknown one %d", who, unknown, b.status)
		}
		if b.open("/run/" + r.RunID); b.status == 200 {
			t.Errorf("%s reads the run", who)
		}
	}
	h.browser(ana).open("/a/"+r.ID).want(200, "34.90 EUR", "Approve")
	u.open("/a/"+r.ID).send("/withdraw", nil, "reason", "my mistake").want(200, "withdrawn")
	h.browser(ana).open("/a/"+r.ID).want(200, "my mistake", "nothing left to decide")
}

func TestFillRespondTakeBackExtendReassignCancel(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana, ben := h.add("Ana", access.RoleUser, access.RoleApprover), h.add("Ben", access.RoleApprover)
	b := h.browser(ana)
	r := h.asks(ana, "Amara Okafor is on the telephone: cancel order A-1057.")
	b.open("/a/"+r.ID).want(200, "Last four digits of the card")
	b.send("/fill", nil, "f.card_last4", "1").want(422, "see the form")
	b.send("/fill", nil, "f.card_last4", "4417", "f.named_address", "true").want(200, "Values typed by a person", "Approve")

	r = h.asks(ana, kettle)
	b.open("/a/"+r.ID).send("/decide", map[string]string{"answer": "respond"}).want(422, "Say what the model shall read")
	b.send("/decide", map[string]string{"answer": "respond"}, "result", "paid in cash").want(200, "Are you sure?")
	b.send("/decide", map[string]string{"sure": "1"})
	if b.status != 422 { // a text where the tool's results are objects
		b.want(422, "does not have the form")
	}

	b.open("/a/"+r.ID).send("/extend", nil, "hours", "700").want(422, "do not wait that long")
	b.open("/a/"+r.ID).send("/extend", nil, "hours", "24").want(200, "waiting")
	next := strings.TrimPrefix(b.at.Path, "/a/")
	if next == r.ID {
		t.Error("an extension is a new request")
	}
	if !strings.Contains(b.page, `<option value="`+ben+`">Ben</option>`) {
		t.Error("the form does not offer who decides")
	}
	uma := h.add("Uma", access.RoleUser)
	for _, nobody := range []string{"local:nobody", uma} {
		b.open("/a/"+next).send("/reassign", nil, "person", nobody).want(422, "Nobody there could decide it")
	}
	b.send("/reassign", nil, "person", ben, "reason", "yours").want(200, "You asked for this run")
	next = strings.TrimPrefix(b.at.Path, "/a/")
	c := h.browser(ben).open("/a/"+next).want(200, "May decideBen")
	c.send("/decide", map[string]string{"answer": "approve"}).send("/decide", map[string]string{"sure": "1"}).want(200, "Take the approval of refund back")
	c.send("/takeback", nil).want(200)
	if got := h.get(next).State; got == ringi.Granted {
		t.Error("not taken back")
	}
	r = h.asks(ana, kettle)
	b.open("/run/"+r.RunID).send("/cancel", nil).want(422)
	b.open("/run/"+r.RunID).send("/cancel", nil, "sure", "1", "reason", "enough").want(200, "cancelled")
}

func TestOutcome(t *testing.T) {
	h := newHouse(t, houseOptions{})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	r := h.asks(ana, "Refund the broken coffee grinder of order A-1088.")
	b := h.browser(ana).open("/a/" + r.ID)
	b.send("/decide", map[string]string{"answer": "approve"}).send("/decide", map[string]string{"sure": "1"})
	var out ringi.ApprovalRequest
	until(t, "the outcome is asked for", func() bool {
		for _, p := range pending(t, h) {
			if p.Kind == ringi.KindOutcome {
				out = p
			}
		}
		return out.ID != ""
	})
	b.open("/a/"+out.ID).want(200, "nobody knows whether it ran", "It ran", "It did not run", "Run it again", "What is not known")
	b.send("/decide", map[string]string{"answer": "did_not_run"}, "note", "the bank says so").want(200, "Are you sure?").send("/decide", map[string]string{"sure": "1"})
	b.open("/a/"+out.ID).want(200, "said that it did not run", "the bank says so")
}

const pair = `{"type":"object","additionalProperties":false,"properties":{"to":{"type":"string"},"n":{"type":"integer"},"pin":{"type":"string","writeOnly":true}}}`

func TestS33_Batch(t *testing.T) {
	h, ana := actHouse(t, pair, "", `{"to":"a","n":1}`, `{"to":"b","n":1}`, `{"to":"c","n":1}`, `{"to":"d"}`, `{"to":"e\u202e","n":1}`)
	res := h.begin(ana, "go")
	var q url.Values = url.Values{}
	for _, p := range res.Pending {
		q.Add("id", p.ID)
	}
	b := h.browser(ana).want(200, "Decide 3 of act together")
	b.open("/batch?"+q.Encode()).want(200, "3 requests", "The same in all", "its tool or the form of its input is another", "its risk is to be looked at by itself")
	b.send("/batch", nil).want(422, "You have decided nothing")
	id := func(i int) string { return res.Pending[i].ID }
	b.send("/batch", nil, "verdict."+id(0), "approve", "verdict."+id(1), "deny", "reason."+id(1), "not b").want(200, "You approve 1 and deny 1")
	if got := h.get(id(0)).State; got != ringi.Pending {
		t.Fatal("decided before it was confirmed")
	}
	// One of them is decided meanwhile: it alone fails.
	if _, err := h.router.Decide(t.Context(), h.get(id(0)).Deny(ringi.Principal{ID: "local:ben", Name: "Ben", Kind: ringi.Person, Auth: "test"}, "")); err != nil {
		t.Fatal(err)
	}
	b.send("/batch", map[string]string{"sure": "1"}).want(200, "Denied.", "it does not wait for a decision")
	if a, c := h.get(id(1)).State, h.get(id(2)).State; a != ringi.Refused || c != ringi.Pending {
		t.Errorf("%s, %s", a, c)
	}
}

func TestS33_BatchHidesNoDifference(t *testing.T) {
	h, ana := actHouse(t, pair, "", `{"to":"a","pin":"1"}`, `{"to":"b","pin":"2"}`)
	res := h.begin(ana, "go")
	h.browser(ana).open("/batch?id="+res.Pending[0].ID+"&id="+res.Pending[1].ID).want(200, "a masked value differs", "1 request.")
}

func TestF151_MaskedAndRevealed(t *testing.T) {
	input := `{"to":"x","pin":"hunter2-pin","headers":{"Authorization":"Bearer sk-TEST-0000"},"note":"curl -H sk-TEST-11112222"}`
	h, ana, r := oneCall(t, `{"type":"object","properties":{"to":{"type":"string"},"pin":{"type":"string","format":"password"},"headers":{"type":"object"},"note":{"type":"string"}}}`, input)
	b := h.browser(ana)
	secrets := []string{"hunter2", "sk-TEST-0000", "sk-TEST-1111"}
	for _, path := range []string{"/", "/a/" + r.ID, "/a/" + r.ID + "/edit", "/run/" + r.RunID, "/?q=hunter2", "/batch?id=" + r.ID, "/?show=all&order=soonest", "/day", "/start", "/help"} {
		b.open(path).want(200)
		for _, s := range secrets {
			if strings.Contains(strings.ReplaceAll(b.page, "q=hunter2", ""), s) && path != "/?q=hunter2" {
				t.Errorf("%s shows %s", path, s)
			}
		}
	}
	if b.open("/?q=hunter2"); strings.Contains(b.page, r.ID) {
		t.Error("the search finds masked values")
	}
	b.open("/a/"+r.ID).send("/reveal", nil).want(200, "hunter2-pin", "Bearer sk-TEST-0000", "was recorded")
	if log := h.logged.String(); !strings.Contains(log, "masked values revealed") || !strings.Contains(log, ana) || strings.Contains(log, "hunter2") {
		t.Errorf("log: %s", log)
	}
	// An edit keeps what it does not show.
	b.open("/a/"+r.ID+"/edit").send("/edit", map[string]string{"by": "fields"}, "f.to", "y").want(200)
	if got := string(pending(t, h)[0].Call.Input); got != strings.Replace(input, `"x"`, `"y"`, 1) {
		t.Errorf("edited: %s", got)
	}
}

func TestRevealNeedsARecord(t *testing.T) {
	reg := ringi.NewRegistry()
	if err := reg.Add(ringi.Tool{Name: "act", Effect: ringi.IdempotentWrite, InputSchema: json.RawMessage(pair)},
		func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) { return ringi.ToolResult{}, nil }); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, houseOptions{idle: true, reg: reg, model: ringitest.Script(ringitest.Calls(ringitest.Call("act", `{"pin":"hunter2"}`))),
		inbox: func(o *inbox.Options) {
			o.Revealed = func(context.Context, ringi.Principal, string, []string) error { return fmt.Errorf("the disk is full") }
		}})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	r := h.asks(ana, "go")
	b := h.browser(ana).open("/a/"+r.ID).send("/reveal", nil).want(503, "could not be recorded")
	if strings.Contains(b.page, "hunter2") {
		t.Error("shown all the same")
	}
}

// hiddenValue are values of hidden fields and of what was typed itself: forms
// must give them back as they were.
var hiddenValue = regexp.MustCompile(`(?s)<input type="hidden"[^>]*>`)

// hostile is the corpus of field-cases M and S-33, in our own words.
var hostile = []string{
	"a\u202etxt.exe", "x\u2066y\u2069", "in\u200bvisible", "\u0430pple.example", "xn--pple-43d.example", "soft\u00adhyphen", "\ufeffbom", "tag\U000e0041\U000e0042",
	"sel\U000e0100", "\u061c\u200e\u200f\u2060", "\U0001d173\U0001bca0", "esc\x1b[2K\x1b[1Gsafe", "bell\a\r\x00", "\u2028\u2029", "\ue000",
	`</textarea></pre><script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `<h1>Approved by admin</h1>`, `javascript:alert(1)`, "{{.CSRF}}", `' onmouseover='x`,
	"[click](http://evil.example)", strings.Repeat("line\n", 200) + "rm -rf ~", `<a href="http://evil.example">Approve</a>`, `</title><base href=//evil.example>`,
}

func TestS33_F140_F141_F143_HostileTextStaysText(t *testing.T) {
	schema := `{"type":"object"}`
	for i, text := range hostile {
		value := jsonText(text)
		h, ana := actHouse(t, schema, text, `{`+value+`:`+value+`,"list":[`+value+`],"description":`+value+`}`)
		r := h.asks(ana, text)
		b := h.browser(ana)
		pages := map[string]string{}
		for _, path := range []string{"/", "/a/" + r.ID, "/a/" + r.ID + "/edit", "/run/" + r.RunID, "/batch?id=" + r.ID, "/?q=" + url.QueryEscape(text)} {
			b.open(path).want(200)
			pages[path] = b.page
		}
		b.open("/a/"+r.ID).send("/decide", map[string]string{"answer": "approve"}, "note", text, "fact", text)
		if b.status == 422 { // what cannot be typed is not asked for
			b.send("/decide", map[string]string{"answer": "approve"}, "note", text, "fact", "act")
		}
		b.want(200, "Are you sure?")
		pages["confirm"] = b.page
		b.open("/a/"+r.ID).send("/decide", map[string]string{"answer": "deny"}, "reason", text, "note", text)
		b.open("/a/" + r.ID)
		pages["denied"] = b.page
		for path, page := range pages {
			if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") || strings.Contains(page, "<h1>Approved") || strings.Contains(page, "evil.example\">") ||
				strings.Contains(page, "<base") || strings.Contains(page, "' onmouseover") {
				t.Errorf("%d: %s holds markup of %q", i, path, text)
			}
			for _, c := range hiddenValue.ReplaceAllString(page, "") {
				if c != '\n' && c != '\t' && c != '\u00a0' && !escape.Plain(c) {
					t.Errorf("%d: %s holds %U raw", i, path, c)
					break
				}
			}
		}
	}
}

func jsonText(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestHeadersAndAssets(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana := h.add("Ana", access.RoleApprover)
	b := h.browser(ana).open("/")
	if got := b.head.Get("Content-Security-Policy"); got != access.ContentSecurityPolicy {
		t.Errorf("policy %q", got)
	}
	for _, in := range []string{"<style", " style=", "<script>", " onclick", " onload"} {
		if strings.Contains(b.page, in) {
			t.Errorf("the page holds %q, which the policy forbids", in)
		}
	}
	for _, name := range []string{"style.css", "inbox.js", "icon.svg"} {
		b.open("/assets/" + name).want(200)
	}
	b.open("/assets/../page/list.html").want(404)
	b.open("/nothing").want(404, "There is nothing here")
}

// S-31: what the table of rights refuses on a page is kept as what the engine
// refuses is; a look, and what does not exist, is not.
func TestS31_APagesRefusalIsKept(t *testing.T) {
	var store ringi.Store
	h := newHouse(t, houseOptions{idle: true, engine: func(c *engine.Config) { store = c.Store }})
	ana, aud := h.add("Ana", access.RoleUser, access.RoleApprover), h.add("Aud", access.RoleAuditor)
	r := h.asks(ana, kettle)
	post := func(b *browser, verb string) {
		t.Helper()
		b.open("/me")
		_, v := b.form("/logout", nil)
		b.post("/a/"+r.ID+verb, url.Values{"csrf": {v.Get("csrf")}, "answer": {"approve"}, "digest": {r.Digest}})
	}
	count := func() int {
		t.Helper()
		all, err := store.Attempts(t.Context(), "default", r.RunID)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	b := h.browser(aud)
	for i, verb := range []string{"/decide", "/takeback", "/withdraw", "/reassign", "/extend", "/reveal", "/edit"} {
		if post(b, verb); b.status != 403 && b.status != 404 || count() != i+1 {
			t.Errorf("%s: %d, %d are kept", verb, b.status, count())
		}
	}
	all, _ := store.Attempts(t.Context(), "default", r.RunID)
	if a := all[0]; a.By != aud || a.Kind != "refused_decide" || a.Channel == "" || a.RequestID != r.ID {
		t.Errorf("%+v", a)
	}
	n := count()
	post(b, "/look")
	b.open("/a/" + r.ID)
	post(b, "x/decide")
	if count() != n {
		t.Errorf("a look, a page or an unknown request is kept: %d, then %d", n, count())
	}
}

// Four eyes are two people, not two logins (S-12).
func TestS12_FourEyes(t *testing.T) {
	people := &personsLater{}
	var store ringi.Store
	h := newHouse(t, houseOptions{idle: true, engine: func(c *engine.Config) { store, c.FourEyes, c.Persons = c.Store, engine.FourEyesAll, people }})
	ana, ben, also := h.add("Ana", access.RoleUser, access.RoleApprover), h.add("Ben", access.RoleApprover), h.add("Ana2", access.RoleApprover)
	people.same, people.dir = map[string]string{also: ana}, h.people
	r := h.asks(ana, kettle)
	b := h.browser(ana).open("/a/"+r.ID).want(200, "Four eyes")
	b.send("/decide", map[string]string{"answer": "approve"}).send("/decide", map[string]string{"sure": "1"}).want(403, "You may not decide this")
	h.browser(also).open("/a/"+r.ID).send("/decide", map[string]string{"answer": "approve"}).send("/decide", map[string]string{"sure": "1"}).want(403, "You may not decide this")
	tried, err := store.Attempts(t.Context(), "default", r.RunID)
	if err != nil || len(tried) != 2 || tried[1].By != also { // S-31
		t.Errorf("attempts %+v, %v", tried, err)
	}
	h.browser(ben).open("/a/"+r.ID).send("/decide", map[string]string{"answer": "approve"}).send("/decide", map[string]string{"sure": "1"}).want(200, "by you")
}

// personsLater is a directory that is opened after the engine, and joins logins.
type personsLater struct {
	dir  ringi.Persons
	same map[string]string
}

func (p *personsLater) Persons(ctx context.Context, ids []string) ([]string, error) {
	out, err := p.dir.Persons(ctx, ids)
	for i := range out {
		if first, ok := p.same[out[i]]; ok {
			out[i] = first
		}
	}
	return out, err
}

// S-27: a page's stream ends with the right: when the session ends, the person
// is disabled, or the run is no longer his to read.
func TestS27_PageStreamEndsWithTheRight(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	for name, take := range map[string]func(u access.User) access.User{
		"disabled": func(u access.User) access.User { u.Disabled = true; return u },
		"roleless": func(u access.User) access.User { u.Roles = nil; return u },
	} {
		ana, ben := h.add("Ana-"+name, access.RoleUser, access.RoleApprover), h.add("Ben-"+name, access.RoleApprover)
		r := h.asks(ana, kettle)
		res, err := h.browser(ben).client.Get(h.server.URL + "/events?run=" + r.RunID)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		u, err := h.people.User(t.Context(), ben)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.people.SetUser(t.Context(), access.Operator("os:1@test", "default"), take(u)); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if took := time.Since(begun); err != nil || took > 30*time.Second || !strings.Contains(string(text), "event: end") {
			t.Errorf("%s: it took %s, %v: %s", name, took, err, text)
		}
	}
}

func TestDayAndDecided(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	for i := range 3 {
		r := h.asks(ana, kettle)
		if i == 2 {
			break
		}
		if _, err := h.router.Decide(t.Context(), r.Deny(ringi.Principal{ID: ana, Kind: ringi.Person, Auth: "test"}, "no")); err != nil {
			t.Fatal(err)
		}
	}
	b := h.browser(ana)
	b.open("/day").want(200, "Waiting now1", "Decided2", "Decided in under 2 seconds2 (100 %)")
	b.open("/?state=decided").want(200, "denied by Ana")
	b.open("/a/"+pending(t, h)[0].ID).want(200, "approved 0, denied 2", "Last denied by Ana")
	if b.open("/start"); b.status != 200 {
		t.Errorf("start: %d", b.status)
	}
	b.send("/start", map[string]string{"text": kettle}).want(200, "about to go on")

}
