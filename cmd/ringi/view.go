package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// requestView is a request as this command shows it and writes it as JSON.
type requestView struct {
	ringi.ApprovalRequest
	// Flags warn of what is in a text, by field; see escape.Flags.
	Flags map[string][]string `json:"flags,omitempty"`
	// Masked are the keys whose values are not shown: the tool's schema marks
	// them as secret. Digest and execution are over the true bytes.
	Masked []string `json:"masked,omitempty"`
}

// viewOf makes the view of a request. Without reveal the values of secret keys
// are masked.
func viewOf(r ringi.ApprovalRequest, reveal bool) requestView {
	v := requestView{ApprovalRequest: r, Flags: map[string][]string{}}
	if !reveal {
		secret := secretKeys(r.Tool)
		for _, text := range []*ringi.Input{&v.Call.Input, &v.Call.Raw, &v.Proposed} {
			var hit []string
			*text, hit = maskInput(*text, secret)
			v.Masked = append(v.Masked, hit...)
		}
		slices.Sort(v.Masked)
		v.Masked = slices.Compact(v.Masked)
	}
	v.flag("tool", r.Call.Tool)
	v.flag("description", r.Tool.Description)
	v.flag("input", textsOf(v.Call.Input)...)
	v.flag("proposed", textsOf(v.Proposed)...)
	v.flag("reason", r.Verdict.Reason)
	v.flag("evidence", r.Evidence)
	if r.Preview != nil {
		v.flag("preview", r.Preview.Text)
	}
	return v
}

func (v *requestView) flag(field string, texts ...string) {
	for _, text := range texts {
		for _, f := range escape.Flags(text) {
			if !slices.Contains(v.Flags[field], f) {
				v.Flags[field] = append(v.Flags[field], f)
			}
		}
	}
}

// textsOf are the bytes of an input and every text in it that JSON spells with
// escapes: what is hidden is looked for in both.
func textsOf(in ringi.Input) []string {
	texts := []string{string(in)}
	for _, s := range spelled(string(in)) {
		texts = append(texts, s.text)
	}
	return texts
}

// spelledText is a string in a JSON document that is written with escapes.
type spelledText struct {
	path string // RFC 6901
	key  bool   // the name of a member, not a value
	text string // what it means
}

// spelled returns the strings of a JSON document that are written with
// escapes, in their order; nil for text that is no JSON.
func spelled(doc string) []spelledText {
	var out []spelledText
	dec := jsontext.NewDecoder(strings.NewReader(doc))
	for {
		if dec.PeekKind() != '"' {
			if _, err := dec.ReadToken(); err != nil {
				return out // the end, or no JSON
			}
			continue
		}
		raw, err := dec.ReadValue()
		if err != nil {
			return out
		}
		if !strings.Contains(string(raw), `\`) {
			continue
		}
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return out
		}
		kind, n := dec.StackIndex(dec.StackDepth())
		out = append(out, spelledText{string(dec.StackPointer()), kind == '{' && n%2 == 1, string(text)})
	}
}

// mask stands for a value that is not shown. It is no JSON: nothing that is
// masked can be taken for what runs.
const mask = "•••••••• (masked; --reveal shows it)"

// maskInput replaces the values of secret keys, and returns which there were.
// An input that cannot be read is masked whole.
func maskInput(in ringi.Input, secret []string) (ringi.Input, []string) {
	if in == "" || len(secret) == 0 {
		return in, nil
	}
	members, err := strictjson.Members(string(in), strictjson.Limits{Bytes: -1, Depth: -1})
	if err != nil {
		return mask, secret
	}
	var hit []string
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(strictjson.AppendString(nil, m.Key))
		b.WriteByte(':')
		if slices.Contains(secret, m.Key) {
			hit = append(hit, m.Key)
			m.Value = mask
		}
		b.WriteString(m.Value)
	}
	b.WriteByte('}')
	if hit == nil {
		return in, nil
	}
	return ringi.Input(b.String()), hit
}

// secretKeys are the top-level keys of a tool's input that its schemas mark as
// secret, in themselves or in anything below.
func secretKeys(t ringi.Tool) []string {
	var keys []string
	for _, text := range []json.RawMessage{t.InputSchema, t.InputRequired} {
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal(text, &schema) != nil {
			continue
		}
		for key, sub := range schema.Properties {
			if isSecret(sub) && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// isSecret reports whether a schema carries a mark of secrecy anywhere:
// writeOnly and format password (JSON Schema 2020-12; OpenAPI), x-sensitive.
func isSecret(schema json.RawMessage) bool {
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return true
	}
	return marksSecret(v)
}

func marksSecret(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if v["writeOnly"] == true || v["format"] == "password" || v["x-sensitive"] == true {
			return true
		}
		for _, sub := range v {
			if marksSecret(sub) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, marksSecret)
	}
	return false
}
