package strictjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

var corpus = []string{
	`{"id":9223372036854775807}`, `{"id":"1234567890123456789"}`,
	`{"n":-0}`, `{"n":-0.0}`, `{"n":1.0}`, `{"n":1}`, `{"n":1e0}`, `{"n":1e30}`,
	`{"n":01}`, `{"n":+1}`, `{"n":.5}`, `{"n":0x10}`, `{"n":1e999}`,
	`{"name":"A","name":"B"}`, `{"Path":"/a","path":"/b"}`, `{"a":1,"\u0061":2}`,
	`{"path": "/tmp/x"`, `{"command":}`, `{"a":1}{"a":2}`, "\xEF\xBB\xBF{}",
	`{"t":"a\u0000b"}`, `{"t":"\ud83d\ude00"}`, `{"t":"\ud800"}`, `{"t":"\ud800\u0041"}`, `{"\udc00":1}`,
	"{\"t\":\"e\u0301\"}", `{"c":"\u202e\u2066moc.evil\u2069"}`, "{\"p\":\"a\x1b[2K\"}", "\"\xff\"", "\"\xed\xa0\x80\"",
	`[[[[[[[[1]]]]]]]]`, `[1,[2,3],[],{"a":[4]}]`, `{"x":null}`, `{}`, ``, ` `, `null`, `"{}"`, `nul`, `-`, `1.`, `"\`,
	`{"a":{"b":[true,false,null,"\"\\\/\b\f\n\r\t"]}}`, "[1,\n\t\r 2]", `"12345678\n"`, `"1234567é"`,
}

// FuzzParse: no panic; what we take, encoding/json and jsontext take too, and
// the tree is the one that encoding/json builds with UseNumber.
func FuzzParse(f *testing.F) {
	for _, text := range corpus {
		f.Add(text)
	}
	f.Add(strings.Repeat("[", 70))
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(text, Limits{})
		if err != nil {
			if got != nil {
				t.Fatalf("a refused text gave %v", got)
			}
			checkMessage(t, err.Error())
			if _, err := Members(text, Limits{}); err == nil {
				t.Fatal("Members takes what Parse refuses")
			}
			return
		}
		var want any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("encoding/json refuses: %v", err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("tree %#v, encoding/json builds %#v", got, want)
		}
		if !jsontext.Value(text).IsValid() {
			t.Fatal("jsontext refuses")
		}
		back, err := Parse(string(Canonical(got, nil)), Limits{Bytes: -1})
		if err != nil || !Equal(back, got) {
			t.Fatalf("canonical text comes back as %v, %v", back, err)
		}
		CaseTwins(got)
		if members, err := Members(text, Limits{}); err == nil {
			for _, m := range members {
				if !Equal(mustParse(t, m.Value), got.(map[string]any)[m.Key]) {
					t.Fatalf("member %q differs", m)
				}
			}
		}
	})
}

// FuzzParseRefusals: what jsontext takes and we refuse is refused for a limit
// or for a byte order mark, never for the grammar.
func FuzzParseRefusals(f *testing.F) {
	for _, text := range corpus {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !jsontext.Value(text).IsValid() {
			return
		}
		_, err := Parse(text, Limits{})
		if err == nil {
			return
		}
		switch syntax := err.(*SyntaxError); syntax.Kind {
		case KindSize, KindDepth, KindNumber:
		default:
			t.Fatalf("jsontext takes it, we do not: %v", err)
		}
	})
}

// FuzzAppendString: the literal decodes back to the same string, for us and
// for encoding/json.
func FuzzAppendString(f *testing.F) {
	for _, text := range corpus {
		f.Add(text)
	}
	f.Add("12345678\x00\x1f\x7f\u2028\U0010ffff")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\ufffd")
		literal := string(AppendString([]byte("x"), s))
		if literal[0] != 'x' {
			t.Fatal("does not append")
		}
		literal = literal[1:]
		v, err := Parse(literal, Limits{Bytes: -1})
		if err != nil || v != s {
			t.Fatalf("%q came back as %q, %v", s, v, err)
		}
		var other string
		if err := json.Unmarshal([]byte(literal), &other); err != nil || other != s {
			t.Fatalf("encoding/json reads %q, %v", other, err)
		}
	})
}
