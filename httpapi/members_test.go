package httpapi_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
)

// membersLater is a directory that is opened after the engine.
type membersLater struct{ ringi.Members }

// A program that mounts the server gives the engine its directory: then a
// decision by way of the API and one by way of the program count alike, and who
// leaves the team between them decides by neither.
func TestAMountedServersTeamsAreTheDirectorys(t *testing.T) {
	var dir membersLater
	w := newWorld(t, setting{engine: func(c *engine.Config) { c.Members = &dir }})
	dir.Members = w.dir
	ben := ringi.Principal{ID: access.LocalID("ben"), Kind: ringi.Person, Auth: "test", Teams: []string{"money"}}
	decide := func(r run) error {
		q, err := w.router.Request(context.Background(), r.Pending[0].ID)
		w.must(err)
		_, err = w.router.Decide(context.Background(), q.Deny(ben, "no"))
		return err
	}
	if got := w.decide("ben", w.asked("ben", w.start("uma", "shop", "teamwork 5")), `{"answer":"deny"}`); got.status != 201 {
		t.Errorf("a member, by the API: %d %s", got.status, got.body)
	}
	w.must(decide(w.start("uma", "shop", "teamwork 6")))

	r := w.start("uma", "shop", "teamwork 7")
	q := w.asked("ben", r)
	w.must(w.dir.SetUser(t.Context(), operator, access.User{ID: ben.ID, Name: "ben", Roles: []access.Role{access.RoleApprover}}))
	if got := w.decide("ben", q, `{"answer":"deny"}`); got.status != 404 {
		t.Errorf("who left the team, by the API: %d %s", got.status, got.body)
	}
	if err := decide(r); !errors.Is(err, ringi.ErrNotPermitted) {
		t.Errorf("who left the team, and says that he is in it, by the program: %v", err)
	}
}
