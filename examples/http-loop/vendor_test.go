package httploop_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// vendor plays a model's API. It answers the n-th question of any conversation
// with the n-th of its answers, and refuses what a real one refuses: a call that
// is not answered exactly once, right after the message that made it.
type vendor struct {
	*httptest.Server
	mu      sync.Mutex
	answers []string
	asked   [][]message
	faults  []string
}

type message struct {
	Role       string `json:"role"`
	Content    any    `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID string `json:"id"`
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
	if err == nil && (r.URL.Path != "/chat/completions" || len(body.Tools) != 1) {
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
	if err != nil {
		v.faults = append(v.faults, err.Error())
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	v.asked = append(v.asked, body.Messages)
	fmt.Fprintf(w, `{"choices":[{"message":%s}]}`, v.answers[n])
}

func legal(messages []message) error {
	var open []string
	for i, m := range messages {
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 || m.Content == "" {
				return fmt.Errorf("message %d: an answer %q to %q, which is not open", i, m.Content, m.ToolCallID)
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

// told are the tool results that the newest question had.
func (v *vendor) told() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	for _, m := range v.asked[len(v.asked)-1] {
		if m.Role == "tool" {
			out = append(out, fmt.Sprint(m.Content))
		}
	}
	return out
}

// calls is an assistant message with a call of refund for each input.
func calls(inputs ...string) string {
	var list []map[string]any
	for i, input := range inputs {
		list = append(list, map[string]any{"id": fmt.Sprint("call", i), "type": "function", "function": map[string]any{"name": "refund", "arguments": input}})
	}
	b, _ := json.Marshal(map[string]any{"role": "assistant", "content": nil, "tool_calls": list})
	return string(b)
}

const bye = `{"role":"assistant","content":"Done."}`
