package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/escape"
)

// hostile is what a model, a tool or a remote server may put into any field.
const hostile = "a\u202eb\x1b[2K\u200b\x00\r\n  state      approved\n\nLook closely\nRequest  req_2\ttail"

// fill puts text into every string of a value, however deep.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // schemas: JSON of their own
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	case reflect.Bool:
		v.SetBool(true)
	}
}

// S-33, F140, F141: whatever field the text comes in, nothing of it acts on
// the terminal, and none of its lines passes for one of ours.
func TestS33_EveryFieldOfARequestIsEscaped(t *testing.T) {
	for _, kind := range []ringi.RequestKind{"", ringi.KindApproval, ringi.KindApprovalAndInput, ringi.KindResult, ringi.KindOutcome} {
		for _, state := range []ringi.RequestState{ringi.Pending, ringi.Granted, hostile} {
			var r ringi.ApprovalRequest
			fill(reflect.ValueOf(&r).Elem(), hostile)
			if kind != "" {
				r.Kind = kind
			}
			r.State, r.ProposalWaits, r.Replaces = state, false, "req_0"
			schema, err := json.Marshal(map[string]any{"properties": map[string]any{hostile: map[string]any{"title": hostile,
				"description": hostile, "enum": []string{hostile}, "type": hostile}}})
			if err != nil {
				t.Fatal(err)
			}
			r.InputSchema = schema
			input, err := json.Marshal(map[string]string{hostile: hostile})
			if err != nil {
				t.Fatal(err)
			}
			r.Call.Input, r.Proposed = ringi.Input(input), `{"other":"`+"\u202e"+`"}`
			v := viewOf(r, true)
			for _, width := range []int{0, 40, 120} {
				p := &painter{width: width}
				p.request(v, time.Now())
				checkPage(t, p.buf.String())
			}
			var b bytes.Buffer
			if err := writeJSON(&b, v); err != nil {
				t.Fatal(err)
			}
			for _, c := range b.String() {
				if c != '\n' && !unicode.IsGraphic(c) {
					t.Fatalf("the document holds %U", c)
				}
			}
		}
	}
}

func checkPage(t *testing.T, page string) {
	t.Helper()
	states, warned := 0, 0
	for line := range strings.SplitSeq(page, "\n") {
		for _, r := range line {
			if !unicode.IsGraphic(r) {
				t.Fatalf("line %q holds %U", line, r)
			}
		}
		if strings.HasPrefix(line, "  state ") {
			states++
		}
		if strings.HasPrefix(line, "Look closely") {
			warned++
		}
		if strings.HasPrefix(line, "Request  req_2") {
			t.Errorf("forged heading: %q", line)
		}
	}
	if states != 1 || warned != 1 {
		t.Errorf("%d lines of state and %d warnings, want one each:\n%s", states, warned, page)
	}
}

// Every flag has words for people.
func TestEveryFlagIsExplained(t *testing.T) {
	for _, f := range []string{escape.Bidi, escape.ZeroWidth, escape.MixedScript, escape.Punycode, escape.Tag, escape.Control,
		escape.PrivateUse, escape.Unassigned, escape.InvalidUTF8, escape.ManyLines} {
		if flagText(f) == f {
			t.Errorf("flag %s has no words", f)
		}
	}
}
