package looptest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Messages is Anthropic's API. It refuses a call that is not answered exactly
// once, in the message right after the one that made it and before any text.
type Messages struct{}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   []block         `json:"content"`
}

func (Messages) Read(path string, body []byte) (Question, error) {
	var b struct {
		Messages []struct {
			Role    string
			Content []block
		}
		Tools []any
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return Question{}, err
	}
	if path != "/v1/messages" || len(b.Tools) == 0 {
		return Question{}, fmt.Errorf("a request to %s with %d tools", path, len(b.Tools))
	}
	q := Question{Inputs: map[string]string{}, Results: map[string]string{}}
	var open []string
	for i, m := range b.Messages {
		var err error
		if open, err = q.answered(open, m.Role, m.Content); err != nil {
			return q, fmt.Errorf("message %d: %w", i, err)
		}
		if m.Role == "assistant" {
			q.Answers++
		}
		for _, c := range m.Content {
			if c.Type == "tool_use" {
				open = append(open, c.ID)
				q.Inputs[c.ID] = string(c.Input)
			}
		}
	}
	if len(open) > 0 {
		return q, fmt.Errorf("a conversation in which %q are not answered", open)
	}
	return q, nil
}

// answered takes the results of a message from the calls that are open: all of
// them must be there.
func (q Question) answered(open []string, role string, content []block) ([]string, error) {
	texts := 0
	for _, b := range content {
		switch b.Type {
		case "text":
			texts++
		case "tool_result":
			at := slices.Index(open, b.ToolUseID)
			if at < 0 || texts > 0 || role != "user" {
				return nil, fmt.Errorf("an answer to %q, which is not open, or too late", b.ToolUseID)
			}
			open = slices.Delete(open, at, at+1)
			for _, c := range b.Content {
				q.Results[b.ToolUseID] += c.Text
			}
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%q are not answered", open)
	}
	return open, nil
}

// Calls keeps each input's own bytes, as the real API does.
func (Messages) Calls(calls ...Call) string {
	blocks := []string{`{"type":"text","text":"Let me see."}`}
	for _, c := range calls {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, c.ID, c.Tool, c.Input))
	}
	return message("tool_use", blocks...)
}

func (Messages) Says(text string) string {
	return message("end_turn", fmt.Sprintf(`{"type":"text","text":%q}`, text))
}

func (Messages) Fault(text string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, text)
}

func message(stop string, blocks ...string) string {
	return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":%q,"content":[%s],"usage":{"input_tokens":1,"output_tokens":1}}`,
		stop, strings.Join(blocks, ","))
}
