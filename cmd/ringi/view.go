package main

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/internal/mask"
)

// requestView is a request as this command shows it and writes it as JSON.
type requestView struct {
	ringi.ApprovalRequest
	// Flags warn of what is in a text, by field; see escape.Flags.
	Flags map[string][]string `json:"flags,omitempty"`
	// Masked are the places whose values are not shown, as JSON pointers (RFC
	// 6901); "" is the whole. Digest and execution are over the true bytes.
	Masked []string `json:"masked,omitempty"`
}

// viewOf makes the view of a request. Without reveal the values of secret keys
// are masked.
func viewOf(r ringi.ApprovalRequest, reveal bool) requestView {
	v := requestView{ApprovalRequest: r, Flags: map[string][]string{}}
	if !reveal {
		for _, text := range []*ringi.Input{&v.Call.Input, &v.Call.Raw, &v.Proposed} {
			m := mask.Input(string(*text), r.Tool.InputSchema, r.Tool.InputRequired)
			*text = ringi.Input(m.With(masked))
			v.Masked = append(v.Masked, m.Paths...)
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

// masked stands for a value that is not shown. It is no JSON: nothing that is
// masked can be taken for what runs.
const masked = "•••••••• (masked; --reveal shows it)"
