package gemini

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

// stream reads the chunks of an answer:
// https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent.
// No event closes it: an answer is whole where a chunk gave the finish reason and
// the connection then ended in good order. What ends before is broken.
type stream struct {
	m    *model
	out  *vendor.Sink
	call *vendor.Watched

	parts  []part
	told   []*strings.Builder // the text of parts, as it grows
	text   strings.Builder
	calls  []ringi.ToolCall
	finish string
	usage  ringi.Usage
}

// chunk is a GenerateContentResponse, as far as it is read.
type chunk struct {
	Candidates []candidate `json:"candidates"`
	Feedback   struct {
		Reason  string `json:"blockReason"`
		Message string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt     int64 `json:"promptTokenCount"`
		Cached     int64 `json:"cachedContentTokenCount"`
		Candidates int64 `json:"candidatesTokenCount"`
		Thoughts   int64 `json:"thoughtsTokenCount"`
		ToolUse    int64 `json:"toolUsePromptTokenCount"`
	} `json:"usageMetadata"`
	Error json.RawMessage `json:"error"`
}

type candidate struct {
	Index   int64 `json:"index"`
	Content struct {
		Role  string            `json:"role"`
		Parts []json.RawMessage `json:"parts"`
	} `json:"content"`
	Finish  string `json:"finishReason"`
	Message string `json:"finishMessage"`
	// What tells that the vendor ran a tool of its own.
	Grounding json.RawMessage `json:"groundingMetadata"`
	URLs      json.RawMessage `json:"urlContextMetadata"`
}

func (s *stream) read(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("read chunk: %w", err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return s.call.Fault(saidIn(c.Error))
	}
	if c.Feedback.Reason != "" {
		return s.call.Fault(vendor.Said{Class: ringi.ModelFiltered, Code: c.Feedback.Reason, Text: "the prompt was blocked " + c.Feedback.Message})
	}
	if u := c.Usage; u != nil {
		s.usage = ringi.Usage{InputTokens: u.Prompt + u.ToolUse, OutputTokens: u.Candidates + u.Thoughts, ReasoningTokens: u.Thoughts, CachedTokens: u.Cached}
	}
	for i := range c.Candidates {
		if err := s.candidate(&c.Candidates[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) candidate(c *candidate) error {
	switch {
	case c.Index != 0:
		return fmt.Errorf("candidate %d was not asked for", c.Index)
	case c.Content.Role != "" && c.Content.Role != "model":
		return fmt.Errorf("the answer's role is %q", c.Content.Role)
	case says(c.Grounding), says(c.URLs):
		return errors.New("the vendor searched or fetched, and nobody asked it to")
	}
	for _, raw := range c.Content.Parts {
		if err := s.part(raw); err != nil {
			return err
		}
	}
	if c.Finish == "" || c.Finish == "FINISH_REASON_UNSPECIFIED" {
		return nil
	}
	if s.finish != "" && s.finish != c.Finish {
		return fmt.Errorf("finish reason %s became %s", s.finish, c.Finish)
	}
	if s.finish = c.Finish; slices.Contains(malformed, s.finish) {
		return s.call.Fault(vendor.Said{Class: ringi.ModelBroken, Code: s.finish, Text: "the model's answer cannot be read: " + c.Message})
	}
	return nil
}

// malformed are ends of an answer that nobody can read: there may be calls in it
// and there may be none. The next try is another answer.
var malformed = []string{"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"}

// says reports whether a member holds anything.
func says(raw json.RawMessage) bool {
	return len(raw) > 0 && !slices.Contains([]string{"null", "{}", "[]"}, string(bytes.TrimSpace(raw)))
}

// wirePart is a part as it comes. Calls in pieces are of another backend.
type wirePart struct {
	part
	Call *struct {
		functionCall
		Partial   json.RawMessage `json:"partialArgs"`
		Continues bool            `json:"willContinue"`
	} `json:"functionCall"`
}

func (s *stream) part(raw json.RawMessage) error {
	var p wirePart
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("read part: %w", err)
	}
	switch {
	case p.Response != nil, p.Text == nil && p.Call == nil && p.Signature == "" && says(raw):
		return fmt.Errorf("part %s was not asked for", kind(raw))
	case p.Call != nil && p.Text != nil:
		return errors.New("part is a text and a call")
	case s.finish != "" && (p.Call != nil || p.Text != nil && *p.Text != ""):
		return errors.New("the model spoke after its finish reason")
	case p.Call != nil && (p.Call.Continues || says(p.Call.Partial)):
		return errors.New("a call in pieces was not asked for")
	case p.Call != nil:
		return s.asks(&p.Call.functionCall, p.Signature)
	}
	return s.say(&p.part)
}

// kind names what a part is, for an error.
func kind(raw json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || len(members) == 0 {
		return "without content"
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, fmt.Sprintf("%.40q", name))
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}

// asks takes a call: it comes whole.
func (s *stream) asks(c *functionCall, signature string) error {
	if c.Name == "" {
		return errors.New("call has no name")
	}
	input := string(c.Args)
	if input == "null" {
		input = ""
	}
	s.parts, s.told = append(s.parts, part{Call: &functionCall{}, Signature: signature}), append(s.told, nil)
	s.calls = append(s.calls, ringi.ToolCall{ModelID: c.ID, Tool: c.Name, Input: ringi.Input(input)})
	if input == "" {
		return nil
	}
	return s.out.Put(ringi.ModelEvent{InputDelta: input, CallIndex: len(s.calls) - 1, CallTool: c.Name})
}

// say takes text or thoughts. Pieces without a signature are one part; a signed
// one stays by itself, as it came.
func (s *stream) say(p *part) error {
	var text string
	if p.Text != nil {
		text = *p.Text
	}
	if text == "" && p.Signature == "" {
		return nil
	}
	last := len(s.parts) - 1
	if p.Signature == "" && last >= 0 && s.parts[last].Call == nil && s.parts[last].Signature == "" && s.parts[last].Thought == p.Thought {
		s.told[last].WriteString(text)
	} else {
		b := &strings.Builder{}
		b.WriteString(text)
		s.parts, s.told = append(s.parts, *p), append(s.told, b)
	}
	switch {
	case text == "":
		return nil
	case p.Thought:
		return s.out.Put(ringi.ModelEvent{ReasoningDelta: text})
	}
	s.text.WriteString(text)
	return s.out.Put(ringi.ModelEvent{TextDelta: text})
}

// close makes the turn.
func (s *stream) close() error {
	if s.finish == "" {
		return nil // it ended early
	}
	t := &ringi.ModelTurn{Text: s.text.String(), Calls: s.calls, Finish: s.reason(), Usage: s.usage}
	signed := false
	for i := range s.parts {
		p := &s.parts[i]
		if p.Text != nil {
			p.Text = new(s.told[i].String())
		}
		signed = signed || p.Signature != ""
	}
	// A turn that was cut keeps its signatures too: its calls have results, and go
	// back with them.
	if len(t.Calls) > 0 || signed && t.Finish.Clean() {
		data, err := keep(s.parts)
		if err != nil {
			return fmt.Errorf("keep parts: %w", err)
		}
		t.Opaque = vendor.Seal(s.m.seal, data)
	}
	return s.out.Put(ringi.ModelEvent{Turn: t})
}

// reason translates the finish reason:
// https://ai.google.dev/api/generate-content#FinishReason. One that is not known
// is not clean: nothing of such a turn runs.
func (s *stream) reason() ringi.FinishReason {
	switch s.finish {
	case "STOP":
		if len(s.calls) > 0 {
			return ringi.FinishCalls
		}
		return ringi.FinishStop
	case "MAX_TOKENS":
		return ringi.FinishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR":
		return ringi.FinishFilter
	}
	return ringi.FinishError
}
