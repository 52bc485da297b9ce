package strictjson

import (
	"math/bits"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads the string that begins here. Without escapes it is a part of
// the text and costs nothing.
func (p *parser) string() (string, bool) {
	start := p.pos + 1
	for i := start; ; {
		if i = nextSpecial(p.text, i); i >= len(p.text) {
			p.pos = i
			return "", p.failEnd()
		}
		switch c := p.text[i]; {
		case c == '"':
			p.pos = i + 1
			return p.text[start:i], true
		case c == '\\':
			return p.escaped(start, i)
		case c < ' ':
			return "", p.failControl(i)
		default:
			if i = runEnd(p.text, i); i < 0 {
				return "", p.failUTF8(^i)
			}
		}
	}
}

// escaped decodes a string that began at start and whose first backslash
// stands at i. The next quote mostly ends it, and then memory is made once.
func (p *parser) escaped(start, i int) (string, bool) {
	length := i - start + max(0, strings.IndexByte(p.text[i:], '"'))
	p.scratch = append(slices.Grow(p.scratch[:0], length), p.text[start:i]...)
	for {
		from := i
		if i = nextSpecial(p.text, i); i >= len(p.text) {
			p.pos = i
			return "", p.failEnd()
		}
		switch c := p.text[i]; {
		case c == '"':
			p.scratch = append(p.scratch, p.text[from:i]...)
			p.pos = i + 1
			return string(p.scratch), true
		case c == '\\':
			p.scratch = append(p.scratch, p.text[from:i]...)
			var ok bool
			if i, ok = p.escape(i); !ok {
				return "", false
			}
			continue
		case c < ' ':
			return "", p.failControl(i)
		default:
			if i = runEnd(p.text, i); i < 0 {
				return "", p.failUTF8(^i)
			}
		}
		p.scratch = append(p.scratch, p.text[from:i]...)
	}
}

// escape decodes the one escape at i and returns where it ends.
func (p *parser) escape(i int) (int, bool) {
	if i+1 >= len(p.text) {
		p.pos = len(p.text)
		return 0, p.failEnd()
	}
	var c byte
	switch p.text[i+1] {
	case '"', '\\', '/':
		c = p.text[i+1]
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return p.unicodeEscape(i)
	default:
		return 0, p.fail(KindEscape, i, `the escape `+Excerpt(p.text[i:min(i+2, len(p.text))], excerptBytes)+` is not JSON; use \\ for a backslash`)
	}
	p.scratch = append(p.scratch, c)
	return i + 2, true
}

// unicodeEscape decodes \uXXXX, or two of them that are a surrogate pair. A
// surrogate alone is no character: decoders turn it into U+FFFD, and two
// different texts would become equal.
func (p *parser) unicodeEscape(i int) (int, bool) {
	r, ok := p.hex4(i)
	if !ok {
		return 0, false
	}
	end := i + 6
	if utf16.IsSurrogate(r) {
		low := rune(0)
		if end+1 < len(p.text) && p.text[end] == '\\' && p.text[end+1] == 'u' {
			if low, ok = p.hex4(end); !ok {
				return 0, false
			}
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return 0, p.fail(KindLoneSurrogate, i, "the escape "+Excerpt(p.text[i:i+6], excerptBytes)+" is half of a surrogate pair; send both halves, or the character itself")
		}
		end += 6
	}
	p.scratch = utf8.AppendRune(p.scratch, r)
	return end, true
}

func (p *parser) hex4(i int) (rune, bool) {
	var r rune
	for k := i + 2; k < i+6; k++ {
		if k >= len(p.text) {
			p.pos = len(p.text)
			return 0, p.failEnd()
		}
		c := p.text[k]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, p.fail(KindEscape, i, `the escape `+Excerpt(p.text[i:k], excerptBytes)+` needs four hexadecimal digits`)
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// runEnd passes the characters beyond ASCII that begin at i. It returns ^at
// for a byte at that is not UTF-8.
func runEnd(s string, i int) int {
	for i < len(s) && s[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			return ^i
		}
		i += size
	}
	return i
}

// Eight bytes are looked at in one word ("SIMD within a register"): a byte's
// high bit in the result says that it is one of those sought. A borrow may
// mark a byte above a true one falsely, so only the lowest mark counts.
const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// mustEscape marks controls, quotes and backslashes in w.
func mustEscape(w uint64) uint64 {
	control := w - lowBits*' '
	quote := (w ^ lowBits*'"') - lowBits
	backslash := (w ^ lowBits*'\\') - lowBits
	return (control&^w | quote&^(w^lowBits*'"') | backslash&^(w^lowBits*'\\')) & highBits
}

func word(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// nextSpecial finds the first byte at or after i that ends a run of plain
// ASCII: a quote, a backslash, a control, or a byte of a longer character.
func nextSpecial(s string, i int) int {
	for ; i+8 <= len(s); i += 8 {
		w := word(s, i)
		if mark := mustEscape(w) | w&highBits; mark != 0 {
			return i + bits.TrailingZeros64(mark)/8
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' && s[i] < utf8.RuneSelf {
		i++
	}
	return i
}
