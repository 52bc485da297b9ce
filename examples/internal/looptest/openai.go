package looptest

import (
	"encoding/json"
	"fmt"
	"slices"
)

// ChatCompletions is OpenAI's API, and that of many servers. It refuses a call
// that is not answered exactly once, right after the message that made it.
type ChatCompletions struct{}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (ChatCompletions) Read(path string, body []byte) (Question, error) {
	var b struct {
		Messages []chatMessage
		Tools    []any
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return Question{}, err
	}
	if path != "/chat/completions" || len(b.Tools) == 0 {
		return Question{}, fmt.Errorf("a request to %s with %d tools", path, len(b.Tools))
	}
	q := Question{Inputs: map[string]string{}, Results: map[string]string{}}
	var open []string
	for i, m := range b.Messages {
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 || m.Content == "" {
				return q, fmt.Errorf("message %d: an answer %q to %q, which is not open", i, m.Content, m.ToolCallID)
			}
			open = slices.Delete(open, at, at+1)
			q.Results[m.ToolCallID] = fmt.Sprint(m.Content)
			continue
		}
		if len(open) > 0 {
			return q, fmt.Errorf("message %d: %s before %q were answered", i, m.Role, open)
		}
		if m.Role == "assistant" {
			q.Answers++
		}
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
			q.Inputs[c.ID] = c.Function.Arguments
		}
	}
	if len(open) > 0 {
		return q, fmt.Errorf("a conversation in which %q are not answered", open)
	}
	return q, nil
}

func (ChatCompletions) Calls(calls ...Call) string {
	m := chatMessage{Role: "assistant"}
	for _, c := range calls {
		wire := chatCall{ID: c.ID, Type: "function"}
		wire.Function.Name, wire.Function.Arguments = c.Tool, c.Input
		m.ToolCalls = append(m.ToolCalls, wire)
	}
	return completion(m)
}

func (ChatCompletions) Says(text string) string {
	return completion(chatMessage{Role: "assistant", Content: text})
}

func (ChatCompletions) Fault(text string) string {
	return fmt.Sprintf(`{"error":{"message":%q}}`, text)
}

func completion(m chatMessage) string {
	b, _ := json.Marshal(m) // strings only
	return Completion(string(b))
}

// Completion is an answer of ChatCompletions with an assistant's message as it is.
func Completion(message string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":%s,"finish_reason":"stop"}]}`, message)
}
