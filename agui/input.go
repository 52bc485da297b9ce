package agui

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringi-dev/ringi/internal/chat"
)

// input is a RunAgentInput (AG-UI 1.0), as far as it is looked at. All but the
// newest user message and the answers is the client's word, and counts for
// nothing.
type input struct {
	ThreadID string    `json:"threadId"`
	RunID    string    `json:"runId"`
	Messages []message `json:"messages"`
	Resume   []entry   `json:"resume"`
}

// message is a Message of any role.
type message struct {
	ID         string         `json:"id"`
	Role       string         `json:"role"`
	Content    jsontext.Value `json:"content"` // a string, or parts
	ToolCalls  []toolCall     `json:"toolCalls"`
	ToolCallID string         `json:"toolCallId"` // of role tool
}

type toolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// entry is a ResumeEntry.
type entry struct {
	InterruptID string         `json:"interruptId"`
	Status      string         `json:"status"`
	Payload     jsontext.Value `json:"payload"`
}

// read reads a body, and names its thread.
func (h *Handler) read(r *http.Request, c *chat.Caller) (*input, error) {
	var in input
	if err := chat.ReadBody(r, &in); err != nil {
		return nil, err
	}
	if in.RunID == "" || len(in.RunID) > 200 {
		return nil, chat.Problemf(http.StatusBadRequest, "run_id", "A runId has 1 to 200 characters.")
	}
	return &in, h.chat.Name(c, in.ThreadID)
}

// last is the newest message; nil for none.
func (in *input) last() *message {
	if len(in.Messages) == 0 {
		return nil
	}
	return &in.Messages[len(in.Messages)-1]
}

// answered is the run of the newest message that is one of ours.
func (in *input) answered() string {
	for i := len(in.Messages) - 1; i >= 0; i-- {
		if run := in.Messages[i].run(); run != "" {
			return run
		}
	}
	return ""
}

// run is the run that an assistant's message is of; "" for none of ours.
func (m *message) run() string {
	run, _, ok := strings.Cut(m.ID, ".")
	if !ok || m.Role != "assistant" || !strings.HasPrefix(run, "run_") {
		return ""
	}
	return run
}

// text is what a message says.
func (m *message) text() (string, error) {
	var text string
	if len(m.Content) == 0 || json.Unmarshal(m.Content, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return "", chat.Problemf(http.StatusBadRequest, "malformed", "A message's content is a text or a list of parts.")
	}
	var all []string
	for _, p := range parts {
		if p.Type != "text" {
			return "", chat.Problemf(http.StatusUnprocessableEntity, "part", "A message holds text; %q cannot be taken.", p.Type)
		}
		all = append(all, p.Text)
	}
	return strings.Join(all, "\n"), nil
}

// said are the ids that the client gave its user messages, by the run that
// answered them; the newest may have none yet.
func (in *input) said(newest string) map[string]string {
	out, user := map[string]string{}, ""
	for i := range in.Messages {
		m := &in.Messages[i]
		switch run := m.run(); {
		case m.Role == "user":
			user = m.ID
		case run != "" && user != "":
			if out[run] == "" {
				out[run] = user
			}
			user = ""
		}
	}
	if user != "" && out[newest] == "" {
		out[newest] = user
	}
	return out
}
