package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
	"github.com/ringi-dev/ringi/sign"
)

// mayspend checks an approval right before the commit that spends it, in this
// order: state, time, signatures, decider, gates and verdict, definition,
// precondition, bytes. What fails settles the request with the reason. It
// reports whether the call may start.
func (a *activation) mayspend(ctx context.Context, st *stepping, c *call, r *request) (bool, error) {
	repeat := r.state == ringi.Spent
	at, err := a.e.now(ctx)
	if err != nil {
		return false, err
	}
	if past(r.decided.UseBy, at) {
		if repeat {
			return false, a.unknown(ctx, c, "the call was interrupted, and its approval was not renewed in time")
		}
		return false, a.closeRequest(ctx, r.ev.Request, ringi.Expired, "the approval was not used in time", true)
	}
	if err := a.verifyGranted(r); err != nil {
		if errors.Is(err, sign.ErrRetired) && !repeat {
			return false, a.closeRequest(ctx, r.ev.Request, ringi.Stale, "retired_key", true)
		}
		a.e.markCorrupt(ctx, &a.s.row, err)
		return false, fmt.Errorf("spend request %s: %w: %w", r.ev.Request, ringi.ErrCorrupt, err)
	}
	err = a.deciderStands(ctx, r)
	if err != nil && !errors.Is(err, ringi.ErrNotPermitted) {
		return false, err // not known now: it is asked again
	}
	if err != nil && !repeat {
		return false, a.closeRequest(ctx, r.ev.Request, ringi.Stale, "the decider may no longer decide", true)
	}
	j := a.judgeAgain(ctx, st, c)
	if err := a.stopped(ctx); err != nil {
		return false, err // functions were asked under an ended context
	}
	if j.Code != "" {
		return false, a.refuseOpen(ctx, c, j)
	}
	if a.e.reg.Digest(c.judged.Tool) != r.ev.ToolDigest && repeat {
		return false, a.unknown(ctx, c, "the call was interrupted, and the tool's definition has changed")
	}
	if a.e.reg.Digest(c.judged.Tool) != r.ev.ToolDigest {
		return false, a.closeRequest(ctx, r.ev.Request, ringi.Stale, "the tool's definition has changed", true)
	}
	err = a.precondition(ctx, c, r)
	if serr := a.stopped(ctx); serr != nil {
		return false, serr
	}
	if err != nil && !repeat {
		return false, a.closeRequest(ctx, r.ev.Request, ringi.Stale, "what the preview showed has changed", true)
	}
	return true, nil
}

// verifyGranted checks request and decision against the log: the request's
// digest and signature, the digest that its author saw, the bytes that he
// approved, and his decision's signature.
func (a *activation) verifyGranted(r *request) error {
	if err := a.e.verifyRequest(a.s, r); err != nil {
		return err
	}
	d := r.decided
	if d.Digest != r.ev.Digest {
		return fmt.Errorf("%w: decision on another digest", ringi.ErrCorrupt)
	}
	if d.Bytes != r.blind(a.e.inputOf(r)) || r.call.input != a.e.inputOf(r) {
		return fmt.Errorf("%w: the bytes are not those approved", ringi.ErrCorrupt)
	}
	if a.e.cfg.Keyring == nil {
		return nil
	}
	return a.e.cfg.Keyring.VerifyDecision(a.e.tuple(r, d.Answer, d.Bytes, d.Reason, d.By, d.At), d.Signature)
}

// deciderStands holds the decider against the recorded rule and today's: the
// stricter of both counts.
func (a *activation) deciderStands(ctx context.Context, r *request) error {
	d := r.decided
	process := d.By.Kind == ringi.Process && d.Channel == "callback"
	tool, _ := a.e.reg.Tool(r.call.judged.Tool)
	then := policy.DecideRule{Deciders: r.ev.Deciders, FourEyes: r.ev.FourEyes, Initiators: r.ev.Initiators, AdminOnly: tool.AdminOnly, AllowProcess: process}
	if err := a.e.mayDecide(ctx, then, d.By, d.Answer, r.ev.ProposedBy); err != nil {
		return err
	}
	now := then
	now.Deciders = a.e.withHandedOver(a.e.cfg.Deciders, r.ev.Deciders)
	if !tool.Deciders.IsZero() {
		now.Deciders = tool.Deciders
	}
	now.FourEyes = now.FourEyes || fourEyes(a.e.cfg.FourEyes, tool)
	if err := a.e.mayDecide(ctx, now, d.By, d.Answer, r.ev.ProposedBy); err != nil {
		return err
	}
	return a.e.stillMember(now.Deciders, d.By)
}

// withHandedOver is the configuration's rule with the teams that a request was
// handed to beside it.
func (e *Engine) withHandedOver(rule, asked ringi.Deciders) ringi.Deciders {
	if rule.IsZero() {
		return rule // everybody
	}
	for _, team := range e.cfg.HandOver {
		if slices.Contains(asked.Teams, team) {
			rule.Teams = append(slices.Clip(rule.Teams), team)
		}
	}
	return rule
}

// stillMember refuses a decider who is known to have left the teams that may
// decide.
func (e *Engine) stillMember(deciders ringi.Deciders, by ringi.Principal) error {
	if deciders.IsZero() || e.cfg.Teams == nil || slices.Contains(deciders.People, by.ID) {
		return nil
	}
	for _, team := range deciders.Teams {
		members, known := e.cfg.Teams[team]
		if !known || slices.Contains(members, by.ID) {
			return nil
		}
	}
	return ringi.ErrNotPermitted
}

// precondition compares what the preview read with the world right now.
func (a *activation) precondition(ctx context.Context, c *call, r *request) error {
	p := r.ev.Preview
	if p == nil || p.Precondition == "" {
		return nil
	}
	check := a.e.reg.Hooks(c.judged.Tool).Check
	if check == nil {
		return errors.New("tool has no check for its precondition")
	}
	call := c.toolCall()
	_, err := bounded(ctx, previewTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, check(ctx, call, p.Precondition)
	})
	return err
}
