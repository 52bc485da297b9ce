package httpapi

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/news"
	"github.com/ringi-dev/ringi/internal/sight"
)

// What stands to whom: from an id in an address to the right to use it.

// every is all owners: who has no right for any of them has none for the route.
const every = access.Own | access.Asked | access.Other | access.All

// place is what of a run never changes: whose it is.
type place struct {
	run, space, thread, agent string
	by                        []string
}

// places keeps the places of runs in mind.
type places struct {
	mu sync.Mutex
	by map[string]place
}

const maxPlaces = 20_000

func (p *places) get(run string) (place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.by[run]
	return at, ok
}

func (p *places) put(at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil || len(p.by) >= maxPlaces {
		p.by = map[string]place{}
	}
	p.by[at.run] = at
}

// place finds a run's place. ErrNotFound.
func (s *server) place(ctx context.Context, run string) (place, error) {
	if at, ok := s.places.get(run); ok {
		return at, nil
	}
	row, err := s.Service.Row(ctx, run)
	if err != nil {
		return place{}, err
	}
	events, err := s.Service.Events(ctx, run, 0)
	if err != nil {
		return place{}, err
	}
	at := place{run: row.ID, space: row.Space, thread: row.Thread, agent: row.Agent}
	if len(events) > 0 {
		if b, ok := events[0].Body.(*ringi.RunStarted); ok {
			at.by = append([]string{b.By.ID}, b.Initiators...)
		}
	}
	s.places.put(at)
	return at, nil
}

// deciders are those of a run's requests. Only people are asked.
func (s *server) deciders(ctx context.Context, w access.Who, q ringi.RequestQuery) ([]ringi.Deciders, error) {
	if !w.Has(access.RoleApprover) {
		return nil, nil
	}
	var out []ringi.Deciders
	q.State, q.Limit = news.States, 1000
	for {
		page, err := s.Service.Requests(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Requests {
			out = append(out, r.Deciders)
		}
		if page.Next == "" {
			return out, nil
		}
		q.After = page.Next
	}
}

// seen is a thing and how it stands to who asks.
type seen struct {
	place
	owner access.Owner
	sight sight.Sight
	// previews says which previews he is shown; nil: none.
	previews sight.Previews
}

// show is a request as he sees it.
func (v seen) show(r ringi.ApprovalRequest, reason string) sight.Request {
	return v.sight.Request(r, v.previews, reason)
}

// run finds a run that w may use a route on; any of the routes will do, and the
// first one speaks.
func (s *server) run(ctx context.Context, w access.Who, id string, routes ...access.Route) (seen, error) {
	if err := mayAny(w, every, routes); err != nil {
		return seen{}, err
	}
	at, err := s.place(ctx, id)
	if err != nil {
		if untold(w, err) {
			err = mayAny(w, 0, routes)
		}
		return seen{}, err
	}
	deciders, err := s.deciders(ctx, w, ringi.RequestQuery{RunID: id})
	if err != nil {
		return seen{}, err
	}
	owner := w.OwnerOf(access.Thing{Space: at.space, Agent: at.agent, By: at.by, Deciders: deciders})
	if err := mayAny(w, owner, routes); err != nil {
		return seen{}, err
	}
	return seen{at, owner, sight.Of(w, owner, s.isOpen(at.agent)), w.SeesPreview}, nil
}

// request finds a request that w may use a route on.
func (s *server) request(ctx context.Context, w access.Who, id string, route access.Route) (ringi.ApprovalRequest, seen, error) {
	var none ringi.ApprovalRequest
	if err := access.May(w, route, every); err != nil {
		return none, seen{}, err
	}
	r, err := s.Service.Request(ctx, id)
	if err != nil {
		return none, seen{}, s.hidden(w, route, err)
	}
	v := s.asked(w, r)
	if err := access.May(w, route, v.owner); err != nil {
		return none, seen{}, err
	}
	return r, v, nil
}

// asked says how a request stands to w.
func (s *server) asked(w access.Who, r ringi.ApprovalRequest) seen {
	owner := w.OwnerOf(access.Of(r))
	at := place{run: r.RunID, space: r.Space, thread: r.Thread, agent: r.Agent, by: r.Initiators}
	return seen{at, owner, sight.Of(w, owner, s.isOpen(r.Agent)), w.SeesPreview}
}

func (s *server) isOpen(agent string) bool { return s.Open != nil && s.Open(agent) }

// hidden is the answer where a thing could not be found, or not be read.
func (s *server) hidden(w access.Who, route access.Route, err error) error {
	if untold(w, err) {
		return access.Unknown(w, route)
	}
	return err
}

// untold reports whether err would tell w that a thing exists. What is broken is
// told to those alone who may see everybody's.
func untold(w access.Who, err error) bool {
	broken := errors.Is(err, ringi.ErrCorrupt) || errors.Is(err, ringi.ErrNoKey)
	return errors.Is(err, ringi.ErrNotFound) ||
		broken && access.May(w, access.RunsRead, access.Other) != nil && access.May(w, access.AuditRead, access.Other) != nil
}

func mayAny(w access.Who, owner access.Owner, routes []access.Route) error {
	var first error
	for _, route := range routes {
		err := access.May(w, route, owner)
		if err == nil {
			return nil
		}
		// "Not found" says less than "forbidden": it stands where one says so.
		if first == nil || errors.Is(err, access.ErrHidden) {
			first = err
		}
	}
	return fmt.Errorf("%w", first)
}
