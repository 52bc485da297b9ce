package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Split takes the conversation out of a body: the elements of the array under a
// top-level key, byte for byte, and the body without the key.
func Split(body []byte, key string) (messages []json.RawMessage, rest string, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, "", fmt.Errorf("read body: %w", err)
	}
	if err := json.Unmarshal(all[key], &messages); err != nil {
		return nil, "", fmt.Errorf("read %s: %w", key, err)
	}
	return messages, strings.Replace(string(body), string(all[key]), "[…]", 1), nil
}

// read reads a body and holds it to what is true of every one: JSON without a
// blank, every call answered once, right behind it, under an id of its own.
func (v *Vendor) read(t testing.TB, body []byte) *Request {
	t.Helper()
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		t.Fatalf("body is no JSON: %v\n%s", err, body)
	}
	if !bytes.Equal(compact.Bytes(), body) {
		t.Errorf("body has blanks between its tokens: golden files would not show its bytes")
	}
	req, err := v.Read(body)
	if err != nil {
		t.Fatalf("read body: %v\n%s", err, body)
	}
	if err := answered(req.Parts); err != nil {
		t.Errorf("%v\n%s", err, body)
	}
	seen := map[string]bool{}
	for _, p := range req.Parts {
		if p.Kind != PartCall || v.Takes == nil || p.ID == "" && v.FreeIDs {
			continue
		}
		if p.ID == "" || seen[p.ID] {
			t.Errorf("call id %q is empty or repeated", p.ID)
		}
		seen[p.ID] = true
	}
	return req
}

// answered holds a conversation to the form that every vendor takes: the calls
// of a turn, then exactly their results, in order, and nothing between.
func answered(parts []Part) error {
	var open []Part
	calling := false
	for i, p := range parts {
		switch {
		case p.Kind == PartCall:
			if !calling && len(open) > 0 {
				return fmt.Errorf("part %d asks before call %q is answered", i, open[0].ID)
			}
			open, calling = append(open, p), true
			continue
		case p.Kind == PartResult:
			if len(open) == 0 {
				return fmt.Errorf("part %d is a result without a call", i)
			}
			if p.ID != open[0].ID || p.Tool != "" && p.Tool != open[0].Tool {
				return fmt.Errorf("part %d answers %q of %q, not %q of %q", i, p.ID, p.Tool, open[0].ID, open[0].Tool)
			}
			open = open[1:]
		case len(open) > 0:
			return fmt.Errorf("part %d (%s) stands before the result of call %q", i, p.Kind, open[0].ID)
		}
		calling = false
	}
	if len(open) > 0 {
		return fmt.Errorf("call %q of tool %q went out without a result", open[0].ID, open[0].Tool)
	}
	return nil
}

// grows holds bodies of one conversation to growing at their end alone, so that
// a vendor's cache holds what it knows.
func (v *Vendor) grows(t testing.TB, bodies [][]byte) {
	t.Helper()
	for i := 1; i < len(bodies); i++ {
		before, after := v.read(t, bodies[i-1]), v.read(t, bodies[i])
		if before.Rest != after.Rest {
			t.Errorf("bodies %d and %d differ beside the conversation:\n%s\n%s", i-1, i, before.Rest, after.Rest)
		}
		if len(after.Messages) <= len(before.Messages) {
			t.Errorf("body %d holds %d messages, the one before %d", i, len(after.Messages), len(before.Messages))
			continue
		}
		for k := range before.Messages {
			if !bytes.Equal(before.Messages[k], after.Messages[k]) {
				t.Errorf("message %d changed from body %d to %d:\n%s\n%s", k, i-1, i, before.Messages[k], after.Messages[k])
			}
		}
	}
}

// of are the parts of one kind.
func (r *Request) of(kind PartKind) []Part {
	var out []Part
	for _, p := range r.Parts {
		if p.Kind == kind {
			out = append(out, p)
		}
	}
	return out
}

// golden compares request bodies with the file of a scenario.
func (v *Vendor) golden(t testing.TB, scenario string, bodies [][]byte) {
	t.Helper()
	Golden(t, filepath.Join("testdata", scenario+"."+v.Name+".golden.json"), bodies)
}

// Golden compares request bodies with a file, or writes it under -update. The
// file holds them indented: blanks apart it holds every byte, and a body has no
// blanks of its own.
func Golden(t testing.TB, name string, bodies [][]byte) {
	t.Helper()
	var got bytes.Buffer
	for _, b := range bodies {
		if err := json.Indent(&got, b, "", "  "); err != nil {
			t.Fatalf("body is no JSON: %v\n%s", err, b)
		}
		got.WriteByte('\n')
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("read golden body (go test -update writes it): %v", err)
	}
	if !bytes.Equal(want, got.Bytes()) {
		t.Errorf("bodies differ from %s at line %s", name, firstDifference(string(want), got.String()))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			return fmt.Sprintf("%d:\n- %s\n+ %s", i+1, strings.Join(slices.Clip(w[min(i, len(w)):min(i+3, len(w))]), "\n- "),
				strings.Join(g[min(i, len(g)):min(i+3, len(g))], "\n+ "))
		}
	}
	return "none"
}
