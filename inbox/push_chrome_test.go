//go:build !race

package inbox_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/inbox"
	"github.com/ringi-dev/ringi/notify"
)

// A person subscribes on his device, a request comes up, the push service gets a
// message that this browser alone can read, the service worker shows it, and a
// click opens the request. The browser's vendor is a stub: it alone is not here.
func TestBrowserPush(t *testing.T) {
	chromium := chrome(t)
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) { pushOn(t, chromium, s) })
	}
}

func pushOn(t *testing.T, chromium context.Context, s screen) {
	got := make(chan []byte, 10)
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		got <- body
	}))
	defer service.Close()
	key, _, err := notify.NewPushKey()
	if err != nil {
		t.Fatal(err)
	}
	push, err := notify.NewPush(notify.PushOptions{Key: key, Contact: "mailto:ops@example.org", Client: service.Client()})
	if err != nil {
		t.Fatal(err)
	}
	o := houseOptions{idle: true}
	var store ringi.Store
	o.engine = func(c *engine.Config) { store = c.Store }
	var reaches *inbox.Notices
	book := withNotices(t, &o, func(n *inbox.Notices) { n.PushKey, reaches = push.PublicKey(), n })
	h := newHouse(t, o)
	d, err := notify.New(notify.Options{Book: book, Store: store, Service: h.router, Directory: h.people, PublicURL: "https://ringi.example.org",
		Channels: map[notify.Channel]notify.Notifier{notify.ChannelPush: push}, Look: 20 * time.Millisecond, Gather: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	reaches.Try = d.Try
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { d.Run(ctx); close(ended) }()
	defer func() { cancel(); <-ended }()

	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	b := h.tab(t, chromium, s).login(ana)
	b.allowNotices()
	b.open("/me")
	b.until(`!document.getElementById("device-on").hidden`)
	b.look("me")
	keys := b.stubVendor(service.URL + "/ana")
	b.click("#device-on")
	b.says("This device will be notified", "Devices that are notified", "Chrome")
	b.look("me-device")
	b.click(`form[action="/me/test"] button`)
	b.says("sent")
	if m := b.h.opened(keys, <-got); m["title"] != "Ringi can reach you here" {
		t.Errorf("test %v", m)
	}

	r := h.asks(ana, kettle)
	var text []byte
	select {
	case body := <-got:
		text = keys.open(t, body)
	case <-time.After(patience):
		t.Fatal("nothing was pushed")
	}
	if strings.Contains(string(text), "refund") || strings.Contains(string(text), "kettle") {
		t.Errorf("a notice tells what is asked: %s", text)
	}
	deliver := b.deliverer(string(text))
	const list = `navigator.serviceWorker.ready.then((r) => r.getNotifications()).then((l) => JSON.stringify(l.map((n) => ({ title: n.title, body: n.body, tag: n.tag, url: n.data.url }))))`
	var shown []struct{ Title, Body, Tag, URL string }
	begun := time.Now()
	until(t, "the notice is shown", func() bool {
		if time.Since(begun) > 0 { // a worker that has only just begun may miss one; with its tag it is shown once all the same
			deliver()
			begun = time.Now().Add(2 * time.Second)
		}
		out, err := within(b, chromedp.Evaluate[string](list, chromedp.EvalAwaitPromise))
		return err == nil && json.Unmarshal([]byte(out), &shown) == nil && len(shown) > 0
	})
	// The message names the public address; the device opens it where it is.
	if n := shown[0]; n.Title != "A request needs your decision" || n.URL != h.server.URL+"/a/"+r.ID || n.Tag != r.RunID || !strings.Contains(n.Body, "Agent: office") {
		t.Errorf("shown %+v", shown)
	}
	if to := b.clickNotice(); to != h.server.URL+"/a/"+r.ID {
		t.Errorf("a click opens %q", to)
	}
	b.open("/a/" + r.ID)
	b.says("34.90 EUR")
	b.open("/me")
	b.click(`form[action="/me/device/remove"] button`)
	b.says("The device is forgotten")
}

// allowNotices does what a person does who allows notices.
func (b *tab) allowNotices() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		c := chromedp.FromContext(ctx)
		_, err := cdp.Call(ctx, c.Browser, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{Permission: &cdpbrowser.PermissionDescriptor{Name: "notifications"},
			Setting: cdpbrowser.PermissionSettingGranted, Origin: b.h.server.URL, BrowserContextID: c.BrowserContextID})
		return err
	}))
}

type deviceKeys struct {
	private *ecdh.PrivateKey
	auth    []byte
}

// stubVendor makes the browser's push service one of the test's: what subscribe
// gives has the form that browsers give.
func (b *tab) stubVendor(endpoint string) *deviceKeys {
	b.t.Helper()
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	k := &deviceKeys{private, make([]byte, 16)}
	rand.Read(k.auth)
	ask[bool](b, `(() => {
		PushManager.prototype.subscribe = async (o) => {
			if (!o.userVisibleOnly || o.applicationServerKey.length !== 65) throw new Error("subscribed wrongly");
			return { endpoint: `+quoted(endpoint)+`, options: o, unsubscribe: async () => true, toJSON: () => ({ endpoint: `+quoted(endpoint)+`, expirationTime: null, keys: {
				p256dh: `+quoted(base64.RawURLEncoding.EncodeToString(private.PublicKey().Bytes()))+`, auth: `+quoted(base64.RawURLEncoding.EncodeToString(k.auth))+` } }) };
		};
		return true })()`)
	return k
}

// open decrypts a message as a browser does (RFC 8188, RFC 8291).
func (k *deviceKeys) open(t *testing.T, body []byte) []byte {
	t.Helper()
	theirs, err := ecdh.P256().NewPublicKey(body[21:86])
	if err != nil {
		t.Fatal(err)
	}
	shared, err := k.private.ECDH(theirs)
	if err != nil {
		t.Fatal(err)
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		out, err := hkdf.Key(sha256.New, secret, salt, info, n)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	ikm := derive(shared, k.auth, "WebPush: info\x00"+string(k.private.PublicKey().Bytes())+string(body[21:86]), 32)
	block, err := aes.NewCipher(derive(ikm, body[:16], "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	text, err := gcm.Open(nil, derive(ikm, body[:16], "Content-Encoding: nonce\x00", 12), body[86:], nil)
	if err != nil {
		t.Fatal(err)
	}
	return text[:len(text)-1]
}

func (h *house) opened(k *deviceKeys, body []byte) map[string]string {
	h.t.Helper()
	var m map[string]string
	if err := json.Unmarshal(k.open(h.t.(*testing.T), body), &m); err != nil {
		h.t.Fatal(err)
	}
	return m
}

// deliverer hands a message to the page's service worker, as the browser does
// once it has decrypted it.
func (b *tab) deliverer(text string) func() {
	b.t.Helper()
	found := make(chan serviceworker.RegistrationID, 1)
	if err := chromedp.Listen(b.ctx, func(ev any) {
		if e, ok := ev.(*serviceworker.EventWorkerRegistrationUpdated); ok {
			for _, r := range e.Registrations {
				if strings.HasPrefix(r.ScopeURL, b.h.server.URL) && !r.IsDeleted {
					select {
					case found <- r.RegistrationID:
					default:
					}
				}
			}
		}
	}); err != nil {
		b.t.Fatal(err)
	}
	var id serviceworker.RegistrationID
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, serviceworker.Enable, cdp.Empty{}); err != nil {
			return err
		}
		select {
		case id = <-found:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	return func() {
		b.t.Helper()
		b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{Origin: b.h.server.URL, RegistrationID: id, Data: text})
			return err
		}))
	}
}

// clickNotice clicks the first notice within the service worker, and reports
// where it leads. That a window opens needs a person's finger, so the last step
// is a stub.
func (b *tab) clickNotice() string {
	b.t.Helper()
	all, err := chromedp.Targets(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, info := range all {
		if info.Type != "service_worker" || !strings.HasPrefix(info.URL, b.h.server.URL) {
			continue
		}
		ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithTargetID(info.TargetID))
		defer cancel()
		to, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(async () => {
			let to = "";
			clients.openWindow = async (u) => { to = u; };
			const [n] = await registration.getNotifications();
			const e = new NotificationEvent("notificationclick", { notification: n });
			let done; e.waitUntil = (p) => { done = p; };
			dispatchEvent(e);
			await done;
			return to })()`, chromedp.EvalAwaitPromise))
		if err != nil {
			b.t.Fatal(err)
		}
		return to
	}
	b.t.Fatalf("there is no service worker among %d targets", len(all))
	return ""
}
