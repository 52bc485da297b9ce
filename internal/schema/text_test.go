package schema

import (
	"testing"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

func TestAcceptsText(t *testing.T) {
	const order = `{"type":"object","properties":{"id":{"type":"string","minLength":2},"n":{"type":"integer","maximum":9},
		"tags":{"type":"array","items":{"enum":["a","b"]},"maxItems":2},"to":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},
		"gone":{"type":["null","boolean"]},"any":{}},"required":["id"],"additionalProperties":false}`
	for name, tt := range map[string]struct {
		schema, text string
		want         bool
	}{
		"all":                 {order, `{"id":"A-1","n":3,"tags":["a","b"],"to":{"name":"x"},"gone":null,"any":"x"}`, true},
		"blanks":              {order, " {\n\"id\" :\t\"A-1\" , \"tags\" : [ \"a\" ] } ", true},
		"escapes":             {order, `{"\u0069d":"\u00e9\n"}`, true},
		"empty array":         {order, `{"id":"A-1","tags":[]}`, true},
		"true":                {order, `{"id":"A-1","gone":true}`, true},
		"empty object":        {`{"type":"object","properties":{"a":{}}}`, `{}`, true},
		"no object":           {`{"properties":{"a":{}}}`, `[]`, false},
		"required is missing": {order, `{"n":3}`, false},
		"inner required":      {order, `{"id":"A-1","to":{}}`, false},
		"unknown key":         {order, `{"id":"A-1","x":1}`, false},
		"key of an open one":  {`{"type":"object","properties":{"a":{}}}`, `{"b":1}`, false},
		"repeated key":        {order, `{"id":"A-1","id":"A-2"}`, false},
		"repeated by escape":  {order, `{"id":"A-1","\u0069d":"A-2"}`, false},
		"too short":           {order, `{"id":"A"}`, false},
		"too large":           {order, `{"id":"A-1","n":10}`, false},
		"too many items":      {order, `{"id":"A-1","tags":["a","b","a"]}`, false},
		"wrong type":          {order, `{"id":7}`, false},
		"wrong literal":       {order, `{"id":"A-1","gone":nul}`, false},
		"comma before end":    {order, `{"id":"A-1",}`, false},
		"comma in an array":   {order, `{"id":"A-1","tags":["a",]}`, false},
		"cut":                 {order, `{"id":"A-1"`, false},
		"cut in a value":      {order, `{"id":`, false},
		"more behind":         {order, `{"id":"A-1"} x`, false},
		"byte order mark":     {order, "\uFEFF" + `{"id":"A-1"}`, false},
		"not UTF-8":           {order, "{\"id\":\"A\xff1\"}", false},
		"twins in the schema": {`{"type":"object","properties":{"id":{},"ID":{}}}`, `{"id":1,"ID":2}`, false},
		"twins inside":        {order, `{"id":"A-1","any":{"a":1,"A":2}}`, false},
		"too deep":            {`{"properties":{"a":{"properties":{"b":{"properties":{"c":{}}}}}}}`, `{"a":{"b":{"c":1}}}`, false},
		"too long":            {order, `{"id":"` + string(make([]byte, 200)) + `"}`, false},
	} {
		s, err := Compile([]byte(tt.schema))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.AcceptsText(tt.text, strictjson.Limits{Bytes: 128, Depth: 2}); got != tt.want {
			t.Errorf("%s: AcceptsText(%s) = %t", name, tt.text, got)
		}
	}
}

func TestAcceptsTextBuildsNothing(t *testing.T) {
	s, err := Compile([]byte(`{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"}},"required":["id"]}`))
	if err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(100, func() {
		if !s.AcceptsText(`{"id":"A-1017","n":3}`, strictjson.Limits{}) {
			t.Error("not accepted")
		}
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}
