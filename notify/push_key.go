package notify

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// PushKey says to push services who sends (VAPID, RFC 8292). Browsers are bound
// to it: with another key all of them subscribe anew.
type PushKey struct {
	private *ecdsa.PrivateKey
	public  string
}

// NewPushKey makes a key, and gives it as PEM for a file that its owner alone
// reads.
func NewPushKey() (*PushKey, []byte, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make push key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("make push key: %w", err)
	}
	k, err := pushKey(private)
	return k, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// ParsePushKey reads what [NewPushKey] gave.
func ParsePushKey(text []byte) (*PushKey, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" || len(rest) > 0 {
		return nil, errors.New("read push key: not one PRIVATE KEY in PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("read push key: not a key in PKCS #8")
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, errors.New("read push key: not a key of P-256")
	}
	return pushKey(private)
}

func pushKey(private *ecdsa.PrivateKey) (*PushKey, error) {
	public, err := private.PublicKey.ECDH()
	if err != nil {
		return nil, fmt.Errorf("read push key: %w", err)
	}
	return &PushKey{private, base64.RawURLEncoding.EncodeToString(public.Bytes())}, nil
}

// Public is the public key as browsers take it: a point, uncompressed, base64url.
func (k *PushKey) Public() string { return k.public }

// String returns the public key alone: a key is never logged.
func (k *PushKey) String() string { return "push key " + k.public }

// GoString does what String does.
func (k *PushKey) GoString() string { return k.String() }

// authorization is the header of RFC 8292, section 3: a JWT (RFC 7519) signed
// with ES256, good for one push service and twelve hours.
func (k *PushKey) authorization(endpoint *url.URL, contact string, now time.Time) (string, error) {
	claims := map[string]any{"aud": endpoint.Scheme + "://" + endpoint.Host, "exp": now.Add(12 * time.Hour).Unix()}
	if contact != "" {
		claims["sub"] = contact
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.private, sum[:])
	if err != nil {
		return "", err
	}
	var sig [64]byte
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return "vapid t=" + text + "." + base64.RawURLEncoding.EncodeToString(sig[:]) + ", k=" + k.public, nil
}
