package httpapi

import (
	"context"
	"time"
)

// glance is one look for something new: it is taken before the look, so that
// what changes meanwhile is seen by the next one.
type glance struct {
	begun   time.Time
	changed <-chan struct{} // nil where the service does not tell
}

func (s *server) glance() glance {
	g := glance{begun: time.Now()}
	if s.Changed != nil {
		g.changed = s.Changed()
	}
	return g
}

// pause waits until it is time for the next look; false where there is to be
// none.
func (s *server) pause(ctx context.Context, g glance) bool {
	if g.changed == nil {
		return s.sleep(ctx, s.Look)
	}
	anyway := time.NewTimer(min(5*s.Look, s.Heartbeat/3))
	defer anyway.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.Done:
		return false
	case <-anyway.C:
		return true
	case <-g.changed:
		return s.sleep(ctx, time.Until(g.begun.Add(s.Look/5)))
	}
}

func (s *server) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.Done:
		return false
	case <-t.C:
		return true
	}
}
