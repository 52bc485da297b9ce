package risk

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/escape"
)

func TestOf(t *testing.T) {
	reads := ringi.ApprovalRequest{Kind: ringi.KindApproval, Tool: ringi.Tool{Effect: ringi.ReadOnly}, Call: ringi.ToolCall{Tool: "find", Input: `{"name":"ana--b","n":-1}`}}
	for _, tt := range []struct {
		name   string
		change func(*ringi.ApprovalRequest)
		want   ringi.Risk
	}{
		{"reads", func(*ringi.ApprovalRequest) {}, ringi.RiskLow},
		{"asks for values of a read", func(r *ringi.ApprovalRequest) { r.Kind = ringi.KindInput }, ringi.RiskLow},
		{"a line feed in a text", func(r *ringi.ApprovalRequest) { r.Call.Input = `{"a":"one\ntwo é"}` }, ringi.RiskLow},
		{"an input that is not JSON", func(r *ringi.ApprovalRequest) { r.Call.Input = `{"a` }, ringi.RiskLow},
		{"writes once", func(r *ringi.ApprovalRequest) { r.Tool.Effect = ringi.IdempotentWrite }, ringi.RiskMedium},
		{"writes", func(r *ringi.ApprovalRequest) { r.Tool.Effect = ringi.NonIdempotentWrite }, ringi.RiskMedium},
		{"undeclared", func(r *ringi.ApprovalRequest) { r.Tool.Effect = "" }, ringi.RiskMedium},
		{"unknown tool", func(r *ringi.ApprovalRequest) { r.Tool = ringi.Tool{} }, ringi.RiskMedium},
		{"after text from outside", func(r *ringi.ApprovalRequest) { r.Untrusted = true }, ringi.RiskHigh},
		{"a foreign tool", func(r *ringi.ApprovalRequest) { r.Call.Tool = ringi.ForeignName("other", "find") }, ringi.RiskHigh},
		{"on another server", func(r *ringi.ApprovalRequest) { r.Tool.Remote = &ringi.Remote{} }, ringi.RiskHigh},
		{"an unknown outcome", func(r *ringi.ApprovalRequest) { r.Kind = ringi.KindOutcome }, ringi.RiskHigh},
		{"a text turned round", func(r *ringi.ApprovalRequest) { r.Call.Input = "{\"a\":\"x\u202ey\"}" }, ringi.RiskHigh},
		{"a text turned round by an escape", func(r *ringi.ApprovalRequest) { r.Call.Input = `{"a":["x\u202ey"]}` }, ringi.RiskHigh},
		{"a key that hides", func(r *ringi.ApprovalRequest) { r.Call.Input = `{"a":{"b\u200b":1}}` }, ringi.RiskHigh},
		{"an encoded name", func(r *ringi.ApprovalRequest) { r.Call.Input = `{"to":"a@xn--bcher-kva.example"}` }, ringi.RiskHigh},
		{"letters of two scripts", func(r *ringi.ApprovalRequest) { r.Call.Input = "{\"to\":\"p\u0430ypal\"}" }, ringi.RiskHigh},
		{"more lines than a screen", func(r *ringi.ApprovalRequest) { r.Call.Input = ringi.Input(`{"a":"` + strings.Repeat(`\n`, 40) + `"}`) }, ringi.RiskHigh},
		{"bytes that are no text", func(r *ringi.ApprovalRequest) { r.Call.Input = "{\"a\":\"\xff\"}" }, ringi.RiskHigh},
	} {
		r := reads
		if tt.change(&r); Of(&r) != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, Of(&r), tt.want)
		}
	}
}

// What is passed over as plain has no flag.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{`{"a":1}`, "xn--a", "XN--", "a\tb", "\\u202e", "é", "~ ", "\x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if flags := escape.Flags(s); plain(s) && flags != nil {
			t.Errorf("%q is plain, and has %v", s, flags)
		}
		text, err := json.Marshal(map[string]string{"a": s})
		if err != nil {
			t.Fatal(err)
		}
		if escape.Flags(s) != nil && strings.ToValidUTF8(s, "") == s && !hides(string(text)) {
			t.Errorf("%s hides nothing, and its text has %v", text, escape.Flags(s))
		}
	})
}
