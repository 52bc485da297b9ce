package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

var numberTexts = rapid.OneOf(
	rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?`),
	rapid.StringMatching(`-?[1-3](\.0{0,25}1?0)?(e[0-2])?`),
	rapid.SampledFrom([]string{"0", "-0", "0.0", "0e9", "1", "1.0", "10e-1", "9007199254740992", "9007199254740993", "1e308", "-1e-308"}),
)

func TestProperty_DecimalIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := numberTexts.Draw(t, "a"), numberTexts.Draw(t, "b")
		ra, _ := new(big.Rat).SetString(a)
		rb, _ := new(big.Rat).SetString(b)
		da, ok := parseDecimal(a, new(decimalRoom))
		db, ok2 := parseDecimal(b, new(decimalRoom))
		if !ok || !ok2 {
			t.Fatalf("%s or %s is not read", a, b)
		}
		if da.compare(db) != ra.Cmp(rb) || db.compare(da) != rb.Cmp(ra) {
			t.Fatalf("compare(%s, %s) = %d, rationals say %d", a, b, da.compare(db), ra.Cmp(rb))
		}
		if da.integer() != ra.IsInt() {
			t.Fatalf("integer(%s) = %v", a, da.integer())
		}
	})
}

func TestDecimal_GivesUpOnForeignTexts(t *testing.T) {
	for _, text := range []string{"", "abc", "1x", "1e", "1e99999999", "0x1", "1ee1", "--1", "1e+-1"} {
		if d, ok := parseDecimal(text, new(decimalRoom)); ok {
			t.Errorf("%q is read as %+v", text, d)
		}
	}
}

// someValues draws small values over few names, so that they often match.
func someValues(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Map(numberTexts, func(s string) any { return json.Number(s) }),
		rapid.Map(rapid.SampledFrom([]string{"", "a", "b", "ab", "é", "日本語"}), func(s string) any { return s }),
		rapid.SampledFrom([]any{nil, true, false}),
	)
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(
		leaf,
		rapid.Map(rapid.SliceOfN(someValues(depth-1), 0, 3), func(l []any) any { return append([]any{}, l...) }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "A", "z"}), someValues(depth-1), 0, 4), func(m map[string]any) any { return m }),
	)
}

// someSchemas draws schemas of the simple kind and just beyond it.
func someSchemas(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 9).Draw(t, "boolean") == 0 {
			return rapid.Bool().Draw(t, "schema")
		}
		s := map[string]any{}
		maybe := func(odds int, key string, g *rapid.Generator[any]) {
			if rapid.IntRange(0, odds).Draw(t, "has "+key) == 0 {
				s[key] = g.Draw(t, key)
			}
		}
		types := []string{"null", "boolean", "integer", "number", "string", "array", "object"}
		maybe(1, "type", rapid.OneOf(
			rapid.Map(rapid.SampledFrom(types), func(s string) any { return s }),
			rapid.Map(rapid.SliceOfNDistinct(rapid.SampledFrom(types), 1, 3, rapid.ID), func(l []string) any { return anys(l) })))
		counts := rapid.Map(rapid.SampledFrom([]string{"0", "1", "2", "3", "2.0", "1e0"}), func(s string) any { return json.Number(s) })
		for _, key := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
			maybe(12, key, counts)
		}
		for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
			maybe(8, key, rapid.Map(numberTexts, func(s string) any { return json.Number(s) }))
		}
		maybe(6, "required", rapid.Map(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "q"}), 0, 2, rapid.ID), func(l []string) any { return anys(l) }))
		maybe(8, "enum", rapid.OneOf(
			rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab"}), 1, 3), func(l []string) any { return anys(l) }),
			rapid.Map(rapid.SliceOfN(someValues(1), 1, 3), func(l []any) any { return l })))
		maybe(20, "const", someValues(1))
		maybe(20, "uniqueItems", rapid.Just[any](true))
		maybe(20, "format", rapid.Just[any]("date-time"))
		maybe(15, "$ref", rapid.SampledFrom([]any{"#/$defs/d", "#/$defs/e"}))
		if depth > 0 {
			inner := someSchemas(depth - 1)
			maybe(2, "properties", rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), inner, 0, 2), func(m map[string]any) any { return m }))
			maybe(4, "additionalProperties", rapid.OneOf(rapid.Just[any](false), inner))
			maybe(4, "items", inner)
			for _, key := range []string{"not", "contains", "unevaluatedProperties", "propertyNames", "if", "then"} {
				maybe(25, key, inner)
			}
			for _, key := range []string{"allOf", "anyOf", "oneOf", "prefixItems"} {
				maybe(25, key, rapid.Map(rapid.SliceOfN(inner, 1, 2), func(l []any) any { return l }))
			}
		}
		return s
	})
}

func anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

func TestProperty_TheShortWayOnlyAccepts(t *testing.T) {
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		root, ok := someSchemas(2).Draw(t, "schema").(map[string]any)
		if !ok {
			root = map[string]any{}
		}
		root["$defs"] = map[string]any{"d": map[string]any{"type": []any{"integer", "string"}}, "e": map[string]any{"minimum": json.Number("1"), "$ref": "#/$defs/d"}}
		draft7 := rapid.Bool().Draw(t, "draft-07")
		if draft7 {
			root["$schema"] = "http://json-schema.org/draft-07/schema#"
		}
		text := string(strictjson.Canonical(root, nil))
		if draft7 {
			text = strings.ReplaceAll(text, "$defs", "definitions")
		}
		s, err := Compile([]byte(text))
		if err != nil && draft7 {
			return // draft-07 has enums of distinct values only
		}
		if err != nil {
			t.Fatalf("compile %s: %v", text, err)
		}
		for range 5 {
			v := someValues(2).Draw(t, "value")
			valid := s.validator.Validate(v) == nil
			quick := s.doc.root.accepts(v)
			if quick && !valid {
				t.Fatalf("schema %s\naccepts %s, the validator does not", text, strictjson.Canonical(v, nil))
			}
			if got := s.Validate(v); (got == nil) != valid {
				t.Fatalf("schema %s\nvalue %s: %v, the validator says %v", text, strictjson.Canonical(v, nil), got, valid)
			} else if got != nil {
				checkError(t, got)
			}
			if quick {
				accepted++
			} else if !valid {
				refused++
			}
		}
	})
	if accepted < 20 || refused < 20 {
		t.Errorf("the test drew only %d accepted and %d refused values", accepted, refused)
	}
}

func TestProperty_WithoutRemovesTheKeysAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-cA-C"\\é/~]{0,3}`), 0, 6, rapid.ID).Draw(t, "names")
		properties := map[string]any{}
		for _, name := range all {
			properties[name] = map[string]any{"title": name}
		}
		root := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
		if len(all) > 0 {
			root["required"] = anys(all)
		}
		removed := all[:rapid.IntRange(0, len(all)).Draw(t, "removed")]
		got, err := Without(strictjson.Canonical(root, nil), removed)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range removed {
			delete(properties, name)
		}
		delete(root, "required")
		if left := all[len(removed):]; len(left) > 0 {
			root["required"] = anys(left)
		}
		if want := strictjson.Canonical(root, nil); !strictjson.Equal(mustParse(t, string(got)), mustParse(t, string(want))) {
			t.Fatalf("without %q: %s\nwant %s", removed, got, want)
		}
	})
}

// Counting must agree with an honest expansion.
func TestProperty_CountIsTheExpansion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "definitions")
		defs := map[string]any{}
		sizes := make([]int, n)
		for i := n - 1; i >= 0; i-- {
			branches := []any{map[string]any{"type": "string"}}
			sizes[i] = 1 + 1 + 2 // the definition, its list, the first branch
			for range rapid.IntRange(0, 3).Draw(t, "references") {
				if i+1 < n {
					to := rapid.IntRange(i+1, n-1).Draw(t, "to")
					branches = append(branches, map[string]any{"$ref": fmt.Sprintf("#/$defs/d%d", to)})
					sizes[i] += 2 + sizes[to]
				}
			}
			defs[fmt.Sprintf("d%d", i)] = map[string]any{"anyOf": branches}
		}
		want := 1 + 1 + 1 + sizes[0]
		for _, size := range sizes {
			want += size
		}
		d, err := inspect(string(strictjson.Canonical(map[string]any{"$ref": "#/$defs/d0", "$defs": defs}, nil)))
		var refused *CompileError
		if want > MaxNodes {
			if !errors.As(err, &refused) || refused.Kind != KindNodes {
				t.Fatalf("%d values are taken", want)
			}
			return
		}
		if err != nil || d.root.total != want {
			t.Fatalf("counted %v, %v; want %d", d, err, want)
		}
	})
}
