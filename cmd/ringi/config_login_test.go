package main

import (
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi/access"
)

// withProvider is the least configuration of a login provider.
const withProvider = `public_url: https://ringi.example.org
login:
  oidc:
    issuer: https://id.example.org
    client_id: ringi
    groups: {refunds: {role: approver, team: support}}
`

func readLogin(t *testing.T, text string) (*config, error) {
	t.Helper()
	c := &config{}
	err := c.decode([]byte(text))
	if err == nil {
		err = c.check()
	}
	return c, err
}

// S-12: one login cannot be two people, and a link cannot tell two apart.
func TestS12_FourEyesNeedLogins(t *testing.T) {
	for _, text := range []string{
		oneAgent + "    four_eyes: writes\n",
		"decide: server\n" + oneAgent + "    four_eyes: all\n",
		strings.Replace(withProvider, "login:\n", "login:\n  links: on\n", 1) + oneAgent + "    four_eyes: writes\n",
		strings.Replace(withProvider, "login:\n", "login:\n  links: on\n", 1) + oneAgent, // the default with a provider
	} {
		if _, err := readLogin(t, text); err == nil || !strings.Contains(err.Error(), "four_eyes: needs login.") {
			t.Errorf("%s: check gives %v", text, err)
		}
	}
}

// S-04: with a provider four eyes on writes are the default, and nothing but
// initiator: may_approve takes them away.
func TestS04_FourEyesAreTheDefaultWithAProvider(t *testing.T) {
	for _, tt := range []struct{ text, eyes, err string }{
		{oneAgent, "", ""},
		{withProvider + oneAgent, "writes", ""},
		{withProvider + oneAgent + "    four_eyes: all\n", "all", ""},
		{withProvider + oneAgent + "    initiator: may_approve\n", "", ""},
		{withProvider + oneAgent + "    four_eyes: off\n    initiator: may_approve\n", "off", ""},
		{withProvider + oneAgent + "    four_eyes: off\n", "", "initiator: may_approve"},
		{withProvider + oneAgent + "    four_eyes: all\n    initiator: may_approve\n", "", "says that he may not"},
		{oneAgent + "    initiator: everybody\n", "", `unknown value "everybody"`},
	} {
		c, err := readLogin(t, tt.text)
		switch {
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: %v, want %q", tt.text, err, tt.err)
		case tt.err == "" && (err != nil || c.Agents[0].FourEyes != tt.eyes):
			t.Errorf("%s: four eyes %q, %v", tt.text, c.Agents[0].FourEyes, err)
		}
	}
	c, err := readLogin(t, withProvider+oneAgent)
	if err != nil || c.Decide != decideServer || c.links() || c.accessOptions().SessionAge != 12*time.Hour {
		t.Errorf("defaults with a provider: decide %q, links %v, session %s, %v", c.Decide, c.links(), c.accessOptions().SessionAge, err)
	}
}

func TestLoginConfigThatMakesNoSense(t *testing.T) {
	oidc := func(lines string) string {
		return strings.Replace(withProvider, "    client_id: ringi\n", lines, 1) + oneAgent
	}
	groups := func(text string) string {
		return strings.Replace(withProvider, "{refunds: {role: approver, team: support}}", text, 1) + oneAgent
	}
	for _, tt := range []struct{ text, want string }{
		{"login: {links: off}\n" + oneAgent, "nobody could log in"},
		{"login: {links: maybe}\n" + oneAgent, `unknown value "maybe"`},
		{"login: {session: never}\n" + oneAgent, "login.session"},
		{"login: {oidc: {client_id: x}}\n" + oneAgent, "of which provider"},
		{strings.Replace(withProvider, "public_url: https://ringi.example.org\n", "", 1) + oneAgent, "public_url"},
		{"decide: anywhere\n" + withProvider + oneAgent, "decide with them"},
		{oidc(""), "login.oidc.client_id"},
		{oidc("    client_id: ringi\n    sign_up: all\n"), `unknown value "all"`},
		{groups("{}"), "an empty map"},
		{strings.Replace(withProvider, "    groups: {refunds: {role: approver, team: support}}\n", "", 1) + oneAgent, "nobody could be added"},
		{groups("{refunds: {}}"), "neither a role nor a team"},
		{groups("{refunds: {role: agent}}"), "no role of a person"},
		{groups("{refunds: {role: [approver, boss]}}"), "no role of a person"},
		{groups("{refunds: {role: 7}}"), "a text or a list"},
		{groups("{refunds: {roles: approver}}"), `unknown key "roles"`},
	} {
		if _, err := readLogin(t, tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\n%v, want %q", tt.text, err, tt.want)
		}
	}
	c, err := readLogin(t, loginYAML+strings.TrimPrefix(oneAgent, "\n"))
	if err != nil || len(c.Login.OIDC.Groups["back-office"].Role) != 2 || len(c.Login.OIDC.Groups["refunds"].Team) != 1 {
		t.Errorf("the page's example: %+v, %v", c.Login, err)
	}
}

// S-12: where four eyes hold, a login marked shared is an error at start; the
// owner of the single-user default is not made, as he could not log in.
func TestS12_SharedLoginIsAnErrorAtStart(t *testing.T) {
	p := newMachine(t)
	p.write("config/ringi/ringi.yaml", withProvider+oneAgent)
	start := func() (*server, error) {
		c, err := p.read("--data", p.dir+"/data")
		if err != nil {
			t.Fatal(err)
		}
		return p.env().openServer(t.Context(), c)
	}
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	desk := access.User{ID: access.LocalID("desk"), Name: "Front desk", Roles: []access.Role{access.RoleApprover}, Shared: true}
	if err := s.people.AddUser(t.Context(), operator(), desk); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if _, err = start(); err == nil || !strings.Contains(err.Error(), "local:desk is marked shared") {
		t.Fatalf("a shared login under four eyes: %v", err)
	}
}
