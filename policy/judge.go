package policy

import "github.com/ringi-dev/ringi"

// Judge gives the verdict on a call. It is pure.
//
// opinion is the first opinion of rungs 1 to 4, from [Ask]; where there is
// none the tool's own NeedsApproval speaks (rung 4), and then [Rule] (rung 5).
// floor is the floor's opinion, from [AskFloor]: the strictest of floor and
// ladder wins, so a floor only tightens, and one without an opinion changes
// nothing. In a tie the ladder's own verdict stays.
//
// An unknown status, on either side, is a denial. The verdict's status is
// always one of the four.
func Judge(opinion ringi.Verdict, t ringi.Tool, floor ringi.Verdict, o RuleOptions) ringi.Verdict {
	v := refuseUnknown(opinion)
	if v.Status == "" {
		v = toolOpinion(&t)
	}
	rule := ringi.Verdict{}
	if v.Status == "" || o.Floor {
		rule = Rule(t, o)
	}
	if v.Status == "" {
		v = rule
	}
	if o.Floor {
		v = Strictest(v, prefixed(rule))
	}
	return Strictest(v, floor)
}

// toolOpinion is the data form of rung 4. A false is no opinion: the rule
// follows.
func toolOpinion(t *ringi.Tool) ringi.Verdict {
	if !t.NeedsApproval {
		return ringi.Verdict{}
	}
	return ringi.Verdict{Status: ringi.UserApproval, Source: ringi.SourceNeeds, Reason: "the tool says that it needs approval"}
}

// Strictest returns the stricter of both: denied, user-approval, approved,
// not-applicable, no opinion. In a tie it returns a. An unknown status is a
// denial.
func Strictest(a, b ringi.Verdict) ringi.Verdict {
	if b.Status == "" { // nearly always: no floor
		return refuseUnknown(a)
	}
	a, b = refuseUnknown(a), refuseUnknown(b)
	if b.Status.Strictness() > a.Status.Strictness() {
		return b
	}
	return a
}

// The sources of the floor's own rungs, ready so that nothing is allocated.
const (
	floorFunc       = ringi.SourceFloor + "." + ringi.SourceFunc
	floorToolFunc   = ringi.SourceFloor + "." + ringi.SourceToolFunc
	floorToolStatus = ringi.SourceFloor + "." + ringi.SourceToolStatus
	floorMarker     = ringi.SourceFloor + "." + ringi.SourceMarker
	floorRemote     = ringi.SourceFloor + "." + ringi.SourceRemote
	floorEffect     = ringi.SourceFloor + "." + ringi.SourceEffect
	floorRule       = ringi.SourceFloor + "." + ringi.SourceRule
)

// prefixed marks a verdict of the rule as the floor's.
func prefixed(v ringi.Verdict) ringi.Verdict {
	switch v.Source {
	case ringi.SourceMarker:
		v.Source = floorMarker
	case ringi.SourceRemote:
		v.Source = floorRemote
	case ringi.SourceEffect:
		v.Source = floorEffect
	default:
		v.Source = floorRule
	}
	return v
}
