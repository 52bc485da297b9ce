package oidc_test

import (
	"crypto/rsa"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/access/oidc"
)

// house is a server of ours with a provider: its front page says who is there.
type house struct {
	*httptest.Server
	t      *testing.T
	issuer *issuer
	dir    *access.Directory
	db     *sql.DB
	last   error // of the last callback
}

var operator = access.Operator("os:1000@test", "default")

var groups = map[string]oidc.Grant{
	"approvers": {Roles: []access.Role{access.RoleApprover}, Teams: []string{"billing"}},
	"staff":     {Roles: []access.Role{access.RoleUser}},
	"bosses":    {Roles: []access.Role{access.RoleAdmin, access.RoleApprover}, Teams: []string{"billing", "managers"}},
}

func newHouse(t *testing.T, change func(*oidc.Options)) *house {
	t.Helper()
	h := &house{t: t, issuer: newIssuer(t)}
	var err error
	if h.db, err = sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "access.db")+"?"+access.SQLiteParams); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.db.Close() })
	if h.dir, err = access.Open(t.Context(), h.db, access.Options{}); err != nil {
		t.Fatal(err)
	}
	auth, err := access.NewAuthenticator(h.dir, access.AuthOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	o := oidc.Options{Issuer: h.issuer.URL, ClientID: "ringi", ClientSecret: "hush", RedirectURL: h.URL + "/login/oidc/callback",
		Groups: groups, Directory: h.dir, Authenticator: auth}
	if change != nil {
		change(&o)
	}
	p, err := oidc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	refuse := func(w http.ResponseWriter, err error) {
		mu.Lock()
		h.last = err
		mu.Unlock()
		http.Error(w, "refused", access.Status(err))
	}
	mux.HandleFunc("GET /login/oidc", func(w http.ResponseWriter, r *http.Request) {
		if err := p.Begin(w, r); err != nil {
			refuse(w, err)
		}
	})
	mux.HandleFunc("GET /login/oidc/callback", func(w http.ResponseWriter, r *http.Request) {
		to, err := p.Finish(w, r)
		if err != nil {
			refuse(w, err)
			return
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
	})
	mux.HandleFunc("GET /login/oidc/logout", p.Logout)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		who, err := auth.FromRequest(r)
		if err != nil {
			http.Error(w, "nobody", access.Status(err))
			return
		}
		io.WriteString(w, who.Principal.ID+" at "+r.URL.RequestURI())
	})
	return h
}

// browser follows redirects until stop says that it should not.
func (h *house) browser(stop func(*http.Request) bool) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return &http.Client{Jar: jar, Timeout: 90 * time.Second, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if stop != nil && stop(r) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

func (h *house) get(b *http.Client, address string) (int, string, *http.Response) {
	h.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = h.URL + address
	}
	res, err := b.Get(address)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, string(text), res
}

// login goes the whole way.
func (h *house) login(b *http.Client) (int, string) {
	h.t.Helper()
	h.last = nil
	status, text, _ := h.get(b, "/login/oidc?to=/a/req_1")
	return status, text
}

func (h *house) ana() string { return access.ProvidedID(h.issuer.URL, "ana") }

// callback is the address that a browser would go to, and the browser that
// stopped before it.
func (h *house) callback() (*http.Client, *url.URL) {
	h.t.Helper()
	b := h.browser(func(r *http.Request) bool { return r.URL.Path == "/login/oidc/callback" })
	_, _, res := h.get(b, "/login/oidc")
	to, err := res.Location()
	if err != nil {
		h.t.Fatal(err)
	}
	return b, to
}

func TestLogin(t *testing.T) {
	h := newHouse(t, nil)
	b := h.browser(nil)
	status, text := h.login(b)
	if want := h.ana() + " at /a/req_1"; status != 200 || text != want {
		t.Fatalf("%d %q, want %q; %v", status, text, want, h.last)
	}
	u, err := h.dir.User(t.Context(), h.ana())
	if err != nil || u.Name != "Ana Example" || !slices.Equal(u.Roles, []access.Role{access.RoleApprover}) || !slices.Equal(u.Teams, []string{"billing"}) {
		t.Errorf("user %+v, %v", u, err)
	}
	for _, c := range b.Jar.Cookies(must(url.Parse(h.URL + "/login/oidc/callback"))) {
		if strings.HasPrefix(c.Name, "ringi_login_") {
			t.Errorf("the login's cookie is left: %s", c.Name)
		}
	}
	_, _, res := h.get(h.browser(func(r *http.Request) bool { return r.URL.Path == "/end" }), "/login/oidc/logout")
	to, _ := res.Location()
	if to == nil || to.Query().Get("ui") != "1" || to.Query().Get("client_id") != "ringi" || to.Query().Get("post_logout_redirect_uri") != h.URL+"/login" {
		t.Errorf("logout goes to %v", to)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A leaver loses his role with his next login, a joiner gets his; S-21: who is
// in no group has no role, no session and no row.
func TestS21_GroupsAreReadAtEachLogin(t *testing.T) {
	h := newHouse(t, nil)
	says := func(groups any) {
		h.issuer.set(func(p *issuer) { p.claims = map[string]any{"groups": groups} })
	}
	for _, none := range []any{[]string{"strangers"}, []string{}, nil, "", 7, []any{"approvers", 7}, map[string]any{"approvers": true}, []string{"Approvers"}, "approvers staff"} {
		says(none)
		if status, _ := h.login(h.browser(nil)); status != 403 || !errors.Is(h.last, access.ErrNoRole) {
			t.Errorf("groups %v: %d, %v", none, status, h.last)
		}
		if _, err := h.dir.User(t.Context(), h.ana()); !errors.Is(err, access.ErrHidden) {
			t.Errorf("groups %v: the user was added: %v", none, err)
		}
	}
	roles := func() []access.Role { return must(h.dir.User(t.Context(), h.ana())).Roles }
	says("bosses")
	first := h.browser(nil)
	h.login(first)
	if got := roles(); !slices.Equal(got, []access.Role{access.RoleApprover, access.RoleAdmin}) {
		t.Errorf("roles %v", got)
	}
	says([]string{"staff", "strangers"})
	h.login(h.browser(nil))
	if got := must(h.dir.User(t.Context(), h.ana())); !slices.Equal(got.Roles, []access.Role{access.RoleUser}) || len(got.Teams) != 0 {
		t.Errorf("the leaver is %+v", got)
	}
	says([]string{})
	if status, _ := h.login(h.browser(nil)); status != 403 || len(roles()) != 0 {
		t.Errorf("without a group: %d, roles %v", status, roles())
	}
	if status, _, _ := h.get(first, "/"); status != 401 {
		t.Errorf("the leaver's other session goes on: %d", status)
	}
}

func TestSignUp(t *testing.T) {
	none := func(o *oidc.Options) { o.Groups = nil }
	for name, c := range map[string]struct {
		change func(*oidc.Options)
		before []access.Role // added before, by an admin
		status int
		roles  []access.Role
		known  bool
	}{
		"never, unknown":          {func(o *oidc.Options) { o.SignUp = oidc.SignUpNever }, nil, 403, nil, false},
		"never, known, mapped":    {func(o *oidc.Options) { o.SignUp = oidc.SignUpNever }, []access.Role{access.RoleUser}, 200, []access.Role{access.RoleApprover}, true},
		"no groups, unknown":      {none, nil, 403, nil, false},
		"no groups, known":        {none, []access.Role{access.RoleAuditor}, 200, []access.Role{access.RoleAuditor}, true},
		"anyone, without a group": {func(o *oidc.Options) { o.Groups, o.SignUp = nil, oidc.SignUpAnyone }, nil, 403, nil, true},
		"anyone, mapped":          {func(o *oidc.Options) { o.SignUp = oidc.SignUpAnyone }, nil, 200, []access.Role{access.RoleApprover}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, c.change)
			if c.before != nil {
				if err := h.dir.AddUser(t.Context(), operator, access.User{ID: h.ana(), Name: "Ana", Roles: c.before}); err != nil {
					t.Fatal(err)
				}
			}
			if status, _ := h.login(h.browser(nil)); status != c.status {
				t.Errorf("status %d, want %d: %v", status, c.status, h.last)
			}
			u, err := h.dir.User(t.Context(), h.ana())
			if known := err == nil; known != c.known || !slices.Equal(u.Roles, c.roles) {
				t.Errorf("known %v, roles %v", known, u.Roles)
			}
		})
	}
}

// A disabled user does not come back by his provider, and his session ends at
// once.
func TestS26_DisabledEndsProvidedSessions(t *testing.T) {
	h := newHouse(t, nil)
	b := h.browser(nil)
	h.login(b)
	u := must(h.dir.User(t.Context(), h.ana()))
	u.Disabled = true
	if err := h.dir.SetUser(t.Context(), operator, u); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if status, _, _ := h.get(b, "/"); status != 401 || time.Since(begun) > 20*time.Second {
		t.Errorf("%d after %s", status, time.Since(begun))
	}
	if status, _ := h.login(b); status != 401 || !errors.Is(h.last, ringi.ErrNoPrincipal) {
		t.Errorf("logged in: %d, %v", status, h.last)
	}
}

// Issuer and subject are who somebody is; an address is never.
func TestS12_SubjectIsTheIdentity(t *testing.T) {
	h := newHouse(t, nil)
	h.login(h.browser(nil))
	for name, claims := range map[string]map[string]any{
		"another with ana's name and address": {"sub": "eve", "name": "Ana Example", "email": "ana@example.org", "email_verified": true},
		"a subject with blanks and a hash":    {"sub": "a#b c\u202e"},
		"a subject of 255 bytes":              {"sub": strings.Repeat("x", 255)},
	} {
		h.issuer.set(func(p *issuer) { p.claims = claims })
		status, text := h.login(h.browser(nil))
		if want := access.ProvidedID(h.issuer.URL, claims["sub"].(string)); status != 200 || text != want+" at /a/req_1" || want == h.ana() {
			t.Errorf("%s: %d %q, %v", name, status, text, h.last)
		}
	}
	h.issuer.set(func(p *issuer) {
		p.claims = map[string]any{"sub": "zoe", "name": "", "email": "zoe@example.org", "email_verified": false}
	})
	h.login(h.browser(nil))
	if u := must(h.dir.User(t.Context(), access.ProvidedID(h.issuer.URL, "zoe"))); u.Name != "zoe" {
		t.Errorf("an address that nobody verified became a name: %q", u.Name)
	}
	h.issuer.set(func(p *issuer) { p.claims["email_verified"] = true })
	h.login(h.browser(nil))
	if u := must(h.dir.User(t.Context(), access.ProvidedID(h.issuer.URL, "zoe"))); u.Name != "zoe@example.org" {
		t.Errorf("name %q", u.Name)
	}
}

// What a provider, or somebody in its place, may say; each is refused, and
// nobody is logged in.
func TestHostileTokens(t *testing.T) {
	foreign := newKey(t)
	for name, c := range map[string]struct {
		lie  func(*issuer)
		want error
	}{
		"wrong nonce":         {func(p *issuer) { p.claims["nonce"] = "other" }, access.ErrLogin},
		"no nonce":            {func(p *issuer) { p.claims["nonce"] = nil }, access.ErrLogin},
		"other issuer":        {func(p *issuer) { p.claims["iss"] = "https://evil.example" }, access.ErrLogin},
		"issuer with a slash": {func(p *issuer) { p.claims["iss"] = p.URL + "/" }, access.ErrLogin},
		"wrong audience":      {func(p *issuer) { p.claims["aud"] = "another" }, access.ErrLogin},
		"no audience":         {func(p *issuer) { p.claims["aud"] = []string{} }, access.ErrLogin},
		"two audiences":       {func(p *issuer) { p.claims["aud"] = []string{"ringi", "another"} }, access.ErrLogin},
		"made for another":    {func(p *issuer) { p.claims["azp"] = "another" }, access.ErrLogin},
		"expired":             {func(p *issuer) { p.claims["exp"] = time.Now().Add(-time.Minute).Unix() }, access.ErrLogin},
		"issued tomorrow":     {func(p *issuer) { p.claims["iat"] = time.Now().Add(24 * time.Hour).Unix() }, access.ErrLogin},
		"not before tomorrow": {func(p *issuer) { p.claims["nbf"] = time.Now().Add(24 * time.Hour).Unix() }, access.ErrLogin},
		"no subject":          {func(p *issuer) { p.claims["sub"] = "" }, access.ErrLogin},
		"a subject too long":  {func(p *issuer) { p.claims["sub"] = strings.Repeat("x", 256) }, access.ErrLogin},
		"algorithm none":      {func(p *issuer) { p.head["alg"] = "none" }, access.ErrLogin},
		"none is published": {func(p *issuer) {
			p.head["alg"], p.meta["id_token_signing_alg_values_supported"] = "none", []string{"none"}
		}, access.ErrLogin},
		"algorithm HS256":          {func(p *issuer) { p.head["alg"] = "HS256" }, access.ErrLogin},
		"a foreign key":            {func(p *issuer) { p.key = foreign }, access.ErrLogin},
		"an unknown key id":        {func(p *issuer) { p.signs, p.key = "two", foreign }, access.ErrLogin},
		"no token":                 {func(p *issuer) { p.raw = " " }, access.ErrLogin},
		"a token of rubbish":       {func(p *issuer) { p.raw = "a.b.c" }, access.ErrLogin},
		"another access token":     {func(p *issuer) { p.claims["at_hash"] = "AAAAAAAAAAAAAAAAAAAAAA" }, access.ErrLogin},
		"iss of another":           {func(p *issuer) { p.answer = url.Values{"iss": {"https://evil.example"}} }, access.ErrLogin},
		"iss is missing":           {func(p *issuer) { p.meta["authorization_response_iss_parameter_supported"] = true }, access.ErrLogin},
		"an error":                 {func(p *issuer) { p.answer = url.Values{"error": {"access_denied"}} }, access.ErrLogin},
		"another's metadata":       {func(p *issuer) { p.meta["issuer"] = "https://evil.example" }, access.ErrProvider},
		"a token endpoint by http": {func(p *issuer) { p.meta["token_endpoint"] = "http://evil.example/token" }, access.ErrProvider},
		"keys by http":             {func(p *issuer) { p.meta["jwks_uri"] = "http://idp.example/keys" }, access.ErrProvider},
		"no keys":                  {func(p *issuer) { p.meta["jwks_uri"] = "" }, access.ErrProvider},
		"userinfo by http":         {func(p *issuer) { p.meta["userinfo_endpoint"] = "http://idp.example/userinfo" }, access.ErrProvider},
		"userinfo of another": {func(p *issuer) {
			p.claims["groups"], p.info = nil, map[string]any{"sub": "eve", "groups": []string{"bosses"}}
			delete(p.claims, "groups")
			p.claims["name"] = ""
		}, access.ErrLogin},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil)
			h.issuer.set(c.lie)
			b := h.browser(nil)
			status, _ := h.login(b)
			if status != access.Status(c.want) || !errors.Is(h.last, c.want) {
				t.Errorf("%d, %v", status, h.last)
			}
			if status, _, _ := h.get(b, "/"); status != 401 {
				t.Errorf("somebody is logged in: %d", status)
			}
			var n int
			if err := h.db.QueryRow(`SELECT (SELECT count(*) FROM users) + (SELECT count(*) FROM sessions)`).Scan(&n); err != nil || n != 0 {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	}
}

// A state is of one browser and for one use, whatever the provider does.
func TestStateIsTheBrowsersOwn(t *testing.T) {
	h := newHouse(t, nil)
	refused := func(name string, b *http.Client, to *url.URL) {
		t.Helper()
		h.last = nil
		if status, _, _ := h.get(b, to.String()); status != 403 || !errors.Is(h.last, access.ErrLogin) {
			t.Errorf("%s: %d, %v", name, status, h.last)
		}
	}
	with := func(to *url.URL, name string, values ...string) *url.URL {
		q := to.Query()
		q[name] = values
		other := *to
		other.RawQuery = q.Encode()
		return &other
	}
	h.issuer.set(func(p *issuer) { p.reuse = true })

	_, his := h.callback()
	refused("login CSRF: another browser", h.browser(nil), his)
	victim, hers := h.callback()
	refused("the state is another's", victim, with(hers, "state", his.Query().Get("state")))
	refused("swapped code", victim, with(hers, "code", his.Query().Get("code")))
	refused("the state was tried", victim, hers)

	b, to := h.callback()
	refused("no state", b, with(to, "state"))
	refused("two states", b, with(to, "state", to.Query().Get("state"), "x"))
	refused("a short state", b, with(to, "state", "x"))
	refused("a state that names a cookie", b, with(to, "state", "AAAAAAA;BBBB"))
	if status, _, _ := h.get(b, to.String()); status != 200 {
		t.Errorf("after all that his own is refused: %d, %v", status, h.last)
	}

	// Callback twice, with the cookie put back: the provider here takes a code
	// twice, and we do not.
	b, to = h.callback()
	place := must(url.Parse(h.URL + "/login/oidc/callback"))
	cookies := b.Jar.Cookies(place)
	if status, _, _ := h.get(b, to.String()); status != 200 {
		t.Fatal(status, h.last)
	}
	for _, c := range cookies {
		c.Path = "/login/oidc"
	}
	b.Jar.SetCookies(place, cookies)
	refused("callback twice", b, to)
	refused("callback three times", b, to)

	// Both at once.
	b, to = h.callback()
	cookies = b.Jar.Cookies(place)
	done := make(chan int, 8)
	for range cap(done) {
		go func() {
			r, _ := http.NewRequest("GET", to.String(), nil)
			for _, c := range cookies {
				r.AddCookie(c)
			}
			res, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
			if err != nil {
				done <- 0
				return
			}
			res.Body.Close()
			done <- res.StatusCode
		}()
	}
	in := 0
	for range cap(done) {
		if <-done == http.StatusSeeOther {
			in++
		}
	}
	if in != 1 {
		t.Errorf("%d of %d callbacks at once logged in", in, cap(done))
	}
}

// No login leads to somebody else's page.
func TestS32_NoOpenRedirect(t *testing.T) {
	h := newHouse(t, nil)
	for _, to := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "/a//b", "javascript:alert(1)", "/.//evil.example", ""} {
		b := h.browser(nil)
		_, text, _ := h.get(b, "/login/oidc?to="+url.QueryEscape(to))
		if !strings.HasSuffix(text, " at /") {
			t.Errorf("to %q: %q", to, text)
		}
	}
}

// Two tabs log in at once; a browser that begins without end keeps few.
func TestTabs(t *testing.T) {
	h := newHouse(t, nil)
	b := h.browser(func(r *http.Request) bool { return r.URL.Path == "/login/oidc/callback" || r.URL.Path == "/" })
	var to []string
	for range 2 {
		_, _, res := h.get(b, "/login/oidc")
		to = append(to, res.Header.Get("Location"))
	}
	for _, address := range to {
		if status, _, _ := h.get(b, address); status != 303 {
			t.Errorf("%d, %v", status, h.last)
		}
	}
	for range 20 {
		h.get(b, "/login/oidc")
	}
	if n := len(b.Jar.Cookies(must(url.Parse(h.URL + "/login/oidc/callback")))); n > 5 {
		t.Errorf("%d cookies", n)
	}
}

// Keys are rotated: a new one is fetched, one that is gone does not count.
func TestKeyRotation(t *testing.T) {
	h := newHouse(t, nil)
	if status, _ := h.login(h.browser(nil)); status != 200 {
		t.Fatal(status, h.last)
	}
	old := h.issuer.key
	h.issuer.set(func(p *issuer) {
		p.key, p.signs = newKey(t), "two"
		p.keys["two"] = p.key
	})
	if status, _ := h.login(h.browser(nil)); status != 200 {
		t.Errorf("new key: %d, %v", status, h.last)
	}
	h.issuer.set(func(p *issuer) {
		third := newKey(t)
		p.keys, p.key, p.signs = map[string]*rsa.PrivateKey{"three": third}, third, "three"
	})
	if status, _ := h.login(h.browser(nil)); status != 200 { // now the first key is forgotten
		t.Errorf("third key: %d, %v", status, h.last)
	}
	h.issuer.set(func(p *issuer) { p.key, p.signs = old, "one" })
	if status, _ := h.login(h.browser(nil)); status != 403 {
		t.Errorf("a key that is gone: %d, %v", status, h.last)
	}
}

// While the provider is down nobody logs in, and it is said; who is in stays in.
func TestProviderDown(t *testing.T) {
	h := newHouse(t, nil)
	h.issuer.set(func(p *issuer) { p.down = true })
	if status, _ := h.login(h.browser(nil)); status != 502 || !errors.Is(h.last, access.ErrProvider) {
		t.Errorf("down from the start: %d, %v", status, h.last)
	}
	h.issuer.set(func(p *issuer) { p.down = false })
	time.Sleep(3100 * time.Millisecond) // a failure is remembered for 3 s
	b := h.browser(nil)
	if status, _ := h.login(b); status != 200 {
		t.Fatal(status, h.last)
	}
	other, to := h.callback()
	h.issuer.set(func(p *issuer) { p.down = true })
	if status, _, _ := h.get(other, to.String()); status != 502 || !errors.Is(h.last, access.ErrProvider) {
		t.Errorf("down in between: %d, %v", status, h.last)
	}
	if status, _, _ := h.get(b, "/"); status != 200 {
		t.Errorf("who was in is out: %d", status)
	}
}

// Claims may stand in the userinfo alone, and one level down.
func TestUserinfo(t *testing.T) {
	h := newHouse(t, func(o *oidc.Options) { o.GroupsClaim = "realm_access.roles" })
	h.issuer.set(func(p *issuer) {
		p.info = map[string]any{"sub": "ana", "realm_access": map[string]any{"roles": []string{"bosses"}}, "name": "Somebody else"}
	})
	if status, _ := h.login(h.browser(nil)); status != 200 {
		t.Fatal(status, h.last)
	}
	u := must(h.dir.User(t.Context(), h.ana()))
	if u.Name != "Ana Example" || !slices.Contains(u.Roles, access.RoleAdmin) {
		t.Errorf("user %+v", u)
	}
}

func TestOptions(t *testing.T) {
	h := newHouse(t, nil)
	for name, change := range map[string]func(*oidc.Options){
		"no issuer":          func(o *oidc.Options) { o.Issuer = "" },
		"http":               func(o *oidc.Options) { o.Issuer = "http://idp.example" },
		"issuer with query":  func(o *oidc.Options) { o.Issuer = "https://idp.example?x=1" },
		"no client":          func(o *oidc.Options) { o.ClientID = "" },
		"no redirect":        func(o *oidc.Options) { o.RedirectURL = "/login" },
		"sign-up":            func(o *oidc.Options) { o.SignUp = "everybody" },
		"agent is no role":   func(o *oidc.Options) { o.Groups = map[string]oidc.Grant{"a": {Roles: []access.Role{access.RoleAgent}}} },
		"a group of nothing": func(o *oidc.Options) { o.Groups = map[string]oidc.Grant{"a": {}} },
		"no directory":       func(o *oidc.Options) { o.Directory = nil },
	} {
		o := oidc.Options{Issuer: "https://idp.example", ClientID: "ringi", RedirectURL: "https://ringi.example/login/oidc/callback", Directory: h.dir,
			Authenticator: must(access.NewAuthenticator(h.dir, access.AuthOptions{}))}
		if _, err := oidc.New(o); err != nil {
			t.Fatal(err)
		}
		change(&o)
		if _, err := oidc.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
