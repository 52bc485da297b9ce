package backoffice

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
)

// System is the system prompt of the demo's agent.
const System = "You are the back-office agent of a small shop. Look a customer and an order up before you act on them, read the rules before you propose a refund, and say plainly what was done and what was not."

// Model returns the scripted model of the demo at the pace of a person's
// reading: a [Scripted] with a delay of 15 ms.
func Model() ringi.Model { return Scripted{Delay: 15 * time.Millisecond} }

// Scripted is a script in a model's place. It reads the messages that it is
// sent and keeps nothing, so it is safe for any number of runs, and goes on
// after a restart. It chooses what to do by words of the last user message:
// see [Scenarios]. The zero value streams without delay.
type Scripted struct {
	// Delay stands before each piece of the stream.
	Delay time.Duration
}

var _ ringi.Model = Scripted{}

// Generate streams the text word by word, then the calls, then the turn.
func (m Scripted) Generate(ctx context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		turn := turnAfter(req)
		for ev := range pieces(turn) {
			if err := m.pause(ctx); err != nil {
				yield(ringi.ModelEvent{}, err)
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
		yield(ringi.ModelEvent{Turn: turn}, nil)
	}
}

// turnAfter makes the turn that follows the messages.
func turnAfter(req ringi.ModelRequest) *ringi.ModelTurn {
	s := next(read(req.Messages))
	turn := &ringi.ModelTurn{Text: s.text}
	for i, a := range s.asks {
		turn.Finish = ringi.FinishCalls
		turn.Calls = append(turn.Calls, ringi.ToolCall{ModelID: fmt.Sprintf("call_%d_%d", req.Step, i+1), Tool: a.tool, Input: ringi.Input(encode(a.input))})
	}
	turn.Usage = usage(req, turn)
	return turn
}

// usage counts four bytes as a token, so that the demo's pages have numbers.
func usage(req ringi.ModelRequest, turn *ringi.ModelTurn) ringi.Usage {
	in, out := len(req.System), len(turn.Text)
	for _, m := range req.Messages {
		in += len(m.Text)
		for _, c := range m.Calls {
			in += len(c.Input)
		}
		for _, r := range m.Results {
			in += len(r.Text())
		}
	}
	for _, c := range turn.Calls {
		out += len(c.Input)
	}
	return ringi.Usage{InputTokens: int64(in/4 + 1), OutputTokens: int64(out/4 + 1)}
}

// pieces are what is streamed of a turn before it is closed.
func pieces(turn *ringi.ModelTurn) iter.Seq[ringi.ModelEvent] {
	return func(yield func(ringi.ModelEvent) bool) {
		for _, word := range strings.SplitAfter(turn.Text, " ") {
			if word != "" && !yield(ringi.ModelEvent{TextDelta: word}) {
				return
			}
		}
		for i, c := range turn.Calls {
			for _, part := range strings.SplitAfter(string(c.Input), ",") {
				if !yield(ringi.ModelEvent{InputDelta: part, CallIndex: i, CallTool: c.Tool}) {
					return
				}
			}
		}
	}
}

func (m Scripted) pause(ctx context.Context) error {
	if m.Delay > 0 {
		timer := time.NewTimer(m.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}
