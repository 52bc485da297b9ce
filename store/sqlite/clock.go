package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ringi-dev/ringi"
)

// clockSlack is how far the newest recorded time may be ahead of the wall
// clock before nothing is decided, spent or claimed.
const clockSlack = 2 * time.Minute

// clock tells the store's time in microseconds: the later of the wall clock
// and the newest time recorded, so that what has expired stays expired when
// the machine's clock is set back.
type clock struct {
	wall   func() time.Time
	newest atomic.Int64
	// accepted is the time of the last correction that this process heeds.
	accepted atomic.Int64
}

func (c *clock) now() int64 { return max(c.wall().UnixMicro(), c.newest.Load()) }

// horizon returns the time beyond which a recorded time proves that the wall
// clock is wrong.
func (c *clock) horizon() int64 { return c.wall().Add(clockSlack).UnixMicro() }

// advance notes a time that has been recorded.
func (c *clock) advance(t int64) {
	for old := c.newest.Load(); t > old; old = c.newest.Load() {
		if c.newest.CompareAndSwap(old, t) {
			return
		}
	}
}

// now is the store's time. Where it is so far ahead of the wall clock that
// nothing would be decided, another process may have accepted the clock: that
// is looked for here, and nowhere else, as it costs a query.
func (s *Store) now() int64 {
	wall, newest := s.clock.wall().UnixMicro(), s.clock.newest.Load()
	if newest-wall > clockSlack.Microseconds() {
		s.heed(newest)
		newest = s.clock.newest.Load()
	}
	return max(wall, newest)
}

// heed takes over a correction that this process has not seen. Where it cannot
// be read the clock stays as it is, which refuses.
func (s *Store) heed(newest int64) {
	ctx := context.Background()
	list, err := readCorrections(s.read.QueryRowContext(ctx, queryCorrections))
	if err != nil || len(list) == 0 {
		return
	}
	at := list[len(list)-1].At.UnixMicro()
	if at == s.clock.accepted.Load() {
		return
	}
	var recorded int64
	if s.read.QueryRowContext(ctx, queryNewest).Scan(&recorded) != nil {
		return
	}
	if s.clock.newest.CompareAndSwap(newest, max(at, recorded)) {
		s.clock.accepted.Store(at)
	}
}

// Clock tells how the store's time stands. It looks at every run's row.
func (s *Store) Clock(ctx context.Context) (ringi.StoreClock, error) {
	var none ringi.StoreClock
	if err := s.usable(ctx); err != nil {
		return none, fmt.Errorf("read clock: %w", err)
	}
	list, err := readCorrections(s.read.QueryRowContext(ctx, queryCorrections))
	if err != nil {
		return none, fmt.Errorf("read clock: %w", err)
	}
	s.now() // heeds
	var newest int64
	if err := s.read.QueryRowContext(ctx, queryLatest).Scan(&newest); err != nil {
		return none, fmt.Errorf("read clock: %w", err)
	}
	newest = max(newest, s.clock.newest.Load())
	wall := s.clock.wall().UnixMicro()
	c := ringi.StoreClock{Wall: fromMicros(wall), Refuses: newest-wall > clockSlack.Microseconds(), Corrections: list}
	if newest != 0 {
		c.Newest = fromMicros(newest)
	}
	return c, nil
}

// AcceptClock makes the wall clock the store's time again, in one transaction
// of its own: no other member of a group may have looked at the clock before.
// A heartbeat that was given by the later time lives for two minutes at most.
func (s *Store) AcceptClock(ctx context.Context, by, reason string) (ringi.ClockCorrection, error) {
	var c ringi.ClockCorrection
	const alone = groupBytes + 1
	err := s.write(ctx, alone, func(w *writer) (err error) {
		c, err = w.acceptClock(ringi.ClockCorrection{By: by, Reason: reason})
		return err
	})
	if err != nil {
		return ringi.ClockCorrection{}, fmt.Errorf("accept clock: %w", err)
	}
	return c, nil
}

func (w *writer) acceptClock(c ringi.ClockCorrection) (ringi.ClockCorrection, error) {
	var newest int64
	if err := w.tx.QueryRow(queryLatest).Scan(&newest); err != nil {
		return c, w.unrecorded(err)
	}
	newest = max(newest, w.s.now())
	wall, horizon := w.s.clock.wall().UnixMicro(), w.s.clock.horizon()
	if newest <= horizon {
		return c, errors.New("it is not behind the newest recorded time")
	}
	c.At, c.Newest = fromMicros(wall), fromMicros(newest)
	list, err := readCorrections(w.tx.QueryRow(queryCorrections))
	if err != nil {
		return c, w.unrecorded(err)
	}
	list = append(list, c)
	text, err := json.Marshal(list[max(0, len(list)-maxCorrections):])
	if err != nil {
		return c, err
	}
	const set = `INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
	for _, step := range []struct {
		query string
		args  []any
	}{
		{set, []any{"clock_corrections", string(text)}},
		{set, []any{"newest", strconv.FormatInt(wall, 10)}},
		{`UPDATE runs SET updated_at = ? WHERE updated_at > ?`, []any{wall, wall}},
		{`UPDATE owners SET until = ? WHERE until > ?`, []any{horizon, horizon}},
	} {
		if _, err := w.exec(step.query, step.args...); err != nil {
			return c, err
		}
	}
	w.accepted = wall
	return c, nil
}

// maxCorrections is how many corrections are kept.
const maxCorrections = 100

const (
	queryCorrections = `SELECT value FROM meta WHERE key = 'clock_corrections'`
	// queryNewest is the newest time that is cheap to find: that of the run
	// with the newest record, of the newest run, and what the last Close noted.
	queryNewest = `
		SELECT max(
		  coalesce((SELECT runs.updated_at FROM records
		    JOIN runs ON runs.space = records.space AND runs.id = records.run
		    ORDER BY records.n DESC LIMIT 1), 0),
		  coalesce((SELECT updated_at FROM runs ORDER BY n DESC LIMIT 1), 0),
		  coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'newest'), 0))`
	// queryLatest is the newest time of all: it reads every run's row.
	queryLatest = `
		SELECT max(coalesce((SELECT max(updated_at) FROM runs), 0),
		  coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'newest'), 0))`
)

func readCorrections(row *sql.Row) ([]ringi.ClockCorrection, error) {
	var text string
	if err := row.Scan(&text); errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var list []ringi.ClockCorrection
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("read corrections: %w", err)
	}
	return list, nil
}

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// orNull returns the column of a time that may be none.
func orNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}
