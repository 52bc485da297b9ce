package backoffice

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
)

// customer is a customer as a tool gives one: without bank and card, which no
// model needs.
type customer struct {
	ID       string `json:"customer_id"`
	Name     string `json:"name"`
	Mail     string `json:"mail"`
	Street   string `json:"street"`
	Postcode string `json:"postcode"`
	City     string `json:"city"`
	Country  string `json:"country"`
	Version  int64  `json:"version" jsonschema:"how often the address was changed, from 1"`

	bank, card string
}

const customerColumns = `id, name, mail, street, postcode, city, country, bank, card_last4, version`

func (c *customer) fields() []any {
	return []any{&c.ID, &c.Name, &c.Mail, &c.Street, &c.Postcode, &c.City, &c.Country, &c.bank, &c.card, &c.Version}
}

// customerBy reads the one customer for whom a column has a value. The column
// is never a caller's text.
func customerBy(ctx context.Context, q querier, column, value string) (customer, error) {
	var c customer
	err := q.QueryRowContext(ctx, `SELECT `+customerColumns+` FROM customers WHERE `+column+` = ?`, value).Scan(c.fields()...)
	if errors.Is(err, sql.ErrNoRows) {
		return c, ringi.NotDone(fmt.Errorf("there is no customer %q", value))
	}
	if err != nil {
		return c, fmt.Errorf("read customer: %w", err)
	}
	return c, nil
}

type findCustomerIn struct {
	Query string `json:"query" jsonschema:"part of the name or mail address, or the customer's number, such as C-1001"`
}

type findCustomerOut struct {
	Customers []customer `json:"customers" jsonschema:"at most 5, by number"`
	More      bool       `json:"more,omitzero" jsonschema:"there are others: ask for more of the name"`
}

const foundCustomers = 5

// findCustomer compares in Go: SQLite folds the letters of ASCII only.
func (o *Office) findCustomer(ctx context.Context, in findCustomerIn) (findCustomerOut, error) {
	query := strings.ToLower(strings.TrimSpace(in.Query))
	if query == "" {
		return findCustomerOut{}, ringi.NotDone(errors.New("the query is empty: give a name, a mail address or a number"))
	}
	rows, err := o.db.QueryContext(ctx, `SELECT `+customerColumns+` FROM customers ORDER BY id`)
	all, err := collect(rows, err, func(r *sql.Rows, c *customer) error { return r.Scan(c.fields()...) })
	if err != nil {
		return findCustomerOut{}, fmt.Errorf("read customers: %w", err)
	}
	var out findCustomerOut
	for _, c := range all {
		if !strings.Contains(strings.ToLower(c.ID+"\n"+c.Name+"\n"+c.Mail), query) {
			continue
		}
		if len(out.Customers) == foundCustomers {
			out.More = true
			break
		}
		out.Customers = append(out.Customers, c)
	}
	return out, nil
}
