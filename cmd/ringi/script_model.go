package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/ringi-dev/ringi"
)

// scriptModel is a model that says what a recorded assistant said. It keeps
// nothing: what it says next follows from the messages that it is sent, so it
// goes on in another process as if it had never stopped.
type scriptModel struct {
	scripts map[string]*script // by thread
	join    int
}

var _ ringi.Model = (*scriptModel)(nil)

// newScriptModel makes the model of all conversations. It says up to join
// recorded calls in one turn; 1 says them as they were recorded.
func newScriptModel(scripts []*script, join int) *scriptModel {
	m := &scriptModel{scripts: make(map[string]*script, len(scripts)), join: join}
	for _, s := range scripts {
		m.scripts[s.thread] = s
	}
	return m
}

// Generate yields the next recorded turn as one event.
func (m *scriptModel) Generate(_ context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		turn, err := m.next(req)
		yield(ringi.ModelEvent{Turn: turn}, err)
	}
}

func (m *scriptModel) next(req ringi.ModelRequest) (*ringi.ModelTurn, error) {
	s := m.scripts[req.Thread]
	if s == nil {
		return nil, fmt.Errorf("script has no conversation %q", req.Thread)
	}
	users, said := place(req.Messages)
	run := s.byUsers[users]
	if run == nil {
		return nil, fmt.Errorf("script of %s has no answer to user message %d", req.Thread, users)
	}
	next, ok := run.turn(said, m.join)
	if !ok {
		return nil, errors.New("script has lost its place: the conversation is not the recorded one")
	}
	turn := &ringi.ModelTurn{Text: next.text}
	for _, c := range next.calls {
		turn.Calls = append(turn.Calls, ringi.ToolCall{ModelID: c.modelID, Tool: c.tool, Input: ringi.Input(c.input)})
	}
	if len(turn.Calls) > 0 {
		turn.Finish = ringi.FinishCalls
	}
	return turn, nil
}

// place counts the user messages so far, which name the run, and the weight of
// what was said after the last of them, which names the place in it.
func place(msgs []ringi.Message) (users, said int) {
	for i := range msgs {
		switch msgs[i].Role {
		case ringi.RoleUser:
			users, said = users+1, 0
		case ringi.RoleAssistant:
			said += max(1, len(msgs[i].Calls))
		}
	}
	return users, said
}
