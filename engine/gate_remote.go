package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
)

// The gate for a loop in another process: everything is found again by the
// call's id, whatever process began it.

var _ ringi.CallService = (*Engine)(nil)

// The most that a claim holds.
const (
	maxClaimReason  = 8 << 10
	maxClaimPreview = 64 << 10
	maxClaimFor     = 256
)

// JudgeCall judges one call of a loop that is in another process, at its run's
// gate. A tool that is not registered as external is taken as the client's own
// ([ringi.ForeignName]), also where a registered one has the same name: only
// what somebody registered for a client to run is shown under its name.
func (e *Engine) JudgeCall(ctx context.Context, c ringi.CallStart) (ringi.GateCall, error) {
	var none ringi.GateCall
	if err := checkClaim(c.Claim); err != nil {
		return none, fmt.Errorf("judge call of tool %.80q: %w", c.Tool, err)
	}
	if c.By.IsZero() {
		return none, ringi.ErrNoPrincipal
	}
	if c.RunID != "" {
		if _, err := e.gateRun(ctx, c.RunID); err != nil {
			return none, err
		}
	}
	g, err := e.Gate(ctx, ringi.RunInfo{ID: c.RunID, Thread: c.Thread, Agent: c.Agent, By: c.By, Zone: c.Zone})
	if err != nil {
		return none, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.a.s.start.By.ID != c.By.ID {
		return none, fmt.Errorf("run %s: %w: it is another's", g.a.id, ringi.ErrNotFound)
	}
	if ctx, err = g.a.context(ctx); err != nil {
		return none, err
	}
	w := wish{ToolCall: ringi.ToolCall{Tool: e.nameFor(c.By, c.Tool), Input: c.Input, ModelID: c.ModelID}, claim: c.Claim, ref: c.Ref}
	k, err := g.judge(ctx, w)
	if err != nil {
		return none, fmt.Errorf("judge call of tool %.80q: %w", c.Tool, err)
	}
	return g.stands(ctx, k), nil
}

// checkClaim bounds what a client says.
func checkClaim(c *ringi.Claim) error {
	switch {
	case c == nil:
		return nil
	case len(c.Reason) > maxClaimReason, len(c.Preview) > maxClaimPreview, len(c.OnBehalfOf) > maxClaimFor:
		return fmt.Errorf("%w: a claim's reason holds 8 KiB, its preview 64 KiB, on_behalf_of 256 bytes", ringi.ErrTooLarge)
	case !utf8.ValidString(c.Reason + c.Preview + c.OnBehalfOf):
		return fmt.Errorf("%w: a claim is valid UTF-8", ringi.ErrAnswer)
	}
	return nil
}

// nameFor is the name under which a client's call is judged.
func (e *Engine) nameFor(by ringi.Principal, name string) string {
	if t, ok := e.reg.Tool(name); ok && t.External && !isForeign(name) {
		return name
	}
	return ringi.ForeignName(clientOf(by), name)
}

func isForeign(name string) bool {
	_, _, foreign := ringi.Foreign(name)
	return foreign
}

// clientOf is the client's own name: the ids of agents' clients begin with
// "client:" (package access).
func clientOf(by ringi.Principal) string { return strings.TrimPrefix(by.ID, "client:") }

// takes reports whether a tool is foreign, and the run's own client may have it
// judged.
func (a *activation) takes(name string) bool {
	client, _, foreign := ringi.Foreign(name)
	return foreign && a.gate && a.e.cfg.ForeignTools && client == clientOf(a.s.start.By)
}

// runOfCall is the run that a call's id names; empty for no such id. Ids of runs
// are those of ringi.NewID.
func runOfCall(callID string) string {
	tail, ok := strings.CutPrefix(callID, "call_")
	tail, _, ok2 := strings.Cut(tail, "_")
	if !ok || !ok2 || tail == "" {
		return ""
	}
	return "run_" + tail
}

// gateRun reads the run of a gate. ErrNotFound for any other.
func (e *Engine) gateRun(ctx context.Context, runID string) (*state, error) {
	s, err := e.load(ctx, e.cfg.Space, runID)
	if err == nil && !s.start.Gate {
		return nil, fmt.Errorf("run %s: %w: it is no gate's", runID, ringi.ErrNotFound)
	}
	return s, err
}

// gateCall reads the run of a gate's call, and the call.
func (e *Engine) gateCall(ctx context.Context, callID string) (*state, *call, error) {
	s, err := e.gateRun(ctx, runOfCall(callID))
	if err != nil {
		return nil, nil, fmt.Errorf("call %.80q: %w", callID, err)
	}
	c := s.call(callID)
	if c == nil {
		return nil, nil, fmt.Errorf("call %.80q: %w", callID, ringi.ErrNotFound)
	}
	return s, c, nil
}

// Call returns a gate's call as it stands in the log.
func (e *Engine) Call(ctx context.Context, callID string) (ringi.GateCall, error) {
	s, c, err := e.gateCall(ctx, callID)
	if err != nil {
		return ringi.GateCall{}, err
	}
	g := &Gate{e: e, a: &activation{e: e, s: s, id: s.id, space: s.space}}
	return g.stands(ctx, c), nil
}

// StartCall starts a call of a loop in another process. Its start is always on
// record, a read's too, so that exactly one caller gets it.
func (e *Engine) StartCall(ctx context.Context, callID string) (ringi.ClaimedCall, error) {
	var none ringi.ClaimedCall
	s, c, err := e.gateCall(ctx, callID)
	switch {
	case err != nil:
		return none, err
	case c.result != nil:
		return none, fmt.Errorf("start call %s: %w", callID, &ringi.ResultError{Result: *c.result})
	}
	g, err := e.Gate(ctx, ringi.RunInfo{ID: s.id})
	if err != nil {
		return none, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx, err = g.a.context(ctx); err != nil {
		return none, err
	}
	var st Started
	k, err := g.judge(ctx, wish{ToolCall: ringi.ToolCall{ID: callID}})
	if err == nil {
		st, err = g.start(ctx, k, false, true)
	}
	if err != nil {
		return none, fmt.Errorf("start call %s: %w", callID, err)
	}
	now := g.a.s.call(callID)
	out := ringi.ClaimedCall{RunID: g.a.id, Thread: s.start.Thread, Agent: s.start.Agent, Call: st.call, Key: st.key, Attempt: st.nth, StartedAt: now.startedAt}
	if limit := g.a.timeOf(now); limit > 0 {
		out.Until = now.startedAt.Add(limit)
	}
	return out, nil
}

// FinishCall records what came of a start of a call, in whatever process. It
// needs neither the agent's policy nor its tools: what was started is recorded.
func (e *Engine) FinishCall(ctx context.Context, callID string, attempt int, r ringi.ToolResult) (ringi.GateCall, error) {
	var none ringi.GateCall
	out, err := answerOf(callID, r)
	if err != nil {
		return none, fmt.Errorf("finish call %s: %w", callID, err)
	}
	if err := e.mayWrite(); err != nil {
		return none, err
	}
	s, _, err := e.gateCall(ctx, callID)
	if err != nil {
		return none, err
	}
	g, err := e.tending(ctx, s)
	if err != nil {
		return none, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	err = g.finishNth(ctx, callID, attempt, out)
	if w := (*ringi.WaitingError)(nil); errors.As(err, &w) && !errors.Is(err, ringi.ErrLate) {
		err = nil // it is not known, and a person is asked
	}
	if err != nil {
		return none, fmt.Errorf("finish call %s: %w", callID, err)
	}
	return g.stands(ctx, g.a.s.call(callID)), nil
}

func (g *Gate) finishNth(ctx context.Context, id string, nth int, out outcome) error {
	if err := g.refresh(ctx); err != nil {
		return err
	}
	c, f := g.a.s.call(id), g.here[id]
	switch {
	case nth < 1 || nth > c.starts:
		return fmt.Errorf("%w: attempt %d of %d", ringi.ErrNotStarted, nth, c.starts)
	case f != nil && f.a != nil:
		return &ringi.StartedError{CallID: id, Attempt: c.starts, At: c.startedAt} // this process runs it itself
	case f != nil && f.nth != c.starts:
		g.landed(id, f) // what is known of it here is of before
	}
	if f != nil && f.nth != nth {
		f = nil // another start's
	}
	return g.finish(ctx, id, nth, f, out)
}

// CloseCalls ends a gate's run.
func (e *Engine) CloseCalls(ctx context.Context, runID string) error {
	s, err := e.gateRun(ctx, runID)
	if err != nil || s.finished != nil {
		return err
	}
	g, err := e.Gate(ctx, ringi.RunInfo{ID: runID})
	if errors.Is(err, ringi.ErrFinal) {
		return nil
	}
	if err != nil {
		return err
	}
	return g.Close(ctx)
}

// stands is where a call stands, for who is not here.
func (g *Gate) stands(ctx context.Context, c *call) ringi.GateCall {
	j, start := g.judged(ctx, c), g.a.s.start
	out := ringi.GateCall{RunID: g.a.id, Thread: start.Thread, Agent: start.Agent, Call: j.Call, State: ringi.CallMayRun, Verdict: j.Verdict,
		Request: j.Request, Result: j.Result, Claim: c.claim, Attempt: c.starts}
	if c.starts > 0 {
		out.StartedAt = c.startedAt
	}
	switch {
	case j.Result != nil && (j.Result.Executed() || j.Result.Origin == ringi.OriginPerson && j.Result.Outcome != ringi.OutcomeNotExecuted):
		out.State = ringi.CallDone
	case j.Result != nil:
		out.State = ringi.CallRefused
	case j.Request != nil:
		out.State = ringi.CallWaits
	case j.InFlight, len(c.started) > 0 && !c.again && !g.e.repeatable(c):
		out.State = ringi.CallRunning // over its time too, until somebody has looked
	}
	return out
}
