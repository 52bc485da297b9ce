package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
)

// Cancel ends a run. Its open requests are withdrawn, never denied. Where no
// process drives the run it ends at once; where one does, that process records
// the call in flight first and then ends it, or, with now, cuts the call: a
// non-idempotent write that was cut is unknown. ErrFinal where it has ended.
func (e *Engine) Cancel(ctx context.Context, runID string, by ringi.Principal, reason string, now bool) error {
	return e.cancelIn(ctx, e.cfg.Space, runID, by, reason, now)
}

func (e *Engine) cancelIn(ctx context.Context, space, runID string, by ringi.Principal, reason string, now bool) error {
	if err := e.mayWrite(); err != nil {
		return err
	}
	if by.IsZero() {
		return fmt.Errorf("cancel run %s: %w", runID, ringi.ErrNoPrincipal)
	}
	for range 1000 {
		s, err := e.load(ctx, space, runID)
		if err != nil {
			return fmt.Errorf("cancel run %s: %w", runID, err)
		}
		if s.finished != nil {
			return fmt.Errorf("cancel run %s: %w: %s", runID, ringi.ErrFinal, s.finished.Status)
		}
		err = ringi.ErrBusy
		if now || !e.gateRuns(s) {
			err = e.cancelOwned(ctx, s, by, reason, now)
		}
		if errors.Is(err, ringi.ErrBusy) {
			err = e.cancelRunning(ctx, s, by, reason, now)
		}
		if g := e.opened.find(s.id); err == nil && now && g != nil {
			g.cut()
		}
		if _, moved := errors.AsType[*ringi.RequestStateError](err); moved || errors.Is(err, ringi.ErrConflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cancel run %s: %w", runID, err)
		}
		return nil
	}
	return fmt.Errorf("cancel run %s: %w", runID, ringi.ErrConflict)
}

// cancelOwned takes a run that nobody drives, and ends it.
func (e *Engine) cancelOwned(ctx context.Context, s *state, by ringi.Principal, reason string, now bool) error {
	a := &activation{e: e, s: s, id: s.id, space: s.space, l: lease{owner: e.heart.owner}}
	if err := e.heart.enter(a); err != nil {
		return err
	}
	defer e.heart.leave(a)
	a.setInfo()
	ch := &change{status: ringi.Cancelled, reason: ringi.ReasonCancelled, release: true, progress: true}
	if s.cancel == nil {
		ch.add(&ringi.CancelRequested{By: by, Reason: reason, Now: now})
	}
	closeAll(s, ch, ringi.CodeCancelled, "the run was cancelled")
	ch.add(&ringi.RunFinished{Status: ringi.Cancelled, Reason: ringi.ReasonCancelled, Detail: reason, Withheld: a.withheld(nil)})
	if err := e.write(ctx, s, &a.l, ch); err != nil {
		return err
	}
	a.tellEnd(ctx, a.result(ctx))
	return nil
}

// cancelRunning leaves the wish in the log of a run that a process drives: it
// is found at the next commit, or, with now, at once.
func (e *Engine) cancelRunning(ctx context.Context, s *state, by ringi.Principal, reason string, now bool) error {
	ch := &change{settle: true, status: ringi.Queued, wake: true}
	ch.add(&ringi.CancelRequested{By: by, Reason: reason, Now: now})
	for _, r := range s.openRequests() {
		ch.add(&ringi.RequestClosed{Request: r.ev.Request, State: ringi.Withdrawn, Why: "the run was cancelled"})
		ch.changes = append(ch.changes, ringi.RequestChange{ID: r.ev.Request, From: r.state, To: ringi.Withdrawn})
	}
	if err := e.write(ctx, s, nil, ch); err != nil {
		return err
	}
	if now {
		if a := e.heart.find(s.id); a != nil {
			a.cutNow()
		}
	}
	return nil
}

// cutNow cuts the call in flight, and every later one of this activation.
func (a *activation) cutNow() {
	cut := a.cuts()
	a.cutMu.Lock()
	defer a.cutMu.Unlock()
	if !a.wasCut {
		a.wasCut = true
		close(cut)
		a.asking.Cancel()
		a.calling.Cancel()
	}
}

// cuts is closed when the call in flight is to be cut.
func (a *activation) cuts() chan struct{} {
	a.cutMu.Lock()
	defer a.cutMu.Unlock()
	if a.cut == nil {
		a.cut = make(chan struct{})
	}
	return a.cut
}

// isCut reports whether this activation was told to stop at once.
func (a *activation) isCut() bool {
	a.cutMu.Lock()
	defer a.cutMu.Unlock()
	return a.wasCut
}

// lookForCancel cuts a call whose run another process cancelled with now. It
// is asked by the heart, while the activation itself waits for a tool.
func (a *activation) lookForCancel(ctx context.Context) {
	stored, err := a.e.store.Load(ctx, a.space, a.id)
	if err != nil {
		return
	}
	if s, err := a.e.fold(stored); err == nil && s.cancel != nil && s.cancel.Now {
		a.cutNow()
	}
}

// endCancelled ends a run whose cancellation was found in the log.
func (a *activation) endCancelled(ctx context.Context) error {
	return a.end(ctx, ringi.Cancelled, ringi.ReasonCancelled, a.s.cancel.Reason)
}

// closeAll settles what an ending run leaves open: requests are withdrawn, and
// every call without a result gets one, so that no transcript ever holds a
// call without. A call that started and has no result is unknown, and stays
// so.
func closeAll(s *state, ch *change, code ringi.ResultCode, text string) {
	closed := map[*call]bool{}
	for _, r := range s.openRequests() {
		ch.add(&ringi.RequestClosed{Request: r.ev.Request, State: ringi.Withdrawn, Why: text})
		ch.changes = append(ch.changes, ringi.RequestChange{ID: r.ev.Request, From: r.state, To: ringi.Withdrawn})
		if !r.outcomeKind() {
			closed[r.call] = true
		}
	}
	var open []ringi.FinishedCall
	for _, c := range s.unanswered() {
		if closed[c] {
			continue
		}
		f := ringi.FinishedCall{Call: c.judged.ID, Outcome: ringi.OutcomeNotExecuted, Code: code, Origin: ringi.OriginEngine, Error: "not executed: " + text}
		if code == ringi.CodeCancelled {
			f.Outcome = ringi.OutcomeCancelled
		}
		if len(c.started) > 0 {
			f.Outcome, f.Code, f.Error = ringi.OutcomeInDoubt, ringi.CodeUnknownOutcome, "the call was interrupted; it may have run"
		}
		open = append(open, f)
	}
	if len(open) > 0 {
		ch.add(&ringi.ToolFinished{Results: open})
	}
}
