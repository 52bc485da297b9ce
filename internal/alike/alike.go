// Package alike tells which calls count as similar.
package alike

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/ringi-dev/ringi/internal/mask"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// mark is the word by which a schema says that calls with the same value of a
// key are similar: "x-similar": true.
const mark = "x-similar"

// Word returns a word that is the same for calls of a tool that count as
// similar: those with equal values of the keys that its schema marks, or where
// it marks none with equal input. Fourteen harmless approvals say nothing of a
// fifteenth call that merely has the same tool (S-33). It is empty where values
// that no page shows would be part of it, and for what is no object.
//
// The word stands in ringi.RequestRow.Text, so that a search for it finds them.
//
// secret are the keys of the input that a schema marks as secret: mask.Keys.
func Word(tool string, input map[string]any, schema json.RawMessage, secret []string) string {
	if input == nil {
		return ""
	}
	picked := input
	if keys := marked(schema); len(keys) > 0 {
		picked = map[string]any{}
		for _, key := range keys {
			if v, there := input[key]; there {
				picked[key] = v
			}
		}
	}
	if len(picked) == 0 {
		picked = input
	}
	if slices.ContainsFunc(secret, func(key string) bool { _, there := picked[key]; return there }) || hides(picked) {
		return ""
	}
	sum := sha256.Sum256(strictjson.Canonical(picked, append(append(make([]byte, 0, 256), tool...), 0)))
	return string(hex.AppendEncode([]byte("similar:"), sum[:8]))
}

// hides reports whether a value holds what no page shows, by names and looks.
func hides(v any) bool {
	switch v := v.(type) {
	case string:
		return mask.Looks(v)
	case []any:
		return slices.ContainsFunc(v, hides)
	case map[string]any:
		for key, sub := range v {
			if mask.Name(key) || hides(sub) {
				return true
			}
		}
	}
	return false
}

// marked are the keys that a schema marks.
func marked(raw json.RawMessage) []string {
	if !bytes.Contains(raw, []byte(mark)) {
		return nil
	}
	var schema struct {
		Properties map[string]map[string]any `json:"properties"`
	}
	if json.Unmarshal(raw, &schema) != nil {
		return nil
	}
	var keys []string
	for key, part := range schema.Properties {
		if part[mark] == true {
			keys = append(keys, key)
		}
	}
	return keys
}
