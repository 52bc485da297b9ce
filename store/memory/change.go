package memory

import (
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
)

// move is a request and the row that it will have.
type move struct {
	of *request
	to ringi.RequestRow
}

func (m *move) apply() { m.of.row = m.to }

// stage checks new requests and changes, and returns what the changes lead to.
func (d *data) stage(moved []move, c *ringi.Commit, made []*request, now time.Time) ([]move, error) {
	if len(made) == 0 && len(c.Changes) == 0 {
		return nil, nil
	}
	thread := c.Row.Thread
	sp := d.spaces[c.Space]
	if r := sp.run(c.RunID); r != nil {
		thread = r.row.Thread
	}
	for _, q := range made {
		if q.row.Thread != thread {
			return nil, fmt.Errorf("request %s is not of thread %s", q.row.ID, thread)
		}
		if sp.request(q.row.ID) != nil {
			return nil, fmt.Errorf("request %s is there already", q.row.ID)
		}
	}
	for i := range c.Changes {
		ch := &c.Changes[i]
		m, err := present(moved, made, sp.request(ch.ID), ch.ID, c.RunID)
		if err != nil {
			return nil, err
		}
		if err := change(&m.to, ch, now); err != nil {
			return nil, err
		}
		moved = append(moved, m)
	}
	return moved, nil
}

// present returns a request of the run as the changes before have left it.
func present(moved []move, made []*request, kept *request, id, runID string) (move, error) {
	for i := len(moved) - 1; i >= 0; i-- {
		if moved[i].to.ID == id {
			return moved[i], nil
		}
	}
	if kept != nil && kept.row.RunID == runID {
		return move{kept, kept.row}, nil
	}
	for _, q := range made {
		if q.row.ID == id {
			return move{q, q.row}, nil
		}
	}
	return move{}, noRequest(id)
}

// change moves a row, or says why it may not.
func change(q *ringi.RequestRow, ch *ringi.RequestChange, now time.Time) error {
	if q.State != ch.From {
		return &ringi.RequestStateError{ID: q.ID, State: q.State}
	}
	deadline := q.ExpiresAt
	if q.State == ringi.Granted {
		deadline = q.UseBy
	}
	reached := !deadline.IsZero() && !now.Before(deadline)
	if ch.Live && reached || ch.Past && !reached {
		return &ringi.RequestStateError{ID: q.ID, State: q.State, Deadline: deadline}
	}
	q.State = ch.To
	if !ch.DecidedAt.IsZero() {
		q.DecidedAt = micros(ch.DecidedAt)
	}
	if !ch.UseBy.IsZero() {
		q.UseBy = micros(ch.UseBy)
	}
	if ch.DecidedBy != "" {
		q.DecidedBy = ch.DecidedBy
	}
	return nil
}
