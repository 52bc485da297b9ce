// Package chattest is the world in which handlers for chats are tested: a shop's
// tools, and a model that does what the newest user message says.
package chattest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/ringi-dev/ringi"
)

// World is a shop. Make one with [New].
type World struct {
	Mu      sync.Mutex
	Paid    []string // inputs of payments that ran
	Prompts []ringi.ModelRequest
	Gate    chan struct{} // a slow model waits here
}

// New makes a world in which nothing has happened yet.
func New() *World { return &World{Gate: make(chan struct{}, 100)} }

// Open lets a slow model through for good.
func (s *World) Open() {
	defer func() { _ = recover() }() // it is open
	close(s.Gate)
}

// Registry has the shop's tools.
func (s *World) Registry(t testing.TB) *ringi.Registry {
	reg := ringi.NewRegistry()
	object := func(props string) json.RawMessage {
		return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` + props + `}}`)
	}
	add := func(tool ringi.Tool, f ringi.ToolHandler, hooks ...ringi.ToolHooks) {
		if err := reg.Add(tool, f, hooks...); err != nil {
			t.Fatal(err)
		}
	}
	add(ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, AllowEdit: true, AllowRespond: true, InputSchema: object(`"to":{"type":"string"},"amount":{"type":"number"}`)},
		func(_ context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
			if strings.Contains(string(c.Input), "fail") {
				return ringi.ToolResult{}, errors.New("the bank is closed")
			}
			s.Mu.Lock()
			s.Paid = append(s.Paid, string(c.Input))
			s.Mu.Unlock()
			return ringi.ToolResult{Output: `{"ok":true}`}, nil
		})
	add(ringi.Tool{Name: "look", Effect: ringi.ReadOnly, InputSchema: object("")},
		func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
			return ringi.ToolResult{Output: "seen"}, nil
		})
	add(ringi.Tool{Name: "book", Effect: ringi.NonIdempotentWrite, InputSchema: object(`"room":{"type":"string"},"code":{"type":"string"}`),
		InputRequired: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["code"],"properties":{"code":{"type":"string"}}}`)},
		func(_ context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
			s.Mu.Lock()
			s.Paid = append(s.Paid, string(c.Input))
			s.Mu.Unlock()
			return ringi.ToolResult{Output: `"booked"`}, nil
		})
	add(ringi.Tool{Name: "ship", Effect: ringi.NonIdempotentWrite, AllowEdit: true, InputSchema: object(`"to":{"type":"string"}`)},
		func(_ context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
			s.Mu.Lock()
			s.Paid = append(s.Paid, string(c.Input))
			s.Mu.Unlock()
			return ringi.ToolResult{Output: `"shipped"`}, nil
		},
		ringi.ToolHooks{Preview: func(_ context.Context, c ringi.ToolCall) (ringi.Preview, error) {
			return ringi.Preview{Text: "A parcel for " + string(c.Input)}, nil
		}})
	add(ringi.Tool{Name: "login", Effect: ringi.NonIdempotentWrite, AllowEdit: true, InputSchema: object(`"password":{"type":"string","x-sensitive":true}`)},
		func(_ context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
			return ringi.ToolResult{Output: "logged in with correct-horse-battery"}, nil
		})
	if err := reg.AddExternal(ringi.Tool{Name: "where", Effect: ringi.ReadOnly, InputSchema: object(`"why":{"type":"string"}`)}); err != nil {
		t.Fatal(err)
	}
	return reg
}

// Generate makes the world a ringi.Model.
func (s *World) Generate(ctx context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		s.Mu.Lock()
		s.Prompts = append(s.Prompts, req)
		s.Mu.Unlock()
		last := req.Messages[len(req.Messages)-1]
		if last.Role == ringi.RoleTool {
			var said []string
			for _, r := range last.Results {
				said = append(said, r.Tool+" "+string(r.Outcome))
			}
			s.speak(ctx, yield, "", "Done: ", strings.Join(said, ", "), ".")
			return
		}
		s.answer(ctx, yield, last.Text)
	}
}

func (s *World) answer(ctx context.Context, yield func(ringi.ModelEvent, error) bool, text string) {
	calls := map[string][]ringi.ToolCall{
		"pay":          {{ModelID: "m1", Tool: "pay", Input: `{"to":"bob","amount":10}`}},
		"pay twice":    {{ModelID: "m1", Tool: "pay", Input: `{"to":"bob","amount":10}`}, {ModelID: "m2", Tool: "pay", Input: `{"to":"eve","amount":20}`}},
		"pay and look": {{ModelID: "m1", Tool: "pay", Input: `{"to":"bob","amount":10}`}, {ModelID: "m2", Tool: "look", Input: `{}`}},
		"pay fail":     {{ModelID: "m1", Tool: "pay", Input: `{"to":"fail","amount":10}`}},
		"pay big":      {{ModelID: "m1", Tool: "pay", Input: `{"to":"bob","amount":9007199254740993}`}},
		"pay proto":    {{ModelID: "m1", Tool: "pay", Input: `{"to":"bob","amount":10,"__proto__":{}}`}},
		"look":         {{ModelID: "m1", Tool: "look", Input: `{}`}},
		"nothing":      {{ModelID: "m1", Tool: "nothing", Input: `{}`}},
		"book":         {{ModelID: "m1", Tool: "book", Input: `{"room":"12"}`}},
		"ship":         {{ModelID: "m1", Tool: "ship", Input: `{"to":"bob"}`}},
		"login":        {{ModelID: "m1", Tool: "login", Input: `{"password":"correct-horse-battery"}`}},
		"where":        {{ModelID: "m1", Tool: "where", Input: `{"why":"lunch"}`}},
	}[text]
	switch {
	case calls != nil:
		for _, d := range []string{"I ", "will."} {
			if !yield(ringi.ModelEvent{TextDelta: d}, nil) {
				return
			}
		}
		for i, c := range calls {
			if !yield(ringi.ModelEvent{InputDelta: string(c.Input), CallIndex: i, CallTool: c.Tool}, nil) {
				return
			}
		}
		yield(ringi.ModelEvent{Turn: &ringi.ModelTurn{Text: "I will.", Calls: calls, Finish: ringi.FinishCalls}}, nil)
	case text == "slow":
		var all string
		for i := range 4 {
			select {
			case <-s.Gate:
			case <-ctx.Done():
				yield(ringi.ModelEvent{}, ctx.Err())
				return
			}
			d := fmt.Sprintf("part%d ", i)
			all += d
			if !yield(ringi.ModelEvent{TextDelta: d}, nil) {
				return
			}
		}
		yield(ringi.ModelEvent{Turn: &ringi.ModelTurn{Text: all}}, nil)
	case text == "break":
		yield(ringi.ModelEvent{}, errors.New("vendor key sk-123 is wrong"))
	case text == "stumble":
		if s.Prompted(text) == 1 {
			yield(ringi.ModelEvent{TextDelta: "wrong "}, nil)
			<-s.Gate
			yield(ringi.ModelEvent{}, errors.New("connection reset"))
			return
		}
		s.speak(ctx, yield, "", "right")
	default:
		s.speak(ctx, yield, "Let me think.", "You said ", text, ".")
	}
}

func (s *World) speak(_ context.Context, yield func(ringi.ModelEvent, error) bool, thought string, deltas ...string) {
	if thought != "" && !yield(ringi.ModelEvent{ReasoningDelta: thought}, nil) {
		return
	}
	for _, d := range deltas {
		if !yield(ringi.ModelEvent{TextDelta: d}, nil) {
			return
		}
	}
	yield(ringi.ModelEvent{Turn: &ringi.ModelTurn{Text: strings.Join(deltas, "")}}, nil)
}

// Prompted counts how often the model was asked about a text.
func (s *World) Prompted(text string) (n int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, p := range s.Prompts {
		if p.Messages[len(p.Messages)-1].Text == text {
			n++
		}
	}
	return n
}

// Payments are the inputs of payments and bookings that ran.
func (s *World) Payments() []string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return append([]string(nil), s.Paid...)
}
