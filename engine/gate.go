package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/ringi-dev/ringi"
)

// Gate is the path for a loop that is not ours: may this call run, here is a
// request for a person, now it may run, once, with these bytes. Its run is in
// the same log, inbox and command as any other, and stays open until Close or
// until nothing was open in it for Config.GateIdle.
//
// Ringi never says yes twice, nor for other bytes. That the loop asks before
// it runs a tool is the loop's word.
//
// A Gate is safe for concurrent use: calls run side by side. User functions
// (policy, previews, checks) are asked one at a time and must not use the gate.
type Gate struct {
	e *Engine
	// mu serialises what reads and writes the run's state: the commits of one
	// process. Across processes a conflict is read again.
	mu sync.Mutex
	a  *activation
	// here are the calls that run in this process.
	here map[string]*inFlight
}

// inFlight is a call that was started here and has not come back.
type inFlight struct {
	done  chan struct{} // closed when it is finished, or given up
	since time.Time     // in the store's time
	limit time.Duration
	a     *activation // of a call that Do runs, to cut it
	nth   int         // which start of the call it is
}

// Gate opens the gate of a run, or opens it again: by run.ID, or as the open
// run of run.Thread. With neither it makes a new thread. Agent, By, Groups,
// Zone and Unattended hold for the whole run and are recorded; set ones must
// be the same when a gate is opened again. The other fields are ignored.
//
// Zone is the trust zone of the loop's model; the less trusted of it and
// Config.Zone counts. Errors: ErrRunOpen where the thread has an open run that
// is no gate's, or one of somebody else's; ErrFinal where the run has ended;
// ErrNotFound for an unknown run.ID; ErrPolicyMissing where this process lacks
// what judges the run.
func (e *Engine) Gate(ctx context.Context, run ringi.RunInfo) (*Gate, error) {
	if err := e.mayOpen(run); err != nil {
		return nil, fmt.Errorf("open gate: %w", err)
	}
	for range 100 {
		id, err := e.openGate(ctx, run)
		if err != nil {
			return nil, fmt.Errorf("open gate: %w", err)
		}
		var g *Gate
		if id != "" {
			g, err = e.reopen(ctx, id, run)
		} else {
			g, err = e.newGate(ctx, run)
		}
		if id == "" && run.Thread != "" && errors.Is(err, ringi.ErrRunOpen) {
			continue // somebody was first, and it may be a gate
		}
		if err != nil {
			return nil, fmt.Errorf("open gate: %w", err)
		}
		return g, nil
	}
	return nil, fmt.Errorf("open gate: %w", ringi.ErrConflict)
}

// mayOpen refuses what a gate cannot keep.
func (e *Engine) mayOpen(run ringi.RunInfo) error {
	if err := e.mayWrite(); err != nil {
		return err
	}
	if e.cfg.PrepareStep != nil {
		return errors.New("the engine prepares its steps (PrepareStep), and a foreign loop has none")
	}
	if run.Zone != "" && !run.Zone.Known() {
		return fmt.Errorf("unknown trust zone %q", run.Zone)
	}
	return nil
}

// openGate finds the run that is meant; empty for a new one.
func (e *Engine) openGate(ctx context.Context, run ringi.RunInfo) (string, error) {
	if run.ID != "" || run.Thread == "" {
		return run.ID, nil
	}
	row, open, err := e.openRunOf(ctx, e.cfg.Space, run.Thread)
	if err != nil || !open {
		return "", err
	}
	return row.ID, nil
}

// newGate makes the gate's run.
func (e *Engine) newGate(ctx context.Context, run ringi.RunInfo) (*Gate, error) {
	a, ev, err := e.begin(ctx, ringi.RunStart{Thread: run.Thread, Agent: run.Agent, By: run.By, Groups: run.Groups, Unattended: run.Unattended})
	if err != nil {
		return nil, err
	}
	ev.Gate, ev.Zone = true, lessTrusted(ev.Zone, run.Zone)
	err = a.commitStart(ctx, ev, func(ch *change) { ch.release, ch.whole = true, true })
	if err == nil {
		err = a.rememberAgain(ctx)
	}
	if err != nil {
		return nil, err
	}
	return e.opened.keep(e.gateOf(a)), nil
}

// reopen goes on with a gate's run.
func (e *Engine) reopen(ctx context.Context, id string, run ringi.RunInfo) (*Gate, error) {
	s, err := e.load(ctx, e.cfg.Space, id)
	switch {
	case err != nil:
		return nil, err
	case !s.start.Gate:
		return nil, fmt.Errorf("thread %s: %w: %s is no gate's", s.start.Thread, ringi.ErrRunOpen, id)
	case s.finished != nil:
		return nil, fmt.Errorf("run %s: %w: %s", id, ringi.ErrFinal, s.finished.Status)
	}
	if err := sameRun(s.start, run); err != nil {
		return nil, fmt.Errorf("run %s: %w: %w", id, ringi.ErrRunOpen, err)
	}
	if g := e.opened.find(id); g != nil {
		return g, nil
	}
	a := &activation{e: e, s: s, id: s.id, space: s.space, l: lease{owner: e.heart.owner}, parent: parentOf(ctx)}
	if up := s.start.Parent; !up.IsZero() && (a.parent == nil || a.parent.runID != up.RunID || a.parent.callID != up.CallID) {
		// Elsewhere nothing of what its parent asks would bind it.
		return nil, fmt.Errorf("run %s: %w: it is open inside a call of another run", id, ringi.ErrRunOpen)
	}
	if err := a.mayJudge(); err != nil {
		return nil, err
	}
	if a.prior, err = e.remember(ctx, s.space, s.start.Thread); err != nil {
		return nil, err
	}
	return e.opened.keep(e.gateOf(a)), nil
}

// sameRun holds what a gate is opened with against what was recorded.
func sameRun(start *ringi.RunStarted, run ringi.RunInfo) error {
	switch {
	case run.Thread != "" && run.Thread != start.Thread:
		return errors.New("it is open on another thread")
	case run.Agent != "" && run.Agent != start.Agent:
		return errors.New("it is open for another agent")
	case !run.By.IsZero() && run.By.ID != start.By.ID:
		return errors.New("it is open for another principal")
	case run.Groups != nil && (start.AllGroups || !slices.Equal(run.Groups, start.Groups)):
		return errors.New("it is open with other groups")
	case run.Unattended != ringi.Attended && run.Unattended != start.Unattended:
		return errors.New("it is open with another unattended mode")
	case lessTrusted(start.Zone, run.Zone) != start.Zone:
		return errors.New("it is open for a more trusted zone")
	}
	return nil
}

func (e *Engine) gateOf(a *activation) *Gate {
	g := &Gate{e: e, a: a, here: map[string]*inFlight{}}
	a.gate, a.g, a.tree = true, g, &tree{limit: a.s.start.Limits.ToolCalls}
	a.setInfo()
	a.prepareMessages()
	return g
}

// Run returns the gate's run: its id and thread, and what it was opened with.
func (g *Gate) Run() ringi.RunInfo {
	g.mu.Lock()
	defer g.mu.Unlock()
	return cloneInfo(g.a.info)
}

// Offer returns the tools that the loop may show its model, and why others are
// refused. Judge refuses every other tool.
func (g *Gate) Offer() ringi.Offer {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := *g.step(0).offer
	o.Tools = slices.Clone(o.Tools)
	for i := range o.Tools {
		o.Tools[i] = cloneTool(o.Tools[i])
	}
	return o
}

// Judged says where a call stands. Exactly one of these holds: a Result is
// there, a Request waits for a person, the call is in flight, or it may start.
type Judged struct {
	// Call has Ringi's id, and the bytes that run: a person's, where an edit or
	// typed values took the place of the model's.
	Call    ringi.ToolCall
	Verdict ringi.Verdict
	// Request is what waits for a person; nil where nothing does.
	Request *ringi.ApprovalRequest
	// Result is the call's, or the refusal that the model reads; nil where it
	// has none.
	Result *ringi.ToolResult
	// InFlight is set where the call was started and has not come back.
	InFlight bool
}

// MayStart reports whether Start would start the call now.
func (j Judged) MayStart() bool { return j.Request == nil && j.Result == nil && !j.InFlight }

// Judge offers and judges a call, and commits it, with the request where a
// person is asked. A call without an ID is new, whatever its ModelID; one with
// an ID of Judge's is that call again, with what has become of it. ErrNotFound
// for an unknown ID, ErrStale for a known one with another tool or other bytes.
func (g *Gate) Judge(ctx context.Context, call ringi.ToolCall) (Judged, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ctx, err := g.a.context(ctx)
	if err != nil {
		return Judged{}, err
	}
	c, err := g.judge(ctx, wish{ToolCall: call})
	if err != nil {
		return Judged{}, fmt.Errorf("judge call of tool %q: %w", call.Tool, err)
	}
	return g.judged(ctx, c), nil
}

// Started is the right to run one call once. Start makes it, by a grant; its
// zero value opens nothing.
type Started struct {
	gate  *Gate
	grant grant
	call  ringi.ToolCall
	key   string
	begun time.Time
	// flight and nth say which start of the call this is.
	flight *inFlight
	nth    int
}

// Input returns the bytes that run: those that were judged, or that a person
// approved. The slice is the caller's own.
func (s Started) Input() []byte { return []byte(s.call.Input) }

// Call returns the call, with the bytes that run.
func (s Started) Call() ringi.ToolCall { return s.call }

// Key returns the idempotency key: the same for the same call after a restart,
// another for any other bytes.
func (s Started) Key() string { return s.key }

// Attempt counts from 1; above 1 a crash interrupted an earlier start. 0 is
// the zero Started's.
func (s Started) Attempt() int { return s.grant.attempt }

// Start checks a judged call once more, spends its approval and commits its
// start: the loop runs the tool now, with the bytes of Started, and calls
// Finish. A call that is not finished within its time (Tool.Timeout,
// Limits.ToolTimeout) has an unknown outcome, which a person is asked about.
//
// Errors: *ringi.WaitingError where a person is asked, *ringi.ResultError where
// the call has its result (a denial too), ErrBusy where it is in flight.
func (g *Gate) Start(ctx context.Context, callID string) (Started, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ctx, err := g.a.context(ctx)
	if err != nil {
		return Started{}, err
	}
	c, err := g.judge(ctx, wish{ToolCall: ringi.ToolCall{ID: callID}})
	if err == nil {
		var s Started
		if s, err = g.start(ctx, c, false, false); err == nil {
			return s, nil
		}
	}
	return Started{}, fmt.Errorf("start call %s: %w", callID, err)
}

// Finish commits what the loop's tool answered: Output, or Error for the
// tool's own error (with Code CodeNotDone where surely nothing happened). An
// Outcome of OutcomeInDoubt says that nobody knows; a person is asked then, and
// Finish returns the *ringi.WaitingError. A result that comes after the call
// was given up is kept as evidence for that person; the error says so.
func (g *Gate) Finish(ctx context.Context, s Started, r ringi.ToolResult) error {
	if s.gate != g || s.grant.attempt == 0 {
		return errors.New("finish call: it was not started at this gate")
	}
	out, err := answerOf(s.grant.callID, r)
	if err != nil {
		return fmt.Errorf("finish call %s: %w", s.grant.callID, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.finish(ctx, s.grant.callID, s.nth, s.flight, out); err != nil {
		return fmt.Errorf("finish call %s: %w", s.grant.callID, err)
	}
	return nil
}

// Close ends the gate's run, completed: what waits is withdrawn. ErrBusy where
// a call is in flight, or where a person is asked what became of one; Cancel
// ends those too. Closing an ended run does nothing.
func (g *Gate) Close(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.close(ctx); err != nil {
		return fmt.Errorf("close gate: %w", err)
	}
	g.e.opened.drop(g)
	return nil
}

func (g *Gate) close(ctx context.Context) error {
	if err := g.refresh(ctx); err != nil {
		return err
	}
	for _, c := range g.a.s.unanswered() {
		c, err := g.look(ctx, c)
		if err != nil {
			return err
		}
		if c.result == nil && (g.flies(c) || c.outcome != nil && c.outcome.state == ringi.Pending) {
			return fmt.Errorf("%w: call %s is not finished", ringi.ErrBusy, c.judged.ID)
		}
	}
	if err := g.endIfDue(ctx); err != nil || g.a.s.finished != nil {
		return err
	}
	return g.a.end(ctx, ringi.Completed, ringi.ReasonCompleted, "the gate was closed")
}

// opened finds the gates that somebody in this process holds, so that they
// share their state. It keeps none of them alive.
type opened struct {
	mu    sync.Mutex
	gates map[string]weak.Pointer[Gate]
}

func (o *opened) find(runID string) *Gate {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gates[runID].Value()
}

// keep remembers a gate, or returns the one that was first.
func (o *opened) keep(g *Gate) *Gate {
	o.mu.Lock()
	defer o.mu.Unlock()
	if was := o.gates[g.a.id].Value(); was != nil {
		return was
	}
	if o.gates == nil {
		o.gates = map[string]weak.Pointer[Gate]{}
	}
	o.gates[g.a.id] = weak.Make(g)
	runtime.AddCleanup(g, o.forget, g.a.id)
	return g
}

// forget takes out a gate that nobody holds any more.
func (o *opened) forget(runID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p, ok := o.gates[runID]; ok && p.Value() == nil {
		delete(o.gates, runID)
	}
}

func (o *opened) drop(g *Gate) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.gates, g.a.id)
}
