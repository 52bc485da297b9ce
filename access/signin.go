package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
)

// ProvidedID is the id of a user whom a provider vouches for: its issuer, "#"
// and the subject. An issuer has no fragment (OpenID Connect Discovery 1.0, 3),
// so that no two pairs give one id. What cannot stand in an id is percent
// encoded, and a subject that is too long is a SHA-256.
func ProvidedID(issuer, subject string) string {
	id := issuer + "#" + url.PathEscape(subject)
	if len(id) > 255 {
		sum := sha256.Sum256([]byte(subject))
		id = issuer + "#sha256=" + hex.EncodeToString(sum[:])
	}
	return id
}

// SignIn is what a provider has vouched for.
type SignIn struct {
	// ID is a [ProvidedID]; Name is for people.
	ID, Name string
	// Mapped says that Roles and Teams are the provider's word. They take the
	// place of what the user had: who has left a group there loses its role
	// here. Otherwise he keeps what an admin gave him.
	Mapped bool
	Roles  []Role
	// Teams that are missing are made.
	Teams []string
	// Add lets somebody in who is not known yet.
	Add bool
}

// SignIn brings a user up to date with what a provider says of him, and adds
// him where that is allowed. It begins no session: see [Directory.StartSession].
//
// Who has no role afterwards is kept as he is, his sessions end, and he gets
// [ErrNoRole], as does somebody who is not known and must not be added. A
// disabled user stays disabled: [ringi.ErrNoPrincipal]. Here the last admin may
// lose his role: the operator of the machine gives it back.
func (d *Directory) SignIn(ctx context.Context, s SignIn) (User, error) {
	u, err := d.signIn(ctx, s)
	if err != nil {
		return User{}, fmt.Errorf("sign in %q: %w", s.ID, err)
	}
	return u, nil
}

func (d *Directory) signIn(ctx context.Context, s SignIn) (User, error) {
	u, err := d.User(ctx, s.ID)
	known := err == nil
	switch {
	case err != nil && !errors.Is(err, ErrHidden):
		return User{}, err
	case !known && !s.Add:
		return User{}, ErrNoRole
	case u.Disabled:
		return User{}, fmt.Errorf("%w: the user is disabled", ringi.ErrNoPrincipal)
	}
	before := u
	u.ID, u.Name = s.ID, s.Name
	if s.Mapped {
		u.Roles, u.Teams = s.Roles, s.Teams
	}
	if err := u.check(); err != nil {
		return User{}, err
	}
	if !known || u.Name != before.Name || !slices.Equal(u.Roles, before.Roles) || !slices.Equal(u.Teams, before.Teams) {
		if err := d.change(ctx, func(tx *tx) error { return tx.signIn(u, known) }); err != nil {
			return User{}, err
		}
	}
	if len(u.Roles) == 0 {
		return User{}, ErrNoRole
	}
	return u, nil
}

// signIn writes a user as his provider says. Disabled and shared are not the
// provider's to say: nothing here touches them.
func (tx *tx) signIn(u User, known bool) error {
	by := Who{Principal: ringi.Principal{ID: u.ID, Auth: AuthSession}}
	for _, team := range u.Teams {
		if err := checkWord("team", team); err != nil {
			return err
		}
		if err := tx.exec(`INSERT INTO teams (space, id, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, tx.d.o.Space, team, team); err != nil {
			return notRecorded(err)
		}
	}
	what, query := "user.added", `INSERT INTO users (name, roles, space, id, payloads, shared, disabled, created_at) VALUES (?, ?, ?, ?, 0, 0, 0, ?)
		ON CONFLICT (space, id) DO UPDATE SET name = excluded.name, roles = excluded.roles`
	args := []any{u.Name, words(u.Roles), tx.d.o.Space, u.ID, tx.now}
	if known {
		what, query, args = "user.set", `UPDATE users SET name = ?, roles = ? WHERE space = ? AND id = ?`, args[:4]
	}
	if err := tx.exec(query, args...); err != nil {
		return notRecorded(err)
	}
	if err := tx.setTeams(u.ID, u.Teams); err != nil {
		return err
	}
	if len(u.Roles) == 0 {
		if err := tx.endSessions(u.ID); err != nil {
			return err
		}
	}
	return tx.note(by, what, u.ID, u.summary())
}

// onceAge is how long a secret that was spent is remembered: longer than any
// login under way may take.
const onceAge = time.Hour

// SpendOnce takes a secret that is good once, such as the state of a login that
// is under way. Of any number of uses, in any process, one works: the others
// are [ErrLogin].
func (d *Directory) SpendOnce(ctx context.Context, secret string) error {
	err := d.change(ctx, func(tx *tx) error {
		n, err := tx.changed(`INSERT INTO links (space, hash, user_id, created_at, ends_at, used_at) VALUES (?, ?, '', ?, ?, ?) ON CONFLICT DO NOTHING`,
			d.o.Space, hashed(onceLabel, secret), tx.now, tx.now+onceAge.Microseconds(), tx.now)
		if err != nil {
			return notRecorded(err)
		}
		if n == 0 {
			return ErrLogin
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("spend once: %w", err)
	}
	return nil
}
