package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

// Tolerance is how far a timestamp may be from the receiver's clock.
const Tolerance = 5 * time.Minute

// ErrSignature is in the error of a message that no secret signed, or not now.
var ErrSignature = errors.New("webhook signature refused")

const (
	secretPrefix         = "whsec_"
	minSecret, maxSecret = 24, 64
	maxSecrets           = 5
)

// Secret is a key that messages are signed with. It prints as ***.
type Secret struct{ key []byte }

// String hides the secret.
func (Secret) String() string { return "***" }

// GoString hides the secret.
func (Secret) GoString() string { return "***" }

// LogValue hides the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue("***") }

// NewSecret makes a secret, in the form that [ParseSecrets] reads.
func NewSecret() string {
	key := make([]byte, 32)
	rand.Read(key) // it never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// ParseSecrets reads one to five secrets of the form whsec_BASE64, 24 to 64 bytes
// each, separated by blanks, line ends or commas. All of them sign: while a
// secret is exchanged, the receiver may know the old one or the new one. An
// error never holds a part of a secret.
func ParseSecrets(text string) ([]Secret, error) {
	var out []Secret
	for i, one := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,", r) }) {
		coded, ok := strings.CutPrefix(one, secretPrefix)
		if !ok {
			return nil, fmt.Errorf("read webhook secret %d: it does not begin with %s", i+1, secretPrefix)
		}
		key, err := base64.StdEncoding.Strict().DecodeString(coded)
		if err != nil {
			return nil, fmt.Errorf("read webhook secret %d: it is not base64", i+1)
		}
		if len(key) < minSecret || len(key) > maxSecret {
			return nil, fmt.Errorf("read webhook secret %d: it has %d bytes, not %d to %d", i+1, len(key), minSecret, maxSecret)
		}
		out = append(out, Secret{key})
	}
	if len(out) == 0 || len(out) > maxSecrets {
		return nil, fmt.Errorf("read webhook secrets: there are %d, not 1 to %d", len(out), maxSecrets)
	}
	return out, nil
}

// Sign writes the three headers of a message: its id, the time of this try, and
// a signature by each secret (v1: HMAC-SHA-256 over ID.TIMESTAMP.BODY).
func Sign(h http.Header, secrets []Secret, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(s.sum(id, stamp, body))
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, stamp)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
}

// Verify is for receivers: it reports whether one of the secrets signed a
// message within [Tolerance] of now. [ErrSignature] where not, without saying
// more to an attacker than that. A receiver also drops ids that it has seen.
func Verify(h http.Header, secrets []Secret, now time.Time, body []byte) error {
	id, stamp := h.Get(HeaderID), h.Get(HeaderTimestamp)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if id == "" || err != nil {
		return fmt.Errorf("%w: headers are missing or malformed", ErrSignature)
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > Tolerance || off < -Tolerance {
		return fmt.Errorf("%w: its time is too far from now", ErrSignature)
	}
	for _, one := range strings.Fields(h.Get(HeaderSignature)) {
		coded, ok := strings.CutPrefix(one, "v1,")
		if !ok {
			continue // another version
		}
		sum, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			continue
		}
		for _, s := range secrets {
			if hmac.Equal(sum, s.sum(id, stamp, body)) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: no signature fits", ErrSignature)
}

func (s Secret) sum(id, stamp string, body []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(id + "." + stamp + "."))
	m.Write(body)
	return m.Sum(nil)
}
