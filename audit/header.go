package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
)

// version is that of the headers, and so of the payloads, that this program
// writes; it reads every version up to it. A header of any version begins with
// {"v": and its number.
const version = 1

// The ids and digests of an event that its header repeats, in their order.
const (
	refCall = iota
	refRequest
	refBy
	refAnswer
	refDigest
	refCount
)

type refs [refCount]string

// openings stand before the values of refs.
var openings = refs{`,"call":"`, `,"request":"`, `,"by":"`, `,"answer":"`, `,"digest":"`}

// maxRef is the most bytes that an id or digest in a header may have.
const maxRef = 1024

// header is the chained part of a record.
type header struct {
	seq   int64
	kind  ringi.EventKind
	at    int64 // microseconds since 1970
	epoch int64
	refs  refs
}

// append appends the header's bytes, with a blank for the commitment. Its refs
// have passed check.
func (h *header) append(dst []byte) []byte {
	dst = append(dst, `{"v":1,"seq":`...)
	dst = strconv.AppendInt(dst, h.seq, 10)
	dst = append(dst, `,"kind":"`...)
	dst = append(dst, h.kind...)
	dst = append(dst, `","at":`...)
	dst = strconv.AppendInt(dst, h.at, 10)
	dst = append(dst, `,"epoch":`...)
	dst = strconv.AppendInt(dst, h.epoch, 10)
	for i := range h.refs {
		if h.refs[i] != "" {
			dst = append(dst, openings[i][:len(openings[i])-1]...)
			dst = appendText(dst, h.refs[i])
		}
	}
	dst = append(dst, `,"commitment":"`...)
	dst = append(dst, blankCommitment[:]...)
	return append(dst, `"}`...)
}

// blankCommitment stands where putCommitment writes: 32 bytes in base64url.
var blankCommitment [43]byte

// putCommitment writes a commitment into a header that append made.
func putCommitment(head []byte, commitment *[sha256.Size]byte) {
	base64url.Encode(head[len(head)-len(`"}`)-len(blankCommitment):], commitment[:])
}

// check refuses what is no id: a header stays for ever, so text of a person or
// a model must not get into it.
func (r *refs) check() error {
	for i, ref := range r {
		if err := checkRef(ref); err != nil {
			return fmt.Errorf("%s: %w", strings.Trim(openings[i], `,":`), err)
		}
	}
	return nil
}

func checkRef(ref string) error {
	switch {
	case plainRef(ref):
		return nil
	case len(ref) > maxRef:
		return fmt.Errorf("longer than %d bytes", maxRef)
	case !utf8.ValidString(ref):
		return errors.New("not valid UTF-8")
	case strings.ContainsFunc(ref, unicode.IsControl):
		return errors.New("control character")
	}
	return nil
}

// plainRef reports what nearly all ids are: short printable ASCII that needs
// no escape.
func plainRef(s string) bool {
	return len(s) <= maxRef && plainPrefix(s) == len(s)
}

var (
	errHeader = errors.New("header is not one that this program writes")
	errNewer  = errors.New("header is of a newer version")
)

// parsed is a header that was read. Its slices lie in what was read, but for
// ids with escapes.
type parsed struct {
	seq        int64
	kind       []byte
	at, epoch  int64
	refs       [refCount][]byte
	commitment [sha256.Size]byte
}

// parse reads a header. Only the exact bytes that header.append writes are
// one; anything else is errHeader or errNewer.
func (h *parsed) parse(head []byte) error {
	s := scanner{rest: head}
	s.literal(`{"v":`)
	if v := s.number(); s.bad || v < 1 {
		return errHeader
	} else if v > version {
		return errNewer
	}
	s.literal(`,"seq":`)
	h.seq = s.number()
	s.literal(`,"kind":"`)
	h.kind = s.ref()
	s.literal(`,"at":`)
	h.at = s.number()
	s.literal(`,"epoch":`)
	h.epoch = s.number()
	for i, opening := range openings {
		h.refs[i] = nil
		if s.begins(opening) {
			s.literal(opening)
			h.refs[i] = s.ref()
		}
	}
	s.literal(`,"commitment":"`)
	s.digest(&h.commitment)
	s.literal(`"}`)
	if s.bad || len(s.rest) > 0 || h.at < minAt || h.at > maxAt || !known(ringi.EventKind(h.kind)) {
		return errHeader
	}
	return nil
}

// same reports whether the header repeats exactly the ids and digests of r.
func (h *parsed) same(r refs) bool {
	for i := range r {
		if string(h.refs[i]) != r[i] {
			return false
		}
	}
	return true
}

// scanner reads a header from the front.
type scanner struct {
	rest []byte
	bad  bool
}

func (s *scanner) begins(text string) bool {
	return len(s.rest) >= len(text) && string(s.rest[:len(text)]) == text
}

func (s *scanner) literal(text string) {
	if s.bad || !s.begins(text) {
		s.bad = true
		return
	}
	s.rest = s.rest[len(text):]
}

func (s *scanner) number() int64 {
	n, size := wholeNumber(string(s.rest[:min(len(s.rest), maxNumber)]))
	s.bad = s.bad || size == 0
	s.rest = s.rest[size:]
	return n
}

// ref reads an id and the quotation mark behind it.
func (s *scanner) ref() []byte {
	n := plainPrefix(s.rest)
	if n == 0 || n > maxRef || n == len(s.rest) || s.rest[n] != '"' {
		return s.oddRef()
	}
	ref := s.rest[:n]
	s.rest = s.rest[n+1:]
	return ref
}

// oddRef reads an id with escapes or letters beyond ASCII.
func (s *scanner) oddRef() []byte {
	c := codec{in: `"` + string(s.rest)}
	ref := c.readText()
	if c.odd || ref == "" || checkRef(ref) != nil || !bytes.HasPrefix(s.rest, appendText(nil, ref)[1:]) {
		s.bad = true
		return nil
	}
	s.rest = s.rest[c.pos-1:]
	return []byte(ref)
}

// digest reads 32 bytes as base64url.
func (s *scanner) digest(to *[sha256.Size]byte) {
	size := base64url.EncodedLen(len(to))
	if s.bad || len(s.rest) < size {
		s.bad = true
		return
	}
	if n, err := base64url.Decode(to[:], s.rest[:size]); n != len(to) || err != nil {
		s.bad = true
	}
	s.rest = s.rest[size:]
}
