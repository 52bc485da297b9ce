package ringi

import (
	"encoding/json"
	"fmt"
	"time"
)

// RunStatus is where a run stands.
type RunStatus string

// The states of a run: queued, running, one of the three waiting states by
// precedence outcome, approval, input, and three final ones.
const (
	Queued             RunStatus = "queued"
	Running            RunStatus = "running"
	WaitingForApproval RunStatus = "waiting_for_approval"
	WaitingForInput    RunStatus = "waiting_for_input"
	WaitingForOutcome  RunStatus = "waiting_for_outcome"
	Completed          RunStatus = "completed"
	Failed             RunStatus = "failed"
	Cancelled          RunStatus = "cancelled"
)

// Final reports whether the run has ended.
func (s RunStatus) Final() bool { return s == Completed || s == Failed || s == Cancelled }

// Waiting reports whether the run waits for a person.
func (s RunStatus) Waiting() bool {
	return s == WaitingForApproval || s == WaitingForInput || s == WaitingForOutcome
}

// Reason says why a run ended. It belongs to a state: completed has completed,
// max_steps, max_tool_calls; cancelled has cancelled; the rest are failures.
type Reason string

// The reasons.
const (
	ReasonCompleted      Reason = "completed"
	ReasonMaxSteps       Reason = "max_steps"
	ReasonMaxToolCalls   Reason = "max_tool_calls"
	ReasonDeniedTooOften Reason = "denied_too_often"
	ReasonModelFailed    Reason = "model_failed"
	ReasonOutcomeUnknown Reason = "outcome_unknown"
	ReasonPoisoned       Reason = "poisoned"
	ReasonTrustZone      Reason = "trust_zone"
	ReasonCancelled      Reason = "cancelled"
)

// TurnMode says what runs while a call of the turn waits.
type TurnMode string

// The turn modes. The zero value is eager.
const (
	// Eager runs reads, and writes that stand before the first waiting call,
	// at once; a write never overtakes a waiting call of its turn.
	Eager TurnMode = "eager"
	// Hold runs nothing of a turn until every call of it is decided.
	Hold TurnMode = "hold"
)

// Limits bound a run. A zero field takes the default, a negative one means no
// limit. Budgets span a suspension.
type Limits struct {
	Steps        int           `json:"steps,omitempty"`          // 10 model calls
	ToolCalls    int           `json:"tool_calls,omitempty"`     // 50 calls a run
	CallsPerTurn int           `json:"calls_per_turn,omitempty"` // 50 calls judged a turn
	ToolTimeout  time.Duration `json:"tool_timeout,omitempty"`   // 30 s a call
	InputBytes   int           `json:"input_bytes,omitempty"`    // 1 MiB
	InputDepth   int           `json:"input_depth,omitempty"`    // 64
	ResultBytes  int           `json:"result_bytes,omitempty"`   // 1 MiB, then cut and marked
	OpenRequests int           `json:"open_requests,omitempty"`  // 20 a run
	SameDenied   int           `json:"same_denied,omitempty"`    // 3: then the same call is not asked again
	Denied       int           `json:"denied,omitempty"`         // 10 by a person in a thread: then the run ends
	Attempts     int           `json:"attempts,omitempty"`       // 3 without progress: then the run is poisoned
	ModelRetries int           `json:"model_retries,omitempty"`  // 2 more tries of a model call that failed
	Reads        int           `json:"reads,omitempty"`          // 8 at once
}

// DefaultLimits returns what the zero Limits mean.
func DefaultLimits() Limits {
	return Limits{
		Steps: 10, ToolCalls: 50, CallsPerTurn: 50, ToolTimeout: 30 * time.Second,
		InputBytes: 1 << 20, InputDepth: 64, ResultBytes: 1 << 20, OpenRequests: 20,
		SameDenied: 3, Denied: 10, Attempts: 3, ModelRetries: 2, Reads: 8,
	}
}

// Or returns l with zero fields taken from d.
func (l Limits) Or(d Limits) Limits {
	return l.with(d, func(mine, def int64) int64 {
		if mine == 0 {
			return def
		}
		return mine
	})
}

// Beyond returns l with the fields that equal d's zeroed: what differs from d.
// Or(d) gives l back.
func (l Limits) Beyond(d Limits) Limits {
	return l.with(d, func(mine, def int64) int64 {
		if mine == def {
			return 0
		}
		return mine
	})
}

// Strictest returns the smaller of each limit: what a child run gets.
func (l Limits) Strictest(m Limits) Limits {
	return l.with(m, func(mine, other int64) int64 {
		if other > 0 && (mine < 0 || other < mine) {
			return other
		}
		return mine
	})
}

// with is the one list of the limits: it returns l with every field made by f of
// l's and m's.
func (l Limits) with(m Limits, f func(mine, other int64) int64) Limits {
	for _, field := range [...]struct {
		mine  *int
		other int
	}{
		{&l.Steps, m.Steps},
		{&l.ToolCalls, m.ToolCalls},
		{&l.CallsPerTurn, m.CallsPerTurn},
		{&l.InputBytes, m.InputBytes},
		{&l.InputDepth, m.InputDepth},
		{&l.ResultBytes, m.ResultBytes},
		{&l.OpenRequests, m.OpenRequests},
		{&l.SameDenied, m.SameDenied},
		{&l.Denied, m.Denied},
		{&l.Attempts, m.Attempts},
		{&l.ModelRetries, m.ModelRetries},
		{&l.Reads, m.Reads},
	} {
		*field.mine = int(f(int64(*field.mine), int64(field.other)))
	}
	l.ToolTimeout = time.Duration(f(int64(l.ToolTimeout), int64(m.ToolTimeout)))
	return l
}

// RunStart is what a run begins with.
type RunStart struct {
	// Thread groups runs into a conversation; empty makes a new one.
	Thread string
	// Agent names the agent, for people and logs.
	Agent  string
	System string
	// Messages are new: the thread's earlier ones are known. They never carry
	// authority.
	Messages []Message
	// Tools narrows the offer to these names; nil takes all that the gates let
	// through. It is a request: the configuration decides.
	Tools []string
	// Groups are the run's tool groups; nil has all.
	Groups []string
	// By is who starts the run. Its zero value is unknown: not an admin, and
	// under four eyes an error.
	By Principal
	// Runtime is data for policy functions: it is stored as JSON with the run.
	Runtime any
	// Unattended says that nobody can be asked.
	Unattended Unattended
	// TurnMode and Limits override the engine's where set; limits only down.
	TurnMode TurnMode
	Limits   Limits
	// WithdrawOpen withdraws the pending requests of a run that still waits on
	// the thread, and ends it; otherwise a new message there is refused.
	WithdrawOpen bool
	// Follows is the newest run of the thread that the caller knows of, or
	// [NoRun] for none. Where the thread has gone on since, nothing is begun and
	// nothing withdrawn: ErrConflict. So a message that reaches two processes at
	// once begins one run. Empty asks for nothing.
	Follows string
}

// NoRun, as RunStart.Follows, is a thread that has no run yet.
const NoRun = "none"

// RunInfo is what policy and context functions are told of a run.
type RunInfo struct {
	ID         string     `json:"id"`
	Space      string     `json:"space"`
	Thread     string     `json:"thread"`
	Agent      string     `json:"agent,omitempty"`
	By         Principal  `json:"by"`
	Groups     []string   `json:"groups,omitempty"` // nil: all
	Zone       TrustZone  `json:"zone,omitempty"`
	Unattended Unattended `json:"unattended,omitempty"`
	Parent     ParentRef  `json:"parent,omitzero"`
	Step       int        `json:"step,omitempty"`
}

// ParentRef names the call in whose handler a child run was started.
type ParentRef struct {
	Thread string `json:"thread,omitempty"`
	RunID  string `json:"run_id,omitempty"`
	CallID string `json:"call_id,omitempty"`
}

// IsZero reports whether the run has no parent.
func (p ParentRef) IsZero() bool { return p.RunID == "" }

// Result is what Run and Resume return.
type Result struct {
	RunID  string    `json:"run_id"`
	Thread string    `json:"thread"`
	Status RunStatus `json:"status"`
	Reason Reason    `json:"reason,omitempty"`
	// Detail is a sentence for people, where a run failed.
	Detail string `json:"detail,omitempty"`
	// Text is the model's last text.
	Text string `json:"text,omitempty"`
	// Pending holds every request that the run waits for.
	Pending  []ApprovalRequest `json:"pending,omitempty"`
	Withheld []Withheld        `json:"withheld,omitempty"`
	// Results are those of this run's calls, in the model's order.
	Results   []ToolResult `json:"results,omitempty"`
	Steps     int          `json:"steps"`
	ToolCalls int          `json:"tool_calls"`
	Usage     Usage        `json:"usage,omitzero"`
}

// Err returns nil for a run that completed by itself, and a *RunError for
// every other state.
func (r *Result) Err() error {
	if r.Status == Completed && r.Reason == ReasonCompleted {
		return nil
	}
	return &RunError{RunID: r.RunID, Status: r.Status, Reason: r.Reason, Detail: r.Detail}
}

// RunError says that a run did not complete, and why. Run and Resume return it
// with the run's id where the run could not go on here: what was recorded
// stays, and Resume takes it up.
type RunError struct {
	RunID  string
	Status RunStatus
	Reason Reason
	Detail string
	// Err is what stood in the way; nil for a run that ended or waits.
	Err error
}

// Unwrap returns Err.
func (e *RunError) Unwrap() error { return e.Err }

func (e *RunError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("run %s: %v", e.RunID, e.Err)
	}
	s := fmt.Sprintf("run %s: %s", e.RunID, e.Status)
	if e.Reason != "" && string(e.Reason) != string(e.Status) {
		s += ": " + string(e.Reason)
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// runtimeJSON encodes a runtime value. nil stays nil.
func runtimeJSON(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return v, nil
	}
	return json.Marshal(v)
}

// EncodeRuntime returns the run's runtime value as the log keeps it: JSON. A
// nil value gives nil; one that does not encode is an error.
func EncodeRuntime(v any) (json.RawMessage, error) {
	b, err := runtimeJSON(v)
	if err != nil {
		return nil, fmt.Errorf("encode runtime value: %w", err)
	}
	if b != nil && !json.Valid(b) {
		return nil, fmt.Errorf("encode runtime value: not JSON")
	}
	return b, nil
}
