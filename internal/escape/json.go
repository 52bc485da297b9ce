package escape

import (
	"unicode/utf8"
)

// JSON appends an encoded JSON document to dst with everything that is not
// plainly visible as \u escapes (RFC 8259, section 7). The document means the
// same: a reader that decodes it gets the exact text back. Line feeds between
// tokens stay.
//
// doc must be valid JSON; a byte in it that is not UTF-8 becomes the escape of
// U+FFFD, as every JSON reader would take it.
func JSON(dst, doc []byte) []byte {
	var w walk
	for i := 0; i < len(doc); {
		c := doc[i]
		if c == '\n' || c >= 0x20 && c < 0x7f {
			dst = append(dst, c)
			w.last, w.marks = rune(c), 0
			i++
			continue
		}
		r, n := utf8.DecodeRune(doc[i:])
		i += n
		switch {
		case c == '\r' || c == '\t': // blanks between tokens: inside a string JSON forbids them
			dst = append(dst, c)
		case r == utf8.RuneError && n == 1:
			dst = append(dst, `\ufffd`...)
			w.reset()
		case w.visible(r):
			dst = append(dst, doc[i-n:i]...)
		default:
			dst = appendUnit(dst, r)
		}
	}
	return dst
}

// appendUnit writes a rune as one JSON escape, or as two for a rune beyond the
// basic plane (RFC 8259, section 7: a UTF-16 surrogate pair).
func appendUnit(dst []byte, r rune) []byte {
	if r > 0xFFFF {
		r -= 0x10000
		dst = appendUnit(dst, 0xD800+r>>10)
		r = 0xDC00 + r&0x3FF
	}
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}
