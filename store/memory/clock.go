package memory

import (
	"context"
	"errors"
	"slices"

	"github.com/ringi-dev/ringi"
)

// Clock tells how the store's time stands.
func (s *Store) Clock(ctx context.Context) (ringi.StoreClock, error) {
	if err := s.begin(ctx); err != nil {
		return ringi.StoreClock{}, err
	}
	wall, d := s.wall(), s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	c := ringi.StoreClock{Wall: timeOf(wall), Refuses: d.newest-wall > clockSlack, Corrections: slices.Clone(d.corrections)}
	if d.newest != 0 {
		c.Newest = timeOf(d.newest)
	}
	return c, nil
}

// AcceptClock makes the wall clock the store's time again. A heartbeat that was
// given by the later time lives for two minutes at most.
func (s *Store) AcceptClock(ctx context.Context, by, reason string) (ringi.ClockCorrection, error) {
	if err := s.begin(ctx); err != nil {
		return ringi.ClockCorrection{}, err
	}
	wall, d := s.wall(), s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.newest-wall <= clockSlack {
		return ringi.ClockCorrection{}, errors.New("accept clock: it is not behind the newest recorded time")
	}
	c := ringi.ClockCorrection{By: by, Reason: reason, At: timeOf(wall), Newest: timeOf(d.newest)}
	for _, sp := range d.spaces {
		for _, r := range sp.order {
			if r.row.UpdatedAt.After(c.At) {
				r.row.UpdatedAt = c.At
			}
		}
	}
	for owner, until := range d.beats {
		d.beats[owner] = min(until, wall+clockSlack)
	}
	d.newest = wall
	d.corrections = append(d.corrections, c)
	d.corrections = slices.Clone(d.corrections[max(0, len(d.corrections)-maxCorrections):])
	return c, nil
}

// maxCorrections is how many corrections are kept.
const maxCorrections = 100
