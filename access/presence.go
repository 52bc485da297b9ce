package access

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi/internal/sqltable"
)

// Look is somebody who has a request before him.
type Look struct {
	Request string
	User    string
	Name    string
	Until   time.Time
}

// Look says that w has a request before him, for the next 30 seconds, and that he
// had: see [Directory.Opened]. The caller has asked [May] for [ApprovalsRead].
// Only people look.
func (d *Directory) Look(ctx context.Context, w Who, request string) error {
	err := d.ofAPerson(w)
	if err == nil && (request == "" || len(request) > 255) {
		err = ErrInvalid
	}
	if err == nil {
		err = d.change(ctx, func(tx *tx) error {
			if err := tx.exec(`INSERT INTO presence (space, request, user_id, until) VALUES (?, ?, ?, ?)
				ON CONFLICT (space, request, user_id) DO UPDATE SET until = excluded.until`,
				d.o.Space, request, w.Principal.ID, tx.now+d.o.PresenceAge.Microseconds()); err != nil {
				return notRecorded(err)
			}
			if err := tx.exec(`INSERT INTO opened (space, user_id, request, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
				d.o.Space, w.Principal.ID, request, tx.now); err != nil {
				return notRecorded(err)
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("look at request: %w", err)
	}
	return nil
}

// LookAway takes a look back.
func (d *Directory) LookAway(ctx context.Context, w Who, request string) error {
	err := d.change(ctx, func(tx *tx) error {
		if err := tx.exec(`DELETE FROM presence WHERE space = ? AND request = ? AND user_id = ?`,
			d.o.Space, request, w.Principal.ID); err != nil {
			return notRecorded(err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look away: %w", err)
	}
	return nil
}

// Looking lists who has a request before him, but w himself. The caller has
// asked [May] for [ApprovalsRead].
func (d *Directory) Looking(ctx context.Context, w Who, request string) ([]Look, error) {
	var out []Look
	err := d.list(ctx, func(rows *sql.Rows) error {
		l := Look{Request: request}
		var until int64
		err := rows.Scan(&l.User, &l.Name, &until)
		l.Until = sqltable.Time(until)
		out = append(out, l)
		return err
	}, `SELECT p.user_id, u.name, p.until FROM presence p JOIN users u ON u.space = p.space AND u.id = p.user_id
		WHERE p.space = ? AND p.request = ? AND p.user_id <> ? AND p.until > ? AND u.disabled = 0 ORDER BY p.user_id`,
		d.o.Space, request, w.Principal.ID, d.now())
	if err != nil {
		return nil, fmt.Errorf("list who is looking: %w", err)
	}
	return out, nil
}
