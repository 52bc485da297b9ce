package ringi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

func tellingTool(properties string) ringi.Tool {
	return ringi.Tool{Name: "pay",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"amount":{"type":"integer"},"code":{"type":"string"},
			"pin":{"type":"string","format":"password"},"where":{}},"additionalProperties":false}`),
		InputRequired: json.RawMessage(`{"type":"object","additionalProperties":false,"$defs":{"open":{"type":"string"},"pin":{"writeOnly":true}},
			"properties":{` + properties + `}}`)}
}

// S-13: the schema says key by key whether the model is told a value, and a
// mark that cannot be meant is refused when the tool is registered.
func TestS13_TellModelMark(t *testing.T) {
	for _, tt := range []struct {
		properties string
		told       string // of code, amount, other
		fault      string // empty: none
	}{
		{`"amount":{"type":"integer","x-tell-model":true},"code":{"type":"string"}`, "[amount]", ""},
		{`"amount":{"x-tell-model":true},"code":{"x-tell-model":true}`, "[code amount]", ""},
		{`"amount":{"x-tell-model":false},"code":{"x-tell":true,"X-Tell-Model":true}`, "[]", ""},
		{`"amount":{"x-tell-model":"true"}`, "", `"amount": x-tell-model is true or false`},
		{`"amount":{"x-tell-model":1}`, "", "is true or false"},
		{`"amount":{"x-tell-model":null}`, "", "is true or false"},
		{`"code":{"x-tell-model":true,"writeOnly":true}`, "", `"code": x-tell-model on a value that is a secret`},
		{`"code":{"x-tell-model":true,"format":"password"}`, "", "is a secret"},
		{`"code":{"x-tell-model":true,"anyOf":[{"x-sensitive":true}]}`, "", "is a secret"},
		{`"code":{"x-tell-model":false,"writeOnly":true}`, "[]", ""},
		{`"pin":{"x-tell-model":true}`, "", "is a secret"},                        // in the tool's own schema
		{`"where":{"x-tell-model":true,"$ref":"#/$defs/pin"}`, "", "is a secret"}, // by a reference
		{`"where":{"type":"object","properties":{"amount":{"x-tell-model":true}}},"amount":{}`, "[]", ""},
		{`"amount":{"allOf":[{"x-tell-model":true}]}`, "[]", ""}, // not the property's own
	} {
		r := ringi.NewRegistry()
		err := r.Add(tellingTool(tt.properties), nothing)
		switch {
		case tt.fault != "":
			if err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%s: %v, want %q", tt.properties, err, tt.fault)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.properties, err)
		default:
			supplied := []string{"code", "amount", "other"}
			if got := fmt.Sprint(r.Told("pay", supplied)); got != tt.told {
				t.Errorf("%s: told %s, want %s", tt.properties, got, tt.told)
			}
			if !slices.Equal(supplied, []string{"code", "amount", "other"}) {
				t.Error("the keys were changed")
			}
		}
	}
	if told := ringi.NewRegistry().Told("pay", []string{"amount"}); told != nil {
		t.Errorf("of an unknown tool: %q", told)
	}
}

// The mark is a part of the definition: a request of before it is asked anew.
func TestS13_TellModelIsPartOfTheDefinition(t *testing.T) {
	with, without := ringi.NewRegistry(), ringi.NewRegistry()
	mustAdd(t, with, tellingTool(`"amount":{"x-tell-model":true}`))
	mustAdd(t, without, tellingTool(`"amount":{}`))
	if with.Digest("pay") == without.Digest("pay") {
		t.Error("both have one digest")
	}
	tool, _ := with.Tool("pay")
	if !strings.Contains(string(tool.InputRequired), `"x-tell-model":true`) {
		t.Errorf("the mark is lost: %s", tool.InputRequired)
	}
}
