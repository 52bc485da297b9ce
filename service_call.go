package ringi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// CallService is the gate for a loop that is not in this process: may this call
// run, now run it once with these bytes, this came of it. The loop's run is like
// any other; it stays open until CloseCalls, or until it was idle for long.
type CallService interface {
	// JudgeCall judges one call and records it, with the request where a person
	// is asked. With a RunID or a Thread it goes on at that run's gate.
	JudgeCall(ctx context.Context, c CallStart) (GateCall, error)
	// Call returns a call as it stands. It changes nothing.
	Call(ctx context.Context, callID string) (GateCall, error)
	// StartCall gives the right to run a call, once: exactly one caller gets it.
	// Errors: *StartedError for all others, *WaitingError where a person is
	// asked, *ResultError where the call has its result.
	StartCall(ctx context.Context, callID string) (ClaimedCall, error)
	// FinishCall records what came of a start, in any process: Output, Error with
	// its Code, or OutcomeInDoubt where nobody knows. Errors: ErrNotStarted;
	// ErrLate where the call was given up (the result is kept as evidence);
	// *StartedError where it was started again since; *ResultError where it has a
	// result.
	FinishCall(ctx context.Context, callID string, attempt int, r ToolResult) (GateCall, error)
	// CloseCalls ends a gate's run: what waits is withdrawn. ErrBusy where a call
	// was started and has not come back. Closing an ended run does nothing.
	CloseCalls(ctx context.Context, runID string) error
}

// CallStart is the wish for a call.
type CallStart struct {
	// Agent names the agent; empty where there is one.
	Agent string
	// RunID goes on with a run of the loop's, Thread with the open run of a
	// thread. Without either a run begins, in a thread of its own.
	RunID, Thread string
	// By is who asks. Another's run is refused.
	By Principal
	// Zone is the trust zone of the loop's model; the less trusted of it and the
	// agent's counts.
	Zone TrustZone
	// Tool is one that the agent registers as external, or else a name of the
	// client's own, which is judged and shown as [ForeignName] has it.
	Tool    string
	Input   Input
	ModelID string
	// Claim is the client's word, nil for none.
	Claim *Claim
	// Ref makes the wish the same wish when it comes again in the same run: its
	// call is found, and not judged anew. Empty: every wish is a new call.
	Ref string
}

// CallState is where a call of a foreign loop stands.
type CallState string

// The states of a call.
const (
	CallMayRun  CallState = "run"     // StartCall gives the right to run it
	CallWaits   CallState = "waiting" // for a person
	CallRunning CallState = "running" // started, and not come back
	CallRefused CallState = "refused" // it did not and will not run; the model reads the result
	CallDone    CallState = "done"    // it has its result: the tool's, or a person's in its place
)

// GateCall is a call of a foreign loop as it stands.
type GateCall struct {
	RunID  string
	Thread string
	Agent  string
	// Call has the bytes that run, or would.
	Call    ToolCall
	State   CallState
	Verdict Verdict
	// Request is what waits for a person; nil where nothing does.
	Request *ApprovalRequest
	// Result is what the model reads; nil where there is none yet.
	Result *ToolResult
	Claim  *Claim
	// Attempt counts the starts, StartedAt is the newest one's time.
	Attempt   int
	StartedAt time.Time
}

// ClaimedCall is the right to run a call once.
type ClaimedCall struct {
	RunID, Thread, Agent string
	// Call has the bytes to run.
	Call ToolCall
	// Key is the idempotency key: the same for the same call and bytes.
	Key string
	// Attempt goes back with the result.
	Attempt   int
	StartedAt time.Time
	// Until is when the call counts as given up; zero for never.
	Until time.Time
}

// StartedError says that a call was started already.
type StartedError struct {
	CallID string
	// Attempt is the newest start, At its time.
	Attempt int
	At      time.Time
}

func (e *StartedError) Error() string {
	return fmt.Sprintf("the call is in flight: attempt %d of call %s was started at %s", e.Attempt, e.CallID, e.At.UTC().Format(time.RFC3339))
}

// Unwrap returns ErrBusy.
func (e *StartedError) Unwrap() error { return ErrBusy }

// The errors of a result that comes from outside.
var (
	ErrNotStarted = errors.New("call was not started so")
	ErrLate       = errors.New("result came late: it is kept as evidence")
)
