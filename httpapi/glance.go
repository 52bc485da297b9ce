package httpapi

import (
	"context"
	"time"

	"github.com/ringi-dev/ringi/internal/news"
)

// glance is taken before a look for something new.
func (s *server) glance() news.Glance {
	g := news.Glance{Begun: time.Now()}
	if s.Changed != nil {
		g.Changed = s.Changed()
	}
	return g
}

// pause waits until it is time for the next look; false where there is to be
// none.
func (s *server) pause(ctx context.Context, g news.Glance) bool {
	if g.Changed == nil {
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
	case <-g.Changed:
		return s.sleep(ctx, time.Until(g.Begun.Add(s.Look/5)))
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
