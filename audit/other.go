package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var errNoObject = errors.New("not a JSON object")

// decodeOther reads a value by the JSON library: for text that is not in our
// own spelling. Names are exact, unknown members are passed over, repeated
// ones are errors.
func decodeOther(b []byte, v any) error {
	if jsontext.Value(b).Kind() != '{' {
		return errNoObject
	}
	return jsonv2.Unmarshal(b, v, spelling)
}

// spelling tells the JSON library the forms that are ours.
var spelling = jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
	jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, v *json.RawMessage) error {
		var s string
		if err := jsonv2.UnmarshalDecode(d, &s); err != nil {
			return err
		}
		*v = json.RawMessage(s)
		return nil
	}),
	jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, v *time.Duration) error {
		return jsonv2.UnmarshalDecode(d, (*int64)(v))
	}),
	jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, v any) error {
		s := reflect.ValueOf(v).Elem()
		if s.Kind() != reflect.String || d.PeekKind() != '{' {
			return errors.ErrUnsupported
		}
		var bytes struct {
			B64 *string `json:"b64"`
		}
		if err := jsonv2.UnmarshalDecode(d, &bytes); err != nil {
			return err
		}
		if bytes.B64 == nil {
			return errors.New("string is an object without b64")
		}
		text, err := base64url.DecodeString(*bytes.B64)
		if err != nil {
			return fmt.Errorf("decode b64: %w", err)
		}
		s.SetString(string(text))
		return nil
	}),
))
