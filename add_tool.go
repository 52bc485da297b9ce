package ringi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// AddTool registers a tool by a typed function.
//
// In is a struct, a pointer to one, or a map with string keys. Where
// t.InputSchema is empty it is inferred from In: fields by their json names,
// the text of a jsonschema tag as the description, required unless omitempty
// or omitzero, closed for structs. t.OutputSchema is inferred from Out
// likewise. json.RawMessage is any JSON, []byte is base64 text, and a number
// under `any` arrives as a json.Number with all its digits.
//
// An input is decoded by exact names, and once before anybody is asked, so
// that nothing which cannot be decoded is ever approved. Out is encoded as
// JSON with sorted map keys, except that a string is its own text, a
// json.RawMessage is taken as it is, and a [ToolResult] is the whole answer. An
// error of h is returned as it is.
//
// Every error is a [ToolError] that names the tool and the fault.
func AddTool[In, Out any](r *Registry, t Tool, h func(context.Context, In) (Out, error), hooks ...ToolHooks) error {
	if h == nil {
		return &ToolError{Tool: t.Name, Err: errors.New("handler is nil")}
	}
	if err := inferSchemas(&t, reflect.TypeFor[In](), reflect.TypeFor[Out]()); err != nil {
		return &ToolError{Tool: t.Name, Err: err}
	}
	return r.add(t, entry{handler: typedHandler(h), decode: valueDecoder[In]()}, hooks)
}

// MustAddTool is [AddTool] for tools that are fixed in the program: it panics
// with the tool's name and the fault.
func MustAddTool[In, Out any](r *Registry, t Tool, h func(context.Context, In) (Out, error), hooks ...ToolHooks) {
	if err := AddTool(r, t, h, hooks...); err != nil {
		panic(err)
	}
}

// typedHandler decodes the call's own bytes, or takes the value that the check
// decoded from them.
func typedHandler[In, Out any](h func(context.Context, In) (Out, error)) ToolHandler {
	encode, decode := encoderOf[Out](), decoderOf[In]()
	return func(ctx context.Context, call ToolCall) (ToolResult, error) {
		in, ok := checkedValue(ctx, call.Input).(*In)
		if !ok {
			in = new(In)
			if err := decode([]byte(call.Input), in); err != nil {
				return ToolResult{}, NotDone(fmt.Errorf("decode input: %w", decodeMessage(err)))
			}
		}
		out, err := h(ctx, *in)
		if err != nil {
			return ToolResult{}, err
		}
		return encode(out)
	}
}

// decodeFunc decodes an input into a pointer to the tool's own type.
type decodeFunc func(Input) (any, error)

func valueDecoder[In any]() decodeFunc {
	decode := decoderOf[In]()
	return func(input Input) (any, error) {
		in := new(In)
		if err := decode([]byte(input), in); err != nil {
			return nil, err
		}
		return in, nil
	}
}

// encoderOf chooses how a result becomes text. Its errors say that the tool
// ran: a model that read "failed" would ask for it again.
func encoderOf[Out any]() func(Out) (ToolResult, error) {
	switch any((*Out)(nil)).(type) {
	case *string:
		return func(out Out) (ToolResult, error) { return ToolResult{Output: any(out).(string)}, nil }
	case *ToolResult:
		return func(out Out) (ToolResult, error) { return any(out).(ToolResult), nil }
	case *json.RawMessage:
		return func(out Out) (ToolResult, error) {
			raw := jsontext.Value(any(out).(json.RawMessage))
			if len(raw) == 0 {
				raw = jsontext.Value("null")
			}
			if !raw.IsValid() {
				return ToolResult{}, errors.New("the tool ran, but its result is not JSON")
			}
			return ToolResult{Output: string(raw)}, nil
		}
	}
	var options []jsonv2.Options
	if !plainType(reflect.TypeFor[Out]()) {
		options = []jsonv2.Options{encodeOptions}
	}
	return func(out Out) (ToolResult, error) {
		b, err := jsonv2.Marshal(&out, options...) // by its address: else it is copied once more
		if err != nil {
			return ToolResult{}, fmt.Errorf("the tool ran, but its result could not be encoded: %w", err)
		}
		return ToolResult{Output: string(b)}, nil
	}
}

// encodeOptions write maps in one order, and a json.Number as the number that
// it is.
var encodeOptions = jsonv2.JoinOptions(
	jsonv2.Deterministic(true),
	jsonv2.WithMarshalers(jsonv2.MarshalToFunc(func(e *jsontext.Encoder, n json.Number) error {
		if n == "" {
			n = "0"
		}
		return e.WriteValue(jsontext.Value(n))
	})),
)

// decodeMessage says what does not fit in words that a model can act on.
func decodeMessage(err error) error {
	e, ok := errors.AsType[*jsonv2.SemanticError](err)
	if !ok {
		return err
	}
	where := string(e.JSONPointer)
	if where == "" {
		where = "the input"
	} else {
		where = fmt.Sprintf("the value at %q", where)
	}
	if want := wanted(e.GoType); want != "" {
		return fmt.Errorf("%s does not fit: it must be %s", where, want)
	}
	if e.Err != nil {
		return fmt.Errorf("%s does not fit: %w", where, e.Err)
	}
	return fmt.Errorf("%s does not fit: %s is not taken here", where, e.JSONKind)
}
