package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/toolcontext"
)

// Do is Judge, Start and Finish in a row: it runs the call once where it may,
// and returns its result, which the model is told. A denial, an expiry, an
// input that is not valid and a person's answer in the tool's place are results
// too. An error of run is the tool's own answer; with [ringi.NotDone] it says
// that surely nothing happened.
//
// A call that waits for a person returns the *ringi.WaitingError, unless
// Config.OnApprovalRequired answers. Come back with the call's ID (it is in the
// error's request) once it is decided. A call that is in flight already, here
// or in another process, is waited for and not run again.
//
// run gets the context of a tool ([ringi.ToolContextFrom]), with the call's
// time limit and without the cancellation of ctx: what was started is finished
// and recorded. Where run panics, or exceeds the limit, the outcome is unknown,
// unless the tool's effect allows another call. What run returns is the tool's
// output: text as it is, a ringi.ToolResult as Finish takes it, an error as if it
// were returned as one, everything else as JSON.
func (g *Gate) Do(ctx context.Context, call ringi.ToolCall, run func(context.Context, Started) (any, error)) (ringi.ToolResult, error) {
	name := call.Tool
	if run == nil {
		return ringi.ToolResult{}, fmt.Errorf("call %q: there is no function to run", name)
	}
	for range 1000 {
		s, res, err := g.take(ctx, call)
		name = cmp.Or(name, call.ID)
		switch w := (*ringi.WaitingError)(nil); {
		case err == nil && res != nil:
			return *res, nil
		case err == nil:
			return g.do(ctx, s, run)
		case errors.As(err, &w):
			call.ID, call.Input = w.Request.Call.ID, ""
			if w.Request.State != ringi.Pending || !g.callBack(ctx, w.Request) {
				return ringi.ToolResult{}, err
			}
		case errors.Is(err, errFlies):
			call.ID, call.Input = s.call.ID, ""
			if err := g.await(ctx, call.ID); err != nil {
				return ringi.ToolResult{}, fmt.Errorf("call %q: wait for it: %w", name, err)
			}
		default:
			return ringi.ToolResult{}, fmt.Errorf("call %q: %w", name, err)
		}
	}
	return ringi.ToolResult{}, fmt.Errorf("call %q: %w", name, ringi.ErrConflict)
}

// errFlies says that a call is in flight.
var errFlies = errors.New("the call is in flight")

// take judges and starts a call under one lock. It returns the result of one
// that has it.
func (g *Gate) take(ctx context.Context, given ringi.ToolCall) (Started, *ringi.ToolResult, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ctx, err := g.a.context(ctx)
	if err != nil {
		return Started{}, nil, err
	}
	c, err := g.judge(ctx, wish{ToolCall: given})
	if err != nil {
		return Started{}, nil, err
	}
	if c.result == nil && c.waitsFor() == nil && g.flies(c) {
		return Started{call: c.toolCall()}, nil, errFlies
	}
	s, err := g.start(ctx, c, given.ID == "", false)
	if has, ok := errors.AsType[*ringi.ResultError](err); ok {
		return Started{}, &has.Result, nil
	}
	if errors.Is(err, ringi.ErrBusy) {
		return Started{call: c.toolCall()}, nil, errFlies
	}
	if err != nil {
		return Started{}, nil, err
	}
	g.here[s.grant.callID].a = g.shell(ctx, g.a.s.call(s.grant.callID))
	return s, nil, nil
}

// shell is an activation that holds one call alone: what runs beside others
// shares no state with them.
func (g *Gate) shell(ctx context.Context, c *call) *activation {
	a := g.a
	alone := *c
	s := &state{space: a.s.space, id: a.s.id, start: a.s.start, calls: a.s.calls}
	s.turns = []*turn{{ev: &ringi.ModelResponded{Step: c.step}, calls: []*call{&alone}}}
	x := &activation{e: a.e, s: s, id: a.id, space: a.space, info: cloneInfo(a.info), parent: a.parent, tree: a.tree, mark: a.mark, gate: true}
	x.info.Step = c.step
	x.calling.Base = toolcontext.Detach(ctx)
	return x
}

// do runs a started call, and records what came of it.
func (g *Gate) do(ctx context.Context, s Started, run func(context.Context, Started) (any, error)) (ringi.ToolResult, error) {
	id := s.grant.callID
	g.mu.Lock()
	x := g.here[id].a
	g.mu.Unlock()
	tool, _ := g.e.reg.Tool(s.grant.tool)
	var doubt atomic.Pointer[outcome]
	handler := func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		v, err := run(ctx, s)
		if err != nil {
			return ringi.ToolResult{}, err
		}
		if p, ok := v.(*ringi.ToolResult); ok && p != nil {
			v = *p
		}
		if err, ok := v.(error); ok {
			return ringi.ToolResult{}, err
		}
		if r, ok := v.(ringi.ToolResult); ok {
			out, err := answerOf(id, r)
			if err == nil && out.unknown != "" {
				doubt.Store(&out)
			}
			if err == nil && out.fin.Code == ringi.CodeNotDone {
				err = ringi.NotDone(errors.New(out.fin.Error))
			}
			return ringi.ToolResult{Output: out.fin.Output, Error: out.fin.Error}, err
		}
		return outputOf(v)
	}
	returned := false
	defer func() {
		if !returned { // run ended this goroutine
			g.mu.Lock()
			defer g.mu.Unlock()
			g.finish(ctx, id, s.nth, s.flight, outcome{fin: failed(id, ringi.CodeToolError, "the tool failed")})
		}
	}()
	defer g.e.heart.watch(x)()
	out := x.invoke(ctx, handler, tool, s.grant, s.key, s.begun)
	returned = true
	if d := doubt.Load(); d != nil && out.unknown == "" && out.fin.Outcome == ringi.OutcomeOK {
		out = *d
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.finish(ctx, id, s.nth, s.flight, out); err != nil {
		if has, ok := errors.AsType[*ringi.ResultError](err); ok {
			return has.Result, nil
		}
		return ringi.ToolResult{}, fmt.Errorf("call %q: %w", s.grant.tool, err)
	}
	return *g.a.s.call(id).result, nil
}

// cut cuts the calls that Do runs here.
func (g *Gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.here {
		if f.a != nil {
			f.a.cutNow()
		}
	}
}

// outputOf is what a model reads of what the loop's function returned.
func outputOf(v any) (ringi.ToolResult, error) {
	switch v := v.(type) {
	case nil:
		return ringi.ToolResult{}, nil
	case string:
		return ringi.ToolResult{Output: v}, nil
	case []byte:
		return ringi.ToolResult{Output: string(v)}, nil
	case json.RawMessage:
		return ringi.ToolResult{Output: string(v)}, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ringi.ToolResult{}, fmt.Errorf("the tool ran; its result cannot be shown: %w", err)
	}
	return ringi.ToolResult{Output: string(b)}, nil
}

// callBack asks the program's own callback about a request. It reports whether
// the call is to be looked at again.
func (g *Gate) callBack(ctx context.Context, r ringi.ApprovalRequest) bool {
	if g.e.cfg.OnApprovalRequired == nil || r.Kind == ringi.KindOutcome && !r.Allows(ringi.Ran) {
		return false
	}
	cctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // an inbox may answer first
		if _, err := g.e.Wait(cctx, r.ID); err == nil {
			cancel()
		}
	}()
	d, err := g.a.callSafely(cctx, r)
	if err == nil && d.RequestID == "" && d.Answer == "" {
		err = errors.New("callback returned no decision")
	}
	if err == nil {
		d.Channel = "callback"
		_, err = g.e.decide(ctx, d, true)
	}
	if err == nil {
		return true
	}
	if now, rerr := g.e.store.Request(ctx, g.a.space, r.ID); rerr == nil && now.State != ringi.Pending {
		return true // decided by somebody who was first
	}
	g.e.log.Warn("callback gave no decision: the request stays pending", "request", r.ID, "error", err)
	return false
}

// await returns when a call that runs has come back, or its time is over: here
// at once, from another process by looking at the run's row.
func (g *Gate) await(ctx context.Context, id string) error {
	g.mu.Lock()
	f := g.here[id]
	seq := g.a.s.chain.Seq
	c := g.a.s.call(id)
	if f == nil && (c.result != nil || !g.flies(c)) {
		g.mu.Unlock()
		return nil // it came back between two looks
	}
	left := time.Hour
	if limit := g.a.timeOf(c); limit > 0 {
		if at, err := g.e.now(ctx); err == nil {
			left = max(limit-at.Sub(c.startedAt), 0) + time.Millisecond
		}
	}
	g.mu.Unlock()
	if f != nil {
		select {
		case <-f.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	over := time.NewTimer(left)
	defer over.Stop()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over.C:
			return nil
		case <-tick.C:
			if row, err := g.e.store.Row(ctx, g.a.space, g.a.id); err == nil && row.Seq != seq {
				return nil
			}
		}
	}
}
