package escape

import "unicode"

// script is a writing system, as far as mixing it into a word goes.
type script uint8

// The scripts whose letters look like each other's, or that are written
// together. Everything else is other: two of those in a word are rare, and one
// beside any of these is mixed.
const (
	common script = iota // letters that belong to every script
	latin
	cyrillic
	greek
	han
	hiragana
	katakana
	hangul
	bopomofo
	other
)

var tables = [...]*unicode.RangeTable{
	latin: unicode.Latin, cyrillic: unicode.Cyrillic, greek: unicode.Greek, han: unicode.Han, hiragana: unicode.Hiragana,
	katakana: unicode.Katakana, hangul: unicode.Hangul, bopomofo: unicode.Bopomofo,
}

// together are the scripts that one word may hold (Unicode Technical Standard
// 39, section 5.2, "highly restrictive").
var together = [...]uint16{
	1<<latin | 1<<han | 1<<hiragana | 1<<katakana,
	1<<latin | 1<<han | 1<<bopomofo,
	1<<latin | 1<<han | 1<<hangul,
}

// word is the set of scripts in a run of letters.
type word struct {
	scripts uint16
	last    script
}

func (w *word) add(s script) {
	if s != common {
		w.scripts |= 1 << s
	}
}

// mixed reports whether no writer would put these letters into one word.
func (w *word) mixed() bool {
	if w.scripts&(w.scripts-1) == 0 {
		return false // none, or one
	}
	for _, set := range together {
		if w.scripts&^set == 0 {
			return false
		}
	}
	return true
}

// scriptOf finds a letter's script; most letters share that of the one before.
func (w *word) scriptOf(r rune) script {
	if t := tables[w.last]; t != nil && unicode.Is(t, r) {
		return w.last
	}
	for s, t := range tables {
		if t != nil && unicode.Is(t, r) {
			w.last = script(s)
			return w.last
		}
	}
	if unicode.Is(unicode.Common, r) || unicode.Is(unicode.Inherited, r) {
		return common
	}
	return other
}
