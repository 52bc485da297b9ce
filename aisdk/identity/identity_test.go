package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/aisdk/identity"
)

var b64 = base64.RawURLEncoding

// issuer publishes keys and signs tokens (RFC 7515, ES256).
type issuer struct {
	*httptest.Server
	kid  string
	keys map[string]*ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{keys: map[string]*ecdsa.PrivateKey{}}
	i.rotate(t, "k1")
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var out []map[string]string
		for kid, k := range i.keys {
			pub, err := k.PublicKey.Bytes()
			if err != nil {
				t.Error(err)
			}
			out = append(out, map[string]string{"kty": "EC", "crv": "P-256", "kid": kid, "alg": "ES256", "use": "sig", "x": b64.EncodeToString(pub[1:33]), "y": b64.EncodeToString(pub[33:])})
		}
		json.NewEncoder(w).Encode(map[string]any{"keys": out})
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) rotate(t *testing.T, kid string) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.kid, i.keys[kid] = kid, k
}

func (i *issuer) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	head, _ := json.Marshal(map[string]string{"alg": "ES256", "kid": i.kid, "typ": "JWT"})
	body, _ := json.Marshal(claims)
	text := b64.EncodeToString(head) + "." + b64.EncodeToString(body)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.keys[i.kid], sum[:])
	if err != nil {
		t.Fatal(err)
	}
	sig := make([]byte, 64)
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return text + "." + b64.EncodeToString(sig)
}

func TestNew_TakesAndRefuses(t *testing.T) {
	i := newIssuer(t)
	now := time.Unix(1_800_000_000, 0)
	who, err := identity.New(identity.Options{Issuer: "https://shop.example", JWKS: i.URL, Audience: "ringi", Teams: "groups", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	claims := func(change func(map[string]any)) map[string]any {
		c := map[string]any{"iss": "https://shop.example", "aud": "ringi", "sub": "u/1", "name": "Ana", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "groups": []string{"refunds"}}
		if change != nil {
			change(c)
		}
		return c
	}
	ask := func(token string) (ringi.Principal, error) {
		r := httptest.NewRequest("GET", "/", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return who(r)
	}
	p, err := ask(i.sign(t, claims(nil)))
	if err != nil || p.ID != "https://shop.example#u%2F1" || p.Name != "Ana" || p.Kind != ringi.Person || p.Admin || len(p.Teams) != 1 || p.Auth != "jwt" {
		t.Fatalf("principal %+v, %v", p, err)
	}
	good := i.sign(t, claims(nil))
	hs := b64.EncodeToString([]byte(`{"alg":"HS256","kid":"k1"}`)) + "." + b64.EncodeToString([]byte(`{"iss":"https://shop.example","aud":"ringi","sub":"u1","exp":1900000000}`))
	mac := hmac.New(sha256.New, []byte("k1"))
	mac.Write([]byte(hs))
	for name, token := range map[string]string{
		"none":             "",
		"another issuer":   i.sign(t, claims(func(c map[string]any) { c["iss"] = "https://evil.example" })),
		"another audience": i.sign(t, claims(func(c map[string]any) { c["aud"] = "else" })),
		"no audience":      i.sign(t, claims(func(c map[string]any) { delete(c, "aud") })),
		"expired":          i.sign(t, claims(func(c map[string]any) { c["exp"] = now.Add(-time.Second).Unix() })),
		"no end":           i.sign(t, claims(func(c map[string]any) { delete(c, "exp") })),
		"not yet":          i.sign(t, claims(func(c map[string]any) { c["nbf"] = now.Add(time.Hour).Unix() })),
		"no subject":       i.sign(t, claims(func(c map[string]any) { delete(c, "sub") })),
		"cut":              good[:len(good)-4],
		"unsigned":         b64.EncodeToString([]byte(`{"alg":"none"}`)) + "." + b64.EncodeToString([]byte(`{"iss":"https://shop.example","aud":"ringi","sub":"u1","exp":1900000000}`)) + ".",
		"shared secret":    hs + "." + b64.EncodeToString(mac.Sum(nil)),
	} {
		if p, err := ask(token); !errors.Is(err, identity.ErrToken) || !p.IsZero() {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	i.rotate(t, "k2")
	taken(t, "after a new key", func() error {
		_, err := ask(i.sign(t, claims(nil)))
		return err
	})
}

func TestNew_Options(t *testing.T) {
	good := identity.Options{Issuer: "https://a", JWKS: "https://a/jwks", Audience: "b"}
	for name, change := range map[string]func(*identity.Options){
		"no issuer":   func(o *identity.Options) { o.Issuer = "" },
		"no audience": func(o *identity.Options) { o.Audience = "" },
		"plain http":  func(o *identity.Options) { o.JWKS = "http://a/jwks" },
		"a file":      func(o *identity.Options) { o.JWKS = "file:///etc/keys" },
	} {
		o := good
		change(&o)
		if _, err := identity.New(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// Tokens that anybody makes up do not have the issuer asked for each of them, and
// do not keep a new key of its from being found.
func TestMadeUpTokensSpareTheIssuer(t *testing.T) {
	i := newIssuer(t)
	var asked atomic.Int32
	counted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		i.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(counted.Close)
	now := time.Unix(1_800_000_000, 0)
	who, err := identity.New(identity.Options{Issuer: "https://shop.example", JWKS: counted.URL, Audience: "ringi", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(token string) error {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		_, err := who(r)
		return err
	}
	claims := map[string]any{"iss": "https://shop.example", "aud": "ringi", "sub": "ana", "exp": now.Add(time.Hour).Unix()}
	good := i.sign(t, claims)
	if err := ask(good); err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(good, ".")
	body, _, _ := strings.Cut(rest, ".")
	for n := range 300 {
		if err := ask(head + "." + body + "." + b64.EncodeToString(fmt.Appendf(make([]byte, 56), "%08d", n))); !errors.Is(err, identity.ErrToken) {
			t.Fatalf("a made-up token gives %v", err)
		}
	}
	if n := asked.Load(); n > 5 {
		t.Errorf("the issuer was asked %d times", n)
	}
	if err := ask(good); err != nil {
		t.Errorf("a good token meanwhile: %v", err)
	}
	i.rotate(t, "k2")
	now = now.Add(30 * time.Second)
	taken(t, "a token of a new key", func() error { return ask(i.sign(t, claims)) })
}

// taken asks again: for a moment the library hands out what it was told just
// before.
func taken(t *testing.T, what string, ask func() error) {
	t.Helper()
	err := ask()
	for try := 0; err != nil && try < 3; try++ {
		time.Sleep(100 * time.Millisecond)
		err = ask()
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
