package ringi

import (
	"encoding/json"
	"time"
)

// EventKind names an event. The kinds of the log are frozen: a run is the
// fold over its events.
type EventKind string

// The kinds of the log. Who may write them: the owner of a run writes all; a
// settler, who holds no lease, only those marked "settler".
const (
	EventRunStarted        EventKind = "run_started"
	EventModelResponded    EventKind = "model_responded"
	EventCallJudged        EventKind = "call_judged"
	EventApprovalRequested EventKind = "approval_requested"
	EventInputProposed     EventKind = "input_proposed" // settler
	EventInputRefused      EventKind = "input_refused"
	EventApprovalDecided   EventKind = "approval_decided"    // settler
	EventApprovalTakenBack EventKind = "approval_taken_back" // settler
	EventRequestClosed     EventKind = "request_closed"      // settler
	EventToolStarted       EventKind = "tool_started"
	EventToolFinished      EventKind = "tool_finished"
	EventOutcomeUnknown    EventKind = "outcome_unknown"
	EventOutcomeSettled    EventKind = "outcome_settled"  // settler
	EventCancelRequested   EventKind = "cancel_requested" // settler
	EventRunFinished       EventKind = "run_finished"
	EventRunErased         EventKind = "run_erased"
)

// The kinds of a stream that are no log events: they carry no sequence number
// and are not stored.
const (
	EventTextDelta      EventKind = "text_delta"
	EventReasoningDelta EventKind = "reasoning_delta"
	EventInputDelta     EventKind = "input_delta"
	EventStepStarted    EventKind = "step_started"
	EventStepDiscarded  EventKind = "step_discarded"
	EventRunWaiting     EventKind = "run_waiting"
	// EventRunLeft says that a process goes on with the run no more: it ended,
	// waits, or was given back. It has no body.
	EventRunLeft EventKind = "run_left"
)

// Settles reports whether a settler may write the kind.
func (k EventKind) Settles() bool {
	switch k {
	case EventInputProposed, EventApprovalDecided, EventApprovalTakenBack, EventRequestClosed,
		EventOutcomeSettled, EventCancelRequested:
		return true
	}
	return false
}

// Event is one event of a run. Log events come after their commit and carry
// their sequence number from 1; deltas have none and may be taken back by
// step_discarded.
type Event struct {
	Seq   int64     `json:"seq,omitempty"`
	Kind  EventKind `json:"kind"`
	At    time.Time `json:"at"` // microseconds, UTC
	Epoch int64     `json:"epoch,omitempty"`
	RunID string    `json:"run_id,omitempty"`
	Body  EventBody `json:"body"`
}

// EventBody is the body of an event: one of the pointer types of this file.
type EventBody interface{ Kind() EventKind }

// Judges records what judges a run: a process that lacks one of them judges
// and runs nothing.
type Judges struct {
	Version string `json:"version,omitempty"`
	// Rungs set: the generic function, functions and statuses by tool, and
	// the legacy functions beside handlers.
	Func      bool     `json:"func,omitempty"`
	ToolFuncs []string `json:"tool_funcs,omitempty"`
	Statuses  []string `json:"statuses,omitempty"`
	Needs     []string `json:"needs,omitempty"`
	// The floor's own rungs.
	FloorVersion   string   `json:"floor_version,omitempty"`
	FloorFunc      bool     `json:"floor_func,omitempty"`
	FloorToolFuncs []string `json:"floor_tool_funcs,omitempty"`
	FloorStatuses  []string `json:"floor_statuses,omitempty"`
	Require        []string `json:"require,omitempty"`
	// PrepareStep is set where the run's steps are prepared by a function.
	PrepareStep bool `json:"prepare_step,omitempty"`
	// Admit is set where a limit over several calls is asked as a call starts.
	Admit bool `json:"admit,omitempty"`
	// Config is a digest of the configuration; it informs, it never refuses.
	Config string `json:"config,omitempty"`
}

// RunStarted begins a run.
type RunStarted struct {
	Agent      string          `json:"agent,omitempty"`
	Thread     string          `json:"thread"`
	By         Principal       `json:"by,omitzero"`
	Initiators []string        `json:"initiators,omitempty"`
	Parent     ParentRef       `json:"parent,omitzero"`
	Zone       TrustZone       `json:"zone,omitempty"`
	Mark       DataClass       `json:"mark,omitempty"`
	Groups     []string        `json:"groups,omitempty"`
	AllGroups  bool            `json:"all_groups,omitempty"`
	Tools      []string        `json:"tools,omitempty"`
	AllTools   bool            `json:"all_tools,omitempty"`
	Limits     Limits          `json:"limits"`
	TurnMode   TurnMode        `json:"turn_mode,omitempty"`
	Unattended Unattended      `json:"unattended,omitempty"`
	Deciders   Deciders        `json:"deciders,omitzero"`
	FourEyes   string          `json:"four_eyes,omitempty"`
	Judges     Judges          `json:"judges,omitzero"`
	System     string          `json:"system,omitempty"`
	Messages   []Message       `json:"messages,omitempty"`
	Runtime    json.RawMessage `json:"runtime,omitempty"`
	// Gate is set for the run of a foreign loop's gate.
	Gate bool `json:"gate,omitempty"`
	// Imported is set for a run that was made of a history which its client
	// kept: its messages are not trusted, and it ends with its one turn.
	Imported bool `json:"imported,omitempty"`
}

// JudgedCall is one call of a turn with its verdict. An automatic approval or
// denial is this entry.
type JudgedCall struct {
	ID      string `json:"id"`
	ModelID string `json:"model_id,omitempty"`
	Tool    string `json:"tool"`
	// Raw is what the model wrote, where it is not Input.
	Raw        Input   `json:"raw,omitempty"`
	Input      Input   `json:"input"`
	ToolDigest string  `json:"tool_digest,omitempty"`
	Verdict    Verdict `json:"verdict"`
	// Code is set for a call that was refused at once; Text is what the model
	// is told.
	Code ResultCode `json:"code,omitempty"`
	Text string     `json:"text,omitempty"`
	// Asks is set where a request goes out for the call.
	Asks RequestKind `json:"asks,omitempty"`
}

// ModelResponded is a closed turn of the model, with every verdict.
type ModelResponded struct {
	Step         int          `json:"step"`
	Attempt      int          `json:"attempt,omitempty"`
	Text         string       `json:"text,omitempty"`
	Opaque       string       `json:"opaque,omitempty"`
	Finish       FinishReason `json:"finish,omitempty"`
	Usage        Usage        `json:"usage,omitzero"`
	OfferDigest  string       `json:"offer_digest,omitempty"`
	PromptDigest string       `json:"prompt_digest,omitempty"`
	Calls        []JudgedCall `json:"calls,omitempty"`
	// Finished rides here where the turn is the run's last.
	Finished *RunFinished `json:"finished,omitempty"`
}

// CallJudged is a gate's call with its verdict.
type CallJudged struct {
	Number int        `json:"number"`
	Call   JudgedCall `json:"call"`
	// Ref is the client's own name for the wish: it comes again under it.
	Ref string `json:"ref,omitempty"`
	// Claim is the client's word about the call.
	Claim *Claim `json:"claim,omitempty"`
}

// ApprovalRequested puts a request. The call's input is not repeated: it is in
// the turn, or, where a person proposed it, in Proposed.
type ApprovalRequested struct {
	Request    string      `json:"request"`
	Call       string      `json:"call"`
	Ask        RequestKind `json:"ask"`
	Digest     string      `json:"digest"`
	Signature  string      `json:"signature,omitempty"`
	Nonce      string      `json:"nonce"`
	ToolDigest string      `json:"tool_digest,omitempty"`
	Verdict    Verdict     `json:"verdict,omitzero"`
	// Proposed is the input where it is a person's: Input replaces the model's.
	Proposed     bool          `json:"proposed,omitempty"`
	Input        Input         `json:"input,omitempty"`
	ProposedBy   string        `json:"proposed_by,omitempty"`
	Supplied     []string      `json:"supplied,omitempty"`
	Replaces     string        `json:"replaces,omitempty"`
	Preview      *Preview      `json:"preview,omitempty"`
	PreviewError string        `json:"preview_error,omitempty"`
	Initiators   []string      `json:"initiators,omitempty"`
	Deciders     Deciders      `json:"deciders,omitzero"`
	FourEyes     bool          `json:"four_eyes,omitempty"`
	Answers      []Answer      `json:"answers,omitempty"`
	Untrusted    bool          `json:"untrusted,omitempty"`
	CreatedAt    time.Time     `json:"created_at"`
	ExpiresAt    time.Time     `json:"expires_at,omitzero"`
	UseBy        time.Duration `json:"use_by"`
	Why          string        `json:"why,omitempty"` // kind outcome: what is unknown
	// Told are those of Supplied whose values the model is told.
	Told []string `json:"told,omitempty"`
}

// InputProposed records a person's edit, or typed values.
type InputProposed struct {
	Request string    `json:"request"`
	Digest  string    `json:"digest"` // what the author saw
	Answer  Answer    `json:"answer"` // edit or fill
	Input   string    `json:"input"`
	By      Principal `json:"by"`
	Channel string    `json:"channel,omitempty"`
	// AndApprove asks to approve the successor in the same message.
	AndApprove bool `json:"and_approve,omitempty"`
}

// InputRefused says that a proposal was not taken; the request stays pending.
type InputRefused struct {
	Request string     `json:"request"`
	Code    ResultCode `json:"code"`
	Text    string     `json:"text"`
}

// ApprovalDecided is a person's decision.
type ApprovalDecided struct {
	Request string    `json:"request"`
	Answer  Answer    `json:"answer"` // approve, deny, respond
	By      Principal `json:"by"`
	Channel string    `json:"channel,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Note    string    `json:"note,omitempty"`
	Scope   DenyScope `json:"scope,omitempty"`
	Digest  string    `json:"digest"` // what the author saw
	// Bytes is the blinded digest of the bytes that shall run.
	Bytes     string    `json:"bytes,omitempty"`
	Result    string    `json:"result,omitempty"` // respond
	UseBy     time.Time `json:"use_by,omitzero"`
	At        time.Time `json:"at"`
	Signature string    `json:"signature,omitempty"`
}

// ApprovalTakenBack withdraws an approval that was not spent. The call is
// asked again.
type ApprovalTakenBack struct {
	Request string    `json:"request"`
	By      Principal `json:"by"`
	Reason  string    `json:"reason,omitempty"`
}

// RequestClosed ends a request without a person's answer.
type RequestClosed struct {
	Request   string       `json:"request"`
	State     RequestState `json:"state"` // expired, withdrawn, stale
	Why       string       `json:"why,omitempty"`
	Successor string       `json:"successor,omitempty"`
	// Again is set where the call is to be judged and asked anew.
	Again bool `json:"again,omitempty"`
	// By is who withdrew, handed over or extended it; zero for time and checks.
	By Principal `json:"by,omitzero"`
}

// ToolStarted is committed before an approved call, a write or an undeclared
// tool runs.
type ToolStarted struct {
	Call    string `json:"call"`
	Tool    string `json:"tool"`
	Effect  Effect `json:"effect"`
	Attempt int    `json:"attempt"`
	// Input is a digest of the bytes. It is empty where a person approved them:
	// the decision holds it, blinded by the request's nonce. (The idempotency
	// key is not here: it is derived again from the call and its bytes.)
	Input   string `json:"input,omitempty"`
	Request string `json:"request,omitempty"` // the approval that is spent
}

// FinishedCall is the result of one call.
type FinishedCall struct {
	Call      string        `json:"call"`
	Outcome   CallOutcome   `json:"outcome"`
	Code      ResultCode    `json:"code,omitempty"`
	Origin    Origin        `json:"origin,omitempty"`
	Output    string        `json:"output,omitempty"`
	Error     string        `json:"error,omitempty"`
	Truncated bool          `json:"truncated,omitempty"`
	Duration  time.Duration `json:"duration,omitempty"`
	// Class is the data class of the result where it is not the tool's own.
	Class DataClass `json:"class,omitempty"`
}

// ToolFinished holds the results of one call, or of a group of reads.
type ToolFinished struct {
	Results []FinishedCall `json:"results"`
}

// OutcomeUnknown says that a call may have run. Its request asks a person.
type OutcomeUnknown struct {
	Call    string            `json:"call"`
	Why     string            `json:"why"`
	Request ApprovalRequested `json:"request"`
}

// OutcomeSettled is a person's word on an unknown outcome.
type OutcomeSettled struct {
	Request   string    `json:"request"`
	Call      string    `json:"call"`
	Answer    Answer    `json:"answer"` // ran, did_not_run, run_again
	By        Principal `json:"by"`
	Channel   string    `json:"channel,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Note      string    `json:"note,omitempty"`
	Digest    string    `json:"digest"`
	Result    string    `json:"result,omitempty"`
	At        time.Time `json:"at"`
	Signature string    `json:"signature,omitempty"`
}

// CancelRequested asks to end a run. With Now a call in flight is cut.
type CancelRequested struct {
	By     Principal `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Now    bool      `json:"now,omitempty"`
}

// RunFinished ends a run. Every call without a result has got one in the same
// commit.
type RunFinished struct {
	Status   RunStatus  `json:"status"`
	Reason   Reason     `json:"reason"`
	Detail   string     `json:"detail,omitempty"`
	Withheld []Withheld `json:"withheld,omitempty"`
}

// RunErased says that payloads were removed, by whom and why.
type RunErased struct {
	By     Principal `json:"by"`
	Reason string    `json:"reason,omitempty"`
}

// Delta is a fragment of a turn that is not closed yet.
type Delta struct {
	DeltaKind EventKind `json:"-"`
	Step      int       `json:"step"`
	Attempt   int       `json:"attempt"`
	Text      string    `json:"text,omitempty"`
	Index     int       `json:"index,omitempty"` // which call, for input
	Tool      string    `json:"tool,omitempty"`
	// Call is the id that the call will have, for input.
	Call string `json:"call,omitempty"`
}

// StepStarted says that the model is asked.
type StepStarted struct {
	Step    int `json:"step"`
	Attempt int `json:"attempt"`
}

// StepDiscarded says that shown deltas did not become a message.
type StepDiscarded struct {
	Step    int    `json:"step"`
	Attempt int    `json:"attempt"`
	Why     string `json:"why,omitempty"`
}

// RunWaiting says that the run waits for people; it ends a stream.
type RunWaiting struct {
	Status  RunStatus         `json:"status"`
	Pending []ApprovalRequest `json:"pending"`
}

// Kind names the event.
func (*RunStarted) Kind() EventKind        { return EventRunStarted }
func (*ModelResponded) Kind() EventKind    { return EventModelResponded }
func (*CallJudged) Kind() EventKind        { return EventCallJudged }
func (*ApprovalRequested) Kind() EventKind { return EventApprovalRequested }
func (*InputProposed) Kind() EventKind     { return EventInputProposed }
func (*InputRefused) Kind() EventKind      { return EventInputRefused }
func (*ApprovalDecided) Kind() EventKind   { return EventApprovalDecided }
func (*ApprovalTakenBack) Kind() EventKind { return EventApprovalTakenBack }
func (*RequestClosed) Kind() EventKind     { return EventRequestClosed }
func (*ToolStarted) Kind() EventKind       { return EventToolStarted }
func (*ToolFinished) Kind() EventKind      { return EventToolFinished }
func (*OutcomeUnknown) Kind() EventKind    { return EventOutcomeUnknown }
func (*OutcomeSettled) Kind() EventKind    { return EventOutcomeSettled }
func (*CancelRequested) Kind() EventKind   { return EventCancelRequested }
func (*RunFinished) Kind() EventKind       { return EventRunFinished }
func (*RunErased) Kind() EventKind         { return EventRunErased }
func (d *Delta) Kind() EventKind           { return d.DeltaKind }
func (*StepStarted) Kind() EventKind       { return EventStepStarted }
func (*StepDiscarded) Kind() EventKind     { return EventStepDiscarded }
func (*RunWaiting) Kind() EventKind        { return EventRunWaiting }
