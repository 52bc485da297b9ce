package notify

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

// Escalation says when people are reminded of an agent's requests, and which
// team takes over then. The zero value reminds nobody.
type Escalation struct {
	// After is how long a request waits before its deciders are reminded, once.
	After time.Duration
	// Share does the same as a share of the time until it expires, in percent (1
	// to 99), and counts where After is 0. A request that never expires has none.
	Share int
	// Then is the team that the request is handed to when as much time again has
	// passed, or three fifths of what was left at the reminder, whichever is less:
	// with a Share of 50, at 80 percent. Empty: nobody.
	Then string
}

// times are when a request is reminded of and handed over; zero for never. What
// would be due at the expiry or behind it never is.
func (e Escalation) times(created, expires time.Time) (remind, then time.Time) {
	after := e.After
	if after == 0 && e.Share > 0 && !expires.IsZero() {
		after = expires.Sub(created) / 100 * time.Duration(e.Share)
	}
	if after <= 0 || !expires.IsZero() && !created.Add(after).Before(expires) {
		return time.Time{}, time.Time{}
	}
	remind = created.Add(after)
	if e.Then == "" {
		return remind, time.Time{}
	}
	then = remind.Add(after)
	if late := remind.Add(expires.Sub(remind) * 3 / 5); !expires.IsZero() && late.Before(then) {
		then = late
	}
	return remind, then
}

// dueIDs lists requests of which a time has come.
func (d *Dispatcher) dueIDs(ctx context.Context, column string) (ids, teams []string, err error) {
	err = d.o.Book.list(ctx, func(rows *sql.Rows) error {
		var id, team string
		err := rows.Scan(&id, &team)
		ids, teams = append(ids, id), append(teams, team)
		return err
	}, `SELECT id, team FROM notify_requests WHERE space = ? AND `+column+` > 0 AND `+column+` <= ? ORDER BY `+column+` LIMIT 200`,
		d.space(), sqltable.Micros(d.o.Book.now()))
	return ids, teams, err
}

// remind owes the deciders of requests a reminder.
func (d *Dispatcher) remind(ctx context.Context) error {
	ids, _, err := d.dueIDs(ctx, "remind_at")
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		errs = append(errs, d.remindOf(ctx, id))
	}
	return errors.Join(errs...)
}

func (d *Dispatcher) remindOf(ctx context.Context, id string) error {
	still, err := d.pending(ctx, id)
	if err != nil {
		return err
	}
	if !still {
		return d.o.Book.done(ctx, id)
	}
	r, err := d.o.Service.Request(ctx, id)
	if errors.Is(err, ringi.ErrCorrupt) {
		return d.o.Book.done(ctx, id)
	}
	if err != nil {
		return err
	}
	people, err := d.deciders(ctx, r)
	if err != nil {
		return err
	}
	settings, err := d.settings(ctx, people)
	if err != nil {
		return err
	}
	return d.o.Book.change(ctx, func(tx *tx) error {
		n, err := tx.changed(`UPDATE notify_requests SET remind_at = 0 WHERE space = ? AND id = ? AND remind_at > 0`, d.space(), id)
		if err != nil || n == 0 {
			return err
		}
		for i, u := range people {
			if err := tx.owe(u.ID, r, Reminder, settings[i].of(Reminder).When(tx.now, r.ExpiresAt, d.o.Gather)); err != nil {
				return err
			}
		}
		return nil
	})
}

// System is who hands requests over that nobody decided in time: no person, and
// recorded as what it is.
var System = ringi.Principal{ID: "ringi:notifier", Name: "Ringi, since nobody decided in time", Kind: ringi.Process, Admin: true, Auth: "system"}

// handOver gives requests to the team that is next.
func (d *Dispatcher) handOver(ctx context.Context) error {
	ids, teams, err := d.dueIDs(ctx, "then_at")
	if err != nil {
		return err
	}
	var errs []error
	for i, id := range ids {
		errs = append(errs, d.handOverOne(ctx, id, teams[i]))
	}
	return errors.Join(errs...)
}

// final are errors that no later try makes good.
var final = []error{ringi.ErrNotPermitted, ringi.ErrCorrupt, ringi.ErrNotFound, ringi.ErrStale, ringi.ErrExpired, ringi.ErrWithdrawn, ringi.ErrAnswer, ringi.ErrFinal}

func (d *Dispatcher) handOverOne(ctx context.Context, id, team string) error {
	still, err := d.pending(ctx, id)
	if err != nil {
		return err
	}
	if still && !d.reachable(ctx, team) {
		d.log.Error("hand request over: nobody of the team may decide, so it stays where it is", "request", id, "team", team)
	} else if still {
		_, err = d.o.Service.Reassign(ctx, id, ringi.Deciders{Teams: []string{team}}, System, "nobody decided in time")
		if err == nil {
			d.log.Info("handed request over", "request", id, "team", team)
		}
	}
	_, decided := errors.AsType[*ringi.DecidedError](err)
	if err != nil && !decided && !slices.ContainsFunc(final, func(e error) bool { return errors.Is(err, e) }) {
		d.log.Warn("hand request over", "request", id, "team", team, "again", true, "error", err)
		return d.o.Book.change(ctx, func(tx *tx) error {
			return tx.exec(`UPDATE notify_requests SET then_at = ? WHERE space = ? AND id = ?`, sqltable.Micros(tx.now.Add(30*time.Second)), d.space(), id)
		})
	}
	if err != nil && !decided {
		d.log.Error("hand request over", "request", id, "team", team, "error", err)
	}
	return d.o.Book.change(ctx, func(tx *tx) error {
		return tx.exec(`UPDATE notify_requests SET then_at = 0 WHERE space = ? AND id = ?`, d.space(), id)
	})
}

// reachable reports whether a team has anybody who may decide. Where that is not
// known it has.
func (d *Dispatcher) reachable(ctx context.Context, team string) bool {
	roster, err := d.roster(ctx)
	return err != nil || slices.ContainsFunc(roster, func(u access.User) bool { return slices.Contains(u.Teams, team) })
}

// done ends what time would do with a request.
func (b *Book) done(ctx context.Context, id string) error {
	return b.change(ctx, func(tx *tx) error {
		return tx.exec(`UPDATE notify_requests SET remind_at = 0, then_at = 0 WHERE space = ? AND id = ?`, b.o.Space, id)
	})
}

// The ages at which what is over is forgotten.
const (
	letterAge  = 7 * 24 * time.Hour
	requestAge = 30 * 24 * time.Hour
)

// tend forgets what is over, once an hour.
func (d *Dispatcher) tend(ctx context.Context) error {
	b := d.o.Book
	now := b.now()
	if now.Sub(d.tended) < time.Hour {
		return nil
	}
	d.tended = now
	err := b.change(ctx, func(tx *tx) error {
		// Even one that waits is dead by then: it was tried for a day, or its channel
		// is gone.
		old := []any{b.o.Space, sqltable.Micros(now.Add(-letterAge - d.o.GiveUp))}
		if err := tx.exec(`DELETE FROM notify_letter_requests WHERE space = ? AND letter IN
			(SELECT id FROM notify_letters WHERE space = ? AND made_at < ?)`, append([]any{b.o.Space}, old...)...); err != nil {
			return err
		}
		return tx.exec(`DELETE FROM notify_letters WHERE space = ? AND made_at < ?`, old...)
	})
	if err != nil {
		return err
	}
	return d.forget(ctx, now.Add(-requestAge))
}

// forget drops old requests that wait no more. One that waits stays, however
// old: people would be told of it anew.
func (d *Dispatcher) forget(ctx context.Context, before time.Time) error {
	b := d.o.Book
	if !d.pruneFrom.Before(before) {
		d.pruneFrom = time.Time{}
	}
	var ids []string
	var last int64
	err := b.list(ctx, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id, &last)
		ids = append(ids, id)
		return err
	}, `SELECT id, created_at FROM notify_requests WHERE space = ? AND created_at < ? AND created_at >= ? ORDER BY created_at LIMIT 2000`,
		d.space(), sqltable.Micros(before), sqltable.Micros(d.pruneFrom))
	if err != nil {
		return err
	}
	d.pruneFrom = sqltable.Time(last)
	for _, id := range ids {
		if still, err := d.pending(ctx, id); err != nil {
			return err
		} else if still {
			continue
		}
		err := b.change(ctx, func(tx *tx) error {
			if err := tx.exec(`DELETE FROM notify_owed WHERE space = ? AND request = ?`, b.o.Space, id); err != nil {
				return err
			}
			return tx.exec(`DELETE FROM notify_requests WHERE space = ? AND id = ?`, b.o.Space, id)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
