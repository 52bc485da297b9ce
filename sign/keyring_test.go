package sign

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// secretOf gives a secret that differs for every n, without blanks in any of its
// printed forms.
func secretOf(n, size int) []byte {
	secret := make([]byte, size)
	for i := range secret {
		sum := sha256.Sum256([]byte{byte(n), byte(i)})
		secret[i] = sum[0]
	}
	return secret
}

// testRing has one key for every number; the first signs.
func testRing(t testing.TB, numbers ...int) *Keyring {
	t.Helper()
	secrets := make([][]byte, len(numbers))
	for i, n := range numbers {
		secrets[i] = secretOf(n, 32)
	}
	ring, err := New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func b64(n, size int) string { return base64.StdEncoding.EncodeToString(secretOf(n, size)) }

func TestNew_Lengths(t *testing.T) {
	for size := range 130 {
		_, err := New(secretOf(1, size))
		if good := size >= 32 && size <= 64; (err == nil) != good {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := New(); err == nil {
		t.Error("no secret: no error")
	}
	if _, err := New(secretOf(1, 32), nil); err == nil || !strings.Contains(err.Error(), "entry 2") {
		t.Errorf("nil secret: %v", err)
	}
	if _, err := New(secretOf(1, 32), secretOf(2, 32), secretOf(1, 32)); err == nil || !strings.Contains(err.Error(), "entry 3") {
		t.Errorf("same secret twice: %v", err)
	}
}

func TestNew_KeepsNoReferenceToTheSecret(t *testing.T) {
	secret := secretOf(1, 48)
	ring, err := New(secret)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := ring.SignRequest("store", "digest")
	clear(secret)
	if after, _ := ring.SignRequest("store", "digest"); after != before {
		t.Error("clearing the caller's slice changed the key")
	}
}

func TestS19_Parse(t *testing.T) {
	cut := func(s string) string { return strings.TrimRight(s, "=") }
	url := base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{0xfb, 0xff}, 16))
	tests := []struct {
		name, text string
		keys       int    // 0: an error
		want       string // in the error
	}{
		{"32 bytes", b64(1, 32), 1, ""},
		{"33 bytes", b64(1, 33), 1, ""},
		{"64 bytes", b64(1, 64), 1, ""},
		{"two", b64(1, 32) + "," + b64(2, 64), 2, ""},
		{"three with blanks", " " + b64(1, 32) + " ,\t" + b64(2, 40) + "\r\n, " + b64(3, 64) + "\n", 3, ""},
		{"31 bytes", b64(1, 31), 0, "entry 1: 31 bytes"},
		{"65 bytes", b64(1, 65), 0, "entry 1: 65 bytes"},
		{"nothing", "", 0, "entry 1: empty"},
		{"blank", " \t\n", 0, "entry 1: empty"},
		{"comma alone", ",", 0, "entry 1: empty"},
		{"comma at the end", b64(1, 32) + ",", 0, "entry 2: empty"},
		{"comma in front", "," + b64(1, 32), 0, "entry 1: empty"},
		{"two commas", b64(1, 32) + ",," + b64(2, 32), 0, "entry 2: empty"},
		{"second is short", b64(1, 32) + "," + b64(2, 16), 0, "entry 2: 16 bytes"},
		{"passphrase", "correct horse battery staple!!", 0, "entry 1: not base64"},
		{"passphrase that is base64", "correcthorsebatterystaple1234567", 0, "entry 1: 24 bytes"},
		{"hex of 32 bytes is base64 of 48", hex.EncodeToString(secretOf(1, 32)), 1, ""},
		{"hex of 20 bytes", hex.EncodeToString(secretOf(1, 20)), 0, "entry 1: 30 bytes"},
		{"URL alphabet", url, 0, "entry 1: the URL alphabet"},
		{"unpadded", cut(b64(1, 32)), 0, "entry 1: not base64 with padding"},
		{"unpadded, two missing", cut(b64(1, 34)), 0, "entry 1: not base64 with padding"},
		{"padded too much", b64(1, 32) + "=", 0, "entry 1: not base64 with padding"},
		{"bits left over", strings.Repeat("A", 42) + "B=", 0, "entry 1: not base64 with padding"},
		{"line end inside", b64(1, 48)[:30] + "\n" + b64(1, 48)[30:], 0, "entry 1: not base64"},
		{"blank inside", b64(1, 48)[:30] + " " + b64(1, 48)[30:], 0, "entry 1: not base64"},
		{"no-break space around", "\u00a0" + b64(1, 32), 0, "entry 1: not base64"},
		{"quoted", `"` + b64(1, 32) + `"`, 0, "entry 1: not base64"},
		{"semicolon", b64(1, 32) + ";" + b64(2, 32), 0, "entry 1: not base64"},
		{"NUL at the end", b64(1, 32) + "\x00", 0, "entry 1: not base64"},
		{"duplicate", b64(1, 32) + "," + b64(2, 32) + ", " + b64(1, 32), 0, "entry 3: the same key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ring, err := Parse(tt.text)
			if tt.keys > 0 {
				if err != nil || len(ring.KeyIDs()) != tt.keys {
					t.Fatalf("got %v, %v; want %d keys", ring, err, tt.keys)
				}
				return
			}
			if err == nil || ring != nil {
				t.Fatalf("got %v, %v; want an error and no keyring", ring, err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want %q", err, tt.want)
			}
			wantNoPart(t, err.Error(), tt.text)
		})
	}
}

// wantNoPart fails where an error holds 6 or more bytes of the secret's text.
func wantNoPart(t *testing.T, message, text string) {
	t.Helper()
	for i := 0; i+6 <= len(text); i++ {
		if strings.Contains(message, text[i:i+6]) {
			t.Fatalf("the error %q shows a part of the text", message)
		}
	}
}

func TestS19_ParseIsNew(t *testing.T) {
	parsed, err := Parse(b64(1, 32) + " , " + b64(2, 32))
	if err != nil {
		t.Fatal(err)
	}
	made := testRing(t, 1, 2)
	if !slices.Equal(parsed.KeyIDs(), made.KeyIDs()) {
		t.Errorf("parsed %v, made %v", parsed.KeyIDs(), made.KeyIDs())
	}
	signature, _ := parsed.SignRequest("store", "digest")
	if err := made.VerifyRequest("store", "digest", signature); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(b64(1, 32))
	f.Add(b64(1, 32) + "," + b64(2, 64))
	f.Add("hunter2hunter2hunter2hunter2hunter2")
	f.Fuzz(func(t *testing.T, text string) {
		ring, err := Parse(text)
		if err != nil {
			if ring != nil {
				t.Fatal("an error and a keyring")
			}
			return
		}
		entries := strings.Split(text, ",")
		if len(ring.KeyIDs()) != len(entries) {
			t.Fatalf("%d keys of %d entries", len(ring.KeyIDs()), len(entries))
		}
		for _, entry := range entries { // one spelling a secret
			entry = strings.Trim(entry, " \t\r\n")
			raw, err := base64.StdEncoding.DecodeString(entry)
			if err != nil || base64.StdEncoding.EncodeToString(raw) != entry {
				t.Fatalf("took a second spelling: %v", err)
			}
		}
	})
}

func TestS19_FromEnv(t *testing.T) {
	t.Run("absent", func(t *testing.T) {
		unsetenv(t, SecretEnv)
		if ring, err := FromEnv(); ring != nil || err != nil {
			t.Errorf("got %v, %v", ring, err)
		}
	})
	t.Run("good", func(t *testing.T) {
		t.Setenv(SecretEnv, b64(1, 32)+","+b64(2, 32))
		ring, err := FromEnv()
		if err != nil || !slices.Equal(ring.KeyIDs(), testRing(t, 1, 2).KeyIDs()) {
			t.Errorf("got %v, %v", ring, err)
		}
	})
	for name, text := range map[string]string{"empty": "", "blank": " ", "bad": "my-own-passphrase", "short": b64(1, 31)} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(SecretEnv, text)
			ring, err := FromEnv()
			if ring != nil || err == nil {
				t.Fatalf("got %v, %v", ring, err)
			}
			if !strings.Contains(err.Error(), SecretEnv) {
				t.Errorf("%q does not name the variable", err)
			}
			wantNoPart(t, err.Error(), text)
		})
	}
}

func TestKeyring_Ids(t *testing.T) {
	ring := testRing(t, 1, 2)
	ids := ring.KeyIDs()
	if len(ids) != 2 || ids[0] == ids[1] {
		t.Fatalf("ids %v", ids)
	}
	if ring.SigningID() != ids[0] {
		t.Errorf("signing id %s, want %s", ring.SigningID(), ids[0])
	}
	if turned := testRing(t, 2, 1).KeyIDs(); turned[0] != ids[1] || turned[1] != ids[0] {
		t.Errorf("an id depends on its place: %v and %v", ids, turned)
	}
	for _, id := range ids {
		if !isKeyID(id) || !ring.Has(id) {
			t.Errorf("id %q: well formed %t, had %t", id, isKeyID(id), ring.Has(id))
		}
	}
	for _, id := range []string{"", "0000000000000000", strings.ToUpper(ids[0]), ids[0] + " "} {
		if ring.Has(id) || ring.Check(id) != "" {
			t.Errorf("has %q", id)
		}
	}
	ids[0] = "changed"
	if ring.KeyIDs()[0] == "changed" {
		t.Error("the caller can change the ring's ids")
	}
}

func TestS19_CheckValue(t *testing.T) {
	ring := testRing(t, 1, 2)
	a, b := ring.Check(ring.KeyIDs()[0]), ring.Check(ring.KeyIDs()[1])
	if len(a) != 64 || len(b) != 64 || a == b {
		t.Errorf("check values %q and %q", a, b)
	}
	if other := testRing(t, 1); other.Check(other.SigningID()) != a {
		t.Error("the check value depends on more than the key")
	}
}

func TestS19_KeysPerPurposeDiffer(t *testing.T) {
	ring := testRing(t, 1)
	secret := secretOf(1, 32)
	seen := map[string]string{string(secret): "the secret itself"}
	for _, use := range []string{"id", "check", string(PurposeApproval), string(PurposeDecision), string(PurposeLog), string(PurposeCursor), string(PurposeToken)} {
		derived, err := derive(secret, use)
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := seen[string(derived)]; ok {
			t.Errorf("%s has the key of %s", use, before)
		}
		seen[string(derived)] = use
	}
	if len(labels) != 5 {
		t.Errorf("%d purposes; this test knows 5", len(labels))
	}

	// The same fields, each purpose's signature against every other.
	signatures := map[Purpose]string{}
	for purpose := range labels {
		text, err := ring.sign(nil, purpose, "store", "digest")
		if err != nil {
			t.Fatal(err)
		}
		signatures[purpose] = string(text)
	}
	for made, signature := range signatures {
		for checked := range labels {
			err := ring.verify(checked, signature, "store", "digest")
			if made == checked && err != nil {
				t.Errorf("%s: %v", made, err)
			}
			if made != checked && !errors.Is(err, ErrWrong) {
				t.Errorf("made as %s, checked as %s: %v", made, checked, err)
			}
		}
	}
}

func TestSign_FreeFormIsForCursorsAndTokensOnly(t *testing.T) {
	ring := testRing(t, 1)
	for _, purpose := range []Purpose{PurposeApproval, PurposeDecision, PurposeLog, "", "webhook", "id", "check"} {
		if got, err := ring.Sign(purpose, "store", "digest"); err == nil {
			t.Errorf("%q: signed %q", purpose, got)
		}
		signature, _ := ring.SignRequest("store", "digest")
		if err := ring.Verify(purpose, signature, "store", "digest"); err == nil {
			t.Errorf("%q: verified", purpose)
		}
		if _, err := ring.open(purpose, "0123456789abcdef"); err == nil {
			t.Errorf("%q: opened", purpose)
		}
	}
	if _, err := ring.open("webhook", ring.SigningID()); err == nil {
		t.Error("opened a writer for an unknown purpose")
	}
	signature, err := ring.Sign(PurposeCursor, "inbox", "17")
	if err != nil {
		t.Fatal(err)
	}
	if err := ring.Verify(PurposeCursor, signature, "inbox", "17"); err != nil {
		t.Error(err)
	}
	if err := ring.Verify(PurposeCursor, signature, "inbox", "18"); !errors.Is(err, ErrWrong) {
		t.Errorf("other field: %v", err)
	}
}

func TestKeyring_NoneFailsClosed(t *testing.T) {
	signature, _ := testRing(t, 1).SignRequest("store", "digest")
	for name, ring := range map[string]*Keyring{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			_, err := ring.SignRequest("store", "digest")
			wantIs(t, err, ErrNoKeyring)
			_, err = ring.SignDecision(testDecision())
			wantIs(t, err, ErrNoKeyring)
			_, _, err = ring.SignCommit(nil, "store", "run", 1, [32]byte{})
			wantIs(t, err, ErrNoKeyring)
			_, err = ring.Sign(PurposeCursor, "a")
			wantIs(t, err, ErrNoKeyring)
			wantIs(t, ring.VerifyRequest("store", "digest", signature), ErrNoKeyring)
			wantIs(t, ring.VerifyDecision(testDecision(), signature), ErrNoKeyring)
			wantIs(t, ring.VerifyCommit("store", "run", 1, [32]byte{}, signature[3:19], make([]byte, 32)), ErrNoKeyring)
			wantIs(t, ring.Verify(PurposeCursor, signature, "a"), ErrNoKeyring)
			if len(ring.KeyIDs()) != 0 || ring.SigningID() != "" || ring.Has("") || ring.Check("") != "" {
				t.Error("has a key")
			}
			if got := ring.String(); got != "keyring(no keys)" {
				t.Errorf("shows as %q", got)
			}
			if got := fmt.Sprintf("%v %+v %#v", ring, ring, ring); strings.Count(got, "keyring(no keys)") != 3 {
				t.Errorf("prints as %q", got)
			}
		})
	}
}

func wantIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// S-19 and S-34: a keyring shows key ids and nothing else, wherever it ends up.
func TestS19_NothingShowsASecret(t *testing.T) {
	secrets := [][]byte{secretOf(1, 32), secretOf(2, 64)}
	ring, err := New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	hidden := formsOf(t, secrets)
	if !holdsAny(fmt.Sprintf("%v", secrets[0]), hidden) || !holdsAny(fmt.Sprintf("%x", secrets[1]), hidden) {
		t.Fatal("this test would not see a secret")
	}
	for name, shown := range sinks(t, ring) {
		if holdsAny(shown, hidden) {
			t.Errorf("%s shows a secret: %s", name, shown)
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%X", "%q", "%s", "%d", "%10.3v", "%p", "%t", "%!"} {
		got := fmt.Sprintf("_"+verb, ring)
		if want := "_" + ring.String(); verb != "%p" && verb != "%!" && got != want {
			t.Errorf("%s gives %q, want %q", verb, got, want)
		}
	}
	data, err := json.Marshal(ring)
	if want := fmt.Sprintf("[%q,%q]", ring.KeyIDs()[0], ring.KeyIDs()[1]); err != nil || string(data) != want {
		t.Errorf("JSON is %s, %v; want %s", data, err, want)
	}
	if data, err := json.Marshal(&Keyring{}); err != nil || string(data) != "[]" {
		t.Errorf("JSON of the zero keyring is %s, %v", data, err)
	}
	if !strings.Contains(ring.GoString(), ring.SigningID()) {
		t.Errorf("GoString is %q", ring.GoString())
	}
}

// sinks prints a keyring in every way that a program is likely to find.
func sinks(t *testing.T, ring *Keyring) map[string]string {
	t.Helper()
	type open struct{ Ring *Keyring }
	type closed struct {
		ring  *Keyring
		value Keyring
		key   *root
	}
	things := map[string]any{
		"pointer": ring, "value": *ring, "slice": []*Keyring{ring}, "map": map[string]any{"k": ring},
		"exported field": open{ring}, "unexported field": closed{ring, *ring, ring.roots[0]}, "root": ring.roots[0], "root value": *ring.roots[0],
		"its key": ring.roots[0].keys[PurposeApproval],
	}
	shown := map[string]string{}
	for name, thing := range things {
		for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%X", "%s", "%q", "%d"} {
			shown[name+" "+verb] = fmt.Sprintf(verb, thing)
		}
		data, err := json.Marshal(thing)
		shown[name+" json"] = fmt.Sprint(string(data), err)

		var text, lines, stream bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).LogAttrs(context.Background(), slog.LevelError, "x", slog.Any("k", thing))
		slog.New(slog.NewJSONHandler(&lines, nil)).LogAttrs(context.Background(), slog.LevelError, "x", slog.Any("k", thing))
		shown[name+" slog text"], shown[name+" slog json"] = text.String(), lines.String()
		shown[name+" error"] = fmt.Errorf("start engine with %v: %w", thing, ErrWrong).Error()
		shown[name+" gob"] = fmt.Sprint(gob.NewEncoder(&stream).Encode(thing), stream.String())
	}
	return shown
}

// formsOf gives the secrets and every key derived from them as they would look
// in print: raw, hex in both cases, base64, and lists of numbers.
func formsOf(t *testing.T, secrets [][]byte) []string {
	t.Helper()
	var forms []string
	for _, secret := range secrets {
		all := [][]byte{secret}
		for _, use := range []string{"id", "check", "approval", "decision", "log", "cursor"} {
			derived, err := derive(secret, use)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, derived)
		}
		for _, b := range all {
			part := b[:8]
			forms = append(forms, string(part), hex.EncodeToString(part), strings.ToUpper(hex.EncodeToString(part)),
				base64.StdEncoding.EncodeToString(b)[:10], base64.URLEncoding.EncodeToString(b)[:10],
				strings.Trim(fmt.Sprint(part), "[]"), strings.ReplaceAll(strings.Trim(fmt.Sprint(part), "[]"), " ", ","),
				strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", part), "[]byte{"), "}"))
		}
	}
	return forms
}

func holdsAny(text string, forms []string) bool {
	return slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(text, form) })
}

func TestS19_RotationKeepsTheOldUntilItIsRemoved(t *testing.T) {
	before, during, after := testRing(t, 1), testRing(t, 2, 1), testRing(t, 2)
	old, err := before.SignRequest("store", "digest")
	if err != nil {
		t.Fatal(err)
	}
	if err := during.VerifyRequest("store", "digest", old); err != nil {
		t.Errorf("pending while the key is turned: %v", err)
	}
	fresh, _ := during.SignRequest("store", "digest")
	if id, _ := SignatureKeyID(fresh); id != after.SigningID() {
		t.Errorf("the second key signed")
	}
	wantIs(t, after.VerifyRequest("store", "digest", old), ErrRetired)
	if err := after.VerifyRequest("store", "digest", fresh); err != nil {
		t.Error(err)
	}
	wantIs(t, before.VerifyRequest("store", "digest", fresh), ErrRetired)
}

func TestKeyring_ManyGoroutines(t *testing.T) {
	ring := testRing(t, 1, 2)
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 200 {
				store, digest := fmt.Sprint("store", g), fmt.Sprint("digest", i)
				signature, err := ring.SignRequest(store, digest)
				if err == nil {
					err = ring.VerifyRequest(store, digest, signature)
				}
				if err != nil {
					t.Errorf("%d, %d: %v", g, i, err)
				}
				if err := ring.VerifyRequest(store, digest+"x", signature); !errors.Is(err, ErrWrong) {
					t.Errorf("%d, %d: %v", g, i, err)
				}
			}
		})
	}
	group.Wait()
}

// Keys of different secrets have different ids and never verify one another.
func TestKeyring_SecretsDoNotMix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.SliceOfN(rapid.Byte(), 32, 64)
		a, b := secret.Draw(t, "a"), secret.Draw(t, "b")
		if bytes.Equal(a, b) {
			t.Skip("equal")
		}
		ring, err := New(a, b)
		if err != nil {
			t.Fatal(err)
		}
		one, _ := New(a)
		two, _ := New(b)
		signature, _ := one.SignRequest("store", "digest")
		if err := ring.VerifyRequest("store", "digest", signature); err != nil {
			t.Fatal(err)
		}
		// Under the other key's id it is wrong, not right by accident.
		moved := "v1." + two.SigningID() + signature[19:]
		if err := ring.VerifyRequest("store", "digest", moved); !errors.Is(err, ErrWrong) {
			t.Fatalf("moved to the other id: %v", err)
		}
	})
}
