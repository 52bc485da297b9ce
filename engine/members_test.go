package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ringi-dev/ringi"
)

// roster knows the teams of people, and may be out of reach.
type roster struct {
	of   map[string][]string
	down bool
}

func (r *roster) TeamsOf(_ context.Context, id string) ([]string, bool, error) {
	if r.down {
		return nil, false, errors.New("the directory does not answer")
	}
	teams, known := r.of[id]
	return teams, known, nil
}

// The decider's teams are the directory's when he decides, and again before the
// approval is spent; what he says of himself counts only where it knows nothing
// of him.
func TestDecidersTeamsAreTheDirectorys(t *testing.T) {
	r := &roster{of: map[string][]string{"ana": {"cash"}, "ben": {}}}
	s := newShop(t, turn("pay", `{"amount":900}`))
	s.ran.Tool(s.reg, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite}, "paid")
	s.cfg.Deciders, s.cfg.Members = ringi.Deciders{Teams: []string{"cash"}}, r
	as := func(id string, teams ...string) ringi.Principal {
		return ringi.Principal{ID: id, Kind: ringi.Person, Auth: "test", Teams: teams}
	}

	res := s.waits(1)
	q := res.Pending[0]
	s.refuses(q.Approve(as("ben", "cash")), ringi.ErrNotPermitted) // he says so, and is not
	s.refuses(q.Approve(as("zoe")), ringi.ErrNotPermitted)         // unknown, and says nothing
	r.down = true
	if _, err := s.engine().Decide(t.Context(), q.Approve(as("ana", "cash"))); err == nil {
		t.Error("a decision by team while the directory does not answer")
	}
	r.down = false
	s.decide(q.Approve(as("ana"))) // she says nothing, and is

	// She leaves before the call starts: somebody is asked anew.
	r.of["ana"] = nil
	again := s.resume(res.RunID)
	if len(again.Pending) != 1 || again.Pending[0].ID == q.ID {
		t.Fatalf("a decider who left: %+v", again)
	}
	s.nothingRan()

	s.decide(again.Pending[0].Approve(as("zoe", "cash"))) // vouched for elsewhere
	if out := s.ends(res.RunID); out.Results[0].Outcome != ringi.OutcomeOK {
		t.Errorf("%+v", out.Results[0])
	}
	s.ran.Want(t, "pay", 1)
}
