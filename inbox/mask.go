package inbox

import (
	"encoding/json"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/mask"
	"github.com/ringi-dev/ringi/internal/sight"
)

// masker says what of a request is not shown: what package mask finds in its
// input, and the same values wherever else they stand. A nil masker masks
// nothing. Digest and execution are over the true bytes.
type masker struct {
	schemas []json.RawMessage
	text    func(string) string
}

func maskerOf(r ringi.ApprovalRequest) *masker {
	return &masker{[]json.RawMessage{r.Tool.InputSchema, r.Tool.InputRequired}, mask.NewSweeper(sight.Secrets(r)).Text}
}

// paths are the places of an input that are masked, as JSON pointers (RFC
// 6901); "" is the whole.
func (m *masker) paths(input string) map[string]bool {
	out := map[string]bool{}
	if m == nil {
		return out
	}
	for _, p := range mask.Input(input, m.schemas...).Paths {
		out[p] = true
	}
	return out
}

// prose masks secrets in running text: previews, reasons, results.
func (m *masker) prose(s string) string {
	if m == nil {
		return s
	}
	return m.text(s)
}
