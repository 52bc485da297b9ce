package oidc_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// issuer is a provider that a test can make lie: each field that is set
// changes what it says.
type issuer struct {
	*httptest.Server
	mu     sync.Mutex
	keys   map[string]*rsa.PrivateKey // published
	signs  string                     // id of the key that signs
	key    *rsa.PrivateKey
	codes  map[string]url.Values // what was asked for, by code
	taken  int                   // codes that were exchanged
	reuse  bool                  // a code is taken twice
	claims map[string]any        // beside, or in place of, what is true
	head   map[string]any        // of the token
	meta   map[string]any        // of discovery
	info   map[string]any        // userinfo; nil: there is none
	answer url.Values            // of the redirect, in place of what is true
	raw    string                // a token of another's making
	down   bool
}

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// firstKey is the key of every issuer at first: making one takes its time.
var firstKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	p := &issuer{codes: map[string]url.Values{}, claims: map[string]any{}, meta: map[string]any{}, head: map[string]any{}}
	p.key, p.signs = firstKey(), "one"
	p.keys = map[string]*rsa.PrivateKey{"one": p.key}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /keys", p.jwks)
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, r *http.Request) { reply(w, p.info) })
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.down {
			http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// set changes what the issuer says.
func (p *issuer) set(f func(*issuer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func (p *issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	meta := map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"}, "end_session_endpoint": p.URL + "/end?ui=1"}
	if p.info != nil {
		meta["userinfo_endpoint"] = p.URL + "/userinfo"
	}
	maps.Copy(meta, p.meta)
	reply(w, meta)
}

func (p *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	code := rand.Text()
	p.codes[code] = q
	answer := url.Values{"state": {q.Get("state")}, "code": {code}}
	maps.Copy(answer, p.answer)
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
}

func (p *issuer) token(w http.ResponseWriter, r *http.Request) {
	code := r.PostFormValue("code")
	asked, ok := p.codes[code]
	id, secret, _ := r.BasicAuth()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || id != "ringi" || secret != "hush" || asked.Get("code_challenge_method") != "S256" ||
		asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("redirect_uri") != r.PostFormValue("redirect_uri") {
		w.WriteHeader(http.StatusBadRequest)
		reply(w, map[string]string{"error": "invalid_grant"})
		return
	}
	if !p.reuse {
		delete(p.codes, code)
	}
	p.taken++
	now := time.Now()
	claims := map[string]any{"iss": p.URL, "aud": "ringi", "sub": "ana", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "nonce": asked.Get("nonce"),
		"name": "Ana Example", "groups": []string{"approvers"}}
	maps.Copy(claims, p.claims)
	raw := p.raw
	if raw == "" {
		raw = p.sign(claims)
	}
	reply(w, map[string]any{"access_token": "at", "token_type": "Bearer", "expires_in": 60, "id_token": raw})
}

func (p *issuer) sign(claims map[string]any) string {
	head := map[string]any{"alg": "RS256", "kid": p.signs, "typ": "JWT"}
	maps.Copy(head, p.head)
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(head) + "." + part(claims)
	if head["alg"] == "none" {
		return signed + "."
	}
	sum := sha256.Sum256([]byte(signed))
	sig, err := rsa.SignPKCS1v15(nil, p.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func (p *issuer) jwks(w http.ResponseWriter, _ *http.Request) {
	var keys []map[string]string
	for id, key := range p.keys {
		keys = append(keys, map[string]string{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": id,
			"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())})
	}
	reply(w, map[string]any{"keys": keys})
}

func (p *issuer) String() string { return fmt.Sprintf("issuer %s", p.URL) }
