package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// stream reads the events of an answer:
// https://platform.claude.com/docs/en/build-with-claude/streaming. message_stop
// closes it: what ends before is broken, even behind the stop reason.
type stream struct {
	m    *model
	out  *vendor.Sink
	call *vendor.Watched

	parts   []*part // in the order in which they began
	calls   int
	stop    string
	why     string // of a refusal
	usage   ringi.Usage
	counted wireUsage
}

// part is a content block in the making.
type part struct {
	index  int64
	closed bool
	block
	// Of a call: its number among the calls, and its input.
	nth      int
	id, name string
	whole    string // the input as the block began with it
	input    strings.Builder

	text, thinking strings.Builder
}

// event is an event, as far as it is read.
type event struct {
	Type    string `json:"type"`
	Index   int64  `json:"index"`
	Message struct {
		Usage wireUsage `json:"usage"`
	} `json:"message"`
	Block wireBlock       `json:"content_block"`
	Delta wireDelta       `json:"delta"`
	Usage wireUsage       `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type wireBlock struct {
	block
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input"`
	Caller *struct {
		Type string `json:"type"`
	} `json:"caller"`
}

// wireDelta is the delta of a block, or that of the message.
type wireDelta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Input       string `json:"partial_json"`
	Thinking    string `json:"thinking"`
	Signature   string `json:"signature"`
	StopReason  string `json:"stop_reason"`
	StopDetails *struct {
		Explanation string `json:"explanation"`
	} `json:"stop_details"`
}

// wireUsage counts tokens, each number as of now. What was read from the cache
// and what was written to it is not among the input's.
type wireUsage struct {
	Input   *int64 `json:"input_tokens"`
	Written *int64 `json:"cache_creation_input_tokens"`
	Read    *int64 `json:"cache_read_input_tokens"`
	Output  *int64 `json:"output_tokens"`
	Details *struct {
		Thinking int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (s *stream) read(data []byte) (bool, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return false, nil
	}
	var ev event
	if err := json.Unmarshal(data, &ev); err != nil {
		return false, fmt.Errorf("read event: %w", err)
	}
	switch ev.Type {
	case "message_start":
		s.count(ev.Message.Usage)
	case "content_block_start":
		return false, s.start(&ev)
	case "content_block_delta":
		return false, s.delta(&ev)
	case "content_block_stop":
		return false, s.end(&ev)
	case "message_delta":
		s.count(ev.Usage)
		if ev.Delta.StopReason != "" {
			s.stop = ev.Delta.StopReason
		}
		if ev.Delta.StopDetails != nil {
			s.why = ev.Delta.StopDetails.Explanation
		}
	case "message_stop":
		return true, s.close()
	case "error":
		return false, s.call.Fault(faultOf(ev.Error))
	case "":
		if len(ev.Error) > 0 { // as gateways write it
			return false, s.call.Fault(faultOf(ev.Error))
		}
		return false, errors.New("event without a type")
	}
	return false, nil // ping, and what the vendor may add
}

// count takes what an event tells, and keeps what it does not.
func (s *stream) count(u wireUsage) {
	c := &s.counted
	for _, one := range []struct{ to, from **int64 }{{&c.Input, &u.Input}, {&c.Written, &u.Written}, {&c.Read, &u.Read}, {&c.Output, &u.Output}} {
		if *one.from != nil {
			*one.to = *one.from
		}
	}
	if u.Details != nil {
		c.Details = u.Details
	}
	number := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return *p
	}
	s.usage = ringi.Usage{InputTokens: number(c.Input) + number(c.Written) + number(c.Read), OutputTokens: number(c.Output), CachedTokens: number(c.Read)}
	if c.Details != nil {
		s.usage.ReasoningTokens = c.Details.Thinking
	}
}

// start begins a block.
func (s *stream) start(ev *event) error {
	b := &ev.Block
	if s.stop != "" {
		return errors.New("the model spoke after its stop reason")
	}
	for _, p := range s.parts {
		if p.index == ev.Index {
			return fmt.Errorf("block %d began twice", ev.Index)
		}
	}
	p := &part{index: ev.Index, block: b.block}
	s.parts = append(s.parts, p)
	switch b.Type {
	case "text", "thinking", "redacted_thinking":
		first := wireDelta{Text: b.Text, Thinking: b.Thinking}
		p.Text, p.Thinking = "", ""
		return s.told(p, &first)
	case "tool_use":
		return s.startCall(p, b)
	case "server_tool_use", "mcp_tool_use":
		// What was not asked for is not allowed, and it runs already.
		return fmt.Errorf("the vendor ran tool %q, and asked nobody", b.Name)
	}
	return fmt.Errorf("block of type %q was not asked for", b.Type)
}

func (s *stream) startCall(p *part, b *wireBlock) error {
	if b.Name == "" {
		return errors.New("call has no name")
	}
	if b.Caller != nil && b.Caller.Type != "direct" && b.Caller.Type != "" {
		return fmt.Errorf("call of tool %q comes from %q, which was not asked for", b.Name, b.Caller.Type)
	}
	p.nth, p.id, p.name = s.calls, b.ID, b.Name
	p.block = block{Type: b.Type}
	s.calls++
	if in := string(b.Input); in != "" && in != "null" && in != "{}" {
		p.whole = in // as some servers write it
	}
	return nil
}

// delta takes a piece of a block.
func (s *stream) delta(ev *event) error {
	p, err := s.open(ev.Index)
	if err != nil {
		return err
	}
	d := &ev.Delta
	switch {
	case p.Type == "text" && d.Type == "text_delta", p.Type == "thinking" && d.Type == "thinking_delta":
		return s.told(p, d)
	case p.Type == "thinking" && d.Type == "signature_delta":
		p.Signature += d.Signature
		return nil
	case p.Type == "tool_use" && d.Type == "input_json_delta":
		p.input.WriteString(d.Input)
		return s.fragment(p, d.Input)
	case p.Type == "text" && d.Type != "thinking_delta" && d.Type != "signature_delta" && d.Type != "input_json_delta":
		return nil // citations, and what the vendor may add
	}
	return fmt.Errorf("delta of type %q in a block of type %q", d.Type, p.Type)
}

// told takes text or thinking.
func (s *stream) told(p *part, d *wireDelta) error {
	p.text.WriteString(d.Text)
	p.thinking.WriteString(d.Thinking)
	if d.Text == "" && d.Thinking == "" {
		return nil
	}
	return s.out.Put(ringi.ModelEvent{TextDelta: d.Text, ReasoningDelta: d.Thinking})
}

func (s *stream) fragment(p *part, piece string) error {
	if piece == "" {
		return nil
	}
	return s.out.Put(ringi.ModelEvent{InputDelta: piece, CallIndex: p.nth, CallTool: p.name})
}

func (s *stream) open(index int64) (*part, error) {
	for _, p := range s.parts {
		if p.index == index && !p.closed {
			return p, nil
		}
	}
	return nil, fmt.Errorf("block %d is not open", index)
}

// end closes a block. A call without input has the empty object.
func (s *stream) end(ev *event) error {
	p, err := s.open(ev.Index)
	if err != nil {
		return err
	}
	p.closed = true
	if p.Type != "tool_use" {
		return nil
	}
	switch {
	case p.whole != "" && p.input.Len() > 0:
		return fmt.Errorf("call of tool %q has two inputs", p.name)
	case p.whole == "" && p.input.Len() == 0:
		p.whole = "{}"
	}
	p.input.WriteString(p.whole)
	return s.fragment(p, p.whole)
}

// close makes the turn.
func (s *stream) close() error {
	if s.stop == "" {
		return errors.New("no stop reason")
	}
	t := &ringi.ModelTurn{Finish: s.reason(), Usage: s.usage}
	var text strings.Builder
	blocks := make([]block, 0, len(s.parts))
	worth := s.calls > 0
	for _, p := range s.parts {
		if !p.closed && t.Finish.Clean() && s.stop != "refusal" {
			return fmt.Errorf("block %d was not closed", p.index)
		}
		p.Text, p.Thinking = p.text.String(), p.thinking.String()
		text.WriteString(p.Text)
		if p.Type == "tool_use" {
			t.Calls = append(t.Calls, ringi.ToolCall{ModelID: p.id, Tool: p.name, Input: ringi.Input(p.input.String())})
		}
		worth = worth || p.thinks()
		if p.closed || !p.thinks() { // thinking that was cut has no signature
			blocks = append(blocks, p.block)
		}
	}
	if refused := s.refusal(text.Len() > 0); refused != "" {
		text.WriteString(refused)
		if err := s.out.Put(ringi.ModelEvent{TextDelta: refused}); err != nil {
			return err
		}
		worth = false
	}
	t.Text = text.String()
	if worth {
		t.Opaque = vendor.Seal(s.m.seal, keep(blocks))
	}
	return s.out.Put(ringi.ModelEvent{Turn: t})
}

// refusal is what a person reads of a refusal, behind what the model said before.
func (s *stream) refusal(spoke bool) string {
	switch {
	case s.stop != "refusal" || s.calls > 0:
		return ""
	case s.why == "" && spoke:
		return "\n\n(The model refused to go on.)"
	case s.why == "":
		return "The model refused to answer."
	case spoke:
		return "\n\n" + s.why
	}
	return s.why
}

// reason translates the stop reason:
// https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons. One
// that is not known is not clean: nothing of such a turn runs. A refusal is text,
// and a call beside it does not run. pause_turn comes of tools that the vendor
// runs, which are never asked for; stop_sequence of sequences that are not sent.
func (s *stream) reason() ringi.FinishReason {
	switch {
	case s.stop == "tool_use" && s.calls > 0, s.stop == "end_turn" && s.calls > 0:
		return ringi.FinishCalls
	case s.calls == 0 && (s.stop == "end_turn" || s.stop == "stop_sequence" || s.stop == "refusal"):
		return ringi.FinishStop
	case s.stop == "max_tokens", s.stop == "model_context_window_exceeded":
		return ringi.FinishLength
	case s.stop == "refusal":
		return ringi.FinishFilter
	}
	return ringi.FinishError
}
