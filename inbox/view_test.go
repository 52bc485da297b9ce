package inbox_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

func TestKeptViews(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana, ben := h.add("Ana", access.RoleUser, access.RoleApprover), h.add("Ben", access.RoleApprover)
	refund := h.asks(ana, kettle)
	h.asks(ana, "Amara Okafor is on the telephone: cancel order A-1057.")
	b := h.browser(ana)
	b.open("/").want(200)
	if strings.Contains(b.page, "Keep this view") {
		t.Error("the plain list is offered to be kept")
	}
	b.open("/?tool=refund&order=riskiest&show=all&after="+refund.ID+"&made=up").want(200, "Keep this view")
	b.send("/views", nil, "name", "  Refunds <b>first ").want(200, "Refunds <b>first", "Forget the view Refunds <b>first", "refund")
	if got, want := b.at.RequestURI(), "/?order=riskiest&show=all&tool=refund"; got != want {
		t.Errorf("it leads to %s, want %s", got, want)
	}
	if got := b.cards(); len(got) != 1 || got[0] != refund.ID {
		t.Errorf("the view shows %v", got)
	}
	b.open("/").want(200, "Refunds <b>first")
	if b.open("/?show=all&q=x").send("/views", nil, "name", strings.Repeat("x", 41)); b.status != 422 || !strings.Contains(b.page, "The view was not kept") {
		t.Errorf("a long name: %d", b.status)
	}
	if other := h.browser(ben).open("/").want(200); strings.Contains(other.page, "Refunds") {
		t.Error("somebody else sees it")
	}
	b.open("/?tool=refund&order=riskiest&show=all").send("/views/forget", nil).want(200)
	if strings.Contains(b.page, "Refunds") {
		t.Error("it is not forgotten")
	}
	// What is kept is read as a list, whatever a form says.
	_, out := b.form("/logout", nil)
	csrf := url.Values{"csrf": out["csrf"], "name": {"odd"}, "query": {"state=//evil.example&q=" + url.QueryEscape("a b&tool=x") + "&x=%zz;"}}
	if b.post("/views", csrf).want(200); b.at.Host != b.h.server.Listener.Addr().String() || strings.Contains(b.at.RawQuery, "evil") {
		t.Errorf("it leads to %s", b.at)
	}
	csrf.Del("csrf")
	if b.post("/views", csrf); b.status != 403 {
		t.Errorf("without the form's secret: %d", b.status)
	}
}

// What waits is new to who never had it before him, and to him alone.
func TestUnread(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana, ben := h.add("Ana", access.RoleUser, access.RoleApprover), h.add("Ben", access.RoleApprover)
	uma := h.add("Uma", access.RoleUser)
	first := h.asks(uma, kettle)
	h.asks(uma, "Amara Okafor is on the telephone: cancel order A-1057.")
	fresh := func(id string) int { return strings.Count(h.browser(id).open("/").want(200).page, "New to you") }
	if a, b, u := fresh(ana), fresh(ben), fresh(uma); a != 2 || b != 2 || u != 0 {
		t.Errorf("new to Ana %d, to Ben %d, to who asked for it %d", a, b, u)
	}
	h.browser(ana).open("/a/" + first.ID).want(200)
	if a, b := fresh(ana), fresh(ben); a != 1 || b != 2 {
		t.Errorf("Ana has opened one: new to her %d, to Ben %d", a, b)
	}
	h.browser(ben).open("/a/"+first.ID).send("/decide", map[string]string{"answer": "deny"}, "reason", "no")
	if p := h.browser(ana).open("/?state=decided&show=all").want(200); strings.Contains(p.page, "New to you") {
		t.Error("a decided one is new")
	}
}

// A form that is sent twice begins one run; another one like it begins another.
func TestStartFormOnce(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	uma, eve := h.add("Uma", access.RoleUser), h.add("Eve", access.RoleUser)
	b := h.browser(uma).open("/start").want(200)
	to, form := b.form("/start", map[string]string{"text": kettle})
	runs := map[string]bool{}
	for range 3 {
		b.post(to, form).want(200)
		runs[b.at.Path] = true
	}
	if len(runs) != 1 {
		t.Fatalf("one form begins %v", runs)
	}
	// All at once: they differ in nothing but who comes first.
	form.Set("text", "the same, at once")
	led := make(chan string, 8)
	for range cap(led) {
		again := *b
		go func() { led <- again.post(to, form).at.Path }()
	}
	at := <-led
	for range cap(led) - 1 {
		if path := <-led; path != at || !strings.HasPrefix(path, "/run/") {
			t.Errorf("one form leads to %s and %s", at, path)
		}
	}
	runs[at] = true
	other := h.browser(eve).open("/start")
	_, hers := other.form("/start", map[string]string{"text": kettle})
	hers.Set("key", form.Get("key"))
	other.post(to, hers).want(200)
	runs[other.at.Path] = true
	b.open("/start").send("/start", map[string]string{"text": kettle}).want(200)
	runs[b.at.Path] = true
	_, form = b.open("/start").form("/start", map[string]string{"text": kettle})
	form.Del("key")
	for range 2 { // a page without a key, as one of an older program
		b.post(to, form).want(200)
		runs[b.at.Path] = true
	}
	rows, err := h.router.Runs(t.Context(), ringi.RunQuery{})
	if err != nil || len(runs) != 6 || len(rows) != 6 {
		t.Errorf("%d runs are shown and %d are there, %v, want 6", len(runs), len(rows), err)
	}
}
