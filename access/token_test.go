package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

func TestTokensOfBothKinds(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser, RoleAdmin)
	ana, _ := h.enterAs(t, "local:ana")

	tok, secret := h.token(t, ana, NewToken{Kind: AgentToken, Name: "shop", Agents: []string{"sales", "hr", "hr"}, Scopes: []Scope{ScopeRun, ScopeRead}})
	if len(secret) != tokenSize || !strings.HasPrefix(secret, "ringi_") || strings.Contains(fmt.Sprintf("%+v", tok), secret) {
		t.Errorf("secret %q, token %+v", secret, tok)
	}
	if !tok.EndsAt.Equal(h.clock.now().Add(90*24*time.Hour)) || tok.Owner != "local:ana" || tok.MadeBy != "local:ana" {
		t.Errorf("token %+v", tok)
	}
	w, err := h.ByToken(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	want := Who{Principal: ringi.Principal{ID: "client:shop", Name: "shop", Kind: ringi.ServiceAccount, Auth: "token:" + tok.ID, Owner: "local:ana"},
		Roles: []Role{RoleAgent}, Space: "default", TokenID: tok.ID, Scopes: []Scope{ScopeRead, ScopeRun}, Agents: []string{"hr", "sales"}, Owner: "local:ana"}
	if got := fmt.Sprintf("%v %v %v", w.Principal, w.Roles, append(w.Agents, w.Owner, w.TokenID, w.Space, words(w.Scopes))); got !=
		fmt.Sprintf("%v %v %v", want.Principal, want.Roles, append(want.Agents, want.Owner, want.TokenID, want.Space, words(want.Scopes))) {
		t.Errorf("who %s", got)
	}

	mine, secret := h.token(t, ana, NewToken{Kind: PersonToken, Name: "laptop", Scopes: []Scope{ScopeRead}})
	w, err = h.ByToken(ctx, secret)
	if err != nil || w.Principal.ID != "local:ana" || w.Principal.Kind != ringi.Person || w.Principal.Auth != "token:"+mine.ID ||
		w.Principal.Admin || !slices.Equal(w.Clients, []string{"client:shop"}) || w.CSRF() != "" {
		t.Errorf("who %#v %v, %v", w, w.Principal, err)
	}
	_, secret = h.token(t, ana, NewToken{Kind: PersonToken, Name: "ci", Scopes: []Scope{ScopeManage}})
	if w, err = h.ByToken(ctx, secret); err != nil || !w.Principal.Admin {
		t.Errorf("scope manage carries the admin: %v, %v", w.Principal, err)
	}
	list, err := h.Tokens(ctx, ana, "local:ana", "", 0)
	if err != nil || len(list) != 3 {
		t.Errorf("%d tokens, %v", len(list), err)
	}
	if list, err = h.Tokens(ctx, ana, "", list[0].ID, 1); err != nil || len(list) != 1 {
		t.Errorf("page %v, %v", list, err)
	}
	if _, err := h.Tokens(ctx, person("local:u", RoleUser), "local:ana", "", 0); !errors.Is(err, ErrHidden) {
		t.Errorf("another's tokens: %v", err)
	}
	if _, err := h.Tokens(ctx, person("local:u", RoleUser), "", "", 0); !errors.Is(err, ErrForbidden) {
		t.Errorf("all tokens: %v", err)
	}
}

func TestS26_WhoMakesWhichToken(t *testing.T) {
	h := newHouse(t, Options{TokenAge: 30 * 24 * time.Hour})
	h.add(t, "ana", RoleUser, RoleApprover)
	h.add(t, "root", RoleAdmin)
	off := h.add(t, "off", RoleUser)
	off.Disabled = true
	if err := h.SetUser(ctx, operator, off); err != nil {
		t.Fatal(err)
	}
	ana, _ := h.enterAs(t, "local:ana")
	root, _ := h.enterAs(t, "local:root")
	_, secret := h.token(t, root, NewToken{Kind: AgentToken, Name: "shop", Agents: []string{"sales"}, Scopes: []Scope{ScopeRead}})
	shop, err := h.ByToken(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	_, secret = h.token(t, root, NewToken{Kind: PersonToken, Name: "ci", Scopes: []Scope{ScopeRead, ScopeManage}, Agents: []string{"sales"}})
	ci, err := h.ByToken(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	read := []Scope{ScopeRead}
	p := func(scopes ...Scope) NewToken { return NewToken{Kind: PersonToken, Name: "x", Scopes: scopes} }
	a := func(name string, scopes ...Scope) NewToken {
		return NewToken{Kind: AgentToken, Name: name, Scopes: scopes, Agents: []string{"sales"}}
	}
	with := func(n NewToken, f func(*NewToken)) NewToken { f(&n); return n }
	for _, c := range []struct {
		name string
		by   Who
		n    NewToken
		want error
	}{
		{"her own", ana, p(ScopeRead), nil},
		{"her own agent's", ana, a("hers", ScopeRead, ScopeRun, ScopeCall), nil},
		{"decide for herself", ana, p(ScopeDecide), ErrForbidden},
		{"manage for herself", ana, p(ScopeManage), ErrForbidden},
		{"for another", ana, with(p(ScopeRead), func(n *NewToken) { n.Owner = "local:root" }), ErrForbidden},
		{"for an unknown one", ana, with(p(ScopeRead), func(n *NewToken) { n.Owner = "local:none" }), ErrForbidden},
		{"of nobody", ana, with(a("free", ScopeRead), func(n *NewToken) { n.Unowned = true }), ErrForbidden},
		{"another's client", ana, a("shop", ScopeRead), ErrExists},
		{"by an agent", shop, a("shop", ScopeRead), ErrForbidden},
		{"by nobody", Who{Space: "default"}, p(ScopeRead), ringi.ErrNoPrincipal},
		{"granted by an admin", root, with(p(ScopeDecide, ScopeRead), func(n *NewToken) { n.Owner = "local:ana" }), nil},
		{"granted to an agent", root, a("robot", ScopeDecide), ErrInvalid},
		{"manage to an agent", root, a("robot", ScopeManage), ErrInvalid},
		{"of nobody, by an admin", root, with(a("cron", ScopeRun), func(n *NewToken) { n.Unowned = true }), nil},
		{"person's of nobody", operator, p(ScopeRead), ErrInvalid},
		{"unknown owner", root, with(p(ScopeRead), func(n *NewToken) { n.Owner = "local:none" }), ErrHidden},
		{"disabled owner", root, with(p(ScopeRead), func(n *NewToken) { n.Owner = "local:off" }), ErrInvalid},
		{"by a token", ci, with(p(ScopeRead), func(n *NewToken) { n.Agents = []string{"sales"} }), nil},
		{"by a token, more scopes", ci, with(p(ScopeRun), func(n *NewToken) { n.Agents = []string{"sales"} }), ErrForbidden},
		{"by a token, more agents", ci, with(p(ScopeRead), func(n *NewToken) { n.Agents = []string{"hr"} }), ErrForbidden},
		{"by a token, all agents", ci, p(ScopeRead), ErrForbidden},
		{"by a token, manage again", ci, with(p(ScopeManage), func(n *NewToken) { n.Agents = []string{"sales"} }), ErrForbidden},
		{"by a token, decide", ci, with(p(ScopeDecide), func(n *NewToken) { n.Agents = []string{"sales"} }), ErrForbidden},
		{"no kind", root, NewToken{Name: "x", Scopes: read, Agents: []string{"*"}}, ErrInvalid},
		{"no scopes", root, p(), ErrInvalid},
		{"unknown scope", root, p("root"), ErrInvalid},
		{"agent's without agents", root, NewToken{Kind: AgentToken, Name: "x", Scopes: read}, ErrInvalid},
		{"agent's name is no word", root, a("my shop", ScopeRead), ErrInvalid},
		{"agent is no word", root, with(p(ScopeRead), func(n *NewToken) { n.Agents = []string{"a b"} }), ErrInvalid},
		{"no name", root, with(p(ScopeRead), func(n *NewToken) { n.Name = "" }), ErrInvalid},
		{"longest", root, with(p(ScopeRead), func(n *NewToken) { n.For = 30 * 24 * time.Hour }), nil},
		{"too long", root, with(p(ScopeRead), func(n *NewToken) { n.For = 30*24*time.Hour + 1 }), ErrInvalid},
		{"no time", root, with(p(ScopeRead), func(n *NewToken) { n.For = -1 }), ErrInvalid},
	} {
		before := h.count(t, "tokens")
		tok, _, err := h.MakeToken(ctx, c.by, c.n)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if made := h.count(t, "tokens") - before; (made == 1) != (c.want == nil) {
			t.Errorf("%s: %d tokens more", c.name, made)
		}
		if granted := slices.Contains(tok.Scopes, ScopeDecide); granted != (tok.GrantedBy == "local:root") {
			t.Errorf("%s: granted by %q", c.name, tok.GrantedBy)
		}
	}
}

// S-26: the scope decides nothing that the role does not allow, and the other
// way round.
func TestS26_DecidingByToken(t *testing.T) {
	h := newHouse(t, Options{})
	ana := h.add(t, "ana", RoleUser, RoleApprover)
	h.add(t, "root", RoleAdmin)
	root, _ := h.enterAs(t, "local:root")
	_, with := h.token(t, root, NewToken{Kind: PersonToken, Owner: "local:ana", Name: "x", Scopes: []Scope{ScopeRead, ScopeDecide}})
	_, without := h.token(t, root, NewToken{Kind: PersonToken, Owner: "local:ana", Name: "x", Scopes: []Scope{ScopeRead, ScopeRun, ScopeCall, ScopeAudit}})
	_, agent := h.token(t, root, NewToken{Kind: AgentToken, Owner: "local:ana", Name: "bot", Agents: []string{"*"}, Scopes: []Scope{ScopeRead, ScopeRun, ScopeCall, ScopeAudit}})
	decide := func(secret string) error {
		w, err := h.ByToken(ctx, secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, route := range []Route{TokensMake, UsersManage, Verify} {
			if err := May(w, route, Own); !errors.Is(err, ErrForbidden) {
				t.Errorf("%s: %v", route, err)
			}
		}
		return May(w, ApprovalsDecide, w.OwnerOf(Thing{Space: "default", Agent: "sales", Deciders: []ringi.Deciders{{}}}))
	}
	if err := decide(with); err != nil {
		t.Errorf("with the scope: %v", err)
	}
	for name, secret := range map[string]string{"without the scope": without, "agent's": agent} {
		if err := decide(secret); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ana.Roles = []Role{RoleUser}
	if err := h.SetUser(ctx, root, ana); err != nil {
		t.Fatal(err)
	}
	if err := decide(with); !errors.Is(err, ErrForbidden) {
		t.Errorf("the role is gone: %v", err)
	}
	// Even if a row says otherwise: a thief gives the agent's token the scope.
	if _, err := h.db.Exec(`UPDATE tokens SET scopes = 'read decide manage' WHERE kind = 'agent'`); err != nil {
		t.Fatal(err)
	}
	if err := decide(agent); !errors.Is(err, ErrForbidden) {
		t.Errorf("agent's with a row that says decide: %v", err)
	}
}

func TestS26_TokensEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		at   time.Duration
		good bool
	}{{"-1", time.Hour - time.Microsecond, true}, {"0", time.Hour, false}, {"+1", time.Hour + time.Microsecond, false}} {
		h := newHouse(t, Options{})
		_, secret := h.token(t, operator, NewToken{Kind: AgentToken, Name: "shop", Agents: []string{"*"}, Scopes: []Scope{ScopeRead}, For: time.Hour})
		h.clock.move(c.at)
		if _, err := h.ByToken(ctx, secret); (err == nil) != c.good || err != nil && !errors.Is(err, ringi.ErrNoPrincipal) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestS26_RevokedAndDisabledCountAtOnce(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "root", RoleAdmin)
	ana := h.add(t, "ana", RoleUser)
	w, session := h.enterAs(t, "local:ana")
	own, secret := h.token(t, w, NewToken{Kind: PersonToken, Name: "x", Scopes: []Scope{ScopeRead}})
	_, bots := h.token(t, w, NewToken{Kind: AgentToken, Name: "bot", Agents: []string{"*"}, Scopes: []Scope{ScopeRead}})
	link, _, err := h.MakeLink(ctx, operator, "local:ana")
	if err != nil {
		t.Fatal(err)
	}
	byToken, err := h.ByToken(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []Who{w, byToken, operator} {
		if fresh, err := h.Recheck(ctx, who); err != nil || fresh.Principal.ID != who.Principal.ID || fresh.CSRF() != who.CSRF() {
			t.Errorf("recheck %v: %v, %v", who, fresh, err)
		}
	}
	refused := func(name string, errs ...error) {
		t.Helper()
		for _, err := range errs {
			if !errors.Is(err, ringi.ErrNoPrincipal) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	only := func(_ Who, err error) error { return err }

	stranger := person("local:eve", RoleUser)
	foreign, unknown := h.RevokeToken(ctx, stranger, own.ID), h.RevokeToken(ctx, stranger, "tok_none")
	if !errors.Is(foreign, ErrHidden) || foreign.Error() != unknown.Error() {
		t.Errorf("another's: %v; unknown: %v", foreign, unknown)
	}
	for range 2 {
		if err := h.RevokeToken(ctx, w, own.ID); err != nil {
			t.Fatal(err)
		}
	}
	refused("revoked", only(h.ByToken(ctx, secret)), only(h.Recheck(ctx, byToken)))

	ana.Disabled = true
	if err := h.SetUser(ctx, operator, ana); err != nil {
		t.Fatal(err)
	}
	refused("disabled", only(h.BySession(ctx, session)), only(h.ByToken(ctx, bots)), only(h.Recheck(ctx, w)))
	if _, _, err := h.MakeLink(ctx, operator, "local:ana"); !errors.Is(err, ErrHidden) {
		t.Errorf("link of a disabled user: %v", err)
	}
	if _, err := h.StartSession(ctx, "local:ana", AuthSession, ""); !errors.Is(err, ringi.ErrNoPrincipal) {
		t.Errorf("session of a disabled user: %v", err)
	}
	ana.Disabled = false
	if err := h.SetUser(ctx, operator, ana); err != nil {
		t.Fatal(err)
	}
	refused("the session of before", only(h.BySession(ctx, session)))
	if _, err := h.UseLink(ctx, link, ""); !errors.Is(err, ErrLink) {
		t.Errorf("the link of before: %v", err)
	}
	if _, err := h.ByToken(ctx, bots); err != nil {
		t.Errorf("the agent's token, enabled again: %v", err)
	}
}

// A client's name stays its owner's, when its tokens are long gone.
func TestClientNamesStayTaken(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser)
	h.add(t, "ben", RoleUser)
	ana, _ := h.enterAs(t, "local:ana")
	ben, _ := h.enterAs(t, "local:ben")
	n := NewToken{Kind: AgentToken, Name: "shop", Agents: []string{"*"}, Scopes: []Scope{ScopeRead}}
	first, _ := h.token(t, ana, n)
	second, _ := h.token(t, ana, n)
	for _, tok := range []Token{first, second} {
		if err := h.RevokeToken(ctx, ana, tok.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := h.MakeToken(ctx, ben, n); !errors.Is(err, ErrExists) {
		t.Errorf("ben takes ana's name: %v", err)
	}
}

// Revoking and using at once: after the revocation has returned nothing works.
func TestRaceOfRevocation(t *testing.T) {
	h := newHouse(t, Options{})
	for i := range 10 {
		tok, secret := h.token(t, operator, NewToken{Kind: AgentToken, Name: fmt.Sprint("c", i), Agents: []string{"*"}, Scopes: []Scope{ScopeRead}})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 10 {
					if _, err := h.ByToken(ctx, secret); err != nil && !errors.Is(err, ringi.ErrNoPrincipal) {
						t.Error(err)
					}
				}
			})
		}
		if err := h.RevokeToken(ctx, operator, tok.ID); err != nil {
			t.Error(err)
		}
		if _, err := h.ByToken(ctx, secret); !errors.Is(err, ringi.ErrNoPrincipal) {
			t.Errorf("after the revocation: %v", err)
		}
		wg.Wait()
	}
}

func TestTokenForm(t *testing.T) {
	prefix, token := newToken()
	if got, ok := tokenPrefix(token); !ok || got != prefix {
		t.Fatalf("%q: %q, %v", token, got, ok)
	}
	for name, bad := range map[string]string{
		"empty": "", "mark": "ringi_", "short": token[:len(token)-1], "long": token + "0", "upper": strings.ToUpper(token),
		"other mark": "rinji_" + token[6:], "blank": token[:20] + " " + token[21:], "no bar": strings.Replace(token, prefix+"_", prefix+"0", 1),
		"letter that is none": token[:20] + "l" + token[21:], "not ASCII": token[:len(token)-2] + "é",
	} {
		if _, ok := tokenPrefix(bad); ok {
			t.Errorf("%s: %q passes", name, bad)
		}
	}
	if first, second := newSecret(), newSecret(); first == second {
		t.Error("two secrets are equal")
	}
}

func FuzzToken(f *testing.F) {
	_, token := newToken()
	f.Add(token)
	f.Add("ringi_")
	f.Add("ringi_0123456789_" + strings.Repeat("0", 52))
	f.Add(strings.Repeat("é", tokenSize/2))
	h := newHouse(f, Options{})
	_, real := h.token(f, operator, NewToken{Kind: AgentToken, Name: "shop", Agents: []string{"*"}, Scopes: []Scope{ScopeRead}})
	f.Add(real[:tokenSize-1] + "0")
	f.Fuzz(func(t *testing.T, s string) {
		prefix, ok := tokenPrefix(s)
		if ok && (len(s) != tokenSize || s[len(tokenMark):len(tokenMark)+prefixSize] != prefix) {
			t.Errorf("%q passes as %q", s, prefix)
		}
		if _, err := h.ByToken(ctx, s); s != real && !errors.Is(err, ringi.ErrNoPrincipal) {
			t.Errorf("%q: %v", s, err)
		}
		if scheme, token, found := strings.Cut(s, " "); found {
			if got, ok := bearer(s); ok && (!strings.EqualFold(scheme, "bearer") || got != strings.TrimLeft(token, " ")) {
				t.Errorf("bearer %q of %q", got, s)
			}
		}
	})
}
