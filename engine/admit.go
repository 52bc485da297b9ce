package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/ringi-dev/ringi"
)

// admission is the question that rides in the commit of a call's first start;
// nil where nobody asks it. A repeat is the same call: what it took from the
// ledger stands.
func (a *activation) admission(c *call) func(context.Context, ringi.Ledger) error {
	if len(c.started) > 0 {
		return nil
	}
	asked := []*Engine{}
	if a.e.cfg.Admit != nil {
		asked = append(asked, a.e)
	}
	for p := a.parent; p != nil; p = p.up {
		if p.e.cfg.Admit != nil && !slices.Contains(asked, p.e) {
			asked = append(asked, p.e)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	tool, _ := a.e.reg.Tool(c.judged.Tool)
	info := ringi.CallInfo{Call: c.toolCall(), Tool: cloneTool(tool), Run: cloneInfo(a.info), MessagesTrusted: !a.s.start.Imported,
		Runtime: slices.Clone(a.s.start.Runtime)}
	return func(ctx context.Context, tx ringi.Ledger) error {
		for _, e := range asked {
			if e.storeID != a.e.storeID {
				return &refusedEntry{errors.New("the limits of the run's parent are kept in another store")}
			}
			_, err := bounded(ctx, policyTimeout, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, e.cfg.Admit(ctx, tx, info)
			})
			if err != nil {
				return &refusedEntry{err}
			}
		}
		return nil
	}
}

// notAdmitted settles a call that was not let in: its request, where it has
// one, and its result, with the reason.
func (a *activation) notAdmitted(ctx context.Context, g grant, cause error) error {
	c := a.s.call(g.callID)
	if c == nil || c.result != nil {
		return nil
	}
	why := errText(cause)
	if r, ok := errors.AsType[*refusedEntry](cause); ok {
		why = errText(r.said)
	}
	a.e.log.Info("call is not admitted", "run", a.s.id, "call", g.callID, "tool", g.tool, "reason", why)
	j := *c.judged
	deny(&j, ringi.CodeNotAdmitted, ringi.Verdict{Source: ringi.SourceAdmit, Reason: why}, "not admitted, not executed")
	return a.refuseOpen(ctx, c, j)
}

// refusedEntry is what Admit said against a call. Nothing was written.
type refusedEntry struct{ said error }

func (e *refusedEntry) Error() string   { return ringi.ErrNotAdmitted.Error() + ": " + e.said.Error() }
func (e *refusedEntry) Unwrap() []error { return []error{ringi.ErrNotAdmitted, e.said} }
