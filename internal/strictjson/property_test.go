package strictjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// values draws trees as Parse builds them.
func values(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?`), func(s string) any { return json.Number(s) }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
	)
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(
		leaf,
		rapid.Map(rapid.SliceOfN(values(depth-1), 0, 4), func(l []any) any { return append([]any{}, l...) }),
		rapid.Map(rapid.MapOfN(keys(), values(depth-1), 0, 12), func(m map[string]any) any { return m }),
	)
}

func keys() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"a", "A", "b", "", "\u00e9", "\u00c9", "k", "K", "\u212a", "s", "\u017f"}))
}

func TestProperty_CanonicalComesBackEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "v")
		text := Canonical(v, nil)
		got, err := Parse(string(text), Limits{})
		if err != nil {
			t.Fatalf("own text %q: %v", text, err)
		}
		if !Equal(got, v) || !Equal(v, got) {
			t.Fatalf("%#v came back as %#v", v, got)
		}
		if again := Canonical(got, nil); !bytes.Equal(again, text) {
			t.Fatalf("second text %q differs from %q", again, text)
		}
	})
}

func TestProperty_EqualExactlyIfSameCanonicalText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := values(2).Draw(t, "a"), values(2).Draw(t, "b")
		same := bytes.Equal(Canonical(a, nil), Canonical(b, nil))
		if Equal(a, b) != same || Equal(b, a) != same {
			t.Fatalf("Equal and Canonical differ about %#v and %#v", a, b)
		}
	})
}

func TestProperty_BlanksAndOrderDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "v")
		// encoding/json sorts in its own way, escapes more and indents.
		text, err := json.MarshalIndent(v, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(string(text), Limits{})
		if err != nil {
			t.Fatalf("parse %q: %v", text, err)
		}
		if !Equal(got, v) {
			t.Fatalf("%q is not equal to %#v", text, v)
		}
	})
}

func TestProperty_FoldIsEqualFold(t *testing.T) {
	letters := rapid.SampledFrom([]rune("aAkK\u212AsSſǅǆǄßẞσςΣiIİıéÉ"))
	words := rapid.Map(rapid.SliceOfN(letters, 0, 3), func(r []rune) string { return string(r) })
	rapid.Check(t, func(t *rapid.T) {
		a, b := words.Draw(t, "a"), words.Draw(t, "b")
		if (fold(a) == fold(b)) != strings.EqualFold(a, b) {
			t.Fatalf("fold differs from EqualFold about %q and %q", a, b)
		}
	})
}

func TestProperty_AppendStringComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching("[\x00-\x20\"\\\\a-cé\u2028]{0,40}")).Draw(t, "s")
		if got := mustParse(t, string(AppendString(nil, s))); got != s {
			t.Fatalf("%q came back as %q", s, got)
		}
	})
}

func TestProperty_MembersMakeUpTheObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := rapid.MapOfN(keys(), values(2), 0, 6).Draw(t, "obj")
		text, err := json.MarshalIndent(obj, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		members, err := Members(string(text), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		again := map[string]any{}
		for _, m := range members {
			again[m.Key] = mustParse(t, m.Value)
		}
		if len(members) != len(obj) || !Equal(again, obj) {
			t.Fatalf("%s gave %q", text, members)
		}
	})
}

func TestAppendString_CopiesBadBytesAsTheyAre(t *testing.T) {
	literal := AppendString(nil, "a\xffb")
	if string(literal) != "\"a\xffb\"" || utf8.Valid(literal) {
		t.Errorf("got %q", literal)
	}
	if _, err := Parse(string(literal), Limits{}); err == nil {
		t.Error("a bad literal is taken")
	}
}

func TestAppendString_DoesNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 256)
	s := strings.Repeat("line\n\"é\" \x01", 8)
	if n := testing.AllocsPerRun(100, func() { dst = AppendString(dst[:0], s) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
