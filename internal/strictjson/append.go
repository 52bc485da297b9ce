package strictjson

import (
	"math/bits"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string literal with as few escapes as
// possible: the quote, the backslash, and controls as \b, \f, \n, \r, \t or
// \u00xx in lower case (the string form of RFC 8785, section 3.2.2.2). It
// allocates nothing but what dst needs to grow. s must be valid UTF-8: other
// bytes are copied as they are, never replaced, and a strict reader refuses
// them.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := nextEscape(s, 0); i < len(s); i = nextEscape(s, from) {
		dst = append(dst, s[from:i]...)
		switch c := s[i]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		from = i + 1
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// nextEscape finds the first byte at or after i that a literal must escape.
func nextEscape(s string, i int) int {
	for ; i+8 <= len(s); i += 8 {
		if mark := mustEscape(word(s, i)); mark != 0 {
			return i + bits.TrailingZeros64(mark)/8
		}
	}
	for i < len(s) && (s[i] >= utf8.RuneSelf || s[i] >= ' ' && s[i] != '"' && s[i] != '\\') {
		i++
	}
	return i
}
