package openai

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/ringi-dev/ringi"
)

// offered is a tool as both interfaces offer it.
type offered struct {
	name, description string
	// parameters are the top-level keys of the schema, each with its own bytes:
	// the SDK writes them sorted.
	parameters map[string]any
	strict     bool
}

// topLevel are keys that the vendor refuses at the top of a schema. The model is
// told of them in words; the engine checks the whole schema whatever is told.
var topLevel = []string{"allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else", "$ref"}

// offer translates a tool. Names need no translation: a registry takes only
// what every vendor takes.
func (m *model) offer(t *ringi.Tool) offered {
	out := offered{name: t.Name, description: t.Description, parameters: map[string]any{}}
	schema := map[string]json.RawMessage{}
	if len(t.InputSchema) > 0 && json.Unmarshal(t.InputSchema, &schema) != nil {
		schema = map[string]json.RawMessage{} // "true" is a schema too
	}
	left := map[string]json.RawMessage{}
	for key, value := range schema {
		if slices.Contains(topLevel, key) {
			left[key] = value
			continue
		}
		out.parameters[key] = value
	}
	out.parameters["type"] = "object"
	if _, ok := schema["properties"]; !ok {
		out.parameters["properties"] = map[string]any{}
	}
	if len(left) > 0 {
		text, _ := json.Marshal(left)
		out.description += "\nThe input must also satisfy this JSON Schema: " + string(text)
		return out
	}
	out.strict = !m.o.NoStrict && strict(t.InputSchema, 0)
	return out
}

// strictKeys are the keywords of the vendor's subset:
// https://platform.openai.com/docs/guides/structured-outputs, "Supported
// schemas". What is not named here keeps strict mode off.
var strictKeys = []string{"type", "title", "description", "properties", "required", "additionalProperties", "items", "enum", "const",
	"pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"}

// strict reports whether a schema fits the subset: closed objects that require
// every property.
func strict(schema json.RawMessage, depth int) bool {
	var s map[string]json.RawMessage
	if depth > 8 || json.Unmarshal(schema, &s) != nil || s["type"] == nil && s["enum"] == nil && s["const"] == nil {
		return false
	}
	for key := range s {
		if !slices.Contains(strictKeys, key) {
			return false
		}
	}
	var kind string
	if json.Unmarshal(s["type"], &kind) != nil && depth == 0 {
		return false
	}
	if items, ok := s["items"]; ok && !strict(items, depth+1) {
		return false
	}
	if kind != "object" {
		return depth > 0 && s["properties"] == nil && (kind != "array" || s["items"] != nil)
	}
	return closed(s, depth)
}

func closed(s map[string]json.RawMessage, depth int) bool {
	var properties map[string]json.RawMessage
	var required []string
	if !bytes.Equal(bytes.TrimSpace(s["additionalProperties"]), []byte("false")) || json.Unmarshal(s["properties"], &properties) != nil ||
		len(properties) > 0 && json.Unmarshal(s["required"], &required) != nil {
		return false
	}
	for name, p := range properties {
		if !slices.Contains(required, name) || !strict(p, depth+1) {
			return false
		}
	}
	return true
}
