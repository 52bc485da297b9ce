package backoffice

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"
)

// How much there is: 40 customers, C-1001 to C-1040, and 90 orders, A-1001 to
// A-1090.
const (
	customerCount = 40
	orderCount    = 90
	firstRefund   = 5001
)

// seed fills new tables. The draw has a fixed start (PCG is specified), so that
// every database is the same.
func seed(ctx context.Context, tx *sql.Tx) error {
	draw := rand.New(rand.NewPCG(7464, 20260701))
	customers, currencies := seedCustomers(draw)
	for _, c := range customers {
		_, err := tx.ExecContext(ctx, `INSERT INTO customers (id, name, mail, street, postcode, city, country, bank, card_last4) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			c.ID, c.Name, c.Mail, c.Street, c.Postcode, c.City, c.Country, c.bank, c.card)
		if err != nil {
			return fmt.Errorf("customer %s: %w", c.ID, err)
		}
	}
	orders := seedOrders(draw, customers, currencies)
	for _, o := range orders {
		if err := insertOrder(ctx, tx, o); err != nil {
			return fmt.Errorf("order %s: %w", o.id, err)
		}
	}
	if err := seedRefunds(ctx, tx, orders); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO outbox (recipient, subject, body, key, at) VALUES (?, ?, ?, ?, ?)`,
		"mira.solheim@example.com", "Your order A-1042 is on its way", "Dear Mira Solheim,\n\nyour parcel has left our store today.\n\nThe back office", "seed-mail-1", "2026-06-01T08:15:00Z")
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	for _, p := range policyTexts {
		if _, err := tx.ExecContext(ctx, `INSERT INTO policies (topic, title, body) VALUES (?, ?, ?)`, p.Topic, p.Title, p.Text); err != nil {
			return fmt.Errorf("policy %s: %w", p.Topic, err)
		}
	}
	return nil
}

// seedCustomers returns the customers, and the currency that each pays in.
func seedCustomers(draw *rand.Rand) ([]customer, map[string]string) {
	list := append([]customer(nil), leadCustomers...)
	currencies := map[string]string{}
	banks := []string{"Harbour Bank", "Northgate Credit", "Harbour Bank", slowBank}
	for n := len(list); n < customerCount; n++ {
		k := n - len(leadCustomers)
		place := places[draw.IntN(len(places))]
		c := customer{
			ID: fmt.Sprintf("C-%d", 1001+n), Name: firstNames[k%len(firstNames)] + " " + lastNames[(k*7+3)%len(lastNames)],
			Mail:   fmt.Sprintf("customer%d@example.com", 1001+n),
			Street: fmt.Sprintf("%s %d", streets[draw.IntN(len(streets))], 1+draw.IntN(120)), Postcode: place.postcode, City: place.city, Country: place.country,
			bank: banks[draw.IntN(len(banks))], card: fmt.Sprintf("%04d", draw.IntN(10000)),
		}
		currencies[c.ID] = place.currency
		list = append(list, c)
	}
	return list, currencies
}

// seedOrders returns all orders by their numbers; the ones that no scenario
// names belong to the customers that none names.
func seedOrders(draw *rand.Rand, customers []customer, currencies map[string]string) []seedOrder {
	lead := map[string]seedOrder{}
	for _, o := range leadOrders {
		lead[o.id] = o
	}
	begin := time.Date(2026, time.April, 20, 0, 0, 0, 0, time.UTC)
	others := customers[len(leadCustomers):]
	list := make([]seedOrder, 0, orderCount)
	for n := range orderCount {
		id := fmt.Sprintf("A-%d", 1001+n)
		if o, ok := lead[id]; ok {
			list = append(list, o)
			continue
		}
		c := others[draw.IntN(len(others))]
		o := seedOrder{id: id, customer: c.ID, currency: currencies[c.ID], placed: begin.AddDate(0, 0, n).Format(time.DateOnly), status: "delivered"}
		switch {
		case draw.IntN(12) == 0:
			o.status = "cancelled"
		case n > 82:
			o.status = "open"
		case n > 72:
			o.status = "shipped"
		}
		for _, k := range draw.Perm(len(goods))[:1+draw.IntN(3)] {
			it := goods[k]
			it.Quantity = 1 + draw.Int64N(3)
			o.items = append(o.items, it)
		}
		list = append(list, o)
	}
	return list
}

func insertOrder(ctx context.Context, tx *sql.Tx, o seedOrder) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO orders (id, customer_id, status, currency, placed_on, note) VALUES (?, ?, ?, ?, ?, ?)`,
		o.id, o.customer, o.status, o.currency, o.placed, o.note)
	if err != nil {
		return err
	}
	for i, it := range o.items {
		_, err := tx.ExecContext(ctx, `INSERT INTO items (order_id, line, name, quantity, unit_cents) VALUES (?, ?, ?, ?, ?)`,
			o.id, i+1, it.Name, it.Quantity, it.UnitCents)
		if err != nil {
			return err
		}
	}
	return nil
}

// seedRefunds books the refunds of the past: the lead ones, and all of every
// order that was cancelled.
func seedRefunds(ctx context.Context, tx *sql.Tx, orders []seedOrder) error {
	id := int64(firstRefund)
	book := func(o seedOrder, cents int64, reason string) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO refunds (id, order_id, amount_cents, currency, reason, state, key, at) VALUES (?, ?, ?, ?, ?, 'booked', ?, ?)`,
			id, o.id, cents, o.currency, reason, fmt.Sprintf("seed-refund-%d", id), o.placed+"T16:00:00Z")
		if err != nil {
			return fmt.Errorf("refund of %s: %w", o.id, err)
		}
		id++
		return nil
	}
	for _, o := range orders {
		for _, r := range leadRefunds {
			if r.order != o.id {
				continue
			}
			if err := book(o, r.cents, r.reason); err != nil {
				return err
			}
		}
		if o.status != "cancelled" {
			continue
		}
		total := int64(0)
		for _, it := range o.items {
			total += it.Quantity * it.UnitCents
		}
		if err := book(o, total, "order cancelled"); err != nil {
			return err
		}
	}
	return nil
}
