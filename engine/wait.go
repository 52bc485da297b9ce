package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
)

// watchEvery is how often a row is looked at that another process may change.
const watchEvery = 20 * time.Millisecond

// Wait returns a request once it is settled: approved, denied, spent, expired,
// withdrawn or stale. Where a person's edit or typed values took its place it
// goes on to wait for the request that succeeds it, and returns that one. The
// ctx bounds the waiting. It holds nothing but a goroutine, and looks at the
// request's row every 20 ms: what any process decides is seen.
func (e *Engine) Wait(ctx context.Context, requestID string) (ringi.ApprovalRequest, error) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for look := 1; ; look++ {
		if look%25 == 0 {
			e.lookAtProposal(ctx, requestID)
		}
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
		select {
		case <-ctx.Done():
			return ringi.ApprovalRequest{}, fmt.Errorf("wait for request %s: %w", requestID, context.Cause(ctx))
		case <-tick.C:
		}
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
