package inbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/inbox"
	"github.com/ringi-dev/ringi/ringitest"
)

// echoHouse is a house whose agent calls act once for each input in the message:
// a JSON array of them. What else change does to the tool is its own.
func echoHouse(t *testing.T, schema string, change func(*ringi.Tool), more func(*houseOptions)) *house {
	t.Helper()
	tool := ringi.Tool{Name: "act", Effect: ringi.IdempotentWrite, AllowEdit: true, InputSchema: json.RawMessage(schema)}
	if change != nil {
		change(&tool)
	}
	reg := ringi.NewRegistry()
	if err := reg.Add(tool, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
		return ringi.ToolResult{Output: "done"}, nil
	}); err != nil {
		t.Fatal(err)
	}
	o := houseOptions{idle: true, reg: reg, model: ringitest.ScriptFunc(func(req ringi.ModelRequest) ringi.ModelTurn {
		last := req.Messages[len(req.Messages)-1]
		var inputs []json.RawMessage
		if last.Role != ringi.RoleUser || json.Unmarshal([]byte(last.Text), &inputs) != nil {
			return ringi.ModelTurn{Text: "done"}
		}
		turn := ringi.ModelTurn{Finish: ringi.FinishCalls}
		for _, in := range inputs {
			turn.Calls = append(turn.Calls, ringitest.Call("act", string(in)))
		}
		return turn
	})}
	if more != nil {
		more(&o)
	}
	return newHouse(t, o)
}

// denyAll denies what a run asks.
func denyAll(t *testing.T, h *house, by string, res *ringi.Result) {
	t.Helper()
	for _, r := range res.Pending {
		if _, err := h.router.Decide(t.Context(), r.Deny(ringi.Principal{ID: by, Kind: ringi.Person, Auth: "test"}, "no")); err != nil {
			t.Fatal(err)
		}
	}
}

var cardTag = regexp.MustCompile(`<li class="card[^"]*" id="([^"]+)"`)

func (b *browser) cards() []string {
	var ids []string
	for _, m := range cardTag.FindAllStringSubmatch(b.page, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// Lists, search and numbers are of all requests, not of the newest: with some
// thousands behind it the oldest decision is found, page for page and by a word.
func TestListsHoldAllOfThousands(t *testing.T) {
	h := echoHouse(t, `{"type":"object"}`, nil, nil)
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	oldest := h.begin(ana, `[{"to":"the very first Zanzibar parcel"}]`)
	denyAll(t, h, ana, oldest)
	const runs, each = 104, 20 // a turn holds no more calls
	for i := range runs {
		var in []string
		for j := range each {
			in = append(in, fmt.Sprintf(`{"to":"street %d","n":%d}`, i, j))
		}
		res := h.begin(ana, "["+strings.Join(in, ",")+"]")
		if len(res.Pending) != each {
			t.Fatalf("%d requests wait, want %d", len(res.Pending), each)
		}
		if i%26 == 0 { // 80 of them are decided
			denyAll(t, h, ana, res)
		}
	}
	first := oldest.Pending[0].ID
	b := h.browser(ana)
	for _, q := range []string{"zanzibar", "FIRST parcel", first, "zanz"} {
		b.open("/?" + url.Values{"state": {"decided"}, "q": {q}}.Encode()).want(200)
		if got := b.cards(); len(got) != 1 || got[0] != first {
			t.Errorf("by %q: %q", q, got)
		}
	}
	var got []string
	for path := "/?state=decided"; path != ""; {
		b.open(path).want(200)
		got = append(got, b.cards()...)
		path = ""
		if m := regexp.MustCompile(`class="more"><a class="button" href="([^"]+)"`).FindStringSubmatch(b.page); m != nil {
			path = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	seen := map[string]bool{}
	for _, id := range got {
		seen[id] = true
	}
	if len(got) != 81 || len(seen) != 81 || got[80] != first {
		t.Errorf("%d decided ones in pages, %d of them once, the last %s, want 81 with %s", len(got), len(seen), got[len(got)-1], first)
	}
	b.open("/day").want(200, "Waiting now1 000 or more", "Decided81", "act0810")
	b.open("/").want(200, "(99+) Pending", "Requests 99+ waiting")
	if n := len(b.cards()); n != 50 {
		t.Errorf("a page holds %d", n)
	}
}

func TestFiltersAndOrderStandInTheAddress(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	refund, cancel := h.asks(ana, kettle), h.asks(ana, "Amara Okafor is on the telephone: cancel order A-1057.")
	b := h.browser(ana)
	for path, want := range map[string][]string{
		"/":                                  {refund.ID, cancel.ID},
		"/?order=newest":                     {cancel.ID, refund.ID},
		"/?order=soonest":                    {refund.ID, cancel.ID},
		"/?order=riskiest":                   {refund.ID, cancel.ID}, // both of one risk
		"/?order=riskiest&state=decided":     nil,
		"/?tool=refund":                      {refund.ID},
		"/?tool=nothing":                     nil,
		"/?agent=office":                     {refund.ID, cancel.ID},
		"/?agent=other":                      nil,
		"/?kind=input":                       {cancel.ID},
		"/?kind=outcome":                     nil,
		"/?q=kettle":                         {refund.ID},
		"/?q=kettle&tool=cancel_order":       nil,
		"/?show=mine":                        {refund.ID, cancel.ID},
		"/?show=teams":                       nil,
		"/?show=all&q=c-1003":                {cancel.ID},
		"/?state=decided":                    nil,
		"/?state=made-up&show=up&order=some": {refund.ID, cancel.ID},
	} {
		b.open(path).want(200)
		if got := strings.Join(b.cards(), " "); got != strings.Join(want, " ") {
			t.Errorf("%s shows %s, want %s", path, got, want)
		}
	}
	b.open("/?after=req_unknown").want(404)
	b.open("/?tool=refund&q=kettle&order=newest").want(200)
	for _, keeps := range []string{`href="/?q=kettle&amp;state=decided&amp;tool=refund"`, `<option value="refund" selected>`, `<option value="newest" selected>`} {
		if !strings.Contains(b.page, keeps) {
			t.Errorf("the page lacks %s", keeps)
		}
	}
}

// Who merely asked finds nothing by an input that he does not see (S-28).
func TestS28_SearchIsNoOracle(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	uma := h.add("Uma", access.RoleUser)
	r := h.asks(uma, kettle)
	b := h.browser(uma)
	for q, found := range map[string]bool{"": true, "refund": true, r.ID: true, "kettle": false, "refund kettle": false, "a-1042": false} {
		b.open("/?" + url.Values{"q": {q}}.Encode()).want(200)
		if got := len(b.cards()) == 1; got != found {
			t.Errorf("by %q found: %v", q, got)
		}
	}
}

// Nor does a search find what is masked by its name or its looks (S-34).
func TestS34_SearchFindsNothingMasked(t *testing.T) {
	h := echoHouse(t, `{"type":"object"}`, nil, nil)
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	h.begin(ana, `[{"to":"mira","headers":{"Authorization":"zebra-crossing"},"note":"use sk-TEST-0000 here"}]`)
	b := h.browser(ana)
	for q, found := range map[string]bool{"mira": true, "zebra": false, "sk-test": false, "0000": false} {
		b.open("/?q=" + q).want(200)
		if got := len(b.cards()) == 1; got != found {
			t.Errorf("by %q found: %v", q, got)
		}
	}
}

// Similar are calls with equal values of the keys that the tool marks, whatever
// their age; fourteen harmless ones say nothing of another (S-33).
func TestS33_SimilarCounts(t *testing.T) {
	h := echoHouse(t, `{"type":"object","properties":{"to":{"type":"string","x-similar":true},"note":{"type":"string"}}}`, nil, nil)
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	by := ringi.Principal{ID: ana, Kind: ringi.Person, Auth: "test"}
	for i := range 14 {
		res := h.begin(ana, fmt.Sprintf(`[{"to":"mira","note":"%d"}]`, i))
		d := res.Pending[0].Approve(by)
		if i == 3 {
			d = res.Pending[0].Deny(by, "")
		}
		if _, err := h.router.Decide(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	same, other := h.begin(ana, `[{"to":"mira","note":"new"}]`).Pending[0], h.begin(ana, `[{"to":"eve","note":"new"}]`).Pending[0]
	b := h.browser(ana)
	b.open("/a/"+same.ID).want(200, "approved 13, denied 1 in 30 days. Last approved by Ana")
	link := regexp.MustCompile(`href="([^"]+)">See them`).FindStringSubmatch(b.page)
	if link == nil {
		t.Fatal("nothing lists them")
	}
	b.open(strings.ReplaceAll(link[1], "&amp;", "&")).want(200)
	if n := len(b.cards()); n != 14 {
		t.Errorf("%d are listed", n)
	}
	b.open("/a/"+other.ID).want(200, "none was decided in 30 days")
}

// A masked value that differs parts a group before anybody opens it.
func TestS33_GroupsSplitByWhatIsHidden(t *testing.T) {
	h := echoHouse(t, pair, nil, nil)
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	h.begin(ana, `[{"to":"a","pin":"1"},{"to":"b","pin":"1"},{"to":"c","pin":"2"},{"to":"d"},{"to":"e"}]`)
	b := h.browser(ana).want(200, "Decide 2 of act together (to, pin)", "Decide 2 of act together (to)")
	if n := strings.Count(b.page, `href="/batch?`); n != 2 {
		t.Errorf("%d groups", n)
	}
}

// A request whose risk is to be looked at is approved by who has typed a fact of
// it, and by nobody else: neither at once nor through the second question.
func TestS33_TypedFact(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	r := h.asks(ana, "Write to the customer of order A-1071.")
	b := h.browser(ana).open("/a/"+r.ID).want(200, "Type the host of “to” to approve")
	approve := map[string]string{"answer": "approve"}
	b.send("/decide", approve).want(422, "Nothing was decided")
	b.send("/decide", approve, "fact", "example.org", "note", "kept").want(422, "kept")
	b.send("/decide", approve, "sure", "1").want(422)
	if got := h.get(r.ID).State; got != ringi.Pending {
		t.Fatalf("it is %s", got)
	}
	b.send("/decide", approve, "fact", " Example.COM ").want(200, "Are you sure?")
	b.send("/decide", map[string]string{"sure": "1"}, "fact", "").want(422)
	b.open("/a/"+r.ID).send("/decide", approve, "fact", "example.com").send("/decide", map[string]string{"sure": "1"}).want(200, "by you")
	// Nothing is typed to deny, nor where there is no such risk.
	r = h.asks(ana, "Write to the customer of order A-1071.")
	b.open("/a/"+r.ID).send("/decide", map[string]string{"answer": "deny"}).want(200, "denied")
	r = h.asks(ana, kettle)
	if b.open("/a/" + r.ID); strings.Contains(b.page, `id="fact"`) {
		t.Error("a fact is asked for without a risk")
	}
}

func TestIconCounts(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	b := h.browser(ana).want(200, "Pending · Ringi")
	if strings.Contains(b.page, "/icon/") || strings.Contains(b.page, "(0)") {
		t.Error("nothing is counted")
	}
	h.asks(ana, kettle)
	b.open("/help").want(200, "(1) Help and keys · Ringi")
	if !strings.Contains(b.page, `<link rel="icon" href="/icon/1"`) {
		t.Error("the icon has no count")
	}
	for path, want := range map[string]string{"/icon/1": ">1</text>", "/icon/99": ">99</text>", "/icon/100": ">99+</text>", "/icon/0": "<svg"} {
		b.open(path).want(200)
		if !strings.Contains(b.page, want) || b.head.Get("Content-Type") != "image/svg+xml" {
			t.Errorf("%s is %s", path, b.page)
		}
	}
	for _, path := range []string{"/icon/-1", "/icon/101", "/icon/x"} {
		if b.open(path); b.status != 404 {
			t.Errorf("%s: %d", path, b.status)
		}
	}
}

// A decision that comes too late keeps what was typed.
func TestExpiryKeepsTheReason(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true, engine: func(c *engine.Config) { c.Expiry = 400 * time.Millisecond }})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	r := h.asks(ana, kettle)
	b := h.browser(ana).open("/a/" + r.ID)
	until(t, "it expires", func() bool { return h.get(r.ID).State == ringi.Expired })
	b.send("/decide", map[string]string{"answer": "deny"}, "reason", "half a thought").want(410, "has expired", "half a thought")
	b.open("/?state=expired").want(200)
	if got := b.cards(); len(got) != 1 || got[0] != r.ID {
		t.Errorf("expired: %q", got)
	}
	b.open("/day").want(200, "Expired1")
	b.open("/day?date=2001-02-03").want(200, "Nothing was decided", "Today")
	b.open("/day?date=9999-01-01").want(404)
	b.open("/day?date=x").want(404)
}

// plainService is a service that does not count.
type plainService struct{ ringi.Service }

func TestAServiceThatDoesNotCount(t *testing.T) {
	h := echoHouse(t, `{"type":"object"}`, nil, func(o *houseOptions) {
		o.inbox = func(o *inbox.Options) { o.Service = plainService{o.Service} }
	})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	r := h.asks(ana, `[{"to":"mira"}]`)
	b := h.browser(ana).want(200, "Pending · Ringi")
	b.open("/a/"+r.ID).want(200, "Approve")
	b.open("/day").want(501, "not counted here")
}
