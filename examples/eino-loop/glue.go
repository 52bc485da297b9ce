package main

import (
	"context"
	"errors"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// errNotGated refuses tools of the kinds that this glue does not put behind the gate.
var errNotGated = errors.New("only invokable tools are behind the gate")

// approvals puts a gate in front of a graph's tools: the gate of the conversation that ctx belongs to.
// A call that waits pauses the graph, by eino's own interrupt; what it tells is the request's id. Where
// the graph is invoked again from its checkpoint, the call is looked at again: Ringi has the answer.
func approvals(gate func(context.Context) (*engine.Gate, error)) compose.ToolMiddleware {
	return compose.ToolMiddleware{
		Invokable: func(next compose.InvokableToolEndpoint) compose.InvokableToolEndpoint {
			return func(ctx context.Context, in *compose.ToolInput) (*compose.ToolOutput, error) {
				g, err := gate(ctx)
				if err != nil {
					return nil, err
				}
				call := ringi.ToolCall{ModelID: in.CallID, Tool: in.Name, Input: ringi.Input(in.Arguments)}
				if again, kept, id := tool.GetInterruptState[string](ctx); again && kept {
					call.ID = id // eino calls the tool again after a pause: this is the call of then
				}
				out, err := g.Do(ctx, call, func(ctx context.Context, s engine.Started) (any, error) {
					run := *in
					run.Arguments = string(s.Input())
					o, err := next(ctx, &run)
					if err != nil {
						return nil, err
					}
					return o.Result, nil
				})
				if w, ok := errors.AsType[*ringi.WaitingError](err); ok {
					return nil, tool.StatefulInterrupt(ctx, w.Request.ID, w.Request.Call.ID)
				}
				return &compose.ToolOutput{Result: out.Text()}, err
			}
		},
		Streamable:         refuse[compose.StreamableToolEndpoint],
		EnhancedInvokable:  refuse[compose.EnhancedInvokableToolEndpoint],
		EnhancedStreamable: refuse[compose.EnhancedStreamableToolEndpoint],
	}
}

func refuse[E ~func(context.Context, *compose.ToolInput) (O, error), O any](E) E {
	return func(context.Context, *compose.ToolInput) (o O, err error) { return o, errNotGated }
}
