package ringi

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors that a caller branches on. Each is wrapped with what was done.
var (
	ErrNotFound      = errors.New("not found")
	ErrConflict      = errors.New("somebody was first")
	ErrBusy          = errors.New("another process holds the run")
	ErrLeaseLost     = errors.New("lease lost")
	ErrRunOpen       = errors.New("thread has an open run")
	ErrStale         = errors.New("request is stale: what was shown is not what would run")
	ErrExpired       = errors.New("request expired, not executed")
	ErrWithdrawn     = errors.New("request was withdrawn")
	ErrSpent         = errors.New("approval is spent")
	ErrNotPermitted  = errors.New("not permitted to decide")
	ErrNoPrincipal   = errors.New("no authenticated principal")
	ErrAnswer        = errors.New("request does not allow this answer")
	ErrNowDenied     = errors.New("policy denies the call now")
	ErrNotRecorded   = errors.New("could not be recorded")
	ErrPolicyMissing = errors.New("process lacks what judges the run")
	ErrNoKey         = errors.New("process has no key of this store")
	ErrCorrupt       = errors.New("log does not verify")
	ErrClock         = errors.New("clock is behind the newest recorded time")
	ErrFinal         = errors.New("run has ended")
	ErrNotAdmitted   = errors.New("call is not admitted")
	ErrNoAuthor      = errors.New("four eyes need an author for every user message")
	ErrAuthority     = errors.New("messages carry no authority: approval parts are refused")
	ErrSimulated     = errors.New("store is marked simulated")
	ErrTooLarge      = errors.New("too large")
)

// DecidedError says that somebody was first. It wraps ErrSpent where the
// approval is spent already.
type DecidedError struct {
	Decision Decision
	State    RequestState
	At       time.Time
}

func (e *DecidedError) Error() string {
	who := e.Decision.By.Name
	if who == "" {
		who = e.Decision.By.ID
	}
	if who == "" {
		who = "somebody else"
	}
	return fmt.Sprintf("request %s is already decided (%s) by %s", e.Decision.RequestID, e.State, who)
}

// Unwrap returns ErrSpent for a spent approval.
func (e *DecidedError) Unwrap() error {
	if e.State == Spent {
		return ErrSpent
	}
	return nil
}

// RequestStateError is a store's answer where a request is not in the state
// that a change needs, or its time does not fit.
type RequestStateError struct {
	ID    string
	State RequestState
	// Deadline is set where the state fits and the time does not.
	Deadline time.Time
}

func (e *RequestStateError) Error() string {
	if !e.Deadline.IsZero() {
		return fmt.Sprintf("request %s is %s with deadline %s", e.ID, e.State, e.Deadline.Format(time.RFC3339))
	}
	return fmt.Sprintf("request %s is %s", e.ID, e.State)
}

// WaitingError says that a call waits for a person.
type WaitingError struct{ Request ApprovalRequest }

func (e *WaitingError) Error() string {
	return fmt.Sprintf("call %s of tool %q waits for request %s", e.Request.Call.ID, e.Request.Call.Tool, e.Request.ID)
}

// ResultError says that a call has its result already: it ran, or it was
// refused. Nothing runs for it.
type ResultError struct{ Result ToolResult }

func (e *ResultError) Error() string {
	return fmt.Sprintf("call %s of tool %q has its result: %s", e.Result.CallID, e.Result.Tool, e.Result.Outcome)
}

// ToolError is a registration error: it names the tool and the fault.
type ToolError struct {
	Tool string
	Err  error
}

func (e *ToolError) Error() string { return fmt.Sprintf("register tool %q: %v", e.Tool, e.Err) }
func (e *ToolError) Unwrap() error { return e.Err }

// InputError is what a model is told of an input that is not valid: no person
// is asked. Code is unknown_tool, not_offered or invalid_input.
type InputError struct {
	Tool string
	Code ResultCode
	Err  error
}

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// PolicyError says which settings name something that does not exist.
type PolicyError struct {
	// Name is the unknown name, Where the setting, Nearest a name that exists.
	Name, Where, Nearest string
}

func (e *PolicyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s names unknown tool %q", e.Where, e.Name)
	if e.Nearest != "" {
		fmt.Fprintf(&b, " (nearest: %q)", e.Nearest)
	}
	return b.String()
}
