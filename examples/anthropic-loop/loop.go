package main

import (
	"context"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// Loop is somebody's program around the SDK's tool runner.
type Loop struct {
	Client anthropic.Client
	Params anthropic.BetaMessageNewParams
	Tools  []anthropic.BetaTool
	Gate   *engine.Gate
	Save   func(Kept) error
}

// Stay runs to the end in this process: a call that waits keeps its goroutine,
// and the turn, waiting. What is not saved is lost with the process.
func (l Loop) Stay(ctx context.Context, k Kept) error {
	runner := l.runner(k)
	if _, err := runner.RunToCompletion(ctx); err != nil {
		return err
	}
	return l.Save(Kept{Messages: runner.Messages()})
}

// Run goes on with a kept conversation until the model is done, or until people
// are asked: it returns those requests. Once one is decided, load what was saved
// last and run again, in any process. After an error too.
//
// The runner cannot pause, and does not tell a tool which call it answers. So
// it is stopped after each message that calls tools, and a new one goes on from
// the messages.
func (l Loop) Run(ctx context.Context, k Kept) ([]ringi.ApprovalRequest, error) {
	for {
		if len(k.Calls) > 0 {
			results, waiting, err := answer(ctx, l.Gate, l.gated(), k.Calls)
			if err != nil || len(waiting) > 0 {
				return waiting, err
			}
			k.Messages = append(k.Messages, anthropic.NewBetaUserMessage(results...))
		}
		runner := l.runner(k)
		msg, err := runner.NextMessage(ctx)
		for err == nil && msg.StopReason == anthropic.BetaStopReasonPauseTurn {
			msg, err = runner.NextMessage(ctx)
		}
		if err != nil {
			return nil, err
		}
		k = Kept{Messages: runner.Messages()}
		if k.Calls, err = judge(ctx, l.Gate, msg); err != nil {
			return nil, err
		}
		if err := l.Save(k); err != nil || len(k.Calls) == 0 {
			return nil, err
		}
	}
}

func (l Loop) gated() map[string]gated {
	m := map[string]gated{}
	for _, t := range l.Tools {
		m[t.Name()] = gated{t, l.Gate}
	}
	return m
}

func (l Loop) runner(k Kept) *anthropic.BetaToolRunner {
	var tools []anthropic.BetaTool
	for _, t := range l.Tools {
		tools = append(tools, gated{t, l.Gate})
	}
	l.Params.Messages = k.Messages
	return l.Client.Beta.Messages.NewToolRunner(tools, anthropic.BetaToolRunnerParams{BetaMessageNewParams: l.Params})
}
