package backoffice

import (
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
)

// next chooses the part of the script by the user's words.
func next(t talk) step {
	switch {
	case t.has("what happened", "what became", "how did it go"):
		return report(t)
	case t.has("voucher ", "half ") && len(ofTool(t.earlier, "refund")) > 0:
		return instead(t)
	case t.has("address", "moved"):
		return address(t)
	case t.has("cancel"):
		return cancel(t)
	case t.has("refund", "money back", "pay back"):
		if len(t.orders()) > 1 {
			return batch(t)
		}
		return refundOne(t)
	case t.has("mail", "write to"):
		return mail(t)
	}
	return say(canDo)
}

const canDo = "I can look up customers and orders, refund an order, change an address, cancel an order once the caller is known, and write to a customer. " +
	"Try: “Mira Solheim wants a refund for a broken kettle”, “Jonas Weber has moved: change the address to Lindenallee 4, 50667 Köln, Germany”, " +
	"“Amara Okafor is on the telephone: cancel order A-1057”, or “Refund the lost parcels A-1031, A-1032 and A-1033”. " +
	"Reading I do by myself; for all else I ask you."

// theCustomer goes on until the one customer is known whom the user named. It
// gives a step, or the customer.
func theCustomer(t talk, otherwise string) (customer, *step) {
	who := t.person()
	if who == "" {
		who = otherwise
	}
	d, ok := t.last("find_customer")
	if !ok {
		if who == "" {
			return customer{}, stop("Which customer do you mean? Give me a name, a mail address or a number.")
		}
		s := say(fmt.Sprintf("I look up %s.", who)).and("find_customer", findCustomerIn{Query: who})
		return customer{}, &s
	}
	var found findCustomerOut
	if !d.into(&found) {
		return customer{}, stop(fate("looking up "+who, d.result))
	}
	switch len(found.Customers) {
	case 0:
		return customer{}, stop(fmt.Sprintf("I find no customer %s.", who))
	case 1:
		return found.Customers[0], nil
	}
	names := make([]string, len(found.Customers))
	for i, c := range found.Customers {
		names[i] = c.Name + " (" + c.ID + ")"
	}
	return customer{}, stop("Several customers fit: " + strings.Join(names, ", ") + ". Which one do you mean?")
}

func stop(text string) *step {
	s := say(text)
	return &s
}

// report tells what became of the last writes of the conversation.
func report(t talk) step {
	var lines []string
	for _, d := range t.earlier {
		if what := whatOf(d); what != "" {
			lines = append(lines, fate(what, d.result))
		}
	}
	if len(lines) == 0 {
		return say("Nothing was asked for in this conversation yet.")
	}
	return say(strings.Join(lines, "\n"))
}

// whatOf names a write in words; empty for a read.
func whatOf(d done) string {
	var of struct {
		OrderID     string `json:"order_id"`
		CustomerID  string `json:"customer_id"`
		To          string `json:"to"`
		AmountCents int64  `json:"amount_cents"`
		Currency    string `json:"currency"`
	}
	if !d.asked(&of) {
		return ""
	}
	switch d.call.Tool {
	case "refund":
		return fmt.Sprintf("the refund of %s for order %s", money(of.AmountCents, of.Currency), of.OrderID)
	case "cancel_order":
		return "cancelling order " + of.OrderID
	case "change_address":
		return "the change of address of " + of.CustomerID
	case "send_mail":
		return "the mail to " + of.To
	}
	return ""
}

// address changes a postal address.
func address(t talk) step {
	c, wait := theCustomer(t, "")
	if wait != nil {
		return *wait
	}
	d, ok := t.last("change_address")
	if !ok {
		in, fits := newAddress(t.said, c)
		if !fits {
			return say(fmt.Sprintf("%s lives at %s, %s %s, %s. To change that I need: “… to street and number, postcode city, country”.", c.Name, c.Street, c.Postcode, c.City, c.Country))
		}
		return say(fmt.Sprintf("%s (%s) has the address %s, %s %s now. I propose the change.", c.Name, c.ID, c.Street, c.Postcode, c.City)).and("change_address", in)
	}
	var out changeAddressOut
	if d.result.Outcome != ringi.OutcomeOK || !d.into(&out) {
		text := fate("the change of address of "+c.Name, d.result)
		if reason(d.result) != "" {
			text += " Tell me the right address and I propose that."
		}
		return say(text)
	}
	switch {
	case out.Already:
		return say(fmt.Sprintf("Nothing to do: %s had that address already.", c.Name))
	case changed(d.result):
		return say(fmt.Sprintf("Done: the address of %s is changed (version %d). A colleague corrected what I had proposed.", c.Name, out.Version))
	}
	return say(fmt.Sprintf("Done: the address of %s is changed (version %d).", c.Name, out.Version))
}

// newAddress reads "… to street, postcode city, country"; without a country
// the customer's stays.
func newAddress(said string, c customer) (changeAddressIn, bool) {
	i := strings.LastIndex(said, " to ")
	if i < 0 {
		return changeAddressIn{}, false
	}
	parts := strings.Split(strings.Trim(said[i+len(" to "):], " .!\n"), ",")
	for k := range parts {
		parts[k] = strings.TrimSpace(parts[k])
	}
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" {
		return changeAddressIn{}, false
	}
	postcode, city, ok := strings.Cut(parts[1], " ")
	if !ok {
		return changeAddressIn{}, false
	}
	in := changeAddressIn{CustomerID: c.ID, Street: parts[0], Postcode: postcode, City: strings.TrimSpace(city), Country: c.Country}
	if len(parts) == 3 {
		in.Country = parts[2]
	}
	return in, true
}

// cancel checks who calls, and then cancels.
func cancel(t talk) step {
	ids := t.orders()
	if len(ids) != 1 {
		return say("Which order shall be cancelled? I cancel one at a time: give me its number.")
	}
	d, ok := t.last("order_details")
	if !ok {
		return say(fmt.Sprintf("I look at order %s first.", ids[0])).and("order_details", orderDetailsIn{OrderID: ids[0]})
	}
	var of order
	if !d.into(&of) {
		return say(fate("looking at order "+ids[0], d.result))
	}
	if d, ok = t.last("verify_identity"); !ok {
		return say(fmt.Sprintf("Order %s belongs to %s. Before I cancel it, please check on the telephone that it is really them.", of.ID, of.CustomerName)).
			and("verify_identity", map[string]string{"customer_id": of.CustomerID})
	}
	var who verifyIdentityOut
	if d.result.Outcome != ringi.OutcomeOK || !d.into(&who) {
		return say(fate("the check of identity", d.result) + fmt.Sprintf(" So I leave order %s as it is.", of.ID))
	}
	if !who.Verified {
		return say(fmt.Sprintf("The check failed: %s. I do not cancel order %s.", who.Why, of.ID))
	}
	if d, ok = t.last("cancel_order"); !ok {
		return say(fmt.Sprintf("The caller is %s. I ask to cancel order %s (%s).", of.CustomerName, of.ID, money(of.TotalCents, of.Currency))).
			and("cancel_order", cancelOrderIn{OrderID: of.ID, Reason: "the customer asked for it on the telephone"})
	}
	var out cancelOrderOut
	switch {
	case d.result.Outcome != ringi.OutcomeOK || !d.into(&out):
		return say(fate("cancelling order "+of.ID, d.result))
	case out.Already:
		return say(fmt.Sprintf("Order %s was cancelled already.", of.ID))
	}
	return say(fmt.Sprintf("Done: order %s is cancelled. %s were not yet paid back; say “refund %s” for that.", of.ID, money(of.left(), of.Currency), of.ID))
}

// mail writes to the customer of an order, or to one by name.
func mail(t talk) step {
	var name, to, about string
	if ids := t.orders(); len(ids) > 0 {
		d, ok := t.last("order_details")
		if !ok {
			return say(fmt.Sprintf("I look at order %s first.", ids[0])).and("order_details", orderDetailsIn{OrderID: ids[0]})
		}
		var of order
		if !d.into(&of) {
			return say(fate("looking at order "+ids[0], d.result))
		}
		name, to, about = of.CustomerName, of.CustomerMail, "Your order "+of.ID
	} else {
		c, wait := theCustomer(t, "")
		if wait != nil {
			return *wait
		}
		name, to, about = c.Name, c.Mail, "A word from the back office"
	}
	d, ok := t.last("send_mail")
	if !ok {
		return say(fmt.Sprintf("I have a mail to %s ready.", name)).and("send_mail", Mail{To: to, Subject: about,
			Body: fmt.Sprintf("Dear %s,\n\nthank you for your patience. We look after your request and write again within two working days.\n\nThe back office", name)})
	}
	return say(afterMail(d, name))
}

// afterMail says what became of a mail.
func afterMail(d done, name string) string {
	switch {
	case d.result.Outcome != ringi.OutcomeOK:
		return fate("the mail to "+name, d.result)
	case changed(d.result):
		return fmt.Sprintf("The mail to %s is in the outbox, as a colleague has changed it.", name)
	}
	return fmt.Sprintf("The mail to %s is in the outbox.", name)
}
