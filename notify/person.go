package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ringi-dev/ringi/internal/sqltable"
)

// Settings returns how a person is reached; the zero value where he has set
// nothing.
func (b *Book) Settings(ctx context.Context, user string) (Settings, error) {
	var s Settings
	err := b.db.QueryRowContext(ctx, b.bind(`SELECT mail, confirmed, topic, no_push, digest, minutes, daily_at, quiet_from, quiet_to, zone
		FROM notify_people WHERE space = ? AND user_id = ?`), b.o.Space, user).
		Scan(&s.Mail, &s.Confirmed, &s.Topic, &s.NoPush, &s.Digest, &s.Minutes, &s.At, &s.QuietFrom, &s.QuietTo, &s.Zone)
	if errors.Is(err, sql.ErrNoRows) {
		return Settings{}, nil
	}
	if err != nil {
		return Settings{}, fmt.Errorf("read settings of notices: %w", err)
	}
	return s, nil
}

// ErrSettings is a setting that makes no sense; its text is for the person.
var ErrSettings = errors.New("this setting is not taken")

// SetSettings keeps how a person is reached. What s says of Confirmed is not
// taken from it: an address stays confirmed while it stays the same, and a new
// one gets a mail with a code for [Book.Confirm]. What he is owed already comes
// as the new settings say.
//
// Errors: [ErrSettings].
func (b *Book) SetSettings(ctx context.Context, user string, s Settings) error {
	if err := s.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	before, err := b.Settings(ctx, user)
	if err != nil {
		return err
	}
	s.Confirmed = s.Mail != "" && before.Confirmed && before.Mail == s.Mail
	return b.change(ctx, func(tx *tx) error {
		if err := tx.setSettings(user, s); err != nil {
			return err
		}
		if s.Mail != "" && !s.Confirmed && before.Mail != s.Mail {
			if err := tx.mayConfirm(user); err != nil {
				return err
			}
			if err := tx.write(letter{user: user, channel: ChannelMail, kind: Confirm}); err != nil {
				return err
			}
		}
		return tx.again(user, s)
	})
}

// maxConfirms is how many mails with a code a person may cause in an hour: they
// go to addresses that are not known to be his.
const maxConfirms = 5

func (tx *tx) mayConfirm(user string) error {
	var n int
	err := tx.row(`SELECT count(*) FROM notify_letters WHERE space = ? AND user_id = ? AND kind = ? AND made_at > ?`,
		tx.b.o.Space, user, string(Confirm), sqltable.Micros(tx.now.Add(-time.Hour))).Scan(&n)
	if err == nil && n >= maxConfirms {
		return fmt.Errorf("%w: that were %d addresses within an hour: wait a while", ErrSettings, n)
	}
	return err
}

func (tx *tx) setSettings(user string, s Settings) error {
	if err := tx.exec(`DELETE FROM notify_people WHERE space = ? AND user_id = ?`, tx.b.o.Space, user); err != nil {
		return err
	}
	return tx.exec(`INSERT INTO notify_people (space, user_id, mail, confirmed, topic, no_push, digest, minutes, daily_at, quiet_from, quiet_to, zone)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		tx.b.o.Space, user, s.Mail, sqltable.Bit(s.Confirmed), s.Topic, sqltable.Bit(s.NoPush), string(s.Digest), s.Minutes, s.At, s.QuietFrom, s.QuietTo, s.Zone)
}

// again works out anew when a person is told of what he is owed.
func (tx *tx) again(user string, s Settings) error {
	due := map[[2]string]time.Time{}
	err := tx.list(func(rows *sql.Rows) error {
		var request, kind string
		var since, expires int64
		if err := rows.Scan(&request, &kind, &since, &expires); err != nil {
			return err
		}
		due[[2]string{request, kind}] = s.of(Kind(kind)).When(sqltable.Time(since), sqltable.Time(expires), 0)
		return nil
	}, `SELECT o.request, o.kind, o.since, r.expires_at FROM notify_owed o JOIN notify_requests r ON r.space = o.space AND r.id = o.request
		WHERE o.space = ? AND o.user_id = ? AND o.due_at > 0`, tx.b.o.Space, user)
	if err != nil {
		return err
	}
	for key, when := range due {
		if err := tx.exec(`UPDATE notify_owed SET due_at = ? WHERE space = ? AND user_id = ? AND request = ? AND kind = ?`,
			sqltable.Micros(when), tx.b.o.Space, user, key[0], key[1]); err != nil {
			return err
		}
	}
	return nil
}

// of is how a kind of notice comes: a reminder waits for no digest.
func (s Settings) of(k Kind) Settings {
	if k == Reminder {
		s.Digest = AtOnce
	}
	return s
}

// Confirm takes the code that was sent to a person's address. It reports whether
// it is the right one.
func (b *Book) Confirm(ctx context.Context, user, code string) (bool, error) {
	s, err := b.Settings(ctx, user)
	if err != nil {
		return false, err
	}
	code = strings.ToLower(strings.TrimSpace(code))
	if s.Mail == "" || !hmac.Equal([]byte(code), []byte(b.code(user, s.Mail))) {
		return false, nil
	}
	err = b.change(ctx, func(tx *tx) error {
		return tx.exec(`UPDATE notify_people SET confirmed = 1 WHERE space = ? AND user_id = ? AND mail = ?`, b.o.Space, user, s.Mail)
	})
	return err == nil, err
}

// code is what shows that who types it reads the address: 50 bits.
func (b *Book) code(user, address string) string {
	mac := hmac.New(sha256.New, b.secret)
	fmt.Fprintf(mac, "ringi-mail-v1\x00%s\x00%s\x00%s", b.o.Space, user, address)
	return strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil))[:10])
}
