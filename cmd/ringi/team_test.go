package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi/access"
)

// people ↔ teams from the command line: made, listed, changed, removed.
func TestTeamsFromTheCommandLine(t *testing.T) {
	p := newMachine(t)
	data := filepath.Join(t.TempDir(), "data")
	t.Setenv("RINGI_CONFIG", p.write("ringi.yaml", oneAgent+"    deciders: {teams: [support, night]}\n"))
	if err := prepareData(data); err != nil {
		t.Fatal(err)
	}
	d, err := openDirectory(t.Context(), filepath.Join(data, accessFile), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	user := func(id string) access.User {
		t.Helper()
		u, err := d.User(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}

	peopleLine(t, exitUsage, data, "team")
	peopleLine(t, exitDone, data, "team", "add", "support", "--name", "Customer support")
	peopleLine(t, exitFailed, data, "team", "add", "support")
	peopleLine(t, exitFailed, data, "team", "add", "a b")
	peopleLine(t, exitDone, data, "user", "add", "ana", "--role", "approver")
	peopleLine(t, exitDone, data, "user", "set", "ana", "--team", "support", "--team", "billing", "--role", "approver", "--role", "user")
	if u := user("local:ana"); !slices.Equal(u.Teams, []string{"billing", "support"}) || !slices.Equal(u.Roles, []access.Role{access.RoleUser, access.RoleApprover}) {
		t.Errorf("ana is %+v", u)
	}
	out := peopleLine(t, exitDone, data, "team", "list")
	if !strings.Contains(out, "Customer support") || !strings.Contains(out, "local:ana") || !strings.Contains(out, "asks team night") || strings.Contains(out, "asks team support") {
		t.Errorf("list: %s", out)
	}
	var listed struct{ Teams []access.Team }
	if err := json.Unmarshal([]byte(peopleLine(t, exitDone, data, "team", "list", "--json")), &listed); err != nil || len(listed.Teams) != 2 {
		t.Errorf("list as JSON: %+v, %v", listed, err)
	}

	peopleLine(t, exitDone, data, "user", "set", "ana", "--name", "Ana", "--team", "")
	if u := user("local:ana"); len(u.Teams) != 0 || u.Name != "Ana" || len(u.Roles) != 2 {
		t.Errorf("ana is %+v", u)
	}
	peopleLine(t, exitUsage, data, "user", "set", "ana", "--disable", "--enable")
	peopleLine(t, exitFailed, data, "user", "set", "ana", "--role", "agent")
	peopleLine(t, exitFailed, data, "user", "set", "nobody", "--disable")
	peopleLine(t, exitDone, data, "user", "set", "local:ana", "--disable")
	if !user("local:ana").Disabled {
		t.Error("ana is not disabled")
	}
	peopleLine(t, exitDone, data, "user", "set", "ana", "--enable", "--shared")
	if u := user("local:ana"); u.Disabled || !u.Shared {
		t.Errorf("ana is %+v", u)
	}
	peopleLine(t, exitDone, data, "team", "remove", "support")
	peopleLine(t, exitFailed, data, "team", "remove", "support")
	peopleLine(t, exitUsage, data, "user", "add", "x", "--provider")

	// With a provider: by subject, and without a login link.
	t.Setenv("RINGI_CONFIG", p.write("ringi.yaml", withProvider+oneAgent))
	if out := peopleLine(t, exitDone, data, "user", "add", "4711", "--provider", "--name", "Ben"); strings.Contains(out, "link") {
		t.Errorf("a login link with links off: %s", out)
	}
	if u := user("https://id.example.org#4711"); u.Name != "Ben" {
		t.Errorf("ben is %+v", u)
	}
	if out := peopleLine(t, exitDone, data, "user", "set", "https://id.example.org#4711", "--role", "admin"); !strings.Contains(out, "at his next login") {
		t.Errorf("nobody says that groups come first: %s", out)
	}
}
