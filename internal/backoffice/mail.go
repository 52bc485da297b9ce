package backoffice

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
)

// Mail is a mail in the outbox. It goes nowhere: the outbox is the end.
type Mail struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

type sendMailOut struct {
	MailID string `json:"mail_id"`
	To     string `json:"to"`
	Repeat bool   `json:"repeat,omitzero" jsonschema:"this very call was sent before; nothing was sent twice"`
}

// sendMail puts a mail in the outbox, once a key, and to customers alone.
func (o *Office) sendMail(ctx context.Context, in Mail) (sendMailOut, error) {
	tc, ok := ringi.ToolContextFrom(ctx)
	if !ok || tc.Key == "" {
		return sendMailOut{}, errNoKey
	}
	out := sendMailOut{To: in.To}
	err := o.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := customerBy(ctx, tx, "mail", in.To); err != nil {
			return err
		}
		id, err := mailBy(ctx, tx, tc.Key)
		if err == nil {
			out.MailID, out.Repeat = id, true
			return nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		res, err := tx.ExecContext(ctx, `INSERT INTO outbox (recipient, subject, body, key, at) VALUES (?, ?, ?, ?, ?)`, in.To, in.Subject, in.Body, tc.Key, o.timestamp())
		if err != nil {
			return err
		}
		n, err := res.LastInsertId()
		out.MailID = mailID(n)
		return err
	})
	return out, err
}

func mailID(n int64) string { return fmt.Sprintf("M-%d", n) }

// mailBy finds a mail by its key; sql.ErrNoRows where there is none.
func mailBy(ctx context.Context, q querier, key string) (string, error) {
	var n int64
	err := q.QueryRowContext(ctx, `SELECT id FROM outbox WHERE key = ?`, key).Scan(&n)
	return mailID(n), err
}

// Outbox returns the mails, oldest first.
func (o *Office) Outbox(ctx context.Context) ([]Mail, error) {
	rows, err := o.db.QueryContext(ctx, `SELECT recipient, subject, body FROM outbox ORDER BY id`)
	list, err := collect(rows, err, func(r *sql.Rows, m *Mail) error { return r.Scan(&m.To, &m.Subject, &m.Body) })
	if err != nil {
		return nil, fmt.Errorf("read outbox: %w", err)
	}
	return list, nil
}

// mailHooks show the mail as it would be sent, and find a call that a crash
// left open: what is in the outbox was sent.
func (o *Office) mailHooks() ringi.ToolHooks {
	return ringi.ToolHooks{
		Preview: func(ctx context.Context, call ringi.ToolCall) (ringi.Preview, error) {
			var in Mail
			if err := json.Unmarshal([]byte(call.Input), &in); err != nil {
				return ringi.Preview{}, fmt.Errorf("read input: %w", err)
			}
			c, err := customerBy(ctx, o.db, "mail", in.To)
			if err != nil {
				return ringi.Preview{}, err
			}
			text := fmt.Sprintf("To: %s <%s>\nSubject: %s\n\n%s\n", oneLine(c.Name), c.Mail, oneLine(in.Subject), in.Body)
			return ringi.Preview{Text: text, Format: "mail"}, nil
		},
		Lookup: func(ctx context.Context, key string) (ringi.ToolResult, bool, error) {
			var to string
			id, err := mailBy(ctx, o.db, key)
			if err == nil {
				err = o.db.QueryRowContext(ctx, `SELECT recipient FROM outbox WHERE key = ?`, key).Scan(&to)
			}
			if errors.Is(err, sql.ErrNoRows) {
				return ringi.ToolResult{}, false, nil
			}
			if err != nil {
				return ringi.ToolResult{}, false, fmt.Errorf("look mail up: %w", err)
			}
			return ringi.ToolResult{Output: string(encode(sendMailOut{MailID: id, To: to}))}, true, nil
		},
	}
}
