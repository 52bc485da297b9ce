package sign

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"sync"
)

// NonceSize is the length of a request's nonce in bytes. A nonce is random, made
// once for each request, stored with the input and erased with it.
const NonceSize = 32

// Digest returns SHA-256 over the [Tuple] of label and fields, as 64 hex digits.
// The label names what is digested and the version of its form, so that the
// digest of one kind of thing is never that of another. Text that a tuple cannot
// hold, such as an input with line ends, goes in by its own digest. The error is
// a [*FieldError]; its index counts the label as 0.
func Digest(label string, fields ...string) (string, error) {
	h := hashers.Get().(*hasher)
	defer h.free()
	h.buf = append(h.buf[:0], '[')
	var bad string
	if h.buf, bad = appendField(h.buf, label); bad != "" {
		return "", fmt.Errorf("digest fields: %w", &FieldError{Index: 0, Reason: bad})
	}
	for i, field := range fields {
		h.buf = append(h.buf, ',')
		if h.buf, bad = appendField(h.buf, field); bad != "" {
			return "", fmt.Errorf("digest fields: %w", &FieldError{Index: i + 1, Reason: bad})
		}
	}
	h.buf = append(h.buf, ']')
	h.sha.Write(h.buf)
	return h.hex(), nil
}

// InputDigest returns the digest of an input, as 64 hex digits: SHA-256 over
// `["ringi-input-v1"]`, the nonce and the exact bytes. The nonce blinds it: once
// nonce and input are erased, nobody finds a short input by trying all of them.
// The zero nonce is allowed and blinds nothing. Any bytes may be digested; two
// inputs that differ in one byte, such as 1 and 1.0, differ in their digests.
func InputDigest(nonce [NonceSize]byte, input string) string {
	return blinded(inputLabel, &nonce, input)
}

// AppendInputDigest is [InputDigest] that appends to dst; it allocates nothing
// where dst has room for 64 bytes.
func AppendInputDigest(dst []byte, nonce [NonceSize]byte, input string) []byte {
	return appendBlinded(dst, inputLabel, &nonce, input)
}

// ReasonDigest is [InputDigest] for a decision's reason, under the label
// `["ringi-reason-v1"]`, so that a reason is never taken for an input.
func ReasonDigest(nonce [NonceSize]byte, reason string) string {
	return blinded(reasonLabel, &nonce, reason)
}

const (
	inputLabel  = `["ringi-input-v1"]`
	reasonLabel = `["ringi-reason-v1"]`
)

func blinded(label string, nonce *[NonceSize]byte, text string) string {
	var out [2 * sha256.Size]byte
	return string(appendBlinded(out[:0], label, nonce, text))
}

func appendBlinded(dst []byte, label string, nonce *[NonceSize]byte, text string) []byte {
	h := hashers.Get().(*hasher)
	defer h.free()
	h.buf = append(append(h.buf[:0], label...), nonce[:]...)
	h.sha.Write(h.buf)
	h.write(text)
	return hex.AppendEncode(dst, h.sum())
}

// IdempotencyKey returns the key that a tool hands to the system behind it, so
// that the same call is done once there. It is "idem_" and 32 letters and digits
// (base32, RFC 4648 section 6, lower case, of the first 20 bytes of a SHA-256):
// 37 bytes, because some systems take no more than 45.
//
// It is derived from run, step, position in the turn, tool and the exact bytes
// that run, and from nothing random: the same call after a restore has the same
// key, another call or an edited input has another. It needs no secret key, so a
// process without a keyring makes the same one. The hash is over the [Tuple]
// `["ringi-idempotency-v1", run id, step, position, tool]` followed by the
// input; a tuple's bytes end where its bracket closes, so no two calls share
// them. As it must outlive a lost nonce it is not blinded: who keeps a key keeps
// a fingerprint of the input, to be erased with it.
//
// The error is a [*FieldError], for an empty or forbidden run id or tool name and
// for a negative number; indices count the label as 0.
func IdempotencyKey(runID string, step, position int, tool, input string) (string, error) {
	var out [len(idempotencyPrefix) + idempotencyText]byte
	key, err := AppendIdempotencyKey(out[:0], runID, step, position, tool, input)
	return string(key), err
}

const (
	idempotencyLabel  = `["ringi-idempotency-v1"`
	idempotencyPrefix = "idem_"
	idempotencySize   = 20
	idempotencyText   = idempotencySize / 5 * 8
)

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// AppendIdempotencyKey is [IdempotencyKey] that appends to dst. On an error dst
// comes back as it was. It allocates nothing where dst has room for 37 bytes.
func AppendIdempotencyKey(dst []byte, runID string, step, position int, tool, input string) ([]byte, error) {
	h := hashers.Get().(*hasher)
	defer h.free()
	if err := h.call(runID, step, position, tool); err != nil {
		return dst, fmt.Errorf("derive idempotency key: %w", err)
	}
	h.sha.Write(h.buf)
	h.write(input)
	dst = append(dst, idempotencyPrefix...)
	return lowerBase32.AppendEncode(dst, h.sum()[:idempotencySize]), nil
}

// call puts the tuple of a call into the buffer.
func (h *hasher) call(runID string, step, position int, tool string) error {
	switch {
	case runID == "":
		return &FieldError{Index: 1, Reason: reasonEmpty}
	case step < 0:
		return &FieldError{Index: 2, Reason: reasonNegative}
	case position < 0:
		return &FieldError{Index: 3, Reason: reasonNegative}
	case tool == "":
		return &FieldError{Index: 4, Reason: reasonEmpty}
	}
	var bad string
	h.buf = append(append(h.buf[:0], idempotencyLabel...), ',')
	if h.buf, bad = appendField(h.buf, runID); bad != "" {
		return &FieldError{Index: 1, Reason: bad}
	}
	h.buf = append(h.buf, `,"`...)
	h.buf = strconv.AppendInt(h.buf, int64(step), 10)
	h.buf = append(h.buf, `","`...)
	h.buf = strconv.AppendInt(h.buf, int64(position), 10)
	h.buf = append(h.buf, `",`...)
	if h.buf, bad = appendField(h.buf, tool); bad != "" {
		return &FieldError{Index: 4, Reason: bad}
	}
	h.buf = append(h.buf, ']')
	return nil
}

// hasher is a reused SHA-256 with a buffer; both would otherwise move to the
// heap on every call.
type hasher struct {
	sha hash.Hash
	buf []byte
}

var hashers = sync.Pool{New: func() any {
	return &hasher{sha: sha256.New(), buf: make([]byte, 0, writerRoom)}
}}

// write hashes text without a copy of the whole: a string cannot be handed to a
// hash, so it goes through the buffer.
func (h *hasher) write(text string) {
	for len(text) > 0 {
		n := min(len(text), cap(h.buf))
		h.buf = append(h.buf[:0], text[:n]...)
		h.sha.Write(h.buf)
		text = text[n:]
	}
}

// sum gives the hash in the buffer, good until the hasher is used again.
func (h *hasher) sum() []byte {
	h.buf = h.sha.Sum(h.buf[:0])
	return h.buf
}

func (h *hasher) hex() string {
	var out [2 * sha256.Size]byte
	hex.Encode(out[:], h.sum())
	return string(out[:])
}

// free clears what was hashed: it may be an input that is to be erased.
func (h *hasher) free() {
	h.sha.Reset()
	clear(h.buf[:cap(h.buf)])
	if cap(h.buf) <= writerKeep {
		hashers.Put(h)
	}
}
