package access

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi"
)

// Names of what a browser carries.
const (
	// CookieName is the session's cookie.
	CookieName = "ringi_session"
	// CSRFField is the form field, CSRFHeader the header, with [Who.CSRF].
	CSRFField  = "csrf"
	CSRFHeader = "X-Ringi-CSRF"
)

// MaxForm is the largest form that is read: 2 MiB.
const MaxForm = 2 << 20

// AuthOptions say how requests are read. The zero value is for a server that
// browsers reach directly.
type AuthOptions struct {
	// Secure says that browsers reach the server by https whatever it sees
	// itself: the public address has that scheme.
	Secure bool
	// Proxies are those in front of the server.
	Proxies Proxies
	// Origins are other origins ("https://inbox.example") whose pages may send
	// forms. Empty: none but our own.
	Origins []string
}

// Authenticator says who sends a request. It is safe for goroutines.
type Authenticator struct {
	d      *Directory
	o      AuthOptions
	origin *http.CrossOriginProtection
}

// NewAuthenticator returns an authenticator over a directory. [ErrInvalid] for
// an origin that is none.
func NewAuthenticator(d *Directory, o AuthOptions) (*Authenticator, error) {
	a := &Authenticator{d: d, o: o, origin: http.NewCrossOriginProtection()}
	for _, origin := range o.Origins {
		if err := a.origin.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return a, nil
}

// FromRequest says who sends r: by "Authorization: Bearer", or else by the
// session's cookie. With a header the cookie does not count; two headers or two
// cookies, which no browser of ours sends, are refused.
//
// A request by cookie that may change something (any method but GET, HEAD and
// OPTIONS) must come from a page of ours and carry the session's form token, in
// the field [CSRFField] of a form (read to at most [MaxForm]) or in the header
// [CSRFHeader]. So no handler can forget to ask.
//
// Errors: [ringi.ErrNoPrincipal] where nobody is known, [ErrCrossOrigin] where
// the page or the form token is not ours, [ringi.ErrTooLarge], [ErrInvalid] for
// a form that cannot be read, and the directory's own.
func (a *Authenticator) FromRequest(r *http.Request) (Who, error) { return a.over(r, a.fromRequest) }

// over adds the network that r came over.
func (a *Authenticator) over(r *http.Request, known func(*http.Request) (Who, error)) (Who, error) {
	w, err := known(r)
	if err == nil {
		w.Network = networkOf(a.o.Proxies.Addr(r))
	}
	return w, err
}

func (a *Authenticator) fromRequest(r *http.Request) (Who, error) {
	headers := r.Header.Values("Authorization")
	switch {
	case len(headers) > 1:
		return Who{}, fmt.Errorf("authenticate: %w: two Authorization headers", ringi.ErrNoPrincipal)
	case len(headers) == 1:
		token, ok := bearer(headers[0])
		if !ok {
			return Who{}, fmt.Errorf("authenticate: %w: the Authorization header is no bearer token", ringi.ErrNoPrincipal)
		}
		return a.d.ByToken(r.Context(), token)
	}
	session, err := cookie(r)
	if err != nil {
		return Who{}, err
	}
	w, err := a.d.BySession(r.Context(), session)
	if err != nil {
		return Who{}, err
	}
	if safe(r.Method) {
		return w, nil
	}
	if err := a.checkForm(r, w); err != nil {
		return Who{}, err
	}
	return w, nil
}

// FromPage is [Authenticator.FromRequest] for what pages of other origins use.
// One of the origins given, exact (https://shop.example), needs no form token:
// the header Origin says which page it is, and no page can set it (Fetch
// standard, 3.2). No other page gains anything. Without origins it is FromRequest.
func (a *Authenticator) FromPage(r *http.Request, origins []string) (Who, error) {
	from := r.Header.Values("Origin")
	if len(r.Header.Values("Authorization")) > 0 || len(from) != 1 || !slices.Contains(origins, from[0]) {
		return a.FromRequest(r)
	}
	return a.over(r, func(r *http.Request) (Who, error) {
		session, err := cookie(r)
		if err != nil {
			return Who{}, err
		}
		return a.d.BySession(r.Context(), session)
	})
}

// bearer returns the token of an Authorization header (RFC 6750, 2.1).
func bearer(header string) (string, bool) {
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimLeft(token, " "), true
}

// cookie returns the session's secret. Cookies do not tell ports and paths
// apart: of two, one was set by somebody else.
func cookie(r *http.Request) (string, error) {
	found := r.CookiesNamed(CookieName)
	switch len(found) {
	case 0:
		return "", fmt.Errorf("authenticate: %w", ringi.ErrNoPrincipal)
	case 1:
		return found[0].Value, nil
	}
	return "", fmt.Errorf("authenticate: %w: %d session cookies", ringi.ErrNoPrincipal, len(found))
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

func (a *Authenticator) checkForm(r *http.Request, w Who) error {
	if err := a.CheckOrigin(r); err != nil {
		return err
	}
	given := r.Header.Get(CSRFHeader)
	if given == "" {
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if kind != "application/x-www-form-urlencoded" {
			return fmt.Errorf("authenticate: %w: no form token", ErrCrossOrigin)
		}
		r.Body = http.MaxBytesReader(nil, r.Body, MaxForm)
		err := r.ParseForm()
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			return fmt.Errorf("authenticate: read form: %w", ringi.ErrTooLarge)
		}
		if err != nil {
			return fmt.Errorf("authenticate: %w: read form: %w", ErrInvalid, err)
		}
		given = r.PostForm.Get(CSRFField)
	}
	if w.csrf == "" || !equal(given, w.csrf) {
		return fmt.Errorf("authenticate: %w: the form token is not of this session", ErrCrossOrigin)
	}
	return nil
}

// CheckOrigin refuses a request that a page of another origin made. Log-in and
// other forms without a session call it themselves; FromRequest does for all
// others. It must stand behind [Hosts], as a rebound name is its own origin.
func (a *Authenticator) CheckOrigin(r *http.Request) error {
	if err := a.origin.Check(r); err != nil {
		return fmt.Errorf("%w: %w", ErrCrossOrigin, err)
	}
	return nil
}

// Guard calls next with the Who of each request in its context, and refuse
// with the error of a request that has none.
func (a *Authenticator) Guard(next http.Handler, refuse func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := a.FromRequest(r)
		if err != nil {
			refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), who)))
	})
}

// Login spends a login link and sets the cookie of the session that it begins;
// the session that the browser had ends. It must be a POST of a page of ours.
//
// Errors: [ErrCrossOrigin], [ErrLink].
func (a *Authenticator) Login(w http.ResponseWriter, r *http.Request, link string) error {
	return a.begin(w, r, func(ctx context.Context, replaces string) (string, error) {
		return a.d.UseLink(ctx, link, replaces)
	})
}

// LoginAs begins a session of a user whom a provider has authenticated, and
// sets its cookie. It is for the end of an OIDC login, where the caller has
// checked that the browser is the one that began it.
func (a *Authenticator) LoginAs(w http.ResponseWriter, r *http.Request, user string) error {
	return a.start(w, r, func(ctx context.Context, replaces string) (string, error) {
		return a.d.StartSession(ctx, user, AuthSession, replaces)
	})
}

func (a *Authenticator) begin(w http.ResponseWriter, r *http.Request, make func(context.Context, string) (string, error)) error {
	if r.Method != http.MethodPost {
		return fmt.Errorf("log in: %w: only a POST logs in", ErrForbidden)
	}
	if err := a.CheckOrigin(r); err != nil {
		return err
	}
	return a.start(w, r, make)
}

func (a *Authenticator) start(w http.ResponseWriter, r *http.Request, make func(context.Context, string) (string, error)) error {
	replaces, _ := cookie(r) // without one there is nothing to replace
	session, err := make(r.Context(), replaces)
	if err != nil {
		return err
	}
	a.setCookie(w, r, session, int(a.d.o.SessionAge.Seconds()))
	return nil
}

// Logout ends the session of who, whom FromRequest returned, and removes its
// cookie.
func (a *Authenticator) Logout(w http.ResponseWriter, r *http.Request, who Who) error {
	if err := a.d.EndSession(r.Context(), who); err != nil {
		return err
	}
	a.setCookie(w, r, "", -1)
	return nil
}

// setCookie sets the session's cookie: for this host alone, out of reach of
// scripts, not sent from other sites' pages but by following a link.
func (a *Authenticator) setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{Name: CookieName, Value: value, Path: "/", MaxAge: age, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: a.o.Secure || a.o.Proxies.TLS(r)})
}
