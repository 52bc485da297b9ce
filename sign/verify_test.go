package sign

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func testDecision() Decision {
	return Decision{
		StoreID: "sto_1", RequestDigest: "d1", Answer: "approve", InputDigest: "i1", ReasonDigest: "r1",
		Decider: "usr_ana", Authenticated: "oidc", At: time.Date(2026, 3, 4, 5, 6, 7, 891234000, time.UTC),
	}
}

// entry is one way in to the check of a signature's text.
type entry struct {
	name   string
	sign   func(ring *Keyring) (string, error)
	verify func(ring *Keyring, signature string) error
}

func entries() []entry {
	head := sha256.Sum256([]byte("head"))
	return []entry{
		{
			"request",
			func(ring *Keyring) (string, error) { return ring.SignRequest("sto_1", "d1") },
			func(ring *Keyring, s string) error { return ring.VerifyRequest("sto_1", "d1", s) },
		},
		{
			"decision",
			func(ring *Keyring) (string, error) { return ring.SignDecision(testDecision()) },
			func(ring *Keyring, s string) error { return ring.VerifyDecision(testDecision(), s) },
		},
		{
			"cursor",
			func(ring *Keyring) (string, error) { return ring.Sign(PurposeCursor, "sto_1", "d1") },
			func(ring *Keyring, s string) error { return ring.Verify(PurposeCursor, s, "sto_1", "d1") },
		},
		{ // a commit's MAC is raw bytes; here it goes through the text
			"commit",
			func(ring *Keyring) (string, error) {
				mac, id, err := ring.SignCommit(nil, "sto_1", "run_1", 7, head)
				if err != nil {
					return "", err
				}
				return string(appendSignature(nil, id, (*[32]byte)(mac))), nil
			},
			func(ring *Keyring, s string) error {
				if s == "" {
					return ring.VerifyCommit("sto_1", "run_1", 7, head, "", nil)
				}
				id, sum, err := parseSignature(s)
				if err != nil {
					return ring.VerifyCommit("sto_1", "run_1", 7, head, "not an id", sum[:])
				}
				return ring.VerifyCommit("sto_1", "run_1", 7, head, id, sum[:])
			},
		},
	}
}

// F05: one surface checked signatures and another did not. The same forged set
// against every way in.
func TestF05_EveryEntryRefusesTheSameForgeries(t *testing.T) {
	ring := testRing(t, 1, 2)
	for _, entry := range entries() {
		t.Run(entry.name, func(t *testing.T) {
			good, err := entry.sign(ring)
			if err != nil {
				t.Fatal(err)
			}
			if err := entry.verify(ring, good); err != nil {
				t.Fatalf("B35: %v", err)
			}
			for name, forged := range forgeries(t, ring, entry, good) {
				if err := entry.verify(ring, forged.text); !errors.Is(err, forged.want) {
					t.Errorf("%s: got %v, want %v", name, err, forged.want)
				}
			}
		})
	}
}

// F05: whatever is verified, in our form or the AI SDK's, is compared in one
// function, in constant time.
func TestF05_OnePlaceCompares(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []string{"ConstantTimeCompare(", "hmac.Equal(", "bytes.Equal(", "parseSignature(text string)"} {
			count[call] += strings.Count(string(source), call)
		}
	}
	if count["ConstantTimeCompare("] != 1 || count["hmac.Equal("] != 0 || count["bytes.Equal("] != 0 || count["parseSignature(text string)"] != 1 {
		t.Errorf("signatures are compared in more than one place: %v", count)
	}
}

type forgery struct {
	text string
	want error
}

func forgeries(t *testing.T, ring *Keyring, made entry, good string) map[string]forgery {
	t.Helper()
	id, mac := good[3:19], good[20:]
	foreign, err := made.sign(testRing(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(mac)
	flipped := []byte(good)
	flipped[30] = 'A'
	if good[30] == 'A' {
		flipped[30] = 'B'
	}
	set := map[string]forgery{
		"B32 none":             {"", ErrMissing},
		"junk":                 {"yes", ErrMalformed},
		"blank":                {" ", ErrMalformed},
		"MAC alone":            {mac, ErrMalformed},
		"legacy MAC":           {base64.StdEncoding.EncodeToString(raw), ErrMalformed},
		"no MAC":               {"v1." + id + ".", ErrMalformed},
		"short MAC":            {good[:62], ErrMalformed},
		"long MAC":             {good + "A", ErrMalformed},
		"all zero":             {"v1." + id + "." + strings.Repeat("A", 43), ErrWrong},
		"flipped":              {string(flipped), ErrWrong},
		"other version":        {"v2" + good[2:], ErrMalformed},
		"upper case version":   {"V1" + good[2:], ErrMalformed},
		"other of the ring":    {"v1." + ring.KeyIDs()[1] + "." + mac, ErrWrong},
		"B40 other secret":     {foreign, ErrRetired},
		"B40 under our id":     {"v1." + id + foreign[19:], ErrWrong},
		"id of the wrong form": {"v1." + strings.ToUpper("abcdefabcdefabcd") + "." + mac, ErrMalformed},
		"id with a dot":        {"v1." + id[:8] + "." + id[8:] + mac, ErrMalformed},
		"unknown key":          {"v1.0000000000000000." + mac, ErrRetired},
	}
	for _, other := range entries() {
		if other.name != made.name {
			text, err := other.sign(ring)
			if err != nil {
				t.Fatal(err)
			}
			set["made for a "+other.name] = forgery{text, ErrWrong}
		}
	}
	return set
}

// Theirs verifies in several spellings (padding, either alphabet); ours in one.
func TestSignature_OneSpelling(t *testing.T) {
	ring := testRing(t, 1)
	good, err := ring.SignRequest("sto_1", "d1")
	if err != nil {
		t.Fatal(err)
	}
	if len(good) != signatureSize {
		t.Fatalf("%d bytes", len(good))
	}
	verify := func(s string) error { return ring.VerifyRequest("sto_1", "d1", s) }
	last := strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", good[62])
	for name, text := range map[string]string{
		"padded":               good + "=",
		"standard alphabet":    strings.NewReplacer("-", "+", "_", "/").Replace(good) + " ",
		"line end behind":      good + "\n",
		"line end inside":      good[:40] + "\n" + good[40:],
		"line end for a digit": good[:40] + "\n" + good[41:],
		"CR for a digit":       good[:61] + "\r" + good[62:],
		"blank in front":       " " + good,
		"bits left over":       good[:62] + string("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[last|1]),
		"upper case id":        good[:3] + strings.ToUpper(good[3:19]) + good[19:],
	} {
		if text == good {
			t.Fatalf("%s: not another spelling", name)
		}
		if err := verify(text); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range len(good) { // no byte is free
		for c := range 256 {
			text := good[:i] + string([]byte{byte(c)}) + good[i+1:]
			if text != good && verify(text) == nil {
				t.Fatalf("byte %d may be %#x", i, c)
			}
		}
	}
}

func FuzzVerify(f *testing.F) {
	ring := testRing(f, 1, 2)
	good, err := ring.SignRequest("sto_1", "d1")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good + "=")
	f.Add("v1..")
	f.Fuzz(func(t *testing.T, text string) {
		err := ring.VerifyRequest("sto_1", "d1", text)
		if (err == nil) != (text == good) {
			t.Fatalf("%q: %v", text, err)
		}
		if id, sum, err := parseSignature(text); err == nil {
			if again := string(appendSignature(nil, id, &sum)); again != text {
				t.Fatalf("%q and %q are one signature", text, again)
			}
		}
	})
}

func TestSignatureKeyID(t *testing.T) {
	ring := testRing(t, 1)
	good, _ := ring.SignRequest("sto_1", "d1")
	if id, err := SignatureKeyID(good); err != nil || id != ring.SigningID() {
		t.Errorf("got %q, %v", id, err)
	}
	_, err := SignatureKeyID("")
	wantIs(t, err, ErrMissing)
	_, err = SignatureKeyID(good[1:])
	wantIs(t, err, ErrMalformed)
}

func TestCommit_FourErrors(t *testing.T) {
	ring := testRing(t, 1)
	head := sha256.Sum256([]byte("head"))
	mac, id, err := ring.SignCommit([]byte("row:"), "sto_1", "run_1", 7, head)
	if err != nil || string(mac[:4]) != "row:" || len(mac) != 36 || id != ring.SigningID() {
		t.Fatalf("got %x, %q, %v", mac, id, err)
	}
	mac = mac[4:]
	verify := func(id string, mac []byte) error { return ring.VerifyCommit("sto_1", "run_1", 7, head, id, mac) }
	if err := verify(id, mac); err != nil {
		t.Fatal(err)
	}
	wantIs(t, verify("", nil), ErrMissing)
	wantIs(t, verify("", mac), ErrMalformed)
	wantIs(t, verify(id, nil), ErrMalformed)
	wantIs(t, verify(id, mac[:31]), ErrMalformed)
	wantIs(t, verify(id, append(mac[:32:32], 0)), ErrMalformed)
	wantIs(t, verify(id, make([]byte, 32)), ErrWrong)
	wantIs(t, verify("0123456789abcdef", mac), ErrRetired)

	wantIs(t, ring.VerifyCommit("sto_2", "run_1", 7, head, id, mac), ErrWrong)
	wantIs(t, ring.VerifyCommit("sto_1", "run_2", 7, head, id, mac), ErrWrong)
	wantIs(t, ring.VerifyCommit("sto_1", "run_1", 8, head, id, mac), ErrWrong)
	head[31] ^= 1
	wantIs(t, verify(id, mac), ErrWrong)
	head[31] ^= 1
	if got, _, err := ring.SignCommit([]byte("kept"), "sto_1", "", 7, head); err == nil || string(got) != "kept" {
		t.Errorf("on an error dst is %q, %v", got, err)
	}
}

// S-03: change any field of a request and the bytes, and so the signature,
// change.
func TestS03_EveryFieldOfARequestIsBound(t *testing.T) {
	ring := testRing(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		text := signable().Filter(func(s string) bool { return s != "" })
		store, digest := text.Draw(t, "store"), text.Draw(t, "digest")
		otherStore, otherDigest := text.Draw(t, "other store"), text.Draw(t, "other digest")
		signature, err := ring.SignRequest(store, digest)
		if err != nil {
			t.Fatal(err)
		}
		got := ring.VerifyRequest(otherStore, otherDigest, signature)
		if same := store == otherStore && digest == otherDigest; (got == nil) != same {
			t.Fatalf("same %t: %v", same, got)
		}
		if err := ring.VerifyRequest(store, digest, signature); err != nil {
			t.Fatal(err)
		}
	})
}

// S-03 for the answer. Fields are walked by reflection, so a field added later
// and not signed fails here.
func TestS03_EveryFieldOfADecisionIsBound(t *testing.T) {
	ring := testRing(t, 1)
	kind := reflect.TypeFor[Decision]()
	rapid.Check(t, func(t *rapid.T) {
		d := Decision{At: time.UnixMicro(rapid.Int64Range(0, 1<<50).Draw(t, "at"))}
		text := signable().Filter(func(s string) bool { return s != "" })
		for i := range kind.NumField() - 1 {
			reflect.ValueOf(&d).Elem().Field(i).SetString(text.Draw(t, kind.Field(i).Name))
		}
		signature, err := ring.SignDecision(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := ring.VerifyDecision(d, signature); err != nil {
			t.Fatal(err)
		}
		for i := range kind.NumField() {
			changed := d
			field := reflect.ValueOf(&changed).Elem().Field(i)
			if field.Kind() == reflect.String {
				field.SetString(text.Filter(func(s string) bool { return s != field.String() }).Draw(t, "changed"))
			} else {
				changed.At = d.At.Add(time.Duration(rapid.IntRange(1, 1e9).Draw(t, "later")) * time.Microsecond)
			}
			if err := ring.VerifyDecision(changed, signature); !errors.Is(err, ErrWrong) {
				t.Fatalf("%s changed: %v", kind.Field(i).Name, err)
			}
		}
		// Two fields that change places are a change as well.
		moved := d
		moved.RequestDigest, moved.StoreID = d.StoreID, d.RequestDigest
		if err := ring.VerifyDecision(moved, signature); d.StoreID != d.RequestDigest && !errors.Is(err, ErrWrong) {
			t.Fatalf("fields moved: %v", err)
		}
	})
}

func TestS03_ADecisionLeavesNothingOpen(t *testing.T) {
	ring := testRing(t, 1)
	tests := []struct {
		name   string
		change func(*Decision)
		index  int
		reason string
	}{
		{"no store", func(d *Decision) { d.StoreID = "" }, 2, reasonEmpty},
		{"no request", func(d *Decision) { d.RequestDigest = "" }, 3, reasonEmpty},
		{"no answer", func(d *Decision) { d.Answer = "" }, 4, reasonEmpty},
		{"approval of no bytes", func(d *Decision) { d.InputDigest = "" }, 5, reasonEmpty},
		{"denial in another spelling", func(d *Decision) { d.Answer, d.InputDigest = "Deny", "" }, 5, reasonEmpty},
		{"nobody", func(d *Decision) { d.Decider = "" }, 7, reasonEmpty},
		{"authenticated by nothing", func(d *Decision) { d.Authenticated = "" }, 8, reasonEmpty},
		{"no time", func(d *Decision) { d.At = time.Time{} }, 9, reasonTime},
		{"before 1970", func(d *Decision) { d.At = time.Unix(-1, 0) }, 9, reasonTime},
		{"year 10000", func(d *Decision) { d.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, 9, reasonTime},
	}
	signature, _ := ring.SignDecision(testDecision())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := testDecision()
			tt.change(&d)
			_, err := ring.SignDecision(d)
			wantFieldError(t, err, tt.index, tt.reason)
			wantFieldError(t, ring.VerifyDecision(d, signature), tt.index, tt.reason)
		})
	}
	denial := testDecision()
	denial.Answer, denial.InputDigest, denial.ReasonDigest = "deny", "", ""
	signature, err := ring.SignDecision(denial)
	if err != nil {
		t.Fatal(err)
	}
	if err := ring.VerifyDecision(denial, signature); err != nil {
		t.Error(err)
	}
	yes := denial
	yes.Answer = "approve"
	if err := ring.VerifyDecision(yes, signature); err == nil {
		t.Error("a signed denial is good for an approval")
	}
}

// A time has one spelling, whatever its zone, its clock reading or what a store
// cut off below the microsecond.
func TestDecision_TimeHasOneSpelling(t *testing.T) {
	ring := testRing(t, 1)
	d := testDecision()
	want, err := ring.SignDecision(d)
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]time.Time{
		"zone":       d.At.In(time.FixedZone("x", 5*3600+1800)),
		"local":      d.At.Local(),
		"finer":      d.At.Add(999 * time.Nanosecond),
		"from store": time.UnixMicro(d.At.UnixMicro()),
	} {
		other := d
		other.At = at
		if got, err := ring.SignDecision(other); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A row copied into another store under the same secret is worth nothing.
func TestS03_ARowFromAnotherStore(t *testing.T) {
	ring := testRing(t, 1)
	request, _ := ring.SignRequest("sto_staging", "d1")
	wantIs(t, ring.VerifyRequest("sto_production", "d1", request), ErrWrong)
	d := testDecision()
	decision, _ := ring.SignDecision(d)
	d.StoreID = "sto_production"
	wantIs(t, ring.VerifyDecision(d, decision), ErrWrong)
}

// B36 to B39 for our own form. There a request digest stands for the fields, so
// the digest must move with each of them, and the signature with the digest.
func TestB36_OwnFormBindsEveryField(t *testing.T) {
	ring := testRing(t, 1)
	digest := func(approval, call, tool, input string) string {
		t.Helper()
		d, err := Digest("test-request-v1", approval, call, tool, InputDigest([32]byte{1}, input))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := digest("appr", "call", "pay", `{"cents":1}`)
	signature, err := ring.SignRequest("sto_1", base)
	if err != nil {
		t.Fatal(err)
	}
	if err := ring.VerifyRequest("sto_1", base, signature); err != nil {
		t.Fatalf("B35: %v", err)
	}
	for name, other := range map[string]string{
		"B36 approval id": digest("appr2", "call", "pay", `{"cents":1}`),
		"B37 call id":     digest("appr", "call2", "pay", `{"cents":1}`),
		"B38 tool name":   digest("appr", "call", "pay2", `{"cents":1}`),
		"B39 input":       digest("appr", "call", "pay", `{"cents":2}`),
		// Ours is stricter than B41: other bytes are another input.
		"B41 blanks":          digest("appr", "call", "pay", `{"cents": 1}`),
		"B41 number spelling": digest("appr", "call", "pay", `{"cents":1.0}`),
	} {
		if err := ring.VerifyRequest("sto_1", other, signature); !errors.Is(err, ErrWrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// F03, B42, B43: a separator moved from one field into its neighbour. Where the
// character is a control nothing is signed at all; else the bytes differ.
func TestB42_SeparatorsMoveNothing(t *testing.T) {
	ring := testRing(t, 1)
	for _, c := range []string{"\n", "\r", "\t", "\x00", " ", `"`, `\`, ",", `","`, "\u2028"} {
		t.Run(fmt.Sprintf("%q", c), func(t *testing.T) {
			left, errLeft := ring.SignRequest("sto"+c+"a", "b")
			right, errRight := ring.SignRequest("sto", "a"+c+"b")
			both, errBoth := ring.SignRequest("sto"+c, c+"b")
			if control := strings.ContainsAny(c, "\n\r\t\x00\u2028"); control {
				for _, err := range []error{errLeft, errRight, errBoth} {
					if !errors.As(err, new(*FieldError)) {
						t.Errorf("signed a control: %v", err)
					}
				}
				return
			}
			if errLeft != nil || errRight != nil || errBoth != nil {
				t.Fatal(errLeft, errRight, errBoth)
			}
			if left == right || left == both || right == both {
				t.Error("one signature for two tuples")
			}
			wantIs(t, ring.VerifyRequest("sto", "a"+c+"b", left), ErrWrong)
			wantIs(t, ring.VerifyRequest("sto"+c+"a", "b", right), ErrWrong)
		})
	}
}

// Large fields grow the reused buffer; what follows must not see them.
func TestRequest_LargeFields(t *testing.T) {
	ring := testRing(t, 1)
	small, _ := ring.SignRequest("sto_1", "d1")
	big := strings.Repeat(`x"`, 50_000)
	signature, err := ring.SignRequest("sto_1", big)
	if err != nil {
		t.Fatal(err)
	}
	if err := ring.VerifyRequest("sto_1", big, signature); err != nil {
		t.Error(err)
	}
	wantIs(t, ring.VerifyRequest("sto_1", big[:len(big)-1], signature), ErrWrong)
	if again, _ := ring.SignRequest("sto_1", "d1"); again != small {
		t.Error("a large field changed the next signature")
	}
}

func TestAppend_LeavesWhatIsThere(t *testing.T) {
	ring := testRing(t, 1)
	request, _ := ring.SignRequest("sto_1", "d1")
	if got, err := ring.AppendRequestSignature([]byte("sig="), "sto_1", "d1"); err != nil || string(got) != "sig="+request {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := ring.AppendRequestSignature([]byte("sig="), "sto_1", "\n"); err == nil || string(got) != "sig=" {
		t.Errorf("on an error %q, %v", got, err)
	}
	decision, _ := ring.SignDecision(testDecision())
	if got, err := ring.AppendDecisionSignature([]byte("sig="), testDecision()); err != nil || string(got) != "sig="+decision {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := ring.AppendDecisionSignature([]byte("sig="), Decision{}); err == nil || string(got) != "sig=" {
		t.Errorf("on an error %q, %v", got, err)
	}
	if got := string(AppendInputDigest([]byte("d="), [32]byte{1}, "{}")); got != "d="+InputDigest([32]byte{1}, "{}") {
		t.Errorf("got %q", got)
	}
	key, _ := IdempotencyKey("run_1", 1, 2, "pay", "{}")
	if got, err := AppendIdempotencyKey([]byte("k="), "run_1", 1, 2, "pay", "{}"); err != nil || string(got) != "k="+key {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := AppendIdempotencyKey([]byte("k="), "", 1, 2, "pay", "{}"); err == nil || string(got) != "k=" {
		t.Errorf("on an error %q, %v", got, err)
	}
}
