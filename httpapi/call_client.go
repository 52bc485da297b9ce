package httpapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
)

// call as it comes over the wire, in the service's words.
func (c LoopCall) gateCall() ringi.GateCall {
	out := ringi.GateCall{RunID: c.RunID, Thread: c.Thread, Agent: c.Agent, Call: ringi.ToolCall{ID: c.ID, Tool: c.Tool, ModelID: c.ModelID}, State: c.State,
		Verdict: c.Verdict, Attempt: c.Attempt, StartedAt: c.StartedAt}
	if a := c.Approval; a != nil {
		out.Request = &ringi.ApprovalRequest{ID: a.ID, RunID: c.RunID, Thread: c.Thread, Kind: a.Kind, State: ringi.Pending, Call: out.Call, ExpiresAt: a.ExpiresAt}
	}
	if r := c.Result; r != nil {
		out.Result = &ringi.ToolResult{CallID: c.ID, ModelID: c.ModelID, Tool: c.Tool, Outcome: r.Outcome, Code: r.Code, Origin: r.Origin, Truncated: r.Truncated}
		if r.Outcome == ringi.OutcomeOK || r.Outcome == ringi.OutcomeResponded {
			out.Result.Output = r.Text
		} else {
			out.Result.Error = r.Text
		}
	}
	return out
}

// JudgeCall judges a call of a loop that is the token's. start.By and start.Ref
// are not sent: who asks is whose the token is, and every wish is a new call.
// The bytes that run come with StartCall alone.
func (c *Client) JudgeCall(ctx context.Context, start ringi.CallStart) (ringi.GateCall, error) {
	b := CallBody{Agent: start.Agent, RunID: start.RunID, Thread: start.Thread, Tool: start.Tool, Input: string(start.Input), ModelID: start.ModelID,
		Zone: string(start.Zone), Claim: start.Claim}
	var out LoopCall
	err := c.post(ctx, "/v1/calls", b, &out)
	return out.gateCall(), err
}

// Call returns a call as it stands, without its bytes and its claim.
func (c *Client) Call(ctx context.Context, callID string) (ringi.GateCall, error) {
	var out LoopCall
	err := c.get(ctx, at("/v1/calls/", callID, ""), nil, &out)
	return out.gateCall(), err
}

// StartCall gets the right to run a call, once.
func (c *Client) StartCall(ctx context.Context, callID string) (ringi.ClaimedCall, error) {
	var out ClaimedCall
	if err := c.post(ctx, at("/v1/calls/", callID, "/start"), StartCallBody{}, &out); err != nil {
		return ringi.ClaimedCall{}, c.said(ctx, callID, err)
	}
	return ringi.ClaimedCall{RunID: out.RunID, Call: ringi.ToolCall{ID: out.ID, Tool: out.Tool, Input: ringi.Input(out.Input)}, Key: out.Key,
		Attempt: out.Attempt, StartedAt: out.StartedAt, Until: out.Until}, nil
}

// FinishCall says what came of a start.
func (c *Client) FinishCall(ctx context.Context, callID string, attempt int, r ringi.ToolResult) (ringi.GateCall, error) {
	b := ResultBody{Attempt: attempt, Output: r.Output, Error: r.Error, NotDone: r.Code == ringi.CodeNotDone, Unknown: r.Outcome == ringi.OutcomeInDoubt}
	switch {
	case r.Outcome == ringi.OutcomeError && b.Error == "", b.NotDone && b.Error == "":
		b.Error = "the tool failed"
	case r.Code != "" && r.Code != ringi.CodeToolError && !b.NotDone:
		return ringi.GateCall{}, fmt.Errorf("finish call %s: %w: a tool's result has no code %q", callID, ringi.ErrAnswer, r.Code)
	}
	var out LoopCall
	if err := c.post(ctx, at("/v1/calls/", callID, "/result"), b, &out); err != nil {
		return ringi.GateCall{}, c.said(ctx, callID, err)
	}
	return out.gateCall(), nil
}

// CloseCalls ends a run of the token's calls.
func (c *Client) CloseCalls(ctx context.Context, runID string) error {
	return c.post(ctx, at("/v1/runs/", runID, "/close"), CloseBody{}, &wireRun{})
}

// said fills in what a refusal says of a call: its result, or what it waits for.
func (c *Client) said(ctx context.Context, callID string, err error) error {
	var p *Problem
	if !errors.As(err, &p) || p.Type != typePrefix+"call-waiting" && p.Type != typePrefix+"call-finished" {
		return err
	}
	now, gerr := c.Call(ctx, callID)
	switch {
	case gerr != nil:
		return errors.Join(err, gerr)
	case p.Type == typePrefix+"call-waiting" && now.Request != nil:
		return errors.Join(&ringi.WaitingError{Request: *now.Request}, err)
	case p.Type == typePrefix+"call-finished" && now.Result != nil:
		return errors.Join(&ringi.ResultError{Result: *now.Result}, err)
	}
	return err
}
