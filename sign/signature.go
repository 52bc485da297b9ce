package sign

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// The four ways in which a signature is no good, and the one in which there is
// nothing to check it with. All are closed: nothing runs on any of them.
var (
	// ErrMissing: there is no signature.
	ErrMissing = errors.New("signature missing")
	// ErrMalformed: the text is not a signature of ours, or not in its one spelling.
	ErrMalformed = errors.New("signature malformed")
	// ErrWrong: a signature, but of something else.
	ErrWrong = errors.New("signature wrong")
	// ErrRetired: it names a key that the keyring does not hold (any more). What
	// it signed has to be asked again.
	ErrRetired = errors.New("signature by a retired key")
	// ErrNoKeyring: a nil or zero [Keyring] was asked to sign or to verify.
	ErrNoKeyring = errors.New("no keyring")
)

const (
	version       = "v1"
	keyIDSize     = 16
	sumTextSize   = 43 // 32 bytes in base64url without padding
	signatureSize = len(version) + 1 + keyIDSize + 1 + sumTextSize
)

// strictURL refuses bits that are left over, so that 32 bytes have one spelling.
var strictURL = base64.RawURLEncoding.Strict()

// SignatureKeyID returns the id of the key that a signature names, without
// checking the signature: it tells what a key still holds, not that something is
// genuine. The error wraps [ErrMissing] or [ErrMalformed].
func SignatureKeyID(signature string) (string, error) {
	id, _, err := parseSignature(signature)
	if err != nil {
		return "", fmt.Errorf("read key id: %w", err)
	}
	return id, nil
}

func appendSignature(dst []byte, keyID string, sum *[sha256.Size]byte) []byte {
	dst = append(dst, version...)
	dst = append(dst, '.')
	dst = append(dst, keyID...)
	dst = append(dst, '.')
	return strictURL.AppendEncode(dst, sum[:])
}

// parseSignature takes exactly the texts that appendSignature makes.
func parseSignature(text string) (keyID string, sum [sha256.Size]byte, err error) {
	if text == "" {
		return "", sum, ErrMissing
	}
	const idAt, sumAt = len(version) + 1, len(version) + 1 + keyIDSize + 1
	if len(text) != signatureSize || text[:idAt] != version+"." || text[sumAt-1] != '.' || !isKeyID(text[idAt:sumAt-1]) {
		return "", sum, ErrMalformed
	}
	if sum, err = parseSum(text[sumAt:]); err != nil {
		return "", sum, err
	}
	return text[idAt : sumAt-1], sum, nil
}

// parseSum decodes 32 bytes from their one spelling. The decoder skips line
// ends; in a text of 43 bytes one of them leaves less than 32 bytes.
func parseSum(text string) (sum [sha256.Size]byte, err error) {
	if len(text) != sumTextSize {
		return sum, ErrMalformed
	}
	var in [sumTextSize]byte
	copy(in[:], text)
	if n, err := strictURL.Decode(sum[:], in[:]); err != nil || n != len(sum) {
		return [sha256.Size]byte{}, ErrMalformed
	}
	return sum, nil
}

func isKeyID(id string) bool {
	if len(id) != keyIDSize {
		return false
	}
	for i := range len(id) {
		if c := id[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
