package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Beat renews an owner's heartbeat: it lives until the store's time plus
// lease. A lease of zero or less ends it.
func (s *Store) Beat(ctx context.Context, owner string, lease time.Duration) error {
	if owner == "" {
		return errors.New("beat: no owner")
	}
	err := s.write(ctx, 0, func(w *writer) error {
		_, err := w.exec(`
			INSERT INTO owners (id, until) VALUES (?, ?)
			ON CONFLICT (id) DO UPDATE SET until = excluded.until`,
			owner, w.s.now()+lease.Microseconds())
		return err
	})
	if err != nil {
		return fmt.Errorf("beat %s: %w", owner, err)
	}
	return nil
}
