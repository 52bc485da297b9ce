package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// gated is a tool of the runner's that runs when the gate says so, with the bytes that it says.
type gated struct {
	anthropic.BetaTool
	gate *engine.Gate
}

// Execute is for a run that stays: Config.OnApprovalRequired answers, or waits for somebody who does.
func (t gated) Execute(ctx context.Context, input json.RawMessage) ([]anthropic.BetaToolResultBlockParamContentUnion, error) {
	out, err := t.gate.Do(ctx, ringi.ToolCall{Tool: t.Name(), Input: ringi.Input(input)}, t.run)
	return []anthropic.BetaToolResultBlockParamContentUnion{{OfText: &anthropic.BetaTextBlockParam{Text: out.Text()}}}, err
}

// run calls the tool itself. What is recorded, and read, is its text; blocks of another kind as JSON.
func (t gated) run(ctx context.Context, s engine.Started) (any, error) {
	blocks, err := t.BetaTool.Execute(ctx, s.Input())
	if err != nil || len(blocks) != 1 || blocks[0].OfText == nil {
		return blocks, err
	}
	return blocks[0].OfText.Text, nil
}

// judge is for a run that may end: it judges the calls of a message, before any of them runs, and
// returns Ringi's ids of them, to be kept with the messages.
func judge(ctx context.Context, gate *engine.Gate, msg *anthropic.BetaMessage) (calls []string, err error) {
	for _, b := range msg.Content {
		if b.Type == "tool_use" && msg.StopReason == anthropic.BetaStopReasonToolUse {
			j, err := gate.Judge(ctx, ringi.ToolCall{ModelID: b.ID, Tool: b.Name, Input: ringi.Input(b.Input)})
			if err != nil {
				return nil, err
			}
			calls = append(calls, j.Call.ID)
		}
	}
	return calls, nil
}

// answer runs what may run, once, and answers the kept calls; none of them while one waits.
func answer(ctx context.Context, gate *engine.Gate, tools map[string]gated, calls []string) (results []anthropic.BetaContentBlockParamUnion, waiting []ringi.ApprovalRequest, err error) {
	for _, id := range calls {
		out, err := gate.Do(ctx, ringi.ToolCall{ID: id}, func(ctx context.Context, s engine.Started) (any, error) { return tools[s.Call().Tool].run(ctx, s) })
		if w, ok := errors.AsType[*ringi.WaitingError](err); ok {
			waiting = append(waiting, w.Request)
		} else if err != nil {
			return nil, nil, err
		}
		results = append(results, anthropic.NewBetaToolResultBlock(out.ModelID, out.Text(), out.Outcome == ringi.OutcomeError))
	}
	return results, waiting, nil
}
