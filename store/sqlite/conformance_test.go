package sqlite

import (
	"context"
	"database/sql"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/store/storetest"
)

func TestConformance(t *testing.T) {
	open := func(t *testing.T, o storetest.Options) ringi.Store {
		t.Helper()
		options := Options{Now: o.Now, MaxAttempts: o.MaxAttempts, MaxRunAttempts: o.MaxRunAttempts}
		if o.Wake != nil {
			options.Wake = func(_ context.Context, _ *sql.Tx, space, runID string) error {
				o.Wake(space, runID)
				return nil
			}
		}
		s, err := Open(o.Path, options)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	storetest.Exercise(t, open, storetest.Features{
		Durable: true, Shared: true, Wake: true, Bounds: true,
		Thief: func(s ringi.Store) storetest.Thief { return newThief(t, s.(*Store).path) },
	})
}
