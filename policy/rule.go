package policy

import (
	"fmt"

	"github.com/ringi-dev/ringi"
)

// RuleOptions are the two settings of the rule. The zero value is the strict
// reading for remote tools and no floor.
type RuleOptions struct {
	// UndeclaredRemote is the verdict on a remote tool whose server nobody
	// judged. The zero value is user-approval. not-applicable lets such a tool
	// run, in the words of the ADR that this rule comes from: "an imported tool
	// without a declaration stays in the unattended set whatever it does".
	UndeclaredRemote ringi.Status
	// Floor makes the rule a floor as well: nothing that the rule asks about
	// is waved through by an approval function or setting. Off in a library;
	// a server's default.
	Floor bool
}

// Rule is the approval rule, rung 5 of the ladder: over the tool alone, and in
// this one place. A tool needs a person's approval where
//
//   - it carries the approval marker; or
//   - it is remote, and its operator declares it approval-bound or nobody
//     judged its server (see [RuleOptions]); or
//   - it is local, and its declared effect is a write.
//
// A remote tool is never judged on its effect nor on its own server's hints.
// An undeclared effect is judged as a read. Everything else runs:
// not-applicable.
func Rule(t ringi.Tool, o RuleOptions) ringi.Verdict {
	switch {
	case t.RequiresApproval:
		return ringi.Verdict{Status: ringi.UserApproval, Source: ringi.SourceMarker, Reason: "the tool carries the approval marker"}
	case t.Remote != nil:
		return remoteRule(t.Remote.Approval, o)
	case t.Effect.Writes():
		return ringi.Verdict{Status: ringi.UserApproval, Source: ringi.SourceEffect, Reason: effectReason(t.Effect)}
	case !t.Effect.Known():
		// No registry takes such a tool. One that comes from elsewhere counts
		// as a write.
		return ringi.Verdict{Status: ringi.UserApproval, Source: ringi.SourceEffect, Reason: "the tool's effect is not known"}
	}
	return ringi.Verdict{Status: ringi.NotApplicable, Source: ringi.SourceRule}
}

func remoteRule(declared ringi.RemoteApproval, o RuleOptions) ringi.Verdict {
	v := ringi.Verdict{Status: ringi.UserApproval, Source: ringi.SourceRemote}
	switch declared {
	case ringi.RemoteRequired:
		v.Reason = "the operator declares the remote tool approval-bound"
	case ringi.RemoteNotRequired:
		v.Status = ringi.NotApplicable
	case ringi.RemoteUnjudged:
		v.Reason = "nobody judged the remote tool's server"
		if o.UndeclaredRemote != "" {
			v.Status = o.UndeclaredRemote
			v = refuseUnknown(v)
		}
	default:
		v.Reason = "the operator's declaration on the remote tool is not known"
	}
	return v
}

// effectReason has the two sentences ready: the rule allocates nothing.
func effectReason(e ringi.Effect) string {
	if e == ringi.IdempotentWrite {
		return "effect is a write (idempotent_write)"
	}
	return "effect is a write (non_idempotent_write)"
}

// refuseUnknown turns an unknown status into a denial. The zero status stays: it is no
// opinion.
func refuseUnknown(v ringi.Verdict) ringi.Verdict {
	if v.Status == "" || v.Status.Known() {
		return v
	}
	v.Reason = fmt.Sprintf("unknown approval status %s", quoted(string(v.Status)))
	v.Status = ringi.Denied
	return v
}

// quoted bounds text that is not ours.
func quoted(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	return fmt.Sprintf("%q", s)
}
