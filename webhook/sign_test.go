package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	official "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func secrets(t testing.TB, texts ...string) []Secret {
	t.Helper()
	s, err := ParseSecrets(strings.Join(texts, " "))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The vector that the libraries of Standard Webhooks share.
const (
	vectorSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorID     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorTime   = 1614265330
	vectorBody   = `{"test": 2432232314}`
	vectorSigned = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

func TestPublishedVector(t *testing.T) {
	h := http.Header{}
	Sign(h, secrets(t, vectorSecret), vectorID, time.Unix(vectorTime, 0), []byte(vectorBody))
	for name, want := range map[string]string{"webhook-id": vectorID, "webhook-timestamp": "1614265330", "webhook-signature": vectorSigned} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if err := Verify(h, secrets(t, vectorSecret), time.Unix(vectorTime, 0), []byte(vectorBody)); err != nil {
		t.Error(err)
	}
}

// The official library takes what we sign, and we take what it signs.
func TestOfficialLibraryAgrees(t *testing.T) {
	for i, body := range []string{"", "{}", vectorBody, "a\x00b.c", strings.Repeat("é", 9000)} {
		text := NewSecret()
		theirs, err := official.NewWebhook(text)
		if err != nil {
			t.Fatal(err)
		}
		id, now := fmt.Sprintf("msg_%d", i), time.Now()
		h := http.Header{}
		Sign(h, secrets(t, NewSecret(), text), id, now, []byte(body))
		if err := theirs.Verify([]byte(body), h); err != nil {
			t.Errorf("%q: they refuse ours: %v", body, err)
		}
		signed, err := theirs.Sign(id, now, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		h.Set(HeaderSignature, "v1a,AAAA v1,! "+signed)
		if err := Verify(h, secrets(t, text), now, []byte(body)); err != nil {
			t.Errorf("%q: we refuse theirs: %v", body, err)
		}
	}
}

func TestVerifyRefuses(t *testing.T) {
	now := time.Unix(vectorTime, 0)
	for name, spoil := range map[string]func(h http.Header, body *string, now *time.Time){
		"body":         func(_ http.Header, body *string, _ *time.Time) { *body += " " },
		"id":           func(h http.Header, _ *string, _ *time.Time) { h.Set(HeaderID, "msg_2") },
		"no id":        func(h http.Header, _ *string, _ *time.Time) { h.Del(HeaderID) },
		"timestamp":    func(h http.Header, _ *string, _ *time.Time) { h.Set(HeaderTimestamp, "1614265331") },
		"no timestamp": func(h http.Header, _ *string, _ *time.Time) { h.Del(HeaderTimestamp) },
		"odd time":     func(h http.Header, _ *string, _ *time.Time) { h.Set(HeaderTimestamp, "1614265330.0") },
		"no signature": func(h http.Header, _ *string, _ *time.Time) { h.Del(HeaderSignature) },
		"version":      func(h http.Header, _ *string, _ *time.Time) { h.Set(HeaderSignature, "v2"+vectorSigned[2:]) },
		"cut":          func(h http.Header, _ *string, _ *time.Time) { h.Set(HeaderSignature, vectorSigned[:20]) },
		"empty":        func(h http.Header, _ *string, _ *time.Time) { h.Set(HeaderSignature, "v1,") },
		"late":         func(_ http.Header, _ *string, now *time.Time) { *now = now.Add(Tolerance + time.Second) },
		"early":        func(_ http.Header, _ *string, now *time.Time) { *now = now.Add(-Tolerance - time.Second) },
	} {
		h, body, at := http.Header{}, vectorBody, now
		Sign(h, secrets(t, vectorSecret), vectorID, now, []byte(body))
		spoil(h, &body, &at)
		if err := Verify(h, secrets(t, vectorSecret), at, []byte(body)); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := http.Header{}
	Sign(h, secrets(t, NewSecret()), vectorID, now, []byte(vectorBody))
	if err := Verify(h, secrets(t, vectorSecret), now, []byte(vectorBody)); !errors.Is(err, ErrSignature) {
		t.Errorf("another secret: %v", err)
	}
}

// While a secret is exchanged both sign: a receiver that knows either is served.
func TestRotation(t *testing.T) {
	older, newer, now := NewSecret(), NewSecret(), time.Now()
	h := http.Header{}
	Sign(h, secrets(t, newer+",\n"+older), "msg_1", now, []byte("{}"))
	if n := len(strings.Fields(h.Get(HeaderSignature))); n != 2 {
		t.Fatalf("%d signatures", n)
	}
	for _, known := range []string{older, newer, older + " " + newer} {
		if err := Verify(h, secrets(t, known), now, []byte("{}")); err != nil {
			t.Error(err)
		}
	}
	if err := Verify(h, secrets(t, NewSecret()), now, []byte("{}")); err == nil {
		t.Error("a third secret is taken")
	}
}

func TestSecretsAreStrict(t *testing.T) {
	sized := func(n int) string {
		return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("q", n)))
	}
	for _, ok := range []string{sized(24), sized(64), sized(32) + "\n", sized(24) + "," + sized(25) + " " + sized(26)} {
		if _, err := ParseSecrets(ok); err != nil {
			t.Errorf("%v", err)
		}
	}
	for _, bad := range []string{"", " \n", sized(23), sized(65), "cXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXE=", "WHSEC_" + sized(32)[6:], "whsk_" + sized(32)[6:],
		strings.TrimRight(sized(32), "="), "whsec_qq-_qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq=", strings.Repeat(sized(32)+" ", 6)} {
		_, err := ParseSecrets(bad)
		if err == nil || strings.Contains(err.Error(), "cXFx") || strings.Contains(err.Error(), "qqqq") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	s := secrets(t, vectorSecret)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "s", s[0], "all", s)
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %x %q", s[0], s[0], s[0], s[0], s[0], s[0]), log.String()} {
		if strings.Contains(text, "MfKQ") || strings.Contains(text, "1\xf2\x90") || strings.Contains(strings.ToLower(text), "31f290") || strings.Contains(text, "49 242 144") {
			t.Errorf("shown: %s", text)
		}
	}
}
