package strictjson

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// failer is what testing and rapid have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// mustParse is for texts that are known to be good.
func mustParse(t failer, text string) any {
	t.Helper()
	v, err := Parse(text, Limits{})
	if err != nil {
		t.Fatalf("parse %q: %v", text, err)
	}
	return v
}

// refuse checks the kind and that the message is fit for a model: short, and
// without raw controls.
func refuse(t testing.TB, text string, lim Limits, want Kind) *SyntaxError {
	t.Helper()
	v, err := Parse(text, lim)
	var syntax *SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("parse %.60q: got value %v, error %v; want a *SyntaxError of kind %s", text, v, err, want)
	}
	if syntax.Kind != want {
		t.Errorf("parse %.60q: kind %s (%v), want %s", text, syntax.Kind, err, want)
	}
	if v != nil {
		t.Errorf("parse %.60q: a refused text gave a value", text)
	}
	if syntax.Offset < 0 || syntax.Offset > len(text) {
		t.Errorf("parse %.60q: offset %d outside of the text", text, syntax.Offset)
	}
	checkMessage(t, err.Error())
	return syntax
}

func checkMessage(t testing.TB, message string) {
	t.Helper()
	if len(message) > 400 {
		t.Errorf("message of %d bytes: %.80s", len(message), message)
	}
	if !utf8.ValidString(message) {
		t.Errorf("message is not UTF-8: %q", message)
	}
	for _, r := range message {
		if !strconv.IsPrint(r) {
			t.Errorf("message holds %U raw: %q", r, message)
		}
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"key` + strconv.Itoa(i) + `":` + strconv.Itoa(i))
	}
	b.WriteByte('}')
	return b.String()
}

func nested(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

func TestParse_BuildsTheTree(t *testing.T) {
	text := " {\"s\" : \"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\", \"n\":[0,-0,1.50,1E+2,-9e-9],\t\"o\":{\"\":{}},\r\n\"l\":[true,false,null,[],\"\"] } "
	want := map[string]any{
		"s": "a\"\\/\b\f\n\r\té😀",
		"n": []any{json.Number("0"), json.Number("-0"), json.Number("1.50"), json.Number("1E+2"), json.Number("-9e-9")},
		"o": map[string]any{"": map[string]any{}},
		"l": []any{true, false, nil, []any{}, ""},
	}
	if got := mustParse(t, text); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

func TestParse_ArraysInsideArraysKeepTheirItems(t *testing.T) {
	text := `[1,[2,[3,4],5],6,[[],[7]],[8,9,10,11,12,13,14,15,16,17,18,19,20,21]]`
	var want any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&want); err != nil {
		t.Fatal(err)
	}
	if got := mustParse(t, text); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParse_Refuses(t *testing.T) {
	tests := []struct {
		name, text string
		kind       Kind
		offset     int
	}{
		{"nothing", ``, KindIncomplete, 0},
		{"blanks", " \n", KindIncomplete, 2},
		{"cut in key", `{"a`, KindIncomplete, 3},
		{"cut after key", `{"a"`, KindIncomplete, 4},
		{"cut after colon", `{"a":`, KindIncomplete, 5},
		{"cut after comma", `{"a":1,`, KindIncomplete, 7},
		{"cut in literal", `[tru`, KindIncomplete, 4},
		{"cut in escape", `"\`, KindIncomplete, 2},
		{"cut after escape", `"\n`, KindIncomplete, 3},
		{"cut in unicode escape", `"\u00`, KindIncomplete, 5},
		{"cut in second half", `"\ud83d\u`, KindIncomplete, 9},
		{"cut in number", `[1.`, KindIncomplete, 3},
		{"cut in exponent", `[1e+`, KindIncomplete, 4},
		{"lone minus", `-`, KindIncomplete, 1},
		{"trailing comma in object", `{"a":1,}`, KindSyntax, 7},
		{"trailing comma in array", `[1,]`, KindSyntax, 3},
		{"bare key", `{a:1}`, KindSyntax, 1},
		{"single quotes", `{'a':1}`, KindSyntax, 1},
		{"equals", `{"a"=1}`, KindSyntax, 4},
		{"missing comma", `[1 2]`, KindSyntax, 3},
		{"wrong bracket", `[1}`, KindSyntax, 2},
		{"comment", `{/*x*/}`, KindSyntax, 1},
		{"wrong literal", `True`, KindSyntax, 0},
		{"long literal", `nulls`, KindTrailingData, 4},
		{"almost literal", `nul!`, KindSyntax, 0},
		{"not a number", `NaN`, KindSyntax, 0},
		{"negative infinity", `-Infinity`, KindNumber, 0},
		{"no digit after point", `[1.]`, KindNumber, 1},
		{"no digit in exponent", `[1e]`, KindNumber, 1},
		{"double minus", `--1`, KindNumber, 0},
		{"two points", `1.2.3`, KindNumber, 0},
		{"underscore", `1_000`, KindNumber, 0},
		{"form feed", "\f1", KindSyntax, 0},
		{"no-break space", "\u00a01", KindSyntax, 0},
		{"NUL after", "1\x00", KindTrailingData, 1},
		{"unknown escape", `"a\x41"`, KindEscape, 2},
		{"bad hex", `"\u12G4"`, KindEscape, 1},
		{"raw newline", "\"a\nb\"", KindControlCharacter, 2},
		{"raw NUL", "\"\x00\"", KindControlCharacter, 1},
		{"raw control after escape", "\"\\n\x1b\"", KindControlCharacter, 3},
		{"control in key", "{\"\x01\":1}", KindControlCharacter, 2},
		{"BOM", "\xEF\xBB\xBF{}", KindByteOrderMark, 0},
		{"bad byte", "\"a\xffb\"", KindInvalidUTF8, 2},
		{"bad byte after escape", "\"\\n\xc3\"", KindInvalidUTF8, 3},
		{"overlong", "\"\xc0\xaf\"", KindInvalidUTF8, 1},
		{"surrogate as UTF-8", "\"\xed\xa0\x80\"", KindInvalidUTF8, 1},
		{"bad byte in key", "{\"\xff\":1}", KindInvalidUTF8, 2},
		{"bad byte outside", "[\xff]", KindInvalidUTF8, 1},
		{"duplicate", `{"a":1,"b":2,"a":1}`, KindDuplicateKey, 13},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, KindDuplicateKey, 7},
		{"duplicate empty", `{"":1,"":2}`, KindDuplicateKey, 6},
		{"duplicate deep", `{"x":[{"k":1,"k":2}]}`, KindDuplicateKey, 13},
		{"high alone", `"\ud800"`, KindLoneSurrogate, 1},
		{"low alone", `"\udc00"`, KindLoneSurrogate, 1},
		{"low then high", `"\udc00\ud800"`, KindLoneSurrogate, 1},
		{"high twice", `"\ud800\ud800"`, KindLoneSurrogate, 1},
		{"high then letter", `"\ud800x"`, KindLoneSurrogate, 1},
		{"high then escape", `"\ud800\n"`, KindLoneSurrogate, 1},
		{"high in key", `{"\ud800":1}`, KindLoneSurrogate, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := refuse(t, tt.text, Limits{}, tt.kind); got.Offset != tt.offset {
				t.Errorf("offset %d, want %d (%v)", got.Offset, tt.offset, got)
			}
		})
	}
}

func TestSyntaxError_NamesThePlace(t *testing.T) {
	err := refuse(t, `{"lines":[{},{"a/b~":01}]}`, Limits{}, KindNumber)
	if want := "/lines/1/a~1b~0"; err.Path != want {
		t.Errorf("path %q, want %q", err.Path, want)
	}
	want := `invalid JSON (number) at byte 21 in "/lines/1/a~1b~0": the number "01" is not JSON; write numbers as in 12, -3.5 or 1e9`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestSyntaxError_EchoesLittle(t *testing.T) {
	long := strings.Repeat("k", 5000) + "\u202e\x1b"
	for _, text := range []string{
		`{"` + strings.Repeat("k", 5000) + `":1,"` + strings.Repeat("k", 5000) + `":2}`,
		`{"` + strings.Repeat("k", 5000) + `":01}`,
		`{"` + strings.Repeat("é", 100) + `":{"a":1,"a":2}}`,
		strings.Repeat("9", 5000),
		`{"a":1}` + long,
	} {
		_, err := Parse(text, Limits{})
		if err == nil {
			t.Fatalf("parsed %.40q", text)
		}
		checkMessage(t, err.Error())
		echoed := max(strings.Count(err.Error(), "k"), 2*strings.Count(err.Error(), "é"), strings.Count(err.Error(), "9"))
		if echoed > excerptBytes+3 { // the words of the message have letters too
			t.Errorf("message echoes %d bytes: %s", echoed, err)
		}
		var syntax *SyntaxError
		if errors.As(err, &syntax); len(syntax.Path) > pathBytes {
			t.Errorf("path of %d bytes", len(syntax.Path))
		}
	}
}

func TestExcerpt_CutsBetweenCharacters(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		max      int
	}{
		{"abc", `"abc"`, 3},
		{"abcd", `"abc"…`, 3},
		{"aé", `"a"…`, 2},
		{"\u202ea", `"\u202e"…`, 3},
		{"\x1b[2K", `"\x1b[2K"`, 40},
	} {
		if got := Excerpt(tt.in, tt.max); got != tt.want {
			t.Errorf("Excerpt(%q, %d) = %s, want %s", tt.in, tt.max, got, tt.want)
		}
	}
}

// The limits of S-37, each at -1, 0 and +1.
func TestS37_Limits(t *testing.T) {
	text := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	digits := func(n int) string { return strings.Repeat("7", n) }
	tests := []struct {
		name string
		make func(n int) string
		at   int
		kind Kind
	}{
		{"input 1 MiB", text, 1 << 20, KindSize},
		{"depth 64 of arrays", nested, 64, KindDepth},
		{"depth 64 of objects", func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }, 64, KindDepth},
		{"number of 128 bytes", digits, 128, KindNumber},
		{"number of 128 bytes with sign and point", func(n int) string { return "-0." + digits(n-3) }, 128, KindNumber},
		{"exponent 308", func(n int) string { return "1e" + strconv.Itoa(n) }, 308, KindNumber},
		{"exponent -308", func(n int) string { return "1E-" + strconv.Itoa(n) }, 308, KindNumber},
		{"exponent +308 with zeros", func(n int) string { return "1e+000" + strconv.Itoa(n) }, 308, KindNumber},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mustParse(t, tt.make(tt.at-1))
			mustParse(t, tt.make(tt.at))
			refuse(t, tt.make(tt.at+1), Limits{}, tt.kind)
		})
	}
	t.Run("exponent that overflows an int", func(t *testing.T) {
		refuse(t, "1e99999999999999999999999999", Limits{}, KindNumber)
		refuse(t, "1e10000000", Limits{}, KindNumber)
	})
}

func TestLimits_OfTheCaller(t *testing.T) {
	mustBe := func(text string, lim Limits, good bool) {
		t.Helper()
		if _, err := Parse(text, lim); (err == nil) != good {
			t.Errorf("Parse(%.20q, %+v): %v", text, lim, err)
		}
	}
	mustBe(`[[1]]`, Limits{Depth: 2}, true)
	mustBe(`[[[1]]]`, Limits{Depth: 2}, false)
	mustBe(`12345`, Limits{Bytes: 5}, true)
	mustBe(`123456`, Limits{Bytes: 5}, false)
	mustBe(`"`+strings.Repeat("x", 2<<20)+`"`, Limits{Bytes: -1}, true)
	mustBe(nested(10_000), Limits{Depth: -1}, true)
	mustBe(nested(10_001), Limits{Depth: -1}, false)
	mustBe(nested(10_001), Limits{Depth: 1 << 40}, false)
}

func TestParse_ManyKeysAreLinear(t *testing.T) {
	// Comparing each of 200,000 keys with each would take minutes.
	text := manyKeys(200_000)
	start := time.Now()
	v, err := Parse(text, Limits{Bytes: -1})
	if err != nil || len(v.(map[string]any)) != 200_000 {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 60*time.Second {
		t.Errorf("took %v", took)
	}
	again := strings.TrimSuffix(text, "}") + `,"key0":1}`
	if _, err := Parse(again, Limits{Bytes: -1}); err == nil {
		t.Error("a duplicate far away is not seen")
	}
}

func TestParse_AllocatesLittle(t *testing.T) {
	allocs := testing.AllocsPerRun(100, func() { mustParse(t, `{"id":"A-1","n":3}`) })
	if allocs > 8 {
		t.Errorf("%v allocations for a small object, want at most 8", allocs)
	}
}

func TestParseObject_TakesObjectsOnly(t *testing.T) {
	if obj, err := ParseObject(` {"a":null} `, Limits{}); err != nil || len(obj) != 1 {
		t.Errorf("got %v, %v", obj, err)
	}
	for _, text := range []string{`null`, `true`, `1`, `"{}"`, `[]`} {
		_, err := ParseObject(text, Limits{})
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Kind != KindNotObject {
			t.Errorf("ParseObject(%s): %v", text, err)
		}
	}
	if _, err := ParseObject(`{`, Limits{}); err == nil {
		t.Error("took a cut object")
	}
}

func TestValidNumber(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "-0": true, "12.50": true, "1e308": true, "1E-308": true,
		"": false, "-": false, "01": false, "+1": false, "1e309": false, "1e10000000": false, "1 ": false, " 1": false,
		"0x1": false, "NaN": false, strings.Repeat("1", 129): false,
	} {
		if got := ValidNumber(text); got != want {
			t.Errorf("ValidNumber(%.20q) = %v", text, got)
		}
	}
}
