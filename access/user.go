package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

// User is a person who may log in.
type User struct {
	// ID is issuer and subject, never a name or a mail address; see [LocalID].
	ID string
	// Name is for people; at most 200 bytes.
	Name string
	// Roles are his rights. None means that he may do nothing.
	Roles []Role
	// Teams are those that he is in; they exist before.
	Teams []string
	// Payloads lets an auditor, or an admin, read payloads in the log.
	Payloads bool
	// Shared marks a login that several people use. It is nobody in particular:
	// four eyes cannot count it. See [Directory.Persons].
	Shared bool
	// Disabled ends his sessions and login links for good, and refuses his
	// tokens, and those of his agents, while it stands.
	Disabled bool
	// CreatedAt is set by the directory.
	CreatedAt time.Time
}

// check makes u ready to be stored.
func (u *User) check() error {
	if err := checkUserID(u.ID); err != nil {
		return err
	}
	if err := checkText("name", u.Name); err != nil {
		return err
	}
	var err error
	if u.Roles, err = checkRoles(u.Roles); err != nil {
		return err
	}
	u.Teams = slices.Compact(slices.Sorted(slices.Values(u.Teams)))
	return nil
}

// AddUser adds a user. It asks for the right to [UsersManage].
//
// Errors: [ErrForbidden], [ErrInvalid], [ErrExists].
func (d *Directory) AddUser(ctx context.Context, by Who, u User) error {
	err := d.managed(ctx, by, &u, func(tx *tx) error {
		n, err := tx.changed(`INSERT INTO users (space, id, name, roles, payloads, shared, disabled, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			d.o.Space, u.ID, u.Name, words(u.Roles), sqltable.Bit(u.Payloads), sqltable.Bit(u.Shared), sqltable.Bit(u.Disabled), tx.now)
		if err != nil {
			return notRecorded(err)
		}
		if n == 0 {
			return ErrExists
		}
		return tx.note(by, "user.added", u.ID, u.summary())
	})
	if err != nil {
		return fmt.Errorf("add user %q: %w", u.ID, err)
	}
	return nil
}

// SetUser replaces all that is known of a user but his id. It asks for the
// right to [UsersManage].
//
// Errors: [ErrForbidden], [ErrHidden] where there is no such user,
// [ErrInvalid], [ErrLastAdmin] where nobody would be left who manages.
func (d *Directory) SetUser(ctx context.Context, by Who, u User) error {
	err := d.managed(ctx, by, &u, func(tx *tx) error {
		if err := tx.alone(); err != nil { // two admins must not count each other
			return err
		}
		before, err := tx.admins()
		if err != nil {
			return err
		}
		n, err := tx.changed(`UPDATE users SET name = ?, roles = ?, payloads = ?, shared = ?, disabled = ? WHERE space = ? AND id = ?`,
			u.Name, words(u.Roles), sqltable.Bit(u.Payloads), sqltable.Bit(u.Shared), sqltable.Bit(u.Disabled), d.o.Space, u.ID)
		if err != nil {
			return notRecorded(err)
		}
		if n == 0 {
			return ErrHidden
		}
		if u.Disabled {
			if err := tx.endSessions(u.ID); err != nil {
				return err
			}
		}
		after, err := tx.admins()
		if err != nil {
			return err
		}
		if after == 0 && before > 0 {
			return ErrLastAdmin
		}
		return tx.note(by, "user.set", u.ID, u.summary())
	})
	if err != nil {
		return fmt.Errorf("set user %q: %w", u.ID, err)
	}
	return nil
}

// managed checks the right and the user, and runs f with the teams written.
func (d *Directory) managed(ctx context.Context, by Who, u *User, f func(*tx) error) error {
	if err := d.may(by, UsersManage, All); err != nil {
		return err
	}
	if err := u.check(); err != nil {
		return err
	}
	return d.change(ctx, func(tx *tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return tx.setTeams(u.ID, u.Teams)
	})
}

func (tx *tx) setTeams(id string, teams []string) error {
	if err := tx.exec(`DELETE FROM members WHERE space = ? AND user_id = ?`, tx.d.o.Space, id); err != nil {
		return notRecorded(err)
	}
	for _, team := range teams {
		n, err := tx.changed(`INSERT INTO members (space, user_id, team) SELECT space, ?, id FROM teams WHERE space = ? AND id = ?`,
			id, tx.d.o.Space, team)
		if err != nil {
			return notRecorded(err)
		}
		if n == 0 {
			return fmt.Errorf("%w: there is no team %q", ErrInvalid, team)
		}
	}
	return nil
}

// hold keeps a user as he is until the transaction ends, and reports whether
// he is there and enabled: nothing is given to one who is being disabled.
func (tx *tx) hold(id string) (bool, error) {
	n, err := tx.changed(`UPDATE users SET disabled = disabled WHERE space = ? AND id = ? AND disabled = 0`, tx.d.o.Space, id)
	if err != nil {
		return false, notRecorded(err)
	}
	return n == 1, nil
}

// admins counts the enabled users who manage.
func (tx *tx) admins() (int, error) {
	var n int
	err := tx.row(`SELECT count(*) FROM users WHERE space = ? AND disabled = 0 AND ' ' || roles || ' ' LIKE '% admin %'`,
		tx.d.o.Space).Scan(&n)
	if err != nil {
		return 0, notRecorded(err)
	}
	return n, nil
}

func (u *User) summary() string {
	s := "roles " + words(u.Roles)
	if len(u.Teams) > 0 {
		s += "; teams " + strings.Join(u.Teams, " ")
	}
	for _, mark := range []struct {
		set  bool
		word string
	}{{u.Payloads, "payloads"}, {u.Shared, "shared"}, {u.Disabled, "disabled"}} {
		if mark.set {
			s += "; " + mark.word
		}
	}
	return s
}

const userColumns = `SELECT u.id, u.name, u.roles, u.payloads, u.shared, u.disabled, u.created_at FROM users u `

func scanUser(scan func(...any) error) (User, error) {
	var u User
	var roles string
	var created int64
	if err := scan(&u.ID, &u.Name, &roles, &u.Payloads, &u.Shared, &u.Disabled, &created); err != nil {
		return User{}, err
	}
	u.Roles, u.CreatedAt = split[Role](roles), sqltable.Time(created)
	return u, nil
}

// User returns a user, enabled or not: to name him. Who may see it is the
// caller's to know. [ErrHidden] where there is none.
func (d *Directory) User(ctx context.Context, id string) (User, error) {
	u, _, err := d.user(ctx, id)
	return u, err
}

// user reads a user, and the clients that are his.
func (d *Directory) user(ctx context.Context, id string) (User, []string, error) {
	u, err := scanUser(d.row(ctx, userColumns+`WHERE u.space = ? AND u.id = ?`, d.o.Space, id).Scan)
	switch {
	case none(err):
		return User{}, nil, fmt.Errorf("read user %q: %w", id, ErrHidden)
	case err != nil:
		return User{}, nil, fmt.Errorf("read user: %w", err)
	}
	var clients []string
	err = d.list(ctx, func(rows *sql.Rows) error {
		var team bool
		var name string
		if err := rows.Scan(&team, &name); err != nil {
			return err
		}
		if team {
			u.Teams = append(u.Teams, name)
		} else {
			clients = append(clients, name)
		}
		return nil
	}, `SELECT 1, team FROM members WHERE space = ? AND user_id = ? UNION ALL SELECT 0, id FROM clients WHERE space = ? AND owner = ? ORDER BY 2`,
		d.o.Space, id, d.o.Space, id)
	if err != nil {
		return User{}, nil, fmt.Errorf("read user: %w", err)
	}
	return u, clients, nil
}

// Users lists users by id, behind the id after; empty begins. A limit of 0
// means 100; at most 1,000. It asks for the right to [UsersManage].
func (d *Directory) Users(ctx context.Context, by Who, after string, limit int) ([]User, error) {
	if err := d.may(by, UsersManage, All); err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	var out []User
	err := d.list(ctx, func(rows *sql.Rows) error {
		u, err := scanUser(rows.Scan)
		out = append(out, u)
		return err
	}, userColumns+`WHERE u.space = ? AND u.id > ? ORDER BY u.id LIMIT ?`, d.o.Space, after, bounded(limit))
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	for i := range out {
		if out[i], err = d.User(ctx, out[i].ID); err != nil {
			return nil, fmt.Errorf("list users: %w", err)
		}
	}
	return out, nil
}

// enter makes the Who of an enabled user.
func (d *Directory) enter(ctx context.Context, id, auth string) (Who, error) {
	u, clients, err := d.user(ctx, id)
	switch {
	case err != nil && !errors.Is(err, ErrHidden):
		return Who{}, err
	case err != nil || u.Disabled:
		return Who{}, fmt.Errorf("%w: the user is disabled or gone", ringi.ErrNoPrincipal)
	}
	return Who{
		Principal: ringi.Principal{ID: u.ID, Name: u.Name, Kind: ringi.Person, Admin: slices.Contains(u.Roles, RoleAdmin), Teams: u.Teams, Auth: auth},
		Roles:     u.Roles, Space: d.o.Space, Payloads: u.Payloads, Clients: clients, previews: d.o.Previews,
	}, nil
}
