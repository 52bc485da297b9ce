package ringi

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

type withMethod string

func (*withMethod) UnmarshalText([]byte) error { return nil }

type holdsItself struct{ Next *holdsItself }

// A type that an option could reach is decoded and encoded with it.
func TestPlainTypes(t *testing.T) {
	type inner struct {
		N *int64
		L []string
		A [2]float64
	}
	for v, want := range map[any]bool{
		reflect.TypeFor[struct {
			S string `json:"s"`
			I []inner
		}](): true,
		reflect.TypeFor[[]byte]():                                 true,
		reflect.TypeFor[any]():                                    false,
		reflect.TypeFor[struct{ V any }]():                        false,
		reflect.TypeFor[struct{ V []map[string]any }]():           false,
		reflect.TypeFor[map[string]string]():                      false,
		reflect.TypeFor[json.Number]():                            false,
		reflect.TypeFor[struct{ N *json.Number }]():               false,
		reflect.TypeFor[json.RawMessage]():                        false,
		reflect.TypeFor[time.Time]():                              false,
		reflect.TypeFor[withMethod]():                             false,
		reflect.TypeFor[struct{ V withMethod }]():                 false,
		reflect.TypeFor[holdsItself]():                            false,
		reflect.TypeFor[struct{ F func() }]():                     false,
		reflect.TypeFor[struct{ F interface{ M() } }]():           false,
		reflect.TypeFor[struct{ inner }]():                        true,
		reflect.TypeFor[struct{ A, B struct{ V json.Number } }](): false,
	} {
		if got := plainType(v.(reflect.Type)); got != want {
			t.Errorf("%v: %v", v, got)
		}
	}
}

// What a plain type is decoded to, and what is refused, is the same with and
// without the options.
func FuzzDecodePlain(f *testing.F) {
	type in struct {
		ID   string `json:"id"`
		N    int64  `json:"n"`
		List []struct {
			X *float64 `json:"x"`
			B bool
		} `json:"list"`
	}
	for _, s := range []string{`{"id":"A","n":3}`, `{"ID":"A"}`, `{"id":"A","id":"B"}`, `{"n":1.5}`, `{"n":9223372036854775808}`, `{"list":[{"x":1e2,"B":true},null]}`, `{"id":"\ud800"}`, `{} x`, `null`} {
		f.Add(s)
	}
	decode := decoderOf[in]()
	f.Fuzz(func(t *testing.T, s string) {
		var a, b in
		errA, errB := decode([]byte(s), &a), decodeExact([]byte(s), &b)
		if (errA == nil) != (errB == nil) || errA != nil && errA.Error() != errB.Error() || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %+v %v, with options %+v %v", s, a, errA, b, errB)
		}
	})
}
