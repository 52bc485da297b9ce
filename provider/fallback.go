// Package provider joins models of several vendors. The vendors themselves are
// in its folders; each stands over the vendor's own SDK, and a program compiles
// only those that it names.
package provider

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/ringi-dev/ringi"
)

// Choice is one model of a chain, and the zone that it runs in.
type Choice struct {
	Model ringi.Model
	// Zone is the model's trust zone. Where any choice of a chain has one, a
	// choice without one counts as external_global.
	Zone ringi.TrustZone
}

// Fallback makes a model that asks the first choice, and the next where that
// fails in a way that another vendor need not share: no key, a limit, no room, a
// fault, silence. A refused request or a filtered one is not carried on to
// another vendor, and neither is a call whose context has ended.
//
// It goes on within a call only while nothing was streamed. Later the error is
// the engine's, which discards the step and tries again: each attempt begins one
// choice further on, so that a chain needs at most as many attempts as choices
// (Limits.ModelRetries, 2 by default).
//
// The chain is as trusted as its least trusted choice (S-20), whichever answers:
// it is a [ringi.ZonedModel], and the engine judges it so. Without choices every
// call is an error.
func Fallback(choices ...Choice) ringi.Model {
	return &chain{slices.Clone(choices)}
}

type chain struct{ choices []Choice }

var _ ringi.ZonedModel = (*chain)(nil)

// TrustZone is the least trusted zone of the chain. A chain within a chain is
// as trusted as it says itself.
func (c *chain) TrustZone() ringi.TrustZone {
	zones := make([]ringi.TrustZone, len(c.choices))
	declared := false
	for i, choice := range c.choices {
		zones[i] = choice.Zone
		if zoned, ok := choice.Model.(ringi.ZonedModel); ok {
			zones[i] = less(choice.Zone, zoned.TrustZone())
		}
		declared = declared || zones[i] != ""
	}
	if !declared {
		return ""
	}
	least := zones[0]
	for _, z := range zones {
		if z == "" {
			z = ringi.ZoneExternalGlobal
		}
		least = less(least, z)
	}
	return least
}

// less is the less trusted of two zones; "" is none. An unknown zone is the
// least trusted: the engine refuses it by its name.
func less(a, b ringi.TrustZone) ringi.TrustZone {
	if a == "" || b == "" {
		return a + b
	}
	ca, oka := a.Ceiling()
	cb, okb := b.Ceiling()
	if !oka || okb && ca.Rank() < cb.Rank() {
		return a
	}
	return b
}

// Generate asks the choices in turn.
func (c *chain) Generate(ctx context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		if len(c.choices) == 0 {
			yield(ringi.ModelEvent{}, &ringi.ModelError{Class: ringi.ModelBadRequest, Provider: "fallback", Err: errors.New("chain has no choices")})
			return
		}
		var faults []error
		first := max(req.Attempt-1, 0) % len(c.choices)
		for i := range c.choices {
			spoke, err := ask(ctx, c.choices[(first+i)%len(c.choices)].Model, req, yield)
			if err == nil {
				return
			}
			if faults = append(faults, err); spoke || ctx.Err() != nil || !elsewhere(err) {
				break
			}
		}
		yield(ringi.ModelEvent{}, together(faults))
	}
}

// ask asks one model. It reports whether anything of it was handed on; err is
// nil where the turn was closed, or the reader left.
func ask(ctx context.Context, m ringi.Model, req ringi.ModelRequest, yield func(ringi.ModelEvent, error) bool) (spoke bool, err error) {
	closed := false
	for ev, fault := range m.Generate(ctx, req) {
		if fault != nil {
			return spoke, fault
		}
		spoke = true
		closed = closed || ev.Turn != nil
		if !yield(ev, nil) {
			return true, nil
		}
	}
	if !closed {
		return spoke, &ringi.ModelError{Class: ringi.ModelBroken, Provider: "fallback", Err: errors.New("stream ended without a turn")}
	}
	return true, nil
}

// elsewhere reports whether another vendor need not share a fault.
func elsewhere(err error) bool {
	e, ok := ringi.ModelErrorOf(err)
	if !ok {
		return true // nothing is known of it
	}
	switch e.Class {
	case ringi.ModelBadRequest, ringi.ModelFiltered:
		return false
	}
	return true
}

// together is what a chain's failure tells: every fault, and the class of one
// that may pass, with the shortest wait that any of those asked for.
func together(faults []error) error {
	if len(faults) == 1 {
		return faults[0]
	}
	out := &ringi.ModelError{Provider: "fallback", Err: errors.Join(faults...)}
	for _, err := range faults {
		e, ok := ringi.ModelErrorOf(err)
		if !ok {
			e = &ringi.ModelError{Class: ringi.ModelServer} // nothing is known of it
		}
		better := e.Class.Retryable() && (!out.Class.Retryable() || e.RetryAfter < out.RetryAfter)
		if out.Class == "" || better {
			out.Class, out.RetryAfter = e.Class, e.RetryAfter
		}
	}
	return out
}
