package httpapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"
)

// sealer makes cursors that tell nothing and are good for one use: an id at
// which a list goes on may be of a thing that its reader must not learn of, and
// a number of an event says how many others there were.
type sealer struct{ gcm cipher.AEAD }

// newSealer makes a sealer with a key of its own: cursors end with the process.
func newSealer() sealer {
	var key [32]byte
	rand.Read(key[:])
	block, err := aes.NewCipher(key[:])
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
		return "", fmt.Errorf("%w: the cursor is of another list, or of another start of the server: begin anew", errMalformed)
	}
	return string(b), nil
}

func itoa(n int) string { return strconv.Itoa(n) }

// seconds is a delay as Retry-After writes it, rounded up.
func seconds(d time.Duration) string { return itoa(int((d + time.Second - 1) / time.Second)) }
