package openai

import (
	"encoding/json"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// chatRequest is the body of a Chat Completions request, as far as it is written:
// https://platform.openai.com/docs/api-reference/chat/create. The SDK has types for
// it in its root package, which reaches every service that the vendor has: with it
// a program is 13 MB larger. The tests hold these bodies against those types.
type chatRequest struct {
	Messages            []chatMessage     `json:"messages"`
	Model               string            `json:"model"`
	MaxCompletionTokens int64             `json:"max_completion_tokens,omitzero"`
	Temperature         *float64          `json:"temperature,omitzero"`
	ReasoningEffort     string            `json:"reasoning_effort,omitzero"`
	StreamOptions       chatStreamOptions `json:"stream_options"`
	Tools               []chatTool        `json:"tools,omitempty"`
}

type chatStreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// chatMessage is a message of any role. Content is left out where a turn is calls
// alone.
type chatMessage struct {
	Content    *string        `json:"content,omitzero"`
	ToolCalls  []chatToolCall `json:"tool_calls,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitzero"`
	Role       string         `json:"role"`
	chatReasoning
}

// chatReasoning is what servers call their reasoning in a message, beyond the
// vendor's own reference: vLLM and DeepSeek reasoning_content, Ollama and
// OpenRouter reasoning, OpenRouter reasoning_details. OpenAI sends none. It goes
// back as it came.
type chatReasoning struct {
	Reasoning        json.RawMessage `json:"reasoning,omitempty"`
	ReasoningContent json.RawMessage `json:"reasoning_content,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
}

type chatToolCall struct {
	ID       string       `json:"id"`
	Function chatFunction `json:"function"`
	Type     string       `json:"type"`
}

type chatFunction struct {
	Arguments string `json:"arguments"`
	Name      string `json:"name"`
}

type chatTool struct {
	Function chatOffer `json:"function"`
	Type     string    `json:"type"`
}

type chatOffer struct {
	Name        string         `json:"name"`
	Strict      bool           `json:"strict,omitzero"` // off is the default here, and unknown elsewhere
	Description string         `json:"description,omitzero"`
	Parameters  map[string]any `json:"parameters"`
}

func (m *model) chatBody(req *ringi.ModelRequest, entries []vendor.Entry) *chatRequest {
	p := &chatRequest{
		Model:               m.name,
		Temperature:         m.o.Temperature,
		MaxCompletionTokens: m.o.MaxOutputTokens,
		ReasoningEffort:     m.o.Effort,
		StreamOptions:       chatStreamOptions{IncludeUsage: true},
		Messages:            []chatMessage{},
	}
	for i := range req.Tools {
		o := m.offer(&req.Tools[i])
		p.Tools = append(p.Tools, chatTool{chatOffer{o.name, o.strict, o.description, o.parameters}, "function"})
	}
	if req.System != "" {
		p.Messages = append(p.Messages, chatMessage{Role: "system", Content: new(req.System)})
	}
	for i := range entries {
		p.Messages = append(p.Messages, chatMessages(&entries[i])...)
	}
	return p
}

func chatMessages(e *vendor.Entry) []chatMessage {
	switch e.Role {
	case ringi.RoleUser:
		return []chatMessage{{Role: "user", Content: new(e.Text)}}
	case ringi.RoleAssistant:
		return []chatMessage{chatAssistant(e)}
	}
	out := make([]chatMessage, len(e.Results))
	for i := range e.Results {
		out[i] = chatMessage{Role: "tool", Content: new(e.Results[i].Result.Text()), ToolCallID: e.Results[i].Call.ID}
	}
	return out
}

func chatAssistant(e *vendor.Entry) chatMessage {
	a := chatMessage{Role: "assistant"}
	if e.Text != "" || len(e.Calls) == 0 {
		a.Content = new(e.Text)
	}
	for _, c := range e.Calls {
		name := c.Label
		if e.Own {
			name = c.Tool // this server wrote it
		}
		a.ToolCalls = append(a.ToolCalls, chatToolCall{c.ID, chatFunction{c.Input, name}, "function"})
	}
	if e.Own && json.Unmarshal([]byte(e.Data), &a.chatReasoning) != nil {
		a.chatReasoning = chatReasoning{}
	}
	return a
}
