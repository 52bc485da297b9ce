//go:build !race

package inbox_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

func TestBrowserApproveLive(t *testing.T) {
	onScreens(t, houseOptions{}, func(t *testing.T, h *house, open func() *tab, ana string) {
		b := open()
		b.open(h.link(ana))
		b.look("login")
		b.click("main button")
		b.says("Nothing waits for you")
		b.look("list-empty")
		r := h.asks(ana, kettle)
		b.until(`!document.getElementById("news").hidden`)
		b.says("1 new, show")
		b.look("list-news")
		b.click("#show-news")
		b.says("wants to run refund")
		b.look("list-pending")
		b.click("#" + r.ID + " h2 a")
		b.says("34.90 EUR")
		b.look("request")
		ask[string](b, `document.body.dataset.hold = "60"`) // a loaded machine looks slowly
		b.click("#approve")
		b.says("Approving in")
		b.until(`(() => { const r = document.querySelector(".held").getBoundingClientRect(); return r.bottom <= innerHeight && r.left >= 0 && r.right <= innerWidth })()`)
		b.look("request-held")
		b.click("#undo")
		b.until(`!document.querySelector(".held")`)
		if got := h.get(r.ID).State; got != ringi.Pending {
			t.Fatalf("undone, and %s", got)
		}
		b.press("#approve")
		b.until(`document.querySelector(".flash")`)
		until(t, "the refund is booked", func() bool {
			list, err := h.office.Refunds(t.Context(), "A-1042")
			return err == nil && len(list) == 1
		})
		b.look("list-after")
		b.open("/a/" + r.ID)
		b.says("approved and started")
		b.look("request-decided")
		b.open("/run/" + r.RunID)
		b.says("Timeline", "Waited for people")
		b.look("run")
		b.open("/?state=decided")
		b.says("approved and started")
		b.look("list-decided")
		b.open("/day").look("day")
		b.open("/help").look("help")
		b.open("/start").look("start")
		b.open("/a/req_nothing").look("refused")
	})
}

func TestBrowserDenyEditRespondFill(t *testing.T) {
	onScreens(t, houseOptions{}, func(t *testing.T, h *house, open func() *tab, ana string) {
		b := open().login(ana)
		r := h.asks(ana, kettle)
		b.open("/a/" + r.ID)
		b.write("#reason", "The photo shows another kettle")
		b.press("#deny")
		b.until(`document.querySelector(".flash")`)
		b.open("/a/" + r.ID)
		b.says("denied", "The photo shows another kettle")

		r = h.asks(ana, kettle)
		b.open("/a/" + r.ID)
		b.click(`a[data-key="e"]`)
		b.says("Change the input of refund")
		b.look("edit")
		b.write(`[name="f.amount_cents"]`, "ten")
		b.click("main form .primary")
		b.says("This is no number")
		b.look("edit-problem")
		b.write(`[name="f.amount_cents"]`, "2000")
		b.click("main form .primary")
		b.says("What Ana changed", "3490", "2000", "20.00 EUR")
		b.look("request-edited")
		b.press("#approve")
		b.until(`document.querySelector(".flash")`)
		until(t, "20.00 are booked", func() bool {
			list, err := h.office.Refunds(t.Context(), "A-1042")
			return err == nil && len(list) == 1 && list[0].AmountCents == 2000
		})

		r = h.asks(ana, "Jonas Weber has moved: change the address to Lindenallee 4, 50667 Köln, Germany.")
		b.open("/a/" + r.ID)
		b.says("Lindenallee")
		b.look("request-diff")

		r = h.asks(ana, "Amara Okafor is on the telephone: cancel order A-1057.")
		b.open("/a/" + r.ID)
		b.says("Last four digits")
		b.look("request-fill")
		b.write(`[name="f.card_last4"]`, "44x")
		b.click("#decide .primary")
		b.until(`document.querySelector("[aria-invalid=true]")`)
		b.look("request-fill-problem")
		b.write(`[name="f.card_last4"]`, "4417")
		b.click(`[name="f.named_address"]`)
		b.click("#decide .primary")
		b.until(`document.getElementById("approve")`)
		b.says("Values typed by a person")
		b.look("request-filled")
		b.press("#approve")
		b.until(`document.querySelector(".flash")`)
		b.look("request-mail-or-next")
	})
}

func TestBrowserRespond(t *testing.T) {
	onScreens(t, houseOptions{}, func(t *testing.T, h *house, open func() *tab, ana string) {
		b := open().login(ana)
		r := h.asks(ana, kettle)
		b.open("/a/" + r.ID)
		b.click("#decide details.more summary")
		b.write("#result", `{"refund_id":"R-9","order_id":"A-1042","amount_cents":1000,"currency":"EUR","left_cents":0,"note":"paid in cash"}`)
		b.press(`#decide details.more[open] button`)
		b.until(`document.querySelector(".flash")`)
		b.open("/a/" + r.ID)
		b.says("answered in the tool's place", "paid in cash")
	})
}

func TestBrowserTakeBack(t *testing.T) {
	onScreens(t, houseOptions{idle: true}, func(t *testing.T, h *house, open func() *tab, ana string) {
		b := open().login(ana)
		r := h.asks(ana, kettle)
		b.open("/a/" + r.ID)
		b.press("#approve")
		b.says("Take the approval of refund back")
		b.look("list-take-back")
		b.click(".flash-form button")
		b.until(`location.pathname.startsWith("/a/")`)
		if got := h.get(r.ID).State; got == ringi.Granted || got == ringi.Spent {
			t.Fatalf("taken back, and %s", got)
		}
	})
}

func TestBrowserTwoBrowsers(t *testing.T) {
	onScreens(t, houseOptions{idle: true}, func(t *testing.T, h *house, open func() *tab, ana string) {
		ben := h.add("Ben", access.RoleApprover)
		r := h.asks(ana, kettle)
		b, c := open().login(ana), open().login(ben)
		c.open("/a/" + r.ID)
		b.open("/a/" + r.ID)
		b.says("Ben is looking at this too")
		b.look("request-looking")
		b.write("#reason", "half a reason")
		c.press("#approve")
		c.until(`document.querySelector(".flash")`)
		b.says("This request is now approved")
		b.until(`document.getElementById("deny").disabled`)
		b.look("request-stale")
		// A form that is sent all the same decides nothing, and keeps the text.
		ask[string](b, `(() => { const f = document.querySelector("form.deny"); f.submit(); return "sent" })()`)
		b.says("Ben was first", "half a reason")
		b.look("refused-second")
		if got := h.get(r.ID); got.State != ringi.Granted || got.DecidedBy != ben {
			t.Fatalf("%s by %s", got.State, got.DecidedBy)
		}
	})
}

func TestBrowserKeyboardOnly(t *testing.T) {
	browser := chrome(t)
	h := newHouse(t, houseOptions{})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	first, second := h.asks(ana, kettle), h.asks(ana, kettle)
	b := h.tab(t, browser, screens[0]).login(ana)
	b.key("j")
	b.key("j")
	b.key("k")
	b.look("keys-list")
	b.key(kb.Enter)
	b.until(`location.pathname === "/a/` + first.ID + `"`)
	b.until(`document.documentElement.classList.contains("js")`)
	ask[string](b, `document.body.dataset.hold = "5"`)
	b.key("a")
	b.until(`document.activeElement.id === "approve"`)
	b.key(kb.Enter)
	b.says("Approving in")
	b.key("x")
	b.until(`!document.querySelector(".held")`)
	ask[string](b, `document.body.dataset.hold = "0.4"`)
	b.key("d")
	b.until(`document.activeElement.id === "reason"`)
	b.key("not a")
	// The protocol sends the letter of a key on its own, whatever became of the
	// key: unlike a keyboard's, the d itself arrives too.
	b.until(`document.getElementById("reason").value.endsWith("not a")`)
	b.key(kb.Tab)
	b.key(kb.Tab)
	b.key(kb.Enter)
	b.until(`location.pathname === "/a/` + second.ID + `"`)
	if got := h.get(first.ID).State; got != ringi.Refused {
		t.Fatalf("first is %s", got)
	}
	b.until(`document.readyState === "complete"`) // the script is there
	b.key("e")
	b.until(`location.pathname.endsWith("/edit")`)
	b.open("/")
	b.key("/")
	b.until(`document.activeElement.id === "q"`)
	b.open("/")
	b.key("?")
	b.until(`location.pathname === "/help"`)
	b.click("#keys-switch button")
	b.says("Switch the keys on")
	b.open("/")
	b.key("j")
	if on := ask[bool](b, `!!document.querySelector(".card.at")`); on {
		t.Error("keys work although they are switched off")
	}
}

func TestBrowserWithoutJavaScript(t *testing.T) {
	browser := chrome(t)
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			h := newHouse(t, houseOptions{})
			ana := h.add("Ana", access.RoleUser, access.RoleApprover)
			r := h.asks(ana, kettle)
			b := h.tab(t, browser, s).noScript().login(ana)
			b.click("#" + r.ID + " h2 a")
			b.says("34.90 EUR")
			b.click("#approve")
			b.says("Are you sure?", "Nothing has been decided yet")
			b.look("confirm")
			b.click("main form .primary")
			b.says("by you")
			if got := h.get(r.ID).State; got == ringi.Pending {
				t.Fatal("still pending")
			}
		})
	}
}

func TestBrowserBatchOfThree(t *testing.T) {
	browser := chrome(t)
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			h, ana := actHouse(t, pair, "", `{"to":"Linden Street 4","n":1}`, `{"to":"Harbour Road 12","n":1}`, `{"to":"Mill Lane 7","n":1}`)
			h.t = t
			res := h.begin(ana, "go")
			b := h.tab(t, browser, s).login(ana)
			b.look("list-batch")
			b.click(".groups a")
			b.says("3 requests", "The same in all")
			b.look("batch")
			b.click("#a1")
			b.click("#d2")
			b.click("#a3")
			b.write("#r2", "not there")
			b.press("main form .primary")
			b.says("What became of them")
			b.look("batch-results")
			for i, want := range []ringi.RequestState{ringi.Granted, ringi.Refused, ringi.Granted} {
				if got := h.get(res.Pending[i].ID).State; got != want {
					t.Errorf("row %d is %s, want %s", i+1, got, want)
				}
			}
		})
	}
}

func TestBrowserDarkAndHostile(t *testing.T) {
	onScreens(t, houseOptions{idle: true}, func(t *testing.T, h *house, open func() *tab, ana string) {
		b := open().login(ana)
		b.dark()
		r := h.asks(ana, "Write to the customer of order A-1071.")
		b.open("/a/" + r.ID).look("request-hostile-dark")
		b.open("/").look("list-dark")
		b.open("/run/" + r.RunID).look("run-dark")
		if n := ask[int](b, `document.querySelectorAll("main img, main script, main iframe").length`); n != 0 {
			t.Errorf("%d nodes were made of foreign text", n)
		}
	})
}
