package ringi

// RefusalReason says which gate of the offer refused a tool. The gates are
// asked cheapest and least revealing first; the first refusal is told.
type RefusalReason string

// The five gates.
const (
	NotRegistered RefusalReason = "not_registered"
	ToolDisabled  RefusalReason = "tool_disabled"
	RequiresAdmin RefusalReason = "requires_admin"
	GroupGate     RefusalReason = "group"
	TrustZoneGate RefusalReason = "trust_zone"
)

// Refusal says why a tool is not in an offer.
type Refusal struct {
	Tool   string        `json:"tool"`
	Reason RefusalReason `json:"reason"`
	// Detail is a sentence for people.
	Detail string `json:"detail,omitempty"`
}

// Offer is the tools that a run's model may see, and why others may not.
type Offer struct {
	Tools   []Tool    `json:"tools"`
	Refused []Refusal `json:"refused,omitempty"`
	// Observed are refusals of the zone gate that an operator's "observe"
	// computed and reported only: their tools are offered.
	Observed []Refusal `json:"observed,omitempty"`
}

// Names returns the names of the offered tools, in order.
func (o Offer) Names() []string {
	names := make([]string, len(o.Tools))
	for i, t := range o.Tools {
		names[i] = t.Name
	}
	return names
}

// Has reports whether the offer holds the tool of exactly this name.
func (o Offer) Has(name string) bool {
	for i := range o.Tools {
		if o.Tools[i].Name == name {
			return true
		}
	}
	return false
}

// UnattendedFilter answers which tools run without a human pause of either
// kind. It filters; it does not decide what may be offered.
type UnattendedFilter interface {
	// Unattended returns, in their order, the names that run without an
	// approval and without typed input. Unknown names are left out.
	Unattended(names []string) []string
}

// Unattended says how a run behaves where nobody can be asked.
type Unattended string

// The modes. The zero value is an attended run.
const (
	Attended Unattended = ""
	// PerTool offers only what an [UnattendedFilter] returns.
	PerTool Unattended = "per_tool"
	// PerCall also offers tools whose approval depends on the call; a verdict
	// of user-approval is then a denial with that reason.
	PerCall Unattended = "per_call"
)

// UnattendedAnswer is what a tool is for a caller without an approval step.
type UnattendedAnswer string

// The answers.
const (
	UnattendedRuns    UnattendedAnswer = "runs"
	UnattendedAsks    UnattendedAnswer = "asks"
	UnattendedDenied  UnattendedAnswer = "denied"
	UnattendedInput   UnattendedAnswer = "input"
	UnattendedPerCall UnattendedAnswer = "per_call"
	UnattendedUnknown UnattendedAnswer = "unknown"
)

// Withheld is a tool, or one call of it, that an unattended run did without.
type Withheld struct {
	Tool   string           `json:"tool"`
	CallID string           `json:"call_id,omitempty"`
	Answer UnattendedAnswer `json:"answer,omitempty"`
	Reason string           `json:"reason,omitempty"`
}
