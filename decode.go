package ringi

import (
	"encoding/json"
	"errors"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// numbersAsText decodes a number under `any` as json.Number, so that no digit
// is lost on the way from model to tool.
var numbersAsText = jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	*v = json.Number(text)
	return nil
}))

// decodeExact decodes JSON by exact names: `AMOUNT` is never taken for
// `amount` (encoding/json does so). Duplicate keys are errors.
func decodeExact(b []byte, v any) error {
	return jsonv2.Unmarshal(b, v, numbersAsText)
}
