package engine

import (
	"context"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
)

// A gate's run between two calls: nobody holds it, and time goes on.

// between makes a change of a gate's: the lease is taken for the commit alone,
// and the run is left where anybody may go on.
func (a *activation) between(ch *change) {
	ch.release, ch.progress, ch.wake = true, true, false
	if ch.status.Final() {
		return
	}
	ch.status = ringi.Running
	if st := a.s.waitsAfter(ch); st != "" {
		ch.status = st
	}
}

// waitsAfter is the state that the run waits in once a change is made.
func (s *state) waitsAfter(ch *change) ringi.RunStatus {
	var st ringi.RunStatus
	for _, r := range s.requests {
		gone := false
		for i := range ch.changes {
			gone = gone || ch.changes[i].ID == r.ev.Request
		}
		if r.state == ringi.Pending && r.proposal == nil && !gone {
			st = waitsAs(st, r.ev.Ask)
		}
	}
	for i := range ch.rows {
		st = waitsAs(st, ch.rows[i].Kind)
	}
	return st
}

// due is when something of a gate's run is next to be settled by time: a
// request, a started call, or, with nothing open, the run itself. It may be
// early, since the change in the making may have settled what was due; it is
// never late.
func (e *Engine) due(s *state, ch *change, at time.Time) time.Time {
	d, _ := e.dueNow(s, at)
	for i := range ch.rows {
		d = earlier(d, ch.rows[i].ExpiresAt)
	}
	for i := range ch.changes {
		d = earlier(d, ch.changes[i].UseBy)
	}
	for _, b := range ch.bodies {
		if b, ok := b.(*ringi.ToolStarted); ok {
			tool, _ := e.reg.Tool(b.Tool)
			if limit := timeLimit(s.start.Limits, tool); limit > 0 {
				d = earlier(d, at.Add(limit))
			}
		}
	}
	return d
}

// dueNow is due with no change in the making, and says whether it is the run
// itself that is due. at is the newest event's time. What may be repeated is
// never due: its loop may come back to it for as long as the run is open.
func (e *Engine) dueNow(s *state, at time.Time) (d time.Time, idle bool) {
	open := false
	for _, r := range s.openRequests() {
		open = true
		if r.state == ringi.Granted {
			d = earlier(d, r.decided.UseBy)
		} else {
			d = earlier(d, r.ev.ExpiresAt)
		}
	}
	for _, c := range s.unanswered() {
		if len(c.started) == 0 || c.asked() || c.again || c.lost || e.repeatable(c) {
			continue
		}
		open = true
		tool, _ := e.reg.Tool(c.judged.Tool)
		if limit := timeLimit(s.start.Limits, tool); limit > 0 {
			d = earlier(d, c.startedAt.Add(limit))
		}
	}
	if !open && e.cfg.GateIdle > 0 {
		return at.Add(e.cfg.GateIdle), true
	}
	return d, false
}

// earlier is the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// tend settles what time and people changed in a gate's run while its loop is
// elsewhere: Resume comes here. It runs nothing.
func (e *Engine) tend(ctx context.Context, s *state) (*ringi.Result, error) {
	g, err := e.tending(ctx, s)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.tend(ctx); err != nil {
		return nil, g.a.failed(err)
	}
	return g.a.result(ctx), nil
}

// tendGate is tend for Expire: it counts the requests that came to an end.
func (e *Engine) tendGate(ctx context.Context, s *state) (int, error) {
	g, err := e.tending(ctx, s)
	if err != nil {
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.refresh(ctx); err != nil {
		return 0, err
	}
	was := len(g.a.s.openRequests())
	err = g.tend(ctx)
	return max(was-len(g.a.s.openRequests()), 0), err
}

// tending is the gate of a run: the one that somebody holds here, or one of its
// own.
func (e *Engine) tending(ctx context.Context, s *state) (*Gate, error) {
	g := e.opened.find(s.id)
	if g == nil {
		a := &activation{e: e, s: s, id: s.id, space: s.space, l: lease{owner: e.heart.owner}}
		var err error
		if a.prior, err = e.remember(ctx, s.space, s.start.Thread); err != nil {
			return nil, err
		}
		g = e.gateOf(a)
	}
	return g, nil
}

func (g *Gate) tend(ctx context.Context) error {
	if err := g.refresh(ctx); err != nil {
		return err
	}
	a := g.a
	if a.s.finished != nil {
		return nil
	}
	for _, c := range a.s.unanswered() {
		if err := g.tendCall(ctx, c.judged.ID); err != nil {
			return err
		}
	}
	at, err := a.e.now(ctx)
	if err != nil {
		return err
	}
	if err := g.endIfDue(ctx); err != nil {
		return err
	}
	switch due, idle := a.e.dueNow(a.s, a.s.newest); {
	case a.s.finished != nil:
		return nil
	case idle && past(due, at) && !g.anyFlies():
		return a.end(ctx, ringi.Completed, ringi.ReasonCompleted, "the gate was idle")
	case a.s.row.Status == ringi.Queued, past(a.s.row.Deadline, at):
		return a.commit(ctx, func() (*change, error) { return &change{}, nil }) // the row's state and deadline alone
	}
	return nil
}

// tendCall settles one call as far as time and people have settled it.
func (g *Gate) tendCall(ctx context.Context, id string) error {
	a := g.a
	for range 10 {
		c := a.s.call(id)
		if c.result != nil {
			return nil
		}
		if r := c.request; r != nil && r.proposal != nil {
			if err := a.mayJudge(); err != nil {
				return err
			}
		}
		moved, err := a.settleCall(ctx, c)
		if err != nil {
			return err
		}
		if moved {
			continue
		}
		if len(c.started) > 0 && !c.asked() && !c.again && !g.flies(c) {
			_, err = a.unfinished(ctx, c)
		}
		return err
	}
	return nil
}

// gateRuns reports whether a call of a gate's run is in flight.
func (e *Engine) gateRuns(s *state) bool {
	if !s.start.Gate {
		return false
	}
	g := e.opened.find(s.id)
	if g == nil {
		g = &Gate{e: e, a: &activation{e: e, s: s, id: s.id, space: s.space}}
	} else {
		g.mu.Lock()
		defer g.mu.Unlock()
	}
	return slices.ContainsFunc(s.unanswered(), g.flies)
}

// markOf is the highest data class that the thread and the run have brought.
func (a *activation) markOf() ringi.DataClass {
	m := higher(a.prior.mark, a.s.start.Mark)
	for _, t := range a.s.turns {
		for _, c := range t.calls {
			m = higher(m, a.e.classOf(c))
		}
	}
	return m
}
