package gemini

import (
	"bytes"
	"encoding/json"
	"slices"

	"google.golang.org/genai"

	"github.com/ringi-dev/ringi"
)

// declare offers a tool: https://ai.google.dev/api/caching#FunctionDeclaration.
// Names need no translation: a registry takes only what every vendor takes. The
// schema goes out as JSON Schema, its numbers by their text. Of keywords that the
// vendor does not read the model is told in words; the engine checks the whole
// schema whatever is told.
func declare(t *ringi.Tool) *genai.FunctionDeclaration {
	d := &genai.FunctionDeclaration{Name: t.Name, Description: t.Description}
	out, lost := reduce(t.InputSchema, 0)
	top, ok := out.(map[string]any)
	if !ok {
		top = map[string]any{} // "true" is a schema too
	}
	top["type"] = "object"
	if _, ok := top["properties"]; !ok {
		top["properties"] = map[string]any{}
	}
	d.ParametersJsonSchema = top
	if lost {
		var whole bytes.Buffer
		if json.Compact(&whole, t.InputSchema) == nil {
			d.Description += "\nThe input must also satisfy this JSON Schema: " + whole.String()
		}
	}
	return d
}

// The keywords that the vendor reads, by what they hold. It says so of schemas of
// answers (responseJsonSchema), where it also says that the others may be sent and
// do nothing: https://ai.google.dev/api/generate-content#generationconfig.
var (
	plainKeys = []string{"$id", "$ref", "$anchor", "type", "format", "title", "description", "enum", "minItems", "maxItems", "minimum", "maximum", "required", "propertyOrdering"}
	oneKeys   = []string{"items", "additionalProperties"}                                                     // a schema
	manyKeys  = []string{"prefixItems", "anyOf", "oneOf"}                                                     // an array of them
	namedKeys = []string{"properties", "$defs"}                                                               // an object of them
	idleKeys  = []string{"$schema", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"} // they allow and refuse nothing
)

// reduce gives a schema with the vendor's keywords alone, and whether what is left
// out refuses anything. Values keep their bytes.
func reduce(raw json.RawMessage, depth int) (out any, lost bool) {
	var s map[string]json.RawMessage
	if json.Unmarshal(raw, &s) != nil || s == nil {
		if len(raw) == 0 {
			return nil, false
		}
		return raw, false // true, false
	}
	if depth > 32 {
		return map[string]any{}, true
	}
	made := map[string]any{}
	for key, value := range s {
		keep, less := any(value), false
		switch {
		case slices.Contains(plainKeys, key):
		case slices.Contains(oneKeys, key):
			keep, less = reduce(value, depth+1)
		case slices.Contains(manyKeys, key):
			keep, less = reduceMany(value, depth+1)
		case slices.Contains(namedKeys, key):
			keep, less = reduceNamed(value, depth+1)
		case key == "const" && s["enum"] == nil && len(value) > 0 && (value[0] == '"' || '0' <= value[0] && value[0] <= '9' || value[0] == '-'):
			key, keep = "enum", []json.RawMessage{value}
		default:
			lost = lost || !slices.Contains(idleKeys, key)
			continue
		}
		made[key], lost = keep, lost || less
	}
	return made, lost
}

func reduceMany(raw json.RawMessage, depth int) (any, bool) {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return raw, false
	}
	out, lost := make([]any, len(all)), false
	for i := range all {
		made, less := reduce(all[i], depth)
		out[i], lost = made, lost || less
	}
	return out, lost
}

func reduceNamed(raw json.RawMessage, depth int) (any, bool) {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return raw, false
	}
	out, lost := make(map[string]any, len(all)), false
	for name, value := range all {
		made, less := reduce(value, depth)
		out[name], lost = made, lost || less
	}
	return out, lost
}
