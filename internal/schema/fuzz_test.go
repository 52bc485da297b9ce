package schema

import (
	"errors"
	"testing"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

var seeds = []struct{ schema, input string }{
	{refund, `{"order":"A-1","amount":3}`},
	{refund, `{"order":"A-1","amount":1000.00000000000000000001}`},
	{`{"type":"integer"}`, `1.0`},
	{`{"type":"integer","maximum":9007199254740992}`, `9007199254740993`},
	{`{"type":["null","array"],"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"enum":["x","y"]}}}`, `["x","y"]`},
	{`{"additionalProperties":{"minLength":1,"maxLength":2}}`, `{"a":"é","A":"b"}`},
	{`{"properties":{"a":false},"additionalProperties":false,"minProperties":1}`, `{"a":1}`},
	{`{"enum":[]}`, `null`},
	{`{"enum":["a",1]}`, `1.0`},
	{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `null`},
	{`{"anyOf":[{"$ref":"#/$defs/m"},{"type":"null"}],"$defs":{"m":{"type":"object","properties":{"x":{"anyOf":[{"type":"string"},{"maximum":3}]}},"additionalProperties":false}}}`, `{"x":3}`},
	{`{"pattern":"^a+$"}`, `"aaa"`},
	{`{"patternProperties":{"^x":{"type":"integer"}},"unevaluatedProperties":false}`, `{"x":1}`},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","minimum":5,"definitions":{"a":{"type":"integer"}}}`, `1`},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","const":[],"definitions":{"a":{"type":"string"}}}`, `""`},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"date","items":[{"type":"string"}]}`, `"2024-05-01"`},
	{`{"if":{"const":1},"then":{"multipleOf":2},"else":{"not":{"type":"null"}}}`, `1`},
	{`{"$ref":"#"}`, `1`},
	{`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/b"}},"b":{"uniqueItems":true,"contains":{}}}}`, `[[1,1.0]]`},
	{`true`, `1e308`},
	{`false`, `{}`},
	{`{"dependencies":{"a":["b"]},"dependentSchemas":{"a":{}},"propertyNames":{"maxLength":1}}`, `{"a":1}`},
}

// FuzzFastAccept: what the short way accepts the validator accepts, the verdict
// is the validator's, and nothing panics, whatever schema and input.
// checkAcceptsText holds that what is accepted as text is accepted on the long
// way: parsed, valid and without twins.
func checkAcceptsText(t *testing.T, s *Schema, schema, input string, v any, parsed error) {
	t.Helper()
	for _, lim := range []strictjson.Limits{{}, {Depth: 1}, {Bytes: 8}} {
		if !s.AcceptsText(input, lim) {
			continue
		}
		_, isObject := v.(map[string]any)
		_, limited := strictjson.Parse(input, lim)
		if parsed != nil || limited != nil || !isObject || s.validator.Validate(v) != nil || len(strictjson.CaseTwins(v)) > 0 {
			t.Fatalf("schema %s accepts the text %s within %v", schema, input, lim)
		}
	}
}

func FuzzFastAccept(f *testing.F) {
	for _, s := range seeds {
		f.Add(s.schema, s.input)
	}
	f.Fuzz(func(t *testing.T, schema, input string) {
		s, err := Compile([]byte(schema))
		if err != nil {
			var e *CompileError
			if !errors.As(err, &e) || e.Kind == KindPanic {
				t.Fatalf("%T %v", err, err)
			}
			checkText(t, err.Error(), 1<<10)
			return
		}
		v, err := strictjson.Parse(input, strictjson.Limits{})
		checkAcceptsText(t, s, schema, input, v, err)
		if err != nil {
			return
		}
		valid := s.validator.Validate(v) == nil
		if s.doc.root.accepts(v) && !valid {
			t.Fatalf("schema %s accepts %s, the validator does not", schema, input)
		}
		if err := s.Validate(v); err != nil {
			e := checkError(t, err)
			if e.Kind == KindPanic || e.Kind == KindInvalid && valid {
				t.Fatalf("schema %s, input %s: %v; the validator says %v", schema, input, err, valid)
			}
		} else if !valid {
			t.Fatalf("schema %s takes %s, the validator does not", schema, input)
		}
		if s.Closed() && (s.Empty() || len(s.Properties()) == 0) {
			t.Fatalf("schema %s is closed and empty", schema)
		}
		canonical, err := Canonical([]byte(schema))
		if err != nil {
			t.Fatalf("canonical text of %s: %v", schema, err)
		}
		if again, err := Canonical(canonical); err != nil || string(again) != string(canonical) {
			t.Fatalf("canonical text %s becomes %s, %v", canonical, again, err)
		}
		if shorter, err := Without([]byte(schema), s.Properties()); err == nil {
			if left, err := Compile(shorter); err != nil || len(left.Properties()) > 0 {
				t.Fatalf("without its properties %s is %s: %v", schema, shorter, err)
			}
		}
	})
}
