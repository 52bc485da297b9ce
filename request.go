package ringi

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// RequestKind says what a request asks for.
type RequestKind string

// The kinds of a request.
const (
	KindApproval         RequestKind = "approval"
	KindInput            RequestKind = "input"
	KindApprovalAndInput RequestKind = "approval_and_input"
	KindResult           RequestKind = "result"  // an external tool's result
	KindOutcome          RequestKind = "outcome" // what happened to a call that may have run
)

// RequestState is where a request stands. pending moves to approved, denied,
// expired, withdrawn or stale; approved moves to spent, expired, withdrawn or
// stale. Nothing else moves.
type RequestState string

// The states of a request.
const (
	Pending   RequestState = "pending"
	Granted   RequestState = "approved" // a person approved; not yet run
	Refused   RequestState = "denied"
	Expired   RequestState = "expired"
	Withdrawn RequestState = "withdrawn"
	Stale     RequestState = "stale"
	Spent     RequestState = "spent"
)

// Open reports whether something may still come of the request.
func (s RequestState) Open() bool { return s == Pending || s == Granted }

// ApprovalRequest is the question put to a person. All that it shows is fixed
// by its Digest; with a keyring it is signed.
type ApprovalRequest struct {
	ID     string `json:"id"`
	Space  string `json:"space"`
	Thread string `json:"thread"`
	RunID  string `json:"run_id"`
	// Agent is the run's.
	Agent string       `json:"agent,omitempty"`
	Kind  RequestKind  `json:"kind"`
	State RequestState `json:"state"`
	// Digest fixes what was shown. A decision carries it back.
	Digest string `json:"digest"`
	// Signature is empty without a keyring.
	Signature string   `json:"signature,omitempty"`
	Call      ToolCall `json:"call"`
	// Proposed is the model's own input where a person's edit or typed values
	// replaced it; Call.Input is what will run.
	Proposed Input `json:"proposed,omitempty"`
	// ProposedBy is the author of an edit or of typed values.
	ProposedBy string `json:"proposed_by,omitempty"`
	// Supplied are the keys whose values a person gave.
	Supplied []string `json:"supplied,omitempty"`
	// Replaces is the request that this one succeeds.
	Replaces string `json:"replaces,omitempty"`
	// Tool is the definition as it was when the request was made.
	Tool       Tool    `json:"tool"`
	ToolDigest string  `json:"tool_digest"`
	Verdict    Verdict `json:"verdict"`
	// Preview is nil where there is none; PreviewError then says why.
	Preview      *Preview `json:"preview,omitempty"`
	PreviewError string   `json:"preview_error,omitempty"`
	// InputSchema is what the person is asked to supply, for the input kinds.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	// Initiators are the principals who asked for the run; under four eyes none
	// of them may approve.
	Initiators []string `json:"initiators,omitempty"`
	Deciders   Deciders `json:"deciders,omitzero"`
	FourEyes   bool     `json:"four_eyes,omitempty"`
	// Answers are those allowed, approve and deny among them always (for an
	// outcome: ran, did_not_run, run_again).
	Answers []Answer `json:"answers"`
	// Why says what is unknown, for an outcome.
	Why string `json:"why,omitempty"`
	// Evidence is a late result of a call whose outcome is unknown.
	Evidence string `json:"evidence,omitempty"`
	// Claim is what a foreign loop says of the call, unchecked; nil for none.
	Claim *Claim `json:"claim,omitempty"`
	// Untrusted is set where the run read results of tools from outside.
	Untrusted bool `json:"untrusted,omitempty"`
	// Risk is read off the rest: nothing that was signed.
	Risk      Risk      `json:"risk"`
	CreatedAt time.Time `json:"created_at"`
	// ExpiresAt is zero for a request that never expires.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// UseBy is how long an approval is good after it is given.
	UseBy time.Duration `json:"use_by"`
	// ProposalWaits is set while a person's edit or typed values wait for a
	// process that has the tools; no other answer is taken meanwhile.
	ProposalWaits bool `json:"proposal_waits,omitempty"`
	// DecidedAt and DecidedBy are set once decided.
	DecidedAt time.Time `json:"decided_at,omitzero"`
	DecidedBy string    `json:"decided_by,omitempty"`
}

// Allows reports whether the request may be answered so.
func (r ApprovalRequest) Allows(a Answer) bool { return slices.Contains(r.Answers, a) }

// decision makes a decision that carries the digest of what was shown.
func (r ApprovalRequest) decision(a Answer, by Principal) Decision {
	return Decision{RequestID: r.ID, Digest: r.Digest, Answer: a, By: by}
}

// Approve lets the call run once, with exactly the shown input.
func (r ApprovalRequest) Approve(by Principal) Decision { return r.decision(Approve, by) }

// Deny refuses the call; the model reads the reason.
func (r ApprovalRequest) Deny(by Principal, reason string) Decision {
	d := r.decision(Deny, by)
	d.Reason = reason
	return d
}

// Edit proposes other input. It is checked, judged and previewed, and put as a
// new request that shows the difference.
func (r ApprovalRequest) Edit(by Principal, input json.RawMessage) Decision {
	d := r.decision(Edit, by)
	d.Input = string(input)
	return d
}

// Fill proposes the typed values that the request asks for; like an edit it
// leads to a new request, which shows what will run.
func (r ApprovalRequest) Fill(by Principal, values json.RawMessage) Decision {
	d := r.decision(Fill, by)
	d.Input = string(values)
	return d
}

// Respond supplies the result in the tool's place; the tool does not run.
func (r ApprovalRequest) Respond(by Principal, result json.RawMessage) Decision {
	d := r.decision(Respond, by)
	d.Result = string(result)
	return d
}

// Ran settles an unknown outcome: the call ran, with this result.
func (r ApprovalRequest) Ran(by Principal, result string) Decision {
	d := r.decision(Ran, by)
	d.Result = result
	return d
}

// DidNotRun settles an unknown outcome: surely nothing happened.
func (r ApprovalRequest) DidNotRun(by Principal) Decision { return r.decision(DidNotRun, by) }

// RunAgain settles an unknown outcome with a new request for the same call,
// under the same idempotency key.
func (r ApprovalRequest) RunAgain(by Principal) Decision { return r.decision(RunAgain, by) }

// YesNo adapts a function that answers yes or no to the engine's callback. The
// decision is the program's own: its principal is the process.
func YesNo(f func(context.Context, ApprovalRequest) (bool, error)) func(context.Context, ApprovalRequest) (Decision, error) {
	return func(ctx context.Context, r ApprovalRequest) (Decision, error) {
		yes, err := f(ctx, r)
		if err != nil {
			return Decision{}, err
		}
		by := Principal{ID: "process", Name: "this program", Kind: Process, Auth: "callback"}
		if yes {
			return r.Approve(by), nil
		}
		return r.Deny(by, ""), nil
	}
}
