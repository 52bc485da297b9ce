package inbox

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// masker says what is not shown: values under keys that a tool's schemas mark
// as secret (writeOnly and format password, JSON Schema 2020-12 and OpenAPI;
// x-sensitive), under keys that are named like one, and texts that look like
// one. A nil masker masks nothing. Digest and execution are over the true bytes.
type masker struct{ marked []string }

func maskerOf(t ringi.Tool) *masker { return maskerFor(t.InputSchema, t.InputRequired) }

func maskerFor(schemas ...json.RawMessage) *masker {
	m := &masker{}
	for _, text := range schemas {
		doc, err := strictjson.ParseObject(string(text), strictjson.Limits{})
		if err != nil {
			continue
		}
		properties, _ := doc["properties"].(map[string]any)
		for key, part := range properties {
			if marksSecret(part, doc) {
				m.marked = append(m.marked, key)
			}
		}
	}
	return m
}

// marksSecret reports whether a part of a schema marks a secret. A reference
// may lead anywhere in the document: with one every mark of it counts.
func marksSecret(part any, document map[string]any) bool {
	switch v := part.(type) {
	case map[string]any:
		if v["writeOnly"] == true || v["format"] == "password" || v["x-sensitive"] == true {
			return true
		}
		for key, sub := range v {
			leads := key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef"
			if leads && document != nil && marksSecret(document, nil) || marksSecret(sub, document) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(sub any) bool { return marksSecret(sub, document) })
	}
	return false
}

var (
	secretName = regexp.MustCompile(`(?i)^(.*[-_.])?(authorization|cookie|password|passwd|passphrase|secret|token|credentials?|(api|access|private|secret)[-_]?key|apikey)$`)
	secretText = regexp.MustCompile(`(?i:\b(?:bearer|basic)\s+[a-z0-9._~+/=-]{8,})|\bsk-[A-Za-z0-9_-]{8,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bxox[abprs]-[A-Za-z0-9-]{8,}` +
		`|\bAKIA[0-9A-Z]{12,}|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)` +
		`|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|://[^/\s:@]+:[^/\s@]+@`)
)

// key reports whether what stands under a key is masked.
func (m *masker) key(path, name string) bool {
	if m == nil || path == "" {
		return false
	}
	return strings.Count(path, "/") == 1 && slices.Contains(m.marked, name) || secretName.MatchString(name)
}

// value reports whether a text is masked.
func (m *masker) value(s string) bool { return m != nil && secretText.MatchString(s) }

// maskText stands in running text for what is masked.
const maskText = "[masked]"

// prose masks what looks like a secret in running text: previews, results.
func (m *masker) prose(s string) string {
	if m == nil {
		return s
	}
	return secretText.ReplaceAllLiteralString(s, maskText)
}
