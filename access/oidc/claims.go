package oidc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	client "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/ringi-dev/ringi/access"
)

// read makes of an ID token what the directory is told. Providers put some
// claims into their userinfo alone; it is asked where groups are missing.
func (p *Provider) read(ctx context.Context, f *found, token *oauth2.Token, id *client.IDToken) (access.SignIn, error) {
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return access.SignIn{}, refuse("read ID token: %w", err)
	}
	_, groups := find(claims, p.o.GroupsClaim)
	if (len(p.o.Groups) > 0 && !groups || nameOf(claims) == "") && f.provider.UserInfoEndpoint() != "" {
		info, err := f.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return access.SignIn{}, fmt.Errorf("%w: ask for userinfo: %w", access.ErrProvider, err)
		}
		if info.Subject != id.Subject { // OpenID Connect Core 1.0, 5.3.2
			return access.SignIn{}, refuse("the userinfo is of somebody else")
		}
		var more map[string]any
		if err := info.Claims(&more); err != nil {
			return access.SignIn{}, refuse("read userinfo: %w", err)
		}
		for name, value := range more {
			if _, known := claims[name]; !known {
				claims[name] = value
			}
		}
	}
	s := access.SignIn{ID: access.ProvidedID(p.o.Issuer, id.Subject), Name: nameOf(claims), Mapped: len(p.o.Groups) > 0}
	if s.Name == "" {
		s.Name = line(id.Subject)
	}
	if s.Mapped {
		s.Roles, s.Teams = p.mapped(claims)
	}
	s.Add = p.o.SignUp == SignUpAnyone || p.o.SignUp == SignUpMapped && len(s.Roles) > 0
	return s, nil
}

// mapped is what a person's groups give him here.
func (p *Provider) mapped(claims map[string]any) (roles []access.Role, teams []string) {
	value, there := find(claims, p.o.GroupsClaim)
	groups, ok := texts(value)
	if there && !ok {
		p.log.Warn("login: the groups are no list of texts, and give nothing", "claim", p.o.GroupsClaim)
	}
	for _, group := range groups {
		grant := p.o.Groups[group]
		roles, teams = append(roles, grant.Roles...), append(teams, grant.Teams...)
	}
	slices.Sort(roles)
	slices.Sort(teams)
	return slices.Compact(roles), slices.Compact(teams)
}

// find returns a claim, by its whole name or level by level.
func find(claims map[string]any, name string) (any, bool) {
	if v, ok := claims[name]; ok {
		return v, true
	}
	first, rest, deeper := strings.Cut(name, ".")
	if !deeper {
		return nil, false
	}
	inner, _ := claims[first].(map[string]any)
	return find(inner, rest)
}

// texts reads a list of texts, or one.
func texts(v any) ([]string, bool) {
	switch v := v.(type) {
	case string:
		return []string{v}, true
	case []any:
		var out []string
		for _, one := range v {
			s, ok := one.(string)
			if !ok {
				return nil, false
			}
			out = append(out, s)
		}
		return out, true
	}
	return nil, false
}

// nameOf is how people call somebody: his name, or an address that the provider
// has verified. It is shown, and nothing is decided by it.
func nameOf(claims map[string]any) string {
	for _, claim := range []string{"name", "preferred_username"} {
		if s, ok := claims[claim].(string); ok && line(s) != "" {
			return line(s)
		}
	}
	if verified, _ := claims["email_verified"].(bool); verified {
		s, _ := claims["email"].(string)
		return line(s)
	}
	return ""
}

// line is a text as the directory takes a name: one line, 200 bytes at most.
func line(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s))
	for len(s) > 200 {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}
