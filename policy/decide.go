package policy

import (
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
)

// DecideRule says who may decide one request. The zero value lets any
// authenticated person.
type DecideRule struct {
	// Deciders names people and teams; the zero value names nobody in
	// particular.
	Deciders ringi.Deciders
	// FourEyes asks for a second person: none of Initiators may approve.
	FourEyes bool
	// Initiators are the principals who asked for the run. An empty id is an
	// initiator that nobody knows; with it, or with none at all, four eyes
	// cannot be shown and nobody may approve.
	Initiators []string
	// People holds, for an id, the person behind that login, so that four eyes
	// compare people (finding S-12). nil: each id is a person of its own. An id
	// that it does not hold, or holds as empty, is nobody known.
	People map[string]string
	// AdminOnly is the tool's own gate: only an admin may decide.
	AdminOnly bool
	// AllowProcess lets the program's own callback decide, in a library. It is
	// never a second pair of eyes.
	AllowProcess bool
}

// MayDecide reports, as an error, why a principal may not give an answer: nil
// means that he may. proposedBy is the author of an edit or of typed values;
// empty where there is none.
//
// Services and agents never decide. Every answer but deny counts as an
// approval, so under four eyes an initiator, and the proposer, may only deny.
// There is no bypass for admins.
//
// Errors: [ringi.ErrNoPrincipal], [ringi.ErrNotPermitted] and, for an answer
// that is none, [ringi.ErrAnswer], each wrapped with why.
func MayDecide(rule DecideRule, by ringi.Principal, answer ringi.Answer, proposedBy string) error {
	switch {
	case by.IsZero():
		return fmt.Errorf("decide: %w", ringi.ErrNoPrincipal)
	case !answer.Known():
		return fmt.Errorf("decide: answer %s: %w", quoted(string(answer)), ringi.ErrAnswer)
	case by.Kind == ringi.Process && !rule.AllowProcess:
		return notPermitted("only a person decides here, not a program")
	case by.Kind != ringi.Person && by.Kind != ringi.Process:
		return notPermitted("only a person decides, never a service or an agent")
	case rule.AdminOnly && !by.Admin:
		return notPermitted("the tool is for admins")
	case !rule.Deciders.IsZero() && !among(rule.Deciders, by):
		return notPermitted("not among those who may decide this request")
	case rule.FourEyes && answer != ringi.Deny:
		return fourEyes(rule, by, proposedBy)
	}
	return nil
}

func fourEyes(rule DecideRule, by ringi.Principal, proposedBy string) error {
	second := rule.person(by.ID)
	switch {
	case !rule.initiatorsKnown():
		return notPermitted("four eyes: it is not known who asked for the run, so nobody may approve")
	case second != "" && rule.asked(second):
		return notPermitted("four eyes: who asked for the run may deny, not approve")
	case proposedBy != "" && rule.person(proposedBy) == "":
		return notPermitted("four eyes: it is not known who proposed the input, so nobody may approve")
	case proposedBy != "" && rule.person(proposedBy) == second:
		return notPermitted("four eyes: who proposed the input may deny, not approve")
	case by.Kind != ringi.Person:
		return notPermitted("four eyes: a program is no second person")
	case second == "":
		return notPermitted("four eyes: it is not known whose login this is")
	}
	return nil
}

// person is who stands behind an id; empty where nobody knows.
func (r DecideRule) person(id string) string {
	if r.People == nil {
		return id
	}
	return r.People[id]
}

// asked reports whether a person is one of the initiators.
func (r DecideRule) asked(person string) bool {
	return slices.ContainsFunc(r.Initiators, func(id string) bool { return r.person(id) == person })
}

func (r DecideRule) initiatorsKnown() bool {
	return len(r.Initiators) > 0 && !r.asked("")
}

func among(d ringi.Deciders, by ringi.Principal) bool {
	return slices.Contains(d.People, by.ID) ||
		slices.ContainsFunc(by.Teams, func(team string) bool { return team != "" && slices.Contains(d.Teams, team) })
}

func notPermitted(why string) error {
	return fmt.Errorf("decide: %w: %s", ringi.ErrNotPermitted, why)
}

// NoDecider reports whether nobody is left who may approve: it is true only
// where everyone who may decide is known and excluded. teams holds the members
// of the teams that this process knows; a team that it does not hold may have
// anyone, so the request goes out. Where it is true the call is denied rather
// than asked into the void.
func NoDecider(rule DecideRule, teams map[string][]string) bool {
	if rule.FourEyes && !rule.initiatorsKnown() {
		return true
	}
	if rule.Deciders.IsZero() {
		return false
	}
	excluded := func(id string) bool {
		if id == "" || !rule.FourEyes {
			return id == ""
		}
		person := rule.person(id)
		return person == "" || rule.asked(person)
	}
	for _, id := range rule.Deciders.People {
		if !excluded(id) {
			return false
		}
	}
	for _, team := range rule.Deciders.Teams {
		members, known := teams[team]
		if !known {
			return false
		}
		for _, id := range members {
			if !excluded(id) {
				return false
			}
		}
	}
	return true
}
