package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"charm.land/fantasy"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// The same tool, the same input and the same texts on both sides.

type orderIn struct {
	ID string `json:"id"`
	N  int64  `json:"n"`
}

type orderOut struct {
	Status string `json:"status"`
}

const (
	toolName    = "find_order"
	description = "Find an order."
	question    = "Where is order A-1017?"
	callInput   = `{"id":"A-1017","n":3}`
	callOutput  = `{"status":"shipped"}`
	lastText    = "done"
)

// row is what a run does: steps of so many calls each, and a final text.
type row struct {
	steps, calls int
	turn         int // runs before the other side has its turn
}

// side is one loop, set up for a row. Its model says turns that were made
// beforehand, so that what is measured is the loop.
type side struct {
	name  string
	run   func(context.Context) error // one run, its end checked
	model func(context.Context) error // the model calls of one run, and nothing else
}

// maker sets a side up with nothing behind it: no run in a store, nothing
// kept. log is nil where only time counts.
type maker func(tb testing.TB, r row, log *worklog) side

// worklog counts what was done: tool calls with the expected input, results
// with the expected output that came back to the model, and model calls.
type worklog struct {
	calls           atomic.Int64 // reads of a turn may run at once
	results, models int
}

// call is the tool. The two sides differ in how they are told of it only.
func (l *worklog) call(in orderIn) orderOut {
	if l != nil && in == (orderIn{"A-1017", 3}) {
		l.calls.Add(1)
	}
	return orderOut{"shipped"}
}

func callID(step, pos int) string { return fmt.Sprint("c", step, "_", pos) }

// ringiSide is an engine with a memory store, no key, and a declared read.
func ringiSide(tb testing.TB, r row, log *worklog) side {
	reg := ringi.NewStrictRegistry()
	ringi.MustAddTool(reg, ringi.Tool{Name: toolName, Description: description, Effect: ringi.ReadOnly},
		func(_ context.Context, in orderIn) (orderOut, error) { return log.call(in), nil })
	model := ringiTurns(r, log)
	e, err := engine.New(engine.Config{Registry: reg, Model: model, Limits: ringi.Limits{Steps: -1, ToolCalls: -1}})
	if err != nil {
		tb.Fatal(err)
	}
	start := ringi.RunStart{Messages: []ringi.Message{ringi.User(question)}}
	run := func(ctx context.Context) error {
		res, err := e.Run(ctx, start)
		if err != nil {
			return err
		}
		if res.Text != lastText || len(res.Results) != r.steps*r.calls {
			return fmt.Errorf("ringi ended with %q and %d results: %w", res.Text, len(res.Results), res.Err())
		}
		return res.Err()
	}
	alone := func(ctx context.Context) error { return askRingi(ctx, model, r) }
	return side{"ringi", run, alone}
}

// askRingi asks the model for all its turns, as the loop does: through the
// interface, which a compiler that sees the model would leave out.
//
//go:noinline
func askRingi(ctx context.Context, model ringi.Model, r row) error {
	said := 0
	take := func(ev ringi.ModelEvent, err error) bool {
		if err == nil && ev.Turn != nil {
			said++
		}
		return true
	}
	for step := 1; step <= r.steps+1; step++ {
		model.Generate(ctx, ringi.ModelRequest{Step: step})(take)
	}
	return expect(said, r)
}

// ringiModel says the turn of a step.
type ringiModel struct {
	turns []*ringi.ModelTurn
	log   *worklog
}

func ringiTurns(r row, log *worklog) *ringiModel {
	m := &ringiModel{log: log}
	for step := range r.steps {
		t := &ringi.ModelTurn{Finish: ringi.FinishCalls}
		for pos := range r.calls {
			t.Calls = append(t.Calls, ringi.ToolCall{ModelID: callID(step, pos), Tool: toolName, Input: callInput})
		}
		m.turns = append(m.turns, t)
	}
	m.turns = append(m.turns, &ringi.ModelTurn{Text: lastText})
	return m
}

func (m *ringiModel) Generate(_ context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		if m.log != nil {
			m.look(req)
		}
		yield(ringi.ModelEvent{Turn: m.turns[req.Step-1]}, nil)
	}
}

// look counts the results that the model was sent since its last turn.
func (m *ringiModel) look(req ringi.ModelRequest) {
	m.log.models++
	for _, res := range req.Messages[len(req.Messages)-1].Results {
		if res.Output == callOutput {
			m.log.results++
		}
	}
}

// fantasySide is an agent without stop conditions: it ends where the model
// calls no tool. A tool of fantasy's answers with text, so the tool encodes
// its output, as Ringi does for it on the other side.
func fantasySide(tb testing.TB, r row, log *worklog) side {
	tool := fantasy.NewAgentTool(toolName, description,
		func(_ context.Context, in orderIn, _ fantasy.ToolCall) (fantasy.ToolResponse, error) {
			b, err := json.Marshal(log.call(in))
			return fantasy.NewTextResponse(string(b)), err
		})
	model := fantasyTurns(r, log)
	agent := fantasy.NewAgent(model, fantasy.WithTools(tool))
	start := fantasy.AgentCall{Prompt: question}
	run := func(ctx context.Context) error {
		res, err := agent.Generate(ctx, start)
		if err != nil {
			return err
		}
		if text := res.Response.Content.Text(); text != lastText || len(res.Steps) != r.steps+1 {
			return fmt.Errorf("fantasy ended with %q after %d steps", text, len(res.Steps))
		}
		return nil
	}
	prompts := make([]fantasy.Prompt, r.steps+1)
	for step := range prompts {
		prompts[step] = make(fantasy.Prompt, 1+2*step)
	}
	alone := func(ctx context.Context) error { return askFantasy(ctx, model, prompts, r) }
	return side{"fantasy", run, alone}
}

// askFantasy asks the model for all its responses, as the loop does.
//
//go:noinline
func askFantasy(ctx context.Context, model fantasy.LanguageModel, prompts []fantasy.Prompt, r row) error {
	said := 0
	for _, p := range prompts {
		if res, err := model.Generate(ctx, fantasy.Call{Prompt: p}); err == nil && res != nil {
			said++
		}
	}
	return expect(said, r)
}

// fantasyModel says the response of a step. It knows the step by the length of
// the prompt: a question, and two messages for each step before.
type fantasyModel struct {
	fantasy.LanguageModel // what the loop does not ask for
	responses             []*fantasy.Response
	log                   *worklog
}

func fantasyTurns(r row, log *worklog) *fantasyModel {
	m := &fantasyModel{log: log}
	for step := range r.steps {
		res := &fantasy.Response{FinishReason: fantasy.FinishReasonToolCalls}
		for pos := range r.calls {
			res.Content = append(res.Content, fantasy.ToolCallContent{ToolCallID: callID(step, pos), ToolName: toolName, Input: callInput})
		}
		m.responses = append(m.responses, res)
	}
	m.responses = append(m.responses, &fantasy.Response{
		Content:      fantasy.ResponseContent{fantasy.TextContent{Text: lastText}},
		FinishReason: fantasy.FinishReasonStop,
	})
	return m
}

func (m *fantasyModel) Generate(_ context.Context, call fantasy.Call) (*fantasy.Response, error) {
	if m.log != nil {
		m.look(call)
	}
	return m.responses[len(call.Prompt)/2], nil
}

// look counts the results that the model was sent since its last turn.
func (m *fantasyModel) look(call fantasy.Call) {
	m.log.models++
	for _, part := range call.Prompt[len(call.Prompt)-1].Content {
		res, ok := fantasy.AsMessagePart[fantasy.ToolResultPart](part)
		if !ok {
			continue
		}
		if out, ok := res.Output.(fantasy.ToolResultOutputContentText); ok && out.Text == callOutput {
			m.log.results++
		}
	}
}

func expect(said int, r row) error {
	if said != r.steps+1 {
		return errors.New("the model did not say all its turns")
	}
	return nil
}
