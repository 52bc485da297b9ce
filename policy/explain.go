package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
)

// Explanation answers "why can't my agent see this tool?".
type Explanation struct {
	Tool    string `json:"tool"`
	Offered bool   `json:"offered"`
	// Gates are all five, in their order, also those behind the first refusal.
	Gates []GateAnswer `json:"gates"`
	// Nearest is a registered name like Tool, where Tool is not registered.
	Nearest string `json:"nearest,omitempty"`
}

// GateAnswer is what one gate says of one tool.
type GateAnswer struct {
	Gate   ringi.RefusalReason `json:"gate"`
	Passed bool                `json:"passed"`
	// Detail is a sentence for people, whatever the answer.
	Detail string `json:"detail"`
}

// String writes the explanation as lines: the answer, then the gates.
func (e Explanation) String() string {
	var b strings.Builder
	word := "not offered"
	if e.Offered {
		word = "offered"
	}
	fmt.Fprintf(&b, "%s: %s", e.Tool, word)
	for _, g := range e.Gates {
		mark := "no "
		if g.Passed {
			mark = "yes"
		}
		fmt.Fprintf(&b, "\n  %s %-14s  %s", mark, g.Gate, g.Detail)
	}
	return b.String()
}

// Explain asks each of the five gates about one tool, with a sentence for each
// answer. Offered is true exactly where [Gates.Refuses] is false. It knows
// nothing of the run's own wish to narrow the offer.
func (g Gates) Explain(name string, run ringi.RunInfo, zone ringi.TrustZone) Explanation {
	_, refused := g.Refuses(name, run, zone)
	e := Explanation{Tool: name, Offered: !refused}
	if !g.registered(name) {
		e.explainUnregistered(g)
		return e
	}
	t, _ := g.Registry.Tool(name)
	e.answer(&t, ringi.NotRegistered, true, "the tool is registered", zone)
	e.answer(&t, ringi.ToolDisabled, !g.disabled(name), "no operator disabled it", zone)
	e.answer(&t, ringi.RequiresAdmin, adminAllows(&t, run.By), adminDetail(&t), zone)
	e.answer(&t, ringi.GroupGate, groupAllows(&t, run.Groups), groupDetail(&t, run.Groups), zone)
	e.explainZone(g, &t, zone)
	return e
}

func (e *Explanation) explainUnregistered(g Gates) {
	detail := "no tool of this name is registered"
	if g.Registry != nil {
		if e.Nearest = nearestTool(e.Tool, g.Registry); e.Nearest != "" {
			detail += fmt.Sprintf("; the nearest is %q", e.Nearest)
		}
	}
	e.Gates = append(e.Gates, GateAnswer{Gate: ringi.NotRegistered, Detail: detail})
	for _, gate := range []ringi.RefusalReason{ringi.ToolDisabled, ringi.RequiresAdmin, ringi.GroupGate, ringi.TrustZoneGate} {
		e.Gates = append(e.Gates, GateAnswer{Gate: gate, Detail: "not asked: there is no such tool"})
	}
}

// answer adds a gate's answer: yes is the sentence of one that lets through.
func (e *Explanation) answer(t *ringi.Tool, gate ringi.RefusalReason, passed bool, yes string, zone ringi.TrustZone) {
	if !passed {
		yes = refusal(t, gate, zone).Detail
	}
	e.Gates = append(e.Gates, GateAnswer{Gate: gate, Passed: passed, Detail: yes})
}

func (e *Explanation) explainZone(g Gates, t *ringi.Tool, zone ringi.TrustZone) {
	passed := zoneAllows(t, zone)
	detail := "no trust zone is declared, so there is no ceiling"
	if zone != "" {
		detail = zoneDetail(t, zone)
	}
	switch {
	case !passed && g.observes(t, zone):
		passed = true
		detail += fmt.Sprintf("; this is observed and not enforced until %s", g.ObserveUntil.UTC().Format(time.RFC3339))
	case !passed && g.Observe && zone.Known():
		detail += "; " + g.whyEnforced(t)
	}
	e.Gates = append(e.Gates, GateAnswer{Gate: ringi.TrustZoneGate, Passed: passed, Detail: detail})
}

// whyEnforced says why an operator's "observe" does not hold.
func (g Gates) whyEnforced(t *ringi.Tool) string {
	switch {
	case t.Remote != nil:
		return "observe is set and never holds for a remote tool"
	case g.ObserveUntil.IsZero():
		return "observe is set without an end date, so the gate enforces"
	}
	return fmt.Sprintf("observe ended at %s, so the gate enforces", g.ObserveUntil.UTC().Format(time.RFC3339))
}

func adminDetail(t *ringi.Tool) string {
	if t.AdminOnly {
		return "the tool is for admins, and who started the run is one"
	}
	return "the tool is for everybody"
}

func groupDetail(t *ringi.Tool, groups []string) string {
	switch {
	case t.Group == "":
		return "the tool has no group and belongs to every run"
	case groups == nil:
		return fmt.Sprintf("the run names no groups, so it has all, %q too", t.Group)
	}
	return fmt.Sprintf("the tool's group %q is among the run's groups", t.Group)
}
