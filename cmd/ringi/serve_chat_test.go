//go:build unix

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ringi-dev/ringi/access"
)

// shopLogin is another site's login: it publishes a key and gives tokens (RFC
// 7515, ES256).
type shopLogin struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

func newShopLogin(t *testing.T) *shopLogin {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	l := &shopLogin{key: key}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"kty":"EC","crv":"P-256","kid":"k","alg":"ES256","use":"sig","x":%q,"y":%q}]}`, enc(pub[1:33]), enc(pub[33:]))
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *shopLogin) token(t *testing.T, user string) string {
	t.Helper()
	enc := base64.RawURLEncoding.EncodeToString
	text := enc([]byte(`{"alg":"ES256","kid":"k"}`)) + "." + enc(fmt.Appendf(nil, `{"iss":"https://shop.example","aud":"ringi","sub":%q,"exp":%d}`, user, time.Now().Add(time.Hour).Unix()))
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, l.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	sig := make([]byte, 64)
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return text + "." + enc(sig)
}

// chat sends one request as a page of the shop does.
func (s *serving) chat(method, path, token string, body any) (int, string) {
	s.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequest(method, s.url+"/v1/chat/shop"+path, bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Origin", "https://shop.example")
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := (&http.Client{Timeout: 90 * time.Second}).Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// A page of a shop chats with an agent of the server: its own login says who its
// users are. The server is killed while a refund waits, and the answer comes to
// its successor. Who is not named decides nothing.
func TestServeChat(t *testing.T) {
	login := newShopLogin(t)
	p := newMachine(t)
	p.write("config/ringi/ringi.yaml", `
chat:
  serve: on
  origins: ["https://shop.example"]
  identity: {issuer: "https://shop.example", jwks: "`+login.URL+`", audience: ringi}
agents:
  - name: shop
    zone: local
    model: {kind: demo}
    tools: {set: shop}
    deciders: {people: ["https://shop.example#ana"]}
`)
	s := p.serve()
	user := map[string]any{"id": "m1", "role": "user", "parts": []any{map[string]any{"type": "text", "text": "My lamp arrived broken."}}}
	ask := map[string]any{"id": "c1", "messages": []any{user}, "trigger": "submit-message"}
	if code, text := s.chat("POST", "", "", ask); code != 401 {
		t.Errorf("without a token: %d %s", code, text)
	}
	ana, eve := login.token(t, "ana"), login.token(t, "eve")
	code, text := s.chat("POST", "", eve, ask)
	if code != 200 || strings.Contains(text, "tool-approval-request") || strings.Contains(text, "arrived broken") || !strings.Contains(text, `"here":false`) {
		t.Errorf("eve, who is not named: %d\n%s", code, text)
	}
	code, text = s.chat("POST", "", ana, ask)
	if code != 200 || !strings.Contains(text, "tool-approval-request") || !strings.Contains(text, `"signature":"r1.`) {
		t.Fatalf("ana: %d\n%s", code, text)
	}
	s.cmd.Process.Kill()
	s.cmd.Wait()

	s = p.serve()
	_, text = s.chat("GET", "/c1/messages", ana, nil)
	var messages []map[string]any
	if err := json.Unmarshal([]byte(text), &messages); err != nil {
		t.Fatalf("messages %s: %v", text, err)
	}
	for _, part := range messages[1]["parts"].([]any) {
		if part := part.(map[string]any); part["state"] == "approval-requested" {
			part["state"] = "approval-responded"
			part["approval"].(map[string]any)["approved"] = true
		}
	}
	code, text = s.chat("POST", "", ana, map[string]any{"id": "c1", "messages": messages, "trigger": "submit-message"})
	if code != 200 || !strings.Contains(text, "tool-output-available") || !strings.Contains(text, `"finishReason":"stop"`) {
		t.Errorf("after the kill: %d\n%s", code, text)
	}

	// Somebody whom this server knows and has disabled chats no more, whatever the
	// shop says of him.
	d, err := openDirectory(t.Context(), filepath.Join(p.dir, "state/ringi", accessFile), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if err := d.AddUser(t.Context(), operator(), access.User{ID: "https://shop.example#ana", Name: "Ana", Roles: []access.Role{access.RoleApprover}}); err != nil {
		t.Fatal(err)
	}
	if code, text := s.chat("GET", "/c1/messages", ana, nil); code != 200 {
		t.Errorf("ana, who is known: %d %s", code, text)
	}
	if err := d.SetUser(t.Context(), operator(), access.User{ID: "https://shop.example#ana", Name: "Ana", Roles: []access.Role{access.RoleApprover}, Disabled: true}); err != nil {
		t.Fatal(err)
	}
	if code, text := s.chat("GET", "/c1/messages", ana, nil); code != 401 {
		t.Errorf("ana, who is disabled: %d %s", code, text)
	}
	s.stop(syscall.SIGTERM)
}

func TestChatConfig(t *testing.T) {
	for name, c := range map[string]struct{ yaml, says string }{
		"half an identity":   {`chat: {serve: on, identity: {issuer: a}}`, "belong together"},
		"set up, not served": {`chat: {origins: ["https://a"]}`, "chat.serve: on"},
		"an unknown word":    {`chat: {serve: on, show: some}`, "chat.show"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newMachine(t)
			p.write("config/ringi/ringi.yaml", c.yaml+oneAgent)
			if _, err := p.read(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("config gives %v, want %q", err, c.says)
			}
		})
	}
}
