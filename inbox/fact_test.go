package inbox

import (
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

func TestFactIsReadAndTyped(t *testing.T) {
	for _, c := range []struct{ name, input, label, yes, no string }{
		{"amount", `{"order_id":"A-1","amount_cents":123490,"currency":"EUR"}`, "amount in EUR", "1 234.90", "123490"},
		{"amount with a comma and the currency", `{"amount_cents":3490,"currency":"EUR"}`, "amount in EUR", "34,90 eur", "34.9"},
		{"host of an address", `{"n":1,"url":"https://Example.com:8443/x?y"}`, "host of “url”", "example.com", "example.com:8443"},
		{"host of a mail", `{"to":"mira@mail.example"}`, "host of “to”", "mail.example", "mira"},
		{"short value", `{"note":"` + strings.Repeat("x", 50) + `","order":"A-1042"}`, "value of “order”", "a-1042", "A-1043"},
		{"number", `{"on":true,"n":12}`, "value of “n”", "12", ""},
		{"nothing that can be typed", `{"host":"xn--pple-43d.example","a":"x\u202ey"}`, "name of the tool", "send", "xn--pple-43d.example"},
		{"masked", `{"password":"hunter2"}`, "name of the tool", "SEND", "hunter2"},
		{"no input", `{}`, "name of the tool", "send", ""},
	} {
		r := ringi.ApprovalRequest{}
		r.Call.Input = ringi.Input(c.input)
		f := factOf("send", moneyOf(r), showJSON(c.input, maskerOf(r)))
		if !strings.Contains(f.Label, c.label) || !f.typed(c.yes) || f.typed(c.no) {
			t.Errorf("%s: %+v takes %q: %v, %q: %v", c.name, f, c.yes, f.typed(c.yes), c.no, f.typed(c.no))
		}
	}
	if !(fact{}).typed("") {
		t.Error("nothing is asked for, and it is not enough")
	}
}
