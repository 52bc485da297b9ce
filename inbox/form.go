package inbox

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/internal/mask"
	"github.com/ringi-dev/ringi/internal/schema"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// form is a schema's object as fields of a page.
type form struct {
	Title  string
	Fields []formField
}

// formField is one member of the object.
type formField struct {
	ID, Name, Label, Help string
	// Input is text, password, textarea, checkbox or select.
	Input    string
	Decimal  bool
	Value    string
	Checked  bool
	Options  []option
	Required bool
	Rows     int
	Problem  string

	key  string
	kind string // string, number, boolean, json
	was  string // the member's own text; empty where it is absent
	same string // the value as the browser sends it where nobody touched it
	// secret values are not sent to the browser; an empty field keeps them.
	secret bool
}

type option struct{ Value, Text string }

// property is what a form needs of a schema's property.
type property struct {
	Type        json.RawMessage   `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	MaxLength   int               `json:"maxLength"`
}

// formOf makes the form of an object schema, filled with an input's values.
// hide says which of them are not sent.
func formOf(raw json.RawMessage, input string, hide *masker) form {
	var f form
	s, err := schema.Compile(raw)
	if err != nil {
		return f
	}
	var doc struct {
		Title      string              `json:"title"`
		Properties map[string]property `json:"properties"`
	}
	_ = json.Unmarshal(raw, &doc) // what does not fit is a field of JSON
	f.Title = escape.Line(doc.Title)
	members, _ := strictjson.Members(input, strictjson.Limits{Bytes: -1})
	was := map[string]string{}
	for _, m := range members {
		was[m.Key] = m.Value
	}
	secrets, all := mask.Keys(raw)
	masked := showJSON(input, hide).Masked
	for i, key := range s.Properties() {
		at := "/" + escaped(key)
		secret := all || slices.Contains(secrets, key) || mask.Name(key) || slices.ContainsFunc(masked, func(path string) bool {
			return path == "" || path == at || strings.HasPrefix(path, at+"/")
		})
		f.Fields = append(f.Fields, fieldOf(i, key, doc.Properties[key], was[key], slices.Contains(s.Required(), key), secret))
	}
	return f
}

func fieldOf(i int, key string, p property, was string, required, secret bool) formField {
	f := formField{ID: fmt.Sprintf("f%d", i), Name: "f." + key, key: key, was: was, Required: required, secret: secret,
		Label: escape.Line(p.Title), Help: escape.Line(p.Description)}
	if f.Label == "" {
		f.Label = escape.Line(key)
	} else if p.Title != key {
		f.Help = strings.TrimSpace(f.Help + " (" + escape.Line(key) + ")")
	}
	var kind string
	_ = json.Unmarshal(p.Type, &kind) // a list of types is a field of JSON
	text, isText := textOf(was)
	switch {
	case secret && kind == "string":
		f.kind, f.Input = "string", "password"
		if was != "" {
			f.Help = strings.TrimSpace(f.Help + " Not shown. Left empty, it stays as it is.")
		}
		return f
	case secret:
		f.kind, f.Input, f.Rows = "json", "textarea", 3
		f.Help = strings.TrimSpace(f.Help + " As JSON. Not shown; left empty, it stays as it is.")
		return f
	case kind == "string" && enumTexts(p.Enum) != nil && (was == "" || isText):
		f.kind, f.Input, f.Value = "string", "select", text
		f.Options = optionsOf(enumTexts(p.Enum), text, was != "" || required)
	case kind == "string" && (was == "" || isText && text == plainText(text)):
		f.kind, f.Input, f.Value = "string", "text", text
		if strings.Contains(text, "\n") || len(text) > 80 || p.MaxLength > 300 {
			f.Input, f.Rows = "textarea", min(max(3, strings.Count(text, "\n")+2, len(text)/60), 16)
		}
	case (kind == "integer" || kind == "number") && p.Enum == nil && (was == "" || strictjson.ValidNumber(was)):
		f.kind, f.Input, f.Decimal, f.Value = "number", "text", true, was
	case kind == "boolean" && (was == "" || was == "true" || was == "false") && (required || was != ""):
		f.kind, f.Input, f.Checked = "boolean", "checkbox", was == "true"
	default:
		// What cannot be seen in a field is edited as JSON, where it is spelled out.
		f.kind, f.Input, f.Rows = "json", "textarea", 3
		if was != "" {
			f.Value = string(escape.JSON(nil, []byte(was)))
			f.Rows = min(max(3, len(f.Value)/60), 16)
		}
		f.Help = strings.TrimSpace(f.Help + " As JSON.")
	}
	f.same = f.Value
	return f
}

// plainText is s where a field of a page can show and return every character of
// it; anything else differs from s.
func plainText(s string) string { return strings.ReplaceAll(escape.Text(s), "\r", "") }

func textOf(raw string) (string, bool) {
	if raw == "" || raw[0] != '"' {
		return "", false
	}
	v, err := strictjson.Parse(raw, strictjson.Limits{Bytes: -1})
	s, ok := v.(string)
	return s, err == nil && ok
}

func enumTexts(enum []json.RawMessage) []string {
	var out []string
	for _, e := range enum {
		s, ok := textOf(string(e))
		if !ok || s == "" || s != plainText(s) {
			return nil
		}
		out = append(out, s)
	}
	return out
}

func optionsOf(texts []string, has string, must bool) []option {
	if must && !slices.Contains(texts, has) {
		texts = append([]string{has}, texts...)
	}
	var out []option
	for _, t := range texts {
		out = append(out, option{t, t})
	}
	return out
}

// read makes the object of what was typed. Members keep their order and, where
// nobody touched them, their bytes; members that the form does not know stay.
// A problem is set at its field, and ok is false.
func (f *form) read(input string, values url.Values) (object string, ok bool) {
	members, _ := strictjson.Members(input, strictjson.Limits{Bytes: -1})
	next := map[string]string{}
	gone := map[string]bool{}
	var added []string
	ok = true
	for i := range f.Fields {
		field := &f.Fields[i]
		value, there, problem := field.read(values)
		if problem != "" {
			field.Problem, ok = problem, false
			continue
		}
		switch {
		case !there:
			gone[field.key] = true
		case field.was == "":
			added = append(added, field.key)
			next[field.key] = value
		default:
			next[field.key] = value
		}
	}
	var parts []string
	put := func(key, value string) {
		parts = append(parts, string(strictjson.AppendString(nil, key))+":"+value)
	}
	for _, m := range members {
		if value, changed := next[m.Key]; changed {
			m.Value = value
		}
		if !gone[m.Key] {
			put(m.Key, m.Value)
		}
	}
	for _, key := range added {
		put(key, next[key])
	}
	return "{" + strings.Join(parts, ",") + "}", ok
}

// read returns a member's text; there is false where it is left out.
func (f *formField) read(values url.Values) (value string, there bool, problem string) {
	typed := strings.ReplaceAll(values.Get(f.Name), "\r\n", "\n")
	if f.kind == "boolean" {
		f.Checked = typed == "true"
		return fmt.Sprint(f.Checked), true, ""
	}
	if f.secret && typed == "" && f.was != "" {
		return f.was, true, ""
	}
	if !f.secret {
		if f.was != "" && typed == f.same {
			return f.was, true, ""
		}
		f.Value = typed
	}
	if typed == "" && (f.kind != "string" || f.was == "") {
		if f.Required {
			return "", false, "This is needed."
		}
		return "", false, ""
	}
	switch f.kind {
	case "number":
		if n := strings.TrimSpace(typed); strictjson.ValidNumber(n) {
			return n, true, ""
		}
		return "", false, "This is no number. Write it with digits, and a point before decimals."
	case "json":
		if _, err := strictjson.Parse(typed, strictjson.Limits{}); err != nil {
			return "", false, jsonProblem(typed, err)
		}
		return strings.TrimSpace(typed), true, ""
	}
	return string(strictjson.AppendString(nil, typed)), true, ""
}

// jsonProblem says where a JSON text is wrong: line and column, from 1.
func jsonProblem(text string, err error) string {
	e, ok := asSyntax(err)
	if !ok {
		return escape.Line(err.Error())
	}
	at := min(max(e.Offset, 0), len(text))
	line := strings.Count(text[:at], "\n") + 1
	column := len([]rune(text[strings.LastIndex(text[:at], "\n")+1:at])) + 1
	return fmt.Sprintf("Line %d, column %d: %s", line, column, escape.Line(e.Error()))
}

// blame puts the problems of a refused input at their fields, and returns those
// that belong to none.
func (f *form) blame(err *schema.Error) []string {
	var rest []string
	for _, p := range err.Problems {
		key, _, _ := strings.Cut(strings.TrimPrefix(p.Path, "/"), "/")
		i := slices.IndexFunc(f.Fields, func(field formField) bool { return p.Path != "" && escaped(field.key) == key })
		if i < 0 {
			text := p.Message
			if p.Path != "" {
				text = p.Path + ": " + text
			}
			rest = append(rest, escape.Line(text))
			continue
		}
		f.Fields[i].Problem = strings.TrimSpace(f.Fields[i].Problem + " " + escape.Line(p.Message))
	}
	if err.More > 0 {
		rest = append(rest, plural(err.More, "more problem"))
	}
	return rest
}

func escaped(key string) string {
	return strings.TrimPrefix(string(strictjson.AppendPointer(nil, key)), "/")
}
