package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/ringi-dev/ringi"
)

// shop is the order book of ringi try: in memory, written by us, with tools
// that really change it.
type shop struct {
	mu     sync.Mutex
	orders map[string]*order
}

// order is one order of the shop. Amounts are cents.
type order struct {
	ID       string `json:"order_id"`
	Customer string `json:"customer"`
	Item     string `json:"item"`
	Paid     int64  `json:"paid_cents"`
	Refunded int64  `json:"refunded_cents"`
	Card     string `json:"card"`
}

func newShop() *shop {
	return &shop{orders: map[string]*order{
		"A-1017": {ID: "A-1017", Customer: "Ann Example", Item: "desk lamp", Paid: 4990, Card: "ending in 4242"},
		"A-1018": {ID: "A-1018", Customer: "Bo Sample", Item: "kettle", Paid: 3500, Card: "ending in 0005"},
	}}
}

type lookUpIn struct {
	OrderID string `json:"order_id" jsonschema:"the order, such as A-1017"`
}

type refundIn struct {
	OrderID string `json:"order_id" jsonschema:"the order, such as A-1017"`
	Amount  int64  `json:"amount_cents" jsonschema:"how much, in cents"`
	Why     string `json:"why" jsonschema:"why, for the books"`
}

type refundOut struct {
	RefundID string `json:"refund_id"`
	Amount   int64  `json:"amount_cents"`
	Left     int64  `json:"left_cents"`
}

// registry joins the shop's two tools to its handlers: a read, which runs by
// itself, and a write, which asks.
func (s *shop) registry() (*ringi.Registry, error) {
	reg := ringi.NewRegistry()
	return reg, s.register(reg)
}

func (s *shop) register(reg *ringi.Registry) error {
	err := ringi.AddTool(reg, ringi.Tool{Name: "look_up_order", Description: "Look an order up.", Effect: ringi.ReadOnly},
		func(_ context.Context, in lookUpIn) (order, error) { return s.order(in.OrderID) })
	return errors.Join(err, ringi.AddTool(reg, ringi.Tool{
		Name: "refund", Description: "Pay money back for an order, to the card that it was paid with.",
		Effect: ringi.NonIdempotentWrite, AllowEdit: true,
	}, s.refund, ringi.ToolHooks{Preview: s.preview, Check: s.check}))
}

// order returns a copy of an order.
func (s *shop) order(id string) (order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[id]
	if o == nil {
		return order{}, ringi.NotDone(fmt.Errorf("there is no order %q", id))
	}
	return *o, nil
}

func (s *shop) refund(_ context.Context, in refundIn) (refundOut, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[in.OrderID]
	switch {
	case o == nil:
		return refundOut{}, ringi.NotDone(fmt.Errorf("there is no order %q", in.OrderID))
	case in.Amount <= 0 || in.Amount > o.Paid-o.Refunded:
		return refundOut{}, ringi.NotDone(fmt.Errorf("%s is not between 0.01 and %s EUR", euros(in.Amount), euros(o.Paid-o.Refunded)))
	}
	o.Refunded += in.Amount
	return refundOut{RefundID: "R-" + o.ID, Amount: in.Amount, Left: o.Paid - o.Refunded}, nil
}

// preview says what a refund would do. Its precondition is how much was paid
// back when it was made.
func (s *shop) preview(_ context.Context, call ringi.ToolCall) (ringi.Preview, error) {
	var in refundIn
	if err := json.Unmarshal([]byte(call.Input), &in); err != nil {
		return ringi.Preview{}, fmt.Errorf("read input: %w", err)
	}
	o, err := s.order(in.OrderID)
	if err != nil {
		return ringi.Preview{}, err
	}
	text := fmt.Sprintf("%s EUR of %s EUR go back to the card %s of %s, for the %s.",
		euros(in.Amount), euros(o.Paid), o.Card, o.Customer, o.Item)
	return ringi.Preview{Text: text, Precondition: o.state()}, nil
}

// check compares the preview's world with the present one, right before the
// refund.
func (s *shop) check(_ context.Context, call ringi.ToolCall, precondition string) error {
	var in refundIn
	if err := json.Unmarshal([]byte(call.Input), &in); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	o, err := s.order(in.OrderID)
	if err != nil {
		return err
	}
	if o.state() != precondition {
		return fmt.Errorf("order %s has changed since", o.ID)
	}
	return nil
}

func (o order) state() string { return "refunded " + strconv.FormatInt(o.Refunded, 10) }

func euros(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
