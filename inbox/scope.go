package inbox

import (
	"context"
	"errors"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/news"
	"github.com/ringi-dev/ringi/internal/sight"
)

// seen is a request as it stands to somebody.
type seen struct {
	ringi.ApprovalRequest
	owner access.Owner
	// full: he may see input, preview, deciders and notes. Who merely asked for
	// the run sees that something waits (S-28).
	full bool
	// blind: the preview's data class is not for his roles (S-17). He may deny.
	blind bool
}

// find returns a request that somebody may use a route on.
func (in *inbox) find(ctx context.Context, who access.Who, route access.Route, id string) (seen, error) {
	r, err := in.service.Request(ctx, id)
	if errors.Is(err, ringi.ErrNotFound) {
		return seen{}, access.Unknown(who, route)
	}
	if err != nil {
		return seen{}, err
	}
	s := stands(who, r)
	return s, access.May(who, route, s.owner)
}

func stands(who access.Who, r ringi.ApprovalRequest) seen {
	owner := who.OwnerOf(access.Of(r))
	return seen{ApprovalRequest: r, owner: owner, full: sight.Of(who, owner, false) == sight.Full, blind: sight.Blind(r, who.SeesPreview)}
}

// may reports whether somebody has a route on the request.
func (s seen) may(who access.Who, route access.Route) bool {
	return access.May(who, route, s.owner) == nil
}

// answerable reports whether an answer is worth a button: state, rule, role.
// The engine has the last word when it is given.
func (s seen) answerable(who access.Who, a ringi.Answer) bool {
	route := access.ApprovalsDecide
	if s.Kind == ringi.KindOutcome {
		route = access.OutcomeSettle
	}
	return s.State == ringi.Pending && !s.ProposalWaits && (!s.blind || a == ringi.Deny) && s.Allows(a) && s.may(who, route) &&
		(!s.Tool.AdminOnly || who.Principal.Admin)
}

// runOf returns a run's row and whose it is, where somebody may use a route on
// it.
func (in *inbox) runOf(ctx context.Context, who access.Who, route access.Route, id string) (ringi.RunRow, []ringi.Event, []ringi.ApprovalRequest, access.Owner, error) {
	none := func(err error) (ringi.RunRow, []ringi.Event, []ringi.ApprovalRequest, access.Owner, error) {
		return ringi.RunRow{}, nil, nil, 0, err
	}
	row, err := in.service.Row(ctx, id)
	if errors.Is(err, ringi.ErrNotFound) {
		return none(access.Unknown(who, route))
	}
	if err != nil {
		return none(err)
	}
	events, err := in.service.Events(ctx, id, 0)
	if err != nil {
		return none(err)
	}
	requests, err := in.requestsOf(ctx, id)
	if err != nil {
		return none(err)
	}
	thing := access.Thing{Space: row.Space, Agent: row.Agent}
	for _, e := range events {
		if b, ok := e.Body.(*ringi.RunStarted); ok {
			thing.By = append(append(thing.By, b.Initiators...), b.By.ID)
		}
	}
	for _, r := range requests {
		thing.Deciders = append(thing.Deciders, r.Deciders)
	}
	owner := who.OwnerOf(thing)
	if err := access.May(who, route, owner); err != nil {
		return none(err)
	}
	return row, events, requests, owner, nil
}

// requestsOf lists all requests of a run.
func (in *inbox) requestsOf(ctx context.Context, run string) ([]ringi.ApprovalRequest, error) {
	p, err := in.service.Requests(ctx, ringi.RequestQuery{RunID: run, State: news.States, Limit: 1000})
	return p.Requests, err
}

// nameOf is how people call somebody.
func (in *inbox) nameOf(ctx context.Context, id string) string {
	if id == "" {
		return "nobody who is known"
	}
	if u, err := in.people.User(ctx, id); err == nil && u.Name != "" {
		return u.Name
	}
	return id
}
