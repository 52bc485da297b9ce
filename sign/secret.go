package sign

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
)

// SecretEnv is the environment variable that [FromEnv] reads.
const SecretEnv = "TOOL_APPROVAL_SECRET"

// FromEnv reads the keyring from TOOL_APPROVAL_SECRET, as [Parse] does.
//
// Where the variable is not set it returns (nil, nil): there is no keyring, and
// the caller decides whether that is allowed. A variable that is set and empty,
// or that holds anything but good secrets, is an error: whoever set it wanted
// signatures.
func FromEnv() (*Keyring, error) {
	text, ok := os.LookupEnv(SecretEnv)
	if !ok {
		return nil, nil
	}
	ring, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", SecretEnv, err)
	}
	return ring, nil
}

// Parse makes a keyring of secrets written as text: each 32 to 64 bytes in
// base64 (the standard alphabet with padding, RFC 4648 section 4, as written by
// "openssl rand -base64 32"), several separated by commas, blanks and line ends
// around an entry dropped. The first signs, all verify.
//
// Anything else is an error and never taken as a passphrase. The error names the
// entry by its number from 1 and never holds its text.
func Parse(text string) (*Keyring, error) {
	entries := strings.Split(text, ",")
	secrets := make([][]byte, len(entries))
	for i, entry := range entries {
		secret, err := parseSecret(strings.Trim(entry, " \t\r\n"))
		if err != nil {
			return nil, fmt.Errorf("parse secrets: entry %d: %w", i+1, err)
		}
		secrets[i] = secret
	}
	ring, err := New(secrets...)
	for _, secret := range secrets {
		clear(secret)
	}
	return ring, err
}

// parseSecret is strict where encoding/base64 is not: that skips line ends
// inside the text, and its own errors quote a part of it.
func parseSecret(entry string) ([]byte, error) {
	if entry == "" {
		return nil, errors.New("empty")
	}
	for i := range len(entry) {
		switch c := entry[i]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/', c == '=':
		case c == '-' || c == '_':
			return nil, errors.New("the URL alphabet of base64, want the standard one")
		default:
			return nil, errors.New("not base64")
		}
	}
	secret, err := base64.StdEncoding.Strict().DecodeString(entry)
	if err != nil {
		return nil, errors.New("not base64 with padding")
	}
	if len(secret) < MinSecret || len(secret) > MaxSecret {
		return nil, fmt.Errorf("%d bytes, want base64 of %d to %d", len(secret), MinSecret, MaxSecret)
	}
	return secret, nil
}
