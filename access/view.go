package access

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
)

// MaxViews is how many views somebody may keep.
const MaxViews = 20

// View is a list that somebody keeps under a name. What its query means is his
// who lists.
type View struct {
	// Name is a line of at most 40 characters, his own once.
	Name string
	// Query is at most 4,000 bytes.
	Query string
}

func (v View) check() error {
	if err := checkText("name of a view", v.Name); err != nil {
		return err
	}
	if utf8.RuneCountInString(v.Name) > 40 || strings.TrimSpace(v.Name) != v.Name {
		return fmt.Errorf("%w: name of a view has more than 40 characters, or blanks around it", ErrInvalid)
	}
	if len(v.Query) > 4000 {
		return fmt.Errorf("%w: query of a view has more than 4000 bytes", ErrInvalid)
	}
	return nil
}

// Views lists the views that w keeps, by name.
func (d *Directory) Views(ctx context.Context, w Who) ([]View, error) {
	if w.Space != d.o.Space {
		return nil, nil
	}
	var out []View
	err := d.list(ctx, func(rows *sql.Rows) error {
		var v View
		err := rows.Scan(&v.Name, &v.Query)
		out = append(out, v)
		return err
	}, `SELECT name, query FROM views WHERE space = ? AND user_id = ? ORDER BY name`, d.o.Space, w.Principal.ID)
	if err != nil {
		return nil, fmt.Errorf("list views: %w", err)
	}
	return out, nil
}

// KeepView keeps a view of w's own, in the place of one with its name. Only
// people keep views. ErrInvalid for one too many, or too long.
func (d *Directory) KeepView(ctx context.Context, w Who, v View) error {
	err := d.ofAPerson(w)
	if err == nil {
		err = v.check()
	}
	if err == nil {
		err = d.change(ctx, func(tx *tx) error {
			if err := tx.exec(`INSERT INTO views (space, user_id, name, query) VALUES (?, ?, ?, ?)
				ON CONFLICT (space, user_id, name) DO UPDATE SET query = excluded.query`,
				d.o.Space, w.Principal.ID, v.Name, v.Query); err != nil {
				return notRecorded(err)
			}
			var n int
			if err := tx.row(`SELECT count(*) FROM views WHERE space = ? AND user_id = ?`, d.o.Space, w.Principal.ID).Scan(&n); err != nil {
				return notRecorded(err)
			}
			if n > MaxViews {
				return fmt.Errorf("%w: there are %d views already", ErrInvalid, MaxViews)
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("keep view: %w", err)
	}
	return nil
}

// DropView forgets a view of w's own. One that is not there is no error.
func (d *Directory) DropView(ctx context.Context, w Who, name string) error {
	err := d.ofAPerson(w)
	if err == nil {
		err = d.change(ctx, func(tx *tx) error {
			if err := tx.exec(`DELETE FROM views WHERE space = ? AND user_id = ? AND name = ?`, d.o.Space, w.Principal.ID, name); err != nil {
				return notRecorded(err)
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("drop view: %w", err)
	}
	return nil
}

// ofAPerson refuses what is only for people of this space.
func (d *Directory) ofAPerson(w Who) error {
	if w.Principal.Kind != ringi.Person || w.Principal.IsZero() || w.Space != d.o.Space {
		return ErrForbidden
	}
	return nil
}
