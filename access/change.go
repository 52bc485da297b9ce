package access

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

// Change is what somebody changed in the directory.
type Change struct {
	ID string
	At time.Time
	// By and Auth are who did it, and how he was authenticated.
	By, Auth string
	// What is the noun and the verb, such as "token.made" or "user.set".
	What string
	// Target is the id of what was changed. Detail says more to people; it never
	// holds a secret.
	Target, Detail string
}

// Changes lists what was changed behind the change with the id after, oldest
// first; empty begins. A limit of 0 means 100; at most 1,000. It asks for the
// right to [AuditRead] of all.
func (d *Directory) Changes(ctx context.Context, by Who, after string, limit int) ([]Change, error) {
	if err := d.may(by, AuditRead, All); err != nil {
		return nil, fmt.Errorf("list changes: %w", err)
	}
	var out []Change
	err := d.list(ctx, func(rows *sql.Rows) error {
		var c Change
		var when int64
		if err := rows.Scan(&c.ID, &when, &c.By, &c.Auth, &c.What, &c.Target, &c.Detail); err != nil {
			return err
		}
		c.At = sqltable.Time(when)
		out = append(out, c)
		return nil
	}, `SELECT id, at, by_id, auth, what, target, detail FROM changes WHERE space = ? AND id > ? ORDER BY id LIMIT ?`,
		d.o.Space, after, bounded(limit))
	if err != nil {
		return nil, fmt.Errorf("list changes: %w", err)
	}
	return out, nil
}

func bounded(limit int) int {
	if limit <= 0 {
		return 100
	}
	return min(limit, 1000)
}

// note records a change in the transaction that makes it.
func (tx *tx) note(by Who, what, target, detail string) error {
	err := tx.exec(`INSERT INTO changes (space, id, at, by_id, auth, what, target, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		tx.d.o.Space, ringi.NewID("chg_", sqltable.Time(tx.now)), tx.now, by.Principal.ID, by.Principal.Auth, what, target, detail)
	if err != nil {
		return notRecorded(err)
	}
	return nil
}

// may is May for the directory's own methods: another space's people are
// nobody here.
func (d *Directory) may(by Who, route Route, owner Owner) error {
	if by.Space != d.o.Space {
		return fmt.Errorf("%s: %w", route, ErrForbidden)
	}
	return May(by, route, owner)
}
