package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
)

// load reads a run, checks its chain and MAC, and folds it. A break makes the
// run corrupt: nothing of it runs.
func (e *Engine) load(ctx context.Context, space, runID string) (*state, error) {
	stored, err := e.store.Load(ctx, space, runID)
	if err != nil {
		return nil, fmt.Errorf("load run %s: %w", runID, err)
	}
	s, err := e.fold(stored)
	if err != nil {
		return nil, fmt.Errorf("load run %s: %w", runID, e.broken(ctx, &stored.Row, err))
	}
	if stored.Row.Corrupt != "" {
		return nil, fmt.Errorf("load run %s: %w: %s", runID, ringi.ErrCorrupt, stored.Row.Corrupt)
	}
	return s, nil
}

// fold checks and folds stored records. It never panics: a log that would is
// corrupt like any other.
func (e *Engine) fold(stored *ringi.StoredRun) (s *state, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("fold panicked: %v", p)
		}
	}()
	row := &stored.Row
	events, err := audit.Events(e.storeID, row.Space, row.ID, stored.Records, row.Head, row.Seq)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(events, func(ev ringi.Event) bool { return ev.Body == nil }) {
		return nil, errErased
	}
	unsigned := e.checkMAC(row)
	if unsigned != nil && !errors.Is(unsigned, errNoMAC) {
		return nil, unsigned
	}
	s = &state{space: row.Space, id: row.ID, row: *row, chain: audit.Chain{Seq: row.Seq, Head: row.Head}}
	for i := range events {
		if err := s.apply(&events[i]); err != nil {
			return nil, err
		}
	}
	if s.start == nil {
		return nil, errors.New("log is empty")
	}
	if row.Thread != s.start.Thread || row.Agent != s.start.Agent || row.Parent != s.start.Parent.RunID {
		return nil, errors.New("the row names another thread, agent or parent than the log")
	}
	s.heads = stored.Records
	if unsigned != nil && slices.ContainsFunc(s.requests, func(r *request) bool { return r.ev.Signature != "" }) {
		return nil, errors.New("commit has no MAC")
	}
	return s, unsigned
}

// errNoMAC says that a run was written by a process without a key: nothing of
// it runs here, and nothing is wrong with it either.
var errNoMAC = fmt.Errorf("%w: the run was written without a key", ringi.ErrNoKey)

// errErased says that a run's payloads were removed: its chain is whole, and
// there is nothing left to fold.
var errErased = errors.New("run is erased")

// broken tells a log that is not whole from one that a newer program wrote,
// whose payloads were erased, or whose key this process does not have: those
// are not corrupt, and stay as they are.
func (e *Engine) broken(ctx context.Context, row *ringi.RunRow, cause error) error {
	if b, ok := errors.AsType[*audit.BrokenError](cause); ok && b.Newer {
		return cause
	}
	if errors.Is(cause, errErased) || errors.Is(cause, ringi.ErrNoKey) {
		return cause // nothing is wrong with it that this process could know
	}
	e.markCorrupt(ctx, row, cause)
	return fmt.Errorf("%w: %w", ringi.ErrCorrupt, cause)
}

// has reports whether the log, as read, holds a record that was made here:
// nobody else draws the same random bytes.
func (s *state) has(r *ringi.Record) bool {
	i := r.Seq - 1
	return i >= 0 && i < int64(len(s.heads)) && saltOf(&s.heads[i]) == saltOf(r)
}

// saltOf returns a record's random bytes.
func saltOf(r *ringi.Record) (salt [32]byte) {
	copy(salt[:], r.Salt)
	return salt
}

// markCorrupt leaves a mark on the run's row, so that no process claims it
// again; nothing is written into a broken chain.
func (e *Engine) markCorrupt(ctx context.Context, row *ringi.RunRow, cause error) {
	e.log.Error("run is corrupt: nothing of it runs", "run", row.ID, "cause", cause)
	if e.cfg.ReadOnly || row.Corrupt != "" {
		return
	}
	marked := *row
	marked.Corrupt, marked.Status = cause.Error(), "" // the status stays
	err := e.store.Commit(ctx, &ringi.Commit{
		Space: row.Space, RunID: row.ID, Expect: row.Seq, Settle: true, Row: marked,
	})
	if err != nil {
		e.log.Error("mark corrupt run", "run", row.ID, "error", err)
	}
}

// find reads the run that a request belongs to.
func (e *Engine) find(ctx context.Context, space, requestID string) (*state, *request, error) {
	row, err := e.store.Request(ctx, space, requestID)
	if err != nil {
		return nil, nil, fmt.Errorf("find request %s: %w", requestID, err)
	}
	s, err := e.load(ctx, space, row.RunID)
	if err != nil {
		return nil, nil, err
	}
	r := s.request(requestID)
	if r == nil {
		return nil, nil, fmt.Errorf("find request %s: %w: the log does not hold it", requestID, ringi.ErrCorrupt)
	}
	return s, r, nil
}
