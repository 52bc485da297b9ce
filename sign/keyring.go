package sign

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// A Purpose names what a key is for. Every purpose has a key of its own, derived
// from the secret with HKDF, so a signature made for one is worth nothing for
// another. The set is closed; an unknown purpose is an error.
type Purpose string

// The purposes.
const (
	PurposeApproval Purpose = "approval" // requests: [Keyring.SignRequest]
	PurposeDecision Purpose = "decision" // answers: [Keyring.SignDecision]
	PurposeLog      Purpose = "log"      // commits: [Keyring.SignCommit]
	PurposeCursor   Purpose = "cursor"   // cursors of lists and streams: [Keyring.Sign]
	PurposeToken    Purpose = "token"    // turns that a client keeps: [Keyring.Sign]
)

// labels gives the first field of the tuples that a purpose signs.
var labels = map[Purpose]string{
	PurposeApproval: "ringi-approval-v1",
	PurposeDecision: "ringi-decision-v1",
	PurposeLog:      "ringi-commit-v1",
	PurposeCursor:   "ringi-cursor-v1",
	PurposeToken:    "ringi-token-v1",
}

// MinSecret and MaxSecret bound the length of a secret in bytes.
const (
	MinSecret = 32
	MaxSecret = 64
)

// A Keyring signs with its first key and verifies with all of them. Make one
// with [New], [Parse] or [FromEnv].
//
// A Keyring does not keep its secrets, only keys derived from them, and never
// shows those either: whatever prints, marshals or logs it gets key ids.
//
// The nil *Keyring and the zero Keyring hold no key. They sign and verify
// nothing: every attempt is [ErrNoKeyring]. A Keyring does not change once it
// is made and may be used by many goroutines at once.
type Keyring struct {
	roots []*root // the first signs; pointers, so that no printed copy shows a key
}

// root is what is derived from one secret.
type root struct {
	id    string
	check string
	keys  map[Purpose]*key
}

// New makes a keyring of secrets, 32 to 64 random bytes each. The first signs,
// all verify. No secret, one of another length, or the same one twice is an
// error that names the entry by its number from 1, never by its bytes. New does
// not keep or change the slices; the caller may clear them.
func New(secrets ...[]byte) (*Keyring, error) {
	if len(secrets) == 0 {
		return nil, errors.New("make keyring: no secret")
	}
	ring := &Keyring{}
	for i, secret := range secrets {
		if len(secret) < MinSecret || len(secret) > MaxSecret {
			return nil, fmt.Errorf("make keyring: entry %d: %d bytes, want %d to %d", i+1, len(secret), MinSecret, MaxSecret)
		}
		r, err := newRoot(secret)
		if err != nil {
			return nil, fmt.Errorf("make keyring: entry %d: %w", i+1, err)
		}
		if ring.Has(r.id) {
			return nil, fmt.Errorf("make keyring: entry %d: the same key as an earlier entry", i+1)
		}
		ring.roots = append(ring.roots, r)
	}
	return ring, nil
}

// newRoot derives everything that a secret is used for (RFC 5869, SHA-256, no
// salt, info "ringi-key-v1 " and the use). The id is the first 16 hex digits of
// SHA-256 over "ringi-key-id-v1 " and a derived key that does nothing else.
func newRoot(secret []byte) (*root, error) {
	named, err := derive(secret, "id")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte("ringi-key-id-v1 "), named...))
	r := &root{id: hex.EncodeToString(sum[:keyIDSize/2]), keys: map[Purpose]*key{}}

	checking, err := derive(secret, "check")
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, checking)
	mac.Write([]byte("ringi-key-check-v1 " + r.id))
	r.check = hex.EncodeToString(mac.Sum(nil))

	for purpose, label := range labels {
		derived, err := derive(secret, string(purpose))
		if err != nil {
			return nil, err
		}
		r.keys[purpose] = newKey(derived, label, r.id)
	}
	return r, nil
}

func derive(secret []byte, use string) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, nil, "ringi-key-v1 "+use, sha256.Size)
}

// KeyIDs returns the ids of all keys, the signing one first: what a store
// remembers. A nil or zero keyring has none.
func (k *Keyring) KeyIDs() []string {
	if k == nil {
		return nil
	}
	ids := make([]string, len(k.roots))
	for i, r := range k.roots {
		ids[i] = r.id
	}
	return ids
}

// SigningID returns the id of the key that signs, or "" where there is none.
func (k *Keyring) SigningID() string {
	if k == nil || len(k.roots) == 0 {
		return ""
	}
	return k.roots[0].id
}

// Has tells whether the keyring holds the key with this id.
func (k *Keyring) Has(id string) bool { return k.find(id) != nil }

// Check returns the check value of a key: 64 hex digits, an HMAC that only the
// key's holder can make and that signs nothing. A store keeps it beside the id,
// and so finds a process that has another key under the same id. It is "" where
// the keyring has no key with this id.
func (k *Keyring) Check(id string) string {
	r := k.find(id)
	if r == nil {
		return ""
	}
	return r.check
}

// find does not need constant time: ids are public.
func (k *Keyring) find(id string) *root {
	if k == nil {
		return nil
	}
	for _, r := range k.roots {
		if r.id == id {
			return r
		}
	}
	return nil
}

// String returns the key ids, and nothing that is secret.
func (k *Keyring) String() string {
	ids := k.KeyIDs()
	if len(ids) == 0 {
		return "keyring(no keys)"
	}
	return "keyring(" + strings.Join(ids, " ") + ")"
}

// GoString is [Keyring.String].
func (k *Keyring) GoString() string { return k.String() }

// Format writes [Keyring.String] for every verb and flag.
func (k *Keyring) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, k.String()) }

// MarshalJSON gives the key ids as an array of strings.
func (k *Keyring) MarshalJSON() ([]byte, error) {
	ids := k.KeyIDs()
	if ids == nil {
		ids = []string{}
	}
	return json.Marshal(ids)
}

// LogValue gives [Keyring.String] to a slog handler.
func (k *Keyring) LogValue() slog.Value { return slog.StringValue(k.String()) }
