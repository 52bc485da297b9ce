package sign

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"
	"time"
)

// vectorFile is testdata/vectors.json, made by testdata/vectors.mjs with Node.
type vectorFile struct {
	Own struct {
		Secret, KeyID, Check, Store, Run, RequestDigest, Input, Reason string
		InputDigest, ReasonDigest, Decider, Authenticated, Nonce, Head string
		Request, Decision, Denial, Commit, Cursor, Digest, Idempotency string
		Micros, Seq                                                    int64
	}
	AISDKSecret string
	AISDK       []aisdkVector
	Doubles     [][2]string
}

func readVectors(t *testing.T) vectorFile {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file vectorFile
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file
}

func doubleOf(t *testing.T, bits string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(bits, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return math.Float64frombits(n)
}

func bytesOf(t *testing.T, text string) [32]byte {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != 32 {
		t.Fatalf("%q: %v", text, err)
	}
	return [32]byte(raw)
}

// The forms are frozen: these values were made by another implementation, and
// what a store holds depends on them.
func TestVectors_OwnForm(t *testing.T) {
	v := readVectors(t).Own
	ring, err := Parse(v.Secret)
	if err != nil {
		t.Fatal(err)
	}
	nonce, head := bytesOf(t, v.Nonce), bytesOf(t, v.Head)
	d := Decision{
		StoreID: v.Store, RequestDigest: v.RequestDigest, Answer: "approve", InputDigest: InputDigest(nonce, v.Input),
		ReasonDigest: ReasonDigest(nonce, v.Reason), Decider: v.Decider, Authenticated: v.Authenticated, At: time.UnixMicro(v.Micros),
	}
	denial := d
	denial.Answer, denial.InputDigest, denial.ReasonDigest = "deny", "", ""
	mac, id, err := ring.SignCommit(nil, v.Store, v.Run, v.Seq, head)
	if err != nil || id != v.KeyID {
		t.Fatalf("commit by %s, %v", id, err)
	}
	check := func(name, want string) func(string, error) {
		return func(got string, err error) {
			t.Helper()
			if err != nil || got != want {
				t.Errorf("%s: %q, %v; want %q", name, got, err, want)
			}
		}
	}
	check("key id", v.KeyID)(ring.SigningID(), nil)
	check("check value", v.Check)(ring.Check(v.KeyID), nil)
	check("input digest", v.InputDigest)(d.InputDigest, nil)
	check("reason digest", v.ReasonDigest)(d.ReasonDigest, nil)
	check("request", v.Request)(ring.SignRequest(v.Store, v.RequestDigest))
	check("decision", v.Decision)(ring.SignDecision(d))
	check("denial", v.Denial)(ring.SignDecision(denial))
	check("commit", v.Commit)(hex.EncodeToString(mac), nil)
	check("cursor", v.Cursor)(ring.Sign(PurposeCursor, "inbox", "2025-12-01", ""))
	check("digest", v.Digest)(Digest("example-v1", v.Store, v.Run))
	check("idempotency key", v.Idempotency)(IdempotencyKey(v.Run, 3, 1, "pay_out", v.Input))
}
