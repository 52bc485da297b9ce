package access

import (
	"context"
	"fmt"
	"sync"
)

// seen keeps, in memory, when sessions and tokens were used last, until Tend
// writes it: a request that only reads changes no row. What a crash loses makes
// a session end sooner, never later.
type seen struct {
	mu   sync.Mutex
	used map[use]int64
}

type use struct{ kind, id string }

const (
	seenSession = "session"
	seenToken   = "token"
	// maxSeen bounds the memory; above it uses are forgotten until Tend.
	maxSeen = 100_000
)

func (s *seen) note(kind, id string, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == nil {
		s.used = map[use]int64{}
	}
	if _, ok := s.used[use{kind, id}]; ok || len(s.used) < maxSeen {
		s.used[use{kind, id}] = now
	}
}

func (s *seen) at(kind, id string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[use{kind, id}]
}

func (s *seen) take() map[use]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.used
	s.used = nil
	return taken
}

// Tend writes when sessions and tokens were used last, and deletes what has
// ended: sessions, links, answers, presence. The server calls it every minute
// and when it stops. Nothing depends on it but the space that is used, the last
// use that is shown, and how long an idle session lives after a restart.
func (d *Directory) Tend(ctx context.Context) error {
	taken := d.seen.take()
	err := d.change(ctx, func(tx *tx) error {
		for u, when := range taken {
			query := `UPDATE sessions SET seen_at = ? WHERE space = ? AND hash = ? AND seen_at < ?`
			if u.kind == seenToken {
				query = `UPDATE tokens SET used_at = ? WHERE space = ? AND id = ? AND used_at < ?`
			}
			if err := tx.exec(query, when, d.o.Space, u.id, when); err != nil {
				return notRecorded(err)
			}
		}
		for _, end := range []struct {
			query string
			at    int64
		}{
			{`DELETE FROM sessions WHERE space = ? AND seen_at <= ?`, tx.now - d.o.SessionIdle.Microseconds()},
			{`DELETE FROM sessions WHERE space = ? AND created_at <= ?`, tx.now - d.o.SessionAge.Microseconds()},
			{`DELETE FROM links WHERE space = ? AND ends_at <= ?`, tx.now},
			{`DELETE FROM answers WHERE space = ? AND started_at <= ?`, tx.now - d.o.AnswerAge.Microseconds()},
			{`DELETE FROM presence WHERE space = ? AND until <= ?`, tx.now},
			{`DELETE FROM opened WHERE space = ? AND at <= ?`, tx.now - openedAge.Microseconds()},
		} {
			if err := tx.exec(end.query, d.o.Space, end.at); err != nil {
				return notRecorded(err)
			}
		}
		return nil
	})
	if err != nil {
		for u, when := range taken {
			if d.seen.at(u.kind, u.id) < when {
				d.seen.note(u.kind, u.id, when)
			}
		}
		return fmt.Errorf("tend directory: %w", err)
	}
	return nil
}
