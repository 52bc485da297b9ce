package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// chatStream reads a stream of Chat Completions:
// https://platform.openai.com/docs/api-reference/chat-streaming. "[DONE]" closes
// it: what ends before is broken, even behind the finish reason.
type chatStream struct {
	m    *model
	out  *vendor.Sink
	call *vendor.Watched

	text, refusal strings.Builder
	reasoning     [2]strings.Builder // reasoning_content and reasoning
	details       []json.RawMessage
	calls         []*chatCall
	finish        string
	usage         ringi.Usage
}

// chatCall is a call in the making.
type chatCall struct {
	index    int64
	id, name string
	input    strings.Builder
}

func (s *chatStream) read(data []byte) (bool, error) {
	data = bytes.TrimSpace(data)
	if string(data) == "[DONE]" {
		return true, s.close()
	}
	if err := faultIn(s.call, data); err != nil {
		return false, err
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, fmt.Errorf("read chunk: %w", err)
	}
	if u := c.Usage; u != nil {
		s.usage = ringi.Usage{InputTokens: u.Input, OutputTokens: u.Output, ReasoningTokens: u.OutputDetails.Reasoning, CachedTokens: u.InputDetails.Cached}
	}
	for i := range c.Choices {
		if err := s.choice(&c.Choices[i]); err != nil {
			return false, err
		}
	}
	return false, nil
}

// chunk is a chunk, as far as it is read. The SDK's own type takes 70
// allocations for a few letters of text.
type chunk struct {
	Choices []choice `json:"choices"`
	Usage   *struct {
		Input        int64 `json:"prompt_tokens"`
		Output       int64 `json:"completion_tokens"`
		InputDetails struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		OutputDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
}

type choice struct {
	Index  int64  `json:"index"`
	Delta  delta  `json:"delta"`
	Finish string `json:"finish_reason"`
}

type delta struct {
	Content      string          `json:"content"`
	Refusal      string          `json:"refusal"`
	FunctionCall json.RawMessage `json:"function_call"`
	ToolCalls    []fragment      `json:"tool_calls"`
	// As other servers call their reasoning, see chatReasoning.
	ReasoningContent string            `json:"reasoning_content"`
	Reasoning        string            `json:"reasoning"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
}

// fragment is a piece of a call.
type fragment struct {
	Index    int64  `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// faultIn finds an error that a stream tells: gateways write one where a chunk
// should stand.
func faultIn(call *vendor.Watched, data []byte) error {
	if !bytes.Contains(data, []byte(`"error"`)) {
		return nil
	}
	var outer struct {
		Error *json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &outer) != nil || outer.Error == nil {
		return nil
	}
	var f wireFault
	if json.Unmarshal(*outer.Error, &f) != nil {
		f = wireFault{Message: string(*outer.Error)}
	}
	return call.Fault(f.said())
}

func (s *chatStream) choice(c *choice) error {
	if c.Index != 0 {
		return fmt.Errorf("choice %d was not asked for", c.Index)
	}
	d := &c.Delta
	if s.finish != "" && (d.Content != "" || d.Refusal != "" || len(d.ToolCalls) > 0) {
		return errors.New("the model spoke after its finish reason")
	}
	if len(d.FunctionCall) > 0 && string(d.FunctionCall) != "null" {
		return errors.New("function_call was not asked for")
	}
	if err := s.think(d); err != nil {
		return err
	}
	s.text.WriteString(d.Content)
	s.refusal.WriteString(d.Refusal)
	if told := d.Content + d.Refusal; told != "" {
		if err := s.out.Put(ringi.ModelEvent{TextDelta: told}); err != nil {
			return err
		}
	}
	for i := range d.ToolCalls {
		if err := s.fragment(&d.ToolCalls[i]); err != nil {
			return err
		}
	}
	if c.Finish != "" {
		s.finish = c.Finish
	}
	return nil
}

// think keeps reasoning in every form that servers write, and tells the text of
// one of them: they repeat each other.
func (s *chatStream) think(d *delta) error {
	s.reasoning[0].WriteString(d.ReasoningContent)
	s.reasoning[1].WriteString(d.Reasoning)
	s.details = append(s.details, d.ReasoningDetails...)
	told := cmp.Or(d.ReasoningContent, d.Reasoning)
	if told == "" {
		return nil
	}
	return s.out.Put(ringi.ModelEvent{ReasoningDelta: told})
}

// fragment takes a piece of a call. Pieces belong together by their index; some
// servers write every call under index 0, each with an id of its own.
func (s *chatStream) fragment(d *fragment) error {
	pos := -1
	for i := len(s.calls) - 1; i >= 0 && pos < 0; i-- {
		if s.calls[i].index == d.Index {
			pos = i
		}
	}
	if pos < 0 || d.ID != "" && s.calls[pos].id != "" && d.ID != s.calls[pos].id && d.Function.Name != "" {
		s.calls = append(s.calls, &chatCall{index: d.Index})
		pos = len(s.calls) - 1
	}
	c := s.calls[pos]
	if d.ID != "" && c.id != "" && d.ID != c.id || d.Function.Name != "" && c.name != "" && d.Function.Name != c.name {
		return fmt.Errorf("call %d changed its id or name in the middle", pos)
	}
	c.id, c.name = cmp.Or(c.id, d.ID), cmp.Or(c.name, d.Function.Name)
	c.input.WriteString(d.Function.Arguments)
	if d.Function.Arguments == "" {
		return nil
	}
	return s.out.Put(ringi.ModelEvent{InputDelta: d.Function.Arguments, CallIndex: pos, CallTool: c.name})
}

// close makes the turn.
func (s *chatStream) close() error {
	if s.finish == "" {
		return errors.New("no finish reason")
	}
	t := &ringi.ModelTurn{Text: s.text.String() + s.refusal.String(), Finish: s.reason(), Usage: s.usage}
	for i, c := range s.calls {
		if c.name == "" {
			return fmt.Errorf("call %d has no name", i)
		}
		t.Calls = append(t.Calls, ringi.ToolCall{ModelID: c.id, Tool: c.name, Input: ringi.Input(c.input.String())})
	}
	if len(t.Calls) > 0 && t.Finish.Clean() {
		t.Opaque = vendor.Seal(s.m.seal, s.kept())
	}
	return s.out.Put(ringi.ModelEvent{Turn: t})
}

// reason translates the finish reason. One that is not known is not clean:
// nothing of such a turn runs. Neither does a call beside a refusal.
func (s *chatStream) reason() ringi.FinishReason {
	switch {
	case s.refusal.Len() > 0 && len(s.calls) > 0:
		return ringi.FinishFilter
	case s.finish == "stop" && len(s.calls) > 0, s.finish == "tool_calls":
		return ringi.FinishCalls
	case s.finish == "stop":
		return ringi.FinishStop
	case s.finish == "length":
		return ringi.FinishLength
	case s.finish == "content_filter":
		return ringi.FinishFilter
	}
	return ringi.FinishError
}

// kept is what goes back with a turn that called: the reasoning, in the members
// that it came in, and by being there that this server made the call ids. Of a
// turn without calls nothing is kept: no server wants that reasoning back.
func (s *chatStream) kept() string {
	kept := map[string]any{}
	for i, key := range []string{"reasoning_content", "reasoning"} {
		if s.reasoning[i].Len() > 0 {
			kept[key] = s.reasoning[i].String()
		}
	}
	if len(s.details) > 0 {
		kept["reasoning_details"] = s.details
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(kept) != nil {
		return "{}"
	}
	return strings.TrimSpace(b.String())
}
