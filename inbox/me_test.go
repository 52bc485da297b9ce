package inbox_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"image/png"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	_ "time/tzdata"

	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/inbox"
	"github.com/ringi-dev/ringi/notify"
)

const (
	somePoint = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4" // of RFC 8291
	someAuth  = "BTBZMqHH6r4Tts7J_aSIgg"
)

// withNotices is a house that reaches people.
func withNotices(t testing.TB, o *houseOptions, change func(*inbox.Notices)) *notify.Book {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "notify.db")+"?"+notify.SQLiteParams)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	book, err := notify.Open(t.Context(), db, notify.BookOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := &inbox.Notices{Book: book, Mail: true, Ntfy: true, PushKey: somePoint}
	if change != nil {
		change(n)
	}
	o.inbox = func(opt *inbox.Options) { opt.Notices = n }
	return book
}

// Everything but this device's subscription works with forms alone.
func TestSettingsAsForms(t *testing.T) {
	o := houseOptions{idle: true}
	book := withNotices(t, &o, func(n *inbox.Notices) {
		n.Try = func(_ context.Context, user string) ([]notify.Tried, error) {
			return []notify.Tried{{Channel: notify.ChannelMail, Name: user}, {Channel: notify.ChannelNtfy, Name: "<b>", Err: errors.New("ntfy: the server says 503")}}, nil
		}
	})
	h := newHouse(t, o)
	ana := h.add("Ana", access.RoleUser, access.RoleApprover)
	b := h.browser(ana)
	b.open("/").want(200, "Notices")
	b.open("/me").want(200, "How you are reached", "Notices on this device need JavaScript", "empty: no mail")
	b.send("/me", nil, "mail", "ana@example.org", "topic", "topic-of-ana", "digest", "every", "minutes", "15", "quiet_from", "20:00", "quiet_to", "07:00", "zone", "Europe/Berlin").
		want(200, "A mail with a code is on its way", "The code from the mail to ana@example.org")
	s, err := book.Settings(t.Context(), ana)
	want := notify.Settings{Mail: "ana@example.org", Topic: "topic-of-ana", Digest: notify.Every, Minutes: 15, QuietFrom: 20 * 60, QuietTo: 7 * 60, Zone: "Europe/Berlin"}
	if err != nil || s != want {
		t.Fatalf("kept %+v %v", s, err)
	}
	for _, value := range []string{`value="20:00"`, `value="07:00"`, `value="15"`, `value="Europe/Berlin"`, `value="topic-of-ana"`, `<option value="every" selected>`} {
		if !strings.Contains(b.page, value) {
			t.Errorf("the page does not show %s", value)
		}
	}
	b.send("/me/confirm", nil, "code", "0000000000").want(422, "This is not the code")
	for _, c := range []struct{ name, value, says string }{
		{"mail", "ana", "is no mail address"}, {"topic", "a b", "The topic has"}, {"minutes", "", "The minutes are no number"}, {"minutes", "0", "every 1 to 1440 minutes"},
		{"quiet_to", "", "a beginning and an end"}, {"quiet_from", "8pm", "is no time of day"}, {"zone", "Mars/Olympus", "There is no time zone"}, {"digest", "<script>", "Unknown digest"},
	} {
		b.open("/me").send("/me", nil, c.name, c.value)
		if text := strings.ToLower(words(b.page)); b.status != 422 || !strings.Contains(text, strings.ToLower(c.says)) {
			t.Errorf("%s %q: %d %s", c.name, c.value, b.status, text)
		}
	}
	if s, err := book.Settings(t.Context(), ana); err != nil || s != want {
		t.Errorf("a refused form changed %+v %v", s, err)
	}
	b.open("/me").send("/me", nil, "digest", "daily", "at", "08:30", "quiet_from", "", "quiet_to", "").want(200, "A mail with a code")
	if s, err := book.Settings(t.Context(), ana); err != nil || s.Digest != notify.Daily || s.At != 510 || s.QuietFrom != s.QuietTo || s.NoPush {
		t.Errorf("kept %+v %v", s, err)
	}
	b.open("/me").send("/me/test", nil).want(200, "The test", "mail (local:ana): sent", "ntfy (<b>): not sent. ntfy: the server says 503")
	if strings.Contains(b.page, "<b>") {
		t.Error("a name is markup")
	}
}

func TestDevicesOfABrowser(t *testing.T) {
	o := houseOptions{idle: true}
	book := withNotices(t, &o, nil)
	h := newHouse(t, o)
	ana, ben := h.add("Ana", access.RoleApprover), h.add("Ben", access.RoleApprover)
	b := h.browser(ana).open("/me")
	_, form := b.form("/me", nil)
	post := func(change ...string) *browser {
		v := url.Values{"csrf": form["csrf"], "endpoint": {"https://push.example.org/SECRET-1"}, "p256dh": {somePoint}, "auth": {someAuth}}
		for i := 0; i < len(change); i += 2 {
			v.Set(change[i], change[i+1])
		}
		return b.post("/me/device", v)
	}
	post("endpoint", "http://169.254.169.254/").want(422)
	post("endpoint", "javascript:alert(1)").want(422)
	post("p256dh", "AAAA").want(422)
	post("csrf", "forged").want(403)
	post().want(200, "This device will be notified", "Devices that are notified", "since ")
	if strings.Contains(b.page, "SECRET-1") {
		t.Error("the page shows an endpoint")
	}
	list, err := book.Devices(t.Context(), ana)
	if err != nil || len(list) != 1 || list[0].Endpoint != "https://push.example.org/SECRET-1" {
		t.Fatal(list, err)
	}
	other := h.browser(ben).open("/me")
	_, form = other.form("/me", nil)
	other.post("/me/device/remove", url.Values{"csrf": form["csrf"], "id": {list[0].ID}}).want(200)
	if list, err = book.Devices(t.Context(), ana); err != nil || len(list) != 1 {
		t.Error("somebody else removed a device", err)
	}
	b.open("/me").send("/me/device/remove", nil).want(200, "The device is forgotten")
	if list, err = book.Devices(t.Context(), ana); err != nil || len(list) != 0 {
		t.Error("the device is still there", err)
	}
	if strings.Contains(h.logged.String(), "SECRET") {
		t.Errorf("logged: %s", h.logged)
	}
}

func TestPageCanBeInstalled(t *testing.T) {
	o := houseOptions{idle: true}
	withNotices(t, &o, nil)
	h := newHouse(t, o)
	b := h.browser("")
	b.open("/manifest.webmanifest").want(200)
	var m struct {
		Name, Display, Scope string
		StartURL             string `json:"start_url"`
		Icons                []struct{ Src, Sizes, Type, Purpose string }
	}
	if err := json.Unmarshal([]byte(b.page), &m); err != nil || b.head.Get("Content-Type") != "application/manifest+json" {
		t.Fatal(err, b.head)
	}
	if m.Name != "Ringi" || m.Display != "standalone" || m.StartURL != "/" || m.Scope != "/" || len(m.Icons) != 4 {
		t.Errorf("manifest %+v", m)
	}
	for _, icon := range m.Icons {
		b.open(icon.Src).want(200)
		if b.head.Get("Content-Type") != icon.Type {
			t.Errorf("%s is %s", icon.Src, b.head.Get("Content-Type"))
		}
		if icon.Type != "image/png" {
			continue
		}
		img, err := png.Decode(bytes.NewReader([]byte(b.page)))
		if err != nil || icon.Sizes != "192x192" && icon.Sizes != "512x512" || img.Bounds().Dx() != map[string]int{"192x192": 192, "512x512": 512}[icon.Sizes] {
			t.Errorf("%s: %v", icon.Src, err)
		}
		_, _, _, corner := img.At(0, 0).RGBA()
		if (corner != 0) != (icon.Purpose == "maskable") {
			t.Errorf("%s: the corner's alpha is %d", icon.Src, corner)
		}
	}
	b.open("/sw.js").want(200)
	if b.head.Get("Content-Type") != "text/javascript; charset=utf-8" || b.head.Get("Cache-Control") != "no-cache" || !strings.Contains(b.head.Get("Content-Security-Policy"), "worker-src 'self'") {
		t.Errorf("headers %v", b.head)
	}
	b.open("/app-icon/evil.png").want(404)
	b.open("/me").want(200, "Log in")
}

// Without a way to reach people there is no page, and no link to it.
func TestNoNotices(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	b := h.browser(h.add("Ana", access.RoleApprover))
	b.open("/me").want(404)
	b.open("/")
	if strings.Contains(b.page, `href="/me"`) {
		t.Error("the list links to it")
	}
	for _, path := range []string{"/me", "/me/confirm", "/me/test", "/me/device", "/me/device/remove"} {
		_, form := b.form("/logout", nil)
		if b.post(path, url.Values{"csrf": form["csrf"]}); b.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, b.status)
		}
		b.open("/")
	}
}

// What is not there is not asked for, and what it had set stays.
func TestChannelsThatAreNotThere(t *testing.T) {
	o := houseOptions{idle: true}
	book := withNotices(t, &o, func(n *inbox.Notices) { n.Mail, n.Ntfy, n.PushKey = true, false, "" })
	h := newHouse(t, o)
	ana := h.add("Ana", access.RoleApprover)
	if err := book.SetSettings(t.Context(), ana, notify.Settings{Topic: "topic-of-ana"}); err != nil {
		t.Fatal(err)
	}
	b := h.browser(ana).open("/me")
	if strings.Contains(b.page, "this-device") || strings.Contains(b.page, `name="topic"`) {
		t.Error("a channel that is not there is offered")
	}
	b.send("/me", nil, "mail", "ana@example.org").want(200, "A mail with a code")
	if s, err := book.Settings(t.Context(), ana); err != nil || s.Topic != "topic-of-ana" || s.NoPush {
		t.Errorf("kept %+v %v", s, err)
	}
}
