package policy

import "github.com/ringi-dev/ringi"

// Filter answers which tools run where nobody can be asked. It reads registry
// and settings anew at every question, so a local tool that gains a write
// effect, or any tool that gains the approval marker or an operator's
// declaration, leaves the set without a change here. The zero Filter knows no
// tool.
type Filter struct {
	registry        *ringi.Registry
	approval, floor ringi.Approval
	require         []string
	options         RuleOptions
}

var _ ringi.UnattendedFilter = Filter{}

// Unattended makes the filter for the settings that a run would have. It
// filters and does not decide what may be offered: narrow the names of an
// [Gates.Offer] with it.
func Unattended(r *ringi.Registry, a, floor ringi.Approval, require []string, o RuleOptions) Filter {
	return Filter{registry: r, approval: a, floor: floor, require: require, options: o}
}

// Unattended returns, in their order, the names of the tools that run without
// a human pause of either kind: no approval, and no typed input. What the
// registry does not know is left out, and so is what depends on the call.
func (f Filter) Unattended(names []string) []string {
	var run []string
	for _, name := range names {
		if f.explain(name).Answer == ringi.UnattendedRuns {
			run = append(run, name)
		}
	}
	return run
}

// Explain answers for every name, in their order, with a reason:
//
//   - unknown: the registry has no such tool;
//   - denied: every call of it is denied;
//   - asks: every call of it waits for a person, or is denied. A tool that
//     somebody else runs asks too: the run waits for the result;
//   - input: it needs values that a person types;
//   - per_call: a function decides, call by call. The generic function makes
//     every tool per_call that floor and operator leave open;
//   - runs: every call of it runs.
func (f Filter) Explain(names []string) []ringi.Withheld {
	answers := make([]ringi.Withheld, len(names))
	for i, name := range names {
		answers[i] = f.explain(name)
	}
	return answers
}

func (f Filter) explain(name string) ringi.Withheld {
	w := ringi.Withheld{Tool: name, Answer: ringi.UnattendedUnknown, Reason: "no tool of this name is registered"}
	if f.registry == nil {
		return w
	}
	t, ok := f.registry.Tool(name)
	if !ok {
		return w
	}
	mildest, depends := f.mildest(t)
	switch {
	case mildest.Status == ringi.Denied:
		w.Answer, w.Reason = ringi.UnattendedDenied, because(mildest)
	case mildest.Status == ringi.UserApproval:
		w.Answer, w.Reason = ringi.UnattendedAsks, because(mildest)
	case t.External:
		w.Answer, w.Reason = ringi.UnattendedAsks, "somebody else runs the tool, and the run waits for the result"
	case len(t.InputRequired) > 0:
		w.Answer, w.Reason = ringi.UnattendedInput, "the tool needs values that a person types"
	case depends != "":
		w.Answer, w.Reason = ringi.UnattendedPerCall, depends
	default:
		w.Answer, w.Reason = ringi.UnattendedRuns, because(mildest)
	}
	return w
}

// mildest is the least strict verdict that any call of the tool can get, from
// the same [Judge] as a run's, and what makes other calls stricter: empty
// where all calls get the same verdict. Where a function is set its mildest
// word counts, so a tool that asks whatever it says is not offered in vain.
func (f Filter) mildest(t ringi.Tool) (v ringi.Verdict, depends string) {
	opinion, depends := f.mildestOpinion(t)
	floor := operatorWord(f.require, t.Name)
	own := f.floor.Tools[t.Name]
	switch {
	case f.floor.Func != nil:
		depends = "the floor's generic function decides on each call"
	case own.Func != nil:
		depends = "the floor's function of this tool decides on each call"
	default:
		floor = Strictest(statusOpinion(own, floorToolStatus), floor)
	}
	return Judge(opinion, t, floor, f.options), depends
}

func (f Filter) mildestOpinion(t ringi.Tool) (v ringi.Verdict, depends string) {
	own := f.approval.Tools[t.Name]
	switch {
	case f.approval.Func != nil:
		return ringi.Verdict{Status: ringi.NotApplicable, Source: ringi.SourceFunc}, "the generic approval function decides on each call"
	case own.Func != nil:
		return ringi.Verdict{Status: ringi.NotApplicable, Source: ringi.SourceToolFunc}, "the tool's approval function decides on each call"
	case own.Status != "":
		return statusOpinion(own, ringi.SourceToolStatus), ""
	case !t.NeedsApproval && f.registry.Hooks(t.Name).NeedsApproval != nil:
		return f.mildestNeeds(t), "the tool's own function of the input decides on each call"
	}
	return ringi.Verdict{}, ""
}

// mildestNeeds: where the function says false the rule follows, and that is
// the milder word unless the options make the rule deny.
func (f Filter) mildestNeeds(t ringi.Tool) ringi.Verdict {
	if Rule(t, f.options).Status == ringi.Denied {
		return needsApproval
	}
	return ringi.Verdict{}
}

// because gives a verdict's reason, or its source where it has none.
func because(v ringi.Verdict) string {
	if v.Reason != "" {
		return v.Reason
	}
	switch v.Source {
	case ringi.SourceRule:
		return "nothing in the rule applies to the tool"
	case ringi.SourceRemote:
		return "nothing requires an approval of the remote tool"
	}
	return string(v.Status) + " by " + v.Source
}
