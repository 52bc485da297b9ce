package ringi

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// numbersAsText decodes a number under `any` as json.Number, so that no digit
// is lost on the way from model to tool.
var numbersAsText = jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	*v = json.Number(text)
	return nil
}))

// decodeExact decodes JSON by exact names: `AMOUNT` is never taken for
// `amount` (encoding/json does so). Duplicate keys are errors.
func decodeExact(b []byte, v any) error {
	return jsonv2.Unmarshal(b, v, numbersAsText)
}

// decoderOf is decodeExact for one type: a plain one has no use for options.
func decoderOf[T any]() func([]byte, *T) error {
	if plainType(reflect.TypeFor[T]()) {
		return func(b []byte, v *T) error { return jsonv2.Unmarshal(b, v) }
	}
	return func(b []byte, v *T) error { return decodeExact(b, v) }
}

// plainType reports whether a type is made of booleans, numbers and strings, in
// structs, lists and pointers, and of nothing that has methods or decides at
// run time what it holds. No option for `any`, maps or json.Number reaches it.
func plainType(t reflect.Type) bool { return plainWithin(t, nil) }

func plainWithin(t reflect.Type, above []reflect.Type) bool {
	if t == reflect.TypeFor[json.Number]() || t.NumMethod() > 0 || reflect.PointerTo(t).NumMethod() > 0 || slices.Contains(above, t) {
		return false
	}
	above = append(above, t)
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			if !plainWithin(f.Type, above) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array, reflect.Pointer:
		return plainWithin(t.Elem(), above)
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}
