package httpapi_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// address is an operation on a thing, and the right that it asks for. In its
// path and body {run}, {thread}, {id} and {digest} stand for the thing's.
type address struct {
	method, path, body string
	routes             []access.Route
}

var reads = []access.Route{access.RunsRead, access.AuditRead}

var addresses = []address{
	{"GET", "/v1/threads/{thread}/messages", "", []access.Route{access.ThreadsRead}},
	{"GET", "/v1/runs/{run}", "", reads},
	{"GET", "/v1/runs/{run}/events", "", reads},
	{"GET", "/v1/runs/{run}/verification", "", []access.Route{access.Verify}},
	{"GET", "/v1/approvals/{id}", "", []access.Route{access.ApprovalsRead}},
	{"POST", "/v1/approvals/{id}/decisions", `{"digest":"{digest}","answer":"run_again"}`, []access.Route{access.ApprovalsDecide}},
	{"POST", "/v1/approvals/{id}/take-back", `{}`, []access.Route{access.ApprovalsTakeBack}},
	{"POST", "/v1/approvals/{id}/reassignment", `{}`, []access.Route{access.ApprovalsReassign}},
	{"POST", "/v1/approvals/{id}/extension", `{"until":"2001-01-01T00:00:00Z"}`, []access.Route{access.ApprovalsExtend}},
	{"POST", "/v1/runs", `{"agent":"shop","text":"say hi","thread":"{thread}"}`, []access.Route{access.RunsStart}},
	{"POST", "/v1/approvals/{id}/withdrawal", `{"reason":"no longer"}`, []access.Route{access.ApprovalsWithdraw}},
	{"POST", "/v1/approvals/{id}/presence", `{}`, []access.Route{access.ApprovalsRead}},
	{"POST", "/v1/approvals/{id}/reveal", `{"places":["/pin"]}`, []access.Route{access.ApprovalsReveal}},
	{"POST", "/v1/runs/{run}/cancel", `{}`, []access.Route{access.RunsCancel}},
}

// documented returns the addresses of the API's own document that take a method,
// with names for their ids as in [address]; streams without an end are left out.
func (w *world) documented(method string) []string {
	w.t.Helper()
	var doc struct {
		Paths map[string]map[string]any
	}
	w.do("", "GET", "/v1/openapi.json", "").into(w.t, &doc)
	var out []string
	for path, item := range doc.Paths {
		if item[strings.ToLower(method)] == nil || path == "/v1/events" {
			continue
		}
		for kind, name := range map[string]string{"/v1/runs/": "{run}", "/v1/threads/": "{thread}", "/v1/approvals/": "{id}", "/v1/calls/": "{call}"} {
			if strings.HasPrefix(path, kind) {
				path = strings.Replace(path, "{id}", name, 1)
			}
		}
		out = append(out, path)
	}
	slices.Sort(out)
	return out
}

// What the document says of runs, threads and approvals the walk knows. Calls of
// foreign loops, and the closing of their runs, have one of their own:
// [TestS11_AnothersCallIsUnknown].
func TestS21_WalkIsWhole(t *testing.T) {
	w := newWorld(t, setting{})
	walked := map[string]bool{}
	for _, a := range addresses {
		walked[a.method+" "+a.path] = true
	}
	n := 0
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		for _, path := range w.documented(method) {
			named := strings.Contains(path, "{run}") || strings.Contains(path, "{thread}") || strings.Contains(path, "{id}") && strings.HasPrefix(path, "/v1/approvals/")
			named = named && path != "/v1/runs/{run}/close"
			if n++; named && !walked[method+" "+path] {
				t.Errorf("the walk leaves out %s %s", method, path)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d operations in the document", n)
	}
}

// thing is a run with a request, and how it stands to each caller.
type thing struct {
	name  string
	run   run
	agent string
	by    string
	team  bool
}

// TestS21_Walk asks for every operation as everybody on everything: what the
// table says is what comes, and another's thing is answered with the bytes of
// one that does not exist.
func TestS21_Walk(t *testing.T) {
	w := newWorld(t, setting{})
	things := func() []thing {
		return []thing{
			{"uma's", w.start("uma", "shop", "refund 5"), "shop", "local:uma", false},
			{"uma's, asked of a team", w.start("uma", "shop", "teamwork 5"), "shop", "local:uma", true},
			{"the bot's", w.start("bot", "shop", "refund 5"), "shop", access.ClientID("bot"), false},
			{"uma's bot's", w.start("hers", "shop", "refund 5"), "shop", access.ClientID("hers"), false},
			{"of another agent", w.start("udo", "other", "teamwork 5"), "other", "local:udo", true},
		}
	}
	unknown := thing{name: "unknown", run: run{RunID: "run_none", Thread: "thr_none", Pending: []request{{ID: "req_none"}}}}
	n := 0
	for _, who := range []string{"uma", "udo", "ben", "bea", "ada", "aud", "pay", "nil", "bot", "bot2", "hers"} {
		caller, err := w.dir.ByToken(t.Context(), w.token[who])
		w.must(err)
		all := things()
		for _, a := range addresses {
			none := w.ask(who, a, unknown)
			for _, th := range all {
				got := w.ask(who, a, th)
				w.compare(caller, a, th, got, none)
				n++
			}
		}
	}
	t.Logf("%d requests", n)
}

func (w *world) ask(who string, a address, th thing) reply {
	r := strings.NewReplacer("{run}", th.run.RunID, "{thread}", th.run.Thread, "{id}", th.run.Pending[0].ID, "{call}", th.run.Pending[0].Call.ID, "{digest}", "x")
	var header []string
	if strings.HasSuffix(a.path, "decisions") {
		header = []string{"If-Match", `"x.pending"`}
	}
	return w.do(who, a.method, r.Replace(a.path), r.Replace(a.body), header...)
}

// compare holds an answer against the table of rights.
func (w *world) compare(caller access.Who, a address, th thing, got, none reply) {
	w.t.Helper()
	deciders := ringi.Deciders{}
	if th.team {
		deciders.Teams = []string{"money"}
	}
	owner := caller.OwnerOf(access.Thing{Space: "default", Agent: th.agent, By: []string{th.by}, Deciders: []ringi.Deciders{deciders}})
	may, hidden, had := false, false, false
	for _, route := range a.routes {
		err := access.May(caller, route, owner)
		may = may || err == nil
		hidden = hidden || errors.Is(err, access.ErrHidden)
		had = had || errors.Is(access.Unknown(caller, route), access.ErrHidden)
	}
	what := string(caller.Principal.ID) + " " + a.method + " " + a.path + " " + th.name
	wantNone := http.StatusForbidden
	if had {
		wantNone = http.StatusNotFound
	}
	if none.status != wantNone {
		w.t.Errorf("%s: an unknown id gets %d, want %d: %s", what, none.status, wantNone, none.body)
	}
	p := got
	switch {
	case may:
		// What the table allows the engine does not take for somebody else's: a
		// decision alone has rules of its own.
		if strings.HasSuffix(a.path, "presence") && caller.Principal.Kind != ringi.Person { // people alone look
			wants(w.t, p, http.StatusForbidden, "forbidden")
			return
		}
		forbidden := strings.Contains(p.body, `problem:forbidden"`) ||
			strings.Contains(p.body, `problem:not-permitted"`) && !strings.HasSuffix(a.path, "decisions")
		if p.status == http.StatusNotFound || forbidden {
			w.t.Errorf("%s: he may, and gets %d %s", what, p.status, p.body)
		}
	case hidden:
		if p.status != none.status || p.body != none.body {
			w.t.Errorf("%s: another's is told from an unknown one:\n%d %s%d %s", what, p.status, p.body, none.status, none.body)
		}
	default:
		if p.status != http.StatusForbidden || !strings.Contains(p.body, `problem:forbidden"`) {
			w.t.Errorf("%s: he may not, and gets %d %s", what, p.status, p.body)
		}
	}
}

// An agent's token never decides: not its own, not as a principal in a body.
func TestS26_AnAgentsTokenNeverDecides(t *testing.T) {
	w := newWorld(t, setting{})
	r := w.start("bot", "shop", "refund 5")
	q := w.asked("ben", r)
	digest := `{"digest":"` + q.Digest + `","answer":"approve"}`
	for _, path := range []string{"decisions", "take-back", "reassignment", "extension"} {
		body := map[string]string{"decisions": digest, "extension": `{"until":"2100-01-01T00:00:00Z"}`}[path]
		if body == "" {
			body = `{}`
		}
		if got := w.do("bot", "POST", "/v1/approvals/"+q.ID+"/"+path, body, "If-Match", q.tag()); got.status != 403 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	batch := `{"items":[` + strings.Replace(digest, "{", `{"id":"`+q.ID+`",`, 1) + `]}`
	if got := w.do("bot", "POST", "/v1/approval-batches", batch); got.status != 403 {
		t.Errorf("batch: %d %s", got.status, got.body)
	}
	if now := w.asked("ben", r); now.State != "pending" {
		t.Errorf("it is %s", now.State)
	}
}

// Lists hold what their reader may see, and no more; cursors are his own.
func TestS21_ListsAreFiltered(t *testing.T) {
	w := newWorld(t, setting{})
	var all []run
	for range 3 {
		all = append(all, w.start("uma", "shop", "refund 5"), w.start("udo", "other", "teamwork 5"))
	}
	count := func(who, path, member string) (n int) {
		cursor := ""
		for {
			got := w.do(who, "GET", path+cursor, "")
			if got.status == 403 {
				return -1
			}
			var page map[string]any
			got.into(t, &page)
			n += len(page[member].([]any))
			next, _ := page["next"].(string)
			if next == "" {
				return n
			}
			if got.header.Get("Link") == "" {
				t.Errorf("no Link to the next page: %v", got.header)
			}
			if stolen := w.do("ada", "GET", path+"&cursor="+next, ""); who != "ada" && stolen.status != 400 {
				t.Errorf("another's cursor: %d %s", stolen.status, stolen.body)
			}
			cursor = "&cursor=" + next
		}
	}
	for who, want := range map[string][2]int{"uma": {3, 3}, "udo": {3, 3}, "ben": {6, 6}, "bea": {3, 3}, "ada": {6, 6}, "aud": {-1, 6}, "bot": {0, 0}, "nil": {-1, -1}} {
		if n := count(who, "/v1/approvals?limit=2", "requests"); n != want[0] {
			t.Errorf("%s sees %d approvals, want %d", who, n, want[0])
		}
		if n := count(who, "/v1/runs?limit=2", "runs"); n != want[1] {
			t.Errorf("%s sees %d runs, want %d", who, n, want[1])
		}
	}
	for filter, want := range map[string]int{"tool=refund": 3, "agent=other": 3, "thread=" + all[0].Thread: 1, "run=" + all[1].RunID: 1, "state=approved,spent": 0, "state=pending": 6} {
		if n := count("ben", "/v1/approvals?limit=50&"+filter, "requests"); n != want {
			t.Errorf("%s gives %d, want %d", filter, n, want)
		}
	}
	if got := w.do("ben", "GET", "/v1/approvals?nonsense=1", ""); got.status != 422 {
		t.Errorf("an unknown filter: %d", got.status)
	}
}
