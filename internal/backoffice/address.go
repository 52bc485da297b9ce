package backoffice

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
)

type changeAddressIn struct {
	CustomerID string `json:"customer_id"`
	Street     string `json:"street"`
	Postcode   string `json:"postcode"`
	City       string `json:"city"`
	Country    string `json:"country"`
}

type changeAddressOut struct {
	CustomerID string `json:"customer_id"`
	Version    int64  `json:"version" jsonschema:"how often the address was changed, from 1"`
	Already    bool   `json:"already,omitzero" jsonschema:"the address was the same before: nothing was changed"`
}

// apply returns the customer with the new address.
func (in changeAddressIn) apply(c customer) customer {
	c.Street, c.Postcode, c.City, c.Country = in.Street, in.Postcode, in.City, in.Country
	return c
}

// changeAddress sets an address. The same once more changes nothing, so it may
// be repeated.
func (o *Office) changeAddress(ctx context.Context, in changeAddressIn) (changeAddressOut, error) {
	out := changeAddressOut{CustomerID: in.CustomerID}
	err := o.inTx(ctx, func(tx *sql.Tx) error {
		was, err := customerBy(ctx, tx, "id", in.CustomerID)
		if err != nil {
			return err
		}
		out.Version = was.Version
		if in.apply(was) == was {
			out.Already = true
			return nil
		}
		out.Version++
		_, err = tx.ExecContext(ctx, `UPDATE customers SET street = ?, postcode = ?, city = ?, country = ?, version = ? WHERE id = ?`,
			in.Street, in.Postcode, in.City, in.Country, out.Version, in.CustomerID)
		return err
	})
	return out, err
}

// addressHooks show the change as a unified diff, bound to the version that it
// was made from: where somebody else was first, the call is asked again.
func (o *Office) addressHooks() ringi.ToolHooks {
	return ringi.ToolHooks{
		Preview: func(ctx context.Context, call ringi.ToolCall) (ringi.Preview, error) {
			in, was, err := o.addressOf(ctx, call)
			if err != nil {
				return ringi.Preview{}, err
			}
			return ringi.Preview{Text: addressDiff(was, in.apply(was)), Format: "diff", Precondition: addressVersion(was)}, nil
		},
		Check: func(ctx context.Context, call ringi.ToolCall, precondition string) error {
			in, now, err := o.addressOf(ctx, call)
			if err != nil {
				return err
			}
			if addressVersion(now) != precondition && in.apply(now) != now {
				return fmt.Errorf("the address of %s has changed since: it was %s and is %s", now.ID, precondition, addressVersion(now))
			}
			return nil
		},
	}
}

func (o *Office) addressOf(ctx context.Context, call ringi.ToolCall) (changeAddressIn, customer, error) {
	var in changeAddressIn
	if err := json.Unmarshal([]byte(call.Input), &in); err != nil {
		return in, customer{}, fmt.Errorf("read input: %w", err)
	}
	c, err := customerBy(ctx, o.db, "id", in.CustomerID)
	return in, c, err
}

func addressVersion(c customer) string { return fmt.Sprintf("%s version %d", c.ID, c.Version) }

// addressDiff is a unified diff of two address cards with all lines as
// context. A run of changed lines has the old ones first.
func addressDiff(was, will customer) string {
	a, b := addressCard(was), addressCard(will)
	if was == will {
		return "No difference: the address is the same already.\n"
	}
	var out, plus strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s version %d\n@@ -1,%d +1,%d @@\n", addressVersion(was), was.ID, was.Version+1, len(a), len(b))
	for i := range a {
		if a[i] == b[i] {
			out.WriteString(plus.String())
			plus.Reset()
			out.WriteString(" " + a[i] + "\n")
			continue
		}
		out.WriteString("-" + a[i] + "\n")
		plus.WriteString("+" + b[i] + "\n")
	}
	return out.String() + plus.String()
}

// addressCard has one line a field, so two cards compare line by line.
func addressCard(c customer) []string {
	return []string{
		"name:     " + oneLine(c.Name),
		"street:   " + oneLine(c.Street),
		"postcode: " + oneLine(c.Postcode),
		"city:     " + oneLine(c.City),
		"country:  " + oneLine(c.Country),
	}
}
