package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// failer is what testing and rapid have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func mustCompile(t failer, text string) *Schema {
	t.Helper()
	s, err := Compile([]byte(text))
	if err != nil {
		t.Fatalf("compile %.80s: %v", text, err)
	}
	return s
}

func mustParse(t failer, text string) any {
	t.Helper()
	v, err := strictjson.Parse(text, strictjson.Limits{})
	if err != nil {
		t.Fatalf("parse %.80s: %v", text, err)
	}
	return v
}

// takes checks the verdict on an input, and that the short way never accepts
// what the validator refuses.
func takes(t failer, s *Schema, input string, want bool) {
	t.Helper()
	v := mustParse(t, input)
	err := s.Validate(v)
	if (err == nil) != want {
		t.Errorf("input %.80s: %v; want valid = %v", input, err, want)
	}
	if s.doc.root.accepts(v) && s.validator.Validate(v) != nil {
		t.Errorf("input %.80s: accepted by the short way, refused by the validator", input)
	}
	if err != nil {
		checkError(t, err)
	}
}

func checkError(t failer, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%T %v is not an *Error", err, err)
	}
	if len(e.Problems) == 0 || len(e.Problems) > maxProblems {
		t.Errorf("%d problems", len(e.Problems))
	}
	checkText(t, err.Error(), maxErrorText)
	return e
}

func checkText(t failer, text string, most int) {
	t.Helper()
	if len(text) > most || !utf8.ValidString(text) {
		t.Errorf("error text of %d bytes, valid UTF-8 %v: %.80q", len(text), utf8.ValidString(text), text)
	}
	for _, r := range text {
		if !strconv.IsPrint(r) {
			t.Errorf("error text holds %U raw: %q", r, text)
		}
	}
}

func refuses(t failer, text string, want Kind) *CompileError {
	t.Helper()
	s, err := Compile([]byte(text))
	var e *CompileError
	if !errors.As(err, &e) {
		t.Fatalf("compile %.80s: %v, %v; want a *CompileError of kind %s", text, s, err, want)
	}
	if e.Kind != want {
		t.Errorf("compile %.80s: kind %s (%v), want %s", text, e.Kind, err, want)
	}
	if s != nil {
		t.Errorf("compile %.80s: a refused schema came back", text)
	}
	checkText(t, err.Error(), 1<<10)
	return e
}

// within runs f up to ten times until it is fast enough, as other work may be
// going on.
func within(t *testing.T, most time.Duration, f func()) {
	t.Helper()
	most *= slowness
	took := time.Duration(0)
	for range 10 {
		start := time.Now()
		f()
		if took = time.Since(start); took <= most {
			return
		}
	}
	t.Errorf("took %v, want at most %v", took, most)
}

const refund = `{"type":"object","properties":{"order":{"type":"string","description":"the order, such as A-1017"},"amount":{"type":"integer","minimum":1,"maximum":1000}},"required":["order","amount"],"additionalProperties":false}`

func TestValidate_Verdicts(t *testing.T) {
	tests := []struct {
		name, schema string
		good, bad    []string
	}{
		{"refund", refund,
			[]string{`{"order":"A-1","amount":3}`, `{"amount":1000,"order":""}`, `{"amount":1e2,"order":""}`, `{"amount":5.0,"order":""}`},
			[]string{`{}`, `{"order":"A-1"}`, `{"order":1,"amount":3}`, `{"order":"A","amount":"3"}`, `{"order":"A","amount":3,"x":1}`, `{"order":"A","amount":0}`, `{"order":"A","amount":1001}`, `{"order":"A","amount":2.5}`, `[]`, `null`, `"A"`, `{"Order":"A","amount":3}`}},
		{"types", `{"type":["string","null","boolean"]}`, []string{`"a"`, `null`, `true`, `false`}, []string{`1`, `[]`, `{}`}},
		{"number", `{"type":"number"}`, []string{`1`, `1.5`, `-0`, `1e-5`}, []string{`"1"`, `true`, `null`}},
		{"integer", `{"type":"integer"}`, []string{`1`, `1.0`, `1e2`, `-0.0`, `10e-1`, `0e-5`, `1.50e1`}, []string{`1.5`, `1e-1`, `15e-1`, `1.05e1`, `"1"`}},
		{"any", `{}`, []string{`1`, `{"a":[1]}`, `null`}, nil},
		{"true", `true`, []string{`1`, `{"a":[1]}`, `null`}, nil},
		{"false", `false`, nil, []string{`1`, `{}`, `null`}},
		{"enum", `{"enum":["a","b"]}`, []string{`"a"`, `"b"`}, []string{`"c"`, `"A"`, `1`, `null`, `["a"]`}},
		{"empty enum", `{"enum":[]}`, nil, []string{`"c"`, `null`}},
		{"long enum", `{"enum":["a","b","c","d","e","f","g","h","i","j"]}`, []string{`"a"`, `"j"`}, []string{`"k"`, `""`}},
		{"mixed enum", `{"enum":["a",1,null,{"k":[1.0]}]}`, []string{`"a"`, `1`, `1.0`, `null`, `{"k":[1]}`}, []string{`"1"`, `true`, `{"k":["1"]}`, `{}`}},
		{"const", `{"const":{"a":1}}`, []string{`{"a":1}`, `{"a":1.0}`}, []string{`{"a":true}`, `{}`}},
		{"items", `{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2}`, []string{`["a"]`, `["a","b"]`}, []string{`[]`, `["a","b","c"]`, `[1]`, `"a"`, `{}`}},
		{"items of no array", `{"items":{"type":"string"}}`, []string{`1`, `{}`, `[]`}, []string{`[1]`}},
		{"map", `{"type":"object","additionalProperties":{"type":"integer"}}`, []string{`{}`, `{"a":1}`}, []string{`{"a":"1"}`, `[]`}},
		{"open", `{"type":"object","properties":{"a":{"type":"integer"}}}`, []string{`{}`, `{"a":1}`, `{"b":"x"}`}, []string{`{"a":"1"}`}},
		{"closed and empty", `{"type":"object","additionalProperties":false}`, []string{`{}`}, []string{`{"a":1}`}},
		{"required elsewhere", `{"type":"object","required":["z"]}`, []string{`{"z":null}`}, []string{`{}`}},
		{"property counts", `{"minProperties":1,"maxProperties":2}`, []string{`{"a":1}`, `{"a":1,"b":1}`, `1`}, []string{`{}`, `{"a":1,"b":1,"c":1}`}},
		{"lengths", `{"minLength":2,"maxLength":3}`, []string{`"ab"`, `"éé"`, `"日本語"`, `"\ud83d\ude00a"`, `1`}, []string{`"a"`, `"é"`, `"abcd"`}},
		{"lengths as decimals", `{"maxLength":2.0}`, []string{`"ab"`}, []string{`"abc"`}},
		{"false property", `{"properties":{"a":false}}`, []string{`{}`, `{"b":1}`}, []string{`{"a":1}`}},
		{"reference", `{"$defs":{"id":{"type":"integer"}},"type":"object","properties":{"a":{"$ref":"#/$defs/id"}}}`, []string{`{"a":1}`}, []string{`{"a":"1"}`}},
		{"reference and more", `{"$defs":{"id":{"type":"integer"}},"$ref":"#/$defs/id","minimum":3}`, []string{`3`}, []string{`2`, `"3"`}},
		{"reference by anchor", `{"$defs":{"x":{"$anchor":"id","type":"integer"}},"$ref":"#id"}`, []string{`3`}, []string{`"3"`}},
		{"dynamic reference", `{"$defs":{"x":{"$dynamicAnchor":"id","type":"integer"}},"$dynamicRef":"#id"}`, []string{`3`}, []string{`"3"`}},
		{"reference with escapes", `{"$defs":{"a/b~c d":{"type":"integer"}},"$ref":"#/$defs/a~1b~0c%20d"}`, []string{`3`}, []string{`"3"`}},
		{"anyOf", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, []string{`"a"`, `null`}, []string{`1`}},
		{"oneOf", `{"oneOf":[{"type":"integer"},{"minimum":2}]}`, []string{`1`, `2.5`, `"a"`}, []string{`2`, `1.5`}},
		{"not", `{"not":{"type":"string"}}`, []string{`1`}, []string{`"a"`}},
		{"if", `{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, []string{`{"a":1,"b":1}`, `{"c":1}`, `1`}, []string{`{"a":1}`, `{}`}},
		{"pattern", `{"pattern":"^[a-z]+$"}`, []string{`"abc"`, `1`}, []string{`"ABC"`, `""`}},
		{"patternProperties", `{"patternProperties":{"^x-":{"type":"integer"}},"additionalProperties":false}`, []string{`{"x-a":1}`}, []string{`{"x-a":"1"}`, `{"y":1}`}},
		{"propertyNames", `{"propertyNames":{"maxLength":1}}`, []string{`{"a":1}`}, []string{`{"ab":1}`}},
		{"dependentRequired", `{"dependentRequired":{"a":["b"]}}`, []string{`{"a":1,"b":1}`, `{}`}, []string{`{"a":1}`}},
		{"dependentSchemas", `{"dependentSchemas":{"a":{"required":["b"]}}}`, []string{`{"a":1,"b":1}`, `{}`}, []string{`{"a":1}`}},
		{"dependencies", `{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, []string{`{"a":1,"b":1}`, `{}`}, []string{`{"a":1}`, `{"c":1}`}},
		{"prefixItems", `{"prefixItems":[{"type":"string"}],"items":false}`, []string{`[]`, `["a"]`}, []string{`[1]`, `["a","b"]`}},
		{"contains", `{"contains":{"type":"string"},"minContains":1,"maxContains":2}`, []string{`["a"]`, `[1,"a","b"]`}, []string{`[]`, `["a","b","c"]`}},
		{"uniqueItems", `{"uniqueItems":true}`, []string{`[1,"1",true,[1]]`}, []string{`[1,1.0]`, `[{"a":1},{"a":1}]`}},
		{"unevaluatedProperties", `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, []string{`{"a":1}`}, []string{`{"b":1}`}},
		{"unevaluatedItems", `{"prefixItems":[true],"unevaluatedItems":false}`, []string{`[1]`}, []string{`[1,2]`}},
		{"multipleOf", `{"multipleOf":0.1}`, []string{`0.3`, `1`, `"a"`}, []string{`0.35`}},
		{"format is an annotation", `{"type":"string","format":"date-time"}`, []string{`"nonsense"`}, []string{`1`}},
		{"unknown keyword", `{"type":"string","frobnicate":[1]}`, []string{`"a"`}, []string{`1`}},
		{"draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"integer"},"t":{"items":[{"type":"string"}],"additionalItems":false}},"additionalProperties":false}`, []string{`{"a":1}`, `{"t":["a"]}`}, []string{`{"a":"1"}`, `{"b":1}`, `{"t":[1]}`, `{"t":["a","b"]}`}},
		{"draft-07 reference stands alone", `{"$schema":"https://json-schema.org/draft-07/schema","definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s","maxLength":1}}}`, []string{`{"a":"abc"}`}, []string{`{"a":1}`}},
		{"draft-07 format", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"d":{"type":"string","format":"date"},"p":{"format":"regex"}}}`, []string{`{"d":"2024-05-01"}`, `{"p":"^a+$"}`}, []string{`{"d":"nonsense"}`, `{"p":"("}`, `{"p":"a{900}b{900}"}`}},
		{"draft-07 keywords of later drafts", `{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[{"type":"string"}],"unevaluatedProperties":false,"$anchor":"a"}`, []string{`[1]`, `{"a":1}`}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustCompile(t, tt.schema)
			for _, input := range tt.good {
				takes(t, s, input, true)
			}
			for _, input := range tt.bad {
				takes(t, s, input, false)
			}
		})
	}
}

// The short way must be taken where it is meant to, or it is no use.
func TestAccepts_TheCommonKinds(t *testing.T) {
	for _, tt := range []struct{ schema, input string }{
		{refund, `{"order":"A-1","amount":3}`},
		{`true`, `{"a":1}`},
		{`{}`, `[1]`},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"x","title":"t","description":"d","default":1,"examples":[1],"x-tell-model":true}`, `1`},
		{`{"type":"object","properties":{"a":{"type":["null","array"],"items":{"$ref":"#/$defs/line"}}},"$defs":{"line":{"type":"object","properties":{"sku":{"type":"string"},"n":{"type":"integer"}},"required":["sku"],"additionalProperties":false}}}`, `{"a":[{"sku":"x","n":2},{"sku":"y"}]}`},
		{`{"type":"object","properties":{"kind":{"enum":["one_way","round_trip"]},"when":{"type":"string","format":"date-time"}}}`, `{"kind":"one_way","when":"2024-05-01T00:00:00Z"}`},
		{`{"type":"object","additionalProperties":{"type":"boolean"}}`, `{"x":true}`},
		{`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/m"},{"type":"null"}]},"b":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null}},"$defs":{"m":{"type":"object","properties":{"x":{"type":"string"}}}}}`, `{"a":{"x":"y"},"b":null}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":"b"}`},
	} {
		if !mustCompile(t, tt.schema).doc.root.accepts(mustParse(t, tt.input)) {
			t.Errorf("schema %s leaves %s to the validator", tt.schema, tt.input)
		}
	}
}

func TestAccepts_AllocatesNothing(t *testing.T) {
	s := mustCompile(t, refund)
	v := mustParse(t, `{"order":"A-1","amount":3}`)
	n := testing.AllocsPerRun(100, func() {
		if s.Validate(v) != nil {
			t.Fatal("refused")
		}
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestValidate_RefusesForeignValues(t *testing.T) {
	s := mustCompile(t, refund)
	for _, v := range []any{1, 1.5, map[string]any{"order": []byte("A"), "amount": json.Number("1")}, map[string]any{"order": "A", "amount": 7}, map[string]any{"order": "A", "amount": json.Number("1e10000000")}, struct{}{}, map[string]string{}} {
		if err := s.Validate(v); err == nil {
			t.Errorf("took %#v", v)
		} else {
			checkError(t, err)
		}
	}
}

func TestValidate_IsSafeForConcurrentUse(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"a":{"anyOf":[{"type":"string","pattern":"^a"},{"type":"null"}]}},"additionalProperties":false}`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				takes(t, s, `{"a":"abc"}`, true)
				takes(t, s, `{"a":"xbc","b":1}`, false)
			}
		})
	}
	wg.Wait()
}

func TestError_NamesPathAndRemedy(t *testing.T) {
	booking := `{"type":"object","properties":{
		"flights":{"type":"array","items":{"type":"object","properties":{"number":{"type":"string"},"seat/row":{"type":"integer","minimum":1}},"required":["number"],"additionalProperties":false},"maxItems":2},
		"cabin":{"enum":["economy","business",null,2]},
		"pay":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"way":{"anyOf":[{"type":"object","properties":{"card":{"type":"string"}},"required":["card"]},{"type":"object","properties":{"cash":{"type":"integer"}},"required":["cash"]}]},
		"code":{"type":"string","pattern":"^[A-Z]{3}$","minLength":3}
	},"required":["flights","cabin"],"additionalProperties":false}`
	s := mustCompile(t, booking)
	for _, tt := range []struct{ input, want string }{
		{`{}`, `input does not match the schema: lacks the required properties "flights", "cabin"`},
		{`{"flights":[],"cabin":"first"}`, `input does not match the schema: at "/cabin": must be one of "economy", "business", null, 2`},
		{`{"flights":[],"cabin":null,"Cabin":1}`, `input does not match the schema: has the unknown property "Cabin"; known are "cabin", "code", "flights", "pay", "way"`},
		{`{"flights":[{"number":"a"},{"seat/row":0}],"cabin":2}`, `input does not match the schema: at "/flights/1": lacks the required property "number"; at "/flights/1/seat~1row": must be at least 1`},
		{`{"flights":[{"number":"a","seat/row":1.5}],"cabin":2}`, `input does not match the schema: at "/flights/0/seat~1row": must be an integer, is a number with a fraction`},
		{`{"flights":[],"cabin":2,"pay":7}`, `input does not match the schema: at "/pay": must be a string or null, is a number`},
		{`{"flights":[],"cabin":2,"way":{"card":1}}`, `input does not match the schema: at "/way": matches none of the 2 allowed forms; form 1: "/card" must be a string, is a number; form 2: lacks the required property "cash"`},
		{`{"flights":[],"cabin":2,"code":"x"}`, `input does not match the schema: at "/code": must have at least 3 characters, has 1; at "/code": must match the pattern "^[A-Z]{3}$"`},
		{`[]`, `input does not match the schema: must be an object, is an array`},
	} {
		err := s.Validate(mustParse(t, tt.input))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s\n got %v\nwant %s", tt.input, err, tt.want)
		}
	}
}

func TestError_EverySentence(t *testing.T) {
	for _, tt := range []struct{ schema, input, want string }{
		{`false`, `1`, "is not allowed here; leave it out"},
		{`{"const":{"a":1}}`, `2`, `must be {"a":1}`},
		{`{"const":["` + strings.Repeat("x", 100) + `"]}`, `2`, "must be a certain value of the schema"},
		{`{"exclusiveMinimum":1}`, `1`, "must be more than 1"},
		{`{"exclusiveMaximum":0.25}`, `1`, "must be less than 0.25"},
		{`{"maximum":9007199254740992}`, `9007199254740993`, "must be at most 9007199254740992"},
		{`{"maximum":1000.00000000000000000001}`, `1001`, "must be at most 1000.00000000000000000001"},
		{`{"maximum":1e300}`, `1e301`, "must be at most about 1e+300"},
		{`{"multipleOf":3}`, `1`, "must be a multiple of 3"},
		{`{"maxLength":1}`, `"ab"`, "must have at most 1 characters, has 2"},
		{`{"minItems":1}`, `[]`, "must have at least 1 items, has 0"},
		{`{"maxItems":1}`, `[1,2]`, "must have at most 1 items, has 2"},
		{`{"minProperties":1}`, `{}`, "must have at least 1 properties, has 0"},
		{`{"maxProperties":1}`, `{"a":1,"b":1}`, "must have at most 1 properties, has 2"},
		{`{"uniqueItems":true}`, `[1,2,1]`, "must not have equal items; items 0 and 2 are equal"},
		{`{"contains":{"type":"string"}}`, `[1]`, "must have an item of the form that the schema asks for under contains"},
		{`{"contains":true,"minContains":2}`, `[1]`, "must have at least 2 items of the form under contains, has 1"},
		{`{"contains":true,"maxContains":1}`, `[1,2]`, "must have at most 1 items of the form under contains, has 2"},
		{`{"not":{}}`, `1`, "has a form that is not allowed"},
		{`{"oneOf":[{},true]}`, `1`, "matches more than one of the allowed forms (numbers 1 and 2); exactly one is asked for"},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `has the property name "ab", which is not allowed`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `lacks "b", required beside "a"`},
		{`{"dependencies":{"a":["b"]}}`, `{"a":1}`, `lacks "b", required beside "a"`},
		{`{"additionalProperties":false}`, `{"a":1}`, `has the unknown property "a"; no properties are taken`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"date"}`, `"x"`, `must have the format "date"`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[true],"additionalItems":false}`, `[1,2]`, `must not have the last 1 items`},
		{`{"enum":[1,2,3,4,5,6,7,8,9,10,11,12]}`, `0`, "must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more"},
	} {
		err := mustCompile(t, tt.schema).Validate(mustParse(t, tt.input))
		if err == nil {
			t.Errorf("%s takes %s", tt.schema, tt.input)
			continue
		}
		if e := checkError(t, err); e.Problems[0].Message != tt.want {
			t.Errorf("%s on %s\n got %s\nwant %s", tt.schema, tt.input, e.Problems[0].Message, tt.want)
		}
	}
}

func TestError_IsBoundedAndStable(t *testing.T) {
	long := strings.Repeat("secret-", 5000)
	var strange []string
	for i := range 12 {
		strange = append(strange, fmt.Sprintf(`"%d%s":{"\u0001%s":"x"}`, i, strings.Repeat(`\u202e`, 13), strings.Repeat(`\u0001`, 39)))
	}
	inputs := []struct{ schema, input string }{
		{`{"items":{"type":"string"}}`, `[` + strings.TrimSuffix(strings.Repeat("1,", 5000), ",") + `]`},
		{`{"additionalProperties":false}`, `{"` + long + `":1,"b\u202e\u001b":2}`},
		{`{"maxLength":3}`, `"` + long + `"`},
		{`{"enum":["a"]}`, `"` + long + `"`},
		{`{"additionalProperties":{"additionalProperties":{"type":"string"}}}`, `{"` + long + `":{"` + long + `2":1,"\u202e":2}}`},
		{`{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"required":["`+strings.Repeat("r", 300)+`"]},`, 50), ",") + `]}`, `{}`},
		{`{"additionalProperties":{"additionalProperties":{"pattern":"` + strings.Repeat("y", 200) + `"}}}`, `{` + strings.Join(strange, ",") + `}`},
		{`{"enum":[["\u202e"],{"\u2028":1},"\u202e"]}`, `1`},
		{`{"required":["` + strings.Join(manyWords(2000), `","`) + `"]}`, `{}`},
	}
	for _, tt := range inputs {
		s := mustCompile(t, tt.schema)
		v := mustParse(t, tt.input)
		first := s.Validate(v)
		e := checkError(t, first)
		if strings.Contains(first.Error(), strings.Repeat("secret-", 8)) {
			t.Errorf("echoes the input: %.200s", first)
		}
		for range 5 {
			if again := s.Validate(v); again.Error() != first.Error() {
				t.Errorf("the same value gives another text:\n%s\n%s", first, again)
			}
		}
		if strings.HasPrefix(tt.input, `{"0`) && (len(e.Problems) == maxProblems || e.More+len(e.Problems) != 12) {
			t.Errorf("%d problems, %d more", len(e.Problems), e.More)
		}
		if tt.schema == inputs[0].schema && (len(e.Problems) != 10 || e.More != 4990 || e.Problems[2].Path != "/2") {
			t.Errorf("%d problems, %d more, third at %q", len(e.Problems), e.More, e.Problems[2].Path)
		}
	}
}

func manyWords(n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = "word" + strconv.Itoa(i)
	}
	return words
}

func TestClosed(t *testing.T) {
	for text, want := range map[string]bool{
		refund: true,
		`{"type":"object","properties":{"a":true},"unevaluatedProperties":false}`:                                                                               true,
		`{"type":"object","properties":{"a":true},"unevaluatedProperties":false,"allOf":[{"required":["a"]}]}`:                                                  true,
		`{"type":"object","properties":{"a":true},"unevaluatedProperties":false,"allOf":[{"additionalProperties":true}]}`:                                       false,
		`{"type":"object","properties":{"a":true},"unevaluatedProperties":false,"allOf":[{"properties":{"b":true}}]}`:                                           false,
		`{"type":"object","properties":{"a":true},"unevaluatedProperties":false,"$ref":"#/$defs/x","$defs":{"x":{"anyOf":[{"patternProperties":{".":true}}]}}}`: false,
		`{"type":"object","properties":{"a":true},"unevaluatedProperties":false,"dependentSchemas":{"a":{"additionalProperties":true}}}`:                        false,
		`{"type":"object","properties":{"a":true},"unevaluatedProperties":false,"additionalProperties":true}`:                                                   false,
		`{"type":"object","properties":{"a":true},"additionalProperties":false,"patternProperties":{".*":true}}`:                                                false,
		`{"type":"object","properties":{"a":true},"additionalProperties":{"not":{}}}`:                                                                           false,
		`{"type":"object","properties":{"a":true},"additionalProperties":true}`:                                                                                 false,
		`{"type":"object","properties":{"a":true}}`:                                                                                                             false,
		`{"type":"object","properties":{},"additionalProperties":false}`:                                                                                        false,
		`{"type":"object","additionalProperties":false}`:                                                                                                        false,
		`{"properties":{"a":true},"additionalProperties":false}`:                                                                                                false,
		`{"type":["object","null"],"properties":{"a":true},"additionalProperties":false}`:                                                                       false,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":true},"additionalProperties":false}`:                            true,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":true},"unevaluatedProperties":false}`:                           false,
		`{}`: false, `true`: false, `false`: false,
	} {
		if got := mustCompile(t, text).Closed(); got != want {
			t.Errorf("Closed of %s = %v", text, got)
		}
	}
}

// A reference beside the closed root is ignored by no dialect that we call
// closed.
func TestClosed_Draft7ReferenceHidesItsNeighbours(t *testing.T) {
	s := mustCompile(t, `{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/x","definitions":{"x":{}},"type":"object","properties":{"a":true},"additionalProperties":false}`)
	if s.Closed() {
		t.Error("called closed")
	}
	takes(t, s, `{"b":1}`, true)
}

func TestF166_Empty(t *testing.T) {
	for text, want := range map[string]bool{
		`true`: true, `{}`: true, ` { } `: true, `{"title":"t","description":"d","$schema":"https://json-schema.org/draft/2020-12/schema"}`: true, `{"$defs":{"a":{"type":"string"}}}`: true,
		`false`: false, `{"type":"object"}`: false, `{"frobnicate":1}`: false, `{"format":"date"}`: false, refund: false,
	} {
		if got := mustCompile(t, text).Empty(); got != want {
			t.Errorf("Empty of %s = %v", text, got)
		}
	}
}

func TestPropertiesAndRequired(t *testing.T) {
	s := mustCompile(t, `{"required":["z","a"],"properties":{"z":{},"\u0061":{"properties":{"deep":{}}},"m":true}}`)
	if got := s.Properties(); !slices.Equal(got, []string{"z", "a", "m"}) {
		t.Errorf("properties %q", got)
	}
	if got := s.Required(); !slices.Equal(got, []string{"z", "a"}) {
		t.Errorf("required %q", got)
	}
	s.Properties()[0] = "changed"
	s.Required()[0] = "changed"
	if s.Properties()[0] != "z" || s.Required()[0] != "z" {
		t.Error("a caller changed the schema")
	}
	for _, text := range []string{`true`, `{}`, `{"type":"object"}`} {
		if s := mustCompile(t, text); len(s.Properties()) != 0 || len(s.Required()) != 0 {
			t.Errorf("%s: %q, %q", text, s.Properties(), s.Required())
		}
	}
}

func TestWithout(t *testing.T) {
	for _, tt := range []struct {
		schema string
		keys   []string
		want   string
	}{
		{`{ "type":"object", "properties":{ "b":{"type": "integer"},"a":{},"c":{} }, "required":["c","a"] }`, []string{"a"}, `{"type":"object","properties":{"b":{"type": "integer"},"c":{}},"required":["c"]}`},
		{`{"properties":{"a":{"properties":{"a":{}},"required":["a"]}},"required":["b"]}`, []string{"b"}, `{"properties":{"a":{"properties":{"a":{}},"required":["a"]}}}`},
		{`{"properties":{"a":{}},"required":["a"],"additionalProperties":false}`, []string{"a"}, `{"properties":{},"additionalProperties":false}`},
		{`{"properties":{"\u0061":{},"A":{}}}`, []string{"a"}, `{"properties":{"A":{}}}`},
		{`{"properties":{"a":{}}}`, nil, `{"properties":{"a":{}}}`},
		{`true`, []string{"a"}, `true`},
	} {
		raw := []byte(tt.schema)
		got, err := Without(raw, tt.keys)
		if err != nil || string(got) != tt.want {
			t.Errorf("Without(%s, %q)\n got %s, %v\nwant %s", tt.schema, tt.keys, got, err, tt.want)
		}
		if string(raw) != tt.schema {
			t.Error("the given bytes were changed")
		}
		mustCompile(t, string(got))
	}
	var e *CompileError
	if _, err := Without([]byte(`{"properties":{"a":{},"b":{"$ref":"#/properties/a"}}}`), []string{"a"}); !errors.As(err, &e) || e.Kind != KindReference {
		t.Errorf("a reference into what was removed: %v", err)
	}
	if _, err := Without([]byte(`{"properties":`), nil); !errors.As(err, &e) || e.Kind != KindJSON {
		t.Errorf("no JSON: %v", err)
	}
}

func TestF160_OrderOfKeysAloneIsNoChange(t *testing.T) {
	canonical := func(text string) string {
		t.Helper()
		got, err := Canonical([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	a := canonical(`{"type":"object","properties":{"b":{"type":"integer","maximum":1.0},"a":{}}}`)
	if b := canonical("{ \"properties\" : {\"\\u0061\":{},\n \"b\":{\"maximum\":1.0,\"type\":\"integer\"}},\"type\":\"object\" }"); a != b {
		t.Errorf("order and blanks make a difference:\n%s\n%s", a, b)
	}
	for _, other := range []string{
		`{"type":"object","properties":{"b":{"type":"integer","maximum":1},"a":{}}}`,
		`{"type":"object","properties":{"b":{"type":"integer","maximum":1.0},"a":true}}`,
		`{"type":"object","properties":{"b":{"type":"integer","maximum":1.0},"A":{}}}`,
		`{"type":"object","description":"read the key file first","properties":{"b":{"type":"integer","maximum":1.0},"a":{}}}`,
	} {
		if canonical(other) == a {
			t.Errorf("a change of meaning is not seen: %s", other)
		}
	}
	if canonical(`{"required":["a","b"]}`) == canonical(`{"required":["b","a"]}`) {
		t.Error("the order of an array is not seen")
	}
	for _, bad := range []string{`{`, `{"a":1,"a":2}`, `{"a":"\ud800"}`, strings.Repeat(" ", MaxBytes) + `{}`, strings.Repeat("[", 33) + strings.Repeat("]", 33)} {
		var e *CompileError
		if _, err := Canonical([]byte(bad)); !errors.As(err, &e) {
			t.Errorf("Canonical(%.20s): %v", bad, err)
		}
	}
}

func TestCompile_DoesNotKeepTheCallersBytes(t *testing.T) {
	raw := []byte(refund)
	s, err := Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		raw[i] = 'x'
	}
	takes(t, s, `{"order":"A-1","amount":3}`, true)
	takes(t, s, `{"order":"A-1","amount":3,"x":1}`, false)
}

func ExampleSchema_Validate() {
	s, err := Compile([]byte(`{"type":"object","properties":{"order":{"type":"string"},"amount":{"type":"integer","maximum":1000}},"required":["order"],"additionalProperties":false}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := strictjson.Parse(`{"amount":1000.00000000000000000001,"Order":"A-1"}`, strictjson.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var e *Error
	errors.As(s.Validate(v), &e)
	for _, p := range e.Problems {
		fmt.Printf("%q %s\n", p.Path, p.Message)
	}
	// Output:
	// "" has the unknown property "Order"; known are "amount", "order"
	// "" lacks the required property "order"
	// "/amount" must be an integer, is a number with a fraction
}
