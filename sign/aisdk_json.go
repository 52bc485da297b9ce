package sign

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsDepth bounds how deep values may nest.
const jsDepth = 512

var errJSON = errors.New("not JSON")

// ClientJSON gives the form that a JSON text has, whatever JavaScript client has
// read it and written it again: two texts of one value as ECMAScript reads it
// are equal. It serves comparisons of what a client kept, never a digest of
// what runs: digits beyond a double are lost. An error says that the text is no
// JSON (RFC 8259).
func ClientJSON(text string) ([]byte, error) { return jsCanonical(text) }

// jsCanonical gives what the AI SDK hashes of a JSON text: the text read as
// ECMAScript's JSON.parse reads it, and written without blanks, with the keys of
// every object in the order of their UTF-16 code units and everything else as
// JSON.stringify writes it. It loses what JavaScript loses: digits beyond a
// double, the sign of zero, all but the last of equal keys.
func jsCanonical(text string) ([]byte, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("invalid UTF-8")
	}
	p := jsParser{text: text}
	out, err := p.value(nil, jsDepth)
	if err != nil {
		return nil, err
	}
	p.blanks()
	if p.at != len(text) {
		return nil, p.fail()
	}
	return out, nil
}

// jsParser reads RFC 8259 and appends the canonical form as it goes.
type jsParser struct {
	text string
	at   int
}

// fail never quotes the text, which is a person's or a secret.
func (p *jsParser) fail() error { return fmt.Errorf("%w at byte %d", errJSON, p.at) }

func (p *jsParser) blanks() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// next skips blanks and takes c if it comes next.
func (p *jsParser) next(c byte) bool {
	p.blanks()
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *jsParser) value(dst []byte, depth int) ([]byte, error) {
	if depth == 0 {
		return nil, fmt.Errorf("nested deeper than %d", jsDepth)
	}
	p.blanks()
	if p.at == len(p.text) {
		return nil, p.fail()
	}
	switch c := p.text[p.at]; {
	case c == '{':
		return p.object(dst, depth)
	case c == '[':
		return p.array(dst, depth)
	case c == '"':
		units, err := p.str()
		if err != nil {
			return nil, err
		}
		return appendJSString(dst, units), nil
	case c == '-' || c >= '0' && c <= '9':
		return p.number(dst)
	}
	for _, word := range [...]string{"null", "true", "false"} {
		if end := p.at + len(word); end <= len(p.text) && p.text[p.at:end] == word {
			p.at = end
			return append(dst, word...), nil
		}
	}
	return nil, p.fail()
}

func (p *jsParser) array(dst []byte, depth int) ([]byte, error) {
	p.at++
	dst = append(dst, '[')
	if p.next(']') {
		return append(dst, ']'), nil
	}
	for {
		var err error
		if dst, err = p.value(dst, depth-1); err != nil {
			return nil, err
		}
		if p.next(']') {
			return append(dst, ']'), nil
		}
		if !p.next(',') {
			return nil, p.fail()
		}
		dst = append(dst, ',')
	}
}

type jsMember struct {
	key   []uint16
	value []byte // canonical already
}

func (p *jsParser) object(dst []byte, depth int) ([]byte, error) {
	p.at++
	if p.next('}') {
		return append(dst, '{', '}'), nil
	}
	var members []jsMember
	for {
		m, err := p.member(depth)
		if err != nil {
			return nil, err
		}
		members = append(members, m)
		if p.next('}') {
			return appendMembers(dst, members), nil
		}
		if !p.next(',') {
			return nil, p.fail()
		}
	}
}

func (p *jsParser) member(depth int) (m jsMember, err error) {
	p.blanks()
	if p.at == len(p.text) || p.text[p.at] != '"' {
		return m, p.fail()
	}
	if m.key, err = p.str(); err != nil {
		return m, err
	}
	if !p.next(':') {
		return m, p.fail()
	}
	m.value, err = p.value(nil, depth-1)
	return m, err
}

// appendMembers sorts by UTF-16 code units, which is not the order of UTF-8
// bytes: U+1F600 stands before U+E000. Of equal keys the last counts; the sort is
// stable, so it is the last of its group.
func appendMembers(dst []byte, members []jsMember) []byte {
	slices.SortStableFunc(members, func(a, b jsMember) int { return slices.Compare(a.key, b.key) })
	dst = append(dst, '{')
	first := true
	for i, m := range members {
		if i+1 < len(members) && slices.Equal(m.key, members[i+1].key) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendJSString(dst, m.key)
		dst = append(dst, ':')
		dst = append(dst, m.value...)
	}
	return append(dst, '}')
}

// str reads a string as UTF-16, which is what JavaScript has: an escape may be
// half of a pair, and the half may be alone.
func (p *jsParser) str() ([]uint16, error) {
	p.at++
	units := []uint16{}
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch {
		case c == '"':
			p.at++
			return units, nil
		case c < 0x20:
			return nil, p.fail()
		case c == '\\':
			unit, err := p.escape()
			if err != nil {
				return nil, err
			}
			units = append(units, unit)
		default:
			r, size := utf8.DecodeRuneInString(p.text[p.at:])
			units = utf16.AppendRune(units, r)
			p.at += size
		}
	}
	return nil, p.fail()
}

func (p *jsParser) escape() (uint16, error) {
	if p.at+1 == len(p.text) {
		return 0, p.fail()
	}
	c := p.text[p.at+1]
	if c == 'u' {
		return p.hex()
	}
	for _, pair := range [...]string{`""`, `\\`, `//`, "b\b", "f\f", "n\n", "r\r", "t\t"} {
		if pair[0] == c {
			p.at += 2
			return uint16(pair[1]), nil
		}
	}
	return 0, p.fail()
}

func (p *jsParser) hex() (uint16, error) {
	const size = len(`\u0000`)
	if p.at+size > len(p.text) {
		return 0, p.fail()
	}
	var unit uint16
	for _, c := range []byte(p.text[p.at+2 : p.at+size]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, p.fail()
		}
		unit = unit<<4 | uint16(c)
	}
	p.at += size
	return unit, nil
}

func (p *jsParser) number(dst []byte) ([]byte, error) {
	start := p.at
	p.take('-')
	if !p.take('0') && !p.digits() {
		return nil, p.fail()
	}
	if p.take('.') && !p.digits() {
		return nil, p.fail()
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		if !p.digits() {
			return nil, p.fail()
		}
	}
	f, err := strconv.ParseFloat(p.text[start:p.at], 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, p.fail()
	}
	return appendJSNumber(dst, f), nil
}

// take takes c without skipping blanks.
func (p *jsParser) take(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *jsParser) digits() bool {
	start := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at > start
}

// appendJSNumber writes a double as JSON.stringify does (ECMAScript,
// Number::toString with radix 10; infinity is null).
func appendJSNumber(dst []byte, f float64) []byte {
	switch abs := math.Abs(f); {
	case f == 0:
		return append(dst, '0') // -0 too
	case math.IsInf(f, 0):
		return append(dst, "null"...)
	case abs >= 1e-6 && abs < 1e21:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); dst[n-2] == '0' && dst[n-3] == '-' { // e-07: Go writes two digits at least
		dst = append(dst[:n-2], dst[n-1])
	}
	return dst
}

// appendJSString writes a string as JSON.stringify does: escaped are '"', '\',
// U+0000 to U+001F, and halves of a surrogate pair that stand alone.
func appendJSString(dst []byte, units []uint16) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(units); i++ {
		u := units[i]
		switch {
		case u == '"' || u == '\\':
			dst = append(dst, '\\', byte(u))
		case u < 0x20:
			dst = appendJSControl(dst, byte(u))
		case !utf16.IsSurrogate(rune(u)):
			dst = utf8.AppendRune(dst, rune(u))
		case i+1 < len(units) && utf16.DecodeRune(rune(u), rune(units[i+1])) != utf8.RuneError:
			dst = utf8.AppendRune(dst, utf16.DecodeRune(rune(u), rune(units[i+1])))
			i++
		default:
			dst = fmt.Appendf(dst, `\u%04x`, u)
		}
	}
	return append(dst, '"')
}

func appendJSControl(dst []byte, c byte) []byte {
	switch c {
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return fmt.Appendf(dst, `\u%04x`, c)
}

func jsUnits(s string) []uint16 { return utf16.Encode([]rune(s)) }
