package aisdk

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringi-dev/ringi/internal/chat"
)

// body is what a client posts. All but the newest user message and the answers in
// it is the client's word, and counts for nothing.
type body struct {
	ID        string    `json:"id"`
	Messages  []message `json:"messages"`
	Trigger   string    `json:"trigger"`
	MessageID string    `json:"messageId"`
}

// message is a UIMessage, as far as it is looked at.
type message struct {
	ID    string `json:"id"`
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

// part is any part of a message.
type part struct {
	Type       string         `json:"type"`
	Text       string         `json:"text"`
	ToolCallID string         `json:"toolCallId"`
	ToolName   string         `json:"toolName"` // dynamic-tool
	State      string         `json:"state"`
	Input      jsontext.Value `json:"input"`
	Output     jsontext.Value `json:"output"`
	ErrorText  string         `json:"errorText"`
	Approval   *approval      `json:"approval"`
	Metadata   struct {
		Ringi struct {
			Request string `json:"request"`
			Seal    string `json:"seal"`
		} `json:"ringi"`
	} `json:"callProviderMetadata"`
	ID   string         `json:"id"`
	Data jsontext.Value `json:"data"`
}

// approval is what a tool part says of its approval.
type approval struct {
	ID          string         `json:"id"`
	Approved    jsontext.Value `json:"approved"` // a boolean, or the part is refused
	Reason      string         `json:"reason"`
	Signature   string         `json:"signature"`
	IsAutomatic bool           `json:"isAutomatic"`
}

// tool names the tool of a tool part; ok is false for any other.
func (p *part) tool() (name string, ok bool) {
	if p.Type == "dynamic-tool" {
		return p.ToolName, true
	}
	return strings.CutPrefix(p.Type, "tool-")
}

// last is the newest message; nil for none.
func (b *body) last() *message {
	if len(b.Messages) == 0 {
		return nil
	}
	return &b.Messages[len(b.Messages)-1]
}

// answered is the id of the newest assistant message that is a run's.
func (b *body) answered() string {
	for i := len(b.Messages) - 1; i >= 0; i-- {
		if m := &b.Messages[i]; m.Role == "assistant" && strings.HasPrefix(m.ID, "run_") {
			return m.ID
		}
	}
	return ""
}

// load takes what a client's message holds as sent.
func (e *emitter) load(m *message) {
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Type == "step-start":
			e.steps++
		case p.Type == "data-ringi-request":
			var d struct {
				State string `json:"state"`
				Here  bool   `json:"here"`
			}
			if json.Unmarshal(p.Data, &d) == nil {
				e.data[p.ID] = d.State + chat.BoolText(d.Here)
			}
		}
		if _, ok := p.tool(); !ok || p.ToolCallID == "" {
			continue
		}
		x := e.call(p.ToolCallID)
		x.started, x.shown = true, string(p.Input)
		x.input = p.State != "input-streaming"
		if p.Approval != nil {
			x.request = p.Approval.ID
		}
		switch p.State {
		case "approval-responded":
			x.responded = true
		case "output-denied", "output-error":
			x.responded, x.over = true, true
		case "output-available":
			x.responded, x.over = p.Approval != nil, true
		}
	}
	e.done = e.steps
}
