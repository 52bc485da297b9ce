package mask

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// Bounds of a schema's expansion at one place. Above them the whole input is
// masked.
const maxSchemas = 2000

// expand returns every schema that speaks of the same value: the branches of
// combinations, all taken, and what references lead to.
func (m *masker) expand(schemas []any) ([]map[string]any, bool) {
	var out []map[string]any
	seen := map[string]bool{}
	for n := 0; len(schemas) > 0; n++ {
		if n > maxSchemas {
			return nil, false
		}
		s, ok := schemas[0].(map[string]any)
		schemas = schemas[1:]
		if !ok {
			continue // true, false, or nothing
		}
		out = append(out, s)
		for _, word := range []string{"allOf", "anyOf", "oneOf"} {
			list, _ := s[word].([]any)
			schemas = append(schemas, list...)
		}
		for _, word := range []string{"if", "then", "else", "not"} {
			schemas = append(schemas, s[word])
		}
		dependent, _ := s["dependentSchemas"].(map[string]any)
		for _, d := range dependent {
			schemas = append(schemas, d)
		}
		for _, word := range []string{"$ref", "$dynamicRef"} {
			ref, _ := s[word].(string)
			if ref == "" || seen[ref] {
				continue
			}
			seen[ref] = true
			to, found := m.find(ref)
			if !found {
				return nil, false
			}
			schemas = append(schemas, to)
		}
	}
	return out, true
}

// find follows a reference within the document: a JSON pointer (RFC 6901) or an
// anchor of its definitions.
func (m *masker) find(ref string) (any, bool) {
	rest, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil, false
	}
	if rest != "" && rest[0] != '/' {
		root, _ := m.root.(map[string]any)
		for _, word := range []string{"$defs", "definitions"} {
			defs, _ := root[word].(map[string]any)
			for _, d := range defs {
				if d, ok := d.(map[string]any); ok && (d["$anchor"] == rest || d["$dynamicAnchor"] == rest) {
					return d, true
				}
			}
		}
		return nil, false
	}
	at := m.root
	for _, step := range strings.Split(rest, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		object, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = object[step]; !ok {
			return nil, false
		}
	}
	return at, true
}

func marked(s map[string]any) bool {
	return s["writeOnly"] == true || s["format"] == "password" || s["x-sensitive"] == true
}

// Keys returns the top-level keys of an input that its schemas mark as secret,
// in themselves or in anything below, sorted. all is set where every key counts
// as secret: a mark stands where no key can be told, or a schema is no object.
func Keys(schemas ...json.RawMessage) (keys []string, all bool) {
	for _, raw := range schemas {
		document, err := strictjson.ParseObject(string(raw), strictjson.Limits{})
		all = all || err != nil && len(raw) > 0
		properties, _ := document["properties"].(map[string]any)
		for key, sub := range properties {
			if Marked(sub, document) && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
		for word, part := range document {
			if word != "properties" && word != "$defs" && word != "definitions" && Marked(map[string]any{word: part}, document) {
				all = true
			}
		}
	}
	slices.Sort(keys)
	return keys, all
}

// Marked reports whether a part of a schema marks a secret anywhere. A reference
// may lead anywhere in the document, so with one every mark of the document
// counts. A nil document has none.
func Marked(part any, document map[string]any) bool {
	switch v := part.(type) {
	case map[string]any:
		if marked(v) {
			return true
		}
		if document != nil {
			for _, ref := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
				if _, leads := v[ref]; leads {
					return Marked(document, nil)
				}
			}
		}
		for _, sub := range v {
			if Marked(sub, document) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(sub any) bool { return Marked(sub, document) })
	}
	return false
}

// members are the schemas of an object's member.
func members(all []map[string]any, name string) []any {
	var out []any
	for _, s := range all {
		properties, _ := s["properties"].(map[string]any)
		one, named := properties[name]
		if named {
			out = append(out, one)
		}
		patterns, _ := s["patternProperties"].(map[string]any)
		for pattern, p := range patterns {
			re, err := regexp.Compile(pattern)
			if err != nil || re.MatchString(name) { // one that we cannot read counts
				out, named = append(out, p), true
			}
		}
		if !named {
			out = append(out, s["additionalProperties"])
		}
		out = append(out, s["unevaluatedProperties"])
	}
	return out
}

// items are the schemas of an array's item.
func items(all []map[string]any, i int) []any {
	var out []any
	for _, s := range all {
		first, _ := s["prefixItems"].([]any)
		if list, draft7 := s["items"].([]any); draft7 {
			first = list
		}
		if i < len(first) {
			out = append(out, first[i])
		} else {
			out = append(out, s["items"], s["additionalItems"])
		}
		out = append(out, s["contains"], s["unevaluatedItems"])
	}
	return out
}
