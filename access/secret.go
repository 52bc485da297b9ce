package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"strings"
)

// alphabet is Crockford's base 32 in lower case.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

var base32Form = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

const (
	secretSize   = 52 // 256 bits
	prefixSize   = 10 // 50 bits
	tokenMark    = "ringi_"
	tokenSize    = len(tokenMark) + prefixSize + 1 + secretSize
	sessionLabel = "ringi-session-v1"
	linkLabel    = "ringi-link-v1"
	tokenLabel   = "ringi-token-v1"
	csrfLabel    = "ringi-csrf-v1"
	onceLabel    = "ringi-once-v1"
)

// newSecret makes 256 random bits as 52 characters.
func newSecret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails: the runtime ends the process instead
	return base32Form.EncodeToString(b[:])
}

// newToken makes a token: a mark that scanners for leaked secrets find, the
// prefix under which it is found, and 256 random bits.
func newToken() (prefix, token string) {
	prefix = newSecret()[:prefixSize]
	return prefix, tokenMark + prefix + "_" + newSecret()
}

// tokenPrefix returns the prefix of what has the form of a token.
func tokenPrefix(token string) (string, bool) {
	rest, ok := strings.CutPrefix(token, tokenMark)
	if !ok || len(token) != tokenSize || rest[prefixSize] != '_' {
		return "", false
	}
	prefix, secret := rest[:prefixSize], rest[prefixSize+1:]
	return prefix, inAlphabet(prefix) && inAlphabet(secret)
}

// isSecret reports whether s has the form of a session's or a link's secret.
func isSecret(s string) bool { return len(s) == secretSize && inAlphabet(s) }

func inAlphabet(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune(alphabet, r) }) < 0
}

// hashed is a secret as it is kept. The label keeps the kinds apart: what one
// table holds is nothing in another.
func hashed(label, secret string) string {
	sum := sha256.Sum256([]byte(label + "\x00" + secret))
	return hex.EncodeToString(sum[:])
}

// csrfToken binds a form to a session: who does not have the cookie cannot make
// it, and the server keeps nothing for it.
func csrfToken(session string) string {
	mac := hmac.New(sha256.New, []byte(session))
	mac.Write([]byte(csrfLabel))
	return base32Form.EncodeToString(mac.Sum(nil))
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
