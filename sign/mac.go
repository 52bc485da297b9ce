package sign

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"sync"
)

// Sign signs fields for a purpose that has no method of its own:
// [PurposeCursor] and [PurposeToken]. The tuple is the purpose's label, the key id and
// fields. Another purpose is an error, so that nobody makes an approval, a
// decision or a commit by a way around their checks. The text has the form of
// [Keyring.SignRequest]; the errors are the same.
func (k *Keyring) Sign(purpose Purpose, fields ...string) (string, error) {
	if !purpose.free() {
		return "", fmt.Errorf("sign: purpose %q has no free form", purpose)
	}
	var text [signatureSize]byte
	out, err := k.sign(text[:0], purpose, fields...)
	if err != nil {
		return "", fmt.Errorf("sign %s: %w", purpose, err)
	}
	return string(out), nil
}

// Verify is the counterpart of [Keyring.Sign], with the errors of
// [Keyring.VerifyRequest].
func (k *Keyring) Verify(purpose Purpose, signature string, fields ...string) error {
	if !purpose.free() {
		return fmt.Errorf("verify: purpose %q has no free form", purpose)
	}
	if err := k.verify(purpose, signature, fields...); err != nil {
		return fmt.Errorf("verify %s: %w", purpose, err)
	}
	return nil
}

// free reports whether the purpose has no method of its own.
func (p Purpose) free() bool { return p == PurposeCursor || p == PurposeToken }

// sign appends the signature of the first key.
func (k *Keyring) sign(dst []byte, purpose Purpose, fields ...string) ([]byte, error) {
	keyID := k.SigningID()
	sum, err := k.sum(purpose, keyID, fields...)
	if err != nil {
		return dst, err
	}
	return appendSignature(dst, keyID, &sum), nil
}

// verify is the one place where the text of a signature is checked. Every way in
// comes through here.
func (k *Keyring) verify(purpose Purpose, signature string, fields ...string) error {
	keyID, claimed, err := parseSignature(signature)
	if err != nil {
		return err
	}
	sum, err := k.sum(purpose, keyID, fields...)
	if err != nil {
		return err
	}
	return same(sum, claimed)
}

func (k *Keyring) sum(purpose Purpose, keyID string, fields ...string) ([sha256.Size]byte, error) {
	w, err := k.open(purpose, keyID)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	w.add(fields...)
	return w.close()
}

// same compares in constant time.
func same(sum, claimed [sha256.Size]byte) error {
	if subtle.ConstantTimeCompare(sum[:], claimed[:]) != 1 {
		return ErrWrong
	}
	return nil
}

// key is the key of one secret for one purpose. The bytes live only in the
// closure that makes a writer, so that nothing which prints a key can show them.
type key struct {
	writers sync.Pool // of *writer
}

// writer collects one tuple and closes it with the MAC. It is reused: HMAC's two
// first blocks, which depend on the key alone, are then not hashed again.
type writer struct {
	key    *key
	mac    hash.Hash
	buf    []byte
	prefix int // the length of label and key id, which stay in buf
	next   int // the index of the next field
	err    error
}

const (
	writerRoom = 512     // fits a decision with ordinary ids
	writerKeep = 8 << 10 // a larger buffer is not kept
)

func newKey(derived []byte, label, keyID string) *key {
	k := &key{}
	prefix := fmt.Sprintf("[%q,%q", label, keyID)
	k.writers.New = func() any {
		buf := append(make([]byte, 0, writerRoom), prefix...)
		return &writer{key: k, mac: hmac.New(sha256.New, derived), buf: buf, prefix: len(prefix)}
	}
	return k
}

// open starts a tuple with label and key id. A key that the ring does not hold
// is ErrRetired.
func (k *Keyring) open(purpose Purpose, keyID string) (*writer, error) {
	if k == nil || len(k.roots) == 0 {
		return nil, ErrNoKeyring
	}
	r := k.find(keyID)
	if r == nil {
		return nil, ErrRetired
	}
	key := r.keys[purpose]
	if key == nil {
		return nil, fmt.Errorf("unknown purpose %q", purpose)
	}
	w := key.writers.Get().(*writer)
	w.buf, w.next, w.err = w.buf[:w.prefix], 2, nil
	return w, nil
}

func (w *writer) add(fields ...string) {
	for _, field := range fields {
		var bad string
		w.buf = append(w.buf, ',')
		if w.buf, bad = appendField(w.buf, field); bad != "" && w.err == nil {
			w.err = &FieldError{Index: w.next, Reason: bad}
		}
		w.next++
	}
}

func (w *writer) addInt(n int64) {
	w.buf = append(w.buf, `,"`...)
	w.buf = strconv.AppendInt(w.buf, n, 10)
	w.buf = append(w.buf, '"')
	w.next++
}

func (w *writer) addHex(b []byte) {
	w.buf = append(w.buf, `,"`...)
	w.buf = hex.AppendEncode(w.buf, b)
	w.buf = append(w.buf, '"')
	w.next++
}

// close returns the MAC and gives the writer back; it must not be used again.
func (w *writer) close() (sum [sha256.Size]byte, err error) {
	if w.err == nil {
		w.buf = append(w.buf, ']')
		w.mac.Reset()
		w.mac.Write(w.buf)
		n := len(w.buf)
		w.buf = w.mac.Sum(w.buf) // behind the tuple: an array of ours would move to the heap
		sum = [sha256.Size]byte(w.buf[n:])
	}
	err = w.err
	if cap(w.buf) <= writerKeep {
		w.key.writers.Put(w)
	}
	return sum, err
}
