package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// vendor plays the API. It answers the n-th question of any conversation with
// the n-th of its answers, and refuses what the real one refuses: a call that is
// not answered exactly once, in the message right after the one that made it.
type vendor struct {
	*httptest.Server
	mu      sync.Mutex
	answers []string // assistant messages, JSON
	asked   [][]message
	faults  []string
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   []block         `json:"content"`
}

func newVendor(t *testing.T, answers ...string) *vendor {
	v := &vendor{answers: answers}
	v.Server = httptest.NewServer(v)
	t.Cleanup(func() {
		v.Close()
		for _, f := range v.faults {
			t.Errorf("the vendor was sent %s", f)
		}
	})
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var body struct {
		Messages []message
		Tools    []any
	}
	err := json.NewDecoder(r.Body).Decode(&body)
	if err == nil && (r.URL.Path != "/v1/messages" || len(body.Tools) == 0) {
		err = fmt.Errorf("a request to %s with %d tools", r.URL.Path, len(body.Tools))
	}
	if err == nil {
		err = legal(body.Messages)
	}
	n := 0
	for _, m := range body.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	if err == nil && n >= len(v.answers) {
		err = fmt.Errorf("question %d, and there are %d answers", n+1, len(v.answers))
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		v.faults = append(v.faults, err.Error())
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, err)
		return
	}
	v.asked = append(v.asked, body.Messages)
	fmt.Fprint(w, v.answers[n])
}

// legal says what the real API would say of a conversation: the next message
// answers all calls, with all answers before any text.
func legal(messages []message) error {
	var open []string
	for i, m := range messages {
		texts := 0
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				texts++
			case "tool_result":
				at := slices.Index(open, b.ToolUseID)
				if at < 0 || texts > 0 || m.Role != "user" {
					return fmt.Errorf("message %d: an answer to %q, which is not open, or too late", i, b.ToolUseID)
				}
				open = slices.Delete(open, at, at+1)
			}
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d: %q are not answered", i, open)
		}
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				open = append(open, b.ID)
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("a conversation in which %q are not answered", open)
	}
	return nil
}

// last is the newest conversation that the vendor was sent.
func (v *vendor) last() []message {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked[len(v.asked)-1]
}

func (v *vendor) questions() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.asked)
}

// calls is a message of calls: id, tool and input each.
func calls(parts ...string) string {
	list := []map[string]any{{"type": "text", "text": "Let me see."}}
	for c := range slices.Chunk(parts, 3) {
		list = append(list, map[string]any{"type": "tool_use", "id": c[0], "name": c[1], "input": json.RawMessage(c[2])})
	}
	return reply("tool_use", list)
}

// says is a message of text.
func says(text string) string {
	return reply("end_turn", []map[string]any{{"type": "text", "text": text}})
}

func reply(stop string, content any) string {
	b, _ := json.Marshal(map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
		"stop_reason": stop, "content": content, "usage": map[string]int{"input_tokens": 1, "output_tokens": 1}})
	return string(b)
}

// results are the answers that the model read, by the ids of its calls.
func (v *vendor) results() map[string]string {
	got := map[string]string{}
	for _, m := range v.last() {
		for _, b := range m.Content {
			if b.Type != "tool_result" {
				continue
			}
			for _, c := range b.Content {
				got[b.ToolUseID] += c.Text
			}
		}
	}
	return got
}
