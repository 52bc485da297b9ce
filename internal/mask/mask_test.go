package mask

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestS34_SchemaMarks(t *testing.T) {
	for _, c := range []struct{ name, schema, in, want string }{
		{"writeOnly", `{"properties":{"pin":{"writeOnly":true}}}`, `{ "pin" : "1234", "n": 1.50 }`, `{ "pin" : "[masked]", "n": 1.50 }`},
		{"password", `{"properties":{"p":{"type":"string","format":"password"}}}`, `{"p":"hunter2"}`, `{"p":"[masked]"}`},
		{"x-sensitive object", `{"properties":{"card":{"x-sensitive":true}}}`, `{"card":{"no":[4111,"x"]},"a":1}`, `{"card":"[masked]","a":1}`},
		{"nested, items", `{"properties":{"l":{"items":{"properties":{"k":{"writeOnly":true}}}}}}`, `{"l":[{"k":1},{"j":2}]}`, `{"l":[{"k":"[masked]"},{"j":2}]}`},
		{"prefixItems", `{"properties":{"l":{"prefixItems":[{},{"writeOnly":true}]}}}`, `{"l":[1,2,3]}`, `{"l":[1,"[masked]",3]}`},
		{"ref", `{"properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"writeOnly":true}}}`, `{"a":"x"}`, `{"a":"[masked]"}`},
		{"recursive ref", `{"properties":{"a":{"$ref":"#"},"s":{"writeOnly":true}}}`, `{"a":{"a":{"s":"x"}}}`, `{"a":{"a":{"s":"[masked]"}}}`},
		{"anyOf", `{"anyOf":[{"properties":{"a":{}}},{"properties":{"a":{"format":"password"}}}]}`, `{"a":"x"}`, `{"a":"[masked]"}`},
		{"then", `{"then":{"properties":{"a":{"writeOnly":true}}}}`, `{"a":"x"}`, `{"a":"[masked]"}`},
		{"additional", `{"properties":{"a":{}},"additionalProperties":{"writeOnly":true}}`, `{"a":"x","b":"y"}`, `{"a":"x","b":"[masked]"}`},
		{"pattern", `{"patternProperties":{"^x-":{"writeOnly":true}}}`, `{"x-a":"x","b":"y"}`, `{"x-a":"[masked]","b":"y"}`},
		{"unmarked", `{"properties":{"a":{"type":"string"}}}`, ` {"a":"x"} `, ` {"a":"x"} `},
		{"not JSON", `{}`, `{"a":`, `"[masked]"`},
		{"schema that is none", `{`, `{"a":1}`, `"[masked]"`},
		{"reference that leads nowhere", `{"properties":{"a":{"$ref":"https://x.example/y"}}}`, `{"a":1}`, `"[masked]"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Input(c.in, json.RawMessage(c.schema)).Text; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestS34_NamesAndLooks(t *testing.T) {
	m := Input(`{"headers":{"X-Api-Key":7,"Authorization":"x"},"cmd":"curl -H sk-TEST-0000","to":"a"}`)
	if want := `{"headers":{"X-Api-Key":"[masked]","Authorization":"[masked]"},"cmd":"[masked]","to":"a"}`; m.Text != want {
		t.Errorf("got %s", m.Text)
	}
	if got, want := m.With("?"), `{"headers":{"X-Api-Key":?,"Authorization":?},"cmd":?,"to":"a"}`; got != want {
		t.Errorf("with another mark: %s", got)
	}
}

func TestS34_SeveralSchemas(t *testing.T) {
	m := Input(`{"a":{"b":1},"c":2,"d":3}`, json.RawMessage(`{"properties":{"a":{"properties":{"b":{"writeOnly":true}}}}}`),
		json.RawMessage(`{"properties":{"a":{"x-sensitive":true},"c":{"format":"password"}}}`))
	if want := `{"a":"[masked]","c":"[masked]","d":3}`; m.Text != want || !slices.Equal(m.Paths, []string{"/a", "/c"}) {
		t.Errorf("got %s %q", m.Text, m.Paths)
	}
}

func TestS34_Keys(t *testing.T) {
	keys, all := Keys(json.RawMessage(`{"properties":{"b":{"items":{"writeOnly":true}},"c":{},"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"x-sensitive":true}}}`))
	if !slices.Equal(keys, []string{"a", "b"}) || all {
		t.Errorf("%q, %v", keys, all)
	}
	for _, schema := range []string{`{"additionalProperties":{"writeOnly":true}}`, `[]`} {
		if _, all := Keys(json.RawMessage(schema)); !all {
			t.Errorf("%s: not all", schema)
		}
	}
}

func TestS34_PathsAndSecrets(t *testing.T) {
	m := Input(`{"a/b":{"deep":"secret-1"},"n":77123}`, json.RawMessage(`{"properties":{"a/b":{"writeOnly":true},"n":{"writeOnly":true}}}`))
	if !slices.Equal(m.Paths, []string{"/a~1b", "/n"}) {
		t.Errorf("paths %q", m.Paths)
	}
	if !slices.Equal(m.Secrets, []string{"secret-1", "77123"}) {
		t.Errorf("secrets %q", m.Secrets)
	}
}

func TestS34_SweepFindsASecretInEveryForm(t *testing.T) {
	s := NewSweeper([]string{`pa"ss<1>`, "abc"})
	in := `{"preview":"it is pa\"ss<1> ok","nested":"{\"p\":\"pa\\\"ss<1>\"}","go":"pa\"ss\u003c1\u003e","short":"abc","n":1.0}`
	got := string(s.JSON([]byte(in)))
	want := `{"preview":"it is [masked] ok","nested":"{\"p\":\"[masked]\"}","go":"[masked]","short":"abc","n":1.0}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestS34_WhatLooksLikeAKey(t *testing.T) {
	var s Sweeper
	for _, key := range []string{
		"AKIAABCDEFGHIJKLMNOP", "ghp_" + strings.Repeat("a", 36), "Bearer abcdefghijklmnopqrst", "sk-" + strings.Repeat("x", 24),
		"eyJhbGciOiJI.eyJzdWIiOiIxMjM0.c2ln", "ringi_" + strings.Repeat("a", 10) + "_" + strings.Repeat("b", 52),
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
	} {
		if got := s.Text("say " + key + " now"); got != "say [masked] now" {
			t.Errorf("%q: %q", key, got)
		}
	}
	if got := s.Text("an ordinary sentence about bearer bonds and sk-8 boards"); strings.Contains(got, Mark) {
		t.Errorf("masked %q", got)
	}
}

func FuzzInput(f *testing.F) {
	f.Add(`{"properties":{"a":{"writeOnly":true}}}`, `{"a":"x"}`)
	f.Fuzz(func(t *testing.T, schema, text string) {
		m := Input(text, json.RawMessage(schema))
		if len(m.Paths) == 0 && m.Text != text {
			t.Errorf("nothing is masked, and %q became %q", text, m.Text)
		}
	})
}
