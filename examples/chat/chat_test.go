package chat_test

import "testing"

const kettle = "Mira Solheim asks for a refund for a broken kettle."

// refunded is what the agent says once money went out.
const refunded = "The refund of 34.90 EUR is booked"

func TestApprove(t *testing.T) {
	onScreens(t, "", func(_ *world, b *tab) {
		b.look("empty")
		b.send(kettle)
		b.says("The agent wants to run refund.", "34.90 EUR", "A-1042", "Waits for you", "A decision is needed")
		b.look("asks")
		b.press(1, "Approve")
		b.says(refunded, "The agent wants to run send_mail.", "characters")
		b.look("mail")
		b.press(1, "Approve")
		b.says("The mail to Mira Solheim is in the outbox.", "send_mail is done.")
		b.cards(0)
		b.until(`document.querySelector(".composer .primary")`)
		b.look("done")
	})
}

func TestDenyWithReason(t *testing.T) {
	onScreens(t, "", func(_ *world, b *tab) {
		b.send(kettle)
		b.press(1, "Deny…")
		b.until(`document.activeElement.tagName === "TEXTAREA" && document.activeElement.closest(".card")`)
		b.write(".card textarea", "we have no photo")
		b.look("denying")
		b.press(1, "Deny")
		b.says("refund was denied. It did not run.", "Reason: we have no photo", "“we have no photo”", "half of it instead")
		b.never(refunded)
		b.look("denied")
		b.do(reload)
		b.says("Reason: we have no photo")
	})
}

// Somebody changes the amount in the inbox while the page shows the old one. What
// would run is another now, and so is its preview: the page asks anew by itself.
func TestEditedElsewhere(t *testing.T) {
	onScreens(t, "", func(w *world, b *tab) {
		token := w.token("local:owner")
		b.send(kettle)
		b.cards(1)
		w.elsewhere(token, "A-1042", map[string]any{"answer": "edit", "and_approve": true,
			"input": map[string]any{"order_id": "A-1042", "amount_cents": 2000, "currency": "EUR", "reason": "goodwill"}})
		b.until(`document.querySelector(".card.asks .money")?.innerText === "20.00 EUR"`)
		b.says("20.00 EUR to Mira Solheim", "goodwill")
		b.press(1, "Approve")
		b.says("A colleague changed the amount: 20.00 EUR instead of 34.90 EUR", "refund is done.", "The agent wants to run send_mail.")
		b.until(`document.querySelector(".card.done .money").innerText === "20.00 EUR"`)
		b.look("edited")
	})
}

// Three requests of one turn: one is answered here, one in the inbox, while
// somebody types a reason into the third.
func TestSeveralOfOneTurn(t *testing.T) {
	onScreens(t, "", func(w *world, b *tab) {
		token := w.token("local:owner")
		b.send("Refund the lost parcels A-1031, A-1032 and A-1033.")
		b.cards(3)
		b.says("3 decisions are needed")
		b.look("three")
		b.press(1, "Approve")
		b.cards(2)
		b.press(2, "Deny…")
		b.write(".card textarea", "it came")
		w.elsewhere(token, "A-1032", map[string]any{"answer": "approve"})
		b.cards(1)
		b.until(`document.activeElement.value === "it came"`) // nothing was lost, not even the cursor
		b.write(".card textarea", " after all")
		b.press(1, "Deny")
		b.says("Reason: it came after all")
		b.cards(0)
		b.until(`document.querySelectorAll(".card.done").length === 2 && document.querySelectorAll(".card.no").length === 1`)
		b.until(`document.querySelector(".composer .primary")`)
		b.look("three-done")
	})
}

// The page is loaded anew while the agent works and while it waits.
func TestReload(t *testing.T) {
	onScreens(t, "", func(_ *world, b *tab) {
		b.send(kettle)
		b.until(`document.querySelector(".assistant")`)
		b.do(reload)
		b.says("The agent wants to run refund.")
		b.do(reload)
		b.press(1, "Approve")
		b.do(reload)
		b.says(refunded)
		b.cards(1)
		if n := ask[int](b, `document.querySelectorAll(".user").length`); n != 1 {
			t.Errorf("%d messages of the user, want 1", n)
		}
	})
}

// The server is killed while it waits, while it works, and while somebody sends:
// the page says so, and goes on when it is back.
func TestServerKilled(t *testing.T) {
	onScreens(t, "", func(w *world, b *tab) {
		b.send(kettle)
		b.cards(1)
		w.kill()
		b.press(1, "Approve")
		b.says("The server does not answer. Try again when it is back.")
		b.look("away")
		w.start()
		b.press(1, "Approve")
		b.says(refunded)
		b.cards(1)
		b.press(1, "Deny…")
		b.press(1, "Deny")
		b.until(`document.querySelector(".composer .primary")`)

		w.kill()
		b.send("Hello! What can you do?")
		b.says("The server does not answer.")
		w.start()
		b.until(`document.querySelector("#message").value === "Hello! What can you do?"`) // the words come back
		b.until(`document.querySelectorAll(".user").length === 1`)
		b.click(".composer .primary")
		b.until(`document.querySelectorAll(".assistant").length === 2`)
		w.kill() // while it works
		w.start()
		b.until(`document.querySelector(".composer .primary")`)
		b.until(`document.querySelectorAll(".user").length === 2`)
		b.says("I can look up customers and orders")
	})
}

func TestStop(t *testing.T) {
	onScreens(t, "", func(_ *world, b *tab) {
		b.send(kettle)
		b.cards(1)
		b.click(".composer button")
		b.says("refund was withdrawn. It did not run.")
		b.cards(0)
		b.until(`document.querySelector(".composer .primary")`)
		b.look("stopped")
		b.send("Hello! What can you do?")
		b.until(`document.querySelectorAll(".assistant").length === 2`)
	})
}

// What only a person can type is a form of its schema.
func TestTypedInput(t *testing.T) {
	onScreens(t, "", func(_ *world, b *tab) {
		b.send("Amara Okafor is on the telephone: cancel order A-1057.")
		b.says("verify_identity needs what only a person can say.", "Last four digits of the card")
		b.look("form")
		b.write(".card input[type=text]", "44")
		b.press(1, "Send and run")
		b.until(`document.querySelector(".card [role=alert]")`) // the schema's pattern, said by the server
		b.look("form-refused")
		b.write(".card input[type=text]", "17")
		b.click(".card input[type=checkbox]")
		b.press(1, "Send and run")
		b.says("verify_identity is done.", "The agent wants to run cancel_order.")
		b.never("4417")
		b.look("form-done")
	})
}

func TestOutcomeUnknown(t *testing.T) {
	onScreens(t, "", func(_ *world, b *tab) {
		b.send("Refund the broken coffee grinder of order A-1088.")
		b.press(1, "Approve")
		b.says("refund was allowed and runs.")
		b.look("running")
		b.says("refund was started, and nobody knows whether it ran.", "Say in the inbox what happened")
		b.until(`/\/a\/req_/.test(document.querySelector(".card.unknown a").href)`)
		b.look("unknown")
		b.do(reload)
		b.says("nobody knows whether it ran")
	})
}

// Who is not asked sees that it waits, and where; and it goes on by itself.
func TestDecidedByAnother(t *testing.T) {
	onScreens(t, `deciders: {people: ["local:boss"]}`, func(w *world, b *tab) {
		w.link("local:boss", true)
		token := w.token("local:boss")
		b.send(kettle)
		b.says("Somebody else decides on refund.", "Waits elsewhere", "Open it in the inbox")
		b.cards(0)
		b.look("elsewhere")
		w.elsewhere(token, "A-1042", map[string]any{"answer": "approve", "reason": "fine with me"})
		b.says(refunded, "Reason: fine with me")
	})
}

func TestExpired(t *testing.T) {
	onScreens(t, "expiry: 3s", func(_ *world, b *tab) {
		b.send(kettle)
		b.says("The agent wants to run refund.")
		b.says("Nobody decided in time on refund. It did not run.", "nobody said no")
		b.look("expired")
	})
}

// Characters that are not seen, or turn text round, are written out.
func TestStrangeCharacters(t *testing.T) {
	onScreens(t, "", func(_ *world, b *tab) {
		b.send("Write to the customer of order A-1071.")
		b.cards(1)
		b.until(`[...document.querySelectorAll(".card mark")].some((m) => /^U\+20/.test(m.innerText))`)
		if ask[bool](b, `/[\u202a-\u202e\u2066-\u2069\u200b]/.test(document.querySelector("main").innerText)`) {
			t.Error("the page shows characters that turn text round")
		}
		b.look("strange")
	})
}

// With the keyboard alone; the cursor stands where it makes sense.
func TestKeyboard(t *testing.T) {
	onScreens(t, "", func(_ *world, b *tab) {
		b.until(`document.querySelector("#message").focus() ?? true`)
		b.key(kettle + "\r")
		b.cards(1)
		b.until(`document.querySelector('[role=status]').innerText.startsWith("A decision is needed")`)
		ask[bool](b, `(document.querySelector("header a").focus(), true)`)
		for range 40 {
			b.key("\t")
			if ask[bool](b, `document.activeElement.innerText === "Approve"`) {
				break
			}
		}
		b.key("\r")
		b.says(refunded)
		b.until(`document.activeElement.tagName === "H3" && document.activeElement.innerText === "refund is done."`)
		b.key("\t")
		b.until(`document.activeElement.closest(".card")`) // the next stop is in the card
	})
}
