package httpapi_test

import (
	"slices"
	"testing"

	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
)

// What an agent's token starts is its owner's as well: he ends it, and where
// four eyes are asked for he is no second person. A client that belongs to
// nobody is nobody in particular, and with it they cannot be met (S-12).
func TestS12_ATokensOwnerIsAnInitiator(t *testing.T) {
	w := newWorld(t, setting{engine: func(c *engine.Config) { c.FourEyes = engine.FourEyesAll }})
	u := access.User{ID: access.LocalID("uma"), Name: "uma", Roles: []access.Role{access.RoleUser, access.RoleApprover}}
	w.must(w.dir.SetUser(t.Context(), operator, u))
	q := w.asked("ben", w.start("hers", "shop", "refund 5"))
	got := w.do("ben", "GET", "/v1/approvals/"+q.ID, "")
	var asked struct{ Initiators []string }
	got.into(t, &asked)
	if want := []string{access.ClientID("hers"), u.ID}; !slices.Equal(asked.Initiators, want) {
		t.Errorf("initiators %q, want %q", asked.Initiators, want)
	}
	if got := w.decide("uma", q, `{"answer":"approve"}`); got.status != 403 || got.problem(t).Type != "urn:ringi:problem:not-permitted" {
		t.Errorf("the owner approves what her agent asks for: %d %s", got.status, got.body)
	}
	if got := w.decide("ben", q, `{"answer":"approve"}`); got.status != 201 {
		t.Errorf("a second person: %d %s", got.status, got.body)
	}
	nobodys := w.asked("ben", w.start("bot", "shop", "refund 6"))
	if got := w.decide("ben", nobodys, `{"answer":"approve"}`); got.status != 403 {
		t.Errorf("a client that belongs to nobody is taken for a person: %d %s", got.status, got.body)
	}
	if got := w.decide("ben", nobodys, `{"answer":"deny"}`); got.status != 201 {
		t.Errorf("a denial needs no second person: %d %s", got.status, got.body)
	}
	for _, end := range []struct{ path, body string }{{"withdrawal", `{"reason":"no longer"}`}, {"cancel", `{}`}} {
		r := w.start("hers", "shop", "refund 7")
		path := "/v1/approvals/" + r.Pending[0].ID + "/" + end.path
		if end.path == "cancel" {
			path = "/v1/runs/" + r.RunID + "/cancel"
		}
		if got := w.do("uma", "POST", path, end.body); got.status != 200 {
			t.Errorf("the owner's %s: %d %s", end.path, got.status, got.body)
		}
	}
}
