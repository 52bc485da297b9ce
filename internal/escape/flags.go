package escape

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The flags, each a word for a list of warnings beside a text.
const (
	Bidi        = "bidi"         // changes the direction in which text is read
	ZeroWidth   = "zero_width"   // takes no room: joiners, soft hyphens, fillers, stray selectors
	MixedScript = "mixed_script" // one word of look-alike letters from several scripts
	Punycode    = "punycode"     // an encoded international name (RFC 3492)
	Tag         = "tag"          // invisible tag characters, which models read
	Control     = "control"      // controls other than line feed and tab, line separators
	PrivateUse  = "private_use"  // means whatever a font makes of it
	Unassigned  = "unassigned"   // no character in the Unicode that this program knows
	InvalidUTF8 = "invalid_utf8" // bytes that are no text
	ManyLines   = "many_lines"   // more than a screen: the end may lie out of sight
)

// order is how Flags sorts.
var order = [...]string{Bidi, ZeroWidth, MixedScript, Punycode, Tag, Control, PrivateUse, Unassigned, InvalidUTF8, ManyLines}

// maxLines is how many lines a text may have before ManyLines is raised.
const maxLines = 24

// Flags names what in s a reader should be warned of, in a fixed order; nil for
// ordinary text. A flag is a hint and no judgement: text with one may be fine,
// and text without one may still lie.
func Flags(s string) []string {
	f := flagger{seen: map[string]bool{}}
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			f.seen[InvalidUTF8] = true
			f.endWord()
			continue
		}
		f.rune(r)
	}
	f.endWord()
	if f.lines >= maxLines {
		f.seen[ManyLines] = true
	}
	var out []string
	for _, name := range order {
		if f.seen[name] {
			out = append(out, name)
		}
	}
	return out
}

// flagger walks over a text.
type flagger struct {
	seen  map[string]bool
	lines int
	walk  walk
	word  word
	puny  int // how much of acePrefix stands at the start of the word; -1 for another start
}

func (f *flagger) rune(r rune) {
	if r >= 0x20 && r < 0x7f { // the common case
		f.walk.last, f.walk.marks = r, 0
		f.letter(r)
		return
	}
	if r == '\n' || r == '\t' {
		if r == '\n' {
			f.lines++
		}
		f.walk.reset()
		f.endWord()
		return
	}
	if !f.walk.visible(r) {
		f.seen[hidden(r)] = true
	}
	f.letter(r)
}

// hidden names why a rune is not plainly visible.
func hidden(r rune) string {
	switch {
	case unicode.Is(unicode.Bidi_Control, r):
		return Bidi
	case r >= 0xE0000 && r <= 0xE007F:
		return Tag
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
		return Control
	case unicode.Is(unicode.Co, r):
		return PrivateUse
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.M, r), unicode.Is(unicode.L, r),
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return ZeroWidth
	}
	return Unassigned
}

// letter takes a rune into the word at hand, or ends it.
func (f *flagger) letter(r rune) {
	f.prefix(r)
	switch {
	case r == '-' || r == '_' || '0' <= r && r <= '9':
	case 'a' <= lower(r) && lower(r) <= 'z':
		f.word.add(latin)
	case r < 0x7f:
		f.endWord()
	case unicode.IsLetter(r):
		f.word.add(f.word.scriptOf(r))
	case unicode.Is(unicode.M, r), unicode.IsDigit(r), unicode.Is(unicode.Cf, r):
		// stands in a word and says nothing of its script
	default:
		f.endWord()
	}
}

// acePrefix begins an encoded label (RFC 5890, section 2.3.2.5).
const acePrefix = "xn--"

// prefix looks for acePrefix at the start of a word.
func (f *flagger) prefix(r rune) {
	switch {
	case f.puny < 0 || f.puny == len(acePrefix):
	case lower(r) != rune(acePrefix[f.puny]):
		f.puny = -1
	default:
		f.puny++
		if f.puny == len(acePrefix) {
			f.seen[Punycode] = true
		}
	}
}

func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

func (f *flagger) endWord() {
	if f.word.mixed() {
		f.seen[MixedScript] = true
	}
	f.word = word{}
	f.puny = 0
}
