package access

import (
	"context"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi/internal/sqltable"
)

// MakeLink makes a login link of a user and returns its secret, for the server
// to put into an address: it is good once, and for ten minutes. It is shown to
// that person alone and never logged.
//
// It asks for the right to [UsersManage], and is not for tokens: no token turns
// into a session.
//
// Errors: [ErrForbidden], [ErrHidden] where there is no such user, or he is
// disabled.
func (d *Directory) MakeLink(ctx context.Context, by Who, user string) (secret string, ends time.Time, err error) {
	err = d.may(by, UsersManage, All)
	if err == nil && d.o.NoLinks {
		err = fmt.Errorf("%w: login links are switched off", ErrForbidden)
	}
	if err == nil && by.TokenID != "" {
		err = fmt.Errorf("%w: a token makes no login links", ErrForbidden)
	}
	if err == nil {
		secret = newSecret()
		err = d.change(ctx, func(tx *tx) error {
			enabled, err := tx.hold(user)
			switch {
			case err != nil:
				return err
			case !enabled:
				return ErrHidden
			}
			end := tx.now + d.o.LinkAge.Microseconds()
			ends = sqltable.Time(end)
			if err := tx.exec(`INSERT INTO links (space, hash, user_id, created_at, ends_at, used_at) VALUES (?, ?, ?, ?, ?, 0)`,
				d.o.Space, hashed(linkLabel, secret), user, tx.now, end); err != nil {
				return notRecorded(err)
			}
			return tx.note(by, "link.made", user, "")
		})
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("make login link: %w", err)
	}
	return secret, ends, nil
}

// UseLink spends a login link and begins a session; see [Directory.StartSession]
// for replaces. Of any number of uses at once one works. Only a POST may call
// it: previews of mail programs follow links.
//
// Errors: [ErrLink] for every link that is not good.
func (d *Directory) UseLink(ctx context.Context, secret, replaces string) (session string, err error) {
	if !isSecret(secret) || d.o.NoLinks {
		return "", fmt.Errorf("use login link: %w", ErrLink)
	}
	err = d.change(ctx, func(tx *tx) error {
		hash := hashed(linkLabel, secret)
		n, err := tx.changed(`UPDATE links SET used_at = ? WHERE space = ? AND hash = ? AND used_at = 0 AND ends_at > ?`,
			tx.now, d.o.Space, hash, tx.now)
		if err != nil {
			return notRecorded(err)
		}
		if n == 0 {
			return ErrLink
		}
		var user string
		if err := tx.row(`SELECT user_id FROM links WHERE space = ? AND hash = ?`, d.o.Space, hash).Scan(&user); err != nil {
			return notRecorded(err)
		}
		session, err = tx.startSession(user, AuthLink, replaces)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("use login link: %w", err)
	}
	return session, nil
}
