package backoffice

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
)

type refundIn struct {
	OrderID     string `json:"order_id"`
	AmountCents int64  `json:"amount_cents"`
	Currency    string `json:"currency"`
	Reason      string `json:"reason"`
}

// Refund is a refund as it was booked.
type Refund struct {
	RefundID string `json:"refund_id" jsonschema:"such as R-5013"`
	OrderID  string `json:"order_id"`
	// AmountCents is in cents of Currency (ISO 4217).
	AmountCents int64  `json:"amount_cents"`
	Currency    string `json:"currency"`
	// LeftCents is what can still be paid back for the order.
	LeftCents int64 `json:"left_cents"`
	// Repeat is set where the same call was booked before: nothing was paid
	// twice.
	Repeat bool `json:"repeat,omitzero" jsonschema:"this very call was booked before; nothing was paid twice"`
	// Note is free text of a person who answers in the tool's place.
	Note string `json:"note,omitzero" jsonschema:"what else the customer should know"`
	// State is "sent" until the bank has answered, then "booked".
	State string `json:"-"`

	id int64
}

var errNoKey = ringi.NotDone(errors.New("the call has no idempotency key: it can only be run by the engine"))

// refund pays money back, at most once a key: the row is written before the
// bank is asked, and a repeat finds it.
func (o *Office) refund(ctx context.Context, in refundIn) (Refund, error) {
	tc, ok := ringi.ToolContextFrom(ctx)
	if !ok || tc.Key == "" {
		return Refund{}, errNoKey
	}
	var r Refund
	var bank string
	err := o.inTx(ctx, func(tx *sql.Tx) error {
		of, err := orderBy(ctx, tx, in.OrderID)
		if err != nil {
			return err
		}
		bank = of.bank
		if r, err = refundBy(ctx, tx, tc.Key); !errors.Is(err, sql.ErrNoRows) {
			r.Repeat, r.LeftCents = true, of.left()
			return err
		}
		r, err = send(ctx, tx, of, in, tc, o.timestamp())
		return err
	})
	if err != nil || r.State == "booked" {
		return r, err
	}
	return r, o.book(ctx, &r, bank)
}

// send writes a new refund down, as sent to the bank.
func send(ctx context.Context, tx *sql.Tx, of order, in refundIn, tc ringi.ToolContext, at string) (Refund, error) {
	switch {
	case in.Currency != of.Currency:
		return Refund{}, ringi.NotDone(fmt.Errorf("order %s was paid in %s, not in %s", of.ID, of.Currency, in.Currency))
	case in.AmountCents < 1 || in.AmountCents > of.left():
		return Refund{}, ringi.NotDone(fmt.Errorf("%s cannot be paid back for order %s: %s of it is left", money(in.AmountCents, in.Currency), of.ID, money(of.left(), of.Currency)))
	}
	res, err := tx.ExecContext(ctx, `INSERT INTO refunds (order_id, amount_cents, currency, reason, state, key, decider, at) VALUES (?, ?, ?, ?, 'sent', ?, ?, ?)`,
		of.ID, in.AmountCents, in.Currency, in.Reason, tc.Key, tc.Decider, at)
	if err != nil {
		return Refund{}, err
	}
	id, err := res.LastInsertId()
	return Refund{id: id, RefundID: refundID(id), OrderID: of.ID, AmountCents: in.AmountCents, Currency: in.Currency,
		LeftCents: of.left() - in.AmountCents, State: "sent"}, err
}

func refundID(id int64) string { return fmt.Sprintf("R-%d", id) }

// book waits for the bank, and books. One bank answers only when the call's
// time is over: the call is then of unknown outcome, as it would be in life,
// and the answer comes late.
func (o *Office) book(ctx context.Context, r *Refund, bank string) error {
	if bank == slowBank && !r.Repeat {
		select {
		case <-time.After(2 * o.timeout()):
		case <-o.closed:
			return errors.New("the office was closed before the bank had answered")
		}
	}
	ctx = context.WithoutCancel(ctx) // the bank has said yes, whoever still waits
	if _, err := o.db.ExecContext(ctx, `UPDATE refunds SET state = 'booked' WHERE id = ?`, r.id); err != nil {
		return fmt.Errorf("book refund %s: %w", r.RefundID, err)
	}
	r.State = "booked"
	return nil
}

// refundBy reads a refund by its key, without what is left of the order;
// sql.ErrNoRows where there is none.
func refundBy(ctx context.Context, q querier, key string) (Refund, error) {
	var r Refund
	err := q.QueryRowContext(ctx, `SELECT id, order_id, amount_cents, currency, state FROM refunds WHERE key = ?`, key).
		Scan(&r.id, &r.OrderID, &r.AmountCents, &r.Currency, &r.State)
	r.RefundID = refundID(r.id)
	return r, err
}

// Refunds returns the refunds of an order, oldest first, with what is left
// after all of them.
func (o *Office) Refunds(ctx context.Context, orderID string) ([]Refund, error) {
	of, err := orderBy(ctx, o.db, orderID)
	if err != nil {
		return nil, err
	}
	rows, err := o.db.QueryContext(ctx, `SELECT id, order_id, amount_cents, currency, state FROM refunds WHERE order_id = ? ORDER BY id`, orderID)
	list, err := collect(rows, err, func(row *sql.Rows, r *Refund) error {
		return row.Scan(&r.id, &r.OrderID, &r.AmountCents, &r.Currency, &r.State)
	})
	if err != nil {
		return nil, fmt.Errorf("read refunds: %w", err)
	}
	for i := range list {
		list[i].RefundID, list[i].LeftCents = refundID(list[i].id), of.left()
	}
	return list, nil
}

// refundHooks show what is paid to whom, bound to what was paid back before;
// and find a call that a crash left open by its key, where the bank has
// answered.
func (o *Office) refundHooks() ringi.ToolHooks {
	return ringi.ToolHooks{
		Preview: func(ctx context.Context, call ringi.ToolCall) (ringi.Preview, error) {
			in, of, err := o.refundOf(ctx, call)
			if err != nil {
				return ringi.Preview{}, err
			}
			return ringi.Preview{Text: refundText(in, of), Format: "text", Precondition: refundState(of)}, nil
		},
		Check: func(ctx context.Context, call ringi.ToolCall, precondition string) error {
			_, now, err := o.refundOf(ctx, call)
			if err != nil {
				return err
			}
			if refundState(now) != precondition {
				return fmt.Errorf("the refunds have changed since: it was %q and is %q", precondition, refundState(now))
			}
			return nil
		},
		Lookup: func(ctx context.Context, key string) (ringi.ToolResult, bool, error) {
			r, err := refundBy(ctx, o.db, key)
			if errors.Is(err, sql.ErrNoRows) || err == nil && r.State != "booked" {
				return ringi.ToolResult{}, false, nil
			}
			if err != nil {
				return ringi.ToolResult{}, false, fmt.Errorf("look refund up: %w", err)
			}
			of, err := orderBy(ctx, o.db, r.OrderID)
			if err != nil {
				return ringi.ToolResult{}, false, err
			}
			r.LeftCents = of.left()
			return ringi.ToolResult{Output: string(encode(r))}, true, nil
		},
	}
}

func (o *Office) refundOf(ctx context.Context, call ringi.ToolCall) (refundIn, order, error) {
	var in refundIn
	if err := json.Unmarshal([]byte(call.Input), &in); err != nil {
		return in, order{}, fmt.Errorf("read input: %w", err)
	}
	of, err := orderBy(ctx, o.db, in.OrderID)
	return in, of, err
}

func refundState(o order) string { return fmt.Sprintf("%s refunded %d cents", o.ID, o.RefundedCents) }

func refundText(in refundIn, of order) string {
	text := fmt.Sprintf("%s to %s, to the card that ends in %s (%s).\n", money(in.AmountCents, in.Currency), oneLine(of.CustomerName), of.card, of.bank)
	switch {
	case in.Currency != of.Currency:
		text += fmt.Sprintf("This will fail: the order was paid in %s.\n", of.Currency)
	case in.AmountCents > of.left():
		text += fmt.Sprintf("This will fail: only %s of the order is left.\n", money(of.left(), of.Currency))
	}
	return text + fmt.Sprintf("\nWhy:    %s\nOrder:  %s\n%sBack:   %s so far\n", oneLine(in.Reason), of.ID, orderLines(of), money(of.RefundedCents, of.Currency))
}
