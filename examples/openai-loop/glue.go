package main

import (
	"context"
	"errors"

	"github.com/openai/openai-go/v3"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// Loop is somebody's own loop, behind a gate.
type Loop struct {
	Client openai.Client
	Params openai.ChatCompletionNewParams // the model and its tools
	Gate   *engine.Gate
	Tool   func(context.Context, engine.Started) (any, error)
	Save   func(Kept) error
}

// Run goes on with a kept conversation until the model is done, or until people
// are asked: it returns those requests. Once one is decided, load what was saved
// last and run again, in any process. After an error too.
func (l Loop) Run(ctx context.Context, k Kept) (waiting []ringi.ApprovalRequest, err error) {
	for {
		l.Params.Messages = k.Messages
		for _, id := range k.Calls {
			out, err := l.Gate.Do(ctx, ringi.ToolCall{ID: id}, l.Tool) // runs it once: later it is the recorded result
			if w, ok := errors.AsType[*ringi.WaitingError](err); ok {
				waiting = append(waiting, w.Request)
			} else if err != nil {
				return nil, err
			}
			l.Params.Messages = append(l.Params.Messages, openai.ToolMessage(out.Text(), out.ModelID)) // a denial too, with its reason
		}
		if len(waiting) > 0 {
			return waiting, nil // a turn's calls are answered together
		}
		resp, err := l.Client.Chat.Completions.New(ctx, l.Params)
		if err != nil {
			return nil, err
		}
		k = Kept{Messages: append(l.Params.Messages, resp.Choices[0].Message.ToParam())}
		for _, tc := range resp.Choices[0].Message.ToolCalls { // all of a turn are judged before any of them runs
			j, err := l.Gate.Judge(ctx, ringi.ToolCall{ModelID: tc.ID, Tool: tc.Function.Name, Input: ringi.Input(tc.Function.Arguments)})
			if err != nil {
				return nil, err
			}
			k.Calls = append(k.Calls, j.Call.ID)
		}
		if err := l.Save(k); err != nil || len(k.Calls) == 0 {
			return nil, err
		}
	}
}
