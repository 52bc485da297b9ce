package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// list repeats a text with commas between.
func list(item string, n int) string {
	return strings.TrimSuffix(strings.Repeat(item+",", n), ",")
}

// doubling is a short schema whose references, written out, double at each of
// n levels.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"string"}}}`, n)
	return b.String()
}

func nestedAllOf(depth int) string {
	return strings.Repeat(`{"allOf":[`, depth) + `{"type":"string"}` + strings.Repeat(`]}`, depth)
}

func TestS15_NestedAllOf(t *testing.T) {
	t.Run("1.5 KB that would take 20 s", func(t *testing.T) {
		text := doubling(22)
		if len(text) > 1600 {
			t.Fatalf("%d bytes", len(text))
		}
		within(t, 100*time.Millisecond, func() { refuses(t, text, KindNodes) })
	})
	t.Run("sixty levels", func(t *testing.T) {
		within(t, 100*time.Millisecond, func() { refuses(t, doubling(60), KindNodes) })
	})
	t.Run("the most that is taken", func(t *testing.T) {
		text := doubling(8)
		within(t, 100*time.Millisecond, func() {
			s := mustCompile(t, text)
			takes(t, s, `"a"`, true)
			takes(t, s, `1`, false)
		})
		refuses(t, doubling(9), KindNodes)
	})
	t.Run("without references", func(t *testing.T) {
		within(t, 100*time.Millisecond, func() {
			s := mustCompile(t, nestedAllOf(15))
			takes(t, s, `"a"`, true)
			takes(t, s, `1`, false)
		})
		refuses(t, nestedAllOf(16), KindDepth)
		refuses(t, nestedAllOf(120), KindDepth)
	})
	for _, keyword := range []string{"anyOf", "oneOf"} {
		t.Run(keyword, func(t *testing.T) {
			text := strings.ReplaceAll(doubling(22), "allOf", keyword)
			within(t, 100*time.Millisecond, func() { refuses(t, text, KindNodes) })
		})
	}
	t.Run("a value for each of many schemas", func(t *testing.T) {
		s := mustCompile(t, strings.ReplaceAll(doubling(8), `{"$ref":"#/$defs/d0",`, `{"items":{"$ref":"#/$defs/d0"},`))
		v := mustParse(t, `[`+list(`"a"`, 200_000)+`]`)
		within(t, 400*time.Millisecond, func() {
			if e := checkError(t, s.Validate(v)); e.Kind != KindWork {
				t.Errorf("kind %s", e.Kind)
			}
		})
	})
}

func TestS15_References(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(secret, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{
		"file://" + secret, secret, "file:///etc/passwd", "http://localhost:1/x", "https://example.com/s.json#/a",
		"other.json", "../other.json", "//host/x", "?q", ".", "", "urn:x:y", baseURL, baseURL + "#/$defs/a", "mem:schema",
		"https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#",
	} {
		for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
			refuses(t, `{"$defs":{"a":{}},"properties":{"x":{"`+keyword+`":`+strconv.Quote(ref)+`}}}`, KindReference)
		}
	}
	for _, ref := range []string{"#/nowhere", "#nowhere", "#/$defs", "#/$defs/b", "#/$defs/a/", "#/$defs/a/title", "#%zz", "#/properties/x/enum/0", "#//", "#/allOf/01"} {
		refuses(t, `{"$defs":{"a":{"title":"t"}},"allOf":[{},{}],"properties":{"x":{"enum":[{}],"$ref":"`+ref+`"}}}`, KindReference)
	}
	refuses(t, `{"properties":{"a":{"$ref":7}}}`, KindReference)
	refuses(t, `{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`, KindReference)
	// A base that an inner $id moves would make "#" mean something else.
	refuses(t, `{"$defs":{"a":{"$id":"file:///etc/"}}}`, KindReference)
	refuses(t, `{"properties":{"a":{"$schema":"https://json-schema.org/draft/2020-12/schema"}}}`, KindReference)
	// The root's own name changes nothing and reads nothing.
	s := mustCompile(t, `{"$id":"file://`+secret+`","$defs":{"a":{"type":"integer"}},"$ref":"#/$defs/a"}`)
	takes(t, s, `1`, true)
	takes(t, s, `"a"`, false)
	// Names that look like keywords are not keywords.
	s = mustCompile(t, `{"properties":{"$ref":{"type":"string"},"$id":{"type":"string"},"$schema":{"type":"string"}},"default":{"$ref":"file:///etc/passwd"},"examples":[{"$id":"x"}],"enum":[{"$ref":"a"}]}`)
	takes(t, s, `{"$ref":"a"}`, true)
	takes(t, s, `{"$ref":"b"}`, false)
}

func TestS15_TheLoaderIsTheSecondLock(t *testing.T) {
	d, err := inspect(`{"type":"string"}`)
	if err != nil {
		t.Fatal(err)
	}
	d.root.keywords["$ref"] = "file:///etc/passwd" // as if the first lock had missed it
	_, err = d.compile()
	var e *CompileError
	if !errors.As(err, &e) || e.Kind != KindReference {
		t.Errorf("got %v", err)
	}
}

func TestCompile_RecursionIsRefused(t *testing.T) {
	for _, text := range []string{
		`{"$ref":"#"}`,
		`{"properties":{"next":{"$ref":"#"}}}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/b"}},"b":{"not":{"$ref":"#/$defs/a"}}}}`,
		`{"$defs":{"unused":{"items":{"$ref":"#/$defs/unused"}}}}`,
		`{"$defs":{"a":{"$anchor":"a","items":{"$ref":"#a"}}}}`,
		`{"$dynamicAnchor":"n","properties":{"children":{"items":{"$dynamicRef":"#n"}}}}`,
		`{"$recursiveAnchor":true,"properties":{"next":{"$recursiveRef":"#"}}}`,
		`{"properties":{"a":{"properties":{"b":{"$ref":"#/properties/a"}}}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"items":{"$ref":"#/definitions/a"}}}}`,
	} {
		if e := refuses(t, text, KindRecursive); !strings.Contains(e.Error(), "leads back to itself") {
			t.Errorf("%v", e)
		}
	}
}

func TestS15_BigEnum(t *testing.T) {
	within(t, 100*time.Millisecond, func() { refuses(t, `{"enum":[`+list(`"abcdefg"`, 100_000)+`]}`, KindSize) })
	// What fits is checked in time, one value and many.
	s := mustCompile(t, `{"items":{"enum":[`+list("1", 9000)+`]}}`)
	within(t, 100*time.Millisecond, func() { takes(t, s, `[0]`, false) })
	within(t, 300*time.Millisecond, func() {
		if e := checkError(t, s.Validate(mustParse(t, `[`+list("0", 1000)+`]`))); e.Kind != KindWork {
			t.Errorf("kind %s", e.Kind)
		}
	})
}

func TestS15_HugeNumbers(t *testing.T) {
	s := mustCompile(t, `{"properties":{"n":{"maximum":1000,"minimum":-1000,"multipleOf":1}}}`)
	for _, n := range []string{"1e10000000", "1e999999", "-1e10000000", "1e-10000000", "1e309", strings.Repeat("9", 129)} {
		if _, err := strictjson.Parse(`{"n":`+n+`}`, strictjson.Limits{}); err == nil {
			t.Errorf("%.20s is parsed", n)
		}
		// Even where somebody builds such a value by hand it is refused in time.
		within(t, 100*time.Millisecond, func() {
			checkError(t, s.Validate(map[string]any{"n": json.Number(n)}))
		})
		refuses(t, `{"maximum":`+n+`}`, KindJSON)
	}
	within(t, 100*time.Millisecond, func() {
		takes(t, s, `{"n":1e308}`, false)
		takes(t, s, `{"n":-1e-308}`, false)
		takes(t, s, `{"n":`+strings.Repeat("9", 124)+`e308}`, false)
	})
}

func TestS15_APanicOfTheValidatorIsARefusal(t *testing.T) {
	s := mustCompile(t, `{"pattern":"a"}`)
	s.validator = nil // its use panics
	e := checkError(t, s.Validate("b"))
	if e.Kind != KindPanic {
		t.Errorf("kind %s", e.Kind)
	}
	s.validator = &jsonschema.Schema{Location: "\x00", PatternProperties: map[jsonschema.Regexp]*jsonschema.Schema{nil: {}}}
	if e := checkError(t, s.judge(map[string]any{"a": "b"})); e.Kind != KindPanic {
		t.Errorf("kind %s", e.Kind)
	}
}

// The table of S-15: a limit is exact one step below, at it, and above, also
// where float64 cannot tell.
func TestS15_LimitsAreExact(t *testing.T) {
	type row struct{ schema, below, at, above string }
	maxima := []row{
		{`{"maximum":1000}`, "999.99999999999999999999", "1000", "1000.00000000000000000001"},
		{`{"maximum":1000}`, "999.9999999999999", "1e3", "1000.0000000000001"},
		{`{"maximum":9007199254740992}`, "9007199254740991", "9007199254740992", "9007199254740993"},
		{`{"maximum":9223372036854775807}`, "9223372036854775806", "9223372036854775807", "9223372036854775808"},
		{`{"maximum":18446744073709551615}`, "18446744073709551614", "1.8446744073709551615e19", "18446744073709551616"},
		{`{"maximum":0}`, "-0.00000000000000000001", "-0.0", "1e-308"},
		{`{"maximum":-1}`, "-1.00000000000000000001", "-1", "-0.99999999999999999999"},
		{`{"maximum":0.1}`, "0.09999999999999999999", "1e-1", "0.1000000000000000055511151231257827"},
		{`{"maximum":1e308}`, "9.999999999999999999999e307", "10e307", "1.0000000000000000000001e308"},
		{`{"type":"integer","maximum":1e2}`, "99", "100.0", "101"},
	}
	for _, r := range maxima {
		t.Run(r.schema, func(t *testing.T) {
			s := mustCompile(t, r.schema)
			takes(t, s, r.below, true)
			takes(t, s, r.at, true)
			takes(t, s, r.above, false)
			s = mustCompile(t, strings.Replace(r.schema, "maximum", "exclusiveMaximum", 1))
			takes(t, s, r.below, true)
			takes(t, s, r.at, false)
			takes(t, s, r.above, false)
			s = mustCompile(t, strings.Replace(r.schema, "maximum", "minimum", 1))
			takes(t, s, r.below, false)
			takes(t, s, r.at, true)
			takes(t, s, r.above, true)
			s = mustCompile(t, strings.Replace(r.schema, "maximum", "exclusiveMinimum", 1))
			takes(t, s, r.below, false)
			takes(t, s, r.at, false)
			takes(t, s, r.above, true)
		})
	}
}

func TestS15_Patterns(t *testing.T) {
	within(t, 300*time.Millisecond, func() {
		refuses(t, `{"pattern":"`+strings.Repeat(`\\pL`, 12_000)+`"}`, KindPattern)
		refuses(t, `{"pattern":"`+strings.Repeat(`a`, 60_000)+`"}`, KindPattern)
		refuses(t, `{"pattern":"[`+strings.Repeat(`\\pL`, 12_000)+`]"}`, KindPattern)
		refuses(t, `{"pattern":"`+strings.Repeat("a{1000}", 140)+`"}`, KindPattern)
		refuses(t, `{"pattern":"`+strings.Repeat("(?:(?:a{10}){10}){10}", 40)+`"}`, KindPattern)
		refuses(t, `{"patternProperties":{"`+strings.Repeat("a", 1025)+`":{}}}`, KindPattern)
	})
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf(`"%d%s":{}`, i, strings.Repeat(`[\\pL]`, 20)))
	}
	within(t, 300*time.Millisecond, func() { refuses(t, `{"patternProperties":{`+strings.Join(many, ",")+`}}`, KindPattern) })
	refuses(t, `{"pattern":"("}`, KindPattern)
	refuses(t, `{"pattern":"(\u202e\u0007"}`, KindPattern)
	refuses(t, `{"pattern":"(?!a)"}`, KindPattern) // of ECMA 262, which is not linear
	refuses(t, `{"pattern":7}`, KindInvalid)
	t.Run("long text and long pattern", func(t *testing.T) {
		s := mustCompile(t, `{"pattern":"^(x?){500}y$"}`)
		v := strings.Repeat("x", 1<<20-2)
		within(t, 100*time.Millisecond, func() {
			if e := checkError(t, s.Validate(v)); e.Kind != KindWork {
				t.Errorf("kind %s", e.Kind)
			}
		})
		takes(t, s, `"xxy"`, true)
		takes(t, s, `"xxz"`, false)
	})
	t.Run("long text and short pattern", func(t *testing.T) {
		s := mustCompile(t, `{"pattern":"^[A-Za-z0-9+/]*={0,2}$"}`)
		takes(t, s, `"`+strings.Repeat("QUJD", 1<<18-10)+`"`, true)
	})
}

// Values that are cheap to write and dear to check are refused before.
func TestS15_WorkIsBounded(t *testing.T) {
	collide := make([]string, 0, 4000) // [[a],[b]] and [[a,[b]]] have one hash
	for i := range 2000 {
		collide = append(collide, fmt.Sprintf("[[%d],[1]]", i), fmt.Sprintf("[[%d,[1]]]", i))
	}
	wide := make([]string, 0, 9000)
	for i := range 9000 {
		wide = append(wide, fmt.Sprintf(`"k%d":%d`, i, i))
	}
	for _, tt := range []struct {
		name, schema, input string
		kind                Kind
	}{
		{"uniqueItems with one hash", `{"uniqueItems":true}`, `[` + strings.Join(collide, ",") + `]`, KindWork},
		{"uniqueItems of big items", `{"uniqueItems":true}`, `[` + list(`[`+list("1", 20_000)+`]`, 20) + `]`, KindWork},
		{"many schemas for all items", `{"items":{"anyOf":[` + list(`{"type":"string"}`, 2000) + `]}}`, `[` + list("1", 5000) + `]`, KindWork},
		{"many left over", `{"allOf":[` + list(`{"minProperties":0}`, 1000) + `],"unevaluatedProperties":true}`, `{` + strings.Join(wide, ",") + `}`, KindWork},
		{"many patterns for all keys", `{"patternProperties":{` + patternList(500) + `}}`, `{` + strings.Join(wide, ",") + `}`, KindWork},
		{"many schemas for a long text", `{"allOf":[` + list(`{"maxLength":2000000}`, 2500) + `]}`, `"` + strings.Repeat("é", 500_000) + `"`, KindWork},
		{"many errors far down", `{"$ref":"#/$defs/d","$defs":{"d":` + strings.Repeat(`{"items":`, 28) + `{"type":"string"}` + strings.Repeat(`}`, 28) + `}}`, strings.Repeat("[", 28) + list("1", 100_000) + strings.Repeat("]", 28), KindWork},
		{"a schema for all of many", `{"items":{"type":["string","null"],"pattern":"a"}}`, `[` + list(`"b"`, 20_000) + `]`, KindInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := mustCompile(t, tt.schema)
			v := mustParse(t, tt.input)
			within(t, 500*time.Millisecond, func() {
				if e := checkError(t, s.Validate(v)); e.Kind != tt.kind {
					t.Errorf("kind %s", e.Kind)
				}
			})
		})
	}
}

func patternList(n int) string {
	patterns := make([]string, n)
	for i := range patterns {
		patterns[i] = fmt.Sprintf(`"^x%dy":{"type":"string"}`, i)
	}
	return strings.Join(patterns, ",")
}

// The short way must be linear as well: schemas that meet again in a reference
// beside properties double at each level.
func TestS15_TheShortWayIsLinear(t *testing.T) {
	for _, beside := range []string{
		`"$ref":"#/$defs/r%[1]d","properties":{"a":{"$ref":"#/$defs/d%[2]d"}}`,
		`"anyOf":[{"$ref":"#/$defs/r%[1]d"},{"$ref":"#/$defs/r%[1]d"}]`,
	} {
		var b strings.Builder
		const levels = 6
		b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
		for i := range levels {
			fmt.Fprintf(&b, `"d%d":{`+beside+`},"r%[1]d":{"properties":{"a":{"$ref":"#/$defs/d%[2]d"}}},`, i, i+1)
		}
		fmt.Fprintf(&b, `"d%d":{"items":{"type":"string"}}}}`, levels)
		s := mustCompile(t, b.String())
		if s.doc.root.quick.ok && s.doc.nodes["/$defs/d0"].quick.ok {
			t.Errorf("what doubles counts as simple: %s", b.String())
		}
		v := mustParse(t, strings.Repeat(`{"a":`, levels)+`[`+list(`"b"`, 200_000)+`]`+strings.Repeat("}", levels))
		within(t, 200*time.Millisecond, func() {
			if e := checkError(t, s.Validate(v)); e.Kind != KindWork {
				t.Errorf("kind %s", e.Kind)
			}
		})
	}
	var chain strings.Builder
	for i := range 20 {
		fmt.Fprintf(&chain, `"d%d":{"title":"t","$ref":"#/$defs/d%d"},`, i, i+1)
	}
	s := mustCompile(t, `{"$ref":"#/$defs/d0","$defs":{`+chain.String()+`"d20":{"type":"string"}}}`)
	if s.doc.root.quick.ok {
		t.Error("a long chain counts as simple")
	}
	takes(t, s, `"a"`, true)
}

// Compiling the biggest schemas that are taken ends soon.
func TestCompile_BigSchemasEndSoon(t *testing.T) {
	var props, defs strings.Builder
	for i := range 1900 {
		fmt.Fprintf(&props, `"p%d":{"type":"integer"},`, i)
		fmt.Fprintf(&defs, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	for _, tt := range []struct{ name, text string }{
		{"10,000 schemas", `{"allOf":[` + list("{}", MaxNodes-2) + `]}`},
		{"1,900 properties", `{"properties":{` + props.String() + `"last":{}}}`},
		{"a chain of 1,900 references", `{"$ref":"#/$defs/d0","$defs":{` + strings.TrimSuffix(defs.String(), ",") + `,"d1900":{"type":"string"}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			within(t, 5*time.Second, func() {
				if _, err := Compile([]byte(tt.text)); err != nil {
					var e *CompileError
					if !errors.As(err, &e) || e.Kind != KindNodes {
						t.Error(err)
					}
				}
			})
		})
	}
}

// The limits of schemas (S-15, numbers as S-37 asks for), each at -1, 0 and +1.
func TestS37_SchemaLimits(t *testing.T) {
	tests := []struct {
		name string
		make func(n int) string
		at   int
		kind Kind
	}{
		{"64 KiB", func(n int) string { return `{"title":"` + strings.Repeat("x", n-12) + `"}` }, MaxBytes, KindSize},
		{"depth 32", func(n int) string {
			// The root is one level, each pair of properties and name two.
			return strings.Repeat(`{"properties":{"a":`, (n-1)/2) + strings.Repeat(`{"not":`, (n-1)%2) + `{}` + strings.Repeat(`}`, (n-1)%2) + strings.Repeat(`}}`, (n-1)/2)
		}, MaxDepth, KindDepth},
		{"10,000 nodes as written", func(n int) string { return `{"enum":[` + list("1", n-2) + `]}` }, MaxNodes, KindNodes},
		{"10,000 nodes by references", func(n int) string {
			// 10 references to a schema of 900 values, and the rest in an enum.
			fixed := 1 + 1 + 902 + 1 + 10*(2+902) // root, $defs, a, allOf, its items
			return `{"$defs":{"a":{"enum":[` + list("1", 900) + `]}},"allOf":[` + list(`{"$ref":"#/$defs/a"}`, 10) + `],"required":[` + numbered(n-fixed-1) + `]}`
		}, MaxNodes, KindNodes},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mustCompile(t, tt.make(tt.at-1))
			mustCompile(t, tt.make(tt.at))
			refuses(t, tt.make(tt.at+1), tt.kind)
		})
	}
}

func numbered(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = `"r` + strconv.Itoa(i) + `"`
	}
	return strings.Join(names, ",")
}

func TestCompile_RefusesWhatIsNoSchema(t *testing.T) {
	for text, want := range map[string]Kind{
		``: KindJSON, `{`: KindJSON, `{"type":"string","type":"integer"}`: KindJSON, `{"a":"\ud800"}`: KindJSON, "\xEF\xBB\xBF{}": KindJSON, `{} {}`: KindJSON,
		`1`: KindInvalid, `"string"`: KindInvalid, `null`: KindInvalid, `[]`: KindInvalid,
		`{"type":"strin"}`: KindInvalid, `{"type":7}`: KindInvalid, `{"required":"a"}`: KindInvalid, `{"minLength":-1}`: KindInvalid, `{"minLength":1.5}`: KindInvalid,
		`{"properties":[]}`: KindInvalid, `{"properties":{"a":1}}`: KindInvalid, `{"allOf":{}}`: KindInvalid, `{"allOf":[]}`: KindInvalid, `{"items":[{}]}`: KindInvalid,
		`{"enum":"a"}`: KindInvalid, `{"maximum":"1"}`: KindInvalid, `{"not":null}`: KindInvalid, `{"additionalProperties":"no"}`: KindInvalid,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema"}`: KindDialect, `{"$schema":"http://json-schema.org/draft-04/schema#"}`: KindDialect,
		`{"$schema":"file:///etc/passwd"}`: KindDialect, `{"$schema":7}`: KindDialect, `{"$schema":""}`: KindDialect,
	} {
		refuses(t, text, want)
	}
	e := refuses(t, `{"properties":{"a/b":{"type":"strin"}}}`, KindInvalid)
	if e.Path != "/properties/a~1b/type" {
		t.Errorf("path %q in %v", e.Path, e)
	}
	var syntax *strictjson.SyntaxError
	if e := refuses(t, `{"a":1,"a":2}`, KindJSON); !errors.As(e, &syntax) || syntax.Kind != strictjson.KindDuplicateKey {
		t.Errorf("does not unwrap: %v", e)
	}
}

func TestS16_TwinsByLetterCase(t *testing.T) {
	closed := mustCompile(t, `{"type":"object","properties":{"amount":{"type":"integer"},"status":{"type":"string"},"token":{"type":"string"},"lines":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}}},"additionalProperties":false}`)
	open := mustCompile(t, `{"type":"object","properties":{"amount":{"type":"integer"},"status":{"type":"string"},"token":{"type":"string"},"lines":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}}}`)
	for _, tt := range []struct{ input, path string }{
		{`{"amount":1,"AMOUNT":9999}`, ""},
		{`{"status":"a","` + "\u017f" + `tatus":"b"}`, ""},
		{`{"token":"a","to` + "\u212a" + `en":"b"}`, ""},
		{`{"lines":[{"n":1},{"n":1,"N":2}]}`, "/lines/1"},
	} {
		takes(t, closed, tt.input, false)
		takes(t, open, tt.input, true)
		v := mustParse(t, tt.input)
		if twins := strictjson.CaseTwins(v); len(twins) != 1 || twins[0].Path != tt.path || len(twins[0].Keys) != 2 {
			t.Errorf("%s: twins %v", tt.input, twins)
		}
	}
	// A twin alone does not stand in for the property.
	takes(t, mustCompile(t, `{"properties":{"amount":{}},"required":["amount"]}`), `{"AMOUNT":1}`, false)
}

func TestF90_EmptyInputMeetsRequiredKeys(t *testing.T) {
	takes(t, mustCompile(t, `{"type":"object","properties":{}}`), `{}`, true)
	s := mustCompile(t, `{"type":"object","properties":{"a":{}},"required":["a"]}`)
	takes(t, s, `{}`, false)
	if len(s.Required()) != 1 {
		t.Errorf("required %q", s.Required())
	}
}

func TestF165_AnswersThatDoNotMatch(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"amount":{"type":"integer"},"note":{"type":"string"}},"additionalProperties":false}`)
	for _, input := range []string{`{"amount":"12"}`, `{"amount":12.5}`, `{"amount":12,"admin":true}`, `[]`, `"approve"`, `{"amount":true}`, `{"amount":null}`} {
		takes(t, s, input, false)
	}
	takes(t, s, `{"amount":12,"note":"ok"}`, true)
}

// TestAnnex1 holds those rows of the argument corpus on which a schema has a
// say; all rows are tested where they are parsed.
func TestAnnex1(t *testing.T) {
	integers := mustCompile(t, `{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)
	for _, tt := range []struct {
		row, schema, input string
		want               bool
	}{
		{"P01", `{"properties":{"id":{"type":"integer","maximum":9223372036854775807}}}`, `{"id":9223372036854775807}`, true},
		{"P01", `{"properties":{"id":{"type":"integer","maximum":9223372036854775806}}}`, `{"id":9223372036854775807}`, false},
		{"P03", `{"properties":{"id":{"type":"string"}}}`, `{"id":"1234567890123456789"}`, true},
		{"P03", `{"properties":{"id":{"type":"integer"}}}`, `{"id":"1234567890123456789"}`, false},
		{"P05", `{"properties":{"n":{"const":1}}}`, `{"n":1.0}`, true}, // for a schema 1 and 1.0 are one number
		{"P05", `{"properties":{"n":{"minimum":0}}}`, `{"n":-0.0}`, true},
		{"P07", `{"properties":{"n":{"type":"integer","maximum":1e30}}}`, `{"n":1e30}`, true},
		{"P13", `{"properties":{"path":{}},"additionalProperties":false}`, `{"Path":"/a","path":"/b"}`, false},
		{"P21", `{"properties":{"t":{"maxLength":3}}}`, `{"t":"a\u0000b"}`, true},
		{"P23", `{"properties":{"t":{"maxLength":1}}}`, `{"t":"\ud83d\ude00"}`, true},
		{"P25", `{"enum":["` + "\u00e9" + `"]}`, `"e\u0301"`, false},
		{"P35", `{"type":"array"}`, strings.Repeat("[", 64) + strings.Repeat("]", 64), true},
		{"P39", `{"properties":{"x":{"type":"string"}}}`, `{"x":null}`, false},
		{"P39", `{"properties":{"x":{"type":"string"}}}`, `{}`, true},
		{"P39", `{"required":["x"]}`, `{"x":null}`, true},
	} {
		t.Run(tt.row, func(t *testing.T) { takes(t, mustCompile(t, tt.schema), tt.input, tt.want) })
	}
	for _, input := range []string{`{"n":-0}`, `{"n":-0.0}`, `{"n":1.0}`, `{"n":1}`, `{"n":1e0}`, `{"n":1e30}`} {
		takes(t, integers, input, true)
	}
}
