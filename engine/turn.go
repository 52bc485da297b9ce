package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/sign"
)

// closeTurn brings the open turn as far as it goes: what may run runs, what
// must be asked is asked. It reports whether the run waits.
//
// Order: reads that nobody gated, together; then, one by one in the model's
// order, writes and whatever a person approved. A write never overtakes a
// waiting call of its turn, and in hold mode nothing overtakes one.
func (a *activation) closeTurn(ctx context.Context) (waits bool, err error) {
	if err := a.lookAtRequests(ctx); err != nil {
		return false, err
	}
	if a.s.waits() != "" {
		return a.waitOrCallBack(ctx)
	}
	t := a.s.turn()
	if !t.open() {
		return false, a.turnClosed(ctx, t)
	}
	st, err := a.stepOf(ctx, t)
	if serr := a.stopped(ctx); serr != nil {
		return false, serr
	}
	if err != nil {
		return false, a.end(ctx, ringi.Failed, ringi.ReasonModelFailed, err.Error())
	}
	for _, look := range []func(context.Context, *stepping) (bool, error){a.lookAtStarted, a.judgeOpen, a.runEarly} {
		again, err := look(ctx, st)
		if err != nil {
			return false, err
		}
		if again { // the state moved: drive looks anew
			if t := a.s.turn(); !t.open() {
				return false, a.turnClosed(ctx, t) // by what was found, or by a new refusal
			}
			return false, nil
		}
	}
	t = a.s.turn()
	if !t.open() {
		return false, a.turnClosed(ctx, t)
	}
	return false, a.askOpen(ctx)
}

// turnClosed takes a turn whose calls all have results into the conversation.
func (a *activation) turnClosed(ctx context.Context, t *turn) error {
	a.extendMessages()
	a.tellStepEnd(ctx, t)
	return nil
}

// stepOf gives back the step that an open turn belongs to: what was offered,
// now, and the messages that the model had been sent, as recorded.
func (a *activation) stepOf(ctx context.Context, t *turn) (*stepping, error) {
	if a.stepping != nil && a.stepping.n == t.ev.Step {
		return a.stepping, nil
	}
	a.extendMessages()
	n := len(a.msgs)
	if i := t.ev.Step - 1; i < len(a.at) {
		n = a.at[i]
	}
	st, err := a.prepare(ctx, t.ev.Step, a.msgs[:n])
	if err != nil {
		return nil, err
	}
	a.stepping = st
	return st, nil
}

// lookAtRequests settles what time or a person changed while nobody looked:
// requests past their time, and proposals.
func (a *activation) lookAtRequests(ctx context.Context) error {
	if len(a.s.requests) == 0 {
		return nil
	}
	at, err := a.e.now(ctx)
	if err != nil {
		return err
	}
	for _, was := range a.s.openRequests() {
		r := a.s.request(was.ev.Request) // a commit in between may have read the run anew
		if r == nil {
			continue
		}
		if _, err := a.settleRequest(ctx, r, at); err != nil {
			return err
		}
	}
	return nil
}

// settleRequest settles what time or a person changed about one request. It
// reports whether something moved.
func (a *activation) settleRequest(ctx context.Context, r *request, at time.Time) (bool, error) {
	switch {
	case r.state == ringi.Pending && past(r.ev.ExpiresAt, at):
		return true, a.closeRequest(ctx, r.ev.Request, ringi.Expired, "nobody decided in time", false)
	case r.state == ringi.Granted && past(r.decided.UseBy, at):
		return true, a.closeRequest(ctx, r.ev.Request, ringi.Expired, "the approval was not used in time", true)
	case r.state == ringi.Pending && r.proposal != nil:
		return true, a.takeProposal(ctx, r)
	}
	return false, nil
}

func past(deadline, at time.Time) bool { return !deadline.IsZero() && !at.Before(deadline) }

// closeRequest ends an open request without a person's answer.
func (a *activation) closeRequest(ctx context.Context, id string, to ringi.RequestState, why string, again bool) error {
	return a.commit(ctx, func() (*change, error) {
		r := a.s.request(id)
		if r == nil || !r.state.Open() {
			return nil, nil
		}
		return &change{
			bodies:  []ringi.EventBody{&ringi.RequestClosed{Request: id, State: to, Why: why, Again: again}},
			changes: []ringi.RequestChange{{ID: id, From: r.state, To: to}}, status: ringi.Running, progress: true,
		}, nil
	})
}

// lookAtStarted finds calls that an earlier activation started and nobody
// finished. Reads and idempotent writes run again, with the same key; the
// outcome of anything else is unknown.
func (a *activation) lookAtStarted(ctx context.Context, st *stepping) (bool, error) {
	for _, c := range a.s.turn().calls {
		if c.result != nil || len(c.started) == 0 || c.outcome != nil && c.outcome.state == ringi.Pending {
			continue
		}
		last := c.started[len(c.started)-1]
		effect := last.Effect
		if tool, ok := a.e.reg.Tool(c.judged.Tool); ok {
			effect = effect.Stricter(tool.RunEffect())
		} else {
			effect = ringi.NonIdempotentWrite
		}
		if effect.Repeatable() {
			continue // runEarly and the grants repeat it
		}
		if found, err := a.lookUp(ctx, c); found || err != nil {
			return true, err
		}
		return true, a.unknown(ctx, c, "the process ended between the start of the call and its result")
	}
	return false, nil
}

// lookUp asks the tool itself about a call that may have run. Found means
// done; not found is still unknown: the old owner may be frozen and not dead.
func (a *activation) lookUp(ctx context.Context, c *call) (bool, error) {
	hook := a.e.reg.Hooks(c.judged.Tool).Lookup
	if hook == nil {
		return false, nil
	}
	key, err := sign.IdempotencyKey(a.s.id, c.step, c.pos, c.judged.Tool, string(c.input))
	if err != nil {
		return false, err
	}
	type found struct {
		res ringi.ToolResult
		ok  bool
	}
	f, err := bounded(ctx, previewTimeout, func(ctx context.Context) (found, error) {
		res, ok, err := hook(ctx, key)
		return found{res, ok}, err
	})
	if err != nil || !f.ok {
		return false, nil
	}
	fin := a.finished(c, f.res, nil, 0)
	return true, a.finish(ctx, fin)
}

// unknown records that a call may have run. A person says what happened; an
// unattended run ends with it.
func (a *activation) unknown(ctx context.Context, c *call, why string) error {
	id := c.judged.ID
	if a.s.start.Unattended != ringi.Attended {
		return a.endUnknown(ctx, id, why)
	}
	k := &ask{callID: id, judged: c.judged, step: c.step, pos: c.pos, n: a.s.asked(c), kind: ringi.KindOutcome, verdict: c.verdict, input: c.input, why: why}
	if r := c.request; r != nil && r.ev.Proposed {
		k.proposed, k.proposedBy, k.supplied = true, r.ev.ProposedBy, r.ev.Supplied
	}
	return a.commit(ctx, func() (*change, error) {
		now := a.s.call(id)
		if now == nil || now.result != nil || len(now.started) == 0 || now.outcome != nil && now.outcome.state == ringi.Pending || a.s.cancel != nil {
			return nil, nil // a cancelled run ends with the call marked as unknown
		}
		ch := &change{progress: true}
		err := a.put(ctx, ch, []*ask{k})
		ch.release, ch.status = false, ringi.Running // asks of the turn may follow
		return ch, err
	})
}

// endUnknown ends an unattended run: it never waits, and nothing is repeated.
func (a *activation) endUnknown(ctx context.Context, callID, why string) error {
	return a.commit(ctx, func() (*change, error) {
		if a.s.finished != nil {
			return nil, nil
		}
		ch := &change{status: ringi.Failed, reason: ringi.ReasonOutcomeUnknown, release: true, progress: true}
		if a.g != nil { // it ends once nothing is in flight
			c := a.s.call(callID)
			if c == nil || c.result != nil || c.lost || len(c.started) == 0 {
				return nil, nil
			}
			return a.of(&ringi.OutcomeUnknown{Call: callID, Why: why}, ringi.Running), nil
		}
		if c := a.s.call(callID); c != nil && c.result == nil {
			ch.add(&ringi.OutcomeUnknown{Call: callID, Why: why})
		}
		closeAll(a.s, ch, ringi.CodeRunEnded, "the run ended: outcome_unknown")
		ch.add(&ringi.RunFinished{Status: ringi.Failed, Reason: ringi.ReasonOutcomeUnknown, Detail: why, Withheld: a.withheld(nil)})
		return ch, nil
	})
}

// judgeOpen judges again what another process judged: calls that have not
// started. Of a call that a person approved only a refusal counts; of others
// the new verdict counts, so one may now be asked.
func (a *activation) judgeOpen(ctx context.Context, st *stepping) (bool, error) {
	for _, c := range a.s.turn().calls {
		if c.result != nil || c.fresh && !c.again || c.outcome != nil && c.outcome.state == ringi.Pending {
			continue
		}
		if c.approved() {
			c.fresh = true // judged with everything else that is checked as it is spent
			continue
		}
		j := a.judgeAgain(ctx, st, c)
		if err := a.stopped(ctx); err != nil {
			return false, err // functions were asked under an ended context
		}
		if j.Code != "" {
			return true, a.refuseOpen(ctx, c, j)
		}
		c.verdict, c.asks, c.fresh = j.Verdict, j.Asks, true
		if c.again && c.asks == "" {
			// It was asked once, and is asked anew whatever today's verdict is:
			// a person's question is not answered by a policy that changed.
			c.asks = ringi.KindApproval
		}
	}
	return false, nil
}

// refuseOpen gives an open call the refusal that a new judgement came to. A
// call that had started may have run: its outcome is unknown.
func (a *activation) refuseOpen(ctx context.Context, c *call, j ringi.JudgedCall) error {
	if len(c.started) > 0 {
		return a.unknown(ctx, c, "the call was interrupted, and may not be repeated now: "+j.Text)
	}
	id := c.judged.ID
	return a.commit(ctx, func() (*change, error) {
		c := a.s.call(id)
		if c == nil || c.result != nil {
			return nil, nil
		}
		ch := &change{status: ringi.Running, progress: true}
		if r := c.request; r != nil && r.state.Open() {
			ch.add(&ringi.RequestClosed{Request: r.ev.Request, State: ringi.Stale, Why: j.Text, Again: true})
			ch.changes = append(ch.changes, ringi.RequestChange{ID: r.ev.Request, From: r.state, To: ringi.Stale})
		}
		old := *c.judged
		c.judged.Code, c.judged.Text = j.Code, j.Text
		res := refusal(c)
		*c.judged = old
		ch.add(&ringi.ToolFinished{Results: []ringi.FinishedCall{{Call: id, Outcome: res.Outcome, Code: j.Code, Origin: ringi.OriginEngine, Error: j.Text}}})
		return ch, nil
	})
}

// runEarly runs what may run before anything that still asks is answered.
func (a *activation) runEarly(ctx context.Context, st *stepping) (bool, error) {
	t := a.s.turn()
	waiting := slices.IndexFunc(t.calls, func(c *call) bool { return c.result == nil && c.blocks() })
	if waiting < 0 {
		waiting = len(t.calls)
	} else if a.s.start.TurnMode == ringi.Hold {
		return false, nil
	}
	if a.s.waits() == ringi.WaitingForOutcome {
		return false, nil
	}
	if moved, err := a.runReads(ctx, st, t); moved || err != nil {
		return moved, err
	}
	for _, c := range t.calls[:waiting] {
		if c.result != nil {
			continue
		}
		if err := a.stopped(ctx); err != nil {
			return false, err
		}
		if a.s.cancel != nil || a.st != nil && a.st.left {
			return true, nil
		}
		again, err := a.runOne(ctx, st, c.judged.ID)
		if err != nil || again {
			return true, err
		}
	}
	return false, nil
}

// blocks reports whether a write behind the call must wait for it.
func (c *call) blocks() bool {
	return c.asks != "" || c.outcome != nil && c.outcome.state == ringi.Pending ||
		c.request != nil && c.request.state == ringi.Pending
}

// runOne runs one call in its turn: by policy, or by a person's approval. It
// reports whether the turn must be looked at anew.
func (a *activation) runOne(ctx context.Context, st *stepping, id string) (bool, error) {
	c := a.s.call(id)
	if c == nil || c.result != nil {
		return false, nil
	}
	if r := c.request; c.approved() {
		ok, err := a.mayspend(ctx, st, c, r)
		if err != nil || !ok {
			return true, err
		}
		g, ok := grantByPerson(a.s, c, r)
		if !ok {
			return true, nil
		}
		return a.run(ctx, g)
	}
	g, ok := grantByPolicy(c)
	if !ok {
		return false, nil
	}
	return a.run(ctx, g)
}

// askOpen puts the requests of the turn, now that what could run has run, with
// previews of the world that it left.
func (a *activation) askOpen(ctx context.Context) error {
	var asks []*ask
	for _, c := range a.s.turn().calls {
		if c.result == nil && c.asks != "" {
			asks = append(asks, a.askFor(ctx, c))
		}
	}
	if err := a.stopped(ctx); err != nil {
		return err // a preview that was cut is none
	}
	if len(asks) == 0 {
		switch {
		case a.s.cancel != nil:
			return nil
		case a.s.waits() != "":
			return a.rest(ctx)
		case slices.ContainsFunc(a.s.turn().calls, func(c *call) bool { return c.result == nil && c.again }):
			return nil // taken back, or closed, while others ran: judged anew
		}
		return fmt.Errorf("run %s: open turn %d has nothing to run and nothing to ask", a.s.id, len(a.s.turns))
	}
	return a.commit(ctx, func() (*change, error) {
		if a.s.cancel != nil {
			return nil, nil
		}
		ch := &change{progress: true}
		open := slices.DeleteFunc(slices.Clone(asks), func(k *ask) bool {
			c := a.s.call(k.callID)
			return c == nil || c.result != nil || c.request != nil && c.request.state.Open()
		})
		if len(open) == 0 {
			return nil, nil
		}
		return ch, a.put(ctx, ch, open)
	})
}

// rest frees the lease of a run that waits with nothing more to put.
func (a *activation) rest(ctx context.Context) error {
	return a.commit(ctx, func() (*change, error) {
		st := a.s.waits()
		if st == "" || a.s.cancel != nil || !a.l.held && a.s.row.Status.Waiting() {
			return nil, nil
		}
		return &change{status: st, release: true}, nil
	})
}

// waitOrCallBack asks the program's own callback, where there is one, for
// every pending request; without one the run waits.
func (a *activation) waitOrCallBack(ctx context.Context) (bool, error) {
	if a.e.cfg.OnApprovalRequired == nil {
		return a.restNow(ctx)
	}
	if err := a.claimAs(ctx, true); err != nil || !a.l.held {
		return false, err // one process asks its callback, not two
	}
	for _, was := range a.s.pending() {
		r := a.s.request(was.ev.Request) // a callback in between has read the run anew
		if r == nil || r.state != ringi.Pending {
			continue
		}
		if err := a.callBack(ctx, r); err != nil {
			return false, err
		}
		if a.noAnswer {
			break
		}
	}
	if a.noAnswer && a.s.waits() != "" {
		return a.restNow(ctx)
	}
	return false, nil
}

// restNow frees the lease, and reports whether the run really waits: a settler
// may have been first, and then nothing was freed and the run goes on.
func (a *activation) restNow(ctx context.Context) (bool, error) {
	if err := a.rest(ctx); err != nil {
		return false, err
	}
	return a.s.waits() != "" && a.s.cancel == nil, nil
}

// callBack asks the callback about one request. The request is committed
// already, so an inbox may answer first: the callback's context is cancelled
// then. A callback that fails or panics is no decision.
func (a *activation) callBack(ctx context.Context, r *request) error {
	view := a.e.view(ctx, a.s, r)
	cctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := a.watch(cctx, cancel)
	d, err := a.callSafely(cctx, view)
	stop()
	if ctx.Err() != nil {
		a.noAnswer = true
		return nil
	}
	if err == nil && d.RequestID == "" && d.Answer == "" {
		err = errors.New("callback returned no decision")
	}
	if err == nil {
		d.Channel = "callback"
		_, err = a.e.decide(ctx, d, true)
	}
	if rerr := a.reload(context.WithoutCancel(ctx)); rerr != nil {
		return rerr
	}
	if now := a.s.request(r.ev.Request); now == nil || now.state != ringi.Pending {
		return nil // decided here, or by somebody who was first
	}
	if now := a.s.request(r.ev.Request); now.proposal != nil {
		return nil
	}
	a.e.log.Warn("callback gave no decision: the request stays pending", "request", r.ev.Request, "error", err)
	a.noAnswer = true
	return nil
}

func (a *activation) callSafely(ctx context.Context, view ringi.ApprovalRequest) (d ringi.Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("callback panicked: %v", p)
		}
	}()
	return a.e.cfg.OnApprovalRequired(ctx, view)
}

// watch cancels a callback whose request somebody else settled.
func (a *activation) watch(ctx context.Context, cancel context.CancelFunc) (stop func()) {
	seq, id, sp := a.s.chain.Seq, a.s.id, a.s.space
	done := make(chan struct{})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
				if row, err := a.e.store.Row(ctx, sp, id); err == nil && row.Seq != seq {
					cancel()
					return
				}
			}
		}
	}()
	return func() { close(done); <-gone }
}
