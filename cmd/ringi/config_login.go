package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// loginConfig says how people log in; in the file alone.
type loginConfig struct {
	Links      string            `yaml:"links"`
	Session    duration          `yaml:"session"`
	SamePerson [][]string        `yaml:"same_person"`
	Previews   map[string]string `yaml:"previews"`
	OIDC       struct {
		Issuer           string                 `yaml:"issuer"`
		ClientID         string                 `yaml:"client_id"`
		ClientSecretFile string                 `yaml:"client_secret_file"`
		Name             string                 `yaml:"name"`
		Scopes           []string               `yaml:"scopes"`
		GroupsClaim      string                 `yaml:"groups_claim"`
		Groups           map[string]groupConfig `yaml:"groups"`
		SignUp           string                 `yaml:"sign_up"`
	} `yaml:"oidc"`
}

// loginKeys is the table of its keys, for docs/config.md; a test holds it
// against loginConfig.
var loginKeys = []agentKey{
	{"login.links", "`on`; `off` with a provider", "whether people log in by one-time links. `off` ends the sessions that one began. It is `off` where four eyes hold: a link cannot tell two people apart (S-12)"},
	{"login.session", "720h; 12h with a provider", "the longest that a session lives. Groups are read at a login, so with a provider it is also the longest that somebody keeps a role whose group he has left"},
	{"login.same_person", "none", "logins of one person, as lists of their ids: four eyes count them as one. Joining gives no right"},
	{"login.previews", "no ceilings", "by role, the most sensitive data class of a preview that the role is shown (`approver: internal_configuration`); roles add up, and a tool says the class of its previews (`preview_class`, else its `data_class`; undeclared is the most sensitive). With any entry a role without one is shown no preview. Who is not shown it may deny, not approve (S-17)"},
	{"login.oidc.issuer", "none", "the OpenID Connect provider that people log in by, exactly as its tokens name it. It needs `public_url`, where the provider sends people back to: `PUBLIC_URL/login/oidc/callback`"},
	{"login.oidc.client_id", "needed with `issuer`", "our id at the provider"},
	{"login.oidc.client_secret_file", "none", "file of the client's secret, readable by the server alone. `RINGI_LOGIN_OIDC_CLIENT_SECRET` takes its place; without both the client is a public one"},
	{"login.oidc.name", "the issuer's host", "what the button calls the provider"},
	{"login.oidc.scopes", "`[profile, email]`", "scopes that are asked for beside `openid`"},
	{"login.oidc.groups_claim", "`groups`", "the claim that holds a person's groups; dots part levels (`realm_access.roles`)"},
	{"login.oidc.groups", "empty", "by group at the provider: the `role` and the `team` that it gives, each one word or a list. Read anew at each login: who has left a group loses what it gave. Who is in none has no role. Empty: an admin gives roles, and the provider only says who somebody is"},
	{"login.oidc.sign_up", "`mapped`", "who is added at his first login: `mapped`, to whom a group gives a role; `anyone`, every account of the provider, which has no role until a group or an admin gives one; `never`, none"},
}

// groupConfig is what a group of the provider's gives.
type groupConfig struct {
	Role words `yaml:"role"`
	Team words `yaml:"team"`
}

// words is one text or a list of texts.
type words []string

// UnmarshalYAML takes both forms.
func (w *words) UnmarshalYAML(n ast.Node) error {
	switch n := n.(type) {
	case *ast.StringNode:
		*w = words{n.Value}
		return nil
	case *ast.SequenceNode:
		return yaml.NodeToValue(n, (*[]string)(w), yaml.Strict())
	}
	return wrong(n, "this is to be a text or a list of texts")
}

// The values of login.links and of an agent's initiator.
const (
	switchedOn  = "on"
	switchedOff = "off"
	mayApprove  = "may_approve"
)

// provided reports whether people log in by a provider.
func (c *config) provided() bool { return c.Login.OIDC.Issuer != "" }

// links reports whether people log in by links.
func (c *config) links() bool { return c.Login.Links != switchedOff }

// loginDefaults fills in what a provider makes the default: people decide at
// the server, without links, and no initiator approves a write of his own
// (S-04).
func (c *config) loginDefaults() {
	if !c.provided() {
		return
	}
	for _, d := range []struct {
		at    *string
		value string
	}{{&c.Decide, decideServer}, {&c.Login.Links, switchedOff}} {
		if *d.at == "" {
			*d.at = d.value
		}
	}
	if c.Login.Session.d == 0 && !c.Login.Session.never {
		c.Login.Session.d = 12 * time.Hour
	}
	for i := range c.Agents {
		if a := &c.Agents[i]; a.FourEyes == "" && a.Initiator != mayApprove {
			a.FourEyes = "writes"
		}
	}
}

// checkLogin refuses logins that make no sense, or do not hold what an agent's
// four eyes need.
func (c *config) checkLogin() error {
	l := &c.Login
	switch {
	case !slices.Contains([]string{"", switchedOn, switchedOff}, l.Links):
		return fmt.Errorf("login.links: unknown value %q: say on or off", l.Links)
	case l.Session.never:
		return errors.New("login.session: it has an end")
	case !c.provided() && l.Links == switchedOff:
		return errors.New("login.links: without links and without login.oidc nobody could log in")
	}
	if err := c.Login.checkPreviews(); err != nil {
		return err
	}
	if err := c.checkProvider(); err != nil {
		return err
	}
	for _, a := range c.Agents {
		if err := c.checkEyes(a); err != nil {
			return fmt.Errorf("agent %s: %w", a.Name, err)
		}
	}
	return nil
}

// previews are the ceilings by role; nil without any.
func (l loginConfig) previews() map[access.Role]ringi.DataClass {
	if l.Previews == nil {
		return nil
	}
	out := map[access.Role]ringi.DataClass{}
	for role, class := range l.Previews {
		out[access.Role(role)] = ringi.DataClass(class)
	}
	return out
}

func (l loginConfig) checkPreviews() error {
	for role, class := range l.Previews {
		if !slices.Contains(access.Roles(), access.Role(role)) {
			return fmt.Errorf("login.previews: %q is no role", role)
		}
		if class == "" || !ringi.DataClass(class).Known() {
			return fmt.Errorf("login.previews: %s: %q is no data class", role, class)
		}
	}
	return nil
}

func (c *config) checkProvider() error {
	o := &c.Login.OIDC
	if !c.provided() {
		if o.ClientID != "" || o.ClientSecretFile != "" || o.Name != "" || o.Scopes != nil || o.GroupsClaim != "" || o.Groups != nil || o.SignUp != "" {
			return errors.New("login.oidc.issuer: of which provider is the rest of login.oidc?")
		}
		return nil
	}
	switch {
	case o.ClientID == "":
		return errors.New("login.oidc.client_id: a provider needs it")
	case c.public == nil:
		return errors.New("login.oidc: the provider sends people back to public_url: set it")
	case c.Decide != decideServer:
		return errors.New("login.oidc: where people have logins they decide with them: leave decide out, or set decide: server")
	case !slices.Contains([]string{"", "mapped", "anyone", "never"}, o.SignUp):
		return fmt.Errorf("login.oidc.sign_up: unknown value %q: say mapped, anyone or never", o.SignUp)
	case o.Groups != nil && len(o.Groups) == 0:
		return errors.New("login.oidc.groups: an empty map says nothing: leave it out")
	case o.Groups == nil && (o.SignUp == "" || o.SignUp == "mapped"):
		return errors.New("login.oidc: without groups nobody could be added: set groups, or sign_up to anyone or never")
	}
	for group, g := range o.Groups {
		if len(g.Role) == 0 && len(g.Team) == 0 {
			return fmt.Errorf("login.oidc.groups: %s gives neither a role nor a team", group)
		}
		for _, role := range g.Role {
			if role == string(access.RoleAgent) || !slices.Contains(access.Roles(), access.Role(role)) {
				return fmt.Errorf("login.oidc.groups: %s: %q is no role of a person: say %s", group, role, personRoles())
			}
		}
	}
	return nil
}

// checkEyes holds an agent's four eyes against how people log in.
func (c *config) checkEyes(a agentConfig) error {
	eyes := a.FourEyes != "" && a.FourEyes != switchedOff
	switch {
	case !slices.Contains([]string{"", mayApprove}, a.Initiator):
		return fmt.Errorf("initiator: unknown value %q: say may_approve, or leave it out", a.Initiator)
	case eyes && a.Initiator == mayApprove:
		return fmt.Errorf("initiator: may_approve, and four_eyes: %s says that he may not", a.FourEyes)
	case eyes && !c.provided():
		return errors.New("four_eyes: needs login.oidc: a login link cannot tell two people apart")
	case eyes && c.links():
		return errors.New("four_eyes: needs login.links: off: a login link cannot tell two people apart")
	case c.provided() && !eyes && a.Initiator != mayApprove:
		return errors.New("four_eyes: to let who asked for a write approve it, write initiator: may_approve")
	}
	return nil
}

func personRoles() string {
	var out []string
	for _, r := range access.Roles() {
		if r != access.RoleAgent {
			out = append(out, string(r))
		}
	}
	return strings.Join(out, ", ")
}
