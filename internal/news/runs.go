package news

import (
	"context"
	"errors"

	"github.com/ringi-dev/ringi"
)

const (
	// past is how many records before its beginning a hub looks at: what changed
	// between a page's making and the first reader is told.
	past = 1000
	// most bounds the runs that one look reads the requests of, and the open runs
	// that are looked at where the service has no feed.
	most = 300
)

// moved finds the runs whose logs have grown.
type moved struct {
	service ringi.Service
	feed    ringi.Feed // nil where the service has none
	at      int64
	open    map[string]int64 // without a feed: run → newest number
}

func newMoved(s ringi.Service) *moved {
	m := &moved{service: s}
	m.feed, _ = s.(ringi.Feed)
	return m
}

// run is a run that has moved, and the newest number in its log.
type run struct {
	id  string
	seq int64
}

// begin finds those of a moment ago.
func (m *moved) begin(ctx context.Context) ([]run, error) {
	m.open, m.at = nil, 0
	if m.feed != nil {
		end, err := m.feed.FeedEnd(ctx)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			m.feed = nil
		case err != nil:
			return nil, err
		default:
			m.at = max(0, end-past)
		}
	}
	return m.next(ctx)
}

// next finds those that have moved since the last call; some of them, where
// they are many.
func (m *moved) next(ctx context.Context) ([]run, error) {
	if m.feed == nil {
		return m.look(ctx)
	}
	var runs []run
	place := map[string]int{}
	for len(runs) < most {
		rows, err := m.feed.Feed(ctx, m.at, 1000)
		if err != nil || len(rows) == 0 {
			return runs, err
		}
		for _, row := range rows {
			i, known := place[row.RunID]
			if !known {
				i = len(runs)
				place[row.RunID], runs = i, append(runs, run{id: row.RunID})
			}
			runs[i].seq = row.Seq
			m.at = row.N
		}
	}
	return runs, nil
}

// open are the states of runs that may still move.
var open = []ringi.RunStatus{ringi.Queued, ringi.Running, ringi.WaitingForApproval, ringi.WaitingForInput, ringi.WaitingForOutcome}

// look is next without a feed: over the newest open runs, and those that were
// open when it looked last.
func (m *moved) look(ctx context.Context) ([]run, error) {
	rows, err := m.service.Runs(ctx, ringi.RunQuery{Status: open, Limit: most})
	if err != nil {
		return nil, err
	}
	var runs []run
	now := map[string]int64{}
	for _, row := range rows {
		now[row.ID] = row.Seq
		if m.open[row.ID] != row.Seq {
			runs = append(runs, run{row.ID, row.Seq})
		}
	}
	for id, seq := range m.open {
		if _, still := now[id]; still {
			continue
		}
		row, err := m.service.Row(ctx, id)
		if err != nil {
			return nil, err
		}
		if row.Seq != seq {
			runs = append(runs, run{id, row.Seq})
		}
	}
	m.open = now
	return runs, nil
}
