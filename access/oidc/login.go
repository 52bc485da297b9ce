package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	client "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/ringi-dev/ringi/access"
)

// begun is a login under way. The browser that began it keeps it, out of reach
// of scripts: who brings a code without it is somebody else.
type begun struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	To       string `json:"to"`
	At       int64  `json:"at"`
}

const (
	// cookiePrefix begins the cookie of a login under way; the start of its
	// state follows, so that two tabs can log in at once.
	cookiePrefix = "ringi_login_"
	// loginAge is how long somebody may take at the provider.
	loginAge = 10 * time.Minute
	// maxBegun is how many logins a browser has under way.
	maxBegun = 4
)

// Begin sends the browser to the provider. It changes nothing here. The query's
// "to" is where the browser goes after the login: a path of ours, or "/".
//
// Errors: access.ErrProvider; nothing is written then.
func (p *Provider) Begin(w http.ResponseWriter, r *http.Request) error {
	f, err := p.discover(r.Context())
	if err != nil {
		return fmt.Errorf("begin login: %w", err)
	}
	b := begun{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: access.LocalPath(r.URL.Query().Get("to")), At: time.Now().Unix()}
	value, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("begin login: %w", err)
	}
	p.forgetOld(w, r)
	p.setCookie(w, cookieName(b.State), base64.RawURLEncoding.EncodeToString(value), int(loginAge.Seconds()))
	http.Redirect(w, r, f.config.AuthCodeURL(b.State, client.Nonce(b.Nonce), oauth2.S256ChallengeOption(b.Verifier)), http.StatusSeeOther)
	return nil
}

// Finish takes the browser that comes back from the provider, checks all that
// it brings, and begins a session. It returns where the browser goes now: a path
// of ours.
//
// Errors: access.ErrLogin for what does not hold, access.ErrProvider,
// access.ErrNoRole, ringi.ErrNoPrincipal for a disabled user, and the
// directory's own. No session begins then, and the one that the browser had
// goes on.
func (p *Provider) Finish(w http.ResponseWriter, r *http.Request) (string, error) {
	b, err := p.resume(w, r)
	if err != nil {
		return "", p.refused(r, err)
	}
	who, err := p.identify(r, b)
	if err != nil {
		return "", p.refused(r, err)
	}
	if err := p.o.Directory.SpendOnce(r.Context(), b.State); err != nil {
		return "", p.refused(r, err)
	}
	u, err := p.o.Directory.SignIn(r.Context(), who)
	if err != nil {
		return "", p.refused(r, err)
	}
	if err := p.o.Authenticator.LoginAs(w, r, u.ID); err != nil {
		return "", p.refused(r, err)
	}
	return b.To, nil
}

// refused writes down why: the page says less.
func (p *Provider) refused(r *http.Request, err error) error {
	err = fmt.Errorf("finish login: %w", err)
	p.log.Warn("login refused", "issuer", p.o.Issuer, "address", r.RemoteAddr, "error", err)
	return err
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{access.ErrLogin}, args...)...)
}

// resume finds the login that this browser began, and forgets it: it is good
// for one try.
func (p *Provider) resume(w http.ResponseWriter, r *http.Request) (begun, error) {
	state, err := one(r.URL.Query(), "state")
	if err != nil {
		return begun{}, err
	}
	found := r.CookiesNamed(cookieName(state))
	if len(found) != 1 {
		return begun{}, refuse("%d logins of this state are under way in this browser", len(found))
	}
	p.setCookie(w, found[0].Name, "", -1)
	text, err := base64.RawURLEncoding.DecodeString(found[0].Value)
	var b begun
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil {
		return begun{}, refuse("the cookie cannot be read")
	}
	if subtle.ConstantTimeCompare([]byte(b.State), []byte(state)) != 1 || b.Nonce == "" || b.Verifier == "" {
		return begun{}, refuse("the state is not that of this browser")
	}
	if age := time.Since(time.Unix(b.At, 0)); age < -time.Minute || age > loginAge {
		return begun{}, refuse("the login was begun %s ago", age.Round(time.Second))
	}
	b.To = access.LocalPath(b.To) // it comes from a browser
	return b, nil
}

// one returns a parameter that must stand in the query once.
func one(q url.Values, name string) (string, error) {
	if len(q[name]) != 1 || q[name][0] == "" {
		return "", refuse("%d parameters %s", len(q[name]), name)
	}
	return q[name][0], nil
}

// identify exchanges the code, and says whom the provider vouches for.
func (p *Provider) identify(r *http.Request, b begun) (access.SignIn, error) {
	f, err := p.discover(r.Context())
	if err != nil {
		return access.SignIn{}, err
	}
	q := r.URL.Query()
	if iss := q["iss"]; (len(iss) > 0 || f.meta.SendsIss) && (len(iss) != 1 || iss[0] != p.o.Issuer) { // RFC 9207, 2.4
		return access.SignIn{}, refuse("the answer is of issuer %.200q", iss)
	}
	if e := q.Get("error"); e != "" {
		return access.SignIn{}, refuse("the provider says %.200q", e)
	}
	code, err := one(q, "code")
	if err != nil {
		return access.SignIn{}, err
	}
	ctx := p.context(r.Context())
	token, err := f.config.Exchange(ctx, code, oauth2.VerifierOption(b.Verifier))
	if err != nil {
		return access.SignIn{}, exchangeError(err)
	}
	id, err := p.verify(ctx, f, token, b)
	if err != nil {
		return access.SignIn{}, err
	}
	return p.read(ctx, f, token, id)
}

// exchangeError tells a code that is not taken from a provider that is down.
func exchangeError(err error) error {
	var answered *oauth2.RetrieveError
	if errors.As(err, &answered) && answered.Response != nil && answered.Response.StatusCode < 500 {
		return refuse("the provider does not take the code: %.200q", answered.ErrorCode)
	}
	return fmt.Errorf("%w: exchange code: %w", access.ErrProvider, err)
}

// verify checks the ID token (OpenID Connect Core 1.0, 3.1.3.7): the library
// its signature, issuer, audience and time, this function the rest.
func (p *Provider) verify(ctx context.Context, f *found, token *oauth2.Token, b begun) (*client.IDToken, error) {
	raw, ok := token.Extra("id_token").(string)
	if !ok || raw == "" {
		return nil, refuse("the provider gave no ID token")
	}
	id, err := f.verifier.Verify(ctx, raw)
	if err != nil {
		return nil, refuse("verify ID token: %w", err)
	}
	var more struct {
		Party string `json:"azp"`
	}
	if err := id.Claims(&more); err != nil {
		return nil, refuse("read ID token: %w", err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(b.Nonce)) != 1:
		return nil, refuse("the nonce is not that of this browser")
	case len(id.Audience) > 1 && more.Party == "", more.Party != "" && more.Party != p.o.ClientID:
		return nil, refuse("the ID token was made for %.200q", more.Party)
	case id.IssuedAt.After(p.o.Now().Add(5 * time.Minute)):
		return nil, refuse("the ID token was issued at %s, which is not yet", id.IssuedAt.UTC().Format(time.RFC3339))
	case id.Subject == "" || len(id.Subject) > 255:
		return nil, refuse("the ID token has a subject of %d bytes", len(id.Subject))
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, refuse("verify access token: %w", err)
		}
	}
	return id, nil
}

func cookieName(state string) string {
	// What is no state of ours finds no cookie; a name has letters and digits.
	if len(state) < 8 || strings.Trim(state, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return cookiePrefix + "none"
	}
	return cookiePrefix + state[:8]
}

// forgetOld removes what a browser began and left, where it is too much.
func (p *Provider) forgetOld(w http.ResponseWriter, r *http.Request) {
	var old []string
	for _, c := range r.Cookies() {
		if strings.HasPrefix(c.Name, cookiePrefix) {
			old = append(old, c.Name)
		}
	}
	if len(old) < maxBegun {
		return
	}
	for _, name := range old {
		p.setCookie(w, name, "", -1)
	}
}

func (p *Provider) setCookie(w http.ResponseWriter, name, value string, age int) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: path.Dir(p.back.Path), MaxAge: age, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: p.back.Scheme == "https"})
}
