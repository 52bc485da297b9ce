package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
)

// watchEvery is how often a row is looked at that another process may change.
const watchEvery = 20 * time.Millisecond

const (
	// watchAnyway is how often it is looked at where the store tells of changes:
	// that a request's time is over is no change.
	watchAnyway = 250 * time.Millisecond
	// lookAtProposals is how often an edit of a gate's call is taken up.
	lookAtProposals = 500 * time.Millisecond
)

// Wait returns a request once it is settled: approved, denied, spent, expired,
// withdrawn or stale. Where a person's edit or typed values took its place it
// goes on to wait for the request that succeeds it, and returns that one. The
// ctx bounds the waiting. It holds nothing but a goroutine. What any process
// decides is seen: where the store tells of changes (ringi.ChangeTeller) soon
// after its commit, at most every 20 ms and every 250 ms in any case; else by a
// look at the request's row every 20 ms.
func (e *Engine) Wait(ctx context.Context, requestID string) (ringi.ApprovalRequest, error) {
	changes, _ := e.store.(ringi.ChangeTeller)
	proposal := time.Now().Add(lookAtProposals)
	for {
		if now := time.Now(); now.After(proposal) {
			proposal = now.Add(lookAtProposals)
			e.lookAtProposal(ctx, requestID)
		}
		begun := time.Now()
		changed := changedIn(changes)
		row, err := e.store.Request(ctx, e.cfg.Space, requestID)
		if err != nil {
			return ringi.ApprovalRequest{}, fmt.Errorf("wait for request %s: %w", requestID, err)
		}
		if row.State != ringi.Pending {
			s, r, err := e.find(ctx, e.cfg.Space, requestID)
			if err != nil {
				return ringi.ApprovalRequest{}, fmt.Errorf("wait for request %s: %w", requestID, err)
			}
			next := s.successorOf(r)
			if next == nil {
				v := e.view(ctx, s, r)
				if v.State == ringi.Pending {
					v.State = row.State // past its time, and nobody wrote it yet
				}
				return v, nil
			}
			requestID = next.ev.Request
			continue
		}
		if err := awaitChange(ctx, changed, begun); err != nil {
			return ringi.ApprovalRequest{}, fmt.Errorf("wait for request %s: %w", requestID, err)
		}
	}
}

// changedIn is closed at the next commit; nil where the store does not tell.
func changedIn(changes ringi.ChangeTeller) <-chan struct{} {
	if changes == nil {
		return nil
	}
	return changes.Changed()
}

// awaitChange returns when it is time to look again after a look that began at
// begun: a commit, but no sooner than watchEvery, or watchAnyway without one. A
// store that does not tell is looked at every watchEvery.
func awaitChange(ctx context.Context, changed <-chan struct{}, begun time.Time) error {
	if changed != nil {
		anyway := time.NewTimer(watchAnyway)
		defer anyway.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-anyway.C:
			return nil
		}
	}
	soon := time.NewTimer(time.Until(begun.Add(watchEvery)))
	defer soon.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-soon.C:
		return nil
	}
}

// lookAtProposal takes up an edit of a gate's call that a process without the
// tools recorded: its loop waits here, and would look only after it.
func (e *Engine) lookAtProposal(ctx context.Context, requestID string) {
	s, r, err := e.find(ctx, e.cfg.Space, requestID)
	if err != nil || r.proposal == nil || !s.start.Gate || !e.canPropose(s, r) {
		return
	}
	if _, err := e.tend(ctx, s); err != nil {
		e.log.Warn("tend gate", "run", s.id, "error", err)
	}
}

// successorOf is the request that took r's place, or nil.
func (s *state) successorOf(r *request) *request {
	for _, o := range s.requests {
		if o.ev.Replaces == r.ev.Request && o != r {
			return o
		}
	}
	return nil
}
