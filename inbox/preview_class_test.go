package inbox_test

import (
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
	"strings"
)

// S-17: the page says that there is a preview which is not for the reader's
// role, offers no approval, and takes none from a form that was made up.
func TestS17_APreviewThatIsNotForHisRole(t *testing.T) {
	var store ringi.Store
	h := newHouse(t, houseOptions{idle: true, engine: func(c *engine.Config) { store = c.Store },
		people: access.Options{Previews: map[access.Role]ringi.DataClass{access.RoleApprover: ringi.PublicContent, access.RoleAdmin: ringi.SecretAdjacent}}})
	ana, ben := h.add("Ana", access.RoleUser), h.add("Ben", access.RoleApprover)
	both := h.add("Cho", access.RoleApprover, access.RoleAdmin)
	r := h.asks(ana, kettle)
	if r.Preview == nil {
		t.Fatalf("the tool shows no preview: %+v", r)
	}
	b := h.browser(ben).open("/a/"+r.ID).want(200, "There is a preview, and it is not for your role")
	if strings.Contains(b.page, "by the tool, before anything runs") || strings.Contains(b.page, `value="approve"`) {
		t.Errorf("the page shows the preview, or offers to approve: %s", b.page)
	}
	_, v := b.form("/decide", map[string]string{"answer": "deny"})
	v.Set("answer", "approve")
	v.Set("sure", "1")
	b.post("/a/"+r.ID+"/decide", v)
	if b.status < 400 || h.get(r.ID).State != ringi.Pending {
		t.Errorf("a made-up approval: %d, the request is %s", b.status, h.get(r.ID).State)
	}
	if all, err := store.Attempts(t.Context(), "default", r.RunID); err != nil || len(all) != 1 || all[0].By != ben {
		t.Errorf("attempts %+v, %v", all, err)
	}
	c := h.browser(both).open("/a/" + r.ID)
	if c.status != 200 || !strings.Contains(c.page, "by the tool, before anything runs") || !strings.Contains(c.page, `value="approve"`) {
		t.Errorf("who has a role that is shown it: %d %s", c.status, c.page)
	}
	b.open("/a/"+r.ID).send("/decide", map[string]string{"answer": "deny"}).want(200, "by you")
}
