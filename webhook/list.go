package webhook

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
)

// What operators see and do. It works on the tables alone, beside a server that
// runs or not.

// Status is how an endpoint stands.
type Status struct {
	Name string `json:"name"`
	// Configured is set for the endpoints that this outbox was opened with,
	// Enrolled for those that a server has begun to serve.
	Configured bool `json:"configured"`
	Enrolled   bool `json:"enrolled"`
	// Waiting, Delivered and Dead count messages; Delivered those of the last
	// days alone.
	Waiting   int `json:"waiting"`
	Delivered int `json:"delivered"`
	Dead      int `json:"dead"`
	// DisabledAt is set where the receiver has said that it wants no more (410).
	DisabledAt  time.Time `json:"disabled_at,omitzero"`
	DisabledWhy string    `json:"disabled_why,omitempty"`
	// Next is when the next message is due.
	Next time.Time `json:"next,omitzero"`
	// Error is why the newest failing message that waits failed.
	Error string `json:"error,omitempty"`
}

// Letter is a message as it stands in the table.
type Letter struct {
	Endpoint string    `json:"endpoint"`
	ID       string    `json:"id"`
	Type     Type      `json:"type"`
	RunID    string    `json:"run_id"`
	Attempts int       `json:"attempts"`
	MadeAt   time.Time `json:"made_at"`
	EndedAt  time.Time `json:"ended_at,omitzero"`
	Status   int       `json:"status,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// List returns all endpoints by name: those that are configured, and those that
// the table knows messages of.
func (b *Outbox) List(ctx context.Context) ([]Status, error) {
	all := map[string]*Status{}
	at := func(name string) *Status {
		if all[name] == nil {
			all[name] = &Status{Name: name, Configured: b.endpoints[name] != nil}
		}
		return all[name]
	}
	for name := range b.endpoints {
		at(name)
	}
	err := b.t.list(ctx, func(scan func(...any) error) error {
		var name, why string
		var disabled int64
		if err := scan(&name, &disabled, &why); err != nil {
			return err
		}
		s := at(name)
		s.Enrolled, s.DisabledAt, s.DisabledWhy = true, moment(disabled), why
		return nil
	}, `SELECT name, disabled_at, disabled_why FROM webhook_endpoints WHERE space = ?`, b.o.Space)
	if err != nil {
		return nil, fmt.Errorf("list endpoints: %w", err)
	}
	if err := b.count(ctx, at); err != nil {
		return nil, fmt.Errorf("list endpoints: %w", err)
	}
	var out []Status
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, *all[name])
	}
	return out, nil
}

func (b *Outbox) count(ctx context.Context, at func(string) *Status) error {
	err := b.t.list(ctx, func(scan func(...any) error) error {
		var name, state string
		var n int
		var due int64
		if err := scan(&name, &state, &n, &due); err != nil {
			return err
		}
		switch s := at(name); state {
		case "waiting":
			s.Waiting, s.Next = n, moment(due)
		case "delivered":
			s.Delivered = n
		case "dead":
			s.Dead = n
		}
		return nil
	}, `SELECT endpoint, state, count(*), min(due_at) FROM webhook_deliveries WHERE space = ? GROUP BY endpoint, state`, b.o.Space)
	if err != nil {
		return err
	}
	return b.t.list(ctx, func(scan func(...any) error) error {
		var name, why string
		if err := scan(&name, &why); err != nil {
			return err
		}
		at(name).Error = why // the last one stands
		return nil
	}, `SELECT endpoint, error FROM webhook_deliveries WHERE space = ? AND state = 'waiting' AND error <> '' ORDER BY made_at, id`, b.o.Space)
}

// Dead lists dead letters, the newest first: of one endpoint, or of all where
// endpoint is empty. A limit of 0 means 100; at most 1,000.
func (b *Outbox) Dead(ctx context.Context, endpoint string, limit int) ([]Letter, error) {
	if limit <= 0 {
		limit = 100
	}
	query, args := `SELECT endpoint, id, type, run, attempts, made_at, ended_at, status, error FROM webhook_deliveries WHERE space = ? AND state = 'dead'`, []any{b.o.Space}
	if endpoint != "" {
		query, args = query+` AND endpoint = ?`, append(args, endpoint)
	}
	var out []Letter
	err := b.t.list(ctx, func(scan func(...any) error) error {
		var l Letter
		var made, ended int64
		err := scan(&l.Endpoint, &l.ID, &l.Type, &l.RunID, &l.Attempts, &made, &ended, &l.Status, &l.Error)
		l.MadeAt, l.EndedAt = moment(made), moment(ended)
		out = append(out, l)
		return err
	}, query+` ORDER BY ended_at DESC, endpoint, id LIMIT ?`, append(args, min(limit, 1000))...)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return out, nil
}

// Retry has dead letters of an endpoint sent again by the running server, from
// the first try on: the one with the id, or all where id is empty. With an empty
// id an endpoint that was disabled is enabled too. It returns how many letters
// will be sent; ErrNotFound where the endpoint or the letter is not there.
func (b *Outbox) Retry(ctx context.Context, endpoint, id string) (int, error) {
	var n int64
	err := b.t.change(ctx, func(tx *tx) error {
		now := b.now()
		query, args := `UPDATE webhook_deliveries SET state = 'waiting', attempts = 0, due_at = ?, ended_at = 0 WHERE space = ? AND endpoint = ? AND state = 'dead'`,
			[]any{now, b.o.Space, endpoint}
		there := `SELECT count(*) FROM webhook_endpoints WHERE space = ? AND name = ?`
		var known int
		if err := tx.row(there, b.o.Space, endpoint).Scan(&known); err != nil {
			return err
		}
		if known == 0 {
			return fmt.Errorf("endpoint %s: %w", endpoint, ringi.ErrNotFound)
		}
		if id != "" {
			query, args = query+` AND id = ?`, append(args, id)
		} else if err := tx.exec(`UPDATE webhook_endpoints SET disabled_at = 0, disabled_why = '' WHERE space = ? AND name = ?`, b.o.Space, endpoint); err != nil {
			return err
		}
		var err error
		if n, err = tx.changed(query, args...); err == nil && n == 0 && id != "" {
			err = fmt.Errorf("dead letter %s: %w", id, ringi.ErrNotFound)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("retry webhooks: %w", err)
	}
	b.ring()
	return int(n), nil
}

// SendTest sends one message of type webhook.test to an endpoint, now and once,
// and returns the status of the answer. ErrNotFound for an endpoint that is not
// configured.
func (b *Outbox) SendTest(ctx context.Context, endpoint string) (status int, err error) {
	e := b.endpoints[endpoint]
	if e == nil {
		return 0, fmt.Errorf("test endpoint %s: %w", endpoint, ringi.ErrNotFound)
	}
	body, err := encode(Test, b.o.Now(), struct {
		Endpoint string `json:"endpoint"`
	}{e.Name})
	if err == nil {
		status, err = b.post(ctx, e, "msg_test_"+strings.ToLower(rand.Text()), body)
	}
	if err != nil {
		return status, fmt.Errorf("test endpoint %s: %w", endpoint, err)
	}
	return status, nil
}

// Forget takes away every message of a run, sent or not: what is erased is not
// told.
func (b *Outbox) Forget(ctx context.Context, runID string) error {
	err := b.t.change(ctx, func(tx *tx) error {
		return tx.exec(`DELETE FROM webhook_deliveries WHERE space = ? AND run = ?`, b.o.Space, runID)
	})
	if err != nil {
		return fmt.Errorf("forget messages of run %s: %w", runID, err)
	}
	return nil
}

// moment is a stored time; the zero time for 0.
func moment(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
