package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
)

// What an inbox and an API ask beside deciding. Nothing here drives a run.

// Enqueue starts a run and leaves it to whoever resumes it: a worker, or a
// later Resume. It commits the start and returns the queued run at once.
func (e *Engine) Enqueue(ctx context.Context, start ringi.RunStart) (*ringi.Result, error) {
	if err := e.mayWrite(); err != nil {
		return nil, err
	}
	a, ev, err := e.begin(ctx, start)
	if err != nil {
		return nil, fmt.Errorf("enqueue run: %w", err)
	}
	err = a.commitStart(ctx, ev, func(ch *change) {
		ch.status, ch.release, ch.wake, ch.follows = ringi.Queued, true, true, start.Follows
	})
	if err != nil {
		return nil, a.failed(fmt.Errorf("enqueue run: %w", err))
	}
	return a.result(ctx), nil
}

// Status returns a run as it stands, read from its checked log.
func (e *Engine) Status(ctx context.Context, runID string) (*ringi.Result, error) {
	s, err := e.load(ctx, e.cfg.Space, runID)
	if err != nil {
		return nil, err
	}
	a := &activation{e: e, s: s, id: s.id, space: s.space}
	return a.result(ctx), nil
}

// Row returns a run's row, not checked against its log. ErrNotFound.
func (e *Engine) Row(ctx context.Context, runID string) (ringi.RunRow, error) {
	return e.store.Row(ctx, e.cfg.Space, runID)
}

// Runs lists the space's runs, newest first.
func (e *Engine) Runs(ctx context.Context, q ringi.RunQuery) ([]ringi.RunRow, error) {
	q.Space = e.cfg.Space
	return e.store.Runs(ctx, q)
}

// Feed lists the records of the space's runs behind a number, in the order of
// their commits: [ringi.Feed], where the store has one. Else
// errors.ErrUnsupported.
func (e *Engine) Feed(ctx context.Context, after int64, limit int) ([]ringi.FeedRow, error) {
	feed, ok := e.store.(ringi.Feed)
	if !ok {
		return nil, fmt.Errorf("list feed: %w", errors.ErrUnsupported)
	}
	for {
		rows, err := feed.Feed(ctx, after, limit)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		after = rows[len(rows)-1].N
		if rows = slices.DeleteFunc(rows, func(r ringi.FeedRow) bool { return r.Space != e.cfg.Space }); len(rows) > 0 {
			return rows, nil
		}
	}
}

// FeedEnd returns the number of the newest record, of any space.
func (e *Engine) FeedEnd(ctx context.Context) (int64, error) {
	feed, ok := e.store.(ringi.Feed)
	if !ok {
		return 0, fmt.Errorf("read end of feed: %w", errors.ErrUnsupported)
	}
	return feed.FeedEnd(ctx)
}

// Events returns the log events of a run after a sequence number. The whole log
// is checked first: a broken one is ErrCorrupt. Payloads that were erased have
// a nil Body.
func (e *Engine) Events(ctx context.Context, runID string, after int64) ([]ringi.Event, error) {
	stored, err := e.store.Load(ctx, e.cfg.Space, runID)
	if err != nil {
		return nil, fmt.Errorf("read events of run %s: %w", runID, err)
	}
	row := &stored.Row
	events, err := audit.Events(e.storeID, row.Space, row.ID, stored.Records, row.Head, row.Seq)
	if err != nil {
		return nil, fmt.Errorf("read events of run %s: %w", runID, e.broken(ctx, row, err))
	}
	if err := e.checkMAC(row); err != nil && !errors.Is(err, errNoMAC) && !e.cfg.ReadOnly {
		return nil, fmt.Errorf("read events of run %s: %w", runID, e.broken(ctx, row, err))
	}
	if after <= 0 {
		return events, nil
	}
	if after >= int64(len(events)) {
		return nil, nil
	}
	return events[after:], nil
}

// Agents lists this engine's own agent.
func (e *Engine) Agents(context.Context) ([]ringi.AgentInfo, error) {
	info := ringi.AgentInfo{Name: e.cfg.Agent, Zone: e.cfg.Zone}
	for _, t := range e.reg.Tools() {
		info.Tools = append(info.Tools, t.Name)
	}
	return []ringi.AgentInfo{info}, nil
}

// Offered is Offer, for whoever speaks ringi.Service.
func (e *Engine) Offered(_ context.Context, run ringi.RunInfo) (ringi.Offer, error) {
	return e.Offer(run), nil
}

// Withheld is UnattendedExplain for every tool, for whoever speaks
// ringi.Service.
func (e *Engine) Withheld(context.Context, string) ([]ringi.Withheld, error) {
	var names []string
	for _, t := range e.reg.Tools() {
		names = append(names, t.Name)
	}
	return e.UnattendedExplain(names), nil
}
