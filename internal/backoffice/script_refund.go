package backoffice

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
)

// kettleCustomer is whose kettle broke, where the user names nobody.
const kettleCustomer = "Mira Solheim"

// refundOne looks the order up, reads the rules and asks for a refund; then it
// writes to the customer.
func refundOne(t talk) step {
	id, wait := theOrder(t)
	if wait != nil {
		return *wait
	}
	if d, ok := t.inDoubt(id); ok {
		return say(fate(whatOf(d), d.result) + " Until then I propose no refund of that order.")
	}
	topic := policyTopic(t)
	d, ok := t.last("order_details")
	if !ok {
		return say(fmt.Sprintf("I look at order %s and at the rules.", id)).
			and("order_details", orderDetailsIn{OrderID: id}).and("refund_policy", refundPolicyIn{Topic: topic})
	}
	var of order
	if !d.into(&of) {
		return say(fate("looking at order "+id, d.result))
	}
	if of.left() == 0 {
		return say(fmt.Sprintf("Order %s was paid back in full already. I propose nothing more.", of.ID))
	}
	if d, ok = t.last("refund"); !ok {
		cents, what := owed(t, of)
		return say(fmt.Sprintf("%s paid %s for order %s. %sI propose a refund of %s for %s.", of.CustomerName, money(of.TotalCents, of.Currency), of.ID, rule(t), money(cents, of.Currency), what)).
			and("refund", refundIn{OrderID: of.ID, AmountCents: cents, Currency: of.Currency, Reason: because(topic, what)})
	}
	return afterRefund(t, of, d)
}

// theOrder is the order that the user named, or the one of the customer's with
// the thing in it that the user named.
func theOrder(t talk) (string, *step) {
	if ids := t.orders(); len(ids) > 0 {
		return ids[0], nil
	}
	fallback := ""
	if t.has("kettle") {
		fallback = kettleCustomer
	}
	c, wait := theCustomer(t, fallback)
	if wait != nil {
		return "", wait
	}
	d, ok := t.last("list_orders")
	if !ok {
		s := say(fmt.Sprintf("%s is customer %s. I look for the order.", c.Name, c.ID)).and("list_orders", listOrdersIn{CustomerID: c.ID})
		return "", &s
	}
	var list listOrdersOut
	if !d.into(&list) {
		return "", stop(fate("listing the orders of "+c.Name, d.result))
	}
	if len(list.Orders) == 1 {
		return list.Orders[0].ID, nil
	}
	var ids []string
	for _, o := range list.Orders {
		if named(t.said, o.Items) {
			return o.ID, nil
		}
		ids = append(ids, o.ID+" ("+o.Items+")")
	}
	if len(ids) == 0 {
		return "", stop(c.Name + " has no orders.")
	}
	return "", stop(fmt.Sprintf("%s has several orders: %s. Which one do you mean?", c.Name, strings.Join(ids, ", ")))
}

// named reports whether the user said a word of a thing's name, of four
// letters or more.
func named(said, thing string) bool {
	said = strings.ToLower(said)
	for _, word := range strings.FieldsFunc(strings.ToLower(thing), func(r rune) bool { return strings.ContainsRune(" ,;()«»", r) }) {
		if utf8.RuneCountInString(word) >= 4 && strings.Contains(said, word) {
			return true
		}
	}
	return false
}

func policyTopic(t talk) string {
	switch {
	case t.has("broken", "damaged", "cracked", "dented"):
		return "damaged"
	case t.has("lost "):
		return "lost"
	case t.has("late "):
		return "late"
	}
	return "change_of_mind"
}

// because is the reason that goes into the books.
func because(topic, what string) string {
	switch topic {
	case "damaged":
		return what + " arrived broken"
	case "lost":
		return "parcel lost by the carrier"
	case "late":
		return "delivered late"
	}
	return "customer returns " + what
}

// rule quotes the rules that were read; empty where they could not be.
func rule(t talk) string {
	var p policyText
	if d, ok := t.last("refund_policy"); ok && d.into(&p) {
		first, _, _ := strings.Cut(p.Text, ". ")
		return fmt.Sprintf("The rules on %s say: “%s.” ", strings.ToLower(p.Title), strings.TrimSuffix(first, "."))
	}
	return ""
}

// owed is the amount that the user named, or the price of the thing that he
// named, or all that is left; and what it is for.
func owed(t talk, of order) (int64, string) {
	cents, what := of.left(), "the whole order"
	for _, it := range of.Items {
		if named(t.said, it.Name) {
			cents, what = min(it.Quantity*it.UnitCents, of.left()), "the "+it.Name
			break
		}
	}
	if m := amount.FindStringSubmatch(t.said); m != nil {
		n, err := strconv.ParseInt(m[1]+m[2], 10, 64)
		if err == nil && n > 0 {
			cents = n
		}
	}
	return cents, what
}

// afterRefund goes on by what became of the refund.
func afterRefund(t talk, of order, d done) step {
	var asked refundIn
	d.asked(&asked)
	what := whatOf(d)
	paid, ok := booked(d)
	if !ok {
		return say(notPaid(what, of, asked, d.result))
	}
	lead := paidWords(paid, asked, d.result)
	m, ok := t.last("send_mail")
	if !ok {
		return say(lead+" I write to "+of.CustomerName+".").and("send_mail", refundMail(of, paid))
	}
	return say(lead + " " + afterMail(m, of.CustomerName))
}

// booked reads the refund that was paid, by the tool or by a person's word.
func booked(d done) (Refund, bool) {
	var r Refund
	ran := d.result.Outcome == ringi.OutcomeOK || d.result.Outcome == ringi.OutcomeResponded
	return r, ran && d.into(&r) && r.AmountCents > 0 && r.Currency != ""
}

// paidWords says what was paid, and who changed or said it.
func paidWords(paid Refund, asked refundIn, r ringi.ToolResult) string {
	got := money(paid.AmountCents, paid.Currency)
	answered, interrupted := byPerson(r)
	text := fmt.Sprintf("The refund of %s is booked (%s).", got, paid.RefundID)
	switch {
	case interrupted:
		text = fmt.Sprintf("The bank's answer was late; a colleague looked it up: %s went through (%s).", got, paid.RefundID)
	case answered:
		text = fmt.Sprintf("A colleague answered in the refund's place: %s (%s).", got, paid.RefundID)
	case changed(r) && paid.AmountCents != asked.AmountCents:
		text = fmt.Sprintf("A colleague changed the amount: %s instead of %s is booked (%s).", got, money(asked.AmountCents, asked.Currency), paid.RefundID)
	case changed(r):
		text = fmt.Sprintf("A colleague changed my proposal; %s is booked (%s).", got, paid.RefundID)
	case paid.Repeat:
		text = fmt.Sprintf("This refund of %s had been booked before (%s); nothing was paid twice.", got, paid.RefundID)
	}
	if paid.Note != "" {
		text += " “" + paid.Note + "”"
	}
	return text
}

// notPaid says why nothing is known to have been paid; after a no it proposes
// something else.
func notPaid(what string, of order, asked refundIn, r ringi.ToolResult) string {
	text := fate(what, r)
	if r.Outcome != ringi.OutcomeDenied {
		return text
	}
	return fmt.Sprintf("I am sorry. %s I can propose half of it instead (%s) or offer %s a voucher of 15.00: say “half” or “voucher”.", text, money(asked.AmountCents/2, asked.Currency), of.CustomerName)
}

func refundMail(of order, paid Refund) Mail {
	return Mail{To: of.CustomerMail, Subject: "Your refund for order " + of.ID,
		Body: fmt.Sprintf("Dear %s,\n\nwe have sent %s back to the card that you paid with (%s). It takes up to three working days.\n\nWe are sorry for the trouble.\n\nThe back office",
			of.CustomerName, money(paid.AmountCents, paid.Currency), paid.RefundID)}
}

// batch asks for refunds of several orders in one turn.
func batch(t talk) step {
	ids := t.orders()
	topic := policyTopic(t)
	details := t.all("order_details")
	if len(details) == 0 {
		s := say(fmt.Sprintf("I look at the %d orders and at the rules.", len(ids))).and("refund_policy", refundPolicyIn{Topic: topic})
		for _, id := range ids {
			s = s.and("order_details", orderDetailsIn{OrderID: id})
		}
		return s
	}
	if refunds := t.all("refund"); len(refunds) > 0 {
		return say(batchWords(refunds))
	}
	s := say("")
	total := map[string]int64{}
	var missing []string
	for _, d := range details {
		var of order
		if !d.into(&of) || of.left() == 0 {
			var in orderDetailsIn
			d.asked(&in)
			missing = append(missing, in.OrderID)
			continue
		}
		total[of.Currency] += of.left()
		s = s.and("refund", refundIn{OrderID: of.ID, AmountCents: of.left(), Currency: of.Currency, Reason: because(topic, "the whole order")})
	}
	if len(s.asks) == 0 {
		return say("For none of these orders is anything left to pay back.")
	}
	s.text = fmt.Sprintf("%sI propose %d refunds, %s in all.", rule(t), len(s.asks), sums(total))
	if len(missing) > 0 {
		s.text += " I leave out " + strings.Join(missing, ", ") + ": there is no such order, or nothing is left of it."
	}
	return s
}

// batchWords is one line an order, and the sum of what was paid.
func batchWords(refunds []done) string {
	total := map[string]int64{}
	var lines []string
	for _, d := range refunds {
		var asked refundIn
		d.asked(&asked)
		paid, ok := booked(d)
		if !ok {
			lines = append(lines, fmt.Sprintf("%s: %s", asked.OrderID, fate(whatOf(d), d.result)))
			continue
		}
		total[paid.Currency] += paid.AmountCents
		lines = append(lines, fmt.Sprintf("%s: %s", asked.OrderID, paidWords(paid, asked, d.result)))
	}
	if len(total) == 0 {
		return strings.Join(append(lines, "Nothing that I know of was paid back."), "\n")
	}
	return strings.Join(append(lines, "Paid back in all: "+sums(total)+"."), "\n")
}

// sums writes totals in the order of the currencies that the office has.
func sums(total map[string]int64) string {
	var out []string
	for _, currency := range []string{"EUR", "GBP", "USD", "PLN", "CHF"} {
		if cents, ok := total[currency]; ok {
			out = append(out, money(cents, currency))
		}
	}
	return strings.Join(out, " and ")
}

// instead goes on where a refund was refused: with half of it, or a voucher.
// Where money went, or may have gone, it proposes nothing.
func instead(t talk) step {
	list := ofTool(t.earlier, "refund")
	before := list[len(list)-1]
	var was refundIn
	before.asked(&was)
	if !nothingDone(before.result) {
		return say(fate(whatOf(before), before.result) + " So I propose nothing in its place.")
	}
	d, ok := t.last("order_details")
	if !ok {
		return say(fmt.Sprintf("I look at order %s once more.", was.OrderID)).and("order_details", orderDetailsIn{OrderID: was.OrderID})
	}
	var of order
	if !d.into(&of) {
		return say(fate("looking at order "+was.OrderID, d.result))
	}
	if t.has("voucher ") {
		return voucher(t, of)
	}
	if d, ok = t.last("refund"); !ok {
		cents := max(was.AmountCents/2, 1)
		return say(fmt.Sprintf("I propose half of it as goodwill: %s for order %s.", money(cents, was.Currency), was.OrderID)).
			and("refund", refundIn{OrderID: was.OrderID, AmountCents: cents, Currency: was.Currency, Reason: "goodwill, half of " + money(was.AmountCents, was.Currency)})
	}
	return afterRefund(t, of, d)
}

// voucher offers one by mail in a refund's place.
func voucher(t talk, of order) step {
	d, ok := t.last("send_mail")
	if !ok {
		return say("I offer "+of.CustomerName+" a voucher by mail.").and("send_mail", Mail{To: of.CustomerMail, Subject: "A voucher for your trouble with order " + of.ID,
			Body: fmt.Sprintf("Dear %s,\n\nwe cannot pay anything back for order %s, and are sorry for the trouble that you had. Please take a voucher of 15.00 %s for your next order; it is good for two years.\n\nThe back office",
				of.CustomerName, of.ID, of.Currency)})
	}
	return say(afterMail(d, of.CustomerName))
}

// inDoubt is an earlier refund of the order of which nobody knows whether it
// was paid.
func (t talk) inDoubt(orderID string) (done, bool) {
	for _, d := range ofTool(t.earlier, "refund") {
		var in refundIn
		if d.result.Outcome == ringi.OutcomeInDoubt && d.asked(&in) && in.OrderID == orderID {
			return d, true
		}
	}
	return done{}, false
}
