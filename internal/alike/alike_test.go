package alike

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi/internal/mask"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

func TestS33_EqualValuesAlone(t *testing.T) {
	const plain, marks = `{"type":"object"}`, `{"properties":{"to":{"x-similar":true},"note":{},"pin":{"writeOnly":true}}}`
	for _, c := range []struct {
		name, schema, a, b string
		same               bool
	}{
		{"the same in another order", plain, `{"a":1,"b":"x"}`, `{"b":"x","a":1}`, true},
		{"another value", plain, `{"a":1,"b":"x"}`, `{"a":1,"b":"y"}`, false},
		{"a number of another type", plain, `{"a":1}`, `{"a":"1"}`, false},
		{"marked keys alone", marks, `{"to":"ana","note":"x"}`, `{"to":"ana","note":"y"}`, true},
		{"another marked value", marks, `{"to":"ana","note":"x"}`, `{"to":"ben","note":"x"}`, false},
		{"a secret that is no part of it", marks, `{"to":"ana","pin":"1"}`, `{"to":"ana","pin":"2"}`, true},
	} {
		a, b := word(t, c.schema, c.a), word(t, c.schema, c.b)
		if (a == b) != c.same || !strings.HasPrefix(a, "similar:") {
			t.Errorf("%s: %q, %q", c.name, a, b)
		}
	}
	if w := word(t, marks, `{"pin":"1"}`); w != "" {
		t.Errorf("a secret is part of %q", w)
	}
	if Word("pay", nil, nil, nil) != "" {
		t.Error("nothing is similar to nothing")
	}
	if w := word(t, plain, `{"headers":{"Authorization":"x"}}`); w != "" {
		t.Errorf("what is named a secret is part of %q", w)
	}
	if word(t, plain, `{}`) == "" {
		t.Error("a call without input has no word")
	}
}

func word(t *testing.T, schema, input string) string {
	t.Helper()
	v, err := strictjson.ParseObject(input, strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := mask.Keys(json.RawMessage(schema))
	return Word("pay", v, json.RawMessage(schema), keys)
}
