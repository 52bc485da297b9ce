package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi/access"
)

// S-12: the command line on a server's store counts people as the server does:
// by the directory beside the store, and by what the server has joined.
func TestS12_CommandLineKnowsPeople(t *testing.T) {
	p := newMachine(t)
	joined := "  same_person: [[local:ana, 'os:1000@desk']]\n"
	p.write("config/ringi/ringi.yaml", "login:\n"+joined+oneAgent)
	s := p.openedServer("--data", p.dir+"/data")
	desk := access.User{ID: access.LocalID("desk"), Name: "Front desk", Shared: true}
	if err := s.people.AddUser(t.Context(), operator(), desk); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(p.dir, "config", "ringi", "ringi.key")
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	secret, err := readGuarded(key, onlyOursRead)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOOL_APPROVAL_SECRET", strings.TrimSpace(string(secret)))
	e := p.env()
	e.store = "sqlite:" + filepath.Join(p.dir, "data", storeFile)
	cli, err := e.session(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer cli.close()
	got, err := cli.people.Persons(t.Context(), []string{"os:1000@desk", "local:ana", "local:desk", "os:7@desk"})
	if want := []string{"local:ana", "local:ana", "", "os:7@desk"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("persons %q, %v, want %q", got, err, want)
	}
}
