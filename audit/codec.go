package audit

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// codec writes a value as JSON, or reads one back in exactly that spelling.
// One function a type names its members once, for both directions, so that
// what is written and what is read cannot drift apart.
type codec struct {
	// Writing.
	out []byte
	err error // the first value that cannot be written

	// Reading.
	reading bool
	in      string
	pos     int
	odd     bool // in is not in our spelling

	// Random bytes are drawn 512 at a time, and forgotten as they are used.
	random [512]byte
	left   int
}

// salts fills out with random bytes that nobody else gets.
func (c *codec) salts(out []byte) {
	for len(out) > 0 {
		if c.left == 0 {
			rand.Read(c.random[:]) // never fails: the runtime ends the process instead
			c.left = len(c.random)
		}
		from := c.random[len(c.random)-c.left:]
		n := copy(out, from)
		clear(from[:n])
		c.left -= n
		out = out[n:]
	}
}

// presence says whether a member may be missing.
type presence uint8

const (
	must presence = iota // always there
	may                  // left out where empty
	skip                 // left out: the caller knows that it is empty
)

// unless is skip for an empty value and may for any other.
func unless(empty bool) presence {
	if empty {
		return skip
	}
	return may
}

// name begins a member. Writing, it writes the name; reading, it takes the
// name and reports whether it is the next one.
func (c *codec) name(name string, p presence) bool {
	if !c.reading {
		out := c.out
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, name...)
		c.out = append(out, '"', ':')
		return true
	}
	if c.odd {
		return false
	}
	if i := c.nameEnd(name); i > 0 {
		c.pos = i
		return true
	}
	if p == must {
		c.odd = true
	}
	return false
}

// nameEnd returns where the value of the next member begins, or 0 where the
// next member has another name.
func (c *codec) nameEnd(name string) int {
	i, n := c.pos, len(name)
	if i > 0 && c.in[i-1] != '{' {
		if i >= len(c.in) || c.in[i] != ',' {
			return 0
		}
		i++
	}
	s := c.in[i:]
	if len(s) < n+3 || s[0] != '"' || s[1] != name[0] || s[1:n+1] != name || s[n+1] != '"' || s[n+2] != ':' {
		return 0
	}
	return i + n + 3
}

// take reads one byte that must come now.
func (c *codec) take(b byte) bool {
	if c.odd || c.pos >= len(c.in) || c.in[c.pos] != b {
		c.odd = true
		return false
	}
	c.pos++
	return true
}

// next reports whether b comes now, and takes it.
func (c *codec) next(b byte) bool {
	if c.odd || c.pos >= len(c.in) || c.in[c.pos] != b {
		return false
	}
	c.pos++
	return true
}

// text is a member that holds a string of any bytes.
func text[S ~string](c *codec, name string, p presence, v *S) {
	if c.reading {
		if c.name(name, p) {
			*v = S(c.readText())
		}
	} else if p == must || *v != "" {
		c.name(name, p)
		c.out = appendText(c.out, string(*v))
	}
}

func textValue[S ~string](c *codec, v *S) {
	if c.reading {
		*v = S(c.readText())
		return
	}
	c.out = appendText(c.out, string(*v))
}

// raw is a member that holds JSON text, as a string.
func raw(c *codec, name string, v *json.RawMessage) {
	if !c.reading && len(*v) == 0 {
		return
	}
	if !c.name(name, may) {
		return
	}
	if c.reading {
		*v = json.RawMessage(c.readText())
		return
	}
	c.out = appendText(c.out, string(*v))
}

// number is a member that holds a whole number, a duration among them.
func number[I ~int | ~int64](c *codec, name string, p presence, v *I) {
	if !c.reading && p != must && *v == 0 {
		return
	}
	if !c.name(name, p) {
		return
	}
	if c.reading {
		n := c.readNumber()
		*v = I(n)
		c.odd = c.odd || int64(*v) != n // an int of 32 bits
		return
	}
	c.out = strconv.AppendInt(c.out, int64(*v), 10)
}

// fact is a member that is true or left out.
func fact(c *codec, name string, v *bool) {
	if !c.reading && !*v {
		return
	}
	if !c.name(name, may) {
		return
	}
	if c.reading {
		*v = c.readTrue()
		return
	}
	c.out = append(c.out, "true"...)
}

// moment is a member that holds a time.
func moment(c *codec, name string, p presence, v *time.Time) {
	if !c.reading && p != must && v.IsZero() {
		return
	}
	if !c.name(name, p) {
		return
	}
	if c.reading {
		*v = c.readTime()
		return
	}
	if !writable(*v) {
		c.err = fmt.Errorf("%s: %w", name, errYear)
	}
	c.out = appendTime(c.out, *v)
}

// object is a member that holds an object. Where it may be missing it is left
// out if no member of it would be written.
func object[T any](c *codec, name string, p presence, v *T, members func(*codec, *T)) {
	if !c.reading && p == skip {
		return
	}
	before := len(c.out)
	if !c.name(name, p) {
		return
	}
	braces(c, v, members)
	if !c.reading && p != must && c.out[len(c.out)-2] == '{' {
		c.out = c.out[:before]
	}
}

// pointer is a member that holds an object, or is left out for nil.
func pointer[T any](c *codec, name string, v **T, members func(*codec, *T)) {
	if !c.reading && *v == nil {
		return
	}
	if !c.name(name, may) {
		return
	}
	if c.reading {
		*v = new(T)
	}
	braces(c, *v, members)
}

// braces is an object as a value.
func braces[T any](c *codec, v *T, members func(*codec, *T)) {
	if !c.reading {
		c.out = append(c.out, '{')
		members(c, v)
		c.out = append(c.out, '}')
		return
	}
	if c.take('{') {
		members(c, v)
		c.take('}')
	}
}

// texts is a member that holds a list of strings.
func texts(c *codec, name string, p presence, v *[]string) {
	list(c, name, p, v, textValue[string])
}

// objects is a member that holds a list of objects.
func objects[T any](c *codec, name string, p presence, v *[]T, members func(*codec, *T)) {
	list(c, name, p, v, func(c *codec, v *T) { braces(c, v, members) })
}

// list is a member that holds a list. A nil list that must be there is
// written, and read, as an empty one.
func list[T any](c *codec, name string, p presence, v *[]T, value func(*codec, *T)) {
	if !c.reading && p != must && len(*v) == 0 {
		return
	}
	if !c.name(name, p) {
		return
	}
	if c.reading {
		*v = readList(c, value)
		return
	}
	c.out = append(c.out, '[')
	for i := range *v {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		value(c, &(*v)[i])
	}
	c.out = append(c.out, ']')
}

func readList[T any](c *codec, value func(*codec, *T)) []T {
	items := []T{}
	if !c.take('[') || c.next(']') {
		return items
	}
	for {
		var zero T
		items = append(items, zero)
		value(c, &items[len(items)-1])
		if !c.next(',') {
			c.take(']')
			return items
		}
	}
}

var errYear = errors.New("time has a year outside 0 to 9999")

// codecs keeps writers and their buffers between calls.
var codecs = sync.Pool{New: func() any { return &codec{out: make([]byte, 0, 4096)} }}

// newWriter returns an empty writer; free gives it back.
func newWriter() *codec {
	c := codecs.Get().(*codec)
	c.out, c.err, c.reading = c.out[:0], nil, false
	return c
}

func (c *codec) free() {
	c.in = ""                // it would hold on to a whole payload
	if cap(c.out) <= 1<<16 { // one large event shall not hold its memory for ever
		codecs.Put(c)
	}
}

// decode reads one value. It reports false where in is not in our spelling; v
// is then half filled.
func decode[T any](c *codec, in string, v *T, members func(*codec, *T)) bool {
	c.reading, c.in, c.pos, c.odd = true, in, 0, false
	braces(c, v, members)
	return !c.odd && c.pos == len(c.in)
}
