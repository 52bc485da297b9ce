package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/ledger"
)

// admit asks whether a commit is let in, over the sums that the open
// transaction sees, and writes those that change. What refuses takes the commit
// back, and with it whatever was added.
func (w *writer) admit(c *ringi.Commit, admit func(context.Context, ringi.Ledger) error) error {
	sums, err := ledger.Ask(context.WithoutCancel(w.ctx), func(name string) (int64, error) { return w.sum(c.Space, name) }, ringi.ErrTooLarge,
		func(ctx context.Context, b *ledger.Book) error { return admit(ctx, b) })
	if _, failed := errors.AsType[*ledger.Failed](err); failed {
		return fmt.Errorf("%w: %w", ringi.ErrNotRecorded, err)
	}
	if err != nil {
		return err
	}
	for name, n := range sums {
		_, err := w.exec(`INSERT INTO ledger (space, name, amount) VALUES (?, ?, ?)
			ON CONFLICT (space, name) DO UPDATE SET amount = excluded.amount`, c.Space, name, n)
		if err != nil {
			return err
		}
	}
	return nil
}

// sum reads an amount in the open transaction. No context ends it: one that did
// would take the whole group with it.
func (w *writer) sum(space, name string) (int64, error) {
	var n int64
	err := w.tx.QueryRowContext(context.Background(), `SELECT amount FROM ledger WHERE space = ? AND name = ?`, space, name).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}
