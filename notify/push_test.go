package notify

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func raw64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The example of RFC 8291, section 5 and appendix A.
func TestPushIsTheRFCsExample(t *testing.T) {
	device := Device{
		P256DH: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
		Auth:   "BTBZMqHH6r4Tts7J_aSIgg",
	}
	ours, err := ecdh.P256().NewPrivateKey(raw64(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := encryptWith(device, []byte("When I grow up, I want to be a watermelon"), ours, [16]byte(raw64(t, "DGv6ra1nlYgDCS1FRnbzlw")))
	if err != nil {
		t.Fatal(err)
	}
	const want = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if s := base64.RawURLEncoding.EncodeToString(got); s != want {
		t.Errorf("encrypted\n%s, want\n%s", s, want)
	}
}

// browserKeys are a browser's side of a subscription.
type browserKeys struct {
	private *ecdh.PrivateKey
	auth    []byte
}

func newBrowserKeys(t testing.TB) *browserKeys {
	t.Helper()
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	auth := make([]byte, 16)
	rand.Read(auth)
	return &browserKeys{private, auth}
}

func (b *browserKeys) device(endpoint, name string) Device {
	return Device{Name: name, Endpoint: endpoint, P256DH: base64.RawURLEncoding.EncodeToString(b.private.PublicKey().Bytes()),
		Auth: base64.RawURLEncoding.EncodeToString(b.auth)}
}

// decrypt is the browser's side, read off RFC 8188 and RFC 8291.
func (b *browserKeys) decrypt(body []byte) ([]byte, error) {
	if len(body) < 86 || body[20] != 65 {
		return nil, errors.New("no header")
	}
	salt, size, theirs := body[:16], binary.BigEndian.Uint32(body[16:20]), body[21:86]
	if int(size) < len(body)-86 {
		return nil, errors.New("more than a record")
	}
	point, err := ecdh.P256().NewPublicKey(theirs)
	if err != nil {
		return nil, err
	}
	shared, err := b.private.ECDH(point)
	if err != nil {
		return nil, err
	}
	prk, err := hkdf.Extract(sha256.New, shared, b.auth)
	if err != nil {
		return nil, err
	}
	ikm, _ := hkdf.Expand(sha256.New, prk, "WebPush: info\x00"+string(b.private.PublicKey().Bytes())+string(theirs), 32)
	prk, _ = hkdf.Extract(sha256.New, ikm, salt)
	key, _ := hkdf.Expand(sha256.New, prk, "Content-Encoding: aes128gcm\x00", 16)
	nonce, _ := hkdf.Expand(sha256.New, prk, "Content-Encoding: nonce\x00", 12)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	open, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	text, err := open.Open(nil, nonce, body[86:], nil)
	if err != nil {
		return nil, err
	}
	text = []byte(strings.TrimRight(string(text), "\x00"))
	if len(text) == 0 || text[len(text)-1] != 2 {
		return nil, errors.New("no end")
	}
	return text[:len(text)-1], nil
}

// pushService is a push service that keeps what it is sent.
type pushService struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string][][]byte
	heads  []http.Header
	status int
}

func newPushService(t testing.TB) *pushService {
	p := &pushService{bodies: map[string][][]byte{}, status: http.StatusCreated}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.heads = append(p.heads, r.Header)
		p.bodies[r.URL.Path] = append(p.bodies[r.URL.Path], body)
		w.WriteHeader(p.status)
		io.WriteString(w, "SECRET of the push service")
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *pushService) take(path string) [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.bodies[path]
	delete(p.bodies, path)
	return out
}

func (p *pushService) answer(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = status
}

func TestPush(t *testing.T) {
	service, keys := newPushService(t), newBrowserKeys(t)
	key, text, err := NewPushKey()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParsePushKey(text); err != nil || again.Public() != key.Public() {
		t.Fatal("the key is not what its file holds", err)
	}
	h := newHouse(t, nil)
	push, err := NewPush(PushOptions{Key: key, Contact: "mailto:ops@example.org", Client: service.Client()})
	if err != nil {
		t.Fatal(err)
	}
	h.o.Channels[ChannelPush] = push
	h.restart()
	ana := h.add("ana", Settings{Topic: "topic-of-ana"})
	for _, name := range []string{"phone", "desk"} {
		if err := h.book.AddDevice(t.Context(), ana, keys.device(service.URL+"/for/"+name, name)); err != nil {
			t.Fatal(err)
		}
	}
	res := h.asks("local:cho")
	h.step()
	for _, name := range []string{"phone", "desk"} {
		list := service.take("/for/" + name)
		if len(list) != 1 {
			t.Fatalf("%s got %d messages", name, len(list))
		}
		plain, err := keys.decrypt(list[0])
		if err != nil {
			t.Fatal(err)
		}
		var m pushMessage
		if err := json.Unmarshal(plain, &m); err != nil {
			t.Fatal(err)
		}
		if m.Title != "A request needs your decision" || m.URL != "https://ringi.example.org/a/"+res.Pending[0].ID || m.Tag != res.RunID || !strings.Contains(m.Body, "Agent: office") {
			t.Errorf("message %+v", m)
		}
	}
	head := service.heads[0]
	if head.Get("Content-Encoding") != "aes128gcm" || head.Get("TTL") != "86400" || head.Get("Urgency") != "normal" {
		t.Errorf("headers %v", head)
	}
	checkVAPID(t, head.Get("Authorization"), service.URL, key)

	service.answer(http.StatusServiceUnavailable)
	h.asks("local:cho")
	h.step()
	if d, err := h.book.Devices(t.Context(), ana); err != nil || len(d) != 2 {
		t.Errorf("a service that is down costs devices: %d %v", len(d), err)
	}
	service.answer(http.StatusGone)
	h.clock.on(time.Minute)
	h.step()
	if d, err := h.book.Devices(t.Context(), ana); err != nil || len(d) != 0 {
		t.Errorf("devices that are gone stay: %d %v", len(d), err)
	}
	if s := h.logged.String() + h.rows(); strings.Contains(s, "SECRET") || strings.Contains(h.logged.String(), "/for/phone") {
		t.Errorf("what a push service said, or where it is, is kept:\n%s", s)
	}
}

// checkVAPID checks the header as a push service does (RFC 8292).
func checkVAPID(t *testing.T, header, audience string, key *PushKey) {
	t.Helper()
	rest, ok := strings.CutPrefix(header, "vapid t=")
	token, public, ok2 := strings.Cut(rest, ", k=")
	parts := strings.Split(token, ".")
	if !ok || !ok2 || len(parts) != 3 || public != key.Public() {
		t.Fatalf("authorization %q", header)
	}
	sig, sum := raw64(t, parts[2]), sha256.Sum256([]byte(parts[0]+"."+parts[1]))
	point := raw64(t, public)
	pub, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Fatal(err)
	}
	if len(sig) != 64 || !ecdsa.Verify(pub, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		t.Error("the signature does not verify")
	}
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if err := json.Unmarshal(raw64(t, parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(time.Unix(claims.Exp, 0)); claims.Aud != audience || claims.Sub != "mailto:ops@example.org" || left <= 0 || left > 24*time.Hour {
		t.Errorf("claims %+v", claims)
	}
	if s := fmt.Sprintf("%v %+v %#v", key, key, key); strings.Count(s, key.Public()) != 3 || strings.Contains(s, "private") {
		t.Errorf("a key prints as %s", s)
	}
}

func TestDeviceCheck(t *testing.T) {
	good := newBrowserKeys(t).device("https://push.example.org/abc", "phone")
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Device){
		"http":          func(d *Device) { d.Endpoint = "http://push.example.org/abc" },
		"a file":        func(d *Device) { d.Endpoint = "file:///etc/passwd" },
		"a user":        func(d *Device) { d.Endpoint = "https://u:p@push.example.org/" },
		"no host":       func(d *Device) { d.Endpoint = "https:///abc" },
		"empty":         func(d *Device) { d.Endpoint = "" },
		"long":          func(d *Device) { d.Endpoint += strings.Repeat("a", 3000) },
		"no point":      func(d *Device) { d.P256DH = base64.RawURLEncoding.EncodeToString(make([]byte, 65)) },
		"half a point":  func(d *Device) { d.P256DH = d.P256DH[:40] },
		"short auth":    func(d *Device) { d.Auth = "AAAA" },
		"auth no code":  func(d *Device) { d.Auth = "!!" },
		"a long name":   func(d *Device) { d.Name = strings.Repeat("n", 201) },
		"infinity":      func(d *Device) { d.P256DH = "AA" },
		"no key at all": func(d *Device) { d.P256DH = "" },
	} {
		d := good
		change(&d)
		if err := d.Check(); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDevices(t *testing.T) {
	h := newHouse(t, nil)
	ana, ben := h.add("ana", Settings{}), h.add("ben", Settings{})
	keys := newBrowserKeys(t)
	for i := range maxDevices + 5 {
		h.clock.on(time.Second)
		if err := h.book.AddDevice(t.Context(), ana, keys.device(fmt.Sprintf("https://push.example.org/%d", i), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	list, err := h.book.Devices(t.Context(), ana)
	if err != nil || len(list) != maxDevices || list[0].Name != "5" {
		t.Fatalf("%d devices, the first %q, %v", len(list), list[0].Name, err)
	}
	// The same browser in another's hands is the other's.
	if err := h.book.AddDevice(t.Context(), ben, keys.device("https://push.example.org/9", "now Ben's")); err != nil {
		t.Fatal(err)
	}
	mine, err := h.book.Devices(t.Context(), ben)
	if err != nil || len(mine) != 1 {
		t.Fatal(mine, err)
	}
	if err := h.book.RemoveDevice(t.Context(), ana, mine[0].ID); err != nil {
		t.Fatal(err)
	}
	if mine, err = h.book.Devices(t.Context(), ben); err != nil || len(mine) != 1 {
		t.Error("somebody else's device was removed", err)
	}
	if list, err = h.book.Devices(t.Context(), ana); err != nil || len(list) != maxDevices-1 {
		t.Error(len(list), err)
	}
}

func TestPushTooLong(t *testing.T) {
	d := newBrowserKeys(t).device("https://push.example.org/", "x")
	if _, err := encryptPush(d, make([]byte, maxPush+1)); err == nil {
		t.Error("a message that does not fit is encrypted")
	}
	body, err := encryptPush(d, make([]byte, maxPush))
	if err != nil || len(body) != 4096 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

func TestNtfy(t *testing.T) {
	var got []ntfyMessage
	var status int
	var auth string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m ntfyMessage
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || r.Method != "POST" || r.URL.Path != "/" {
			t.Errorf("%s %s %v", r.Method, r.URL, err)
		}
		got, auth = append(got, m), r.Header.Get("Authorization")
		if status == http.StatusFound {
			http.Redirect(w, r, "/elsewhere", status)
			return
		}
		w.WriteHeader(status)
		io.WriteString(w, "SECRET")
	}))
	defer server.Close()
	n, err := NewNtfy(NtfyOptions{URL: server.URL + "/", Token: "tk_abc"})
	if err != nil {
		t.Fatal(err)
	}
	notice := Notice{Kind: Asked, Waiting: 2, Agent: "office", Risk: RiskOnce, Link: "https://ringi.example.org/run/run_1", To: Recipient{Topic: "topic-of-ana"}}
	for s, want := range map[int]error{200: nil, 429: errAny, 500: errAny, 503: errAny, 401: errAny, 403: errAny, 400: ErrRefused, 413: ErrRefused, 302: ErrRefused, 404: ErrGone} {
		status = s
		err := n.Notify(t.Context(), notice)
		switch {
		case want == nil && err == nil:
		case want == errAny && err != nil && !errors.Is(err, ErrRefused) && !errors.Is(err, ErrGone):
		case want != nil && errors.Is(err, want):
		default:
			t.Errorf("status %d: %v", s, err)
		}
		if err != nil && (strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "topic-of-ana")) {
			t.Errorf("status %d tells %v", s, err)
		}
	}
	if m := got[0]; auth != "Bearer tk_abc" || m.Topic != "topic-of-ana" || m.Click != notice.Link || m.Priority != 3 || m.Title != "2 requests need your decision" {
		t.Errorf("message %+v, authorization %q", m, auth)
	}
	status, notice.Urgent = 200, true
	if err := n.Notify(t.Context(), notice); err != nil || got[len(got)-1].Priority != 4 {
		t.Errorf("urgent: %+v %v", got[len(got)-1], err)
	}
	notice.To.Topic = "../admin"
	if err := n.Notify(t.Context(), notice); !errors.Is(err, ErrRefused) {
		t.Errorf("another path: %v", err)
	}
	notice.To.Topic = "topic-of-ana"
	server.Close()
	if err := n.Notify(t.Context(), notice); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("a server that is down: %v", err)
	}
	for _, bad := range []NtfyOptions{{}, {URL: "ftp://x"}, {URL: "https://u:p@x"}, {URL: "https://x?topic=y"}, {URL: "https://x", Token: "a\r\nb"}} {
		if _, err := NewNtfy(bad); err == nil {
			t.Errorf("%q is taken", bad.URL)
		}
	}
}

var errAny = errors.New("any")
