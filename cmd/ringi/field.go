package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi/internal/mask"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// field is one value that a person is asked to supply.
type field struct {
	name        string
	title       string
	description string
	kind        string // the schema's type; "" for any
	choices     []string
	required    bool
	secret      bool
	told        bool // to the model, with the result
}

// fieldsOf reads the top-level keys of an input schema, in the order in which
// it lists them.
func fieldsOf(schema json.RawMessage) ([]field, error) {
	if len(schema) == 0 {
		return nil, nil
	}
	var doc struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &doc); err != nil {
		return nil, fmt.Errorf("read input schema: %w", err)
	}
	members, err := strictjson.Members(string(doc.Properties), strictjson.Limits{})
	if err != nil {
		return nil, fmt.Errorf("read input schema: %w", err)
	}
	secrets, all := mask.Keys(schema)
	fields := make([]field, len(members))
	for i, m := range members {
		var sub struct {
			Type        any               `json:"type"`
			Title       string            `json:"title"`
			Description string            `json:"description"`
			Enum        []json.RawMessage `json:"enum"`
			Tell        any               `json:"x-tell-model"`
		}
		if err := json.Unmarshal([]byte(m.Value), &sub); err != nil {
			return nil, fmt.Errorf("read input schema of %s: %w", m.Key, err)
		}
		f := field{name: m.Key, title: sub.Title, description: sub.Description,
			required: slices.Contains(doc.Required, m.Key), secret: all || slices.Contains(secrets, m.Key) || mask.Name(m.Key), told: sub.Tell == true}
		f.kind, _ = sub.Type.(string)
		for _, c := range sub.Enum {
			f.choices = append(f.choices, string(c))
		}
		fields[i] = f
	}
	return fields, nil
}

// hint says in brackets what may be typed.
func (f field) hint() string {
	var parts []string
	if f.title != "" && f.title != f.name {
		parts = append(parts, f.title)
	}
	switch {
	case len(f.choices) > 0:
		parts = append(parts, "one of "+strings.Join(f.choices, ", "))
	case f.kind != "":
		parts = append(parts, f.kind)
	}
	if !f.required {
		parts = append(parts, "optional")
	}
	if f.told {
		parts = append(parts, "the model is told")
	}
	if f.secret {
		parts = append(parts, "not shown while you type")
	}
	return "(" + strings.Join(parts, "; ") + ")"
}

// value reads what was typed as the JSON that the field wants. A text is taken
// as it is typed; everything else is JSON. It reports false for a field that
// was left out.
func (f field) value(typed string) (string, bool, error) {
	if typed == "" && !(f.required && f.isText()) {
		if f.required {
			return "", false, fmt.Errorf("%s is needed", f.name)
		}
		return "", false, nil
	}
	if f.isText() {
		return string(strictjson.AppendString(nil, typed)), true, nil
	}
	text := strings.TrimSpace(typed)
	if _, err := strictjson.Parse(text, strictjson.Limits{}); err != nil {
		if f.kind == "" || len(f.choices) > 0 { // a word without quotes
			return string(strictjson.AppendString(nil, text)), true, nil
		}
		return "", false, fmt.Errorf("%s: type JSON of type %s", f.name, f.kind)
	}
	return text, true, nil
}

func (f field) isText() bool { return f.kind == "string" && len(f.choices) == 0 }

// askFields asks for one value after another, and returns them as an object.
func (p *prompt) askFields(ctx context.Context, fields []field) (string, error) {
	if err := p.wait(ctx); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, f := range fields {
		value, given, err := p.askField(ctx, f)
		if err != nil {
			return "", err
		}
		if !given {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.Write(strictjson.AppendString(nil, f.name))
		b.WriteByte(':')
		b.WriteString(value)
	}
	return "{" + b.String() + "}", nil
}

func (p *prompt) askField(ctx context.Context, f field) (string, bool, error) {
	if f.description != "" {
		page := p.e.paints(p.e.err)
		page.frame(f.description)
		if err := page.flush(p.e.err); err != nil {
			return "", false, err
		}
	}
	read := p.line
	if f.secret {
		read = p.secret
	}
	question := fmt.Sprintf("%s %s: ", escapedOne(f.name), escapedOne(f.hint()))
	for range maxTries {
		typed, err := read(ctx, question)
		if err != nil {
			return "", false, err
		}
		value, given, err := f.value(typed)
		if err == nil {
			return value, given, nil
		}
		p.e.tell("%s\n", err)
	}
	return "", false, errNothingDecided
}
