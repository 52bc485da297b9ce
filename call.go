package ringi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi/internal/strictjson"
	"github.com/ringi-dev/ringi/internal/toolcontext"
)

// Input is the input of a tool call as bytes, immutable. It is digested,
// shown, approved and run as it stands; nothing re-serialises it.
type Input string

// Canonical is a text that is equal for inputs of equal JSON value: blanks and
// key order aside, numbers by their text. It serves comparisons (a call that
// was denied before), never a digest of what runs. An input that is no strict
// JSON is its own canonical text.
func (i Input) Canonical() string {
	v, err := strictjson.Parse(string(i), strictjson.Limits{})
	if err != nil {
		return string(i)
	}
	return string(strictjson.Canonical(v, nil))
}

// ToolCall is what a model asked for.
type ToolCall struct {
	// ID is Ringi's own: unique, derived from run, step and position.
	ID string `json:"id"`
	// ModelID is the model's id, empty or repeated; kept to answer the model.
	ModelID string `json:"model_id,omitempty"`
	// Tool is the name that the model wrote.
	Tool string `json:"tool"`
	// Input is what is judged and runs.
	Input Input `json:"input"`
	// Raw is what the model wrote, where that differs from Input (an empty
	// input is `{}` for a tool without required keys); else empty.
	Raw Input `json:"raw,omitempty"`
}

// CallInfo is what the user's own approval functions are told.
type CallInfo struct {
	Call ToolCall
	Tool Tool
	Run  RunInfo
	// Messages are those that the model was sent for the step that made the
	// call. Judging again, after a restart too, sees the same ones.
	Messages []Message
	// MessagesTrusted is false where messages came from a client's own history.
	MessagesTrusted bool
	// Runtime is the run's runtime value as JSON; read it with [Runtime].
	Runtime json.RawMessage
}

// ErrNoRuntime is returned by [Runtime] where the run has no runtime value.
var ErrNoRuntime = errors.New("run has no runtime value")

// Runtime decodes the run's runtime value. A function that needs it should
// return the error: a failing function refuses the call.
func Runtime[T any](c CallInfo) (T, error) {
	var v T
	if len(c.Runtime) == 0 {
		return v, ErrNoRuntime
	}
	if err := decodeExact([]byte(c.Runtime), &v); err != nil {
		return v, fmt.Errorf("decode runtime value: %w", err)
	}
	return v, nil
}

// ToolContext is what a running tool may know of its call.
type ToolContext struct {
	Space, Thread, RunID, CallID string
	// Tool is the tool's name.
	Tool string
	// Key is the idempotency key: the same for the same call after a restart,
	// another for any other bytes.
	Key string
	// Initiator is who started the run.
	Initiator Principal
	// Decider is an opaque id of who approved the call; empty where nobody did.
	Decider string
	// Attempt counts from 1; above 1 a crash interrupted an earlier start.
	Attempt int
}

// WithToolContext returns a context that carries tc. The engine calls it; in
// tests of a handler call it yourself.
func WithToolContext(ctx context.Context, tc *ToolContext) context.Context {
	return context.WithValue(ctx, toolcontext.Key{}, tc)
}

// ToolContextFrom returns what the engine told the running tool. It reports
// false outside a tool.
func ToolContextFrom(ctx context.Context) (ToolContext, bool) {
	tc, ok := ctx.Value(toolcontext.Key{}).(*ToolContext)
	if !ok || tc == nil {
		return ToolContext{}, false
	}
	return *tc, true
}
