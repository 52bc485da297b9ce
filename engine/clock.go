package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
)

// acceptSlack is how far the time that an operator names may be from the
// store's wall clock: that of ringi.ErrClock.
const acceptSlack = 2 * time.Minute

// AcceptedClock is a correction of a store's clock, and what of the time that
// was wrong is still open.
type AcceptedClock struct {
	ringi.ClockCorrection
	// Ahead are open requests that were made, or approved, at a time that has
	// not come: the first 100. They keep their deadlines, which may be far.
	Ahead []RequestAhead `json:"ahead"`
}

// RequestAhead is an open request whose times have not come.
type RequestAhead struct {
	Space     string             `json:"space"`
	RequestID string             `json:"request_id"`
	RunID     string             `json:"run_id"`
	State     ringi.RequestState `json:"state"`
}

// AcceptClock records that the store's wall clock is right although later times
// are recorded in it (ringi.ErrClock), and lets it go on. is is what time it is
// by another clock than this machine's, to two minutes: that ErrClock is told
// at all may mean that this machine's clock was set back, and then accepting it
// would make what has expired open again. Where nothing is refused there is
// nothing to accept, and that is an error.
//
// Who accepted what is kept beside the runs (ringi.Store.Clock). Logs stay as
// they are: the next event of a run is never earlier than its newest one. Open
// requests keep their deadlines; Ahead names those that were made by the wrong
// time.
func (e *Engine) AcceptClock(ctx context.Context, is time.Time, by ringi.Principal, reason string) (AcceptedClock, error) {
	a, err := e.acceptClock(ctx, is, by, reason)
	if err != nil {
		return a, fmt.Errorf("accept clock: %w", err)
	}
	return a, nil
}

func (e *Engine) acceptClock(ctx context.Context, is time.Time, by ringi.Principal, reason string) (AcceptedClock, error) {
	var a AcceptedClock
	if err := e.mayWrite(); err != nil {
		return a, err
	}
	if by.IsZero() {
		return a, ringi.ErrNoPrincipal
	}
	clock, err := e.store.Clock(ctx)
	if err != nil {
		return a, err
	}
	if !clock.Refuses {
		return a, errors.New("it is not behind what is recorded: there is nothing to accept")
	}
	if off := is.Sub(clock.Wall).Abs(); off > acceptSlack {
		return a, fmt.Errorf("this machine's clock shows %s, and it is said to be %s: set it right first",
			clock.Wall.Format(time.RFC3339), is.UTC().Format(time.RFC3339))
	}
	if a.ClockCorrection, err = e.store.AcceptClock(ctx, by.ID, reason); err != nil {
		return a, err
	}
	e.log.Warn("clock is accepted", "by", by.ID, "at", a.At, "recorded", a.Newest)
	if a.Ahead, err = e.ahead(ctx, a.At); err != nil {
		return a, fmt.Errorf("it is accepted; look for requests of later times: %w", err)
	}
	return a, nil
}

// ahead lists open requests, of every space, whose times are later than at.
func (e *Engine) ahead(ctx context.Context, at time.Time) ([]RequestAhead, error) {
	const most = 100
	out := []RequestAhead{}
	spaces, err := e.store.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, space := range spaces {
		q := ringi.RequestQuery{Space: space, State: []ringi.RequestState{ringi.Pending, ringi.Granted}, Limit: 1000}
		for len(out) < most {
			rows, err := e.store.Requests(ctx, q)
			if err != nil {
				return nil, err
			}
			for _, r := range rows {
				if (r.CreatedAt.After(at) || r.DecidedAt.After(at)) && len(out) < most {
					out = append(out, RequestAhead{Space: space, RequestID: r.ID, RunID: r.RunID, State: r.State})
				}
			}
			if len(rows) < q.Limit {
				break
			}
			q.After = rows[len(rows)-1].ID
		}
	}
	return out, nil
}
