package httpapi

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/news"
)

// position is where a reader of the inbox stream is: exactly, for the process
// whose name it carries, and as a time for any other.
type position struct {
	process string
	place   news.Place
	at      time.Time
}

// inboxID is an event's id: it is the reader's own, and tells nobody how much
// happened elsewhere.
func (s *server) inboxID(w access.Who, p position) string {
	return s.seal.closed("inbox\n"+w.Principal.ID, fmt.Sprintf("%s.%d.%d.%d", p.process, p.place.Epoch, p.place.Seq, p.at.UnixMicro()))
}

func (s *server) position(w access.Who, id string) (position, bool) {
	text, err := s.seal.opened("inbox\n"+w.Principal.ID, id)
	parts := strings.Split(text, ".")
	if err != nil || len(parts) != 4 {
		return position{}, false
	}
	var n [3]int64
	for i, part := range parts[1:] {
		if n[i], err = strconv.ParseInt(part, 10, 64); err != nil {
			return position{}, false
		}
	}
	return position{parts[0], news.Place{Epoch: n[0], Seq: n[1]}, time.UnixMicro(n[2])}, true
}

// goOn brings a reader from the event that came last to where the hub is, and
// returns from where he follows it: what this process noted since, or what the
// store says has changed since, or a reset where neither is known.
func (s *server) goOn(ctx context.Context, w access.Who, st *stream, last string, at news.Place) (news.Place, error) {
	p, ok := s.position(w, last)
	if !ok {
		return at, s.reset(w, st, at)
	}
	if p.process == s.inbox.Name {
		if _, _, there := s.inbox.After(p.place); there {
			return p.place, nil
		}
	}
	now := s.Now()
	changed, ok := s.changedSince(ctx, p.at)
	if !ok {
		return at, s.reset(w, st, at)
	}
	for i, r := range changed {
		to := position{at: p.at} // who is cut off before the last begins there again
		if i == len(changed)-1 {
			to = position{s.inbox.Name, at, now}
		}
		if err := s.hint(ctx, w, st, r, to); err != nil {
			return at, err
		}
	}
	return at, nil
}

// reset says that some changes may have been missed.
func (s *server) reset(w access.Who, st *stream, at news.Place) error {
	return st.event("reset", s.inboxID(w, position{s.inbox.Name, at, s.Now()}), struct{}{})
}

// hint says that a request has changed, to who may see it.
func (s *server) hint(ctx context.Context, w access.Who, st *stream, r ringi.ApprovalRequest, at position) error {
	v := s.asked(w, r)
	if access.May(w, access.ApprovalsRead, v.owner) != nil {
		return nil // none of his
	}
	shown := v.show(r, "")
	return st.event("approval", s.inboxID(w, at), Change{shown.ID, shown.RunID, shown.State, etag(shown)})
}

const (
	// sinceRows and sinceRuns bound how much of the store is looked through for
	// what has changed: a server with more history answers with a reset.
	sinceRows = 5000
	sinceRuns = 200
	// sinceSlack is how far the clocks of two servers may be apart, and how late
	// a change may be noted: what changed just before is told once more.
	sinceSlack = 5 * time.Second
)

// changedSince finds the requests of all runs that have moved since a time;
// false where there is too much to look through.
func (s *server) changedSince(ctx context.Context, since time.Time) ([]ringi.ApprovalRequest, bool) {
	since = since.Add(-sinceSlack)
	var runs []string
	q := ringi.RunQuery{Limit: 1000}
	for looked := 0; ; {
		rows, err := s.Service.Runs(ctx, q)
		if err != nil {
			return nil, false
		}
		for _, row := range rows {
			if !row.UpdatedAt.Before(since) {
				runs = append(runs, row.ID)
			}
		}
		if looked += len(rows); looked > sinceRows || len(runs) > sinceRuns {
			return nil, false
		}
		if len(rows) < q.Limit {
			break
		}
		q.After = rows[len(rows)-1].ID
	}
	var out []ringi.ApprovalRequest
	for _, run := range runs {
		page, err := s.Service.Requests(ctx, ringi.RequestQuery{RunID: run, State: news.States, Limit: 1000})
		if err != nil {
			return nil, false
		}
		out = append(out, page.Requests...)
	}
	return out, true
}
