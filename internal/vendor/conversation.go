// Package vendor is what providers of language models share: a conversation
// checked before it goes out, a watch over one HTTP call, and a vendor's own
// words kept in a turn.
package vendor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
)

// Form is how one provider writes a conversation.
type Form struct {
	// Provider names the provider in errors.
	Provider string
	// Seal is the name under which this provider seals its own words, see
	// [Seal]. It should name whatever must be the same for them to be taken
	// back: the API, the address, the model.
	Seal string
	// MaxID is the longest call id that the vendor takes from elsewhere.
	MaxID int
}

// Entry is a message as it goes out.
type Entry struct {
	Role ringi.Role
	Text string
	// Calls are an assistant's, Results the answers to the calls of the entry
	// before: as many, in the same order.
	Calls   []Call
	Results []Result
	// Own is set for an assistant message of this very provider, and Data is
	// what it sealed.
	Own  bool
	Data string
}

// Call is a call of the model.
type Call struct {
	// ID names the call towards the vendor: unique in the conversation, never
	// empty. The model's own where the vendor takes it, else derived; the same
	// conversation gives the same ids.
	ID string
	// Tool is the name that the model wrote, Label one that every vendor takes.
	Tool, Label string
	// Input is what the model wrote, byte for byte, whatever ran.
	Input string
	// ModelID is the id that the model wrote.
	ModelID string
}

// Result is the answer to a call.
type Result struct {
	Call   Call
	Result ringi.ToolResult
}

// Conversation checks messages and names their calls. A call without a result,
// or a result without a call, is a bad request: it never goes out.
func Conversation(msgs []ringi.Message, f Form) ([]Entry, error) {
	w := writer{form: f, used: map[string]bool{}}
	for i := range msgs {
		if err := w.add(i, &msgs[i]); err != nil {
			return nil, &ringi.ModelError{Class: ringi.ModelBadRequest, Provider: f.Provider, Err: fmt.Errorf("message %d: %w", i, err)}
		}
	}
	if w.open != nil {
		return nil, &ringi.ModelError{Class: ringi.ModelBadRequest, Provider: f.Provider,
			Err: fmt.Errorf("message %d: call of tool %q has no result", len(msgs)-1, w.open[0].Tool)}
	}
	return w.out, nil
}

type writer struct {
	form Form
	used map[string]bool
	out  []Entry
	open []Call // of the entry before, not answered yet
}

func (w *writer) add(i int, m *ringi.Message) error {
	if w.open != nil && m.Role != ringi.RoleTool {
		return fmt.Errorf("call of tool %q has no result before it", w.open[0].Tool)
	}
	e := Entry{Role: m.Role, Text: strings.ToValidUTF8(m.Text, "\uFFFD")}
	switch m.Role {
	case ringi.RoleUser:
	case ringi.RoleAssistant:
		e.Data, e.Own = Open(w.form.Seal, m.Opaque)
		for k := range m.Calls {
			e.Calls = append(e.Calls, w.call(i, k, &m.Calls[k], e.Own))
		}
		w.open = e.Calls
		if e.Text == "" && len(e.Calls) == 0 && !e.Own {
			return nil // says nothing; some vendors refuse it
		}
	case ringi.RoleTool:
		results, err := w.results(m)
		if err != nil {
			return err
		}
		e.Results, w.open = results, nil
	default:
		return fmt.Errorf("unknown role %q", m.Role)
	}
	w.out = append(w.out, e)
	return nil
}

// call names a call. A vendor gets its own ids back; another's only where every
// vendor takes them.
func (w *writer) call(i, k int, c *ringi.ToolCall, own bool) Call {
	out := Call{ID: c.ModelID, ModelID: c.ModelID, Tool: c.Tool, Label: Label(c.Tool), Input: string(c.Input)}
	if c.Raw != "" {
		out.Input = string(c.Raw)
	}
	longest := w.form.MaxID
	if own {
		longest = 512
	}
	if len(out.ID) > longest || !own && !plain(out.ID) || w.used[out.ID] || out.ID == "" {
		out.ID = ""
	}
	for n := 0; out.ID == "" || w.used[out.ID]; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %d %q %q", i, k, n, c.ID, c.ModelID))
		out.ID = "call_" + hex.EncodeToString(sum[:12])
	}
	w.used[out.ID] = true
	return out
}

// plain reports whether every vendor takes an id, but for its length.
func plain(id string) bool {
	for i := range len(id) {
		if !plainByte(id[i]) {
			return false
		}
	}
	return true
}

func plainByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// Label is a tool name that every vendor takes. A model may have written a name
// that no tool has: it stands in the conversation, and a vendor refuses it.
func Label(name string) string {
	b := []byte(name)
	if len(b) > 64 {
		b = b[:64]
	}
	for i := range b {
		if !plainByte(b[i]) {
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "unnamed"
	}
	return string(b)
}

// results pairs answers with the calls of the message before: by Ringi's own
// ids where there are any, else by order.
func (w *writer) results(m *ringi.Message) ([]Result, error) {
	if len(m.Results) != len(w.open) {
		return nil, fmt.Errorf("%d calls have %d results", len(w.open), len(m.Results))
	}
	out := make([]Result, len(w.open))
	for k := range w.open {
		r := m.Results[k]
		if r.ModelID != w.open[k].ModelID || r.Tool != "" && r.Tool != w.open[k].Tool {
			return nil, fmt.Errorf("result %d answers call %q of tool %q, not %q of %q", k, r.ModelID, r.Tool, w.open[k].ModelID, w.open[k].Tool)
		}
		out[k] = Result{w.open[k], r}
	}
	return out, nil
}
