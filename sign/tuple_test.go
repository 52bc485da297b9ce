package sign

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTuple_Bytes(t *testing.T) {
	tests := []struct {
		name   string
		fields []string
		want   string
	}{
		{"none", nil, `[]`},
		{"one empty", []string{""}, `[""]`},
		{"two", []string{"a", "b"}, `["a","b"]`},
		{"quote and backslash", []string{`a"b`, `\`, `\"`}, `["a\"b","\\","\\\""]`},
		{"looks like a tuple", []string{`a","b`}, `["a\",\"b"]`},
		{"slash and angle brackets stay", []string{"</a>&'"}, `["</a>&'"]`},
		{"beyond ASCII stays", []string{"zoë", "日本", "\U0001f980", "\u00a0", "\ufffd", "\ufeff"}, "[\"zoë\",\"日本\",\"\U0001f980\",\"\u00a0\",\"\ufffd\",\"\ufeff\"]"},
		{"edges of the controls", []string{" ~\u00a0", "\u2027\u202a"}, "[\" ~\u00a0\",\"\u2027\u202a\"]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Tuple([]byte("before "), tt.fields...)
			if err != nil {
				t.Fatal(err)
			}
			if want := "before " + tt.want; string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if again, _ := Tuple(nil, tt.fields...); string(again) != tt.want {
				t.Errorf("second time: %s", again)
			}
		})
	}
}

func TestS39_FieldsThatCannotBeSigned(t *testing.T) {
	tests := []struct{ name, field, reason string }{
		{"bare byte", "a\xffb", reasonUTF8},
		{"cut rune", "a\xe2\x82", reasonUTF8},
		{"overlong slash", "\xc0\xaf", reasonUTF8},
		{"surrogate half", "\xed\xa0\x80", reasonUTF8},
		{"beyond Unicode", "\xf4\x90\x80\x80", reasonUTF8},
		{"NUL", "\x00", reasonControl},
		{"TAB", "a\tb", reasonControl},
		{"LF", "a\nb", reasonControl},
		{"CR", "a\r", reasonControl},
		{"ESC", "\x1b[2J", reasonControl},
		{"unit separator", "\x1f", reasonControl},
		{"DEL", "\x7f", reasonControl},
		{"first of C1", "\u0080", reasonControl},
		{"next line", "\u0085", reasonControl},
		{"CSI", "\u009b2J", reasonControl},
		{"last of C1", "\u009f", reasonControl},
		{"line separator", "\u2028", reasonSeparator},
		{"paragraph separator", "a\u2029b", reasonSeparator},
	}
	ring := testRing(t, 1)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Tuple([]byte("kept"), "good", tt.field, "good")
			wantFieldError(t, err, 1, tt.reason)
			if string(got) != "kept" {
				t.Errorf("dst came back as %q", got)
			}
			if strings.Contains(err.Error(), tt.field) {
				t.Errorf("the error shows the field: %q", err)
			}

			_, err = ring.SignRequest(tt.field, "digest")
			wantFieldError(t, err, 2, tt.reason)
			_, err = ring.SignRequest("store", tt.field)
			wantFieldError(t, err, 3, tt.reason)
			d := testDecision()
			d.Decider = tt.field
			_, err = ring.SignDecision(d)
			wantFieldError(t, err, 7, tt.reason)
			_, _, err = ring.SignCommit(nil, "store", tt.field, 1, [32]byte{})
			wantFieldError(t, err, 3, tt.reason)
			_, err = ring.Sign(PurposeCursor, "a", "b", tt.field)
			wantFieldError(t, err, 4, tt.reason)
			_, err = Digest("label-v1", "a", tt.field)
			wantFieldError(t, err, 2, tt.reason)
			_, err = IdempotencyKey("run_1", 1, 1, tt.field, "{}")
			wantFieldError(t, err, 4, tt.reason)

			good, _ := ring.SignRequest("store", "digest")
			wantFieldError(t, ring.VerifyRequest(tt.field, "digest", good), 2, tt.reason)
		})
	}
}

// A refused field leaves nothing behind in what is reused.
func TestS39_RefusalDoesNotSpoilTheNext(t *testing.T) {
	ring := testRing(t, 1)
	want, err := ring.SignRequest("store", "digest")
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := ring.SignRequest("sto\nre", "dig\x00est"); err == nil {
			t.Fatal("signed")
		}
		got, err := ring.SignRequest("store", "digest")
		if err != nil || got != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
}

func TestS39_EmptyFieldsAreNotSigned(t *testing.T) {
	ring := testRing(t, 1)
	_, err := ring.SignRequest("", "digest")
	wantFieldError(t, err, 2, reasonEmpty)
	_, err = ring.SignRequest("store", "")
	wantFieldError(t, err, 3, reasonEmpty)
	wantFieldError(t, ring.VerifyRequest("store", "", "v1"), 3, reasonEmpty)
	_, _, err = ring.SignCommit(nil, "", "run", 1, [32]byte{})
	wantFieldError(t, err, 2, reasonEmpty)
	_, _, err = ring.SignCommit(nil, "store", "", 1, [32]byte{})
	wantFieldError(t, err, 3, reasonEmpty)
	_, _, err = ring.SignCommit(nil, "store", "run", -1, [32]byte{})
	wantFieldError(t, err, 4, reasonNegative)
}

func wantFieldError(t *testing.T, err error, index int, reason string) {
	t.Helper()
	var field *FieldError
	if !errors.As(err, &field) {
		t.Errorf("got %v, want a FieldError", err)
		return
	}
	if field.Index != index || field.Reason != reason {
		t.Errorf("got %v, want field %d: %s", field, index, reason)
	}
}

// signable draws texts that Tuple takes, with many of the characters that could
// confuse an encoding.
func signable() *rapid.Generator[string] {
	odd := []rune(`"\,[]{}:nu0 ` + "a\u00a0ë\u2027\u202e\U0001f980\ufffd")
	return rapid.OneOf(
		rapid.StringOfN(rapid.SampledFrom(odd), 0, 6, -1),
		rapid.Map(rapid.String(), func(s string) string {
			return strings.Map(func(r rune) rune {
				if r < 0x20 || r >= 0x7f && r <= 0x9f || r == 0x2028 || r == 0x2029 {
					return 'x'
				}
				return r
			}, s)
		}),
	)
}

// F03: with an encoding that is not injective a signature for one tuple is good
// for another.
func TestF03_TuplesDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(signable(), 0, 5).Draw(t, "a")
		b := rapid.SliceOfN(signable(), 0, 5).Draw(t, "b")
		checkTuples(t, a, b)
		checkTuples(t, a, []string{strings.Join(a, `","`)})
		checkTuples(t, append(slices.Clone(a), ""), a)
	})
}

// checkTuples holds the two properties: different tuples have different bytes,
// and neither begins with the other.
func checkTuples(t interface{ Fatalf(string, ...any) }, a, b []string) {
	x, errA := Tuple(nil, a...)
	y, errB := Tuple(nil, b...)
	if errA != nil || errB != nil {
		if !errors.As(errA, new(*FieldError)) && !errors.As(errB, new(*FieldError)) {
			t.Fatalf("untyped errors: %v, %v", errA, errB)
		}
		return
	}
	if slices.Equal(a, b) {
		if !bytes.Equal(x, y) {
			t.Fatalf("%q has two encodings: %s and %s", a, x, y)
		}
		return
	}
	if bytes.HasPrefix(x, y) || bytes.HasPrefix(y, x) {
		t.Fatalf("%q and %q: %s and %s", a, b, x, y)
	}
}

func FuzzTuple(f *testing.F) {
	f.Add("a", "b\nc", "a\nb", "c")
	f.Add(`a"`, `,"b`, `a`, `",",b`)
	f.Add("\\", "\"", "\\\"", "")
	f.Add("zoë", "\u2028", "\xff", "\U0001f980")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		checkTuples(t, []string{a, b}, []string{c, d})
		checkTuples(t, []string{a, b}, []string{a + b})
		checkTuples(t, []string{a, b, c}, []string{a, b + c})
		checkTuples(t, []string{a, b, c, d}, []string{a, b, c})

		got, err := Tuple(nil, a, b, c, d)
		if err != nil {
			return
		}
		var back []string
		if err := json.Unmarshal(got, &back); err != nil || !slices.Equal(back, []string{a, b, c, d}) {
			t.Fatalf("%s reads back as %q, %v", got, back, err)
		}
		// JSON.stringify's bytes, by the other implementation in this package.
		canonical, err := jsCanonical(string(got))
		if err != nil || !bytes.Equal(canonical, got) {
			t.Fatalf("%s is canonically %s, %v", got, canonical, err)
		}
	})
}
