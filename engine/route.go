package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
)

// Router is the service of several agents over one store: each run is its
// agent's engine's, by the name that it was started for.
type Router struct {
	engines map[string]*Engine
	names   []string
	// bare has no tools and no model: it reads and settles what is nobody's
	// here, from store and key alone.
	bare *Engine
}

var _ ringi.Service = (*Router)(nil)

// Route makes the service of engines that share a store, a space and a keyring.
// Each must have a Config.Agent of its own.
func Route(engines ...*Engine) (*Router, error) {
	if len(engines) == 0 {
		return nil, errors.New("route agents: no engine")
	}
	first := engines[0].cfg
	r := &Router{engines: map[string]*Engine{}}
	for _, e := range engines {
		switch name := e.cfg.Agent; {
		case name == "":
			return nil, errors.New("route agents: an engine has no agent's name")
		case r.engines[name] != nil:
			return nil, fmt.Errorf("route agents: two engines for agent %q", name)
		case e.cfg.Space != first.Space || e.storeID != engines[0].storeID || e.cfg.Keyring != first.Keyring:
			return nil, fmt.Errorf("route agents: agent %q has another store, space or keyring", name)
		default:
			r.engines[name] = e
			r.names = append(r.names, name)
		}
	}
	slices.Sort(r.names)
	var err error
	r.bare, err = New(Config{Store: first.Store, Space: first.Space, Keyring: first.Keyring, Logger: first.Logger, ReadOnly: first.ReadOnly,
		Expiry: first.Expiry, UseBy: first.UseBy, Lease: first.Lease, Persons: first.Persons, Members: first.Members})
	if err != nil {
		return nil, fmt.Errorf("route agents: %w", err)
	}
	return r, nil
}

// agent finds an agent's engine. An empty name means the only agent.
func (r *Router) agent(name string) (*Engine, error) {
	if name == "" && len(r.names) == 1 {
		name = r.names[0]
	}
	e := r.engines[name]
	if e == nil {
		return nil, fmt.Errorf("agent %q: %w", name, ringi.ErrNotFound)
	}
	return e, nil
}

// of is the engine of a run; the bare one where no agent of that name is here.
func (r *Router) of(ctx context.Context, runID string) (*Engine, error) {
	row, err := r.bare.Row(ctx, runID)
	if err != nil {
		return nil, err
	}
	if e := r.engines[row.Agent]; e != nil {
		return e, nil
	}
	return r.bare, nil
}

// ofRequest is the engine of a request's run.
func (r *Router) ofRequest(ctx context.Context, requestID string) *Engine {
	row, err := r.bare.store.Request(ctx, r.bare.cfg.Space, requestID)
	if err != nil {
		return r.bare // it says what is wrong
	}
	e, err := r.of(ctx, row.RunID)
	if err != nil {
		return r.bare
	}
	return e
}

// Agent returns the engine of an agent. ErrNotFound.
func (r *Router) Agent(name string) (*Engine, error) { return r.agent(name) }

// Run starts a run of start.Agent.
func (r *Router) Run(ctx context.Context, start ringi.RunStart) (*ringi.Result, error) {
	e, err := r.agent(start.Agent)
	if err != nil {
		return nil, err
	}
	start.Agent = e.cfg.Agent
	return e.Run(ctx, start)
}

// Enqueue starts a run of start.Agent and leaves it to a worker.
func (r *Router) Enqueue(ctx context.Context, start ringi.RunStart) (*ringi.Result, error) {
	e, err := r.agent(start.Agent)
	if err != nil {
		return nil, err
	}
	start.Agent = e.cfg.Agent
	return e.Enqueue(ctx, start)
}

// Resume goes on with a run, by its agent's engine. A run of an agent that is
// not here is ErrPolicyMissing, and stays as it is.
func (r *Router) Resume(ctx context.Context, runID string) (*ringi.Result, error) {
	e, err := r.here(ctx, runID)
	if err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	return e.Resume(ctx, runID)
}

// Expire closes requests that are past their time in at most limit runs.
func (r *Router) Expire(ctx context.Context, limit int) (int, error) {
	if err := r.bare.mayWrite(); err != nil {
		return 0, err
	}
	rows, err := r.bare.store.Runnable(ctx, limit)
	if err != nil {
		return 0, fmt.Errorf("list runnable runs: %w", err)
	}
	at, err := r.bare.now(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range rows {
		row := &rows[i]
		e := r.engines[row.Agent]
		if row.Space == r.bare.cfg.Space && e != nil {
			n += e.expireRun(ctx, row, at)
		}
	}
	return n, nil
}

// Status returns a run as it stands.
func (r *Router) Status(ctx context.Context, runID string) (*ringi.Result, error) {
	e, err := r.of(ctx, runID)
	if err != nil {
		return nil, err
	}
	return e.Status(ctx, runID)
}

// Row returns a run's row.
func (r *Router) Row(ctx context.Context, runID string) (ringi.RunRow, error) {
	return r.bare.Row(ctx, runID)
}

// Runs lists runs of all agents, newest first.
func (r *Router) Runs(ctx context.Context, q ringi.RunQuery) ([]ringi.RunRow, error) {
	return r.bare.Runs(ctx, q)
}

// Feed lists the records of the space's runs in the order of their commits, as
// Engine.Feed does.
func (r *Router) Feed(ctx context.Context, after int64, limit int) ([]ringi.FeedRow, error) {
	return r.bare.Feed(ctx, after, limit)
}

// FeedEnd returns the number of the newest record, of any space.
func (r *Router) FeedEnd(ctx context.Context) (int64, error) { return r.bare.FeedEnd(ctx) }

// Events returns a run's log events after a sequence number.
func (r *Router) Events(ctx context.Context, runID string, after int64) ([]ringi.Event, error) {
	return r.bare.Events(ctx, runID, after)
}

// Cancel ends a run.
func (r *Router) Cancel(ctx context.Context, runID string, by ringi.Principal, reason string, now bool) error {
	e, err := r.of(ctx, runID)
	if err != nil {
		return err
	}
	return e.Cancel(ctx, runID, by, reason, now)
}

// Decide records a decision, by the engine of the request's agent.
func (r *Router) Decide(ctx context.Context, d ringi.Decision) (ringi.Settled, error) {
	return r.ofRequest(ctx, d.RequestID).Decide(ctx, d)
}

// Request returns one request.
func (r *Router) Request(ctx context.Context, id string) (ringi.ApprovalRequest, error) {
	return r.ofRequest(ctx, id).Request(ctx, id)
}

// Requests lists requests of all agents, in the order that q asks for.
func (r *Router) Requests(ctx context.Context, q ringi.RequestQuery) (ringi.RequestPage, error) {
	return r.bare.Requests(ctx, q)
}

// RequestCount counts requests of all agents, up to limit.
func (r *Router) RequestCount(ctx context.Context, q ringi.RequestQuery, limit int) (int, error) {
	return r.bare.RequestCount(ctx, q, limit)
}

// RequestTally counts what was settled, of all agents.
func (r *Router) RequestTally(ctx context.Context, q ringi.RequestQuery, from, to time.Time) (ringi.RequestTally, error) {
	return r.bare.RequestTally(ctx, q, from, to)
}

// KeepRefusal keeps an attempt that was refused before an engine was asked.
func (r *Router) KeepRefusal(ctx context.Context, d ringi.Decision, cause error) {
	r.bare.KeepRefusal(ctx, d, cause)
}

// TakeBack takes an approval back until it is spent.
func (r *Router) TakeBack(ctx context.Context, requestID string, by ringi.Principal, reason string) (ringi.Settled, error) {
	return r.ofRequest(ctx, requestID).TakeBack(ctx, requestID, by, reason)
}

// Withdraw closes a pending request.
func (r *Router) Withdraw(ctx context.Context, requestID string, by ringi.Principal, reason string) (ringi.Settled, error) {
	return r.ofRequest(ctx, requestID).Withdraw(ctx, requestID, by, reason)
}

// Reassign hands a pending request over.
func (r *Router) Reassign(ctx context.Context, requestID string, to ringi.Deciders, by ringi.Principal, reason string) (ringi.Settled, error) {
	return r.ofRequest(ctx, requestID).Reassign(ctx, requestID, to, by, reason)
}

// Extend gives a pending request more time.
func (r *Router) Extend(ctx context.Context, requestID string, until time.Time, by ringi.Principal, reason string) (ringi.Settled, error) {
	return r.ofRequest(ctx, requestID).Extend(ctx, requestID, until, by, reason)
}

// Wait returns a request once it is settled.
func (r *Router) Wait(ctx context.Context, requestID string) (ringi.ApprovalRequest, error) {
	return r.bare.Wait(ctx, requestID)
}

// JudgeCall judges a call of a foreign loop, at the gate of c.Agent or of its
// run's agent.
func (r *Router) JudgeCall(ctx context.Context, c ringi.CallStart) (ringi.GateCall, error) {
	if c.RunID != "" {
		e, err := r.here(ctx, c.RunID)
		if err != nil {
			return ringi.GateCall{}, err
		}
		return e.JudgeCall(ctx, c)
	}
	e, err := r.agent(c.Agent)
	if err != nil {
		return ringi.GateCall{}, err
	}
	c.Agent = e.cfg.Agent
	return e.JudgeCall(ctx, c)
}

// Call returns a call of a foreign loop as it stands.
func (r *Router) Call(ctx context.Context, callID string) (ringi.GateCall, error) {
	e, err := r.of(ctx, runOfCall(callID))
	if err != nil {
		return ringi.GateCall{}, err
	}
	return e.Call(ctx, callID)
}

// StartCall gives the right to run a call, once, by its run's agent.
func (r *Router) StartCall(ctx context.Context, callID string) (ringi.ClaimedCall, error) {
	e, err := r.here(ctx, runOfCall(callID))
	if err != nil {
		return ringi.ClaimedCall{}, err
	}
	return e.StartCall(ctx, callID)
}

// FinishCall records what came of a start, also where the agent is not here.
func (r *Router) FinishCall(ctx context.Context, callID string, attempt int, res ringi.ToolResult) (ringi.GateCall, error) {
	e, err := r.of(ctx, runOfCall(callID))
	if err != nil {
		return ringi.GateCall{}, err
	}
	return e.FinishCall(ctx, callID, attempt, res)
}

// CloseCalls ends the run of a gate.
func (r *Router) CloseCalls(ctx context.Context, runID string) error {
	e, err := r.here(ctx, runID)
	if err != nil {
		return err
	}
	return e.CloseCalls(ctx, runID)
}

// here is the engine of a run's agent; ErrPolicyMissing where none is here.
func (r *Router) here(ctx context.Context, runID string) (*Engine, error) {
	e, err := r.of(ctx, runID)
	if err == nil && e == r.bare {
		return nil, fmt.Errorf("run %s: %w: its agent is not here", runID, ringi.ErrPolicyMissing)
	}
	return e, err
}

// Agents lists the agents, by name.
func (r *Router) Agents(ctx context.Context) ([]ringi.AgentInfo, error) {
	var out []ringi.AgentInfo
	for _, name := range r.names {
		one, err := r.engines[name].Agents(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, one...)
	}
	return out, nil
}

// Offered returns what a run of run.Agent would be offered.
func (r *Router) Offered(ctx context.Context, run ringi.RunInfo) (ringi.Offer, error) {
	e, err := r.agent(run.Agent)
	if err != nil {
		return ringi.Offer{}, err
	}
	return e.Offered(ctx, run)
}

// Withheld says what the agent's tools are to a caller without an approval
// step.
func (r *Router) Withheld(ctx context.Context, agent string) ([]ringi.Withheld, error) {
	e, err := r.agent(agent)
	if err != nil {
		return nil, err
	}
	return e.Withheld(ctx, agent)
}

// Verify checks one run.
func (r *Router) Verify(ctx context.Context, runID string) (Verification, error) {
	return r.bare.Verify(ctx, runID)
}
