// Package identity says who a chat's user is, by a token (JWT, RFC 7519) that the
// page's own login gave him. It stands apart from package aisdk so that a program
// with another login does not link it.
package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/ringi-dev/ringi"
)

// Options say whose tokens are taken. Issuer, JWKS and Audience are needed.
type Options struct {
	// Issuer is the token's iss, exactly.
	Issuer string
	// JWKS is where the issuer's public keys are (RFC 7517), over https, or http on
	// this machine. They are read when no known key fits a token: five times at
	// once, and then every five seconds at most, whatever tokens come.
	JWKS string
	// Audience must be among the token's aud: a token for somebody else's service
	// opens nothing here.
	Audience string
	// Teams is the claim that lists the user's teams; empty: he has none.
	Teams string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Client fetches the keys; nil means one with a limit of 10 s that follows no
	// redirect.
	Client *http.Client
}

// ErrToken is why a request is not authenticated; it is wrapped with what is
// wrong, which is for a log and never quotes the token.
var ErrToken = errors.New("no good token")

// maxToken bounds a token's text.
const maxToken = 16 << 10

// algorithms are those with a public key: a shared secret is none of an issuer's
// published keys, and none means nobody.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// New makes a Who for aisdk.Options. It reads the token from Authorization:
// Bearer, checks signature, issuer, audience and time, and gives the person
// issuer#subject, the id that a login at the same issuer gives.
func New(o Options) (func(*http.Request) (ringi.Principal, error), error) {
	if o.Issuer == "" || o.Audience == "" {
		return nil, errors.New("make identity: issuer and audience are needed")
	}
	u, err := url.Parse(o.JWKS)
	if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && local(u.Hostname())) {
		return nil, errors.New("make identity: JWKS is an https address")
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: 10 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	client := *o.Client
	client.Transport = newSparing(client.Transport, o.Now)
	keys := oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), &client), o.JWKS)
	check := oidc.NewVerifier(o.Issuer, keys, &oidc.Config{ClientID: o.Audience, SupportedSigningAlgs: algorithms, Now: o.Now})
	return func(r *http.Request) (ringi.Principal, error) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
			return ringi.Principal{}, fmt.Errorf("%w: there is none", ErrToken)
		}
		t, err := check.Verify(r.Context(), token)
		if err != nil {
			return ringi.Principal{}, fmt.Errorf("%w: %w", ErrToken, err)
		}
		return person(o, t)
	}, nil
}

func local(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// person is whom a token names.
func person(o Options, t *oidc.IDToken) (ringi.Principal, error) {
	var claims map[string]any
	if err := t.Claims(&claims); err != nil {
		return ringi.Principal{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	p := ringi.Principal{ID: t.Issuer + "#" + url.PathEscape(t.Subject), Kind: ringi.Person, Auth: "jwt"}
	if t.Subject == "" || len(p.ID) > 255 {
		return ringi.Principal{}, fmt.Errorf("%w: its subject is empty or too long", ErrToken)
	}
	if name, ok := claims["name"].(string); ok && len(name) <= 200 {
		p.Name = name
	}
	if o.Teams != "" {
		list, _ := claims[o.Teams].([]any)
		for _, one := range list {
			if team, ok := one.(string); ok && team != "" {
				p.Teams = append(p.Teams, team)
			}
		}
	}
	return p, nil
}
