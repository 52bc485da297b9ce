// Package strictjson reads JSON so that no two readers can differ about it.
//
// It takes RFC 8259 and nothing beside it, and of RFC 8259 only the texts that
// mean one thing: no duplicate keys, no lone surrogates, no invalid UTF-8, no
// byte order mark. Numbers keep their text; nothing passes through float64.
// What it cannot take it refuses with a [*SyntaxError]; it repairs nothing.
package strictjson

import "encoding/json"

// What Parse takes where Limits leaves a field at zero.
const (
	DefaultBytes = 1 << 20 // 1 MiB
	DefaultDepth = 64
)

// maxDepth holds whatever Limits.Depth says, so that recursion has a bound.
const maxDepth = 10_000

// Limits bounds a text. The zero value is the default limits; a negative field
// means none, but depth never goes beyond 10,000.
type Limits struct {
	Bytes int // length of the text in bytes; zero: DefaultBytes
	Depth int // objects and arrays inside one another; zero: DefaultDepth
}

// Value is a JSON value as Parse builds it: map[string]any, []any, string,
// json.Number, bool or nil. Strings may share memory with the parsed text.
type Value = any

// Parse reads exactly one JSON value, in one pass and in linear time. Every
// error is a *SyntaxError.
func Parse(text string, lim Limits) (Value, error) {
	p := parser{text: text, levels: lim.depth()}
	v, ok := p.whole(lim.bytes())
	if !ok {
		return nil, p.refusal()
	}
	return v, nil
}

// ParseObject is Parse for a text that must be an object, such as the input of
// a tool. Any other value is refused as KindNotObject.
func ParseObject(text string, lim Limits) (map[string]any, error) {
	v, err := Parse(text, lim)
	if err != nil {
		return nil, err
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return nil, &SyntaxError{Kind: KindNotObject, detail: "the value is " + article(v) + "; send a JSON object, such as {\"key\": \"value\"}"}
	}
	return obj, nil
}

func (l Limits) bytes() int {
	if l.Bytes == 0 {
		return DefaultBytes
	}
	return l.Bytes
}

func (l Limits) depth() int {
	switch {
	case l.Depth == 0:
		return DefaultDepth
	case l.Depth < 0 || l.Depth > maxDepth:
		return maxDepth
	}
	return l.Depth
}

// parser holds one reading. A method that returns false has set err.
type parser struct {
	text    string
	pos     int
	levels  int // levels that may still be opened
	err     *SyntaxError
	path    []string // of the failing value, innermost first
	scratch []byte   // a string with escapes while it is decoded
	items   []any    // the values of all open arrays, so that each array is made once, in its size
}

const byteOrderMark = "\xEF\xBB\xBF"

func (p *parser) whole(limit int) (any, bool) {
	if limit >= 0 && len(p.text) > limit {
		return nil, p.failSize(limit)
	}
	if len(p.text) >= 3 && p.text[:3] == byteOrderMark {
		return nil, p.fail(KindByteOrderMark, 0, "remove the byte order mark before the value")
	}
	p.blank()
	v, ok := p.value()
	if !ok {
		return nil, false
	}
	if p.blank(); p.pos < len(p.text) {
		return nil, p.failAt(KindTrailingData, "after the end of the value; send one JSON value only")
	}
	return v, true
}

func (p *parser) value() (any, bool) {
	if p.pos >= len(p.text) {
		return nil, p.failEnd()
	}
	switch c := p.text[p.pos]; c {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		s, ok := p.string()
		return s, ok
	case 't':
		return true, p.literal("true")
	case 'f':
		return false, p.literal("false")
	case 'n':
		return nil, p.literal("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		n, ok := p.number()
		return n, ok
	case '+', '.':
		return nil, p.failAt(KindNumber, "where a number begins; "+numberAdvice)
	default:
		return nil, p.failAt(KindSyntax, "where a JSON value is expected")
	}
}

func (p *parser) object() (any, bool) {
	if !p.open() {
		return nil, false
	}
	m := make(map[string]any)
	if p.blank(); p.next('}') {
		p.levels++
		return m, true
	}
	for {
		start := p.pos
		if start >= len(p.text) || p.text[start] != '"' {
			return nil, p.failAt(KindSyntax, "where a key in double quotes is expected")
		}
		key, ok := p.string()
		if !ok {
			return nil, false
		}
		if p.blank(); !p.next(':') {
			return nil, p.failAt(KindSyntax, "where a colon is expected after a key")
		}
		p.blank()
		v, ok := p.value()
		if !ok {
			p.path = append(p.path, key)
			return nil, false
		}
		// The map itself finds a second key of the same name: its size stays.
		n := len(m)
		if m[key] = v; len(m) == n {
			return nil, p.failKey(start, key)
		}
		if p.blank(); p.next(',') {
			p.blank()
			continue
		}
		if !p.next('}') {
			return nil, p.failAt(KindSyntax, "where a comma or } is expected in an object")
		}
		p.levels++
		return m, true
	}
}

func (p *parser) array() (any, bool) {
	if !p.open() {
		return nil, false
	}
	if p.blank(); p.next(']') {
		p.levels++
		return []any{}, true
	}
	if p.items == nil {
		p.items = make([]any, 0, 16)
	}
	base := len(p.items)
	for {
		v, ok := p.value()
		if !ok {
			p.path = append(p.path, index(len(p.items)-base))
			return nil, false
		}
		p.items = append(p.items, v)
		if p.blank(); p.next(',') {
			p.blank()
			continue
		}
		if !p.next(']') {
			return nil, p.failAt(KindSyntax, "where a comma or ] is expected in an array")
		}
		list := make([]any, len(p.items)-base)
		copy(list, p.items[base:])
		p.items = p.items[:base]
		p.levels++
		return list, true
	}
}

// open enters an object or array and passes its bracket.
func (p *parser) open() bool {
	if p.levels == 0 {
		return p.failDepth()
	}
	p.levels--
	p.pos++
	return true
}

// next passes the byte c if it comes now.
func (p *parser) next(c byte) bool {
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// blank passes the four blanks of RFC 8259, section 2.
func (p *parser) blank() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) literal(word string) bool {
	end := p.pos + len(word)
	if end > len(p.text) && word[:len(p.text)-p.pos] == p.text[p.pos:] {
		p.pos = len(p.text)
		return p.failEnd()
	}
	if end > len(p.text) || p.text[p.pos:end] != word {
		return p.failAt(KindSyntax, "where a JSON value is expected; the literals are true, false and null")
	}
	p.pos = end
	return true
}

func (p *parser) number() (json.Number, bool) {
	end, problem := scanNumber(p.text, p.pos)
	if problem == "" {
		n := json.Number(p.text[p.pos:end])
		p.pos = end
		return n, true
	}
	if problem == numberCut {
		p.pos = len(p.text)
		return "", p.failEnd()
	}
	return "", p.fail(KindNumber, p.pos, "the number "+Excerpt(p.text[p.pos:end], excerptBytes)+" "+problem)
}
