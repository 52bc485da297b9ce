package notify

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

// Channel is a way to reach somebody.
type Channel string

// The channels.
const (
	ChannelMail Channel = "mail"
	ChannelPush Channel = "push"
	ChannelNtfy Channel = "ntfy"
)

// letter is one notice to one address: written in the transaction that settles
// what is owed, and sent afterwards.
type letter struct {
	id, user string
	channel  Channel
	device   string // for push
	kind     Kind
	run      string // empty for a digest
	tries    int
	made     time.Time
	due      time.Time
	requests []string
}

// The states of a letter.
const (
	waits   = "waits"
	sent    = "sent"
	moot    = "moot"     // nothing of it waits any more, or nobody is there
	givenUp = "given_up" // see its why
)

// write keeps a letter to be sent now. Where one like it was not sent yet, that
// one takes on its requests: a channel that comes back says a thing once.
func (tx *tx) write(l letter) error {
	space := tx.b.o.Space
	err := tx.row(`SELECT id FROM notify_letters WHERE space = ? AND channel = ? AND state = ? AND user_id = ? AND device = ? AND kind = ? AND run = ? LIMIT 1`,
		space, string(l.channel), waits, l.user, l.device, string(l.kind), l.run).Scan(&l.id)
	if err == sql.ErrNoRows {
		l.id = ringi.NewID("ntc_", tx.now)
		err = tx.exec(`INSERT INTO notify_letters (space, id, user_id, channel, device, kind, run, state, tries, made_at, due_at, ended_at, why)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, 0, '')`,
			space, l.id, l.user, string(l.channel), l.device, string(l.kind), l.run, waits, sqltable.Micros(tx.now), sqltable.Micros(tx.now))
	}
	if err != nil {
		return err
	}
	for _, r := range l.requests {
		if err := tx.exec(`INSERT INTO notify_letter_requests (space, letter, request) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, space, l.id, r); err != nil {
			return err
		}
	}
	return nil
}

// sendLease is how long a letter that is being sent is nobody else's. A process
// that dies in between leaves it to be sent again: twice at most, as it may have
// gone out.
const sendLease = time.Minute

// claim takes letters of a channel that are due.
func (b *Book) claim(ctx context.Context, c Channel, limit int) ([]letter, error) {
	now := b.now()
	var due []letter
	err := b.list(ctx, func(rows *sql.Rows) error {
		var l letter
		var made, dueAt int64
		if err := rows.Scan(&l.id, &l.user, &l.device, &l.kind, &l.run, &l.tries, &made, &dueAt); err != nil {
			return err
		}
		l.channel, l.made, l.due = c, sqltable.Time(made), sqltable.Time(dueAt)
		due = append(due, l)
		return nil
	}, `SELECT id, user_id, device, kind, run, tries, made_at, due_at FROM notify_letters
		WHERE space = ? AND channel = ? AND state = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?`, b.o.Space, string(c), waits, sqltable.Micros(now), limit)
	if err != nil || len(due) == 0 {
		return nil, err
	}
	var mine []letter
	err = b.change(ctx, func(tx *tx) error {
		mine = nil
		for _, l := range due {
			n, err := tx.changed(`UPDATE notify_letters SET tries = tries + 1, due_at = ? WHERE space = ? AND id = ? AND state = ? AND due_at = ?`,
				sqltable.Micros(now.Add(sendLease)), b.o.Space, l.id, waits, sqltable.Micros(l.due))
			if err != nil {
				return err
			}
			if n == 1 {
				l.tries++
				mine = append(mine, l)
			}
		}
		return nil
	})
	return mine, err
}

// about lists what a letter is about.
func (b *Book) about(ctx context.Context, id string) ([]known, error) {
	var out []known
	err := b.list(ctx, func(rows *sql.Rows) error {
		var k known
		var expires int64
		if err := rows.Scan(&k.id, &k.run, &k.agent, &k.risk, &expires); err != nil {
			return err
		}
		k.expires = sqltable.Time(expires)
		out = append(out, k)
		return nil
	}, `SELECT r.id, r.run, r.agent, r.risk, r.expires_at FROM notify_letter_requests l JOIN notify_requests r ON r.space = l.space AND r.id = l.request
		WHERE l.space = ? AND l.letter = ? ORDER BY r.id`, b.o.Space, id)
	if err != nil {
		return nil, fmt.Errorf("read letter %s: %w", id, err)
	}
	return out, nil
}

// end records what became of a letter.
func (b *Book) end(ctx context.Context, id, state, why string) error {
	return b.change(ctx, func(tx *tx) error {
		return tx.exec(`UPDATE notify_letters SET state = ?, ended_at = ?, why = ? WHERE space = ? AND id = ?`, state, sqltable.Micros(tx.now), why, b.o.Space, id)
	})
}

// putOff lets a letter be tried again later.
func (b *Book) putOff(ctx context.Context, id, why string, d time.Duration) error {
	return b.change(ctx, func(tx *tx) error {
		return tx.exec(`UPDATE notify_letters SET due_at = ?, why = ? WHERE space = ? AND id = ?`, sqltable.Micros(tx.now.Add(d)), why, b.o.Space, id)
	})
}
