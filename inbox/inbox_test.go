package inbox_test

import (
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

const kettle = "Mira Solheim asks for a refund for a broken kettle."

func TestApprove(t *testing.T) {
	h := newHouse(t, houseOptions{})
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	r := h.asks(ana, kettle)
	b := h.browser(ana)
	b.want(200, "Pending", "refund", "For me")
	b.open("/a/"+r.ID).want(200, "Agent office wants to run refund", "34.90 EUR", "not checked", "the tool declares a change", "Expires", "History")
	b.send("/decide", map[string]string{"answer": "approve"}, "note", "looked at the photo")
	b.want(200, "Are you sure?", "Nothing has been decided yet", "looked at the photo")
	if got := h.get(r.ID).State; got != ringi.Pending {
		t.Fatalf("after the first press: %s", got)
	}
	b.send("/decide", map[string]string{"sure": "1"})
	b.want(200, "approved", "by you")
	until(t, "the refund is booked", func() bool {
		list, err := h.office.Refunds(t.Context(), "A-1042")
		return err == nil && len(list) == 1
	})
	b.open("/a/"+r.ID).want(200, "approved and started", "looked at the photo")
}
