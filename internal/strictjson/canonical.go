package strictjson

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Equal reports whether a and b are the same JSON value: the same type, the
// same members whatever their order, and numbers with the same text. So 1,
// 1.0, "1", true and null all differ, as do a null member and an absent one.
// Strings are compared byte by byte, without Unicode normalisation. A value
// that Parse cannot build equals nothing.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case string:
		b, ok := b.(string)
		return ok && a == b
	case json.Number:
		b, ok := b.(json.Number)
		return ok && a == b
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalObjects(a, b)
	}
	return false
}

func equalObjects(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		w, ok := b[key]
		if !ok || !Equal(v, w) {
			return false
		}
	}
	return true
}

// Canonical appends to dst the one text of v: no blanks, keys sorted by their
// bytes, strings as [AppendString] writes them, numbers by their own text.
// There is no locale and no normalisation. Two values of Parse have the same
// text exactly if they are [Equal]. It is a scheme of ours and not RFC 8785,
// which sorts by UTF-16 and passes numbers through float64. Canonical panics
// on a value that Parse cannot build: a text for it could stand for another.
func Canonical(v any, dst []byte) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		if v {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case string:
		return AppendString(dst, v)
	case json.Number:
		return append(dst, v...)
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = Canonical(item, dst)
		}
		return append(dst, ']')
	case map[string]any:
		return canonicalObject(v, dst)
	}
	panic(fmt.Sprintf("strictjson: canonical text of a %T, which is not a JSON value of this package", v))
}

func canonicalObject(obj map[string]any, dst []byte) []byte {
	var room [16]string
	keys := room[:0]
	for key := range obj {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, key), ':')
		dst = Canonical(obj[key], dst)
	}
	return append(dst, '}')
}
