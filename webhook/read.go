package webhook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ringi-dev/ringi"
)

// From the feed into the table.

// enrol gives every endpoint a place in the feed, and takes away those that are
// not configured any more.
func (b *Outbox) enrol(ctx context.Context) error {
	store, err := b.o.Log.ID(ctx)
	if err != nil {
		return err
	}
	end, err := b.o.Log.FeedEnd(ctx)
	if err != nil {
		return err
	}
	return b.t.change(ctx, func(tx *tx) error {
		there, err := b.places(tx)
		if err != nil {
			return err
		}
		for name, p := range there {
			if b.endpoints[name] != nil {
				continue
			}
			if err := b.retire(tx, name); err != nil {
				return err
			}
			b.o.Logger.Info("webhook endpoint is gone", "endpoint", name, "place", p.at)
		}
		for name := range b.endpoints {
			p, known := there[name]
			switch {
			case !known:
				err = tx.exec(`INSERT INTO webhook_endpoints (space, name, store, place, made_at, disabled_at, disabled_why) VALUES (?, ?, ?, ?, ?, 0, '')`,
					b.o.Space, name, store, end, b.now())
			case p.store != store || p.at > end:
				// Another store, or an older copy of it: the numbers mean something else.
				b.o.Logger.Warn("webhook endpoint begins anew: the store is another one, or an older copy", "endpoint", name, "place", p.at, "end", end)
				err = tx.exec(`UPDATE webhook_endpoints SET store = ?, place = ? WHERE space = ? AND name = ?`, store, end, b.o.Space, name)
			}
			if err != nil {
				return fmt.Errorf("enrol endpoint %s: %w", name, err)
			}
		}
		return nil
	})
}

func (b *Outbox) retire(tx *tx, name string) error {
	if _, err := b.bury(tx, name, "the endpoint is not configured any more"); err != nil {
		return err
	}
	return tx.exec(`DELETE FROM webhook_endpoints WHERE space = ? AND name = ?`, b.o.Space, name)
}

// bury makes dead letters of all that waits for an endpoint.
func (b *Outbox) bury(tx *tx, name, why string) (int64, error) {
	return tx.changed(`UPDATE webhook_deliveries SET state = 'dead', ended_at = ?, error = ? WHERE space = ? AND endpoint = ? AND state = 'waiting'`,
		b.now(), why, b.o.Space, name)
}

// place is where an endpoint stands in the feed.
type place struct {
	store    string
	at       int64
	disabled bool
}

func (b *Outbox) places(tx *tx) (map[string]place, error) {
	out := map[string]place{}
	rows, err := tx.QueryContext(tx.ctx, b.t.bind(`SELECT name, store, place, disabled_at FROM webhook_endpoints WHERE space = ?`), b.o.Space)
	if err != nil {
		return nil, err
	}
	return out, scanPlaces(rows, out)
}

func scanPlaces(rows *sql.Rows, out map[string]place) error {
	defer rows.Close()
	for rows.Next() {
		var name string
		var p place
		var disabled int64
		if err := rows.Scan(&name, &p.store, &p.at, &disabled); err != nil {
			return err
		}
		p.disabled = disabled != 0
		out[name] = p
	}
	return rows.Err()
}

// read works on what the feed has behind each endpoint's place. Endpoints at the
// same place, as nearly all are, share the work.
func (b *Outbox) read(ctx context.Context) error {
	rows, err := b.t.db.QueryContext(ctx, b.t.bind(`SELECT name, store, place, disabled_at FROM webhook_endpoints WHERE space = ?`), b.o.Space)
	if err != nil {
		return fmt.Errorf("read endpoints: %w", err)
	}
	there := map[string]place{}
	if err := scanPlaces(rows, there); err != nil {
		return fmt.Errorf("read endpoints: %w", err)
	}
	groups := map[int64][]string{}
	for name, p := range there {
		if b.endpoints[name] != nil {
			groups[p.at] = append(groups[p.at], name)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(groups)) {
		names := groups[at]
		for len(names) > 0 {
			next, moved, err := b.readBatch(ctx, at, names, there)
			if err != nil {
				return fmt.Errorf("read feed behind %d: %w", at, err)
			}
			if len(groups[next]) > 0 && next != at { // with those who are there, in their turn
				groups[next] = append(groups[next], moved...)
				break
			}
			at, names = next, moved
		}
	}
	return nil
}

// readBatch moves endpoints from one place in the feed to a later one, and writes
// down what they are to be told of it, in one transaction. It returns the later
// place and who is there now: nobody where there is nothing new, or no room.
func (b *Outbox) readBatch(ctx context.Context, at int64, names []string, there map[string]place) (next int64, moved []string, err error) {
	rows, err := b.o.Log.Feed(ctx, at, b.batch)
	if err != nil || len(rows) == 0 {
		return at, nil, err
	}
	if names, err = b.withRoom(ctx, names); err != nil || len(names) == 0 {
		return at, nil, err
	}
	messages, err := b.messages(ctx, rows)
	if err != nil {
		return at, nil, err
	}
	next = rows[len(rows)-1].N
	err = b.t.change(ctx, func(tx *tx) error {
		for _, name := range names {
			// Who moves the place writes the messages: nobody else does.
			n, err := tx.changed(`UPDATE webhook_endpoints SET place = ? WHERE space = ? AND name = ? AND place = ?`, next, b.o.Space, name, at)
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			moved = append(moved, name)
			if there[name].disabled {
				continue // it wants no more
			}
			if err := b.add(tx, name, messages); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return at, nil, err
	}
	return next, moved, nil
}

// withRoom are the endpoints that may have more waiting.
func (b *Outbox) withRoom(ctx context.Context, names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		var n int
		err := b.t.db.QueryRowContext(ctx, b.t.bind(`SELECT count(*) FROM webhook_deliveries WHERE space = ? AND endpoint = ? AND state = 'waiting'`),
			b.o.Space, name).Scan(&n)
		if err != nil {
			return nil, err
		}
		if n < b.o.MaxWaiting {
			out = append(out, name)
		}
	}
	return out, nil
}

func (b *Outbox) add(tx *tx, name string, messages []message) error {
	now := b.now()
	for i, m := range messages {
		if !b.endpoints[name].wants(m.typ) {
			continue
		}
		// They are due a microsecond apart, and so keep their order.
		err := tx.exec(`INSERT INTO webhook_deliveries (space, endpoint, id, type, run, body, state, attempts, made_at, due_at, ended_at, status, error)
			VALUES (?, ?, ?, ?, ?, ?, 'waiting', 0, ?, ?, 0, 0, '') ON CONFLICT DO NOTHING`,
			b.o.Space, name, m.id, string(m.typ), m.run, string(m.body), now, now-int64(len(messages)-i))
		if err != nil {
			return fmt.Errorf("write message %s: %w", m.id, err)
		}
	}
	return nil
}

// messages are what records of the feed stand for, in the feed's order. A run
// whose log does not hold says nothing to anybody.
func (b *Outbox) messages(ctx context.Context, rows []ringi.FeedRow) ([]message, error) {
	type at struct {
		run string
		seq int64
	}
	wanted, order, runs := map[at]bool{}, map[string]int{}, []string(nil)
	for _, r := range rows {
		if r.Space != b.o.Space || !tells(r.Kind) {
			continue
		}
		if _, known := order[r.RunID]; !known {
			order[r.RunID] = len(runs)
			runs = append(runs, r.RunID)
		}
		wanted[at{r.RunID, r.Seq}] = true
	}
	var out []message
	for _, run := range runs {
		events, err := b.o.Runs.Events(ctx, run, 0)
		if errors.Is(err, ringi.ErrCorrupt) || errors.Is(err, ringi.ErrNotFound) || errors.Is(err, ringi.ErrNoKey) {
			b.o.Logger.Error("webhooks pass over a run", "run", run, "error", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		found, err := derive(b.o.BaseURL, b.o.Space, run, events, func(seq int64) bool { return wanted[at{run, seq}] })
		if err != nil {
			b.o.Logger.Error("webhooks pass over a run", "run", run, "error", err)
		}
		out = append(out, found...)
	}
	return out, nil
}
