package access

import (
	"slices"

	"github.com/ringi-dev/ringi"
)

// Owner says how a thing stands to who asks for it; several may hold at once.
// The zero value is a thing that he must not learn of (another space's, another
// agent's): nothing may be done with it.
type Owner uint8

// How a thing may stand to who asks.
const (
	// Own is a thing that he, or an agent's token of his, asked for.
	Own Owner = 1 << iota
	// Asked is a request that he is asked to decide, and its run and thread.
	Asked
	// Other is somebody else's.
	Other
	// All is every thing of the space at once: a list that nothing narrows.
	All
)

// owners are the columns of the table.
var owners = []struct {
	owner Owner
	name  string
}{{Own, "own"}, {Asked, "asked"}, {Other, "other"}, {All, "all"}}

// Thing is what a route is about, as far as its owner goes.
type Thing struct {
	// Space is the thing's. Another space's is hidden.
	Space string
	// Agent is the agent that it belongs to. A token that is not for this agent
	// is not told of the thing. Empty: none in particular, and then a token that
	// names its agents is not told either, unless it asked for the thing itself.
	Agent string
	// By are the principals who asked for it: a run's or request's initiators, a
	// thread's authors, a token's owner.
	By []string
	// Deciders are those of a request, or of the requests of a run or thread
	// (one entry each). nil: nobody is asked. A zero entry asks every approver.
	Deciders []ringi.Deciders
}

// Of returns the thing that a request is.
func Of(r ringi.ApprovalRequest) Thing {
	return Thing{Space: r.Space, Agent: r.Agent, By: r.Initiators, Deciders: []ringi.Deciders{r.Deciders}}
}

// OwnerOf says how t stands to w.
func (w Who) OwnerOf(t Thing) Owner {
	if w.Principal.IsZero() || w.Space == "" || t.Space != w.Space {
		return 0
	}
	own := slices.ContainsFunc(t.By, func(id string) bool {
		return id != "" && (id == w.Principal.ID || slices.Contains(w.Clients, id))
	})
	if !w.ForAgent(t.Agent) && (t.Agent != "" || !own) {
		return 0
	}
	var o Owner
	if own {
		o |= Own
	}
	if w.Principal.Kind == ringi.Person && slices.ContainsFunc(t.Deciders, w.among) {
		o |= Asked
	}
	if o == 0 {
		return Other
	}
	return o
}

// among reports whether w is one of those who may decide. Nobody in particular
// is everybody.
func (w Who) among(d ringi.Deciders) bool {
	return d.IsZero() || slices.Contains(d.People, w.Principal.ID) ||
		slices.ContainsFunc(w.Principal.Teams, func(team string) bool { return team != "" && slices.Contains(d.Teams, team) })
}

// EveryAgent in a token's list of agents stands for all of them.
const EveryAgent = "*"

// ForAgent reports whether w may speak of an agent. Only tokens are bound to
// agents; one that names none is for none.
func (w Who) ForAgent(agent string) bool {
	return w.TokenID == "" || slices.Contains(w.Agents, EveryAgent) || agent != "" && slices.Contains(w.Agents, agent)
}
