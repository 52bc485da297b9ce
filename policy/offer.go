package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
)

// Gates are the five gates of the offer. They are one AND: a tool is offered
// where all five let it through. The zero value has no registry and offers
// nothing.
type Gates struct {
	Registry *ringi.Registry
	// Disabled names the tools that an operator switched off. A name that
	// differs only by letter case disables too: a no is read generously.
	Disabled []string
	// Observe makes the trust zone gate report and not refuse, for local tools
	// and for as long as Now is before ObserveUntil. Without that end date, or
	// behind it, the gate enforces; for remote tools it always does.
	Observe      bool
	ObserveUntil time.Time
	// Now is the time that ObserveUntil is compared with. The zero value
	// enforces.
	Now time.Time
}

// Offer returns the tools that the run's model may see, in the order of their
// registration and as the model sees them, and why it may not see the others.
//
// narrow is the run's own wish: nil wants all, an empty list nothing, and a
// name that the registry does not know is refused as not_registered. It
// narrows only. A tool that it leaves out is not a refusal.
//
// zone "" is undeclared and has no ceiling. With a zone, a tool of undeclared
// data class counts as secret_adjacent. A zone that is not known lets nothing
// through.
func (g Gates) Offer(run ringi.RunInfo, zone ringi.TrustZone, narrow []string) ringi.Offer {
	var offer ringi.Offer
	if g.Registry != nil && (narrow == nil || len(narrow) > 0) {
		tools := g.Registry.Tools()
		offer.Tools = tools[:0]
		for _, t := range tools {
			if narrow == nil || slices.Contains(narrow, t.Name) {
				g.offerOne(&offer, t, run, zone)
			}
		}
	}
	for i, name := range narrow {
		if !g.registered(name) && !slices.Contains(narrow[:i], name) {
			offer.Refused = append(offer.Refused, notRegistered(name))
		}
	}
	return offer
}

func (g Gates) offerOne(offer *ringi.Offer, t ringi.Tool, run ringi.RunInfo, zone ringi.TrustZone) {
	reason := g.refuses(&t, run, zone)
	switch {
	case reason == ringi.TrustZoneGate && g.observes(&t, zone):
		offer.Observed = append(offer.Observed, refusal(&t, reason, zone))
	case reason != "":
		offer.Refused = append(offer.Refused, refusal(&t, reason, zone))
		return
	}
	if seen, ok := g.Registry.Offered(t.Name); ok {
		offer.Tools = append(offer.Tools, seen)
	}
}

// Refuses asks the five gates about one tool: at a resume, and before an
// approved call runs. It returns the first refusal, in the order of
// [ringi.NotRegistered] to [ringi.TrustZoneGate], and true; or false where the
// tool may be offered.
func (g Gates) Refuses(name string, run ringi.RunInfo, zone ringi.TrustZone) (ringi.Refusal, bool) {
	if g.Registry == nil {
		return notRegistered(name), true
	}
	t, ok := g.Registry.Tool(name)
	if !ok {
		return notRegistered(name), true
	}
	reason := g.refuses(&t, run, zone)
	if reason == "" || reason == ringi.TrustZoneGate && g.observes(&t, zone) {
		return ringi.Refusal{}, false
	}
	return refusal(&t, reason, zone), true
}

// refuses is the AND of gates two to five. The gates stand cheapest and least
// revealing first; the first refusal is told.
func (g Gates) refuses(t *ringi.Tool, run ringi.RunInfo, zone ringi.TrustZone) ringi.RefusalReason {
	switch {
	case g.disabled(t.Name):
		return ringi.ToolDisabled
	case !adminAllows(t, run.By):
		return ringi.RequiresAdmin
	case !groupAllows(t, run.Groups):
		return ringi.GroupGate
	case !zoneAllows(t, zone):
		return ringi.TrustZoneGate
	}
	return ""
}

func (g Gates) registered(name string) bool {
	if g.Registry == nil {
		return false
	}
	_, ok := g.Registry.Tool(name)
	return ok
}

func (g Gates) disabled(name string) bool {
	for _, d := range g.Disabled {
		if strings.EqualFold(d, name) {
			return true
		}
	}
	return false
}

// adminAllows: no user is no admin, whatever the flag says.
func adminAllows(t *ringi.Tool, by ringi.Principal) bool {
	return !t.AdminOnly || by.Admin && !by.IsZero()
}

// groupAllows: nil groups are all of them, an empty list is none.
func groupAllows(t *ringi.Tool, groups []string) bool {
	return t.Group == "" || groups == nil || slices.Contains(groups, t.Group)
}

func zoneAllows(t *ringi.Tool, zone ringi.TrustZone) bool {
	if zone == "" {
		return true
	}
	ceiling, ok := zone.Ceiling()
	return ok && t.DataClass.Rank() <= ceiling.Rank()
}

// observes reports whether a refusal of the zone gate is only told. A zone
// that is not known is a mistake in the configuration and never observed.
func (g Gates) observes(t *ringi.Tool, zone ringi.TrustZone) bool {
	return g.Observe && t.Remote == nil && zone.Known() &&
		!g.Now.IsZero() && g.Now.Before(g.ObserveUntil)
}

func notRegistered(name string) ringi.Refusal {
	return ringi.Refusal{Tool: name, Reason: ringi.NotRegistered, Detail: "no tool of this name is registered"}
}

func refusal(t *ringi.Tool, reason ringi.RefusalReason, zone ringi.TrustZone) ringi.Refusal {
	r := ringi.Refusal{Tool: t.Name, Reason: reason}
	switch reason {
	case ringi.ToolDisabled:
		r.Detail = "an operator disabled the tool"
	case ringi.RequiresAdmin:
		r.Detail = "the tool is for admins, and who started the run is none"
	case ringi.GroupGate:
		r.Detail = fmt.Sprintf("the tool's group %q is not among the run's groups", t.Group)
	case ringi.TrustZoneGate:
		r.Detail = zoneDetail(t, zone)
	}
	return r
}

func zoneDetail(t *ringi.Tool, zone ringi.TrustZone) string {
	ceiling, ok := zone.Ceiling()
	if !ok {
		return fmt.Sprintf("the trust zone %q is not known, so nothing is offered", zone)
	}
	return fmt.Sprintf("the tool's data class is %s; a model in zone %s may read up to %s", className(t.DataClass), zone, ceiling)
}

// className names what an undeclared or unknown class counts as.
func className(c ringi.DataClass) string {
	switch {
	case c == "":
		return "undeclared and counts as " + string(ringi.SecretAdjacent)
	case !c.Known():
		return fmt.Sprintf("%q, which is not known and counts as %s", string(c), ringi.SecretAdjacent)
	}
	return string(c)
}
