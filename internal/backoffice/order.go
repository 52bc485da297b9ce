package backoffice

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
)

// item is one line of an order.
type item struct {
	Name      string `json:"name"`
	Quantity  int64  `json:"quantity"`
	UnitCents int64  `json:"unit_cents"`
}

// order is an order with everything that a decision on it needs. Amounts are
// cents of its currency.
type order struct {
	ID            string `json:"order_id"`
	CustomerID    string `json:"customer_id"`
	CustomerName  string `json:"customer_name"`
	CustomerMail  string `json:"customer_mail"`
	Status        string `json:"status" jsonschema:"open, shipped, delivered or cancelled"`
	PlacedOn      string `json:"placed_on"`
	Note          string `json:"note,omitzero"`
	Items         []item `json:"items"`
	Currency      string `json:"currency" jsonschema:"of all amounts (ISO 4217)"`
	TotalCents    int64  `json:"total_cents"`
	RefundedCents int64  `json:"refunded_cents" jsonschema:"paid back so far, what the bank has not confirmed among it"`

	bank, card string
}

// left is what can still be paid back.
func (o order) left() int64 { return o.TotalCents - o.RefundedCents }

// orderBy reads an order whole.
func orderBy(ctx context.Context, q querier, id string) (order, error) {
	o := order{ID: id}
	err := q.QueryRowContext(ctx, `SELECT o.customer_id, c.name, c.mail, o.status, o.placed_on, o.note, o.currency, c.bank, c.card_last4,
		(SELECT coalesce(sum(amount_cents), 0) FROM refunds WHERE order_id = o.id)
		FROM orders o JOIN customers c ON c.id = o.customer_id WHERE o.id = ?`, id).
		Scan(&o.CustomerID, &o.CustomerName, &o.CustomerMail, &o.Status, &o.PlacedOn, &o.Note, &o.Currency, &o.bank, &o.card, &o.RefundedCents)
	if errors.Is(err, sql.ErrNoRows) {
		return o, ringi.NotDone(fmt.Errorf("there is no order %q", id))
	}
	if err != nil {
		return o, fmt.Errorf("read order: %w", err)
	}
	rows, err := q.QueryContext(ctx, `SELECT name, quantity, unit_cents FROM items WHERE order_id = ? ORDER BY line`, id)
	o.Items, err = collect(rows, err, func(r *sql.Rows, it *item) error { return r.Scan(&it.Name, &it.Quantity, &it.UnitCents) })
	if err != nil {
		return o, fmt.Errorf("read items: %w", err)
	}
	for _, it := range o.Items {
		o.TotalCents += it.Quantity * it.UnitCents
	}
	return o, nil
}

type listOrdersIn struct {
	CustomerID string `json:"customer_id" jsonschema:"whose orders, such as C-1001"`
}

type listedOrder struct {
	ID         string `json:"order_id"`
	PlacedOn   string `json:"placed_on"`
	Status     string `json:"status" jsonschema:"open, shipped, delivered or cancelled"`
	Items      string `json:"items" jsonschema:"their names"`
	TotalCents int64  `json:"total_cents"`
	Currency   string `json:"currency"`
}

type listOrdersOut struct {
	Orders []listedOrder `json:"orders" jsonschema:"newest first"`
}

func (o *Office) listOrders(ctx context.Context, in listOrdersIn) (listOrdersOut, error) {
	if _, err := customerBy(ctx, o.db, "id", in.CustomerID); err != nil {
		return listOrdersOut{}, err
	}
	rows, err := o.db.QueryContext(ctx, `SELECT id FROM orders WHERE customer_id = ? ORDER BY placed_on DESC, id DESC`, in.CustomerID)
	ids, err := collect(rows, err, func(r *sql.Rows, id *string) error { return r.Scan(id) })
	if err != nil {
		return listOrdersOut{}, fmt.Errorf("read orders: %w", err)
	}
	var out listOrdersOut
	for _, id := range ids {
		full, err := orderBy(ctx, o.db, id)
		if err != nil {
			return listOrdersOut{}, err
		}
		names := make([]string, len(full.Items))
		for i, it := range full.Items {
			names[i] = it.Name
		}
		out.Orders = append(out.Orders, listedOrder{ID: id, PlacedOn: full.PlacedOn, Status: full.Status,
			Items: strings.Join(names, "; "), TotalCents: full.TotalCents, Currency: full.Currency})
	}
	return out, nil
}

type orderDetailsIn struct {
	OrderID string `json:"order_id" jsonschema:"such as A-1042"`
}

func (o *Office) orderDetails(ctx context.Context, in orderDetailsIn) (order, error) {
	return orderBy(ctx, o.db, in.OrderID)
}

type cancelOrderIn struct {
	OrderID string `json:"order_id"`
	Reason  string `json:"reason"`
}

type cancelOrderOut struct {
	OrderID string `json:"order_id"`
	Status  string `json:"status"`
	Already bool   `json:"already,omitzero" jsonschema:"it was cancelled before: nothing was changed"`
}

// cancelOrder stops an order that has not left the house. Cancelling once more
// changes nothing, so it may be repeated.
func (o *Office) cancelOrder(ctx context.Context, in cancelOrderIn) (cancelOrderOut, error) {
	out := cancelOrderOut{OrderID: in.OrderID, Status: "cancelled"}
	err := o.inTx(ctx, func(tx *sql.Tx) error {
		was, err := orderBy(ctx, tx, in.OrderID)
		switch {
		case err != nil:
			return err
		case was.Status == "cancelled":
			out.Already = true
			return nil
		case was.Status != "open":
			return ringi.NotDone(fmt.Errorf("order %s is %s: it can no longer be cancelled", was.ID, was.Status))
		}
		note := strings.TrimPrefix(was.Note+"\nCancelled: "+in.Reason, "\n")
		_, err = tx.ExecContext(ctx, `UPDATE orders SET status = 'cancelled', note = ? WHERE id = ?`, note, was.ID)
		return err
	})
	return out, err
}

// cancelHooks show the order, bound to its status.
func (o *Office) cancelHooks() ringi.ToolHooks {
	read := func(ctx context.Context, call ringi.ToolCall) (cancelOrderIn, order, error) {
		var in cancelOrderIn
		if err := json.Unmarshal([]byte(call.Input), &in); err != nil {
			return in, order{}, fmt.Errorf("read input: %w", err)
		}
		was, err := orderBy(ctx, o.db, in.OrderID)
		return in, was, err
	}
	return ringi.ToolHooks{
		Preview: func(ctx context.Context, call ringi.ToolCall) (ringi.Preview, error) {
			in, was, err := read(ctx, call)
			if err != nil {
				return ringi.Preview{}, err
			}
			text := fmt.Sprintf("Order %s of %s becomes: cancelled.\n\nWhy:    %s\n%s", was.ID, oneLine(was.CustomerName), oneLine(in.Reason), orderLines(was))
			return ringi.Preview{Text: text, Format: "text", Precondition: orderState(was)}, nil
		},
		Check: func(ctx context.Context, call ringi.ToolCall, precondition string) error {
			_, now, err := read(ctx, call)
			if err != nil {
				return err
			}
			if orderState(now) != precondition && now.Status != "cancelled" {
				return fmt.Errorf("order %s has changed since: it was %q and is %q", now.ID, precondition, orderState(now))
			}
			return nil
		},
	}
}

func orderState(o order) string { return o.ID + " " + o.Status }

// orderLines is an order as a preview shows it.
func orderLines(o order) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Status: %s, placed on %s\n", o.Status, o.PlacedOn)
	for _, it := range o.Items {
		fmt.Fprintf(&b, "Item:   %d x %s, %s\n", it.Quantity, oneLine(it.Name), money(it.Quantity*it.UnitCents, o.Currency))
	}
	fmt.Fprintf(&b, "Total:  %s\n", money(o.TotalCents, o.Currency))
	if o.Note != "" {
		fmt.Fprintf(&b, "Note:   %s\n", oneLine(o.Note))
	}
	return b.String()
}
