package access

import (
	"errors"
	"net/http"
	"testing"

	"github.com/ringi-dev/ringi"
)

// A page of another origin that is named uses its user's login without a form
// token; no other page does.
func TestS32_NamedPages(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleUser)
	_, session := h.enterAs(t, "local:ana")
	a := authenticator(t, h, AuthOptions{})
	origin := func(values ...string) func(*http.Request) { return header("Origin", values...) }
	named := []string{"https://shop.example"}
	for _, c := range []struct {
		name    string
		origins []string
		edit    []func(*http.Request)
		want    error
	}{
		{"named", named, []func(*http.Request){origin("https://shop.example"), withCookie(session)}, nil},
		{"named, without a login", named, []func(*http.Request){origin("https://shop.example")}, ringi.ErrNoPrincipal},
		{"named, two logins", named, []func(*http.Request){origin("https://shop.example"), withCookie(session), withCookie(session)}, ringi.ErrNoPrincipal},
		{"named, with a token that is none", named, []func(*http.Request){origin("https://shop.example"), header("Authorization", "Bearer x"), withCookie(session)}, ringi.ErrNoPrincipal},
		{"another", named, []func(*http.Request){origin("https://evil.example"), withCookie(session)}, ErrCrossOrigin},
		{"longer", named, []func(*http.Request){origin("https://shop.example.evil.example"), withCookie(session)}, ErrCrossOrigin},
		{"another scheme", named, []func(*http.Request){origin("http://shop.example"), withCookie(session)}, ErrCrossOrigin},
		{"two origins", named, []func(*http.Request){origin("https://shop.example", "https://evil.example"), withCookie(session)}, ErrCrossOrigin},
		{"null", named, []func(*http.Request){origin("null"), withCookie(session)}, ErrCrossOrigin},
		{"none", named, []func(*http.Request){withCookie(session)}, ErrCrossOrigin},
		{"none is named", nil, []func(*http.Request){origin("https://shop.example"), withCookie(session)}, ErrCrossOrigin},
	} {
		w, err := a.FromPage(request("POST", "/v1/chat/shop", "{}", append(c.edit, header("Content-Type", "application/json"))...), c.origins)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || (w.Principal.ID == "local:ana") != (err == nil) {
			t.Errorf("%s: %v, %v; want %v", c.name, w, err, c.want)
		}
	}
}
