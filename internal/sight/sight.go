// Package sight says who sees what of a run and its requests: one function
// (Of) for the API, its streams, and the inbox. What it lets through is masked
// (package mask) before anybody gets it.
package sight

import (
	"github.com/ringi-dev/ringi/access"
)

// Sight is how much a reader sees. The zero value is nothing.
type Sight uint8

// How much a reader sees, from least to most.
const (
	// None is a reader who must not learn of the thing.
	None Sight = iota
	// Heads is an auditor's: the log's events without their bodies.
	Heads
	// Waits is a chat user's, of his own run: that something waits, its tool's
	// name and how it ended.
	Waits
	// Client is an agent's client's, of its own run: the verdict, the bytes that
	// shall run, and the reason.
	Client
	// Shown is Waits with input, preview and results, where the agent allows it.
	Shown
	// Full is who may decide, an admin, and an auditor with payloads.
	Full
)

// Of says how much w sees of a thing that stands to him as owner. open says
// that the thing's agent lets its chat users see inputs and results.
func Of(w access.Who, owner access.Owner, open bool) Sight {
	reads := access.May(w, access.ApprovalsRead, owner) == nil || access.May(w, access.RunsRead, owner) == nil
	switch {
	case reads && owner&access.Asked != 0 && w.Has(access.RoleApprover), reads && w.Has(access.RoleAdmin):
		return Full
	case access.May(w, access.AuditPayloads, owner) == nil:
		return Full
	case reads && w.Has(access.RoleAgent):
		return Client
	case reads && open:
		return Shown
	case reads:
		return Waits
	case access.May(w, access.AuditRead, owner) == nil:
		return Heads
	}
	return None
}

// input reports whether the bytes of a call are seen.
func (s Sight) input() bool { return s >= Client }

// preview reports whether previews and results are seen.
func (s Sight) preview() bool { return s >= Shown }
