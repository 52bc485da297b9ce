package ringi

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ringi-dev/ringi/internal/schema"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// inferSchemas fills the schemas that t leaves empty from the types of a typed
// tool, and refuses types that no input could be decoded into.
func inferSchemas(t *Tool, in, out reflect.Type) error {
	object, err := inputObject(in)
	if err != nil {
		return err
	}
	walk := typeWalk{input: true, schemas: map[reflect.Type]*jsonschema.Schema{}}
	if err := walk.visit(object); err != nil {
		return fmt.Errorf("input type %v: %w", in, err)
	}
	if len(t.InputSchema) == 0 {
		if t.InputSchema, err = inferSchema(object, walk.schemas); err != nil {
			return fmt.Errorf("infer schema of input type %v: %w", in, err)
		}
		if err := checkZero(object, t.InputSchema); err != nil {
			return fmt.Errorf("input type %v: %w", in, err)
		}
	}
	if len(t.OutputSchema) > 0 || isOwnText(out) {
		return nil
	}
	walk = typeWalk{schemas: map[reflect.Type]*jsonschema.Schema{}}
	if err := walk.visit(out); err != nil {
		return fmt.Errorf("output type %v: %w", out, err)
	}
	if t.OutputSchema, err = inferSchema(out, walk.schemas); err != nil {
		return fmt.Errorf("infer schema of output type %v: %w", out, err)
	}
	return nil
}

// inputObject returns the type that stands for the input's object.
func inputObject(in reflect.Type) (reflect.Type, error) {
	object := in
	if object.Kind() == reflect.Pointer {
		object = object.Elem()
	}
	switch {
	case object.Kind() == reflect.Struct:
		return object, nil
	case in.Kind() == reflect.Map && in.Key().Kind() == reflect.String:
		return in, nil
	}
	return nil, fmt.Errorf("input type %v is not a struct or a map with string keys", in)
}

// isOwnText reports whether a result is not encoded from its type.
func isOwnText(out reflect.Type) bool {
	switch out {
	case reflect.TypeFor[string](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[ToolResult](), reflect.TypeFor[any]():
		return true
	}
	return false
}

func inferSchema(t reflect.Type, own map[reflect.Type]*jsonschema.Schema) (json.RawMessage, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: own})
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// checkZero holds that decoder and inferred schema speak of the same JSON: the
// type's zero value, encoded, must be valid. A field with the option "string",
// for one, is a number in the schema and text for the decoder, and no input
// would ever fit. A value that cannot be encoded shows nothing.
func checkZero(t reflect.Type, raw json.RawMessage) error {
	b, ok := zeroJSON(t)
	if !ok {
		return nil
	}
	s, err := schema.Compile(raw)
	if err != nil {
		return nil // told where the schemas are compiled
	}
	v, err := strictjson.Parse(string(b), strictjson.Limits{})
	if err == nil {
		err = validate(s, v)
	}
	if err != nil {
		return fmt.Errorf("the inferred schema refuses what the type encodes to (give an InputSchema): %w", err)
	}
	return nil
}

// zeroJSON encodes a type's zero value. Its own methods may refuse or panic:
// nobody promised that they take it.
func zeroJSON(t reflect.Type) (b []byte, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	b, err := jsonv2.Marshal(reflect.Zero(t).Interface(), encodeOptions)
	return b, err == nil
}

// typeWalk finds, in everything that a type is made of, the types whose JSON
// the inference would get wrong (the decoder asks a type's own methods first, and
// reads bytes as base64), and those that have none.
type typeWalk struct {
	input   bool
	schemas map[reflect.Type]*jsonschema.Schema
	seen    []reflect.Type
}

func (w *typeWalk) visit(t reflect.Type) error {
	if slices.Contains(w.seen, t) {
		return nil
	}
	w.seen = append(w.seen, t)
	if s, err := w.special(t); s != nil || err != nil {
		if s != nil {
			w.schemas[t] = s
		}
		return err
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return w.visit(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if err := w.field(t.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Interface:
		if w.input && t.NumMethod() > 0 {
			return fmt.Errorf("%v cannot be decoded: an interface with methods", t)
		}
	}
	return nil
}

func (w *typeWalk) field(f reflect.StructField) error {
	if !f.IsExported() && !f.Anonymous {
		return nil
	}
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" && options == "" {
		return nil
	}
	if w.input && strings.Contains(options, "case:ignore") {
		return fmt.Errorf("field %s: names are exact, case:ignore is not taken", f.Name)
	}
	if err := w.visit(f.Type); err != nil {
		return fmt.Errorf("field %s: %w", f.Name, err)
	}
	return nil
}

// special returns the schema of a type that has a JSON form of its own; nil
// for all others.
func (w *typeWalk) special(t reflect.Type) (*jsonschema.Schema, error) {
	switch t {
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[jsontext.Value]():
		return anyJSON(), nil
	case reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}, nil
	case reflect.TypeFor[time.Duration]():
		return nil, errors.New("time.Duration has no JSON form: use a number of seconds, or text")
	case reflect.TypeFor[json.Number]():
		if w.input {
			return nil, errors.New("json.Number has no exact JSON form as a field: use any, string or an integer type")
		}
		return &jsonschema.Schema{Type: "number"}, nil
	}
	switch {
	case w.hasMethod(t, jsonDecoders, jsonEncoders):
		return anyJSON(), nil
	case w.hasMethod(t, textDecoders, textEncoders):
		return &jsonschema.Schema{Type: "string"}, nil
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem() == reflect.TypeFor[byte]():
		return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}, nil
	}
	return nil, nil
}

// anyJSON lists all types, null among them: the inference would turn an empty
// schema behind a pointer into one that takes null alone.
func anyJSON() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"null", "boolean", "number", "string", "array", "object"}}
}

var (
	jsonDecoders = []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[jsonv2.UnmarshalerFrom]()}
	jsonEncoders = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[jsonv2.MarshalerTo]()}
	textDecoders = []reflect.Type{reflect.TypeFor[encoding.TextUnmarshaler]()}
	textEncoders = []reflect.Type{reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextAppender]()}
)

func (w *typeWalk) hasMethod(t reflect.Type, decoders, encoders []reflect.Type) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return false
	}
	wanted := encoders
	if w.input {
		wanted = decoders
	}
	for _, i := range wanted {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

// wanted says in words what a decoder takes for a type; empty where its own
// error says more.
func wanted(t reflect.Type) string {
	if t == nil {
		return ""
	}
	if t == reflect.TypeFor[time.Time]() {
		return "a time such as 2006-01-02T15:04:05Z (RFC 3339)"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of at most %d bits, written without point or exponent", t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return fmt.Sprintf("a whole number of at most %d bits and not below 0, written without point or exponent", t.Bits())
	case reflect.Float32, reflect.Float64:
		return fmt.Sprintf("a number that %d bits hold", t.Bits())
	}
	return ""
}
