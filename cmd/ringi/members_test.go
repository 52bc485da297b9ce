package main

import (
	"errors"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// The engine that the server builds goes by the directory's teams when a
// decision is made, whatever the decider's login or client said.
func TestServerAsksTheDirectoryForTeams(t *testing.T) {
	p := newMachine(t)
	p.write("config/ringi/ringi.yaml", oneAgent+"    deciders: {teams: [cash]}\n")
	s := p.openedServer("--data", p.dir+"/data")
	defer s.close()
	ana := access.User{ID: access.LocalID("ana"), Name: "Ana", Roles: []access.Role{access.RoleApprover}}
	if err := errors.Join(s.people.AddTeam(t.Context(), operator(), "cash", "Cash"), s.people.AddUser(t.Context(), operator(), ana)); err != nil {
		t.Fatal(err)
	}
	res, err := s.engine.Run(t.Context(), ringi.RunStart{Agent: "shop", Thread: "t1", Messages: []ringi.Message{ringi.User("pay")},
		By: ringi.Principal{ID: "os:1@test", Kind: ringi.Person, Auth: "test"}})
	if err != nil || len(res.Pending) == 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	q := res.Pending[0]
	says := ringi.Principal{ID: ana.ID, Kind: ringi.Person, Auth: "test", Teams: []string{"cash"}}
	if _, err := s.engine.Decide(t.Context(), q.Deny(says, "no")); !errors.Is(err, ringi.ErrNotPermitted) {
		t.Errorf("who only says that she is in the team: %v", err)
	}
	ana.Teams = []string{"cash"}
	if err := s.people.SetUser(t.Context(), operator(), ana); err != nil {
		t.Fatal(err)
	}
	ana.Disabled = true
	says.Teams = nil
	if err := s.people.SetUser(t.Context(), operator(), ana); err != nil {
		t.Fatal(err)
	}
	if _, err := s.engine.Decide(t.Context(), q.Deny(says, "no")); !errors.Is(err, ringi.ErrNotPermitted) {
		t.Errorf("who is disabled: %v", err)
	}
	ana.Disabled = false
	if err := s.people.SetUser(t.Context(), operator(), ana); err != nil {
		t.Fatal(err)
	}
	if _, err := s.engine.Decide(t.Context(), q.Deny(says, "no")); err != nil {
		t.Errorf("who is in the team: %v", err)
	}
}
