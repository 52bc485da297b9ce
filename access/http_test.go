package access

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

func authenticator(t testing.TB, h *house, o AuthOptions) *Authenticator {
	t.Helper()
	a, err := NewAuthenticator(h.Directory, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// request makes a request of a browser of ours, as edit changes it.
func request(method, target, body string, edit ...func(*http.Request)) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, f := range edit {
		f(r)
	}
	return r
}

func header(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) {
		for _, v := range values {
			r.Header.Add(name, v)
		}
	}
}

func withCookie(value string) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: CookieName, Value: value}) }
}

func TestFromRequest(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser)
	h.add(t, "ben", RoleUser)
	ana, session := h.enterAs(t, "local:ana")
	_, bens := h.enterAs(t, "local:ben")
	_, token := h.token(t, operator, NewToken{Kind: AgentToken, Name: "shop", Agents: []string{"*"}, Scopes: []Scope{ScopeRead}})
	a := authenticator(t, h, AuthOptions{})
	for _, c := range []struct {
		name string
		edit []func(*http.Request)
		want string // the principal; empty: nobody
	}{
		{"nothing", nil, ""},
		{"session", []func(*http.Request){withCookie(session)}, "local:ana"},
		{"token", []func(*http.Request){header("Authorization", "Bearer "+token)}, "client:shop"},
		{"token, lower case", []func(*http.Request){header("Authorization", "bearer  "+token)}, "client:shop"},
		{"token and session", []func(*http.Request){header("Authorization", "Bearer "+token), withCookie(session)}, "client:shop"},
		{"bad token and session", []func(*http.Request){header("Authorization", "Bearer x"), withCookie(session)}, ""},
		{"another scheme and session", []func(*http.Request){header("Authorization", "Basic "+token), withCookie(session)}, ""},
		{"empty header and session", []func(*http.Request){header("Authorization", ""), withCookie(session)}, ""},
		{"two tokens", []func(*http.Request){header("Authorization", "Bearer "+token, "Bearer "+token)}, ""},
		{"two sessions", []func(*http.Request){withCookie(session), withCookie(bens)}, ""},
		{"the same session twice", []func(*http.Request){withCookie(session), withCookie(session)}, ""},
		{"a session as a token", []func(*http.Request){header("Authorization", "Bearer "+session)}, ""},
		{"a token as a session", []func(*http.Request){withCookie(token)}, ""},
		{"made up", []func(*http.Request){withCookie(newSecret())}, ""},
		{"token in the address", []func(*http.Request){func(r *http.Request) { r.URL.RawQuery = "access_token=" + token }}, ""},
	} {
		w, err := a.FromRequest(request("GET", "/v1/runs", "", c.edit...))
		if w.Principal.ID != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, ringi.ErrNoPrincipal) {
			t.Errorf("%s: %v, %v; want %q", c.name, w, err, c.want)
		}
		if err != nil && Status(err) != 401 {
			t.Errorf("%s: status %d", c.name, Status(err))
		}
	}
	if ana.Principal.Auth != AuthLink || ana.Principal.Kind != ringi.Person {
		t.Errorf("principal %+v", ana.Principal)
	}
}

// What may change something by a cookie needs our page and its form token.
func TestS32_FormsAreOurs(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser)
	ana, session := h.enterAs(t, "local:ana")
	other, _ := h.enterAs(t, "local:ana")
	_, token := h.token(t, operator, NewToken{Kind: AgentToken, Name: "shop", Agents: []string{"*"}, Scopes: []Scope{ScopeRead}})
	a := authenticator(t, h, AuthOptions{Origins: []string{"https://front.example"}})
	form := url.Values{CSRFField: {ana.CSRF()}, "answer": {"approve"}}.Encode()
	c := withCookie(session)
	json := func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }
	for _, test := range []struct {
		name   string
		method string
		body   string
		edit   []func(*http.Request)
		want   error
	}{
		{"form", "POST", form, nil, nil},
		{"form, same origin", "POST", form, []func(*http.Request){header("Sec-Fetch-Site", "same-origin"), header("Origin", "http://example.com")}, nil},
		{"form, trusted origin", "POST", form, []func(*http.Request){header("Sec-Fetch-Site", "cross-site"), header("Origin", "https://front.example")}, nil},
		{"form, another site", "POST", form, []func(*http.Request){header("Sec-Fetch-Site", "cross-site"), header("Origin", "https://evil.example")}, ErrCrossOrigin},
		{"form, same site", "POST", form, []func(*http.Request){header("Sec-Fetch-Site", "same-site")}, ErrCrossOrigin},
		{"form, old browser", "POST", form, []func(*http.Request){header("Origin", "https://evil.example")}, ErrCrossOrigin},
		{"form, no origin at all", "POST", form, []func(*http.Request){header("Origin", "null")}, ErrCrossOrigin},
		{"form without token", "POST", "answer=approve", nil, ErrCrossOrigin},
		{"form, empty token", "POST", CSRFField + "=", nil, ErrCrossOrigin},
		{"form, another session's", "POST", CSRFField + "=" + other.CSRF(), nil, ErrCrossOrigin},
		{"token in the address", "POST", "", []func(*http.Request){func(r *http.Request) { r.URL.RawQuery = form }}, ErrCrossOrigin},
		{"header", "POST", "{}", []func(*http.Request){json, header(CSRFHeader, ana.CSRF())}, nil},
		{"header, DELETE", "DELETE", "", []func(*http.Request){header(CSRFHeader, ana.CSRF())}, nil},
		{"wrong header, right form", "POST", form, []func(*http.Request){header(CSRFHeader, "x")}, ErrCrossOrigin},
		{"JSON without header", "POST", "{}", []func(*http.Request){json}, ErrCrossOrigin},
		{"form as text", "POST", form, []func(*http.Request){func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }}, ErrCrossOrigin},
		{"multipart", "POST", form, []func(*http.Request){func(r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data; boundary=x") }}, ErrCrossOrigin},
		{"form that is none", "POST", form + "&%zz", nil, ErrInvalid},
		{"too large a form", "POST", form + "&x=" + strings.Repeat("x", MaxForm), nil, ringi.ErrTooLarge},
		{"PUT", "PUT", form, []func(*http.Request){header("Content-Type", "application/x-www-form-urlencoded")}, nil},
		{"unknown method", "FROB", "", nil, ErrCrossOrigin},
	} {
		r := request(test.method, "/a/req_1", test.body, append(test.edit, c)...)
		w, err := a.FromRequest(r)
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || (w.Principal.ID == "local:ana") != (err == nil) {
			t.Errorf("%s: %v, %v; want %v", test.name, w, err, test.want)
		}
		if err == nil && test.body == form && r.PostForm.Get("answer") != "approve" {
			t.Errorf("%s: the form is gone: %v", test.name, r.PostForm)
		}
	}
	// A bearer token is no browser's to send unasked.
	if _, err := a.FromRequest(request("POST", "/v1/runs", "{}", json, header("Authorization", "Bearer "+token), header("Origin", "https://evil.example"))); err != nil {
		t.Errorf("bearer from elsewhere: %v", err)
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		if _, err := a.FromRequest(request(method, "/", "", c, header("Sec-Fetch-Site", "cross-site"))); err != nil {
			t.Errorf("%s by a link: %v", method, err)
		}
	}
	if _, err := NewAuthenticator(h.Directory, AuthOptions{Origins: []string{"front.example"}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("an origin without scheme: %v", err)
	}
}

func TestS32_LoginAndLogout(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser)
	a := authenticator(t, h, AuthOptions{Proxies: Proxies{netip.MustParsePrefix("192.0.2.0/24")}})
	link := func() string {
		t.Helper()
		s, _, err := h.MakeLink(ctx, operator, "local:ana")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	spent := link()
	for name, r := range map[string]*http.Request{
		"GET":          request("GET", "/login", ""),
		"HEAD":         request("HEAD", "/login", ""),
		"another site": request("POST", "/login", "", header("Sec-Fetch-Site", "cross-site")),
	} {
		w := httptest.NewRecorder()
		if err := a.Login(w, r, spent); !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrCrossOrigin) || len(w.Result().Cookies()) != 0 {
			t.Errorf("%s: %v, %v", name, err, w.Result().Cookies())
		}
	}
	w := httptest.NewRecorder()
	if err := a.Login(w, request("POST", "/login", ""), spent); err != nil {
		t.Fatal(err)
	}
	set := w.Result().Cookies()
	if len(set) != 1 || set[0].Name != "ringi_session" || !set[0].HttpOnly || set[0].SameSite != http.SameSiteLaxMode || set[0].Domain != "" ||
		set[0].Path != "/" || set[0].Secure || set[0].MaxAge != 30*24*3600 {
		t.Errorf("cookie %+v", set)
	}
	// A login renews the session: the one before ends.
	old := set[0].Value
	w = httptest.NewRecorder()
	if err := a.Login(w, request("POST", "/login", "", withCookie(old)), link()); err != nil {
		t.Fatal(err)
	}
	now := w.Result().Cookies()[0].Value
	if _, err := h.BySession(ctx, old); !errors.Is(err, ringi.ErrNoPrincipal) || now == old {
		t.Errorf("the session before: %v", err)
	}
	// A login that fails leaves it.
	if err := a.Login(httptest.NewRecorder(), request("POST", "/login", "", withCookie(now)), spent); !errors.Is(err, ErrLink) {
		t.Errorf("spent link: %v", err)
	}
	who, err := a.FromRequest(request("GET", "/", "", withCookie(now)))
	if err != nil {
		t.Fatal(err)
	}
	w = httptest.NewRecorder()
	if err := a.Logout(w, request("POST", "/logout", ""), who); err != nil || w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("log out: %v, %v", err, w.Result().Cookies())
	}
	if _, err := a.FromRequest(request("GET", "/", "", withCookie(now))); !errors.Is(err, ringi.ErrNoPrincipal) {
		t.Errorf("logged out: %v", err)
	}
	w = httptest.NewRecorder()
	if err := a.LoginAs(w, request("GET", "/oidc", "", header("X-Forwarded-Proto", "https")), "local:ana"); err != nil || !w.Result().Cookies()[0].Secure {
		t.Errorf("behind a proxy with TLS: %v, %v", err, w.Result().Cookies())
	}
	if who, err := h.BySession(ctx, w.Result().Cookies()[0].Value); err != nil || who.Principal.Auth != AuthSession {
		t.Errorf("a provider's login: %v, %v", who.Principal, err)
	}
	w = httptest.NewRecorder()
	secure := authenticator(t, h, AuthOptions{Secure: true})
	if err := secure.Login(w, request("POST", "/login", ""), link()); err != nil || !w.Result().Cookies()[0].Secure {
		t.Errorf("a public address with https: %v, %v", err, w.Result().Cookies())
	}
}

func TestHandler(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser)
	_, session := h.enterAs(t, "local:ana")
	served := authenticator(t, h, AuthOptions{}).Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := FromContext(r.Context())
		if !ok {
			t.Error("nobody in the context")
		}
		w.Write([]byte(who.String()))
	}), func(w http.ResponseWriter, _ *http.Request, err error) { http.Error(w, "no", Status(err)) })
	w := httptest.NewRecorder()
	served.ServeHTTP(w, request("GET", "/", "", withCookie(session)))
	if w.Code != 200 || w.Body.String() != "local:ana" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	served.ServeHTTP(w, request("GET", "/", ""))
	if w.Code != 401 {
		t.Errorf("nobody: %d", w.Code)
	}
	if _, ok := FromContext(ctx); ok {
		t.Error("somebody in an empty context")
	}
}

func TestS32_Hosts(t *testing.T) {
	hosts := Hosts{"Ringi.example", "127.0.0.1:7464", "[::1]", ""}
	for host, want := range map[string]int{
		"ringi.example": 200, "RINGI.EXAMPLE:8080": 200, "ringi.example.": 200, "127.0.0.1:7464": 200, "[::1]:7464": 200, "[::1]": 200,
		"evil.example": 421, "ringi.example.evil.example": 421, "127.0.0.1": 421, "127.0.0.1:80": 421, "localhost": 421, "": 421, ":": 421, ":7464": 421,
		"ringi.example@evil.example": 421, "0.0.0.0:7464": 421, "::1:7464": 421,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		hosts.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
	}
	if err := Hosts(nil).Check(httptest.NewRequest("GET", "/", nil)); !errors.Is(err, ErrHost) || Status(err) != 421 {
		t.Errorf("no names: %v", err)
	}
}

func TestS32_Headers(t *testing.T) {
	w := httptest.NewRecorder()
	Headers(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	csp := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("policy %q lacks %q", csp, want)
		}
	}
	if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
		t.Errorf("policy %q", csp)
	}
}

func TestProxies(t *testing.T) {
	p := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		peer string
		fwd  []string
		want string
	}{
		{"203.0.113.9:1", nil, "203.0.113.9"},
		{"203.0.113.9:1", []string{"198.51.100.1"}, "203.0.113.9"}, // not a proxy of ours
		{"10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"}, // the first is the client's word
		{"10.0.0.1:1", []string{"1.1.1.1", "198.51.100.1, 10.2.3.4"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"10.9.9.9"}, "10.9.9.9"},
		{"10.0.0.1:1", []string{"unknown"}, "10.0.0.1"},
		{"10.0.0.1:1", []string{"1.1.1.1, unknown"}, "10.0.0.1"},
		{"10.0.0.1:1", []string{""}, "10.0.0.1"},
		{"10.0.0.1:1", nil, "10.0.0.1"},
		{"[fd00::1]:1", []string{"[2001:db8::5]:443"}, "2001:db8::5"},
		{"[fd00::1]:1", []string{"[2001:db8::5]"}, "2001:db8::5"},
		{"[::ffff:10.0.0.1]:1", []string{"198.51.100.1:99"}, "198.51.100.1"},
		{"@", []string{"198.51.100.1"}, "invalid IP"},
	} {
		r := request("GET", "/", "", header("X-Forwarded-For", c.fwd...))
		r.RemoteAddr = c.peer
		if got := p.Addr(r).String(); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.peer, c.fwd, got, c.want)
		}
	}
	for _, c := range []struct {
		peer  string
		proto []string
		tls   bool
		want  bool
	}{
		{"203.0.113.9:1", []string{"https"}, false, false}, {"10.0.0.1:1", []string{"HTTPS"}, false, true}, {"10.0.0.1:1", []string{"http"}, false, false},
		{"10.0.0.1:1", []string{"https", "http"}, false, false}, {"10.0.0.1:1", nil, false, false}, {"203.0.113.9:1", nil, true, true},
	} {
		r := request("GET", "/", "", header("X-Forwarded-Proto", c.proto...))
		r.RemoteAddr = c.peer
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if got := p.TLS(r); got != c.want {
			t.Errorf("%s %q: %v", c.peer, c.proto, got)
		}
	}
}

func TestLimiter(t *testing.T) {
	c := newClock()
	l := NewLimiter(LimiterOptions{Principal: Rate{60, 3}, Address: Rate{60, 2}, Max: 100, Now: c.now})
	ana, ben := person("local:ana"), person("local:ben")
	var limit *LimitError
	for i := range 4 {
		err := l.Principal(ana)
		if (err == nil) != (i < 3) {
			t.Errorf("request %d: %v", i, err)
		}
		if err != nil && (!errors.As(err, &limit) || limit.After != time.Second || Status(err) != 429) {
			t.Errorf("wait %v, status %d", limit.After, Status(err))
		}
	}
	if err := l.Principal(ben); err != nil {
		t.Errorf("another: %v", err)
	}
	c.move(-time.Hour) // a clock set back fills nothing
	if l.Principal(ana) == nil {
		t.Error("the clock went back, and she may")
	}
	c.move(time.Hour + time.Second - time.Microsecond)
	if l.Principal(ana) == nil {
		t.Error("too early")
	}
	c.move(time.Microsecond)
	if err := l.Principal(ana); err != nil {
		t.Errorf("in time: %v", err)
	}
	c.move(time.Hour)
	for i := range 4 { // no more than the burst is saved
		if err := l.Principal(ana); (err == nil) != (i < 3) {
			t.Errorf("after an hour, request %d: %v", i, err)
		}
	}

	a := netip.MustParseAddr
	for addr, free := range map[string]bool{"2001:db8::1": true, "192.0.2.1": true} {
		if (l.Address(a(addr)) == nil) != free {
			t.Errorf("%s", addr)
		}
	}
	if l.Address(a("2001:db8::2")) != nil || l.Address(a("2001:db8::ffff")) == nil || l.Address(a("2001:db8:0:1::1")) != nil {
		t.Error("a network of 64 bits is one address")
	}
	if l.Address(a("::ffff:192.0.2.1")) != nil || l.Address(a("192.0.2.1")) == nil {
		t.Error("a mapped address is itself")
	}
	for i := range 1000 {
		l.Address(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}))
	}
	if n, m := l.addresses.order.Len(), len(l.addresses.by); n != 100 || m != 100 {
		t.Errorf("%d and %d addresses are kept", n, m)
	}

	served := l.Guard(nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	var last *httptest.ResponseRecorder
	for range 3 {
		last = httptest.NewRecorder()
		served.ServeHTTP(last, request("GET", "/", ""))
	}
	if last.Code != 429 || last.Header().Get("Retry-After") != "1" {
		t.Errorf("%d, %q", last.Code, last.Header().Get("Retry-After"))
	}
	free := NewLimiter(LimiterOptions{Principal: Rate{PerMinute: -1}, Now: c.now})
	for range 1000 {
		if err := free.Principal(ana); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLocalPath(t *testing.T) {
	for to, want := range map[string]string{
		"/": "/", "/a/req_1?x=1#y": "/a/req_1?x=1#y", "/runs?next=https://x": "/runs?next=https://x",
		"": "/", "a": "/", "//evil.example": "/", "/\\evil.example": "/", "\\\\evil.example": "/", "https://evil.example": "/",
		"/\t/evil.example": "/", "/\n/evil.example": "/", " /a": "/", "/a b": "/", "javascript:x": "/", "/é": "/", "/..//evil.example": "/",
		"/.//evil.example": "/", "/%2e%2e//evil.example": "/", "/a/%2E%2e/b": "/", "/" + strings.Repeat("a", 2048): "/",
	} {
		if got := LocalPath(to); got != want {
			t.Errorf("%q: %q, want %q", to, got, want)
		}
	}
}

func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/a", "//x", "/\\x", "/./", "/%2e/", "/a?b#c"} {
		f.Add(s)
	}
	base, err := url.Parse("https://ringi.example/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := LocalPath(s)
		ref, err := url.Parse(got)
		if err != nil {
			return // a browser of ours never gets there; net/http refuses it
		}
		if u := base.ResolveReference(ref); u.Scheme != "https" || u.Host != "ringi.example" || strings.HasPrefix(u.EscapedPath(), "//") {
			t.Errorf("%q leads to %s", s, u)
		}
	})
}

func TestStatus(t *testing.T) {
	for err, want := range map[error]int{
		ringi.ErrNoPrincipal: 401, ErrForbidden: 403, ErrHidden: 404, ErrCrossOrigin: 403, ErrInFlight: 409, ErrReused: 422, ErrNotKept: 409,
		ErrExists: 409, ErrHost: 421, ringi.ErrNotRecorded: 0, errors.New("x"): 0, &LimitError{}: 429, ringi.ErrTooLarge: 413, ErrInvalid: 400,
	} {
		if got := Status(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
	if !errors.Is(ErrHidden, ringi.ErrNotFound) || ErrHidden.Error() != ringi.ErrNotFound.Error() {
		t.Error("hidden is not like not found")
	}
}

func BenchmarkFromRequest(b *testing.B) {
	h := newHouse(b, Options{})
	h.add(b, "ana", RoleUser)
	_, session := h.enterAs(b, "local:ana")
	_, token := h.token(b, operator, NewToken{Kind: AgentToken, Name: "shop", Owner: "local:ana", Agents: []string{"*"}, Scopes: []Scope{ScopeRead}})
	a := authenticator(b, h, AuthOptions{})
	for name, edit := range map[string]func(*http.Request){"session": withCookie(session), "token": header("Authorization", "Bearer "+token)} {
		b.Run(name, func(b *testing.B) {
			r := request("GET", "/", "", edit)
			for b.Loop() {
				if _, err := a.FromRequest(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMay(b *testing.B) {
	w := person("local:ana", RoleUser, RoleApprover)
	for b.Loop() {
		if err := May(w, ApprovalsDecide, Asked); err != nil {
			b.Fatal(err)
		}
	}
}
