package agui

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
)

// The reasons of an interrupt: the protocol's own, and ours.
const (
	reasonCall      = "tool_call"
	reasonInput     = "input_required"
	reasonResult    = "ringi:tool_result"
	reasonElsewhere = "ringi:decided_elsewhere"
)

// interrupt is an Interrupt (AG-UI 1.0).
type interrupt struct {
	ID             string          `json:"id"`
	Reason         string          `json:"reason"`
	Message        string          `json:"message"`
	ToolCallID     string          `json:"toolCallId,omitempty"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	ExpiresAt      string          `json:"expiresAt,omitempty"`
	Metadata       struct {
		Ringi about `json:"ringi"`
	} `json:"metadata"`
}

// about is what the protocol has no field for.
type about struct {
	Request string `json:"request,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Here    bool   `json:"here"`
	Link    string `json:"link,omitempty"`
	Preview string `json:"preview,omitempty"`
}

// open are the requests that a run waits for, in the order of its calls.
func open(v *chat.View) []*chat.Ask {
	var out []*chat.Ask
	for _, s := range v.Steps {
		for _, one := range s.Calls {
			for _, a := range one.Asks {
				if a.State == ringi.Pending {
					out = append(out, a)
				}
			}
		}
	}
	return out
}

// interrupts are what a run waits for, as JSON. There is always one: a client has
// to know that the run goes on.
func (h *Handler) interrupts(v *chat.View) string {
	var all []interrupt
	for _, a := range open(v) {
		all = append(all, h.interrupt(a))
	}
	b, err := json.Marshal(all)
	if err != nil || len(all) == 0 { // a schema that is no JSON: the engine holds none
		return `[{"id":` + chat.Quote(v.Row.ID) + `,"reason":"` + reasonElsewhere + `","message":"This waits for a decision."}]`
	}
	return string(b)
}

func (h *Handler) interrupt(a *chat.Ask) interrupt {
	i := interrupt{ID: a.ID, Reason: reasonElsewhere, ToolCallID: a.Call.ID, ExpiresAt: chat.Unix(a.ExpiresAt),
		Message: "The call of " + a.Call.Tool + " waits for a decision that is made elsewhere."}
	i.Metadata.Ringi = about{Request: a.ID, Kind: string(a.Kind), Tool: a.Call.Tool, Here: a.Here}
	if h.o.Link != nil {
		i.Metadata.Ringi.Link = h.o.Link(a.ID)
	}
	if !a.Here {
		return i
	}
	i.ID = interruptID(a)
	if a.Preview != nil {
		i.Metadata.Ringi.Preview = a.Preview.Text
	}
	switch {
	case a.Kind == ringi.KindResult:
		i.Reason, i.Message, i.ResponseSchema = reasonResult, "What does "+a.Call.Tool+" give?", resultSchema
	case chat.Typed(a.Kind):
		i.Reason, i.ResponseSchema = reasonInput, json.RawMessage(cmp.Or(string(a.InputSchema), "{}"))
		i.Message = "The call of " + a.Call.Tool + " needs values of you. Giving them lets it run."
	default:
		i.Reason, i.ResponseSchema = reasonCall, approvalSchema(a)
		i.Message = "Allow the call of " + a.Call.Tool + "?"
	}
	if p := i.Metadata.Ringi.Preview; p != "" {
		i.Message += "\n" + p
	}
	return i
}

// interruptID names a request together with what its bearer was shown of it.
func interruptID(a *chat.Ask) string { return a.ID + "~" + a.Seal }

// requestOf takes an interrupt's id apart.
func requestOf(interruptID string) (request, seal string) {
	request, seal, _ = strings.Cut(interruptID, "~")
	return request, seal
}

// approvalSchema is what an answer to an approval may hold; editedArgs only where
// the tool lets its input be edited.
func approvalSchema(a *chat.Ask) json.RawMessage {
	out := `{"type":"object","required":["approved"],"additionalProperties":false,"properties":{"approved":{"type":"boolean"},"reason":{"type":"string"}`
	if a.Allows(ringi.Edit) {
		out += `,"editedArgs":` + cmp.Or(string(a.Tool.InputSchema), `{"type":"object"}`)
	}
	return json.RawMessage(out + "}}")
}

var resultSchema = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"result":{},"error":{"type":"string"}}}`)
