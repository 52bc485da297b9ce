package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Team is a set of people who decide together.
type Team struct {
	// ID is a word; deciders name it.
	ID string
	// Name is for people.
	Name string
	// Members are the ids of its enabled users.
	Members []string
}

// AddTeam adds a team without members; who is in it stands with the user. It
// asks for the right to [UsersManage].
//
// Errors: [ErrForbidden], [ErrInvalid], [ErrExists].
func (d *Directory) AddTeam(ctx context.Context, by Who, id, name string) error {
	err := d.may(by, UsersManage, All)
	if err == nil {
		err = checkWord("team", id)
	}
	if err == nil {
		err = checkText("name", name)
	}
	if err == nil {
		err = d.change(ctx, func(tx *tx) error {
			n, err := tx.changed(`INSERT INTO teams (space, id, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, d.o.Space, id, name)
			if err != nil {
				return notRecorded(err)
			}
			if n == 0 {
				return ErrExists
			}
			return tx.note(by, "team.added", id, "")
		})
	}
	if err != nil {
		return fmt.Errorf("add team %q: %w", id, err)
	}
	return nil
}

// RemoveTeam removes a team and who is in it. It asks for the right to
// [UsersManage]. [ErrHidden] where there is none.
func (d *Directory) RemoveTeam(ctx context.Context, by Who, id string) error {
	err := d.may(by, UsersManage, All)
	if err == nil {
		err = d.change(ctx, func(tx *tx) error {
			n, err := tx.changed(`DELETE FROM teams WHERE space = ? AND id = ?`, d.o.Space, id)
			if err != nil {
				return notRecorded(err)
			}
			if n == 0 {
				return ErrHidden
			}
			if err := tx.exec(`DELETE FROM members WHERE space = ? AND team = ?`, d.o.Space, id); err != nil {
				return notRecorded(err)
			}
			return tx.note(by, "team.removed", id, "")
		})
	}
	if err != nil {
		return fmt.Errorf("remove team %q: %w", id, err)
	}
	return nil
}

// TeamsOf returns the teams of a user: it makes a Directory [ringi.Members]. A
// disabled user is in none.
func (d *Directory) TeamsOf(ctx context.Context, id string) (teams []string, known bool, err error) {
	u, err := d.User(ctx, id)
	switch {
	case errors.Is(err, ErrHidden):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case u.Disabled:
		return nil, true, nil
	}
	return u.Teams, true, nil
}

// Teams lists all teams by id, with those of their members who are enabled.
func (d *Directory) Teams(ctx context.Context) ([]Team, error) {
	var out []Team
	err := d.list(ctx, func(rows *sql.Rows) error {
		var t Team
		var member sql.NullString
		if err := rows.Scan(&t.ID, &t.Name, &member); err != nil {
			return err
		}
		if n := len(out); n == 0 || out[n-1].ID != t.ID {
			out = append(out, t)
		}
		if member.Valid {
			last := &out[len(out)-1]
			last.Members = append(last.Members, member.String)
		}
		return nil
	}, `SELECT t.id, t.name, u.id FROM teams t
		LEFT JOIN members m ON m.space = t.space AND m.team = t.id
		LEFT JOIN users u ON u.space = m.space AND u.id = m.user_id AND u.disabled = 0
		WHERE t.space = ? ORDER BY t.id, u.id`, d.o.Space)
	if err != nil {
		return nil, fmt.Errorf("list teams: %w", err)
	}
	return out, nil
}
