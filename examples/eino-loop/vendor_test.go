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
// not answered exactly once, right after the message that made it.
type vendor struct {
	*httptest.Server
	mu      sync.Mutex
	answers []string // assistant messages, JSON
	asked   [][]message
	faults  []string
}

type message struct {
	Role       string `json:"role"`
	Content    any    `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
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
	if err == nil && (r.URL.Path != "/chat/completions" || len(body.Tools) == 0) {
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
		fmt.Fprintf(w, `{"error":{"message":%q}}`, err)
		return
	}
	v.asked = append(v.asked, body.Messages)
	fmt.Fprintf(w, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":%s,"finish_reason":"stop"}]}`, v.answers[n])
}

// legal says what the real API would say of a conversation.
func legal(messages []message) error {
	var open []string
	for i, m := range messages {
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return fmt.Errorf("message %d: an answer to %q, which is not open", i, m.ToolCallID)
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d: %s before %q were answered", i, m.Role, open)
		}
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
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

// calls is an assistant message of calls: id, tool and arguments each.
func calls(parts ...string) string {
	var list []map[string]any
	for c := range slices.Chunk(parts, 3) {
		list = append(list, map[string]any{"id": c[0], "type": "function", "function": map[string]any{"name": c[1], "arguments": c[2]}})
	}
	b, _ := json.Marshal(map[string]any{"role": "assistant", "content": nil, "tool_calls": list})
	return string(b)
}

// says is an assistant message of text.
func says(text string) string {
	b, _ := json.Marshal(map[string]any{"role": "assistant", "content": text})
	return string(b)
}
