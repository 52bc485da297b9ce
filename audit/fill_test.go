package audit

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"pgregory.net/rapid"
)

// A failure prints its seed; a file beside it would only get into the tree.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// bodies returns an empty body of every kind of the log.
func bodies() []ringi.EventBody {
	return []ringi.EventBody{
		&ringi.RunStarted{}, &ringi.ModelResponded{}, &ringi.CallJudged{}, &ringi.ApprovalRequested{},
		&ringi.InputProposed{}, &ringi.InputRefused{}, &ringi.ApprovalDecided{}, &ringi.ApprovalTakenBack{},
		&ringi.RequestClosed{}, &ringi.ToolStarted{}, &ringi.ToolFinished{}, &ringi.OutcomeUnknown{},
		&ringi.OutcomeSettled{}, &ringi.CancelRequested{}, &ringi.RunFinished{}, &ringi.RunErased{},
	}
}

// filler puts a value into every field of a body, found by reflection, so that
// a field which the codec forgets cannot pass.
type filler struct {
	text  func(field string) string
	raw   func(field string) string
	whole func() int64
	fact  func() bool
	at    func() time.Time
	size  func() int // of a list
	some  func() bool
}

func (f *filler) fill(v reflect.Value, field string) {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = f.at()
		return
	case *json.RawMessage:
		*p = json.RawMessage(f.raw(field))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text(field))
	case reflect.Int, reflect.Int64:
		v.SetInt(f.whole())
	case reflect.Bool:
		v.SetBool(f.fact())
	case reflect.Pointer:
		if f.some() {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), field)
		}
	case reflect.Slice:
		n := f.size()
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i), field)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			f.fill(v.Field(i), name)
		}
	default:
		panic(fmt.Sprintf("%s: kind %s", field, v.Kind()))
	}
}

// full returns a filler without chance: every field is set, and no two alike.
func full() *filler {
	n := int64(0)
	next := func() int64 { n++; return n }
	return &filler{
		text:  func(field string) string { return fmt.Sprintf("%s-%d", field, next()) },
		raw:   func(field string) string { return fmt.Sprintf(`{"%s": %d.0, "\u00e9": "<\/>"}`, field, next()) },
		whole: next,
		fact:  func() bool { return true },
		at:    func() time.Time { return benchTime.Add(time.Duration(next()) * time.Minute) },
		size:  func() int { return 2 },
		some:  func() bool { return true },
	}
}

// nasty are strings that codecs get wrong.
var nasty = []string{
	"", "a", "\x00", "\x1f\x7f", `"`, `\`, `\u0041`, "\n\r\t\b\f", "\u2028\u2029", "é", "日本語の稟議", "😀", "\U0010ffff", "\ufffd",
	"<&>", "/", "\xff", "ok\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", `{"b64":"AA"}`, "true", "null", "0123456789abcdef\"",
	`{"reservation_id":"GV1N64","note":"a \"quoted\" word\n"}`, strings.Repeat("x", 100), strings.Repeat("é", 40) + "\xff",
}

// random returns a filler that draws everything. Without nasty it draws short
// words only.
func random(t *rapid.T, withNasty bool) *filler {
	word := rapid.StringMatching(`[a-z_]{0,12}`)
	wild := rapid.OneOf(
		rapid.SampledFrom(nasty), rapid.String(), word,
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 24), func(b []byte) string { return string(b) }),
	)
	draw := func(field string) string {
		if withNasty {
			return wild.Draw(t, field)
		}
		return word.Draw(t, field)
	}
	times := rapid.Int64Range(minAt, maxAt)
	flip := func() bool { return rapid.Bool().Draw(t, "bool") }
	return &filler{
		text: draw,
		raw:  draw,
		whole: func() int64 {
			return rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(-9, 999), rapid.Int64()).Draw(t, "whole")
		},
		fact: flip,
		at: func() time.Time {
			if flip() {
				return time.Time{}
			}
			return time.UnixMicro(times.Draw(t, "time")).UTC()
		},
		size: func() int { return rapid.IntRange(0, 3).Draw(t, "size") },
		some: flip,
	}
}

// settled returns a copy of *v as it comes back: without what its tags leave
// out.
func settled[T any](v T) T {
	value := reflect.New(reflect.TypeOf(v)).Elem()
	value.Set(reflect.ValueOf(v))
	leaveOut(value)
	return value.Interface().(T)
}

func leaveOut(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			copied := reflect.New(v.Type().Elem())
			copied.Elem().Set(v.Elem())
			leaveOut(copied.Elem())
			v.Set(copied)
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.SetZero()
			return
		}
		copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(copied, v)
		for i := range copied.Len() {
			leaveOut(copied.Index(i))
		}
		v.Set(copied)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			field := v.Field(i)
			zero, ok := field.Interface().(interface{ IsZero() bool })
			if ok && strings.Contains(v.Type().Field(i).Tag.Get("json"), "omitzero") && zero.IsZero() {
				field.SetZero()
			}
			leaveOut(field)
		}
	}
}

// safe puts ids that a header takes in the place of those of a body.
func safe(body ringi.EventBody, id string) {
	switch v := body.(type) {
	case *ringi.RunStarted:
		v.By.ID = id
	case *ringi.CallJudged:
		v.Call.ID = id
	case *ringi.ApprovalRequested:
		v.Call, v.Request, v.Digest = id, id, id
	case *ringi.InputProposed:
		v.Request, v.By.ID, v.Answer, v.Digest = id, id, ringi.Edit, id
	case *ringi.InputRefused:
		v.Request = id
	case *ringi.ApprovalDecided:
		v.Request, v.By.ID, v.Answer, v.Digest = id, id, ringi.Approve, id
	case *ringi.ApprovalTakenBack:
		v.Request, v.By.ID = id, id
	case *ringi.RequestClosed:
		v.Request = id
	case *ringi.ToolStarted:
		v.Call, v.Request = id, id
	case *ringi.ToolFinished:
		if len(v.Results) == 1 {
			v.Results[0].Call = id
		}
	case *ringi.OutcomeUnknown:
		v.Call, v.Request.Request, v.Request.Digest = id, id, id
	case *ringi.OutcomeSettled:
		v.Call, v.Request, v.By.ID, v.Answer, v.Digest = id, id, id, ringi.Ran, id
	case *ringi.CancelRequested:
		v.By.ID = id
	case *ringi.RunErased:
		v.By.ID = id
	}
}

func mustAppend(t testing.TB, c Chain, bodies ...ringi.EventBody) ([]ringi.Record, Chain) {
	t.Helper()
	records, next, err := c.Append(nil, benchTime, 1, bodies...)
	if err != nil {
		t.Fatal(err)
	}
	return records, next
}
