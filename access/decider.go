package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
)

// maxApprovers bounds the list of who may be handed a request.
const maxApprovers = 200

// Approvers lists enabled users whose role is to decide, by name: the first 200,
// each with id and name alone. It asks for no right: approvers see each other.
func (d *Directory) Approvers(ctx context.Context) ([]User, error) {
	var out []User
	err := d.list(ctx, func(rows *sql.Rows) error {
		var u User
		err := rows.Scan(&u.ID, &u.Name)
		out = append(out, u)
		return err
	}, `SELECT id, name FROM users WHERE space = ? AND disabled = 0 AND ' ' || roles || ' ' LIKE ? ORDER BY name, id LIMIT ?`,
		d.o.Space, "% "+string(RoleApprover)+" %", maxApprovers)
	if err != nil {
		return nil, fmt.Errorf("list approvers: %w", err)
	}
	return out, nil
}

// CheckDeciders refuses deciders of whom one could never decide: [ErrInvalid] for
// a person who is unknown, disabled or no approver, and for a team that there is
// not. A request that is handed over to such would wait for nobody.
func (d *Directory) CheckDeciders(ctx context.Context, to ringi.Deciders) error {
	for _, id := range to.People {
		u, err := d.User(ctx, id)
		switch {
		case errors.Is(err, ErrHidden):
			return fmt.Errorf("%w: there is nobody with the id %q", ErrInvalid, id)
		case err != nil:
			return fmt.Errorf("check deciders: %w", err)
		case u.Disabled || !slices.Contains(u.Roles, RoleApprover):
			return fmt.Errorf("%w: %q is no approver", ErrInvalid, id)
		}
	}
	if len(to.Teams) == 0 {
		return nil
	}
	teams, err := d.Teams(ctx)
	if err != nil {
		return fmt.Errorf("check deciders: %w", err)
	}
	for _, id := range to.Teams {
		if !slices.ContainsFunc(teams, func(t Team) bool { return t.ID == id }) {
			return fmt.Errorf("%w: there is no team %q", ErrInvalid, id)
		}
	}
	return nil
}
