package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	client "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/ringi-dev/ringi/access"
)

// Options say which provider logs people in, and what it means here. Issuer,
// ClientID, RedirectURL, Directory and Authenticator must be given.
type Options struct {
	// Issuer is the provider's address, exactly as its tokens have it. It is
	// reached by https; http is taken for this machine alone.
	Issuer string
	// ClientID and ClientSecret are ours at the provider. Without a secret the
	// client is a public one: PKCE alone binds the code.
	ClientID, ClientSecret string
	// RedirectURL is the address of ours that the provider sends the browser
	// back to.
	RedirectURL string
	// Scopes are asked for beside openid; nil means profile and email.
	Scopes []string
	// Name stands on the button; empty means the issuer's host.
	Name string
	// GroupsClaim is the claim that holds a person's groups, a list of texts or
	// one; empty means "groups". A dot parts levels where there is no claim of
	// the whole name.
	GroupsClaim string
	// Groups says what each group means here. Empty: the provider says who
	// somebody is and nothing else, and an admin gives roles.
	Groups map[string]Grant
	// SignUp says who is added at his first login.
	SignUp SignUp

	Directory     *access.Directory
	Authenticator *access.Authenticator
	// Client sends our requests to the provider; nil has one with a time limit
	// of 10 s that follows no redirect and reads at most 1 MiB.
	Client *http.Client
	// Now is the clock that tokens are held against; nil means time.Now.
	Now func() time.Time
	// Logger takes why a login was refused; nil discards it.
	Logger *slog.Logger
}

// Grant is what a group of the provider's gives here.
type Grant struct {
	Roles []access.Role
	Teams []string
}

// SignUp says who is added at his first login.
type SignUp string

// The rules of signing up.
const (
	// SignUpMapped adds those to whom a group of theirs gives a role.
	SignUpMapped SignUp = ""
	// SignUpAnyone adds every account of the provider; without a group that
	// gives a role, it has none until an admin gives one.
	SignUpAnyone SignUp = "anyone"
	// SignUpNever adds nobody: an admin does.
	SignUpNever SignUp = "never"
)

// Provider logs people in. It is safe for goroutines.
type Provider struct {
	o    Options
	back *url.URL
	log  *slog.Logger

	mu     sync.Mutex
	found  *found
	failed error
	at     time.Time // of found or failed
}

// found is what discovery said.
type found struct {
	provider *client.Provider
	verifier *client.IDTokenVerifier
	config   oauth2.Config
	meta     struct {
		EndSession string   `json:"end_session_endpoint"`
		Keys       string   `json:"jwks_uri"`
		SendsIss   bool     `json:"authorization_response_iss_parameter_supported"`
		Auth       []string `json:"token_endpoint_auth_methods_supported"`
	}
}

// New returns a provider. It asks nothing of it yet: a server starts while its
// provider is down. An error names the option that cannot be.
func New(o Options) (*Provider, error) {
	issuer, err := url.Parse(o.Issuer)
	switch {
	case err != nil || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "" || issuer.User != nil:
		return nil, fmt.Errorf("make login provider: issuer %q is no address without query and fragment", o.Issuer)
	case issuer.Scheme != "https" && !(issuer.Scheme == "http" && local(issuer.Hostname())):
		return nil, fmt.Errorf("make login provider: issuer %q is not reached by https", o.Issuer)
	case o.ClientID == "":
		return nil, errors.New("make login provider: no client id")
	case o.Directory == nil || o.Authenticator == nil:
		return nil, errors.New("make login provider: no directory or no authenticator")
	case !slices.Contains([]SignUp{SignUpMapped, SignUpAnyone, SignUpNever}, o.SignUp):
		return nil, fmt.Errorf("make login provider: unknown sign-up %q", o.SignUp)
	}
	back, err := url.Parse(o.RedirectURL)
	if err != nil || back.Host == "" || back.Scheme != "https" && back.Scheme != "http" {
		return nil, fmt.Errorf("make login provider: redirect URL %q is no address", o.RedirectURL)
	}
	if err := checkGroups(o.Groups); err != nil {
		return nil, fmt.Errorf("make login provider: %w", err)
	}
	if o.Name == "" {
		o.Name = issuer.Host
	}
	if o.GroupsClaim == "" {
		o.GroupsClaim = "groups"
	}
	if o.Scopes == nil {
		o.Scopes = []string{"profile", "email"}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: 10 * time.Second, Transport: bounded{http.DefaultTransport},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Provider{o: o, back: back, log: o.Logger}, nil
}

func checkGroups(groups map[string]Grant) error {
	for group, grant := range groups {
		if group == "" || len(grant.Roles)+len(grant.Teams) == 0 {
			return fmt.Errorf("group %q gives nothing", group)
		}
		for _, r := range grant.Roles {
			if r == access.RoleAgent || !slices.Contains(access.Roles(), r) {
				return fmt.Errorf("group %q: %q is no role of a person", group, r)
			}
		}
	}
	return nil
}

// local reports whether a host is this machine.
func local(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	return host == "localhost"
}

// maxAnswer bounds what is read of a provider's answer.
const maxAnswer = 1 << 20

// bounded cuts answers that are too long.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

// Name is the provider's, for the button.
func (p *Provider) Name() string { return p.o.Name }

const (
	// foundAge is how long discovery is believed, failedAge how long a failure
	// is: a provider that is down is not asked by everybody who waits.
	foundAge  = time.Hour
	failedAge = 3 * time.Second
)

// discover returns what the provider says of itself. One that does not answer
// is access.ErrProvider; where it answered before, that stands.
func (p *Provider) discover(ctx context.Context) (*found, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	age := time.Since(p.at)
	switch {
	case p.found != nil && age < foundAge:
		return p.found, nil
	case p.found == nil && p.failed != nil && age < failedAge:
		return nil, p.failed
	}
	f, err := p.ask(ctx)
	p.at = time.Now()
	switch {
	case err == nil:
		p.found, p.failed = f, nil
	case p.found == nil:
		p.failed = fmt.Errorf("%w: %w", access.ErrProvider, err)
		return nil, p.failed
	default:
		p.log.Warn("login provider: discovery failed, what it said before stands", "issuer", p.o.Issuer, "error", err)
	}
	return p.found, nil
}

// ask reads the provider's metadata (OpenID Connect Discovery 1.0, 4). The
// library refuses one that names another issuer.
func (p *Provider) ask(ctx context.Context) (*found, error) {
	// Keys are fetched later, when whoever began this login has long gone.
	provider, err := client.NewProvider(p.context(context.WithoutCancel(ctx)), p.o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("ask login provider: %w", err)
	}
	f := &found{provider: provider, verifier: provider.Verifier(&client.Config{ClientID: p.o.ClientID, Now: p.o.Now})}
	if err := provider.Claims(&f.meta); err != nil {
		return nil, fmt.Errorf("read login provider's metadata: %w", err)
	}
	end := provider.Endpoint()
	end.AuthStyle = oauth2.AuthStyleInHeader // the default where none is named (RFC 8414, 2)
	if p.o.ClientSecret == "" || len(f.meta.Auth) > 0 && !slices.Contains(f.meta.Auth, "client_secret_basic") {
		end.AuthStyle = oauth2.AuthStyleInParams
	}
	// Who is on the way to any of them could say who somebody is, and what his
	// groups are.
	for what, address := range map[string]string{"authorization": end.AuthURL, "token": end.TokenURL, "jwks": f.meta.Keys, "userinfo": provider.UserInfoEndpoint()} {
		if what == "userinfo" && address == "" {
			continue // there is none
		}
		if u, err := url.Parse(address); err != nil || u.Scheme != "https" && !(u.Scheme == "http" && local(u.Hostname())) {
			return nil, fmt.Errorf("read login provider's metadata: %s endpoint %q is not reached by https", what, address)
		}
	}
	f.config = oauth2.Config{ClientID: p.o.ClientID, ClientSecret: p.o.ClientSecret, Endpoint: end, RedirectURL: p.o.RedirectURL,
		Scopes: append([]string{client.ScopeOpenID}, p.o.Scopes...)}
	return f, nil
}

// context carries our client to the libraries.
func (p *Provider) context(ctx context.Context) context.Context {
	return client.ClientContext(ctx, p.o.Client)
}

// Logout sends the browser to the provider's own log-out (OpenID Connect
// RP-Initiated Logout 1.0), and to our log-in page where it has none. It ends
// nothing here: the session was ended before, by a form.
func (p *Provider) Logout(w http.ResponseWriter, r *http.Request) {
	to := *p.back
	to.Path, to.RawQuery = strings.TrimSuffix(to.Path, "/oidc/callback"), ""
	if f, err := p.discover(r.Context()); err == nil && f.meta.EndSession != "" {
		if u, err := url.Parse(f.meta.EndSession); err == nil && (u.Scheme == "https" || local(u.Hostname())) {
			q := u.Query()
			q.Set("client_id", p.o.ClientID)
			q.Set("post_logout_redirect_uri", to.String())
			u.RawQuery = q.Encode()
			to = *u
		}
	}
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}
