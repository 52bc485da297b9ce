package httpapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"
)

// sealer makes cursors that tell nothing and are good for one use: an id at
// which a list goes on may be of a thing that its reader must not learn of, and
// a number of an event says how many others there were.
type sealer struct{ gcm cipher.AEAD }

// newSealer makes a sealer with a key that is derived from a secret (RFC 5869,
// SHA-256), or, without one, with a key of its own: then cursors end with the
// process. The nonces are random: a key is good for 2^32 cursors (NIST SP
// 800-38D, 8.3), which at 100 a second is more than a year.
func newSealer(secret []byte) sealer {
	key := make([]byte, 32)
	var err error
	if secret == nil {
		rand.Read(key)
	} else if key, err = hkdf.Key(sha256.New, secret, nil, "ringi-api-cursor-v1", len(key)); err != nil {
		panic(err) // SHA-256 gives 32 bytes
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // a key of 32 bytes is one
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return sealer{gcm}
}

// closed makes the cursor of a place in what label names.
func (s sealer) closed(label, place string) string {
	return base64.RawURLEncoding.EncodeToString(s.gcm.Seal(nil, nil, []byte(place), []byte(label)))
}

// opened reads a cursor; an empty one is the beginning.
func (s sealer) opened(label, cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		b, err = s.gcm.Open(nil, nil, b, []byte(label))
	}
	if err != nil {
		return "", fmt.Errorf("%w: the cursor is of another list, or of another server: begin anew", errMalformed)
	}
	return string(b), nil
}

func itoa(n int) string { return strconv.Itoa(n) }

// seconds is a delay as Retry-After writes it, rounded up.
func seconds(d time.Duration) string { return itoa(int((d + time.Second - 1) / time.Second)) }
