package ringi

import (
	"errors"
	"time"
)

// CallOutcome says how a call ended.
type CallOutcome string

// The outcomes of a call.
const (
	OutcomeOK          CallOutcome = "ok"
	OutcomeError       CallOutcome = "error"        // the tool's own error
	OutcomeDenied      CallOutcome = "denied"       // by policy or by a person
	OutcomeInvalid     CallOutcome = "invalid"      // unknown tool or bad input
	OutcomeResponded   CallOutcome = "responded"    // a person answered in the tool's place
	OutcomeNotExecuted CallOutcome = "not_executed" // a limit, an incomplete turn, a run that ended
	OutcomeExpired     CallOutcome = "expired"      // nobody decided in time
	OutcomeCancelled   CallOutcome = "cancelled"
	OutcomeInDoubt     CallOutcome = "unknown" // it started; nobody knows whether it ran
)

// ResultCode is the machine-readable why of a result without execution, so
// that a model can tell "no such tool" from "denied".
type ResultCode string

// The codes.
const (
	CodeUnknownTool    ResultCode = "unknown_tool"
	CodeNotOffered     ResultCode = "not_offered"
	CodeInvalidInput   ResultCode = "invalid_input"
	CodeDeniedByPolicy ResultCode = "denied_by_policy"
	CodeDeniedByPerson ResultCode = "denied_by_person"
	CodeNoDecider      ResultCode = "no_decider"
	CodeNotAdmitted    ResultCode = "not_admitted"
	CodeUnattended     ResultCode = "unattended"
	CodeExpired        ResultCode = "expired"
	CodeLimit          ResultCode = "limit"
	CodeTooMany        ResultCode = "too_many_requests"
	CodeIncompleteTurn ResultCode = "incomplete_turn"
	CodeCancelled      ResultCode = "cancelled"
	CodeWithdrawn      ResultCode = "withdrawn"
	CodeRunEnded       ResultCode = "run_ended"
	CodeDangling       ResultCode = "no_result"
	CodeToolError      ResultCode = "tool_error"
	CodeNotDone        ResultCode = "not_done"
	CodeDidNotRun      ResultCode = "did_not_run"
	CodeUnknownOutcome ResultCode = "outcome_unknown"
)

// Origin says whose word a result is. The zero value is the tool's.
type Origin string

// The origins.
const (
	OriginTool   Origin = ""
	OriginPerson Origin = "person"
	OriginEngine Origin = "engine"
)

// ToolResult is what came back from a call, or the refusal that the model is
// told.
type ToolResult struct {
	CallID  string      `json:"call_id,omitempty"`
	ModelID string      `json:"model_id,omitempty"`
	Tool    string      `json:"tool,omitempty"`
	Outcome CallOutcome `json:"outcome,omitempty"`
	Code    ResultCode  `json:"code,omitempty"`
	Origin  Origin      `json:"origin,omitempty"`
	// Output is what the tool returned, byte for byte: JSON for typed tools.
	Output string `json:"output,omitempty"`
	// Error is the text of a tool's error, or of a refusal.
	Error string `json:"error,omitempty"`
	// Note tells the model that a person changed or supplied input.
	Note string `json:"note,omitempty"`
	// Truncated is set where the output was longer than the limit and was cut.
	Truncated bool           `json:"truncated,omitempty"`
	Duration  time.Duration  `json:"duration,omitempty"`
	Approval  ApprovalRecord `json:"approval,omitzero"`
}

// Text is what the model reads.
func (r ToolResult) Text() string {
	s := r.Output
	if r.Error != "" {
		s = r.Error
	}
	if r.Note == "" {
		return s
	}
	if s == "" {
		return r.Note
	}
	return r.Note + "\n" + s
}

// Executed reports whether the tool itself answered.
func (r ToolResult) Executed() bool {
	return r.Origin == OriginTool && (r.Outcome == OutcomeOK || r.Outcome == OutcomeError)
}

// ApprovalRecord tells caller, page and auditor the same about a call.
type ApprovalRecord struct {
	Status    Status `json:"status,omitempty"`
	Source    string `json:"source,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Automatic bool   `json:"automatic,omitempty"`
	// Request and Decision are set where a person was asked.
	Request  string   `json:"request,omitempty"`
	Digest   string   `json:"digest,omitempty"`
	Decision Answer   `json:"decision,omitempty"`
	By       string   `json:"by,omitempty"`
	Executed Input    `json:"executed,omitempty"` // where it differs from the model's
	Supplied []string `json:"supplied,omitempty"`
}

// IsZero reports whether there is nothing to tell.
func (a ApprovalRecord) IsZero() bool { return a.Status == "" && a.Request == "" }

type notDone struct{ err error }

func (e *notDone) Error() string { return e.err.Error() }
func (e *notDone) Unwrap() error { return e.err }

// NotDone wraps a handler's error to say that surely nothing happened: the
// call may be asked for again without harm. NotDone(nil) is nil.
func NotDone(err error) error {
	if err == nil {
		return nil
	}
	return &notDone{err}
}

// IsNotDone reports whether err, or one that it wraps, was made by [NotDone].
func IsNotDone(err error) (is bool) {
	defer func() {
		if recover() != nil {
			is = false // a method of a foreign error panicked
		}
	}()
	var e *notDone
	return errors.As(err, &e)
}
