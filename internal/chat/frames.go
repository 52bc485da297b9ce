package chat

import (
	"strings"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// Frames are JSON objects as server-sent events, one after the other (WHATWG
// HTML, 9.2). Its zero value is empty.
type Frames struct {
	Buf []byte
}

// Begin begins an object of a type; End ends it.
func (f *Frames) Begin(kind string) {
	f.Buf = append(append(append(f.Buf, `data: {"type":"`...), kind...), '"')
}

// End ends an object.
func (f *Frames) End() { f.Buf = append(f.Buf, "}\n\n"...) }

// Field adds a member with a text; what is no UTF-8 is replaced.
func (f *Frames) Field(name, text string) {
	f.Buf = append(append(append(f.Buf, `,"`...), name...), `":`...)
	f.Buf = strictjson.AppendString(f.Buf, strings.ToValidUTF8(text, "\uFFFD"))
}

// Raw adds a member with JSON.
func (f *Frames) Raw(name, value string) {
	f.Buf = append(append(append(append(f.Buf, `,"`...), name...), `":`...), value...)
}

// Take gives what was added since the last Take; it is good until more is added.
func (f *Frames) Take() ([]byte, error) {
	b := f.Buf
	f.Buf = f.Buf[:0]
	return b, nil
}
