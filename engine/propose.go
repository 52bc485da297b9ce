package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
)

// An edit and typed values are proposals of a person's. They are checked,
// judged and previewed like a model's call, and put as a new request that
// shows what would run. A process that has the tools does so at once; another
// records the proposal, and the next Resume looks at it.

// propose records a proposal, with the request that it leads to where that can
// be made here.
func (e *Engine) propose(ctx context.Context, s *state, r *request, d ringi.Decision) (ringi.Settled, error) {
	if !e.canPropose(s, r) {
		return e.recordProposal(ctx, s, r, d)
	}
	a, _, err := e.outside(ctx, s, r.call)
	if err != nil {
		return ringi.Settled{}, err
	}
	if ctx, err = a.context(ctx); err != nil {
		return ringi.Settled{}, err
	}
	k, err := a.successor(ctx, r, d.Answer, d.Input, d.By)
	if err != nil {
		return ringi.Settled{}, err
	}
	if s.row.Owner != "" || e.heart.enter(a) != nil {
		return e.recordProposal(ctx, s, r, d)
	}
	defer e.heart.leave(a)
	prop := &ringi.InputProposed{Request: r.ev.Request, Digest: d.Digest, Answer: d.Answer, Input: d.Input, By: d.By, Channel: d.Channel, AndApprove: d.AndApprove}
	ch := &change{progress: true, bodies: []ringi.EventBody{prop}}
	if err := a.replaceBy(ctx, ch, r, k, otherInput); err != nil {
		return ringi.Settled{}, err
	}
	ch.release = true
	ch.status = a.waitsWith(ch)
	if err := e.write(context.WithoutCancel(ctx), s, &a.l, ch); err != nil {
		if errors.Is(err, ringi.ErrBusy) {
			return e.recordProposal(ctx, s, r, d)
		}
		return ringi.Settled{}, err
	}
	next := s.request(r.call.request.ev.Request)
	set := ringi.Settled{RunID: s.id, Request: e.view(ctx, s, next), Remaining: len(s.pending())}
	if d.AndApprove && mayFollow(next, d) {
		return e.decide(ctx, set.Request.Approve(d.By), d.By.Kind == ringi.Process)
	}
	return set, nil
}

// canPropose reports whether this process has the tool and all that judges the
// run.
func (e *Engine) canPropose(s *state, r *request) bool {
	a := &activation{e: e, s: s}
	_, ok := e.reg.Tool(r.call.judged.Tool)
	return ok && (s.start.Gate || s.start.Imported || e.cfg.Model != nil) && e.reg.Digest(r.call.judged.Tool) == r.ev.ToolDigest && a.mayJudge() == nil
}

// recordProposal leaves the proposal to the run's owner, or to the next Resume.
func (e *Engine) recordProposal(ctx context.Context, s *state, r *request, d ringi.Decision) (ringi.Settled, error) {
	if r.proposal != nil {
		return ringi.Settled{}, fmt.Errorf("%w: a proposal waits to be looked at", ringi.ErrStale)
	}
	ch := &change{settle: true, bodies: []ringi.EventBody{&ringi.InputProposed{Request: r.ev.Request, Digest: d.Digest, Answer: d.Answer,
		Input: d.Input, By: d.By, Channel: d.Channel, AndApprove: d.AndApprove}}}
	set, err := e.record(ctx, s, r, ch)
	set.Proposed = true
	set.Remaining++
	return set, err
}

// takeProposal looks at a recorded proposal: it leads to a new request, or is
// refused and leaves the request pending.
func (a *activation) takeProposal(ctx context.Context, r *request) error {
	p := r.proposal
	if a.e.reg.Digest(r.call.judged.Tool) != r.ev.ToolDigest {
		// What was asked is not what the tool would ask for today.
		return a.closeRequest(ctx, r.ev.Request, ringi.Stale, "the tool's definition has changed", true)
	}
	k, err := a.successor(ctx, r, p.Answer, p.Input, p.By)
	if serr := a.stopped(ctx); serr != nil {
		return serr
	}
	if err != nil {
		code := ringi.CodeInvalidInput
		if errors.Is(err, ringi.ErrNowDenied) {
			code = ringi.CodeDeniedByPolicy
		}
		return a.commit(ctx, func() (*change, error) {
			now := a.s.request(r.ev.Request)
			if now == nil || now.proposal == nil {
				return nil, nil
			}
			return &change{status: ringi.Running, progress: true,
				bodies: []ringi.EventBody{&ringi.InputRefused{Request: r.ev.Request, Code: code, Text: errText(err)}}}, nil
		})
	}
	err = a.commit(ctx, func() (*change, error) {
		now := a.s.request(r.ev.Request)
		if now == nil || now.state != ringi.Pending || now.proposal == nil {
			return nil, nil
		}
		ch := &change{progress: true}
		err := a.replaceBy(ctx, ch, now, k, otherInput)
		ch.release, ch.status = false, ringi.Running
		return ch, err
	})
	if err != nil {
		return err
	}
	c := a.s.call(k.callID)
	if next := c.request; p.AndApprove && next.state == ringi.Pending && mayFollow(next, ringi.Decision{By: p.By, Input: p.Input, Answer: p.Answer}) {
		d := a.e.view(ctx, a.s, next).Approve(p.By)
		d.Channel = p.Channel
		if _, err := a.e.decide(ctx, d, p.Channel == "callback"); err != nil {
			a.e.log.Warn("approve a proposal's request", "request", next.ev.Request, "error", err)
			return nil // it stays pending
		}
		return a.reload(context.WithoutCancel(ctx))
	}
	return nil
}

// mayFollow reports whether an edit or a fill may be approved in the same
// message: its bytes are the ones proposed, nothing new is shown, and four
// eyes do not ask for somebody else.
func mayFollow(next *request, d ringi.Decision) bool {
	if next.ev.FourEyes || next.ev.Preview != nil || next.ev.PreviewError != "" {
		return false
	}
	return d.Answer == ringi.Fill || string(next.ev.Input) == d.Input
}

// otherInput closes the request that a proposal takes the place of.
var otherInput = ringi.RequestClosed{Why: "a person proposed other input"}

// replaceBy closes a request as stale, as said, and puts its successor.
func (a *activation) replaceBy(ctx context.Context, ch *change, r *request, k *ask, closed ringi.RequestClosed) error {
	closed.Request, closed.State, closed.Successor = r.ev.Request, ringi.Stale, requestID(a.s.id, k.step, k.pos, k.n)
	ch.add(&closed)
	ch.changes = append(ch.changes, ringi.RequestChange{ID: r.ev.Request, From: ringi.Pending, To: ringi.Stale, Live: true})
	return a.put(ctx, ch, []*ask{k})
}

// successor checks and judges a proposal, and prepares the request that it
// leads to.
func (a *activation) successor(ctx context.Context, r *request, answer ringi.Answer, input string, by ringi.Principal) (*ask, error) {
	c := r.call
	name := c.judged.Tool
	tool, ok := a.e.reg.Tool(name)
	if !ok {
		return nil, &ringi.InputError{Tool: name, Code: ringi.CodeUnknownTool, Err: fmt.Errorf("unknown tool %q", name)}
	}
	k := &ask{callID: c.judged.ID, judged: c.judged, step: c.step, pos: c.pos, n: a.s.asked(c), kind: ringi.KindApproval,
		proposed: true, proposedBy: by.ID, replaces: r.ev.Request}
	proposed := ringi.Input(input)
	if answer == ringi.Fill {
		merged, keys, err := a.e.reg.Merge(name, c.judged.Input, input)
		if err != nil {
			return nil, err
		}
		proposed, k.supplied = merged, keys
	}
	checked, err := a.e.checkProposed(tool, proposed, a.s.start.Limits, answer == ringi.Fill)
	if err != nil {
		return nil, err
	}
	k.input = checked
	st, err := a.stepOf(ctx, a.s.turns[c.step-1])
	if err != nil {
		return nil, err
	}
	j := a.judging(st)
	call := c.toolCall()
	call.Input = k.input
	k.verdict = j.verdict(ctx, tool, call)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // a function that was cut has not spoken
	}
	if k.verdict.Status == ringi.Denied || !k.verdict.Status.Known() {
		return nil, fmt.Errorf("%w: %s", ringi.ErrNowDenied, k.verdict)
	}
	a.preview(ctx, k)
	return k, nil
}

// checkProposed checks a person's input as a model's is checked.
func (e *Engine) checkProposed(tool ringi.Tool, input ringi.Input, l ringi.Limits, merged bool) (ringi.Input, error) {
	lim := ringi.InputLimits{Bytes: l.InputBytes, Depth: l.InputDepth}
	if merged || len(tool.InputRequired) > 0 {
		checked, err := e.reg.CheckMerged(tool.Name, input, lim)
		return checked.Input, err
	}
	checked, err := e.reg.CheckInput(tool.Name, input, lim)
	return checked.Input, err
}
