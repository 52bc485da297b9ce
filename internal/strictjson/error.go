package strictjson

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Kind names why a text was refused. The set is closed; the words may be
// stored and shown.
type Kind string

// The kinds of refusal.
const (
	KindSyntax           Kind = "syntax"            // not in the grammar of RFC 8259
	KindIncomplete       Kind = "incomplete"        // the text ends inside a value
	KindTrailingData     Kind = "trailing_data"     // something follows the value
	KindDuplicateKey     Kind = "duplicate_key"     // two equal keys, after unescaping, in one object
	KindLoneSurrogate    Kind = "lone_surrogate"    // half of a surrogate pair, in a key or string
	KindInvalidUTF8      Kind = "invalid_utf8"      // bytes that are not UTF-8
	KindByteOrderMark    Kind = "byte_order_mark"   // U+FEFF before the value
	KindControlCharacter Kind = "control_character" // an unescaped control in a string
	KindEscape           Kind = "escape"            // a backslash followed by no JSON escape
	KindNumber           Kind = "number"            // not a JSON number, above 128 bytes, or exponent beyond ±308
	KindDepth            Kind = "depth"             // above Limits.Depth
	KindSize             Kind = "size"              // above Limits.Bytes
	KindNotObject        Kind = "not_object"        // ParseObject and Members: another value
)

// SyntaxError is a refused text. Its message is written for the model that
// wrote the text: what is wrong, where, what to send instead. It holds at most
// 40 bytes of the text, quoted.
type SyntaxError struct {
	Kind   Kind
	Offset int    // the byte of the text at which the error shows
	Path   string // JSON pointer (RFC 6901) of the value around it; empty at the top, and if above 128 bytes

	detail string
	echoed int // bytes of the text in detail
}

const (
	excerptBytes = 40
	pathBytes    = 128
)

// Error tells the kind, the place and the remedy.
func (e *SyntaxError) Error() string {
	where := " at byte " + strconv.Itoa(e.Offset)
	if e.Path != "" && e.echoed+len(e.Path) <= excerptBytes {
		where += " in " + strconv.Quote(e.Path)
	}
	return "invalid JSON (" + string(e.Kind) + ")" + where + ": " + e.detail
}

// Excerpt quotes s as Go does, so that nothing in it can act on a terminal, a
// page or a reader. It shows at most max bytes of s, cut between characters,
// and an ellipsis if it cut.
func Excerpt(s string, max int) string {
	if len(s) <= max {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:runeBorder(s, max)]) + "…"
}

// cut is Excerpt without the quotes.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return s[:runeBorder(s, max)] + "…"
}

func runeBorder(s string, i int) int {
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// AppendPointer appends one step of a JSON pointer (RFC 6901, section 3): a
// slash and the escaped token.
func AppendPointer(dst []byte, token string) []byte {
	dst = append(dst, '/')
	for i := 0; i < len(token); i++ {
		switch token[i] {
		case '~':
			dst = append(dst, "~0"...)
		case '/':
			dst = append(dst, "~1"...)
		default:
			dst = append(dst, token[i])
		}
	}
	return dst
}

// refusal completes the error with the path that was gathered on the way out.
func (p *parser) refusal() *SyntaxError {
	var path []byte
	for i := len(p.path) - 1; i >= 0 && len(path) <= pathBytes; i-- {
		if len(p.path[i]) > pathBytes {
			return p.err
		}
		path = AppendPointer(path, p.path[i])
	}
	if len(path) <= pathBytes {
		p.err.Path = string(path)
	}
	return p.err
}

// fail records the error. It returns false, so that a caller can return it.
func (p *parser) fail(kind Kind, offset int, detail string) bool {
	p.err = &SyntaxError{Kind: kind, Offset: offset, detail: detail}
	return false
}

// failAt is fail for the character that stands here, or for the end.
func (p *parser) failAt(kind Kind, where string) bool {
	if p.pos >= len(p.text) {
		return p.failEnd()
	}
	r, size := utf8.DecodeRuneInString(p.text[p.pos:])
	if r == utf8.RuneError && size == 1 {
		return p.failUTF8(p.pos)
	}
	return p.fail(kind, p.pos, "found "+strconv.QuoteRune(r)+" "+where)
}

func (p *parser) failEnd() bool {
	return p.fail(KindIncomplete, len(p.text), "the text ends before the value does; send the whole value")
}

func (p *parser) failUTF8(at int) bool {
	return p.fail(KindInvalidUTF8, at, fmt.Sprintf("the byte 0x%02x is not UTF-8; send UTF-8", p.text[at]))
}

func (p *parser) failControl(at int) bool {
	return p.fail(KindControlCharacter, at, fmt.Sprintf(`a string holds the control character 0x%02x; write it as \u%04x`, p.text[at], p.text[at]))
}

func (p *parser) failKey(at int, key string) bool {
	p.fail(KindDuplicateKey, at, "the key "+Excerpt(key, excerptBytes)+" stands twice in one object; send each key once")
	p.err.echoed = min(len(key), excerptBytes)
	return false
}

func (p *parser) failDepth() bool {
	return p.fail(KindDepth, p.pos, "objects and arrays are nested too deeply; send a flatter value")
}

func (p *parser) failSize(limit int) bool {
	return p.fail(KindSize, limit, fmt.Sprintf("the text has %d bytes, at most %d are taken; send less", len(p.text), limit))
}

func index(i int) string { return strconv.Itoa(i) }

// article names a value's type in a sentence.
func article(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a number"
}
