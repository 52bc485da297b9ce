// Package escape shows text that models, tools and people from outside wrote.
// Page, terminal, log and JSON all pass such text through here, so that what
// is hidden in it is seen, and what would steer a screen does not.
//
// Only what is shown changes: the bytes that are digested and run stay as they
// are. Ordinary text of every script stays readable.
package escape

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s for showing over several lines: line feeds and tabs stay,
// everything else that is not plainly visible becomes \u{202e}, and a byte
// that is not UTF-8 becomes \xff. A backslash that would read as one of these
// two becomes \u{5c}, so nothing that is shown can pass for an escape.
func Text(s string) string { return show(s, false) }

// Line is Text on a single line: a line feed is shown as \n and a tab as \t.
func Line(s string) string { return show(s, true) }

func show(s string, line bool) string {
	at := firstHidden(s, line)
	if at < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:at])
	var w walk
	w.resume(s[:at])
	for i := at; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			writeByte(&b, s[i])
			w.reset()
		case r == '\n' && line:
			b.WriteString(`\n`)
			w.reset()
		case r == '\t' && line:
			b.WriteString(`\t`)
			w.reset()
		case r == '\n' || r == '\t':
			b.WriteByte(s[i])
			w.reset()
		case r == '\\' && looksEscaped(s[i:]), !w.visible(r):
			writeRune(&b, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// firstHidden returns where s must be rewritten first, or -1: most text never.
func firstHidden(s string, line bool) int {
	var w walk
	for i, r := range s {
		switch {
		case r == '\n' || r == '\t':
			if line {
				return i
			}
			w.reset()
		case r >= 0x20 && r < 0x7f && r != '\\':
			w.last, w.marks = r, 0
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			return i
		case r == '\\' && looksEscaped(s[i:]), !w.visible(r):
			return i
		}
	}
	return -1
}

// looksEscaped reports whether s, which begins with a backslash, reads like
// what this package writes.
func looksEscaped(s string) bool {
	if strings.HasPrefix(s, `\u{`) {
		return true
	}
	return len(s) >= 4 && s[1] == 'x' && isHex(s[2]) && isHex(s[3])
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

const hexDigits = "0123456789abcdef"

func writeByte(b *strings.Builder, c byte) {
	b.WriteString(`\x`)
	b.WriteByte(hexDigits[c>>4])
	b.WriteByte(hexDigits[c&15])
}

func writeRune(b *strings.Builder, r rune) {
	b.WriteString(`\u{`)
	var digits [8]byte
	i := len(digits)
	for v := uint32(r); ; v >>= 4 {
		i--
		digits[i] = hexDigits[v&15]
		if v < 16 {
			break
		}
	}
	b.Write(digits[i:])
	b.WriteByte('}')
}

// maxMarks is how many combining marks may stand on one character. No living
// script needs more than five; more of them paint over the lines around.
const maxMarks = 6

// walk knows what a rune stands on: a variation selector is plain after an
// emoji and hidden elsewhere, and marks are counted.
type walk struct {
	last  rune // the last visible base
	marks int
}

func (w *walk) reset() { *w = walk{} }

// resume walks over text that is all visible.
func (w *walk) resume(s string) {
	for _, r := range s {
		if r == '\n' || r == '\t' {
			w.reset()
			continue
		}
		w.visible(r)
	}
}

// visible reports whether r, after what was walked, may be shown as it is.
func (w *walk) visible(r rune) bool {
	switch {
	case r == 0xFE0E || r == 0xFE0F:
		ok := w.marks == 0 && isPictured(w.last)
		w.marks++
		return ok
	case !Plain(r):
		w.reset()
		return false
	case r >= 0x300 && unicode.Is(unicode.M, r):
		w.marks++
		return w.marks <= maxMarks
	}
	w.last, w.marks = r, 0
	return true
}

// isPictured reports whether a variation selector may choose how r looks: a
// symbol, or the base of a keycap.
func isPictured(r rune) bool {
	return '0' <= r && r <= '9' || r == '#' || r == '*' || r > 0x7f && unicode.Is(unicode.S, r) || r == 0x203C || r == 0x2049
}

// Plain reports whether a rune is plainly visible by itself: letters, marks,
// digits, punctuation, symbols and spaces. Controls, format characters (zero
// width, bidirectional, tags), line and paragraph separators, private-use,
// unassigned and surrogate code points are not, and neither are letters and
// marks that Unicode calls ignorable (fillers, variation selectors).
func Plain(r rune) bool {
	if r < 0x7f {
		return r >= 0x20
	}
	if r <= unicode.MaxLatin1 {
		return r >= 0xA0 && r != 0xAD
	}
	if unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r) {
		return false
	}
	return unicode.IsGraphic(r)
}
