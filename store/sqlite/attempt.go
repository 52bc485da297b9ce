package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
)

// Attempt keeps a refused attempt, or a late result, beside the chain. Where
// there are too many, of the run or in all, the oldest go.
func (s *Store) Attempt(ctx context.Context, a ringi.Attempt) error {
	err := s.write(ctx, len(a.Detail), func(w *writer) error { return w.attempt(a) })
	if err != nil {
		return fmt.Errorf("keep attempt on run %s: %w", a.RunID, err)
	}
	return nil
}

// attempt inserts and drops. How many there are in all stands in a row of its
// own: counting them would cost more than keeping one.
func (w *writer) attempt(a ringi.Attempt) error {
	_, err := w.exec(`
		INSERT INTO attempts (space, run, request, call, kind, by, channel, detail, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.Space, a.RunID, a.RequestID, a.CallID, a.Kind, a.By, a.Channel, a.Detail, a.At.UnixMicro())
	if err != nil {
		return err
	}
	ofRun, err := w.exec(`
		DELETE FROM attempts WHERE space = ? AND run = ? AND n <= (
		  SELECT n FROM attempts WHERE space = ? AND run = ? ORDER BY n DESC LIMIT 1 OFFSET ?)`,
		a.Space, a.RunID, a.Space, a.RunID, int64(w.s.o.MaxRunAttempts))
	if err != nil {
		return err
	}
	if err := w.countAttempts(1 - ofRun); err != nil {
		return err
	}
	dropped, err := w.exec(`
		DELETE FROM attempts WHERE n IN (SELECT n FROM attempts ORDER BY n
		  LIMIT max(0, (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'attempts') - ?))`,
		int64(w.s.o.MaxAttempts))
	if err != nil || dropped == 0 {
		return err
	}
	return w.countAttempts(-dropped)
}

func (w *writer) countAttempts(change int64) error {
	if change == 0 {
		return nil
	}
	_, err := w.exec(`
		INSERT INTO meta (key, value) VALUES ('attempts', CAST(? AS TEXT))
		ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + excluded.value`, change)
	return err
}

// Attempts returns the attempts kept of a run, the oldest first.
func (s *Store) Attempts(ctx context.Context, space, runID string) ([]ringi.Attempt, error) {
	rows, err := s.read.QueryContext(ctx, `
		SELECT space, run, request, call, kind, by, channel, detail, at
		FROM attempts WHERE space = ? AND run = ? ORDER BY n`, space, runID)
	if err != nil {
		return nil, fmt.Errorf("list attempts on run %s: %w", runID, err)
	}
	list, err := collect(rows, func(scan func(...any) error) (ringi.Attempt, error) {
		var a ringi.Attempt
		var at moment
		err := scan(&a.Space, &a.RunID, &a.RequestID, &a.CallID, &a.Kind, &a.By, &a.Channel, &a.Detail, &at)
		a.At = time.Time(at)
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("list attempts on run %s: %w", runID, err)
	}
	return list, nil
}
