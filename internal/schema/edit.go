package schema

import (
	"slices"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// Without returns the text of a schema without some top-level properties, also
// out of required: what a model is offered when a person supplies them. The
// rest keeps its order and bytes; names that the schema does not list are
// passed over. A result with a reference into what was removed is refused.
// Every error is a *CompileError.
func Without(raw []byte, keys []string) ([]byte, error) {
	text := string(raw)
	if _, err := inspect(text); err != nil {
		return nil, err
	}
	members, err := strictjson.Members(text, strictjson.Limits{Bytes: MaxBytes, Depth: MaxDepth})
	if err != nil { // true or false: there is nothing to take away
		return slices.Clone(raw), nil
	}
	kept := members[:0]
	for _, m := range members {
		switch m.Key {
		case "properties":
			m.Value = withoutMembers(m.Value, keys)
		case "required":
			if m.Value = withoutNames(m.Value, keys); m.Value == "[]" {
				continue
			}
		}
		kept = append(kept, m)
	}
	out := appendMembers(nil, kept)
	if _, err := inspect(string(out)); err != nil {
		return nil, err
	}
	return out, nil
}

func withoutMembers(text string, keys []string) string {
	members := slices.DeleteFunc(membersOf(text), func(m strictjson.Member) bool { return slices.Contains(keys, m.Key) })
	return string(appendMembers(nil, members))
}

func withoutNames(text string, keys []string) string {
	v, err := strictjson.Parse(text, strictjson.Limits{Bytes: MaxBytes, Depth: MaxDepth})
	list, ok := v.([]any)
	if err != nil || !ok {
		return text
	}
	list = slices.DeleteFunc(list, func(item any) bool {
		name, ok := item.(string)
		return ok && slices.Contains(keys, name)
	})
	return string(strictjson.Canonical(list, nil))
}

func appendMembers(dst []byte, members []strictjson.Member) []byte {
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(strictjson.AppendString(dst, m.Key), ':')
		dst = append(dst, m.Value...)
	}
	return append(dst, '}')
}

// Canonical returns the one text of a schema, for the digest of a definition:
// blanks and the order of keys make no difference, all else does. It takes any
// strict JSON within MaxBytes and MaxDepth and does not look at its meaning.
// Every error is a *CompileError.
func Canonical(raw []byte) ([]byte, error) {
	v, err := strictjson.Parse(string(raw), strictjson.Limits{Bytes: MaxBytes, Depth: MaxDepth})
	if err != nil {
		return nil, unreadable(err)
	}
	return strictjson.Canonical(v, nil), nil
}
