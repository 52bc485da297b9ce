package backoffice

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// keyed is a context as the engine gives one to a handler.
func keyed(key string) context.Context {
	return ringi.WithToolContext(context.Background(), &ringi.ToolContext{Key: key, Decider: "d"})
}

func register(t *testing.T, o *Office) *ringi.Registry {
	t.Helper()
	reg := ringi.NewStrictRegistry()
	if err := o.Register(reg); err != nil {
		t.Fatal(err)
	}
	return reg
}

func TestRegister(t *testing.T) {
	o := newOffice(t)
	reg := register(t, o)
	if reg.Len() != 9 {
		t.Errorf("%d tools, want 9", reg.Len())
	}
	for _, tool := range reg.Tools() {
		if tool.Description == "" || tool.DataClass == "" || tool.Effect == ringi.Undeclared || len(tool.OutputSchema) == 0 {
			t.Errorf("tool %s: description, class, effect and output schema must be declared", tool.Name)
		}
		if tool.Effect.Writes() != (reg.Hooks(tool.Name).Preview != nil) {
			t.Errorf("tool %s: every write has a preview, and no read", tool.Name)
		}
	}
	if err := o.Register(reg); err == nil || !strings.Contains(err.Error(), "find_customer") {
		t.Errorf("registered twice: %v", err)
	}
	offered, _ := reg.Offered("verify_identity")
	if strings.Contains(string(offered.InputSchema), "card_last4") {
		t.Error("the model is offered the person's keys")
	}
	if err := ringi.CheckValues(mustTool(t, reg, "verify_identity"), `{"card_last4":"12a4","named_address":true}`); err == nil {
		t.Error("card digits that are none are taken")
	}
}

func mustTool(t *testing.T, reg *ringi.Registry, name string) ringi.Tool {
	t.Helper()
	tool, ok := reg.Tool(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	return tool
}

// TestSchemas holds the given schemas of the writes against inputs.
func TestSchemas(t *testing.T) {
	reg := register(t, newOffice(t))
	for _, c := range []struct {
		tool, input string
		ok          bool
	}{
		{"refund", `{"order_id":"A-1042","amount_cents":3490,"currency":"EUR","reason":"r"}`, true},
		{"refund", `{"order_id":"A-1042","amount_cents":0,"currency":"EUR","reason":"r"}`, false},
		{"refund", `{"order_id":"A-1042","amount_cents":34.9,"currency":"EUR","reason":"r"}`, false},
		{"refund", `{"order_id":"A-1042","amount_cents":3490,"currency":"JPY","reason":"r"}`, false},
		{"refund", `{"order_id":"A-1042","amount_cents":3490,"currency":"EUR","reason":"r","to":"me"}`, false},
		{"refund", `{"order_id":"1042","amount_cents":3490,"currency":"EUR","reason":"r"}`, false},
		{"change_address", `{"customer_id":"C-1002","street":"A 1","postcode":"1","city":"X","country":"Y"}`, true},
		{"change_address", `{"customer_id":"C-1002","street":"A 1\n+name: B","postcode":"1","city":"X","country":"Y"}`, false},
		{"send_mail", `{"to":"mira.solheim@example.com","subject":"s","body":"two\nlines"}`, true},
		{"send_mail", `{"to":"mira.solheim@example.com","subject":"s\nBcc: x@example.com","body":"b"}`, false},
		{"cancel_order", `{"order_id":"A-1057","reason":"r"}`, true},
		{"cancel_order", `{"order_id":"A-1057"}`, false},
		{"verify_identity", `{"customer_id":"C-1003"}`, true},
		{"find_customer", `{"query":"mira"}`, true},
		{"find_customer", `{}`, false},
		{"list_orders", `{"customer_id":"C-1001"}`, true},
		{"order_details", `{"order_id":"A-1042"}`, true},
		{"refund_policy", `{"topic":"damaged"}`, true},
	} {
		_, err := reg.CheckInput(c.tool, ringi.Input(c.input), ringi.InputLimits{})
		if (err == nil) != c.ok {
			t.Errorf("%s %s: %v, want taken %v", c.tool, c.input, err, c.ok)
		}
	}
}

func TestFindCustomer(t *testing.T) {
	o := newOffice(t)
	for query, want := range map[string]string{"mira": "C-1001", "WÓJCIK": "C-1009", "c-1007": "C-1007", "花子": "C-1007", "hanako.yamada@": "C-1007", "nobody": ""} {
		out, err := o.findCustomer(context.Background(), findCustomerIn{Query: query})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range out.Customers {
			got += c.ID
		}
		if got != want {
			t.Errorf("find %q: %s, want %s", query, got, want)
		}
	}
	out, err := o.findCustomer(context.Background(), findCustomerIn{Query: "example.com"})
	if err != nil || len(out.Customers) != foundCustomers || !out.More {
		t.Errorf("find everybody: %d, more %v, %v", len(out.Customers), out.More, err)
	}
	if _, err := o.findCustomer(context.Background(), findCustomerIn{Query: " "}); !ringi.IsNotDone(err) {
		t.Errorf("empty query: %v", err)
	}
	if text := string(encode(out)); strings.Contains(text, "4242") || strings.Contains(text, "Harbour Bank") {
		t.Error("the model is given a card or a bank")
	}
}

func TestReads(t *testing.T) {
	ctx, o := context.Background(), newOffice(t)
	list, err := o.listOrders(ctx, listOrdersIn{CustomerID: "C-1001"})
	if err != nil || len(list.Orders) != 2 || list.Orders[0].ID != "A-1042" || list.Orders[0].TotalCents != 4240 {
		t.Errorf("orders of C-1001: %+v, %v", list, err)
	}
	of, err := o.orderDetails(ctx, orderDetailsIn{OrderID: "A-1019"})
	if err != nil || of.TotalCents != 4300 || of.RefundedCents != 2150 || of.CustomerName != "Mira Solheim" {
		t.Errorf("order A-1019: %+v, %v", of, err)
	}
	p, err := o.refundPolicy(ctx, refundPolicyIn{Topic: "damaged"})
	if err != nil || !strings.Contains(p.Text, "refunded in full") {
		t.Errorf("policy: %+v, %v", p, err)
	}
	_, e1 := o.listOrders(ctx, listOrdersIn{CustomerID: "C-9999"})
	_, e2 := o.orderDetails(ctx, orderDetailsIn{OrderID: "A-9999"})
	_, e3 := o.refundPolicy(ctx, refundPolicyIn{Topic: "magic"})
	for _, err := range []error{e1, e2, e3} {
		if !ringi.IsNotDone(err) {
			t.Errorf("what is not there: %v", err)
		}
	}
}

func TestVerifyIdentity(t *testing.T) {
	o := newOffice(t)
	for _, c := range []struct {
		in   verifyIdentityIn
		ok   bool
		want string
	}{
		{verifyIdentityIn{"C-1003", "4417", true}, true, ""},
		{verifyIdentityIn{"C-1003", "4417", false}, false, "delivery address"},
		{verifyIdentityIn{"C-1003", "0000", true}, false, "digits"},
	} {
		out, err := o.verifyIdentity(context.Background(), c.in)
		if err != nil || out.Verified != c.ok || !strings.Contains(out.Why, c.want) || strings.Contains(out.Why, "4417") {
			t.Errorf("verify %+v: %+v, %v", c.in, out, err)
		}
	}
}

func TestRefund(t *testing.T) {
	o := newOffice(t)
	in := refundIn{OrderID: "A-1042", AmountCents: 3490, Currency: "EUR", Reason: "broken"}
	if _, err := o.refund(context.Background(), in); !ringi.IsNotDone(err) {
		t.Errorf("without a key: %v", err)
	}
	first, err := o.refund(keyed("k1"), in)
	if err != nil || first.AmountCents != 3490 || first.LeftCents != 750 || first.Repeat || first.State != "booked" {
		t.Fatalf("refund: %+v, %v", first, err)
	}
	again, err := o.refund(keyed("k1"), in)
	if err != nil || !again.Repeat || again.RefundID != first.RefundID || again.LeftCents != 750 {
		t.Errorf("the same key: %+v, %v", again, err)
	}
	for name, bad := range map[string]refundIn{
		"more than is left": {OrderID: "A-1042", AmountCents: 751, Currency: "EUR"},
		"nothing":           {OrderID: "A-1042", AmountCents: 0, Currency: "EUR"},
		"below nothing":     {OrderID: "A-1042", AmountCents: -1, Currency: "EUR"},
		"other currency":    {OrderID: "A-1042", AmountCents: 1, Currency: "USD"},
		"no order":          {OrderID: "A-9999", AmountCents: 1, Currency: "EUR"},
	} {
		if _, err := o.refund(keyed("k-"+name), bad); !ringi.IsNotDone(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, err := o.Refunds(context.Background(), "A-1042")
	if err != nil || len(list) != 1 || list[0].RefundID != first.RefundID {
		t.Errorf("refunds: %+v, %v", list, err)
	}
}

// TestRefundRace books one key and one amount at once from many goroutines:
// one row a key, and never more than the order cost.
func TestRefundRace(t *testing.T) {
	o := newOffice(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			key := "same"
			if i%2 == 1 {
				key = "key" + string(rune('0'+i))
			}
			_, err := o.refund(keyed(key), refundIn{OrderID: "A-1071", AmountCents: 1995, Currency: "EUR", Reason: "r"})
			if err != nil && !ringi.IsNotDone(err) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	list, err := o.Refunds(context.Background(), "A-1071")
	if err != nil || len(list) != 1 || list[0].LeftCents != 0 {
		t.Errorf("refunds: %+v, %v", list, err)
	}
}

func TestRefundHooks(t *testing.T) {
	ctx, o := context.Background(), newOffice(t)
	h := o.refundHooks()
	call := ringi.ToolCall{Tool: "refund", Input: `{"order_id":"A-1042","amount_cents":3490,"currency":"EUR","reason":"broken"}`}
	p, err := h.Preview(ctx, call)
	if err != nil || !strings.HasPrefix(p.Text, "34.90 EUR to Mira Solheim, to the card that ends in 4242") || p.Precondition == "" {
		t.Fatalf("preview: %+v, %v", p, err)
	}
	if err := h.Check(ctx, call, p.Precondition); err != nil {
		t.Errorf("check: %v", err)
	}
	if _, found, err := h.Lookup(ctx, "k1"); found || err != nil {
		t.Errorf("look up before: %v, %v", found, err)
	}
	if _, err := o.refund(keyed("k1"), refundIn{OrderID: "A-1042", AmountCents: 100, Currency: "EUR", Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Check(ctx, call, p.Precondition); err == nil {
		t.Error("a refund came in between, and the check says nothing")
	}
	res, found, err := h.Lookup(ctx, "k1")
	if err != nil || !found || !strings.Contains(res.Output, `"amount_cents":100,`) {
		t.Errorf("look up: %+v, %v, %v", res, found, err)
	}
	for input, want := range map[ringi.Input]string{
		`{"order_id":"A-1042","amount_cents":9999,"currency":"EUR","reason":"r"}`: "only 41.40 EUR of the order is left",
		`{"order_id":"A-1042","amount_cents":1,"currency":"USD","reason":"r"}`:    "was paid in EUR",
	} {
		p, err := h.Preview(ctx, ringi.ToolCall{Input: input})
		if err != nil || !strings.Contains(p.Text, want) {
			t.Errorf("preview of %s: %q, %v", input, p.Text, err)
		}
	}
}

// TestSlowBank: the handler answers later than its time, what it sent stays
// sent until then, and a repeat under the same key books the same row.
func TestSlowBank(t *testing.T) {
	o := newOffice(t)
	o.Timeout = time.Hour
	in := refundIn{OrderID: "A-1088", AmountCents: 15900, Currency: "PLN", Reason: "r"}
	done := make(chan error, 1)
	go func() {
		_, err := o.refund(keyed("k"), in)
		done <- err
	}()
	var list []Refund
	for deadline := time.Now().Add(90 * time.Second); len(list) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var err error
		if list, err = o.Refunds(context.Background(), "A-1088"); err != nil {
			t.Fatal(err)
		}
	}
	if len(list) != 1 || list[0].State != "sent" {
		t.Fatalf("refunds: %+v", list)
	}
	if _, found, err := o.refundHooks().Lookup(context.Background(), "k"); found || err != nil {
		t.Errorf("what is only sent is found: %v, %v", found, err)
	}
	again, err := o.refund(keyed("k"), in)
	if err != nil || !again.Repeat || again.State != "booked" || again.RefundID != list[0].RefundID {
		t.Errorf("repeat: %+v, %v", again, err)
	}
	o.Close()
	if err := <-done; err == nil || ringi.IsNotDone(err) {
		t.Errorf("closed while the bank was asked: %v", err)
	}
}

func TestCancelOrder(t *testing.T) {
	ctx, o := context.Background(), newOffice(t)
	h := o.cancelHooks()
	call := ringi.ToolCall{Tool: "cancel_order", Input: `{"order_id":"A-1057","reason":"r"}`}
	p, err := h.Preview(ctx, call)
	if err != nil || !strings.Contains(p.Text, "Amara Okafor") || !strings.Contains(p.Text, "135.00 GBP") {
		t.Fatalf("preview: %+v, %v", p, err)
	}
	if _, err := o.db.Exec(`UPDATE orders SET status = 'shipped' WHERE id = 'A-1057'`); err != nil {
		t.Fatal(err)
	}
	if err := h.Check(ctx, call, p.Precondition); err == nil {
		t.Error("the order left the house, and the check says nothing")
	}
	if _, err := o.cancelOrder(ctx, cancelOrderIn{OrderID: "A-1057", Reason: "r"}); !ringi.IsNotDone(err) {
		t.Errorf("cancel what is shipped: %v", err)
	}
	for _, already := range []bool{false, true} {
		out, err := o.cancelOrder(ctx, cancelOrderIn{OrderID: "A-1050", Reason: "r"})
		if err != nil || out.Status != "cancelled" || out.Already != already {
			t.Errorf("cancel: %+v, %v", out, err)
		}
	}
	of, err := orderBy(ctx, o.db, "A-1050")
	if err != nil || of.Note != "Cancelled: r" {
		t.Errorf("note %q, %v: written twice, or not at all", of.Note, err)
	}
}

func TestChangeAddress(t *testing.T) {
	ctx, o := context.Background(), newOffice(t)
	h := o.addressHooks()
	call := ringi.ToolCall{Tool: "change_address", Input: `{"customer_id":"C-1002","street":"Lindenallee 4","postcode":"50667","city":"Köln","country":"Germany"}`}
	p, err := h.Preview(ctx, call)
	if err != nil || p.Format != "diff" || p.Precondition != "C-1002 version 1" {
		t.Fatalf("preview: %+v, %v", p, err)
	}
	const want = `--- C-1002 version 1
+++ C-1002 version 2
@@ -1,5 +1,5 @@
 name:     Jonas Weber
-street:   Mühlenweg 9
-postcode: 48143
-city:     Münster
+street:   Lindenallee 4
+postcode: 50667
+city:     Köln
 country:  Germany
`
	if p.Text != want {
		t.Errorf("diff:\n%s\nwant:\n%s", p.Text, want)
	}
	in := changeAddressIn{CustomerID: "C-1002", Street: "Lindenallee 4", Postcode: "50667", City: "Köln", Country: "Germany"}
	if err := h.Check(ctx, call, p.Precondition); err != nil {
		t.Errorf("check: %v", err)
	}
	for i, already := range []bool{false, true} {
		out, err := o.changeAddress(ctx, in)
		if err != nil || out.Version != 2 || out.Already != already {
			t.Errorf("change %d: %+v, %v", i, out, err)
		}
		// A repeat after a crash finds its own work, and is no contradiction.
		if err := h.Check(ctx, call, p.Precondition); err != nil {
			t.Errorf("check a repeat: %v", err)
		}
	}
	other := in
	other.Street = "Elsewhere 1"
	if _, err := o.changeAddress(ctx, other); err != nil {
		t.Fatal(err)
	}
	if err := h.Check(ctx, call, p.Precondition); err == nil {
		t.Error("somebody else was first, and the check says nothing")
	}
	if _, err := o.changeAddress(ctx, changeAddressIn{CustomerID: "C-9999"}); !ringi.IsNotDone(err) {
		t.Errorf("nobody's address: %v", err)
	}
}

// TestDiffKeepsLines: a field with a line feed in it cannot pass for a line.
func TestDiffKeepsLines(t *testing.T) {
	was := customer{ID: "C-1", Name: "A\n+country:  Atlantis", Street: "x", Version: 3}
	will := was
	will.Street = "y\u2028+z"
	text := addressDiff(was, will)
	if n := strings.Count(text, "\n"); n != 9 {
		t.Errorf("%d lines, want 9:\n%s", n, text)
	}
	if strings.Contains(text, "\n+country") || strings.Contains(text, "\u2028") {
		t.Errorf("a field broke out of its line:\n%s", text)
	}
}

func TestSendMail(t *testing.T) {
	ctx, o := context.Background(), newOffice(t)
	in := Mail{To: "rob.vale@example.com", Subject: "Hello", Body: "two\nlines"}
	if _, err := o.sendMail(ctx, in); !ringi.IsNotDone(err) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := o.sendMail(keyed("k"), Mail{To: "stranger@example.org"}); !ringi.IsNotDone(err) {
		t.Errorf("to a stranger: %v", err)
	}
	h := o.mailHooks()
	if _, found, err := h.Lookup(ctx, "k1"); found || err != nil {
		t.Errorf("look up before: %v, %v", found, err)
	}
	first, err := o.sendMail(keyed("k1"), in)
	if err != nil || first.Repeat || first.MailID == "" {
		t.Fatalf("send: %+v, %v", first, err)
	}
	again, err := o.sendMail(keyed("k1"), in)
	if err != nil || !again.Repeat || again.MailID != first.MailID {
		t.Errorf("the same key: %+v, %v", again, err)
	}
	box, err := o.Outbox(ctx)
	if err != nil || len(box) != 2 || box[1] != in {
		t.Errorf("outbox: %+v, %v", box, err)
	}
	res, found, err := h.Lookup(ctx, "k1")
	if err != nil || !found || !strings.Contains(res.Output, first.MailID) {
		t.Errorf("look up: %+v, %v, %v", res, found, err)
	}
	p, err := h.Preview(ctx, ringi.ToolCall{Input: ringi.Input(encode(in))})
	if err != nil || p.Format != "mail" || !strings.HasPrefix(p.Text, "To: "+hostileName+" <rob.vale@example.com>\nSubject: Hello\n\ntwo\nlines") {
		t.Errorf("preview: %+v, %v", p, err)
	}
	if _, err := h.Preview(ctx, ringi.ToolCall{Input: `{"to":"stranger@example.org"}`}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("preview to a stranger: %v", err)
	}
}

func TestMoney(t *testing.T) {
	for cents, want := range map[int64]string{0: "0.00 EUR", 5: "0.05 EUR", 3490: "34.90 EUR", -120: "-1.20 EUR"} {
		if got := money(cents, "EUR"); got != want {
			t.Errorf("money(%d) = %s, want %s", cents, got, want)
		}
	}
}
