package ringi

// PrincipalKind says what stands behind a principal.
type PrincipalKind string

// The kinds of a principal. Only a person decides; the program's own callback,
// in the library, decides as a process.
const (
	Person         PrincipalKind = "person"
	ServiceAccount PrincipalKind = "service"
	Process        PrincipalKind = "process"
)

// Principal is an authenticated identity. It never comes from a request body.
type Principal struct {
	// ID is the identity itself (issuer and subject, `os:1000@host`), never a
	// name or a mail address that somebody else could take.
	ID    string        `json:"id"`
	Name  string        `json:"name,omitempty"`
	Kind  PrincipalKind `json:"kind,omitempty"`
	Admin bool          `json:"admin,omitempty"`
	Teams []string      `json:"teams,omitempty"`
	// Auth says how the principal was authenticated; it is recorded and signed.
	Auth string `json:"auth,omitempty"`
	// Owner is the id of the person who answers for a service: an initiator of
	// what the service starts, as it is itself. Empty for a person, and where
	// nobody answers.
	Owner string `json:"owner,omitempty"`
}

// IsZero reports whether nobody is named.
func (p Principal) IsZero() bool { return p.ID == "" }

// Answer is what a person says to a request.
type Answer string

// The answers. Every one but deny counts as an approval for all rules on
// deciders. Edit and fill are proposals: they lead to a new request.
const (
	Approve Answer = "approve"
	Deny    Answer = "deny"
	Edit    Answer = "edit"
	Fill    Answer = "fill"
	Respond Answer = "respond"

	Ran       Answer = "ran"
	DidNotRun Answer = "did_not_run"
	RunAgain  Answer = "run_again"
)

// Known reports whether a is one of the answers.
func (a Answer) Known() bool {
	switch a {
	case Approve, Deny, Edit, Fill, Respond, Ran, DidNotRun, RunAgain:
		return true
	}
	return false
}

// DenyScope says how far a denial reaches. The zero value is this call.
type DenyScope string

// The scopes of a denial.
const (
	ThisCall DenyScope = ""
	// ThisTool answers every later call of the tool in this thread without
	// asking.
	ThisTool DenyScope = "tool"
)

// Decision is a person's answer. Make one with the request's own methods: they
// carry the digest of what was shown.
type Decision struct {
	RequestID string `json:"request_id"`
	// Digest is what the author saw; another or a missing one is refused.
	Digest string `json:"digest"`
	Answer Answer `json:"answer"`
	// Input is the proposed input of an edit, or the values of a fill: JSON.
	Input string `json:"input,omitempty"`
	// Result answers in the tool's place (respond), or says what a call that
	// ran returned (ran).
	Result string `json:"result,omitempty"`
	// Reason is read by the model; at most 8 KiB.
	Reason string `json:"reason,omitempty"`
	// Note is for people only.
	Note  string    `json:"note,omitempty"`
	Scope DenyScope `json:"scope,omitempty"`
	By    Principal `json:"by"`
	// Channel says where the decision was made: callback, cli, api, inbox; of the
	// last two with the class of the network, as in "inbox:private".
	Channel string `json:"channel,omitempty"`
	// AndApprove approves the request that an edit or a fill leads to, in the
	// same message: only where its bytes are the ones proposed, it has no
	// preview and four eyes do not hold. Else that request stays pending.
	AndApprove bool `json:"and_approve,omitempty"`
}
