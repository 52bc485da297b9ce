package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
)

// StartSession begins a session of a user and returns its secret, the value of
// the cookie. auth is [AuthSession] or [AuthLink]. replaces is the secret of
// the session that the browser had, if any: it ends, so that a login never goes
// on under a secret that somebody knew before.
//
// Errors: [ringi.ErrNoPrincipal] where the user is disabled or unknown,
// [ErrInvalid] for another auth.
func (d *Directory) StartSession(ctx context.Context, user, auth, replaces string) (string, error) {
	if auth != AuthSession && auth != AuthLink {
		return "", fmt.Errorf("start session: %w: auth %q", ErrInvalid, auth)
	}
	var secret string
	err := d.change(ctx, func(tx *tx) (err error) {
		secret, err = tx.startSession(user, auth, replaces)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("start session: %w", err)
	}
	return secret, nil
}

func (tx *tx) startSession(user, auth, replaces string) (string, error) {
	enabled, err := tx.hold(user)
	switch {
	case err != nil:
		return "", err
	case !enabled:
		return "", fmt.Errorf("%w: the user is disabled or gone", ringi.ErrNoPrincipal)
	}
	secret := newSecret()
	if err := tx.exec(`INSERT INTO sessions (space, hash, user_id, auth, created_at, seen_at) VALUES (?, ?, ?, ?, ?, ?)`,
		tx.d.o.Space, hashed(sessionLabel, secret), user, auth, tx.now, tx.now); err != nil {
		return "", notRecorded(err)
	}
	if isSecret(replaces) {
		if err := tx.exec(`DELETE FROM sessions WHERE space = ? AND hash = ?`, tx.d.o.Space, hashed(sessionLabel, replaces)); err != nil {
			return "", notRecorded(err)
		}
	}
	return secret, tx.note(Who{Principal: ringi.Principal{ID: user, Auth: auth}}, "session.started", user, "")
}

// EndSession ends the session that w came by: a log-out. Without a session it
// does nothing.
func (d *Directory) EndSession(ctx context.Context, w Who) error {
	if w.session == "" {
		return nil
	}
	err := d.change(ctx, func(tx *tx) error {
		n, err := tx.changed(`DELETE FROM sessions WHERE space = ? AND hash = ?`, d.o.Space, w.session)
		if err != nil {
			return notRecorded(err)
		}
		if n == 0 {
			return nil
		}
		return tx.note(w, "session.ended", w.Principal.ID, "")
	})
	if err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	return nil
}

// EndSessions ends all sessions and login links of a user. It asks for the
// right to [UsersManage], unless the user is who asks, in a session of his own.
func (d *Directory) EndSessions(ctx context.Context, by Who, user string) error {
	err := d.may(by, UsersManage, All)
	if by.session != "" && by.Space == d.o.Space && by.Principal.ID == user {
		err = nil
	}
	if err == nil {
		err = d.change(ctx, func(tx *tx) error {
			if err := tx.endSessions(user); err != nil {
				return err
			}
			return tx.note(by, "sessions.ended", user, "")
		})
	}
	if err != nil {
		return fmt.Errorf("end sessions: %w", err)
	}
	return nil
}

func (tx *tx) endSessions(user string) error {
	for _, table := range []string{"sessions", "links"} {
		if err := tx.exec(`DELETE FROM `+table+` WHERE space = ? AND user_id = ?`, tx.d.o.Space, user); err != nil {
			return notRecorded(err)
		}
	}
	return nil
}

// BySession returns whose session a secret is. Every refusal (no secret at all,
// unknown, idle for too long, too old, user disabled) is
// [ringi.ErrNoPrincipal].
func (d *Directory) BySession(ctx context.Context, secret string) (Who, error) {
	if !isSecret(secret) {
		return Who{}, fmt.Errorf("read session: %w", ringi.ErrNoPrincipal)
	}
	w, err := d.bySession(ctx, hashed(sessionLabel, secret))
	if err != nil {
		return Who{}, err
	}
	w.csrf = csrfToken(secret)
	d.seen.note(seenSession, w.session, d.now())
	return w, nil
}

// bySession reads a session without using it.
func (d *Directory) bySession(ctx context.Context, hash string) (Who, error) {
	var kept, user, auth string
	var created, used int64
	err := d.row(ctx, `SELECT hash, user_id, auth, created_at, seen_at FROM sessions WHERE space = ? AND hash = ?`, d.o.Space, hash).
		Scan(&kept, &user, &auth, &created, &used)
	switch {
	case none(err):
		return Who{}, fmt.Errorf("read session: %w", ringi.ErrNoPrincipal)
	case err != nil:
		return Who{}, fmt.Errorf("read session: %w", err)
	case !equal(kept, hash):
		return Who{}, fmt.Errorf("read session: %w", ringi.ErrNoPrincipal)
	}
	if auth == AuthLink && d.o.NoLinks {
		return Who{}, fmt.Errorf("read session: %w: login links are switched off", ringi.ErrNoPrincipal)
	}
	now := d.now()
	used = max(used, d.seen.at(seenSession, hash))
	if now >= used+d.o.SessionIdle.Microseconds() || now >= created+d.o.SessionAge.Microseconds() {
		return Who{}, fmt.Errorf("read session: %w: the session has ended", ringi.ErrNoPrincipal)
	}
	w, err := d.enter(ctx, user, auth)
	if err != nil {
		return Who{}, fmt.Errorf("read session: %w", err)
	}
	w.session = hash
	return w, nil
}

// Recheck reads the rights of w anew, for a stream or a long poll that goes on:
// do it every few seconds, and end where it errs. It does not count as a use of
// the session.
func (d *Directory) Recheck(ctx context.Context, w Who) (Who, error) {
	switch {
	case w.Space != d.o.Space:
	case w.session != "":
		fresh, err := d.bySession(ctx, w.session)
		fresh.csrf, fresh.Network = w.csrf, w.Network
		return fresh, err
	case w.TokenID != "":
		t, _, err := scanToken(d.row(ctx, tokenColumns+`WHERE space = ? AND id = ?`, d.o.Space, w.TokenID).Scan)
		if err != nil && !none(err) {
			return Who{}, fmt.Errorf("read token: %w", err)
		}
		if err == nil {
			fresh, err := d.speaker(ctx, t)
			fresh.Network = w.Network
			return fresh, err
		}
	case w.Principal.Auth == AuthOperator && slices.Equal(w.Roles, []Role{RoleAdmin}):
		return w, nil
	}
	return Who{}, fmt.Errorf("recheck: %w", ringi.ErrNoPrincipal)
}
