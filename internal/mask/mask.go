// Package mask takes secrets out of what leaves the process: pages, answers,
// streams, logs, exports.
//
// What a tool's schema marks is secret: "writeOnly": true (JSON Schema
// validation 2020-12, 9.4), "format": "password" (OpenAPI 3.1, 4.7.24.1) and
// "x-sensitive": true. Values that look like keys are secret wherever they
// stand, and so are members whose names say it. A masked value is visibly so;
// digests are over the raw bytes. Nothing else in the module reads the marks.
package mask

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// Mark stands where a value was.
const Mark = "[masked]"

// Masked is a text without its secrets.
type Masked struct {
	// Text is the input byte for byte, but for what was masked.
	Text string
	// Paths are the places that were masked, as JSON pointers (RFC 6901), in the
	// order of the text; "" is the whole.
	Paths []string
	// Values are what stood there, as it was written.
	Values []string
	// Secrets are the texts of the masked values, for [Sweep].
	Secrets []string
	// parts are what stands between the masked values.
	parts []string
}

// Input masks a tool call's input by the tool's schemas: what the model was
// offered, and what a person supplies. Beside what they mark it masks members
// whose names say secret ([Name]) and texts that look like one ([Looks]). What
// cannot be followed (a text that is no JSON, a schema that is none or has no
// end) is masked whole. An empty schema marks nothing.
func Input(text string, schemas ...json.RawMessage) Masked {
	if text == "" {
		return Masked{}
	}
	if _, err := strictjson.Parse(text, strictjson.Limits{}); err != nil {
		return All(text)
	}
	var cuts []cut
	for _, schema := range append([]json.RawMessage{nil}, schemas...) { // without any, names and looks count
		m := masker{text: text}
		if len(schema) > 0 && json.Unmarshal(schema, &m.root) != nil {
			return All(text)
		}
		m.dec = jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true))
		if !m.value([]any{m.root}, "", "") {
			return All(text)
		}
		cuts = append(cuts, m.cuts...)
	}
	return masked(text, cuts)
}

// All masks a whole text: for a call whose tool nobody knows.
func All(text string) Masked {
	if text == "" || text == "{}" {
		return Masked{Text: text}
	}
	return Masked{Text: strconv.Quote(Mark), Paths: []string{""}, Values: []string{text}, Secrets: leaves(nil, text), parts: []string{"", ""}}
}

// With is the text with another mark in the place of each value.
func (m Masked) With(mark string) string {
	if len(m.Paths) == 0 {
		return m.Text
	}
	return strings.Join(m.parts, mark)
}

type masker struct {
	text string
	root any
	dec  *jsontext.Decoder
	cuts []cut
}

type cut struct {
	from, to int
	path     string
}

// value masks the value that comes next, to which schemas apply. name is the
// member's.
func (m *masker) value(schemas []any, path, name string) bool {
	all, ok := m.expand(schemas)
	if !ok {
		return false
	}
	if Name(name) || slices.ContainsFunc(all, marked) {
		v, err := m.dec.ReadValue()
		m.cut(v, path)
		return err == nil
	}
	switch m.dec.PeekKind() {
	case '{':
		return m.object(all, path)
	case '[':
		return m.array(all, path)
	case '"':
		v, err := m.dec.ReadValue()
		if err != nil {
			return false
		}
		if text, err := jsontext.AppendUnquote(nil, v); err != nil || Looks(string(text)) {
			m.cut(v, path)
		}
		return true
	}
	return m.dec.SkipValue() == nil
}

// cut masks the value that was read last.
func (m *masker) cut(v jsontext.Value, path string) {
	to := int(m.dec.InputOffset())
	m.cuts = append(m.cuts, cut{to - len(v), to, path})
}

func (m *masker) object(all []map[string]any, path string) bool {
	if _, err := m.dec.ReadToken(); err != nil {
		return false
	}
	for m.dec.PeekKind() != '}' {
		key, err := m.dec.ReadToken()
		if err != nil {
			return false
		}
		name := key.String()
		if !m.value(members(all, name), string(strictjson.AppendPointer([]byte(path), name)), name) {
			return false
		}
	}
	_, err := m.dec.ReadToken()
	return err == nil
}

func (m *masker) array(all []map[string]any, path string) bool {
	if _, err := m.dec.ReadToken(); err != nil {
		return false
	}
	for i := 0; m.dec.PeekKind() != ']'; i++ {
		if !m.value(items(all, i), path+"/"+strconv.Itoa(i), "") {
			return false
		}
	}
	_, err := m.dec.ReadToken()
	return err == nil
}

// masked puts the mark in the place of every cut. Of cuts that lie in one
// another the outer counts.
func masked(text string, cuts []cut) Masked {
	out := Masked{Text: text}
	if len(cuts) == 0 {
		return out
	}
	slices.SortFunc(cuts, func(a, b cut) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	at := 0
	for _, c := range cuts {
		if c.from < at {
			continue
		}
		out.parts = append(out.parts, text[at:c.from])
		at = c.to
		out.Paths = append(out.Paths, c.path)
		out.Values = append(out.Values, text[c.from:c.to])
		out.Secrets = leaves(out.Secrets, text[c.from:c.to])
	}
	out.parts = append(out.parts, text[at:])
	out.Text = out.With(strconv.Quote(Mark))
	return out
}

// leaves adds the texts of strings and numbers of a JSON value; of a text that
// is none, the text itself.
func leaves(dst []string, text string) []string {
	v, err := strictjson.Parse(text, strictjson.Limits{})
	if err != nil {
		return append(dst, text)
	}
	var add func(any)
	add = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, v := range v {
				add(v)
			}
		case []any:
			for _, v := range v {
				add(v)
			}
		case string:
			dst = append(dst, v)
		case json.Number:
			dst = append(dst, string(v))
		}
	}
	add(v)
	return dst
}
