package sign

import (
	"fmt"
	"unicode/utf8"
)

// Tuple appends fields to dst as a JSON array of strings, without blanks, and
// returns the extended slice. With no fields it appends "[]".
//
// The bytes are those of JSON.stringify and of RFC 8785: only '"' and '\' are
// escaped, everything else is written as it is. That makes the encoding
// injective, two different tuples never have the same bytes, and prefix-free,
// the bytes of one tuple never begin with those of another. Neither depends on
// what the fields contain.
//
// A field must be valid UTF-8 without control characters (category Cc, so
// U+0000 to U+001F and U+007F to U+009F) and without the line and paragraph
// separators U+2028 and U+2029. The separators are not in Cc, but they break a
// line as a newline does, in a page and in a log, and no id, name or digest
// needs one. Anything else fails with a [*FieldError], and dst comes back as it
// was: nothing is replaced, because a replaced character would give two
// different ids one signature.
func Tuple(dst []byte, fields ...string) ([]byte, error) {
	n := len(dst)
	dst = append(dst, '[')
	for i, field := range fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		var bad string
		if dst, bad = appendField(dst, field); bad != "" {
			return dst[:n], &FieldError{Index: i, Reason: bad}
		}
	}
	return append(dst, ']'), nil
}

// FieldError says which field of a tuple cannot be signed, and why. It never
// holds the field's text, which may be hostile or secret.
type FieldError struct {
	// Index is the field's place in the tuple, from 0. In a signed tuple the
	// label is 0 and the key id is 1.
	Index int
	// Reason is a short fixed text, such as "control character".
	Reason string
}

// Error names the field by number and gives the reason.
func (e *FieldError) Error() string {
	return fmt.Sprintf("field %d: %s", e.Index, e.Reason)
}

const (
	reasonUTF8      = "invalid UTF-8"
	reasonControl   = "control character"
	reasonSeparator = "line or paragraph separator"
	reasonEmpty     = "empty"
	reasonNegative  = "negative"
	reasonTime      = "time outside the years 1970 to 9999"
)

// appendField appends one quoted field. Where the field is not allowed it
// returns the reason.
func appendField(dst []byte, field string) ([]byte, string) {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(field); {
		c := field[i]
		if plain[c] { // nearly always, and this runs on every commit
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(field[i:])
			if bad := refuseRune(r, size); bad != "" {
				return dst, bad
			}
			i += size
			continue
		}
		if c != '"' && c != '\\' {
			return dst, reasonControl
		}
		dst = append(dst, field[done:i]...)
		dst = append(dst, '\\')
		done = i
		i++
	}
	dst = append(dst, field[done:]...)
	return append(dst, '"'), ""
}

// plain marks the ASCII characters that are written as they are.
var plain = func() (table [256]bool) {
	for c := ' '; c <= '~'; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

func refuseRune(r rune, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return reasonUTF8
	case r <= 0x9f:
		return reasonControl
	case r == 0x2028 || r == 0x2029:
		return reasonSeparator
	}
	return ""
}
