package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// Count is how many approvals a list holds, counted up to 1,000.
type Count struct {
	Count int `json:"count"`
}

// Tally is what became of approvals between two times.
type Tally struct {
	Tools []ringi.ToolTally `json:"tools"`
	// Hasty counts decisions within two seconds of the question.
	Hasty int `json:"hasty"`
	// MedianMS is the median time from the question to the decision, in
	// milliseconds; 0 where nothing was decided.
	MedianMS int64 `json:"median_ms"`
}

type countInput struct {
	Filters
	States
}

type tallyInput struct {
	Filters
	From time.Time `query:"from" required:"true" doc:"RFC 3339."`
	To   time.Time `query:"to" required:"true" doc:"RFC 3339; not counted itself."`
}

func (s *server) getCount(ctx context.Context, w access.Who, in *countInput) (*answer, error) {
	counter, q, err := s.counting(w, &in.Filters)
	if err != nil {
		return nil, err
	}
	q.State = in.states()
	n, err := counter.RequestCount(ctx, q, 1000)
	if err != nil {
		return nil, err
	}
	return asJSON(http.StatusOK, Count{n})
}

func (s *server) getTally(ctx context.Context, w access.Who, in *tallyInput) (*answer, error) {
	counter, q, err := s.counting(w, &in.Filters)
	if err != nil {
		return nil, err
	}
	if span := in.To.Sub(in.From); span < 0 || span > 366*24*time.Hour {
		return nil, fmt.Errorf("%w: from and to: a year at most", errUnread)
	}
	t, err := counter.RequestTally(ctx, q, in.From, in.To)
	if err != nil {
		return nil, err
	}
	return asJSON(http.StatusOK, Tally{append([]ringi.ToolTally{}, t.Tools...), t.Hasty, t.Median.Milliseconds()})
}

// counting is what w may count: an admin all, who decides what he is asked, and
// anybody what he asked for himself. A count says what a list does, so what a
// list would leave out for its reader is refused here and not left out.
func (s *server) counting(w access.Who, f *Filters) (ringi.RequestCounter, ringi.RequestQuery, error) {
	q := f.query()
	if err := access.May(w, access.ApprovalsList, every); err != nil {
		return nil, q, err
	}
	all := access.May(w, access.ApprovalsList, access.Other) == nil
	others := f.For != "" && f.For != w.Principal.ID || f.By != "" && f.By != w.Principal.ID ||
		slices.ContainsFunc(f.Teams, func(t string) bool { return !slices.Contains(w.Principal.Teams, t) })
	if !w.ForAgent(f.Agent) || !all && others {
		return nil, q, fmt.Errorf("%w: count of what others see", access.ErrForbidden)
	}
	switch {
	case all || f.By != "":
	case w.Has(access.RoleApprover) && f.For == "" && len(f.Teams) == 0:
		q.For = w.Principal
	case w.Has(access.RoleApprover):
	default:
		q.For, q.Initiator = ringi.Principal{}, w.Principal.ID
	}
	counter, ok := s.Service.(ringi.RequestCounter)
	if !ok {
		return nil, q, errNoCount
	}
	return counter, q, nil
}
