package sign

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// aisdkVector is one row of a vector file.
type aisdkVector struct {
	Name, ApprovalID, ToolCallID, ToolName, Text  string
	Canonical, Digest, Payload, Signature, Legacy string
}

func checkVector(t *testing.T, secret []byte, v aisdkVector) {
	t.Helper()
	canonical, err := jsCanonical(v.Text)
	if err != nil || string(canonical) != v.Canonical {
		t.Errorf("canonical %s, %v\nwant      %s", canonical, err, v.Canonical)
	}
	if digest, err := aisdkDigest(v.Text); err != nil || digest != v.Digest {
		t.Errorf("digest %s, %v; want %s", digest, err, v.Digest)
	}
	payload, err := aisdkPayload(v.ApprovalID, v.ToolCallID, v.ToolName, v.Text)
	if err != nil || string(payload) != v.Payload {
		t.Errorf("payload %s, %v\nwant    %s", payload, err, v.Payload)
	}
	signature, err := AISDKSignature(secret, v.ApprovalID, v.ToolCallID, v.ToolName, v.Text)
	if err != nil || signature != v.Signature {
		t.Errorf("signature %s, %v; want %s", signature, err, v.Signature)
	}
	if err := AISDKVerify(secret, v.ApprovalID, v.ToolCallID, v.ToolName, v.Text, v.Signature); err != nil {
		t.Errorf("B35: %v", err)
	}
	// B44, B45: they take the older form where no field has a line end. We never do.
	if v.Legacy == "" || v.Legacy == v.Signature {
		t.Errorf("no legacy signature to refuse: %q", v.Legacy)
	}
	wantIs(t, AISDKVerify(secret, v.ApprovalID, v.ToolCallID, v.ToolName, v.Text, v.Legacy), ErrWrong)
}

func TestS05_OwnVectors(t *testing.T) {
	file := readVectors(t)
	if len(file.AISDK) < 20 {
		t.Fatalf("%d vectors", len(file.AISDK))
	}
	for _, v := range file.AISDK {
		t.Run(v.Name, func(t *testing.T) { checkVector(t, []byte(file.AISDKSecret), v) })
	}
}

// The vectors of the SDK itself, where they lie beside the checkout.
func TestS05_SharedVectors(t *testing.T) {
	data, err := os.ReadFile(sharedFile(t, "aisdk-hmac-vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Secret, ApprovalID, ToolCallID string
		Rows                           []aisdkVector
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Rows) != 16 {
		t.Fatalf("%d vectors, want 16", len(file.Rows))
	}
	for _, v := range file.Rows {
		t.Run(v.Name, func(t *testing.T) {
			v.ApprovalID, v.ToolCallID = file.ApprovalID, file.ToolCallID
			checkVector(t, []byte(file.Secret), v)
		})
	}
}

// sharedFile looks for shared/data/name beside a folder above this one, or in
// RINGI_SHARED. Where there is none the test is skipped.
func sharedFile(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	candidates := []string{}
	if root := os.Getenv("RINGI_SHARED"); root != "" {
		candidates = append(candidates, filepath.Join(root, "data", name))
	}
	for ; ; dir = filepath.Dir(dir) {
		candidates = append(candidates, filepath.Join(dir, "shared", "data", name))
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for _, path := range candidates {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skipf("%s is not there: no shared/data beside this checkout, and RINGI_SHARED does not lead to it", name)
	return ""
}

func TestS05_DoublesAsJavaScriptWritesThem(t *testing.T) {
	file := readVectors(t)
	if len(file.Doubles) < 500 {
		t.Fatalf("%d doubles", len(file.Doubles))
	}
	for _, row := range file.Doubles {
		if got := string(appendJSNumber(nil, doubleOf(t, row[0]))); got != row[1] {
			t.Errorf("bits %s: %s, want %s", row[0], got, row[1])
		}
	}
}

var aisdkSecret = []byte("a secret of its own")

func mustAISDK(t *testing.T, secret []byte, approval, call, tool, input string) string {
	t.Helper()
	signature, err := AISDKSignature(secret, approval, call, tool, input)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

// B36 to B40: another field, another secret.
func TestB36_AISDKFieldsAreBound(t *testing.T) {
	const input = `{"cents":1999}`
	signature := mustAISDK(t, aisdkSecret, "appr", "call", "pay", input)
	if len(signature) != 43 {
		t.Errorf("%d characters", len(signature))
	}
	for _, tt := range []struct {
		name                      string
		secret                    []byte
		approval, call, tool, inp string
	}{
		{"B36 approval id", aisdkSecret, "appr2", "call", "pay", input},
		{"B37 tool call id", aisdkSecret, "appr", "call2", "pay", input},
		{"B38 tool name", aisdkSecret, "appr", "call", "pay2", input},
		{"B39 input", aisdkSecret, "appr", "call", "pay", `{"cents":1998}`},
		{"B40 secret", []byte("another secret"), "appr", "call", "pay", input},
		{"B40 secret with a blank", append([]byte(" "), aisdkSecret...), "appr", "call", "pay", input},
		{"ids exchanged", aisdkSecret, "call", "appr", "pay", input},
		{"letter case", aisdkSecret, "appr", "call", "Pay", input},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantIs(t, AISDKVerify(tt.secret, tt.approval, tt.call, tt.tool, tt.inp, signature), ErrWrong)
		})
	}
}

func TestB41_AISDKKeyOrderDoesNotCount(t *testing.T) {
	for _, pair := range [][2]string{
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`},
		{`{"o":{"x":{"p":1,"q":2},"w":0}}`, `{"o":{"w":0,"x":{"q":2,"p":1}}}`},
		{`[{"a":1,"b":[{"c":1,"d":2}]}]`, ` [ {"b" : [{"d":2,"c":1}] , "a":1 } ] `},
	} {
		a, b := mustAISDK(t, aisdkSecret, "i", "c", "t", pair[0]), mustAISDK(t, aisdkSecret, "i", "c", "t", pair[1])
		if a != b {
			t.Errorf("%s and %s differ", pair[0], pair[1])
		}
	}
	if mustAISDK(t, aisdkSecret, "i", "c", "t", `[1,2]`) == mustAISDK(t, aisdkSecret, "i", "c", "t", `[2,1]`) {
		t.Error("the order of an array does not count")
	}
}

// B42, B43 and F03: what the joined form mixes up, this one keeps apart.
func TestB42_AISDKSeparatorsMoveNothing(t *testing.T) {
	for _, c := range []string{"\n", "\r", "\t", "\x00", `"`, `\`, `","`, " ", "\u2028"} {
		t.Run(fmt.Sprintf("%q", c), func(t *testing.T) {
			left := mustAISDK(t, aisdkSecret, "i", "b"+c+"c", "a", "{}")
			right := mustAISDK(t, aisdkSecret, "i", "b", "c"+c+"a", "{}")
			if left == right {
				t.Fatal("one signature for two tuples")
			}
			wantIs(t, AISDKVerify(aisdkSecret, "i", "b", "c"+c+"a", "{}", left), ErrWrong)
			wantIs(t, AISDKVerify(aisdkSecret, "i", "b"+c+"c", "a", "{}", right), ErrWrong)
			if err := AISDKVerify(aisdkSecret, "i", "b"+c+"c", "a", "{}", left); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestB46_AISDKCanonicalText(t *testing.T) {
	digests := map[string]bool{}
	for _, pair := range [][2]string{
		{"null", "null"},
		{` "hi" `, `"hi"`},
		{"4.50", "4.5"},
		{"false", "false"},
		{`{"z":{"b":[1,{"y":null,"x":true}],"a":"ü"}}`, `{"z":{"a":"ü","b":[1,{"x":true,"y":null}]}}`},
	} {
		got, err := jsCanonical(pair[0])
		if err != nil || string(got) != pair[1] {
			t.Errorf("%s: %s, %v; want %s", pair[0], got, err, pair[1])
		}
		digest, err := aisdkDigest(pair[0])
		if raw, bad := base64.RawURLEncoding.DecodeString(digest); err != nil || bad != nil || len(raw) != 32 {
			t.Errorf("digest %q, %v, %v", digest, err, bad)
		}
		if digests[digest] {
			t.Errorf("%s shares its digest", pair[0])
		}
		digests[digest] = true
	}
}

// S-05: why a signature in this form never suffices. Each pair is two inputs to
// a Go tool and one value to JavaScript; our own form tells them apart.
func TestS05_AISDKFormCannotTellApart(t *testing.T) {
	ring, nonce := testRing(t, 1), [32]byte{1}
	for _, pair := range [][2]string{
		{`{"account":9007199254740993}`, `{"account":9007199254740992}`},
		{`{"limit":1e999}`, `{"limit":null}`},
		{`{"to":"eve","to":"bob"}`, `{"to":"bob"}`},
		{`{"n":-0}`, `{"n":0}`},
		{`{"n":0.1}`, `{"n":0.1000000000000000055511151231257827}`},
		{`{"n":1e-400}`, `{"n":0}`},
	} {
		theirs := mustAISDK(t, aisdkSecret, "i", "c", "t", pair[0])
		if err := AISDKVerify(aisdkSecret, "i", "c", "t", pair[1], theirs); err != nil {
			t.Errorf("%s and %s: theirs tells them apart: %v", pair[0], pair[1], err)
		}
		digest := func(input string) string {
			d, err := Digest("test-request-v1", InputDigest(nonce, input))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		ours, err := ring.SignRequest("sto_1", digest(pair[0]))
		if err != nil {
			t.Fatal(err)
		}
		wantIs(t, ring.VerifyRequest("sto_1", digest(pair[1]), ours), ErrWrong)
	}
}

// S-05: under one and the same secret neither form is good for the other.
func TestS05_FormsDoNotCross(t *testing.T) {
	secret := secretOf(1, 32)
	ring := testRing(t, 1)
	theirs := mustAISDK(t, secret, "sto_1", "d1", "t", "{}")
	wantIs(t, ring.VerifyRequest("sto_1", "d1", theirs), ErrMalformed)
	wantIs(t, ring.VerifyRequest("sto_1", "d1", "v1."+ring.SigningID()+"."+theirs), ErrWrong)
	ours, _ := ring.SignRequest("sto_1", "d1")
	wantIs(t, AISDKVerify(secret, "sto_1", "d1", "t", "{}", ours), ErrMalformed)
	wantIs(t, AISDKVerify(secret, "sto_1", "d1", "t", "{}", ours[20:]), ErrWrong)
}

func TestAISDKVerify_FailsClosed(t *testing.T) {
	good := mustAISDK(t, aisdkSecret, "i", "c", "t", "{}")
	verify := func(signature string) error { return AISDKVerify(aisdkSecret, "i", "c", "t", "{}", signature) }
	if err := verify(good); err != nil {
		t.Fatal(err)
	}
	wantIs(t, verify(""), ErrMissing)
	raw, _ := base64.RawURLEncoding.DecodeString(good)
	for name, text := range map[string]string{
		"padded": good + "=", "standard alphabet": base64.StdEncoding.EncodeToString(raw), "blank": good + " ",
		"short": good[:42], "line end": good[:20] + "\n" + good[21:], "not base64": strings.Repeat("!", 43), "hex": fmt.Sprintf("%x", raw),
	} {
		if err := verify(text); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := AISDKSignature(nil, "i", "c", "t", "{}"); err == nil {
		t.Error("signed with an empty secret")
	}
	if err := AISDKVerify([]byte{}, "i", "c", "t", "{}", good); err == nil {
		t.Error("verified with an empty secret")
	}
	_, err := AISDKSignature(aisdkSecret, "i", "c\xff", "t", "{}")
	wantFieldError(t, err, 2, reasonUTF8)
	if err := AISDKVerify(aisdkSecret, "i", "c", "t", "{", good); err == nil {
		t.Error("verified an input that is not JSON")
	}
	for _, err := range []error{verify(good[:42]), verify(strings.Repeat("A", 43)), func() error {
		_, err := AISDKSignature(aisdkSecret, "i", "c", "t", `{"password":"hunter2"`)
		return err
	}()} {
		if text := err.Error(); strings.Contains(text, string(aisdkSecret)) || strings.Contains(text, good[:20]) || strings.Contains(text, "hunter2") {
			t.Errorf("the error shows too much: %v", err)
		}
	}
}

func TestAISDKInput_NotJSON(t *testing.T) {
	for _, text := range []string{
		"", " ", "nul", "nulll", "undefined", "NaN", "Infinity", "-Infinity", "'a'", `"a`, `"\`, `"\x41"`, `"\u12"`, `"\u12g4"`, `"\u-123"`, "\"a\tb\"", "\"\x00\"",
		"01", "-", "+1", ".5", "1.", "1.e1", "1e", "1e+", "--1", "0x10", "1_000", "1 2", "-01", "00",
		"[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{", "}", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `{1:2}`, `{"a":1 "b":2}`, `{,}`,
		"{}{}", "{},", "// c\n1", "/**/1", "\ufeff1", "1\u00a0", "\u20281", "\v1", "\xff", "\"\xff\"", "\"\xed\xa0\x80\"",
		strings.Repeat("[", 513) + strings.Repeat("]", 513), strings.Repeat(`{"a":`, 513) + "1" + strings.Repeat("}", 513),
	} {
		if got, err := jsCanonical(text); err == nil {
			t.Errorf("%.40q: %.40s", text, got)
		}
	}
	deep := strings.Repeat("[", 512) + strings.Repeat("]", 512)
	if got, err := jsCanonical(deep); err != nil || string(got) != deep {
		t.Errorf("512 levels: %v", err)
	}
}

// Sorting is by UTF-16 code units: all that holds for any two keys.
func TestAISDKKeys_ByCodeUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringOfN(rapid.SampledFrom([]rune("aZ0é\ud7ff\ue000\uffff\U00010000\U0010ffff")), 0, 3, -1), 0, 6, rapid.ID).Draw(t, "keys")
		object := func(keys []string) string {
			var b strings.Builder
			for _, key := range keys {
				quoted, _ := json.Marshal(key)
				fmt.Fprintf(&b, ",%s:%d", quoted, len(key))
			}
			return "{" + strings.TrimPrefix(b.String(), ",") + "}"
		}
		one, err := jsCanonical(object(keys))
		if err != nil {
			t.Fatal(err)
		}
		two, err := jsCanonical(object(rapid.Permutation(keys).Draw(t, "permuted")))
		if err != nil || !bytes.Equal(one, two) {
			t.Fatalf("%s and %s, %v", one, two, err)
		}
	})
}

func FuzzAISDKCanonical(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":[1.0,-0,1e21,"\ud83e"]}`, `{"a":1,"a":2}`, `"\u0041\/"`, "1e-7", " null ", `[[],{}]`, "tru"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := jsCanonical(text)
		// Both readers hold to RFC 8259; ours wants UTF-8 and bounds the depth as well.
		if valid := json.Valid([]byte(text)); err == nil && !valid {
			t.Fatalf("%q: took what is not JSON", text)
		} else if err != nil && valid && utf8.ValidString(text) && strings.Count(text, "[")+strings.Count(text, "{") < jsDepth {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil {
			return
		}
		if !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("%q became %q", text, got)
		}
		again, err := jsCanonical(string(got))
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q, then %q, %v", got, again, err)
		}
	})
}

// What JavaScript writes of a double reads back as the same double.
func TestAISDKNumbers_ReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		got := string(appendJSNumber(nil, f))
		if back, err := strconv.ParseFloat(got, 64); err != nil || back != f {
			t.Fatalf("%g is written %s and read %g, %v", f, got, back, err)
		}
		if canonical, err := jsCanonical(got); err != nil || string(canonical) != got {
			t.Fatalf("%s is canonically %s, %v", got, canonical, err)
		}
	})
}
