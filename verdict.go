package ringi

import (
	"context"
	"fmt"
)

// Status is policy's word on a call. The zero value means no opinion and falls
// through to the next rung of the ladder; it is never a final verdict.
type Status string

// The four statuses, strictest last.
const (
	NotApplicable Status = "not-applicable" // the tool runs, no approval metadata
	Approved      Status = "approved"       // an automatic approval is recorded, the tool runs
	UserApproval  Status = "user-approval"  // a request goes out and the call waits
	Denied        Status = "denied"         // an automatic denial is recorded, the tool does not run
)

// Known reports whether s is one of the four statuses.
func (s Status) Known() bool {
	switch s {
	case NotApplicable, Approved, UserApproval, Denied:
		return true
	}
	return false
}

// Strictness orders the statuses: not-applicable 0, approved 1, user-approval
// 2, denied 3. The zero value is -1, and anything unknown 3.
func (s Status) Strictness() int {
	switch s {
	case "":
		return -1
	case NotApplicable:
		return 0
	case Approved:
		return 1
	case UserApproval:
		return 2
	}
	return 3
}

// Verdict is policy's answer, with the rung or rule that gave it and why. In
// JSON and YAML configuration it is a string, or an object with type and
// reason.
type Verdict struct {
	Status Status `json:"status"`
	// Source names the rung or rule: see the Source constants.
	Source string `json:"source,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// The sources of a verdict: rungs 1 to 5 of the ladder, the floor, and the
// engine's own refusals.
const (
	SourceFunc         = "approval.func"          // rung 1
	SourceToolFunc     = "approval.tool.func"     // rung 2
	SourceToolStatus   = "approval.tool.status"   // rung 3
	SourceNeeds        = "tool.needs_approval"    // rung 4
	SourceMarker       = "rule.marker"            // rung 5: the approval marker
	SourceRemote       = "rule.remote"            // rung 5: a remote tool
	SourceEffect       = "rule.effect"            // rung 5: a declared write
	SourceRule         = "rule"                   // rung 5: nothing applies
	SourceFloor        = "floor"                  // prefix of the floor's own sources
	SourceOperator     = "floor.require_approval" // the operator named the tool
	SourceOffer        = "offer"                  // a gate of the offer
	SourceUnattended   = "unattended"             // nobody is there to ask
	SourceDenialBudget = "denial_budget"          // denied too often already
	SourceDeciders     = "deciders"               // nobody is left who may decide
	SourceAdmit        = "admit"                  // a limit over several calls
	SourceLimit        = "limit"                  // a limit of the run
)

// Runs reports whether the call may run without a person.
func (v Verdict) Runs() bool { return v.Status == NotApplicable || v.Status == Approved }

// String returns the status, with source and reason where there are any.
func (v Verdict) String() string {
	s := string(v.Status)
	if s == "" {
		s = "no opinion"
	}
	if v.Source != "" {
		s += " (" + v.Source + ")"
	}
	if v.Reason != "" {
		s += ": " + v.Reason
	}
	return s
}

// ApprovalFunc is an approval function. The zero Verdict means no opinion. An
// error, a panic, an unknown status or more than 2 s deny the call. It may be
// asked again by another process; it must have no effects. A function that
// asks a model should only tighten.
type ApprovalFunc func(ctx context.Context, c CallInfo) (Verdict, error)

// Approval is the user's approval settings: rungs 1 to 3 of the ladder. The
// zero value has no opinion on anything.
type Approval struct {
	// Version names this policy in the log; a process whose policy has another
	// version judges no run of this one. Empty is a version like any other.
	Version string
	// Func is rung 1: asked first, for every call.
	Func ApprovalFunc
	// Tools are rungs 2 and 3, by tool name. A name that no registry knows is
	// an error when the engine is made.
	Tools map[string]ToolApproval
}

// ToolApproval is the setting of one tool: rung 2 (Func, see [When]) and rung
// 3 (Status with Reason).
type ToolApproval struct {
	Status Status
	Reason string
	Func   ApprovalFunc
}

// When makes a typed approval function: it gets the decoded, schema-valid
// input. An input that does not decode denies.
func When[In any](f func(ctx context.Context, in In, c CallInfo) (Verdict, error)) ToolApproval {
	if f == nil {
		return ToolApproval{Func: func(context.Context, CallInfo) (Verdict, error) {
			return Verdict{}, fmt.Errorf("approval function is nil")
		}}
	}
	return ToolApproval{Func: func(ctx context.Context, c CallInfo) (Verdict, error) {
		var in In
		if err := decodeExact([]byte(c.Call.Input), &in); err != nil {
			return Verdict{}, fmt.Errorf("decode input: %w", err)
		}
		return f(ctx, in, c)
	}}
}
