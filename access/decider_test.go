package access

import (
	"errors"
	"slices"
	"testing"

	"github.com/ringi-dev/ringi"
)

func TestWhoMayBeHandedARequest(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser, RoleApprover)
	h.add(t, "uma", RoleUser)
	gone := h.add(t, "ben", RoleApprover)
	gone.Disabled = true
	if err := errors.Join(h.SetUser(ctx, operator, gone), h.AddTeam(ctx, operator, "money", "Money")); err != nil {
		t.Fatal(err)
	}
	list, err := h.Approvers(ctx)
	if err != nil || !slices.EqualFunc(list, []string{"local:ana"}, func(u User, id string) bool { return u.ID == id }) {
		t.Errorf("approvers are %v, %v", list, err)
	}
	for _, tt := range []struct {
		people, teams []string
		good          bool
	}{
		{nil, nil, true}, {[]string{"local:ana"}, nil, true}, {nil, []string{"money"}, true}, {[]string{"local:ana"}, []string{"money"}, true},
		{[]string{"local:uma"}, nil, false}, {[]string{"local:ben"}, nil, false}, {[]string{"local:nobody"}, nil, false},
		{[]string{"local:ana", "local:nobody"}, nil, false}, {nil, []string{"money", "night"}, false}, {[]string{""}, nil, false},
	} {
		if err := h.CheckDeciders(ctx, ringi.Deciders{People: tt.people, Teams: tt.teams}); tt.good != (err == nil) || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q and %q: %v", tt.people, tt.teams, err)
		}
	}
}
