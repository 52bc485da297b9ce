package ringi

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// idAlphabet is Crockford's base 32 in lower case: sorted text is sorted time.
var idAlphabet = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID makes an id: the prefix and 26 characters, 48 bits of milliseconds and
// 80 random bits, so that ids sort by time.
func NewID(prefix string, now time.Time) string {
	var b [16]byte
	rand.Read(b[:]) // never fails: the runtime ends the process instead
	return IDFrom(prefix, now, b)
}

// IDFrom makes an id from given random bytes; the first six are overwritten by
// the time. Tests use it for fixed ids.
func IDFrom(prefix string, now time.Time, b [16]byte) string {
	ms := uint64(now.UnixMilli())
	binary.BigEndian.PutUint16(b[0:2], uint16(ms>>32))
	binary.BigEndian.PutUint32(b[2:6], uint32(ms))
	var out [64]byte
	n := copy(out[:], prefix)
	idAlphabet.Encode(out[n:n+26], b[:])
	return string(out[:n+26])
}
