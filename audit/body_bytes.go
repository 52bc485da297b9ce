package audit

import (
	"bytes"
	"fmt"

	"github.com/ringi-dev/ringi"
)

// EncodeBody returns an event's body as a payload spells it: the exact bytes of
// everything in it. See the package comment. An error names what has no form.
func EncodeBody(body ringi.EventBody) ([]byte, error) {
	c := newWriter()
	defer c.free()
	if err := c.body(body); err != nil {
		return nil, fmt.Errorf("encode body: %w", err)
	}
	return bytes.Clone(c.out), nil
}

// DecodeBody reads a body of that kind, as EncodeBody wrote it or in any other
// spelling of it.
func DecodeBody(kind ringi.EventKind, payload []byte) (ringi.EventBody, error) {
	c := newWriter()
	defer c.free()
	body, err := decodeBody(c, kind, payload)
	if err != nil {
		return nil, fmt.Errorf("decode body: %w", err)
	}
	return body, nil
}
