//go:build !race

package inbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
)

// Where the risk is to be looked at Deny has the focus, no single key approves,
// and a fact of the request is typed.
func TestBrowserS33_TypedFact(t *testing.T) {
	onScreens(t, houseOptions{idle: true}, func(t *testing.T, h *house, open func() *tab, ana string) {
		b := open().login(ana)
		r := h.asks(ana, "Write to the customer of order A-1071.")
		b.open("/a/" + r.ID)
		b.until(`document.activeElement.id === "deny"`)
		b.key("a")
		b.until(`document.activeElement.id === "fact"`)
		b.key(kb.Enter) // an empty field is not taken
		ask[string](b, `document.body.dataset.hold = "0.05"`)
		b.write("#fact", "example.org")
		b.click("#approve")
		b.says("Nothing was decided")
		b.until(`document.activeElement.id === "fact" && document.activeElement.value === "example.org"`)
		b.look("request-fact-wrong")
		b.write("#fact", "example.com")
		b.press("#approve")
		b.until(`document.querySelector(".flash")`)
		if got := h.get(r.ID).State; got != ringi.Granted {
			t.Fatalf("it is %s", got)
		}
	})
}

// A request that expires before one's eyes says so before, can be extended, and
// keeps what was typed.
func TestBrowserExpiryWhileOpen(t *testing.T) {
	browser := chrome(t)
	h := newHouse(t, houseOptions{idle: true, engine: func(c *engine.Config) { c.Expiry = 12 * time.Second }})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	b := h.tab(t, browser, screens[0]).login(ana)
	first := h.asks(ana, kettle)
	b.open("/a/" + first.ID)
	b.says("This request expires in", "Give it more time")
	b.click("#changed a")
	b.until(`document.getElementById("extend").open`)
	b.click("#extend button")
	b.until(`location.pathname !== "/a/` + first.ID + `"`)
	b.until(`document.querySelector(".state time")`)
	second := h.asks(ana, kettle)
	b.open("/a/" + second.ID)
	b.write("#reason", "half a thought")
	b.says("This request has expired. What you typed is still here.")
	b.until(`document.getElementById("deny").disabled && document.getElementById("reason").value === "half a thought"`)
	b.look("request-expired-open")
}

func TestBrowserReveal(t *testing.T) {
	browser := chrome(t)
	for _, s := range screens {
		h := echoHouse(t, pair, nil, nil)
		ana := h.add("Ana", access.RoleUser, access.RoleApprover)
		r := h.asks(ana, `[{"to":"mira","pin":"hunter2"}]`)
		b := h.tab(t, browser, s).login(ana)
		b.open("/a/" + r.ID)
		b.says("•••••••• masked")
		if strings.Contains(b.text(), "hunter2") {
			t.Error("it is shown")
		}
		b.look("request-masked")
		b.click(`form[action$="/reveal"] button`)
		b.says("hunter2", "That you looked was recorded")
		b.look("request-revealed")
		if !strings.Contains(h.logged.String(), "masked values revealed") {
			t.Error("nothing was recorded")
		}
	}
}

// Requests are selected by x, and decided together.
func TestBrowserKeysSelect(t *testing.T) {
	browser := chrome(t)
	h := echoHouse(t, pair, nil, nil)
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	res := h.begin(ana, `[{"to":"a"},{"to":"b"},{"to":"c"}]`)
	b := h.tab(t, browser, screens[0]).login(ana)
	for _, k := range []string{"j", "x", "j", "j", "x"} {
		b.key(k)
	}
	b.says("Decide the 2 selected together")
	b.look("list-selected")
	b.click(".picked button")
	b.says("2 requests")
	if where := b.where(); strings.Contains(where, res.Pending[1].ID) {
		t.Errorf("the second is on %s", where)
	}
}

// boxes are the places and sizes of the facts on a page: where foreign text
// could move or cover one, they differ.
const boxes = `[...document.querySelectorAll("h1, .rest, .pill, .crumb, #approve, #deny, #h-input, .decide h2")].map((e) => {
	const r = e.getBoundingClientRect(); return [e.tagName, Math.round(r.left), Math.round(r.width), getComputedStyle(e).direction, getComputedStyle(e).visibility].join(" ") }).join("\n")`

// nodes counts what foreign text must never make.
const nodes = `document.querySelectorAll("main img, main script, main iframe, main base, main style, main object, main h1 a, main a[href*=evil], main [onerror], main [onmouseover]").length`

// The corpus of section M and of S-33 in every field of card, batch, request,
// run and confirmation: no node is made, nothing is out of its frame, and the
// facts stand where they stand without it.
func TestBrowserF140_F141_F143_HostileTextMovesNothing(t *testing.T) {
	browser := chrome(t)
	all := strings.Join(hostile, "\n")
	for _, s := range screens {
		calm := ""
		for i, text := range []string{"calm", all, hostile[15] + hostile[16] + hostile[17]} {
			h, by := actHouse(t, `{"type":"object"}`, text, `{"list":[`+jsonText(text)+`],"description":`+jsonText(text)+`}`)
			r := h.asks(by, text)
			b := h.tab(t, browser, s).login(by)
			for _, path := range []string{"/", "/a/" + r.ID, "/a/" + r.ID + "/edit", "/run/" + r.RunID, "/batch?id=" + r.ID} {
				b.open(path)
				ask[int](b, `([...document.querySelectorAll("details")].forEach((d) => { d.open = true; }), 0)`)
				if n := ask[int](b, nodes); n != 0 {
					t.Errorf("%d: %d nodes on %s", i, n, path)
				}
				if n := ask[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); n > 0 {
					t.Errorf("%d: %s is %d px wider than the screen", i, path, n)
				}
			}
			b.open("/a/" + r.ID)
			got := ask[string](b, boxes)
			if i == 0 {
				calm = got
			} else if got != calm {
				t.Errorf("%d: the facts stand elsewhere:\n%s\nwithout it\n%s", i, got, calm)
			}
			if i == 1 {
				b.look("request-hostile")
			}
		}
	}
}

// WCAG 2.2, 1.4.10 and 1.4.4: at 320 CSS pixels, and with text of 200 %, nothing
// is cut off and nothing is scrolled sideways.
func TestBrowserReflowAndLargeText(t *testing.T) {
	browser := chrome(t)
	h := newHouse(t, houseOptions{idle: true})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	r, fill := h.asks(ana, kettle), h.asks(ana, "Amara Okafor is on the telephone: cancel order A-1057.")
	h.browser(ana).open("/?tool=refund").send("/views", nil, "name", "Refunds of the whole back office here").want(200)
	b := h.tab(t, browser, screen{"narrow", 320, 640, true}).login(ana)
	paths := []string{"/", "/?tool=refund", "/?order=riskiest", "/a/" + r.ID, "/a/" + r.ID + "/edit", "/a/" + fill.ID, "/run/" + r.RunID, "/day", "/help", "/start", "/a/req_nothing"}
	wide := func(what string) {
		t.Helper()
		for _, path := range paths {
			b.open(path)
			if what == "200 %" {
				ask[int](b, `(document.documentElement.classList.add("probe-large"), document.styleSheets[0].insertRule(".probe-large { font-size: 200% }", document.styleSheets[0].cssRules.length), 0)`)
			}
			if n := ask[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); n > 0 {
				t.Errorf("%s: %s is %d px too wide", what, path, n)
			}
			cut := ask[string](b, `[...document.querySelectorAll("h1, h2, button, a, dd, td, label")].filter((e) => e.offsetParent && !e.closest(".hide, .skip, .scroll") && getComputedStyle(e).overflow !== "visible" && e.scrollWidth > e.clientWidth + 1).map((e) => e.outerHTML.slice(0, 90)).join("\n")`)
			if cut != "" {
				t.Errorf("%s: cut off on %s:\n%s", what, path, cut)
			}
		}
	}
	wide("320 px")
	b.do(chromedp.EmulateViewport(640, 900))
	wide("200 %")
}

// Without a script a batch, typed input, an edit and a takeback are whole forms.
func TestBrowserAllWithoutJavaScript(t *testing.T) {
	browser := chrome(t)
	h := newHouse(t, houseOptions{idle: true})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	r, fill := h.asks(ana, kettle), h.asks(ana, "Amara Okafor is on the telephone: cancel order A-1057.")
	b := h.tab(t, browser, screens[1]).noScript().login(ana)
	b.open("/a/" + r.ID)
	b.click(`.actbar button.primary`)
	b.says("Are you sure?")
	b.click("main form .primary")
	b.says("Take the approval of refund back")
	b.click(".flash-form button")
	b.says("took the approval back")
	b.open("/a/" + fill.ID)
	ask[int](b, `(document.querySelector('[name="f.card_last4"]').value = "4417", document.querySelector('[name="f.named_address"]').checked = true, 0)`)
	b.click("#decide .primary")
	b.says("Values typed by a person")
	b.look("nojs-filled")
}

// Every page, dark: axe-core finds no violation.
func TestBrowserDarkPages(t *testing.T) {
	browser := chrome(t)
	h := newHouse(t, houseOptions{idle: true})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	r, fill := h.asks(ana, kettle), h.asks(ana, "Amara Okafor is on the telephone: cancel order A-1057.")
	b := h.tab(t, browser, screens[0]).login(ana)
	b.dark()
	h.browser(ana).open("/?tool=refund").send("/views", nil, "name", "Refunds").want(200)
	for name, path := range map[string]string{"list-filtered": "/?order=newest", "list-kept": "/?tool=refund", "request": "/a/" + r.ID, "edit": "/a/" + r.ID + "/edit", "fill": "/a/" + fill.ID, "run": "/run/" + r.RunID,
		"day": "/day", "help": "/help", "start": "/start", "refused": "/a/req_nothing", "batch": "/batch?id=" + r.ID, "empty": "/?state=expired"} {
		b.open(path).look("dark-" + name)
	}
}

// Sixty requests, thirty by keys at a desk and thirty by taps on a phone: how
// much a decision costs the hand. Every fifth is denied with a reason.
func TestBrowserSixtyRequests(t *testing.T) {
	browser := chrome(t)
	h := echoHouse(t, `{"type":"object"}`, nil, nil)
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	const half = 30
	for i := range 2 * half / 20 {
		var in []string
		for j := range 20 {
			in = append(in, fmt.Sprintf(`{"to":"street %d","n":%d}`, i, j))
		}
		h.begin(ana, "["+strings.Join(in, ",")+"]")
	}
	desk, phone := h.tab(t, browser, screens[0]).login(ana), h.tab(t, browser, screens[1])
	const ready = `document.readyState === "complete" && (document.body.dataset.hold = "0.02")`
	keys, letters, taps := 0, 0, 0
	press := func(key string) { keys++; desk.key(key) }
	press("j")
	press(kb.Enter)
	at := func(b *tab) string {
		b.until(`location.pathname.startsWith("/a/") && ` + ready)
		return b.where()
	}
	for i := range half {
		here := at(desk)
		if i%5 == 4 {
			press("d")
			desk.until(`document.activeElement.id === "reason"`)
			desk.write("#reason", "no such street")
			letters += len("no such street")
			press(kb.Tab)
			press(kb.Tab)
			press(kb.Enter)
		} else {
			press("a")
			desk.until(`document.activeElement.id === "approve"`)
			press(kb.Enter)
		}
		desk.until(`location.href !== ` + quoted(here))
	}
	phone.login(ana)
	tap := func(css string) { taps++; phone.click(css) }
	tap("#items .card h2 a")
	for i := range half {
		here := at(phone)
		if i%5 == 4 {
			tap(".actbar a.danger")
			phone.until(`document.activeElement.id === "reason"`)
			phone.write("#reason", "no such street")
			letters += len("no such street")
			tap("#deny")
		} else {
			tap(".actbar button.primary")
		}
		phone.until(`location.href !== ` + quoted(here))
	}
	phone.says("Nothing waits for you")
	var approved, denied int
	p, err := h.router.Requests(t.Context(), ringi.RequestQuery{State: []ringi.RequestState{ringi.Granted, ringi.Refused}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Requests {
		if r.State == ringi.Refused {
			denied++
		} else {
			approved++
		}
	}
	if approved != 48 || denied != 12 {
		t.Errorf("%d approved, %d denied", approved, denied)
	}
	t.Logf("60 requests, every fifth denied with a reason of 14 letters: at a desk %.2f keystrokes a request, on a phone %.2f taps a request, beside %d letters of reasons",
		float64(keys)/half, float64(taps)/half, letters)
}
