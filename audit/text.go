package audit

import (
	"encoding/base64"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// base64url is the only base 64 of the log.
var base64url = base64.RawURLEncoding.Strict()

// appendText appends s as a JSON string, or as {"b64":"…"} where it is not
// valid UTF-8.
func appendText(dst []byte, s string) []byte {
	n := plainPrefix(s)
	if n < len(s) && !utf8.ValidString(s[n:]) {
		dst = append(dst, `{"b64":"`...)
		dst = base64url.AppendEncode(dst, []byte(s))
		return append(dst, `"}`...)
	}
	dst = append(dst, '"')
	for n < len(s) {
		n += verbatim(s[n:])
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"')
		}
		dst = appendEscape(dst, s[n])
		s, n = s[n+1:], 0
	}
	dst = append(dst, s...)
	return append(dst, '"')
}

func appendEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
}

// verbatim returns how many bytes at the start of s stand for themselves in a
// JSON string: DEL and those of longer runes among them.
func verbatim(s string) int {
	n := plainPrefix(s)
	for n < len(s) && s[n] >= del {
		if n++; n < len(s) && s[n] < del {
			n += plainPrefix(s[n:])
		}
	}
	return n
}

const del = 0x7f

// plainPrefix returns how many bytes at the start of s are printable ASCII that
// needs no escape. It looks at eight bytes at a time: texts and inputs are long.
func plainPrefix[S string | []byte](s S) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	i := 0
	for i+8 <= len(s) {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// The high bit of a byte is set where it is below 0x20, a quotation
		// mark, a backslash, DEL, or not ASCII. The first such byte is exact;
		// what is borrowed from it or carried may set the bits behind.
		if found := (w | (w + ones) | (w - ones*0x20) | (quote - ones) | (slash - ones)) & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
		// The last bytes are looked at together with some before them.
		if i += 8; i < len(s) && i+8 > len(s) {
			i = len(s) - 8
		}
	}
	for ; i < len(s); i++ {
		if b := s[i]; b < 0x20 || b == '"' || b == '\\' || b >= del {
			break
		}
	}
	return i
}

// readText reads what appendText wrote.
func (c *codec) readText() string {
	if c.pos < len(c.in) && c.in[c.pos] == '{' {
		return c.readBytes()
	}
	if !c.take('"') {
		return ""
	}
	s := c.in[c.pos:]
	if n := plainPrefix(s); n < len(s) && s[n] == '"' {
		c.pos += n + 1
		return s[:n]
	}
	end := stringEnd(s)
	if end >= len(s) || !utf8.ValidString(s[:end]) {
		c.odd = true
		return ""
	}
	c.pos += end + 1
	return c.unescaped(s[:end])
}

// unescaped returns the text of a JSON string, s, without its escapes.
func (c *codec) unescaped(s string) string {
	n := verbatim(s)
	if n == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for n < len(s) {
		r, size := unescape(s[n:])
		if size == 0 {
			c.odd = true
			return ""
		}
		b.WriteString(s[:n])
		b.WriteRune(r)
		s = s[n+size:]
		n = verbatim(s)
	}
	b.WriteString(s)
	return b.String()
}

// stringEnd returns the length of the JSON string that s continues.
func stringEnd(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return len(s)
}

// unescape reads the escape at the start of s and returns its length, or 0 for
// anything that we do not write.
func unescape(s string) (rune, int) {
	if len(s) < 2 || s[0] != '\\' {
		return 0, 0
	}
	switch s[1] {
	case '"', '\\':
		return rune(s[1]), 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		if len(s) < 6 {
			return 0, 0
		}
		n, err := strconv.ParseUint(s[2:6], 16, 16)
		if err != nil || utf16.IsSurrogate(rune(n)) { // the JSON library reads pairs
			return 0, 0
		}
		return rune(n), 6
	}
	return 0, 0
}

// readBytes reads {"b64":"…"}.
func (c *codec) readBytes() string {
	s, ok := strings.CutPrefix(c.in[c.pos:], `{"b64":"`)
	if !ok {
		c.odd = true
		return ""
	}
	end := strings.IndexByte(s, '"')
	if end < 0 || end+1 >= len(s) || s[end+1] != '}' {
		c.odd = true
		return ""
	}
	b, err := base64url.DecodeString(s[:end])
	if err != nil || strings.ContainsAny(s[:end], "\r\n") { // which that package skips
		c.odd = true
		return ""
	}
	c.pos = len(c.in) - len(s) + end + 2
	return string(b)
}

// readNumber reads a whole number.
func (c *codec) readNumber() int64 {
	n, size := wholeNumber(c.in[c.pos:])
	c.odd = c.odd || size == 0
	c.pos += size
	return n
}

// maxNumber is the most bytes of a whole number of 64 bits.
const maxNumber = len("-9223372036854775808")

// wholeNumber returns the number at the start of s and its length; 0 where
// there is none, where zeros lead it, or where 64 bits do not hold it.
func wholeNumber(s string) (n int64, size int) {
	first := 0
	if len(s) > 0 && s[0] == '-' {
		first = 1
	}
	end := first
	for ; end < len(s) && end < maxNumber && isDigit(s[end]); end++ {
		n = n*10 + int64(s[end]-'0')
	}
	switch {
	case end == first, s[first] == '0' && end > 1:
		return 0, 0
	case end > 18: // n may have overflowed
		var err error
		if n, err = strconv.ParseInt(s[:end], 10, 64); err != nil {
			return 0, 0
		}
	case first == 1:
		n = -n
	}
	return n, end
}

func (c *codec) readTrue() bool {
	if !strings.HasPrefix(c.in[c.pos:], "true") {
		c.odd = true
		return false
	}
	c.pos += len("true")
	return true
}

const timeLayout = `"2006-01-02T15:04:05.000000Z"`

// The microseconds since 1970 at which the year 0 begins and the year 9999 ends:
// RFC 3339 has no form for what is outside.
const (
	minAt = -62167219200_000000
	maxAt = 253402300799_999999
)

// writable reports whether RFC 3339 has a form for t.
func writable(t time.Time) bool {
	at := t.Unix()
	return at >= minAt/1_000_000 && at <= maxAt/1_000_000
}

// appendTime appends a time that is writable in timeLayout.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	start := len(dst)
	dst = append(dst, timeLayout...)
	s := dst[start:]
	putDigits(s[1:5], year)
	putDigits(s[6:8], int(month))
	putDigits(s[9:11], day)
	putDigits(s[12:14], hour)
	putDigits(s[15:17], minute)
	putDigits(s[18:20], second)
	putDigits(s[21:27], t.Nanosecond()/1000)
	return dst
}

// putDigits fills s with the digits of n.
func putDigits(s []byte, n int) {
	for i := len(s) - 1; i >= 0; i-- {
		s[i] = '0' + byte(n%10)
		n /= 10
	}
}

// readTime reads a time of exactly timeLayout.
func (c *codec) readTime() time.Time {
	if s := c.in[c.pos:]; len(s) >= len(timeLayout) {
		if t, ok := parseTime(s[:len(timeLayout)]); ok {
			c.pos += len(timeLayout)
			return t
		}
	}
	c.odd = true
	return time.Time{}
}

// parseTime reads a time of exactly timeLayout, which has the length of s.
func parseTime(s string) (time.Time, bool) {
	for i := range len(s) {
		want := timeLayout[i]
		if digit := isDigit(s[i]); digit != isDigit(want) || !digit && s[i] != want {
			return time.Time{}, false
		}
	}
	year, month, day := digits(s[1:5]), digits(s[6:8]), digits(s[9:11])
	hour, minute, second := digits(s[12:14]), digits(s[15:17]), digits(s[18:20])
	if hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, digits(s[21:27])*1000, time.UTC)
	// time.Date takes 31 February for 3 March.
	return t, t.Day() == day && int(t.Month()) == month
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// digits returns the number that s, all digits, writes.
func digits(s string) int {
	n := 0
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}
