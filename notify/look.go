package notify

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

// overlap is how far behind the newest request a look goes back: commits may
// become visible in another order than their times say.
const overlap = time.Minute

// look finds pending requests that are new: newest first, and no further than
// those that it knows. The first look goes through all that are pending, as
// they may have come while nobody looked.
func (d *Dispatcher) look(ctx context.Context) error {
	horizon, mark := d.mark.Add(-overlap), d.mark
	q := ringi.RequestQuery{Space: d.space(), Order: ringi.NewestFirst, Limit: 20}
	for id := range d.later {
		d.meet(ctx, id)
	}
	for {
		rows, err := d.o.Store.Requests(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.CreatedAt.After(mark) {
				mark = row.CreatedAt
			}
			if _, seen := d.known[row.ID]; !seen {
				if err := ctx.Err(); err != nil {
					return err // the next look begins where this one did
				}
				d.meet(ctx, row.ID)
				d.known[row.ID] = row.CreatedAt
			}
		}
		if len(rows) < q.Limit || rows[len(rows)-1].CreatedAt.Before(horizon) {
			break
		}
		q.After, q.Limit = rows[len(rows)-1].ID, 500
	}
	d.mark = mark
	for id, made := range d.known {
		if made.Before(mark.Add(-2 * overlap)) {
			delete(d.known, id)
		}
	}
	return nil
}

// meet takes a request on; one that cannot be read now is tried again with the
// next look.
func (d *Dispatcher) meet(ctx context.Context, id string) {
	err := d.take(ctx, id)
	if ctx.Err() != nil {
		d.later[id] = true
		return
	}
	waits := err != nil && !errors.Is(err, ringi.ErrNotFound) && !errors.Is(err, ringi.ErrCorrupt)
	if err != nil && !d.later[id] {
		d.log.Warn("take on request", "request", id, "again", waits, "error", err)
	}
	if waits {
		d.later[id] = true
	} else {
		delete(d.later, id)
	}
}

// known is what is kept of a request.
type known struct {
	id, run, agent string
	risk           Risk
	expires        time.Time
}

// take keeps a request that is new, with who is owed a notice of it.
func (d *Dispatcher) take(ctx context.Context, id string) error {
	var n int
	err := d.o.Book.db.QueryRowContext(ctx, d.o.Book.bind(`SELECT count(*) FROM notify_requests WHERE space = ? AND id = ?`), d.space(), id).Scan(&n)
	if err != nil || n > 0 {
		return err
	}
	row, err := d.o.Store.Request(ctx, d.space(), id)
	if err != nil {
		return err
	}
	r, err := d.o.Service.Request(ctx, id)
	if err != nil || r.State != ringi.Pending {
		return err
	}
	people, err := d.deciders(ctx, r)
	if err != nil {
		return err
	}
	if len(people) == 0 {
		d.log.Warn("nobody can be told of a request: no user may decide it", "request", id, "agent", row.Agent)
	}
	settings, err := d.settings(ctx, people)
	if err != nil {
		return err
	}
	esc := d.o.Escalations[row.Agent]
	if slices.Equal(r.Deciders.Teams, []string{esc.Then}) && len(r.Deciders.People) == 0 {
		esc.Then = "" // it was handed over already
	}
	if r.Kind == ringi.KindOutcome {
		esc.Then = "" // an outcome is not handed over
	}
	remind, then := esc.times(r.CreatedAt, r.ExpiresAt)
	if !remind.After(d.o.Book.now()) {
		remind = time.Time{} // it is found late: the first notice is reminder enough
	}
	return d.o.Book.change(ctx, func(tx *tx) error {
		n, err := tx.changed(`INSERT INTO notify_requests (space, id, run, agent, risk, created_at, expires_at, remind_at, then_at, team)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			d.space(), r.ID, r.RunID, row.Agent, string(riskOf(r)), sqltable.Micros(r.CreatedAt), sqltable.Micros(r.ExpiresAt), sqltable.Micros(remind), sqltable.Micros(then), esc.Then)
		if err != nil || n == 0 {
			return err
		}
		for i, u := range people {
			if told, err := tx.toldOf(u.ID, r); err != nil {
				return err
			} else if told {
				continue
			}
			if err := tx.owe(u.ID, r, Asked, settings[i].When(tx.now, r.ExpiresAt, d.o.Gather)); err != nil {
				return err
			}
		}
		return nil
	})
}

// callKey is what a person is told of once: a call, or that its outcome is
// unknown.
func callKey(r ringi.ApprovalRequest) string {
	key := r.RunID + "/" + r.Call.ID
	if r.Kind == ringi.KindOutcome {
		key += "/outcome"
	}
	return key
}

// toldOf reports whether there is nothing new for somebody in a request: he made
// the proposal himself, or it took the place of one that he was told of, without
// other input.
func (tx *tx) toldOf(user string, r ringi.ApprovalRequest) (bool, error) {
	if user == r.ProposedBy {
		return true, nil
	}
	if r.Replaces == "" || r.ProposedBy != "" {
		return false, nil
	}
	var n int
	err := tx.row(`SELECT count(*) FROM notify_owed WHERE space = ? AND user_id = ? AND call_key = ?`, tx.b.o.Space, user, callKey(r)).Scan(&n)
	return n > 0, err
}

// owe keeps that somebody is to be told.
func (tx *tx) owe(user string, r ringi.ApprovalRequest, k Kind, due time.Time) error {
	return tx.exec(`INSERT INTO notify_owed (space, user_id, request, kind, run, call_key, since, due_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		tx.b.o.Space, user, r.ID, string(k), r.RunID, callKey(r), sqltable.Micros(tx.now), sqltable.Micros(due))
}

// deciders are the people who may decide a request.
func (d *Dispatcher) deciders(ctx context.Context, r ringi.ApprovalRequest) ([]access.User, error) {
	roster, err := d.roster(ctx)
	if err != nil {
		return nil, err
	}
	var out []access.User
	for _, u := range roster {
		named := r.Deciders.IsZero() || slices.Contains(r.Deciders.People, u.ID) ||
			slices.ContainsFunc(u.Teams, func(t string) bool { return slices.Contains(r.Deciders.Teams, t) })
		if !named || r.Tool.AdminOnly && !slices.Contains(u.Roles, access.RoleAdmin) {
			continue
		}
		if r.FourEyes {
			second, err := d.o.Directory.FourEyes(ctx, r.Initiators, ringi.Principal{ID: u.ID, Kind: ringi.Person})
			if err != nil {
				return nil, err
			}
			if !second {
				continue
			}
		}
		out = append(out, u)
	}
	return out, nil
}

// rosterAge is how long the list of approvers counts.
const rosterAge = 10 * time.Second

// roster lists the enabled approvers.
func (d *Dispatcher) roster(ctx context.Context) ([]access.User, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.asOf) < rosterAge {
		return d.people, nil
	}
	by := access.Operator("ringi:notifier", d.o.Directory.Space())
	var out []access.User
	for after := ""; ; {
		page, err := d.o.Directory.Users(ctx, by, after, 1000)
		if err != nil {
			return nil, err
		}
		for _, u := range page {
			if !u.Disabled && slices.Contains(u.Roles, access.RoleApprover) {
				out = append(out, u)
			}
			after = u.ID
		}
		if len(page) < 1000 {
			break
		}
	}
	d.people, d.asOf = out, time.Now()
	return out, nil
}

func (d *Dispatcher) settings(ctx context.Context, people []access.User) ([]Settings, error) {
	out := make([]Settings, len(people))
	var err error
	for i, u := range people {
		if out[i], err = d.o.Book.Settings(ctx, u.ID); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// pending reports whether a request still waits.
func (d *Dispatcher) pending(ctx context.Context, id string) (bool, error) {
	row, err := d.o.Store.Request(ctx, d.space(), id)
	if errors.Is(err, ringi.ErrNotFound) {
		return false, nil
	}
	return err == nil && row.State == ringi.Pending, err
}

// owed is a row of what somebody is to be told.
type owed struct {
	request, run string
	kind         Kind
	due          time.Time
}

// settleDue writes the letters that are due.
func (d *Dispatcher) settleDue(ctx context.Context) error {
	b := d.o.Book
	var users []string
	err := b.list(ctx, func(rows *sql.Rows) error {
		var u string
		err := rows.Scan(&u)
		users = append(users, u)
		return err
	}, `SELECT DISTINCT user_id FROM notify_owed WHERE space = ? AND due_at > 0 AND due_at <= ?`, d.space(), sqltable.Micros(b.now()))
	if err != nil {
		return err
	}
	for _, u := range users {
		if err := d.settle(ctx, u); err != nil {
			return fmt.Errorf("for %s: %w", u, err)
		}
	}
	return nil
}

// settle writes what somebody is owed: a letter a run, or one for all of it, to
// each of his addresses.
func (d *Dispatcher) settle(ctx context.Context, user string) error {
	b := d.o.Book
	s, err := b.Settings(ctx, user)
	if err != nil {
		return err
	}
	to, err := d.addresses(ctx, user, s)
	if err != nil {
		return err
	}
	list, err := b.owes(ctx, user)
	if err != nil {
		return err
	}
	list = dueTogether(list, s, b.now())
	still := map[string]bool{}
	for _, o := range list {
		if still[o.request], err = d.pending(ctx, o.request); err != nil {
			return err
		}
	}
	return b.change(ctx, func(tx *tx) error {
		type group struct {
			kind Kind
			run  string
		}
		groups := map[group][]string{}
		var order []group
		for _, o := range list {
			n, err := tx.changed(`UPDATE notify_owed SET due_at = 0 WHERE space = ? AND user_id = ? AND request = ? AND kind = ? AND due_at > 0`,
				b.o.Space, user, o.request, string(o.kind))
			if err != nil {
				return err
			}
			if n == 0 || !still[o.request] {
				continue
			}
			g := group{o.kind, o.run}
			if s.of(o.kind).Digest != AtOnce {
				g.run = ""
			}
			if groups[g] == nil {
				order = append(order, g)
			}
			groups[g] = append(groups[g], o.request)
		}
		for _, g := range order {
			for _, a := range to {
				if err := tx.write(letter{user: user, channel: a.channel, device: a.device, kind: g.kind, run: g.run, requests: groups[g]}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// dueTogether are those that are due, and what goes with them: the rest of the
// run, or of the digest.
func dueTogether(list []owed, s Settings, now time.Time) []owed {
	digest, runs := false, map[string]bool{}
	for _, o := range list {
		if !o.due.After(now) {
			runs[o.run] = true
			digest = digest || s.of(o.kind).Digest != AtOnce
		}
	}
	return slices.DeleteFunc(list, func(o owed) bool {
		return !runs[o.run] && !(digest && s.of(o.kind).Digest != AtOnce)
	})
}

func (b *Book) owes(ctx context.Context, user string) ([]owed, error) {
	var out []owed
	err := b.list(ctx, func(rows *sql.Rows) error {
		var o owed
		var due int64
		err := rows.Scan(&o.request, &o.run, &o.kind, &due)
		o.due = sqltable.Time(due)
		out = append(out, o)
		return err
	}, `SELECT request, run, kind, due_at FROM notify_owed WHERE space = ? AND user_id = ? AND due_at > 0 ORDER BY since, request`, b.o.Space, user)
	return out, err
}

// address is a way to one person.
type address struct {
	channel Channel
	device  string
	name    string
}

// addresses are the ways to a person who may still be told.
func (d *Dispatcher) addresses(ctx context.Context, user string, s Settings) ([]address, error) {
	roster, err := d.roster(ctx)
	if err != nil || !slices.ContainsFunc(roster, func(u access.User) bool { return u.ID == user }) {
		return nil, err
	}
	return d.waysTo(ctx, user, s)
}

func (d *Dispatcher) waysTo(ctx context.Context, user string, s Settings) ([]address, error) {
	var out []address
	if s.Mail != "" && s.Confirmed && d.Has(ChannelMail) {
		out = append(out, address{channel: ChannelMail, name: s.Mail})
	}
	if s.Topic != "" && d.Has(ChannelNtfy) {
		out = append(out, address{channel: ChannelNtfy, name: "ntfy"})
	}
	if s.NoPush || !d.Has(ChannelPush) {
		return out, nil
	}
	devices, err := d.o.Book.Devices(ctx, user)
	for _, dev := range devices {
		out = append(out, address{ChannelPush, dev.ID, dev.Name})
	}
	return out, err
}

func isHidden(err error) bool { return errors.Is(err, access.ErrHidden) }
