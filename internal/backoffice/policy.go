package backoffice

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
)

type refundPolicyIn struct {
	Topic string `json:"topic" jsonschema:"damaged, lost, late, change_of_mind or goodwill"`
}

type policyText struct {
	Topic string `json:"topic"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

func (o *Office) refundPolicy(ctx context.Context, in refundPolicyIn) (policyText, error) {
	p := policyText{Topic: in.Topic}
	err := o.db.QueryRowContext(ctx, `SELECT title, body FROM policies WHERE topic = ?`, in.Topic).Scan(&p.Title, &p.Text)
	if errors.Is(err, sql.ErrNoRows) {
		return p, ringi.NotDone(fmt.Errorf("there is no policy on %q: ask for damaged, lost, late, change_of_mind or goodwill", in.Topic))
	}
	if err != nil {
		return p, fmt.Errorf("read policy: %w", err)
	}
	return p, nil
}
