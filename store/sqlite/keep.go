package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
)

// SaveTool keeps a tool definition by its digest. A digest that is known keeps
// its first definition.
func (s *Store) SaveTool(ctx context.Context, digest string, definition []byte) error {
	err := s.write(ctx, len(definition), func(w *writer) error { return w.keepTool(digest, definition) })
	if err != nil {
		return fmt.Errorf("save tool %s: %w", digest, err)
	}
	return nil
}

func (w *writer) keepTool(digest string, definition []byte) error {
	_, err := w.exec(`INSERT INTO tools (digest, definition) VALUES (?, ?) ON CONFLICT DO NOTHING`, digest, definition)
	return err
}

// Tool returns a tool definition by its digest.
func (s *Store) Tool(ctx context.Context, digest string) ([]byte, error) {
	var definition blob
	err := s.readTool.QueryRowContext(ctx, digest).Scan(&definition)
	if err != nil {
		return nil, fmt.Errorf("read tool %s: %w", digest, found(err))
	}
	return definition, nil
}

const readTool = `SELECT definition FROM tools WHERE digest = ?`

// Keys returns the key ids that the store has used, with their check values.
func (s *Store) Keys(ctx context.Context) (map[string]string, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT id, value FROM keys ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	defer rows.Close()
	keys := map[string]string{}
	for rows.Next() {
		var id, check string
		if err := rows.Scan(&id, &check); err != nil {
			return nil, fmt.Errorf("list keys: %w", err)
		}
		keys[id] = check
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return keys, nil
}

// RememberKey adds a key id with its check value. An id that is known with
// another value is refused: two keys must not pass for one.
func (s *Store) RememberKey(ctx context.Context, id, check string) error {
	err := s.write(ctx, 0, func(w *writer) error {
		kept, err := w.exec(`INSERT INTO keys (id, value) VALUES (?, ?)
			ON CONFLICT (id) DO UPDATE SET value = value WHERE value = excluded.value`, id, check)
		if err == nil && kept == 0 {
			err = errors.New("its id is known with another check value")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("remember key %s: %w", id, err)
	}
	return nil
}

// ForgetKey drops a key id, but never the only one: the statement counts, so
// that two processes which each drop one do not leave none.
func (s *Store) ForgetKey(ctx context.Context, id string) error {
	err := s.write(ctx, 0, func(w *writer) error {
		gone, err := w.exec(`DELETE FROM keys WHERE id = ? AND (SELECT count(*) FROM keys) > 1`, id)
		if err != nil || gone == 1 {
			return err
		}
		var known bool
		if err := w.tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM keys WHERE id = ?)`, id).Scan(&known); err != nil {
			return w.unrecorded(err)
		}
		if !known {
			return ringi.ErrNotFound
		}
		return errors.New("it is the store's only one")
	})
	if err != nil {
		return fmt.Errorf("forget key %s: %w", id, err)
	}
	return nil
}

// Flag reads a mark of the store itself; an unknown one is empty.
func (s *Store) Flag(ctx context.Context, name string) (string, error) {
	var value string
	err := s.read.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = ?`, flagKey(name)).Scan(&value)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read flag %s: %w", name, err)
	}
	return value, nil
}

// SetFlag writes a mark of the store itself; an empty value takes it away.
func (s *Store) SetFlag(ctx context.Context, name, value string) error {
	err := s.write(ctx, 0, func(w *writer) error {
		query, args := `INSERT INTO meta (key, value) VALUES (?, ?)
			ON CONFLICT (key) DO UPDATE SET value = excluded.value`, []any{flagKey(name), value}
		if value == "" {
			query, args = `DELETE FROM meta WHERE key = ?`, args[:1]
		}
		_, err := w.exec(query, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("set flag %s: %w", name, err)
	}
	return nil
}

// flagKey keeps flags apart from the store's own values.
func flagKey(name string) string { return "flag/" + name }
