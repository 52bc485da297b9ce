package ringi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

type refundIn struct {
	OrderID string `json:"order_id" jsonschema:"the order, such as A-1017"`
	Amount  int64  `json:"amount"`
	Note    string `json:"note,omitempty"`
}

type refundOut struct {
	RefundID string `json:"refund_id"`
}

// typed registers a typed tool named tool.
func typed[In, Out any](t *testing.T, h func(context.Context, In) (Out, error)) *ringi.Registry {
	t.Helper()
	r := ringi.NewRegistry()
	if err := ringi.AddTool(r, ringi.Tool{Name: "tool"}, h); err != nil {
		t.Fatal(err)
	}
	return r
}

// returns makes a handler that returns v.
func returns[Out any](v Out) func(context.Context, struct{}) (Out, error) {
	return func(context.Context, struct{}) (Out, error) { return v, nil }
}

// echo makes a handler that returns its input.
func echo[T any](_ context.Context, in T) (T, error) { return in, nil }

// run checks the input and runs the handler, as the engine does.
func run(t *testing.T, r *ringi.Registry, input ringi.Input) (ringi.ToolResult, error) {
	t.Helper()
	c, err := r.CheckInput("tool", input, ringi.InputLimits{})
	if err != nil {
		t.Fatal(err)
	}
	h, ok := r.Handler("tool")
	if !ok {
		t.Fatal("no handler")
	}
	return h(ringi.WithChecked(t.Context(), c), ringi.ToolCall{Tool: "tool", Input: c.Input})
}

func TestAddTool_InfersSchemas(t *testing.T) {
	r := typed(t, func(_ context.Context, in refundIn) (refundOut, error) { return refundOut{"R-1"}, nil })
	tool, _ := r.Tool("tool")
	want := `{"type":"object","properties":{"order_id":{"type":"string","description":"the order, such as A-1017"},"amount":{"type":"integer"},"note":{"type":"string"}},"required":["order_id","amount"],"additionalProperties":false}`
	if string(tool.InputSchema) != want {
		t.Errorf("InputSchema = %s", tool.InputSchema)
	}
	if want := `{"type":"object","properties":{"refund_id":{"type":"string"}},"required":["refund_id"],"additionalProperties":false}`; string(tool.OutputSchema) != want {
		t.Errorf("OutputSchema = %s", tool.OutputSchema)
	}
	if res, err := run(t, r, `{"order_id":"A-1017","amount":1250}`); err != nil || res.Output != `{"refund_id":"R-1"}` {
		t.Errorf("result %q, %v", res.Output, err)
	}
	if err := r.CheckResult("tool", `{"refund_id":7}`); code(err) != ringi.CodeInvalidInput {
		t.Errorf("a person's result off the inferred schema: %v", err)
	}
}

func TestAddTool_KeepsAGivenSchema(t *testing.T) {
	r := ringi.NewRegistry()
	given := ringi.Tool{
		Name:         "tool",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"order_id":{"pattern":"^A-"}}}`),
		OutputSchema: json.RawMessage(`{"type":"string"}`),
	}
	if err := ringi.AddTool(r, given, func(context.Context, *refundIn) (string, error) { return "", nil }); err != nil {
		t.Fatal(err)
	}
	tool, _ := r.Tool("tool")
	if string(tool.InputSchema) != string(given.InputSchema) || string(tool.OutputSchema) != string(given.OutputSchema) {
		t.Errorf("schemas %s and %s", tool.InputSchema, tool.OutputSchema)
	}
	if _, err := r.CheckInput("tool", `{"order_id":"B-1"}`, ringi.InputLimits{}); code(err) != ringi.CodeInvalidInput {
		t.Errorf("the given schema does not hold: %v", err)
	}
	// The type holds beside it: the text would fail after an approval.
	if _, err := r.CheckInput("tool", `{"order_id":"A-1","amount":"12"}`, ringi.InputLimits{}); code(err) != ringi.CodeInvalidInput {
		t.Errorf("the type does not hold: %v", err)
	}
}

// What a schema takes and a type does not must be told before anybody is asked
// (each was seen to fail after an approval).
func TestAddTool_TrialDecode(t *testing.T) {
	type in struct {
		N   int64     `json:"n,omitempty"`
		U   uint8     `json:"u,omitempty"`
		T   time.Time `json:"t,omitzero"`
		F   float32   `json:"f,omitempty"`
		In  *in2      `json:"in,omitempty"`
		Raw []byte    `json:"raw,omitempty"`
	}
	r := typed(t, func(context.Context, in) (string, error) { return "", nil })
	bad := map[ringi.Input]string{
		`{"n":3.0}`:                 `"/n" does not fit: it must be a whole number of at most 64 bits`,
		`{"n":1e2}`:                 `"/n"`,
		`{"n":9223372036854775808}`: `"/n"`,
		`{"u":1e1}`:                 `"/u" does not fit: it must be a whole number of at most 8 bits and not below 0`,
		`{"t":"nonsense"}`:          `"/t" does not fit: it must be a time such as 2006-01-02T15:04:05Z`,
		`{"f":1e300}`:               `"/f" does not fit: it must be a number that 32 bits hold`,
		`{"in":{"addr":"here"}}`:    `"/in/addr" does not fit`,
		`{"raw":"not base64!"}`:     `"/raw" does not fit`,
	}
	for input, says := range bad {
		_, err := r.CheckInput("tool", input, ringi.InputLimits{})
		if code(err) != ringi.CodeInvalidInput || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", input, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: the model is told of Go types: %v", input, err)
		}
	}
	for _, input := range []ringi.Input{`{"n":-9223372036854775808}`, `{"u":255}`, `{"t":"2026-01-02T03:04:05.6+02:00"}`, `{"f":1.5e3}`, `{"in":{"addr":"::1"}}`, `{"raw":"YWI="}`} {
		c, err := r.CheckInput("tool", input, ringi.InputLimits{})
		if err != nil {
			t.Errorf("%s: %v", input, err)
		}
		if _, ok := c.Value.(*in); !ok {
			t.Errorf("%s: Value is a %T", input, c.Value)
		}
	}
}

type in2 struct {
	Addr netip.Addr `json:"addr"`
}

func TestF86_NumbersUnderAnyKeepTheirDigits(t *testing.T) {
	for _, digits := range []string{"9223372036854775807", "1234567890123456789", "2512292042121000001", "1915883588174806058", "18446744073709551616", "1.0", "1e2", "0.1000"} {
		r := typed(t, echo[map[string]any])
		input := `{"id":` + digits + `,"list":[` + digits + `]}`
		res, err := run(t, r, ringi.Input(input))
		if err != nil || res.Output != input {
			t.Errorf("%s came back as %s, %v", input, res.Output, err)
		}
	}
	r := typed(t, func(_ context.Context, in struct {
		ID any `json:"id"`
	}) (string, error) {
		n, ok := in.ID.(json.Number)
		if !ok {
			return "", errors.New("no json.Number")
		}
		return n.String(), nil
	})
	if res, err := run(t, r, `{"id":9223372036854775807}`); err != nil || res.Output != "9223372036854775807" {
		t.Errorf("%q, %v", res.Output, err)
	}
}

func TestS16_TypedToolsReadExactNames(t *testing.T) {
	closed := typed(t, echo[refundIn])
	if _, err := closed.CheckInput("tool", `{"order_id":"A","amount":1,"AMOUNT":9999}`, ringi.InputLimits{}); code(err) != ringi.CodeInvalidInput {
		t.Errorf("closed: %v", err)
	}
	open := ringi.NewRegistry()
	if err := ringi.AddTool(open, ringi.Tool{Name: "tool", InputSchema: json.RawMessage(`{}`)}, echo[refundIn]); err != nil {
		t.Fatal(err)
	}
	res, err := run(t, open, `{"order_id":"A","amount":1,"AMOUNT":9999,"Order_ID":"B"}`)
	if err != nil || res.Output != `{"order_id":"A","amount":1}` {
		t.Errorf("open: %s, %v", res.Output, err)
	}
	if err := ringi.AddTool(open, ringi.Tool{Name: "other"}, func(context.Context, struct {
		A int `json:"a,case:ignore"`
	}) (string, error) {
		return "", nil
	}); err == nil || !strings.Contains(err.Error(), "exact") {
		t.Errorf("a field that ignores case: %v", err)
	}
}

type counted struct{ N int }

var decoded atomic.Int64

func (c *counted) UnmarshalJSON(b []byte) error {
	decoded.Add(1)
	return json.Unmarshal(b, &c.N)
}

func TestWithChecked_DecodesOnceAndNeverForOtherBytes(t *testing.T) {
	type in struct {
		C    counted           `json:"c"`
		Tags map[string]string `json:"tags,omitempty"`
	}
	r := typed(t, func(_ context.Context, in in) (int, error) {
		defer func() { in.Tags["seen"] = "yes" }()
		if in.Tags["seen"] != "" {
			return 0, errors.New("an earlier attempt wrote into the input")
		}
		return in.C.N, nil
	})
	h, _ := r.Handler("tool")
	c, err := r.CheckInput("tool", `{"c":7,"tags":{}}`, ringi.InputLimits{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ringi.WithChecked(t.Context(), c), time.Minute)
	defer cancel()
	decoded.Store(0)
	for attempt := range 3 {
		res, err := h(ctx, ringi.ToolCall{Input: c.Input})
		if err != nil || res.Output != "7" {
			t.Fatalf("attempt %d: %q, %v", attempt, res.Output, err)
		}
		if got := decoded.Load(); got != int64(attempt) {
			t.Errorf("attempt %d: decoded %d times", attempt, got)
		}
	}
	fresh := ringi.WithChecked(t.Context(), c)
	if res, err := h(fresh, ringi.ToolCall{Input: `{"c":8,"tags":{}}`}); err != nil || res.Output != "8" {
		t.Errorf("other bytes: %q, %v", res.Output, err)
	}
	if res, err := h(t.Context(), ringi.ToolCall{Input: c.Input}); err != nil || res.Output != "7" {
		t.Errorf("no value: %q, %v", res.Output, err)
	}
	other := typed(t, echo[refundIn])
	oh, _ := other.Handler("tool")
	if _, err := oh(fresh, ringi.ToolCall{Input: c.Input}); err != nil {
		t.Errorf("another tool's value: %v", err)
	}
	if ringi.WithChecked(t.Context(), ringi.Checked{Input: "{}"}) != t.Context() {
		t.Error("a raw tool's check costs a context")
	}
}

func TestAddTool_BrokenBytesDidNothing(t *testing.T) {
	r := typed(t, echo[refundIn])
	h, _ := r.Handler("tool")
	_, err := h(t.Context(), ringi.ToolCall{Input: `{"amount":"x"}`})
	if !ringi.IsNotDone(err) {
		t.Errorf("%v does not say that nothing happened", err)
	}
}

func TestAddTool_ErrorsAreReturnedAsTheyAre(t *testing.T) {
	r := typed(t, func(context.Context, struct{}) (string, error) { return "half", io.ErrUnexpectedEOF })
	if res, err := run(t, r, `{}`); err != io.ErrUnexpectedEOF || res.Output != "" {
		t.Errorf("%+v, %v", res, err)
	}
}

type broken struct{ C chan int }

func (broken) MarshalJSON() ([]byte, error) { return nil, errors.New("no words") }

func TestAddTool_Results(t *testing.T) {
	whole := ringi.ToolResult{Output: "o", Note: "n"}
	registries := map[string]struct {
		r      *ringi.Registry
		output string
		schema bool
	}{
		"string":       {typed(t, returns("plain \"text\"\n")), "plain \"text\"\n", false},
		"raw":          {typed(t, returns(json.RawMessage(` {"a": 1.0} `))), ` {"a": 1.0} `, false},
		"no raw":       {typed(t, returns(json.RawMessage(nil))), `null`, false},
		"any":          {typed(t, returns[any](map[string]any{"b": 1, "a": []int(nil)})), `{"a":[],"b":1}`, false},
		"result":       {typed(t, returns(whole)), "o", false},
		"struct":       {typed(t, returns(refundOut{"<R>"})), `{"refund_id":"<R>"}`, true},
		"pointer":      {typed(t, returns(&refundOut{"R"})), `{"refund_id":"R"}`, true},
		"map":          {typed(t, returns(map[string]int{"z": 1, "a": 2, "m": 3})), `{"a":2,"m":3,"z":1}`, true},
		"list":         {typed(t, returns([]string{"x"})), `["x"]`, true},
		"number":       {typed(t, returns(json.Number("1.50"))), `1.50`, true},
		"big":          {typed(t, returns(big.NewInt(7))), `7`, true},
		"nothing":      {typed(t, returns(struct{}{})), `{}`, true},
		"named string": {typed(t, returns(ringi.Effect("read_only"))), `"read_only"`, true},
	}
	for name, tt := range registries {
		res, err := run(t, tt.r, ``)
		if err != nil || res.Output != tt.output {
			t.Errorf("%s: %q, %v; want %q", name, res.Output, err, tt.output)
		}
		tool, _ := tt.r.Tool("tool")
		if (len(tool.OutputSchema) > 0) != tt.schema {
			t.Errorf("%s: output schema %s", name, tool.OutputSchema)
		}
		if err := tt.r.CheckResult("tool", res.Output); err != nil {
			t.Errorf("%s: its own result is off its schema: %v", name, err)
		}
	}
	if res, _ := run(t, registries["result"].r, ``); res.Note != "n" {
		t.Errorf("a ToolResult lost its note: %+v", res)
	}
}

func TestAddTool_AResultThatCannotBeEncodedSaysThatTheToolRan(t *testing.T) {
	for name, r := range map[string]*ringi.Registry{
		"value": typed(t, returns(broken{})),
		"raw":   typed(t, returns(json.RawMessage(`{`))),
	} {
		_, err := run(t, r, `{}`)
		if err == nil || !strings.HasPrefix(err.Error(), "the tool ran, but its result") || ringi.IsNotDone(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAddTool_TypesWithAFormOfTheirOwn(t *testing.T) {
	type in struct {
		Raw  json.RawMessage  `json:"raw"`
		Raws *json.RawMessage `json:"raws"`
		Blob []byte           `json:"blob"`
		Big  *big.Int         `json:"big"`
		IP   netip.Addr       `json:"ip"`
		At   time.Time        `json:"at"`
		List []string         `json:"list"`
	}
	r := typed(t, echo[in])
	const input = `{"raw":{"x":[1.0]},"raws":true,"blob":"YWI=","big":123456789012345678901234567890,"ip":"10.0.0.1","at":"2026-01-02T03:04:05Z","list":["a"]}`
	if res, err := run(t, r, input); err != nil || res.Output != input {
		t.Errorf("%s, %v", res.Output, err)
	}
	for _, raw := range []string{`"text"`, `7`, `null`, `[]`, `false`} {
		if _, err := r.CheckInput("tool", ringi.Input(strings.Replace(input, `{"x":[1.0]}`, raw, 1)), ringi.InputLimits{}); err != nil {
			t.Errorf("raw %s: %v", raw, err)
		}
	}
}

func TestAddTool_Faults(t *testing.T) {
	type node struct {
		Next *node `json:"next,omitempty"`
	}
	faults := map[string]struct {
		err  error
		says string
	}{
		"nil handler":      {ringi.AddTool[refundIn, string](ringi.NewRegistry(), ringi.Tool{Name: "tool"}, nil), "handler is nil"},
		"nil registry":     {ringi.AddTool(nil, ringi.Tool{Name: "tool"}, echo[refundIn]), "registry is nil"},
		"bad name":         {ringi.AddTool(ringi.NewRegistry(), ringi.Tool{Name: "to ol"}, echo[refundIn]), "a tool name is"},
		"list":             {try(echo[[]string]), "not a struct"},
		"text":             {try(echo[string]), "not a struct"},
		"raw":              {try(echo[json.RawMessage]), "not a struct"},
		"pointer to list":  {try(echo[*[]string]), "not a struct"},
		"any":              {try(echo[any]), "not a struct"},
		"keys are numbers": {try(echo[map[int]string]), "string keys"},
		"function":         {try(echo[struct{ F func() }]), "unsupported"},
		"channel":          {try(echo[struct{ C chan int }]), "unsupported"},
		"cycle":            {try(echo[node]), "cycle"},
		"reader":           {try(echo[struct{ R io.Reader }]), "interface with methods"},
		"duration":         {try(echo[struct{ D time.Duration }]), "field D: time.Duration"},
		"deep duration": {try(echo[struct {
			A []map[string]*struct{ D time.Duration }
		}]), "time.Duration"},
		"result duration": {try(returns(struct{ D time.Duration }{})), "output type"},
		"json.Number":     {try(echo[struct{ N json.Number }]), "json.Number"},
		"text number": {try(echo[struct {
			N int `json:",string"`
		}]), "InputSchema"},
		"own decoder": {try(echo[counted]), "not of an object"},
		"word tag": {try(echo[struct {
			N int `jsonschema:"min=1"`
		}]), "WORD="},
	}
	for name, tt := range faults {
		var te *ringi.ToolError
		if !errors.As(tt.err, &te) || te.Tool == "" || !strings.Contains(tt.err.Error(), tt.says) {
			t.Errorf("%s: %v, want a ToolError about %q", name, tt.err, tt.says)
		}
	}
}

func try[In, Out any](h func(context.Context, In) (Out, error)) error {
	return ringi.AddTool(ringi.NewRegistry(), ringi.Tool{Name: "tool"}, h)
}

func TestMustAddTool_PanicsWithTheToolAndTheFault(t *testing.T) {
	r := ringi.NewRegistry()
	ringi.MustAddTool(r, ringi.Tool{Name: "fine"}, echo[refundIn])
	defer func() {
		err, ok := recover().(error)
		if !ok || !strings.Contains(err.Error(), `"fine"`) || !strings.Contains(err.Error(), "already") {
			t.Errorf("panic %v", err)
		}
	}()
	ringi.MustAddTool(r, ringi.Tool{Name: "fine"}, echo[refundIn])
	t.Error("no panic")
}

func TestS13_TypedToolWithValuesOfAPerson(t *testing.T) {
	r := ringi.NewRegistry()
	tool := ringi.Tool{
		Name:          "tool",
		InputRequired: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"}},"required":["amount"],"additionalProperties":false}`),
	}
	if err := ringi.AddTool(r, tool, echo[refundIn]); err != nil {
		t.Fatal(err)
	}
	c, err := r.CheckInput("tool", `{"order_id":"A-1","amount":9999}`, ringi.InputLimits{})
	if err != nil || c.Input != `{"order_id":"A-1"}` {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := r.CheckInput("tool", `{"order_id":7}`, ringi.InputLimits{}); code(err) != ringi.CodeInvalidInput {
		t.Errorf("the model's own keys are not checked: %v", err)
	}
	for values, ok := range map[string]bool{`{"amount":12}`: true, `{"amount":3.0}`: false, `{"amount":9223372036854775808}`: false} {
		merged, keys, err := r.Merge("tool", c.Input, values)
		if err != nil || len(keys) != 1 {
			t.Fatalf("%s: %v, %v", values, keys, err)
		}
		checked, err := r.CheckMerged("tool", merged, ringi.InputLimits{})
		if (err == nil) != ok || !ok && code(err) != ringi.CodeInvalidInput {
			t.Errorf("%s: %v", values, err)
		}
		if in, isIn := checked.Value.(*refundIn); ok && (!isIn || in.Amount != 12) {
			t.Errorf("Value = %+v", checked.Value)
		}
	}
}

func TestS15_ADecoderThatPanicsRefuses(t *testing.T) {
	r := typed(t, func(context.Context, struct {
		P panicky `json:"p"`
	}) (string, error) {
		return "", nil
	})
	if _, err := r.CheckInput("tool", `{"p":1}`, ringi.InputLimits{}); code(err) != ringi.CodeInvalidInput || strings.Contains(err.Error(), "boom") {
		t.Errorf("%v", err)
	}
}

type panicky struct{}

func (*panicky) UnmarshalJSON([]byte) error { panic("boom") }

// Whatever text a model writes: nothing panics, what is taken is an object that
// keeps its bytes, and the typed function can read it.
func FuzzCheckInput(f *testing.F) {
	type in struct {
		N    int64          `json:"n,omitempty"`
		T    time.Time      `json:"t,omitzero"`
		Any  any            `json:"any,omitempty"`
		Map  map[string]any `json:"map,omitempty"`
		Blob []byte         `json:"blob,omitempty"`
	}
	r := ringi.NewRegistry()
	ringi.MustAddTool(r, ringi.Tool{Name: "tool"}, func(context.Context, in) (string, error) { return "", nil })
	h, _ := r.Handler("tool")
	for _, seed := range []string{``, `null`, `"{}"`, `{}`, `{"n":3.0}`, `{"n":1e2}`, `{"t":"nonsense"}`, `{"any":{"a":1e999}}`, `{"map":{"a":1,"A":2}}`, `{"blob":"YQ"}`, "{\"any\":\"\xff\"}", `{"n":1,"N":2}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := r.CheckInput("tool", ringi.Input(raw), ringi.InputLimits{})
		if err != nil {
			if code(err) != ringi.CodeInvalidInput || len(err.Error()) > 3<<10 {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if !json.Valid([]byte(c.Input)) || string(c.Input) != raw && c.Input != "{}" {
			t.Fatalf("%q became %q", raw, c.Input)
		}
		if _, err := h(t.Context(), ringi.ToolCall{Input: c.Input}); err != nil {
			t.Fatalf("%q was taken, and the function cannot read it: %v", raw, err)
		}
	})
}

type benchIn struct {
	ID string `json:"id"`
	N  int    `json:"n"`
}

func BenchmarkCheckInput(b *testing.B) {
	r := ringi.NewRegistry()
	ringi.MustAddTool(r, ringi.Tool{Name: "tool", Effect: ringi.ReadOnly}, echo[benchIn])
	ringi.MustAddTool(r, ringi.Tool{Name: "any", Effect: ringi.ReadOnly}, echo[map[string]any])
	if err := r.Add(ringi.Tool{Name: "raw"}, nothing); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"tool", "any", "raw"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.CheckInput(name, `{"id":"A-1","n":3}`, ringi.InputLimits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTypedHandler(b *testing.B) {
	r := ringi.NewRegistry()
	ringi.MustAddTool(r, ringi.Tool{Name: "tool", Effect: ringi.ReadOnly}, echo[benchIn])
	h, _ := r.Handler("tool")
	call := ringi.ToolCall{Input: `{"id":"A-1","n":3}`}
	b.Run("decodes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h(b.Context(), call); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("checked", func(b *testing.B) {
		c := ringi.Checked{Input: call.Input, Value: &benchIn{"A-1", 3}}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h(ringi.WithChecked(b.Context(), c), call); err != nil {
				b.Fatal(err)
			}
		}
	})
}
