package audit

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/ringi-dev/ringi"
	"pgregory.net/rapid"
)

// encodeBody returns a payload.
func encodeBody(t testing.TB, body ringi.EventBody) []byte {
	t.Helper()
	c := newWriter()
	defer c.free()
	if err := c.body(body); err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(c.out)
}

// TestRoundTrip holds that every body of every kind comes back exactly, by our
// own reader and by the JSON library under the tags of its type, which knows
// each member that was written.
func TestRoundTrip(t *testing.T) {
	for _, body := range bodies() {
		t.Run(string(body.Kind()), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v := reflect.New(reflect.TypeOf(body).Elem())
				random(t, true).fill(v.Elem(), "")
				written := v.Interface().(ringi.EventBody)
				c := newWriter()
				defer c.free()
				if err := c.body(written); err != nil {
					t.Fatal(err)
				}
				payload := bytes.Clone(c.out)
				if !json.Valid(payload) {
					t.Fatalf("not JSON: %s", payload)
				}
				want := settled(v.Elem().Interface())

				var r codec
				own, err := decodeBody(&r, body.Kind(), payload)
				if err != nil || r.odd || r.pos != len(payload) {
					t.Fatalf("not read in our own spelling: %v\n%s", err, payload)
				}
				if got := settled(reflect.ValueOf(own).Elem().Interface()); !reflect.DeepEqual(got, want) {
					t.Fatalf("read\n%+v\nwant\n%+v\n%s", got, want, payload)
				}

				library := reflect.New(v.Type().Elem())
				if err := jsonv2.Unmarshal(payload, library.Interface(), spelling, jsonv2.RejectUnknownMembers(true)); err != nil {
					t.Fatalf("library: %v\n%s", err, payload)
				}
				if got := settled(library.Elem().Interface()); !reflect.DeepEqual(got, want) {
					t.Fatalf("library read\n%+v\nwant\n%+v\n%s", got, want, payload)
				}
			})
		})
	}
}

// TestSpellingIsThatOfTheTags compares with encoding/json byte for byte, where
// the two do not differ on purpose: the members, their order, and what is left
// out are the tags'.
func TestSpellingIsThatOfTheTags(t *testing.T) {
	plain := func(t *rapid.T) *filler {
		f := random(t, false)
		f.raw = func(string) string { return "" }
		drawn := f.at
		f.at = func() time.Time { // with six digits of the second, the last not 0
			if at := drawn(); !at.IsZero() {
				return at.Truncate(10 * time.Microsecond).Add(time.Microsecond)
			}
			return time.Time{}
		}
		return f
	}
	for _, body := range bodies() {
		t.Run(string(body.Kind()), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v := reflect.New(reflect.TypeOf(body).Elem())
				plain(t).fill(v.Elem(), "")
				c := newWriter()
				defer c.free()
				if err := c.body(v.Interface().(ringi.EventBody)); err != nil {
					t.Fatal(err)
				}
				clean := reflect.New(v.Type().Elem())
				clean.Elem().Set(reflect.ValueOf(settled(v.Elem().Interface())))
				compareWithStandard(t, c.out, clean.Interface())
			})
		})
	}
}

func compareWithStandard(t *rapid.T, got []byte, v any) {
	want, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(got), ".000000Z", "Z") // the zero time
	for _, empty := range []string{"results", "answers"} {   // lists that are always there
		want = bytes.ReplaceAll(want, []byte(`"`+empty+`":null`), []byte(`"`+empty+`":[]`))
	}
	if text != string(want) {
		t.Fatalf("we write\n%s\nencoding/json\n%s", text, want)
	}
}

func TestTextSpelling(t *testing.T) {
	for in, want := range map[string]string{
		"":                           `""`,
		"plain words":                `"plain words"`,
		"a\"b\\c/d":                  `"a\"b\\c/d"`,
		"\n\r\t\b\f\x00\x1f\x7f":     `"\n\r\t\u0008\u000c\u0000\u001f` + "\x7f\"",
		"<&>\u2028\u2029é😀":          "\"<&>\u2028\u2029é😀\"",
		"ééééééééé\n日本":              `"ééééééééé\n日本"`,
		"\xff":                       `{"b64":"_w"}`,
		"12345678\xff\x00":           `{"b64":"MTIzNDU2Nzj_AA"}`,
		"\xed\xa0\x80":               `{"b64":"7aCA"}`, // a surrogate in UTF-8
		strings.Repeat("a", 17):      `"` + strings.Repeat("a", 17) + `"`,
		"12345678901\"23":            `"12345678901\"23"`,
		"a\ufffdb":                   "\"a\ufffdb\"",
		`{"b64":"_w"}`:               `"{\"b64\":\"_w\"}"`,
		"\x80":                       `{"b64":"gA"}`,
		strings.Repeat("é", 3) + `"`: `"ééé\""`,
	} {
		if got := string(appendText(nil, in)); got != want {
			t.Errorf("appendText(%q) = %s, want %s", in, got, want)
		}
		c := codec{in: want}
		if got := c.readText(); got != in || c.odd || c.pos != len(want) {
			t.Errorf("readText(%s) = %q (odd %t), want %q", want, got, c.odd, in)
		}
	}
}

func TestTextRefused(t *testing.T) {
	for _, in := range []string{
		``, `"`, `"a`, `a"`, "\"\n\"", "\"aé\x01\"", "\"\xff\"", "\"12345678\xff\"", `"\`, `"\"`, `"\x"`, `"\u12"`, `"\u123g"`,
		`"\ud83d\ude00"`, `"\/"`, `{"b64":"_w`, `{"b64":"_w"`, `{"b64":"/w"}`, `{"b64":"_w=="}`, `{"b64":"_x"}`, `{"b64": "_w"}`,
		"{\"b64\":\"_\nw\"}", `{}`, `null`, `1`,
	} {
		c := codec{in: in}
		if got := c.readText(); !c.odd {
			t.Errorf("readText(%s) = %q, want it refused", in, got)
		}
	}
}

func TestPlainPrefixIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.OneOf(rapid.ByteRange(0x20, 0x7e), rapid.Byte()), 0, 40).Draw(t, "bytes")
		want := 0
		for want < len(b) && b[want] >= 0x20 && b[want] < 0x7f && b[want] != '"' && b[want] != '\\' {
			want++
		}
		if got := plainPrefix(b); got != want {
			t.Fatalf("plainPrefix(%q) = %d, want %d", b, got, want)
		}
		if got := plainPrefix(string(b)); got != want {
			t.Fatalf("plainPrefix(%q) of a string = %d, want %d", b, got, want)
		}
	})
}

func TestWholeNumber(t *testing.T) {
	for in, want := range map[string]struct {
		n    int64
		size int
	}{
		"0": {0, 1}, "7,": {7, 1}, "-7}": {-7, 2}, "123456789012345678": {123456789012345678, 18},
		"9223372036854775807": {math.MaxInt64, 19}, "-9223372036854775808": {math.MinInt64, 20},
		"-922337203685477580": {-922337203685477580, 19}, "1000000000000000000": {1000000000000000000, 19},
		"9223372036854775808": {0, 0}, "-9223372036854775809": {0, 0}, "99999999999999999999": {0, 0},
		"": {0, 0}, "-": {0, 0}, "+1": {0, 0}, "01": {0, 0}, "-0": {0, 0}, "-01": {0, 0}, "x": {0, 0},
	} {
		if n, size := wholeNumber(in); n != want.n || size != want.size {
			t.Errorf("wholeNumber(%s) = %d, %d, want %d, %d", in, n, size, want.n, want.size)
		}
	}
	// What stands behind the longest number makes another number of it.
	c := codec{in: "123456789012345678901"}
	if c.readNumber(); !c.odd {
		t.Error("a number of 21 digits was read")
	}
}

func TestTimeSpelling(t *testing.T) {
	at := time.Date(2024, 2, 29, 23, 59, 59, 999999999, time.FixedZone("", -3600))
	const text = `"2024-03-01T00:59:59.999999Z"`
	if got := string(appendTime(nil, at)); got != text {
		t.Errorf("appendTime = %s, want %s", got, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMicro(rapid.Int64Range(minAt, maxAt).Draw(t, "at"))
		if got, want := string(appendTime(nil, at)), at.UTC().Format(timeLayout); got != want {
			t.Errorf("appendTime = %s, want %s", got, want)
		}
	})
	c := codec{in: text}
	if got := c.readTime(); !got.Equal(at.Truncate(time.Microsecond)) || c.odd || got.Location() != time.UTC {
		t.Errorf("readTime = %v, odd %t", got, c.odd)
	}
	for _, in := range []string{
		``, `""`, `"2024-02-29T23:59:59Z"`, `"2023-02-29T00:00:00.000000Z"`, `"2024-13-01T00:00:00.000000Z"`,
		`"2024-00-01T00:00:00.000000Z"`, `"2024-01-00T00:00:00.000000Z"`, `"2024-01-01T24:00:00.000000Z"`,
		`"2024-01-01T00:60:00.000000Z"`, `"2024-01-01T00:00:60.000000Z"`, `"2024-01-01t00:00:00.000000Z"`,
		`"2024-01-01T00:00:00.00000xZ"`, `"2024-01-01T00:00:00.000000z"`, `2024-01-01T00:00:00.000000Z  `,
	} {
		c := codec{in: in}
		if got := c.readTime(); !c.odd {
			t.Errorf("readTime(%s) = %v, want it refused", in, got)
		}
	}
}

// TestF130_OtherSpellingsAreRead holds that a payload of an older or a newer
// program, or one that was written by another hand, is read all the same.
func TestF130_OtherSpellingsAreRead(t *testing.T) {
	want := &ringi.ToolFinished{Results: []ringi.FinishedCall{{
		Call: "call_1", Outcome: ringi.OutcomeOK, Output: "\xff/", Duration: 5,
	}}}
	for name, payload := range map[string]string{
		"our own":        `{"results":[{"call":"call_1","outcome":"ok","output":{"b64":"_y8"},"duration":5}]}`,
		"blanks":         ` { "results" : [ { "call":"call_1","outcome":"ok","output":{"b64":"_y8"},"duration":5 } ] } `,
		"another order":  `{"results":[{"outcome":"ok","duration":5,"call":"call_1","output":{"b64":"_y8"}}]}`,
		"unknown member": `{"later":{"a":[1]},"results":[{"call":"call_1","outcome":"ok","output":{"b64":"_y8"},"cost":1.5,"duration":5}]}`,
		"other escapes":  `{"results":[{"call":"\u0063all_1","outcome":"ok","output":{"b64":"_y8"},"duration":5}]}`,
	} {
		var c codec
		got, err := decodeBody(&c, ringi.EventToolFinished, []byte(payload))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}

	// A member that is always written today and was not known then is zero:
	// who needs it asks again.
	var c codec
	got, err := decodeBody(&c, ringi.EventApprovalDecided, []byte(`{"request":"req_1","answer":"deny","by":{"id":"u"},"at":"2026-01-02T03:04:05Z"}`))
	if err != nil {
		t.Fatal(err)
	}
	if d := got.(*ringi.ApprovalDecided); d.Answer != ringi.Deny || d.Digest != "" || !d.At.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("older decision: %+v", d)
	}
	got, err = decodeBody(&c, ringi.EventRunStarted, []byte(`{"thread":"t","limits":{"tool_timeout":30000000000},"runtime":{"b64":"_w"}, "x":0}`))
	if err != nil {
		t.Fatal(err)
	}
	if s := got.(*ringi.RunStarted); s.Limits.ToolTimeout != 30*time.Second || string(s.Runtime) != "\xff" {
		t.Errorf("older start: %+v", s)
	}
}

func TestPayloadRefused(t *testing.T) {
	for _, payload := range []string{
		``, ` `, `null`, `[]`, `"a"`, `1`, `{`, `{}}`, `{"call":1}`, `{"call":null,"call":"a"}`, `{"call":"a","call":"b"}`,
		`{"call":{}}`, `{"call":{"b64":"!"}}`, `{"attempt":1.5}`, `{"attempt":"1"}`, `{"attempt":9223372036854775808}`, "{\"call\":\"\xff\"}",
		`{"call":"a"} {}`, `{,"call":"a","tool":"t","effect":"","attempt":1,"key":"k","input":"i"}`,
		`{"call":"a","tool":"t","effect":"","attempt":1,"key":"k","input":"i",}`,
		`{"call":"a";"tool":"t","effect":"","attempt":1,"key":"k","input":"i"}`,
		`{"call":"a""tool":"t","effect":"","attempt":1,"key":"k","input":"i"}`,
		`{"call":"a","tool":"t","effect":"","attempt":1,"key":"k","input":"i"`,
	} {
		var c codec
		if got, err := decodeBody(&c, ringi.EventToolStarted, []byte(payload)); err == nil {
			t.Errorf("%s was read as %+v", payload, got)
		}
	}
	var c codec
	for _, kind := range []ringi.EventKind{"", "tool_begun", ringi.EventTextDelta, ringi.EventRunWaiting} {
		if _, err := decodeBody(&c, kind, []byte(`{}`)); err == nil {
			t.Errorf("kind %q was read", kind)
		}
	}
}

// TestRuntimeBytesStay holds that JSON text which a library would rewrite
// comes back byte for byte.
func TestRuntimeBytesStay(t *testing.T) {
	for _, text := range []string{`{"a": 1.0, "é":"\u00e9\/", "n":1e2 }`, "[\n]", "not JSON", "\xff\x00"} {
		payload := encodeBody(t, &ringi.RunStarted{Runtime: json.RawMessage(text)})
		for name, payload := range map[string][]byte{"own": payload, "library": append([]byte(" "), payload...)} {
			var c codec
			got, err := decodeBody(&c, ringi.EventRunStarted, payload)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if back := string(got.(*ringi.RunStarted).Runtime); back != text {
				t.Errorf("%s: runtime %q came back as %q", name, text, back)
			}
		}
	}
}

func TestYearsThatHaveAForm(t *testing.T) {
	for _, tt := range []struct {
		at time.Time
		ok bool
	}{
		{time.Time{}, true}, {time.UnixMicro(minAt), true}, {time.UnixMicro(minAt - 1), false},
		{time.UnixMicro(maxAt).Add(999), true}, {time.UnixMicro(maxAt + 1), false},
		{time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), true}, {time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), false},
		{time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), true}, {time.Date(-1, 12, 31, 23, 59, 59, 999999999, time.UTC), false},
		{time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600)), false}, {time.Unix(math.MaxInt64, 0), false},
	} {
		if got := writable(tt.at); got != tt.ok {
			t.Errorf("writable(%v) = %t", tt.at, got)
		}
	}
}

func FuzzPayload(f *testing.F) {
	for i, body := range bodies() {
		full().fill(reflect.ValueOf(body).Elem(), "")
		f.Add(uint8(i), encodeBody(f, body))
	}
	f.Add(uint8(9), []byte(`{"call":{"b64":"_w"},"tool":"\u0000","effect":"","attempt":-1,"key":"","input":""}`))
	kinds := bodies()
	f.Fuzz(func(t *testing.T, kind uint8, payload []byte) {
		body := kinds[int(kind)%len(kinds)]
		var c codec
		got, err := decodeBody(&c, body.Kind(), payload)
		own := !c.odd && c.pos == len(c.in)
		if err != nil {
			if own {
				t.Fatalf("read in our spelling, but %v", err)
			}
			return
		}
		if own { // the library must read the same
			library := reflect.New(reflect.TypeOf(body).Elem())
			if err := decodeOther(payload, library.Interface()); err != nil {
				t.Fatalf("only our own reader takes it: %v", err)
			}
			if !reflect.DeepEqual(settled(library.Elem().Interface()), settled(reflect.ValueOf(got).Elem().Interface())) {
				t.Fatalf("read\n%+v\nby the library\n%+v", got, library)
			}
		}
		w := newWriter()
		defer w.free()
		if err := w.body(got); err != nil {
			return // a year that has no form
		}
		again, err := decodeBody(&c, body.Kind(), w.out)
		if err != nil || c.odd {
			t.Fatalf("what was written again is not ours: %v\n%s", err, w.out)
		}
		first := bytes.Clone(w.out)
		w.out = w.out[:0]
		if err := w.body(again); err != nil || !bytes.Equal(w.out, first) {
			t.Fatalf("not stable: %v\n%s\n%s", err, first, w.out)
		}
	})
}
