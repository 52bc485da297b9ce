package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

// What people do with a pending request beside answering it. A request is
// fixed by its digest, so handing it over or giving it more time puts a
// successor: a page that shows the old one decides nothing.

// Withdraw closes a pending request: the call does not run, and the model reads
// the reason. An initiator of the run may, and an admin.
func (e *Engine) Withdraw(ctx context.Context, requestID string, by ringi.Principal, reason string) (ringi.Settled, error) {
	return e.settle(ctx, "withdraw", requestID, by, reason, func(s *state, r *request) (*change, error) {
		if !by.Admin && !slices.Contains(s.start.Initiators, by.ID) && s.start.By.ID != by.ID {
			return nil, ringi.ErrNotPermitted
		}
		why := "withdrawn by who asked"
		if reason != "" {
			why = reason
		}
		return &change{settle: true,
			bodies:  []ringi.EventBody{&ringi.RequestClosed{Request: requestID, State: ringi.Withdrawn, Why: why, By: by}},
			changes: []ringi.RequestChange{{ID: requestID, From: ringi.Pending, To: ringi.Withdrawn}}}, nil
	})
}

// Reassign hands a pending request over: its successor names to as those who
// may decide. to stays within the rule of tool or configuration: named teams
// and people must be among its teams and people, where it has any, or, for the
// configuration's rule, among Config.HandOver. Who may decide the request may
// hand it over, and an admin. It needs a process that has the tool.
func (e *Engine) Reassign(ctx context.Context, requestID string, to ringi.Deciders, by ringi.Principal, reason string) (ringi.Settled, error) {
	if to.IsZero() {
		return ringi.Settled{}, fmt.Errorf("reassign request %s: %w: nobody is named", requestID, ringi.ErrAnswer)
	}
	to = ringi.Deciders{People: slices.Clone(to.People), Teams: slices.Clone(to.Teams)}
	return e.succeed(ctx, "reassign", requestID, by, reason, func(a *activation, r *request, k *ask) (string, error) {
		tool, _ := e.reg.Tool(r.call.judged.Tool)
		rest := to
		if tool.Deciders.IsZero() { // a tool's own rule is its code's: configuration does not widen it
			rest.Teams = slices.DeleteFunc(slices.Clone(to.Teams), func(t string) bool { return slices.Contains(e.cfg.HandOver, t) })
		}
		if err := within(rest, a.deciders(tool)); err != nil {
			return "", err
		}
		rule := a.decideRule(tool, r.ev.ProposedBy)
		rule.Deciders = to
		if e.noDecider(ctx, rule) {
			return "", fmt.Errorf("%w: nobody of them may decide", ringi.ErrNotPermitted)
		}
		k.deciders, k.expires = to, r.ev.ExpiresAt
		return "handed over", nil
	})
}

// within refuses deciders outside a rule. A person of a named team is for the
// team's own list to know, which is looked at when he decides.
func within(to, rule ringi.Deciders) error {
	if rule.IsZero() {
		return nil
	}
	for _, team := range to.Teams {
		if !slices.Contains(rule.Teams, team) {
			return fmt.Errorf("%w: team %q may not decide this request", ringi.ErrNotPermitted, team)
		}
	}
	for _, id := range to.People {
		if !slices.Contains(rule.People, id) && len(rule.Teams) == 0 {
			return fmt.Errorf("%w: %q may not decide this request", ringi.ErrNotPermitted, id)
		}
	}
	return nil
}

// Extend gives a pending request more time: its successor waits until then,
// which is later than now and at most Config.Expiry from now. Who may decide
// the request may, and an admin. It needs a process that has the tool.
func (e *Engine) Extend(ctx context.Context, requestID string, until time.Time, by ringi.Principal, reason string) (ringi.Settled, error) {
	until = until.UTC().Truncate(time.Microsecond)
	return e.succeed(ctx, "extend", requestID, by, reason, func(a *activation, r *request, k *ask) (string, error) {
		at, err := e.now(ctx)
		if err != nil {
			return "", err
		}
		if !until.After(at) || e.cfg.Expiry > 0 && until.After(at.Add(e.cfg.Expiry)) {
			return "", fmt.Errorf("%w: the end must be within %s from now", ringi.ErrAnswer, e.cfg.Expiry)
		}
		k.expires, k.deciders = until, r.ev.Deciders
		return "extended", nil
	})
}

// succeed closes a pending request and puts one that shows the same, but for
// what with changes.
func (e *Engine) succeed(ctx context.Context, verb, requestID string, by ringi.Principal, reason string,
	with func(*activation, *request, *ask) (string, error)) (ringi.Settled, error) {
	return e.settle(ctx, verb, requestID, by, reason, func(s *state, r *request) (*change, error) {
		if r.outcomeKind() {
			return nil, fmt.Errorf("%w: an outcome is nobody's in particular, and does not expire", ringi.ErrAnswer)
		}
		rule := policy.DecideRule{Deciders: r.ev.Deciders, Initiators: r.ev.Initiators}
		if !by.Admin && policy.MayDecide(rule, by, ringi.Deny, r.ev.ProposedBy) != nil {
			return nil, ringi.ErrNotPermitted
		}
		if !e.canPropose(s, r) {
			return nil, fmt.Errorf("%w: this process does not have the tool", ringi.ErrPolicyMissing)
		}
		a, _, err := e.outside(ctx, s, r.call)
		if err != nil {
			return nil, err
		}
		c := r.call
		k := &ask{callID: c.judged.ID, judged: c.judged, step: c.step, pos: c.pos, n: s.asked(c), kind: r.ev.Ask, verdict: r.ev.Verdict,
			input: e.inputOf(r), preview: r.ev.Preview, noView: r.ev.PreviewError, replaces: r.ev.Request,
			proposed: r.ev.Proposed, proposedBy: r.ev.ProposedBy, supplied: r.ev.Supplied}
		why, err := with(a, r, k)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			why += ": " + reason
		}
		ch := &change{progress: true, outside: a}
		if err := a.replaceBy(ctx, ch, r, k, ringi.RequestClosed{Why: why, By: by}); err != nil {
			return nil, err
		}
		ch.release, ch.status = true, a.waitsWith(ch)
		return ch, nil
	})
}

// settle commits what a person does with a pending request, and reads again
// where somebody was first.
func (e *Engine) settle(ctx context.Context, verb, requestID string, by ringi.Principal, reason string,
	make func(*state, *request) (*change, error)) (ringi.Settled, error) {
	d := ringi.Decision{RequestID: requestID, By: by, Reason: reason, Answer: ringi.Answer(verb)}
	err := e.mayWrite()
	switch {
	case err != nil:
	case by.IsZero():
		err = ringi.ErrNoPrincipal
	case len(reason) > reasonBytes || !utf8.ValidString(reason):
		err = fmt.Errorf("%w: reason", ringi.ErrTooLarge)
	}
	for try := 0; err == nil && try < 1000; try++ {
		var s *state
		var r *request
		if s, r, err = e.find(ctx, e.cfg.Space, requestID); err != nil {
			break
		}
		if err = e.isOpen(ctx, s, r); err != nil {
			break
		}
		var ch *change
		if ch, err = make(s, r); err != nil {
			break
		}
		var set ringi.Settled
		if set, err = e.settleOnce(ctx, s, r, ch); err == nil {
			return set, nil
		}
		if _, moved := errors.AsType[*ringi.RequestStateError](err); moved || errors.Is(err, ringi.ErrConflict) {
			err = ctx.Err()
		}
	}
	if err == nil {
		err = ringi.ErrConflict
	}
	e.refused(ctx, d, err)
	return ringi.Settled{}, fmt.Errorf("%s request %s: %w", verb, requestID, err)
}

// settleOnce writes the change: as a settler, or, where a request is put, under
// a lease for this commit alone.
func (e *Engine) settleOnce(ctx context.Context, s *state, r *request, ch *change) (ringi.Settled, error) {
	a := ch.outside
	if a == nil {
		return e.record(ctx, s, r, ch)
	}
	if s.row.Owner != "" {
		return ringi.Settled{}, fmt.Errorf("run %s: %w", s.id, ringi.ErrBusy)
	}
	if err := e.heart.enter(a); err != nil {
		return ringi.Settled{}, err
	}
	defer e.heart.leave(a)
	if err := e.write(context.WithoutCancel(ctx), s, &a.l, ch); err != nil {
		return ringi.Settled{}, err
	}
	next := s.request(r.call.request.ev.Request)
	return ringi.Settled{RunID: s.id, Request: e.view(ctx, s, next), Remaining: len(s.pending())}, nil
}
