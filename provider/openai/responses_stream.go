package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// responseStream reads a stream of Responses:
// https://platform.openai.com/docs/api-reference/responses-streaming. The event
// with the response's end closes it: completed, incomplete or failed.
type responseStream struct {
	m       *model
	out     *vendor.Sink
	call    *vendor.Watched
	allowed allowed

	items   []json.RawMessage // done, in order
	text    strings.Builder
	refused bool
	calls   []ringi.ToolCall
	open    []openCall
}

// openCall is a call whose input streams.
type openCall struct {
	index int64
	tool  string
}

// event is an event, as far as it is read. The SDK's own type holds every member
// of some sixty events; most events are a few letters of text.
type event struct {
	Type     string          `json:"type"`
	Index    int64           `json:"output_index"`
	Delta    string          `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Response json.RawMessage `json:"response"`
	wireFault
}

func (s *responseStream) read(data []byte) (bool, error) {
	data = bytes.TrimSpace(data)
	var ev event
	if err := json.Unmarshal(data, &ev); err != nil {
		if string(data) == "[DONE]" {
			return false, nil // some servers write it; it closes nothing here
		}
		// A delta that is no string belongs to an event that is not read.
		var kind struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(data, &kind) != nil || kind.Type == "" || known(kind.Type) {
			return false, fmt.Errorf("read event: %w", err)
		}
		return false, nil
	}
	switch ev.Type {
	case "response.output_text.delta", "response.refusal.delta":
		return false, s.put(ringi.ModelEvent{TextDelta: ev.Delta}, ev.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return false, s.put(ringi.ModelEvent{ReasoningDelta: ev.Delta}, ev.Delta)
	case "response.output_item.added":
		return false, s.added(&ev)
	case "response.function_call_arguments.delta":
		return false, s.fragment(&ev)
	case "response.output_item.done":
		return false, s.done(ev.Item)
	case "response.completed", "response.incomplete", "response.failed":
		return true, s.close(&ev)
	case "error":
		ev.wireFault.Type = "" // it is the event's
		return false, s.call.Fault(ev.said())
	case "":
		if err := faultIn(s.call, data); err != nil {
			return false, err
		}
		return false, errors.New("event without a type")
	}
	return false, nil
}

// known reports whether an event must be read.
func known(kind string) bool {
	return slices.Contains([]string{"response.output_text.delta", "response.refusal.delta", "response.output_item.done", "response.completed",
		"response.incomplete", "response.failed", "response.function_call_arguments.delta", "error"}, kind)
}

func (s *responseStream) put(ev ringi.ModelEvent, told string) error {
	if told == "" {
		return nil
	}
	return s.out.Put(ev)
}

func (s *responseStream) added(ev *event) error {
	var it item
	if err := json.Unmarshal(ev.Item, &it); err != nil {
		return fmt.Errorf("read item: %w", err)
	}
	if it.Type == "function_call" {
		s.open = append(s.open, openCall{ev.Index, it.Name})
	}
	return nil
}

func (s *responseStream) fragment(ev *event) error {
	for i, c := range s.open {
		if c.index == ev.Index {
			return s.put(ringi.ModelEvent{InputDelta: ev.Delta, CallIndex: i, CallTool: c.tool}, ev.Delta)
		}
	}
	return fmt.Errorf("input of an unknown call at %d", ev.Index)
}

// done takes a whole item.
func (s *responseStream) done(raw json.RawMessage) error {
	var it item
	if err := json.Unmarshal(raw, &it); err != nil {
		return fmt.Errorf("read item: %w", err)
	}
	switch it.Type {
	case "message":
		if err := s.message(raw); err != nil {
			return err
		}
	case "function_call", "mcp_approval_request":
		if it.Name == "" {
			return errors.New("call has no name")
		}
		s.calls = append(s.calls, it.call(s.m.hosted))
	case "mcp_call":
		// What was not asked for is not allowed, and it has run already.
		if err := s.allowed.runs(&it, s.m.hosted); err != nil {
			return err
		}
	case "mcp_list_tools":
		if !s.allowed.tools.server(it.Server) {
			return fmt.Errorf("the vendor asked server %q, which was not offered", it.Server)
		}
	case "reasoning":
	default:
		return fmt.Errorf("item of type %q was not asked for", it.Type)
	}
	s.items = append(s.items, raw)
	return nil
}

func (s *responseStream) message(raw json.RawMessage) error {
	var msg struct {
		Content []struct {
			Type    string `json:"type"`
			Text    string `json:"text"`
			Refusal string `json:"refusal"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &msg); err != nil {
		return fmt.Errorf("read message: %w", err)
	}
	for _, c := range msg.Content {
		s.text.WriteString(c.Text)
		s.text.WriteString(c.Refusal)
		s.refused = s.refused || c.Type == "refusal"
	}
	return nil
}

// end is a response's end.
type end struct {
	Status string `json:"status"`
	Usage  *struct {
		Input        int64 `json:"input_tokens"`
		Output       int64 `json:"output_tokens"`
		InputDetails struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
	Error      *wireFault `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Output []json.RawMessage `json:"output"`
}

func (s *responseStream) close(ev *event) error {
	var r end
	if err := json.Unmarshal(ev.Response, &r); err != nil {
		return fmt.Errorf("read response: %w", err)
	}
	if ev.Type == "response.failed" {
		if r.Error == nil {
			r.Error = &wireFault{Message: "the response failed"}
		}
		return s.call.Fault(r.Error.said())
	}
	if err := s.complete(r.Output); err != nil {
		return err
	}
	t := &ringi.ModelTurn{Text: s.text.String(), Calls: s.calls, Finish: s.reason(ev.Type, &r)}
	if u := r.Usage; u != nil {
		t.Usage = ringi.Usage{InputTokens: u.Input, OutputTokens: u.Output, ReasoningTokens: u.OutputDetails.Reasoning, CachedTokens: u.InputDetails.Cached}
	}
	if t.Finish.Clean() && len(s.items) > 0 {
		b, err := join(s.items)
		if err != nil {
			return err
		}
		t.Opaque = vendor.Seal(s.m.seal, b)
	}
	return s.out.Put(ringi.ModelEvent{Turn: t})
}

// complete compares what was streamed with what the response lists. Some servers
// list nothing, some stream nothing but the list; a list that differs is broken.
func (s *responseStream) complete(listed []json.RawMessage) error {
	if len(listed) == 0 {
		return nil
	}
	if len(s.items) > 0 {
		if len(listed) != len(s.items) {
			return fmt.Errorf("%d items were streamed, %d are listed", len(s.items), len(listed))
		}
		return nil
	}
	for _, raw := range listed {
		if err := s.done(raw); err != nil {
			return err
		}
	}
	return nil
}

// reason translates the end. What is not known is not clean.
func (s *responseStream) reason(kind string, r *end) ringi.FinishReason {
	switch {
	case kind == "response.completed" && r.Status != "completed":
		return ringi.FinishError
	case kind == "response.completed" && s.refused && len(s.calls) > 0:
		return ringi.FinishFilter
	case kind == "response.completed" && len(s.calls) > 0:
		return ringi.FinishCalls
	case kind == "response.completed":
		return ringi.FinishStop
	case r.Incomplete.Reason == "max_output_tokens":
		return ringi.FinishLength
	case r.Incomplete.Reason == "content_filter":
		return ringi.FinishFilter
	}
	return ringi.FinishError
}

// join writes items as an array, each byte for byte.
func join(items []json.RawMessage) (string, error) {
	var b strings.Builder
	b.WriteByte('[')
	for i, raw := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(raw)
	}
	b.WriteByte(']')
	if !json.Valid([]byte(b.String())) {
		return "", errors.New("items are no JSON")
	}
	return b.String(), nil
}
