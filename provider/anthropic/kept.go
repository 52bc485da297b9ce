package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/ringi-dev/ringi/internal/vendor"
)

// block is a content block of an answer: as it streams, and as a turn keeps it.
type block struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"` // of redacted thinking
}

func (b *block) thinks() bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }

// keep writes the blocks of an answer, in their order: thinking is sent back
// unchanged and in its place, or the request is refused (F71). Of a call only the
// place is kept; what it was stands in the log.
func keep(blocks []block) string {
	b, err := json.Marshal(blocks)
	if err != nil {
		return "[]"
	}
	return string(b)
}

// kept are the blocks of a turn of this very model. They went through the
// caller's hands where a client keeps the history, so they are taken back only
// where they are this turn's: its text, a place for each of its calls, and
// thinking, which the vendor has signed.
func kept(e *vendor.Entry) ([]block, bool) {
	var blocks []block
	if !e.Own || json.Unmarshal([]byte(e.Data), &blocks) != nil {
		return nil, false
	}
	var text strings.Builder
	calls := 0
	for i := range blocks {
		switch blocks[i].Type {
		case "text":
			text.WriteString(blocks[i].Text)
		case "tool_use":
			calls++
		case "thinking", "redacted_thinking":
		default:
			return nil, false
		}
	}
	return blocks, calls == len(e.Calls) && text.String() == e.Text
}
