package sign

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

var (
	benchInput  = `{"text":"` + strings.Repeat("0123456789abcdef", 63) + `12345"}` // 1 KiB
	benchDigest = strings.Repeat("0123456789abcdef", 4)
	benchStore  = "sto_01jxyz3k4m5n6p7q8r9s0t1v2w"
	benchRun    = "run_01jxyz3k4m5n6p7q8r9s0t1v2w"
)

// baseline is what the target is measured against: a fresh HMAC over the bytes.
func baseline(b *testing.B) {
	b.ReportAllocs()
	key, input := secretOf(1, 32), []byte(benchInput)
	var out [32]byte
	for b.Loop() {
		mac := hmac.New(sha256.New, key)
		mac.Write(input)
		mac.Sum(out[:0])
	}
}

// BenchmarkSign1K digests an input of 1 KiB and signs a request over it.
func BenchmarkSign1K(b *testing.B) {
	b.Run("baseline", baseline)
	b.Run("sign", func(b *testing.B) {
		b.ReportAllocs()
		ring, nonce := testRing(b, 1), [32]byte{1}
		for b.Loop() {
			if _, err := ring.SignRequest(benchStore, InputDigest(nonce, benchInput)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		ring, nonce := testRing(b, 1), [32]byte{1}
		var digest, signature []byte
		for b.Loop() {
			digest = AppendInputDigest(digest[:0], nonce, benchInput)
			signature, _ = ring.AppendRequestSignature(signature[:0], benchStore, benchDigest)
		}
		if len(digest) != 64 || len(signature) != signatureSize {
			b.Fatal(len(digest), len(signature))
		}
	})
}

// BenchmarkVerify1K digests an input of 1 KiB and verifies a request over it.
func BenchmarkVerify1K(b *testing.B) {
	b.Run("baseline", baseline)
	b.Run("verify", func(b *testing.B) {
		b.ReportAllocs()
		ring, nonce := testRing(b, 1), [32]byte{1}
		signature, err := ring.SignRequest(benchStore, InputDigest(nonce, benchInput))
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := ring.VerifyRequest(benchStore, InputDigest(nonce, benchInput), signature); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSignDecision(b *testing.B) {
	b.ReportAllocs()
	ring, d := testRing(b, 1), testDecision()
	d.RequestDigest, d.InputDigest, d.ReasonDigest = benchDigest, benchDigest, benchDigest
	for b.Loop() {
		if _, err := ring.SignDecision(d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSignCommit(b *testing.B) {
	b.ReportAllocs()
	ring, head := testRing(b, 1), sha256.Sum256([]byte("head"))
	buf := make([]byte, 0, 32)
	for b.Loop() {
		if _, _, err := ring.SignCommit(buf, benchStore, benchRun, 123456, head); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyCommit(b *testing.B) {
	b.ReportAllocs()
	ring, head := testRing(b, 1), sha256.Sum256([]byte("head"))
	mac, id, err := ring.SignCommit(nil, benchStore, benchRun, 123456, head)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := ring.VerifyCommit(benchStore, benchRun, 123456, head, id, mac); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIdempotencyKey(b *testing.B) {
	b.ReportAllocs()
	var key []byte
	for b.Loop() {
		key, _ = AppendIdempotencyKey(key[:0], benchRun, 3, 1, "pay_out", `{"order":"o-91","cents":1999}`)
	}
	if len(key) != 37 {
		b.Fatal(len(key))
	}
}

// The hot paths allocate nothing but the text that they return.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool forget on purpose")
	}
	ring, head, nonce := testRing(t, 1, 2), sha256.Sum256([]byte("head")), [32]byte{1}
	signature, _ := ring.SignRequest(benchStore, benchDigest)
	mac, id, _ := ring.SignCommit(nil, benchStore, benchRun, 123456, head)
	buf := make([]byte, 0, 128)
	for _, tt := range []struct {
		name string
		most float64
		run  func()
	}{
		{"SignRequest", 1, func() { _, _ = ring.SignRequest(benchStore, benchDigest) }},
		{"AppendRequestSignature", 0, func() { _, _ = ring.AppendRequestSignature(buf, benchStore, benchDigest) }},
		{"VerifyRequest", 0, func() { _ = ring.VerifyRequest(benchStore, benchDigest, signature) }},
		{"SignCommit", 0, func() { _, _, _ = ring.SignCommit(buf, benchStore, benchRun, 123456, head) }},
		{"VerifyCommit", 0, func() { _ = ring.VerifyCommit(benchStore, benchRun, 123456, head, id, mac) }},
		{"AppendDecisionSignature", 1, func() { _, _ = ring.AppendDecisionSignature(buf, testDecision()) }},
		{"InputDigest", 1, func() { _ = InputDigest(nonce, benchInput) }},
		{"AppendInputDigest", 0, func() { _ = AppendInputDigest(buf, nonce, benchInput) }},
		{"AppendIdempotencyKey", 0, func() { _, _ = AppendIdempotencyKey(buf, benchRun, 3, 1, "pay", benchInput) }},
		{"Digest", 1, func() { _, _ = Digest("label-v1", benchStore, benchRun, benchDigest) }},
		{"Tuple", 0, func() { _, _ = Tuple(buf, benchStore, benchRun) }},
	} {
		if got := testing.AllocsPerRun(200, tt.run); got > tt.most {
			t.Errorf("%s: %v allocations, want at most %v", tt.name, got, tt.most)
		}
	}
	if len(hex.EncodeToString(mac)) != 64 {
		t.Error("no MAC")
	}
}
