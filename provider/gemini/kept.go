package gemini

import (
	"encoding/json"
	"strings"

	"github.com/ringi-dev/ringi/internal/vendor"
)

// keep writes the parts of an answer, in their order: a signature goes back on the
// part that it came on, and parts are not joined with signed ones (F71):
// https://ai.google.dev/gemini-api/docs/thought-signatures. Of a call only the
// place is kept; what it was stands in the log.
func keep(parts []part) (string, error) {
	b, err := json.Marshal(parts)
	return string(b), err
}

// kept are the parts of a turn of this very model. They went through the caller's
// hands where a client keeps the history, so they are taken back only where they
// are this turn's: its text, a place for each of its calls, and thoughts.
func kept(e *vendor.Entry) ([]part, bool) {
	var parts []part
	if !e.Own || json.Unmarshal([]byte(e.Data), &parts) != nil {
		return nil, false
	}
	var text strings.Builder
	calls := 0
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Response != nil, p.Call != nil && (p.Text != nil || p.Thought), p.Call == nil && p.Text == nil && p.Signature == "":
			return nil, false
		case p.Call != nil:
			calls++
		case p.Text != nil && !p.Thought:
			text.WriteString(*p.Text)
		}
	}
	return parts, calls == len(e.Calls) && text.String() == e.Text
}
