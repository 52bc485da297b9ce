package ringi

import (
	"context"
	"iter"
)

// Role says who speaks in a message.
type Role string

// The roles. The system prompt is not a message: see [RunStart].
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text,omitempty"`
	// Author is the principal id behind a user message.
	Author string `json:"author,omitempty"`
	// Calls are what an assistant message asks for.
	Calls []ToolCall `json:"calls,omitempty"`
	// Results answer the calls of the message before, in the model's order.
	Results []ToolResult `json:"results,omitempty"`
	// Opaque is the provider's own form of an assistant message (reasoning,
	// signatures), replayed unchanged.
	Opaque string `json:"opaque,omitempty"`
	// Approval is set by callers who pass approval parts of a client's
	// history; such messages are refused.
	Approval string `json:"approval,omitempty"`
}

// User makes a user message.
func User(text string) Message { return Message{Role: RoleUser, Text: text} }

// Assistant makes an assistant message of earlier text.
func Assistant(text string) Message { return Message{Role: RoleAssistant, Text: text} }

// Model is a language model. Generate yields any number of deltas and then
// exactly one event with a Turn. A stream that ends without one, or yields an
// error, is a broken turn: nothing of it runs. Generate must stop when ctx
// ends or the caller leaves the loop.
type Model interface {
	Generate(ctx context.Context, req ModelRequest) iter.Seq2[ModelEvent, error]
}

// ModelRequest is what a model is sent.
type ModelRequest struct {
	System string
	// Messages are the engine's own: read them, do not write into them.
	Messages []Message
	// Tools is the offer. Its schemas are without the keys that a person
	// supplies.
	Tools []Tool
	RunID string
	// Thread is the conversation.
	Thread string
	// Step counts from 1 in a run; Attempt from 1 in a step.
	Step, Attempt int
}

// ModelEvent is a piece of a model's stream: a delta, or the closed turn.
type ModelEvent struct {
	TextDelta      string
	ReasoningDelta string
	// InputDelta is a fragment of a call's input; CallIndex counts the calls.
	InputDelta string
	CallIndex  int
	CallTool   string
	// Turn closes the stream.
	Turn *ModelTurn
}

// ModelTurn is a model's whole answer.
type ModelTurn struct {
	Text string
	// Calls as the model wrote them: ModelID, Tool and Input (raw) are read.
	Calls  []ToolCall
	Opaque string
	Finish FinishReason
	Usage  Usage
}

// FinishReason says why a turn ended. The zero value is a clean end.
type FinishReason string

// The finish reasons. Only a clean end runs anything.
const (
	FinishStop   FinishReason = ""
	FinishCalls  FinishReason = "tool_calls"
	FinishLength FinishReason = "length"
	FinishFilter FinishReason = "content_filter"
	FinishError  FinishReason = "error"
)

// Clean reports whether the turn ended by itself.
func (f FinishReason) Clean() bool { return f == FinishStop || f == FinishCalls || f == "stop" }

// Usage counts tokens.
type Usage struct {
	InputTokens     int64 `json:"input_tokens,omitempty"`
	OutputTokens    int64 `json:"output_tokens,omitempty"`
	ReasoningTokens int64 `json:"reasoning_tokens,omitempty"`
	CachedTokens    int64 `json:"cached_tokens,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.ReasoningTokens += v.ReasoningTokens
	u.CachedTokens += v.CachedTokens
	return u
}
