package sight

import (
	"github.com/ringi-dev/ringi"
)

// Previews reports whether a reader is shown previews of a data class (S-17):
// access.Who.SeesPreview. nil is shown none.
type Previews func(ringi.DataClass) bool

func (p Previews) sees(t ringi.Tool) bool { return p != nil && p(t.PreviewData()) }

// Blind reports whether a request has a preview that the reader is not shown.
func Blind(r ringi.ApprovalRequest, p Previews) bool {
	return (r.Preview != nil || r.PreviewError != "") && !p.sees(r.Tool)
}
