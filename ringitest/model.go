package ringitest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
)

// Reply is what a scripted model does when it is asked once. Make one with
// [Text], [Calls], [Turn], [Fail], [Broken] or [Deltas], and change it with
// [Finish] and [Delay]. The zero Reply is [Broken].
type Reply struct {
	delay  time.Duration
	events []ringi.ModelEvent
	turn   *ringi.ModelTurn
	err    error
	prefix bool // deltas of the reply that follows
}

// Text is a turn of text without a call: the run's last.
func Text(text string) Reply { return Turn(ringi.ModelTurn{Text: text}) }

// Calls is a turn that asks for tools.
func Calls(calls ...ringi.ToolCall) Reply {
	return Turn(ringi.ModelTurn{Calls: calls, Finish: ringi.FinishCalls})
}

// Call is one call of a turn. The input is taken byte for byte; it need not be
// JSON.
func Call(tool, input string) ringi.ToolCall {
	return ringi.ToolCall{Tool: tool, Input: ringi.Input(input)}
}

// Turn is a whole turn, as a provider would close it.
func Turn(turn ringi.ModelTurn) Reply { return Reply{turn: &turn} }

// Fail is a stream that yields an error. The engine asks again, a few times.
func Fail(err error) Reply { return Reply{err: err} }

// Broken is a stream that ends without a turn. The engine asks again, a few
// times.
func Broken() Reply { return Reply{} }

// Deltas are pieces of text that are streamed before the reply that follows in
// the script. At the end of a script they stand alone: a broken stream.
func Deltas(texts ...string) Reply {
	events := make([]ringi.ModelEvent, len(texts))
	for i, text := range texts {
		events[i].TextDelta = text
	}
	return Events(events...)
}

// Events are pieces of a stream of any kind, before the reply that follows in
// the script, as [Deltas] are of text.
func Events(events ...ringi.ModelEvent) Reply { return Reply{events: events, prefix: true} }

// Finish is the reply with another finish reason: a turn that ended by length,
// filter or error runs nothing. A reply without a turn stays as it is.
func Finish(reason ringi.FinishReason, r Reply) Reply {
	if r.turn != nil {
		turn := *r.turn
		turn.Finish = reason
		r.turn = &turn
	}
	return r
}

// Delay is the reply after a pause, which ends with the context.
func Delay(d time.Duration, r Reply) Reply {
	r.delay += d
	return r
}

// Model is a [ringi.Model] that answers by script. It is safe for concurrent
// use, by any number of runs: each run reads the script from its start.
type Model struct {
	reply func(ringi.ModelRequest) Reply

	mu       sync.Mutex
	requests []ringi.ModelRequest
}

var _ ringi.Model = (*Model)(nil)

// Script makes a model that answers the steps of a run in order. A step takes
// one turn; replies that fail stand before it, one an attempt, so
// Script(Fail(err), Text("done")) fails once and then answers.
//
// Which turn comes next is read from the request and nowhere else, so a
// restarted engine goes on where the old one stopped. Behind the last turn the
// model fails, and says so.
func Script(replies ...Reply) *Model {
	steps := bySteps(replies)
	return &Model{reply: func(req ringi.ModelRequest) Reply {
		if req.Step < 1 || req.Step > len(steps) {
			return Fail(fmt.Errorf("script has %d turns, and none for step %d", len(steps), req.Step))
		}
		attempts := steps[req.Step-1]
		return attempts[min(max(req.Attempt, 1), len(attempts))-1]
	}}
}

// ScriptFunc makes a model that answers by a function of what it is sent. The
// function is called once an attempt, maybe by several runs at once.
func ScriptFunc(f func(req ringi.ModelRequest) ringi.ModelTurn) *Model {
	return &Model{reply: func(req ringi.ModelRequest) Reply { return Turn(f(req)) }}
}

// bySteps groups replies by step: any that fail, and then the turn.
func bySteps(replies []Reply) [][]Reply {
	var steps [][]Reply
	var attempts []Reply
	var before Reply
	for _, r := range replies {
		r.events = slices.Concat(before.events, r.events)
		r.delay += before.delay
		before = Reply{}
		switch {
		case r.prefix:
			before = r
		case r.turn != nil:
			steps = append(steps, append(attempts, r))
			attempts = nil
		default:
			attempts = append(attempts, r)
		}
	}
	if before.prefix {
		attempts = append(attempts, before)
	}
	if attempts != nil {
		steps = append(steps, attempts)
	}
	return steps
}

// Generate answers one request and keeps it, see [Model.Requests].
func (m *Model) Generate(ctx context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		m.keep(req)
		r := m.reply(req)
		if err := pause(ctx, r.delay); err != nil {
			yield(ringi.ModelEvent{}, err)
			return
		}
		for _, ev := range r.events {
			if !yield(ev, nil) {
				return
			}
			if err := context.Cause(ctx); err != nil {
				yield(ringi.ModelEvent{}, err)
				return
			}
		}
		switch {
		case r.err != nil:
			yield(ringi.ModelEvent{}, r.err)
		case r.turn != nil:
			turn := *r.turn
			turn.Calls = slices.Clone(turn.Calls)
			yield(ringi.ModelEvent{Turn: &turn}, nil)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

func (m *Model) keep(req ringi.ModelRequest) {
	req.Messages, req.Tools = slices.Clone(req.Messages), slices.Clone(req.Tools)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, req)
}

// Requests returns what the model was sent so far, by every run, in order.
func (m *Model) Requests() []ringi.ModelRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// LastResults returns what the model read last: the results of the newest
// message of the last request that holds any. It is nil where there is none.
func (m *Model) LastResults() []ringi.ToolResult {
	reqs := m.Requests()
	if len(reqs) == 0 {
		return nil
	}
	for _, msg := range slices.Backward(reqs[len(reqs)-1].Messages) {
		if len(msg.Results) > 0 {
			return msg.Results
		}
	}
	return nil
}
