package ringitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ringi-dev/ringi"
)

// People for tests: two who may decide, and an admin.
var (
	Ana   = ringi.Principal{ID: "ana", Name: "Ana", Kind: ringi.Person, Auth: "test"}
	Ben   = ringi.Principal{ID: "ben", Name: "Ben", Kind: ringi.Person, Auth: "test"}
	Admin = ringi.Principal{ID: "admin", Name: "Admin", Kind: ringi.Person, Admin: true, Auth: "test"}
)

// Reaction answers a request. An error is no decision.
type Reaction func(ringi.ApprovalRequest) (ringi.Decision, error)

// Approve approves what was shown.
func Approve(by ringi.Principal) Reaction {
	return func(r ringi.ApprovalRequest) (ringi.Decision, error) { return r.Approve(by), nil }
}

// Deny denies, with a reason that the model reads.
func Deny(by ringi.Principal, reason string) Reaction {
	return func(r ringi.ApprovalRequest) (ringi.Decision, error) { return r.Deny(by, reason), nil }
}

// Edit proposes another input, which leads to a new request.
func Edit(by ringi.Principal, input string) Reaction {
	return func(r ringi.ApprovalRequest) (ringi.Decision, error) { return r.Edit(by, json.RawMessage(input)), nil }
}

// Fill supplies typed values, which leads to a new request.
func Fill(by ringi.Principal, values string) Reaction {
	return func(r ringi.ApprovalRequest) (ringi.Decision, error) { return r.Fill(by, json.RawMessage(values)), nil }
}

// Respond answers in the tool's place.
func Respond(by ringi.Principal, result string) Reaction {
	return func(r ringi.ApprovalRequest) (ringi.Decision, error) {
		return r.Respond(by, json.RawMessage(result)), nil
	}
}

// Silent gives no decision, with this error: the request stays pending.
func Silent(err error) Reaction {
	return func(ringi.ApprovalRequest) (ringi.Decision, error) { return ringi.Decision{}, err }
}

// Witness approves every request and, asked what became of a call that may
// have run, tells the truth as ran knows it: it ran with the result that its
// handler gave, or it did not run.
func Witness(by ringi.Principal, ran *Effects) Reaction {
	return func(r ringi.ApprovalRequest) (ringi.Decision, error) {
		if r.Kind != ringi.KindOutcome {
			return r.Approve(by), nil
		}
		if result, ok := ran.resultOf(r.Call.ID); ok {
			return r.Ran(by, result), nil
		}
		return r.DidNotRun(by), nil
	}
}

// errNoAnswer is what an approver returns whose script has ended.
var errNoAnswer = errors.New("script has no answer left")

// Approver answers the requests of runs by script. Give its Decide to
// engine.Config.OnApprovalRequired. It is safe for concurrent use.
type Approver struct {
	always Reaction

	mu       sync.Mutex
	script   []Reaction
	requests []ringi.ApprovalRequest
}

// ApproveAll makes an approver that approves whatever it is asked.
func ApproveAll(by ringi.Principal) *Approver { return &Approver{always: Approve(by)} }

// DenyAll makes an approver that denies whatever it is asked.
func DenyAll(by ringi.Principal, reason string) *Approver {
	return &Approver{always: Deny(by, reason)}
}

// Answers makes an approver that answers in the order in which it is asked,
// each reaction once. Behind the last it gives no decision: the run suspends.
func Answers(reactions ...Reaction) *Approver { return &Approver{script: slices.Clone(reactions)} }

// Decide answers one request.
func (a *Approver) Decide(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
	react := a.next(r)
	if react == nil {
		return ringi.Decision{}, fmt.Errorf("answer request %s of tool %q: %w", r.ID, r.Call.Tool, errNoAnswer)
	}
	return react(r)
}

func (a *Approver) next(r ringi.ApprovalRequest) Reaction {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
	if a.always != nil || len(a.script) == 0 {
		return a.always
	}
	react := a.script[0]
	a.script = a.script[1:]
	return react
}

// Requests returns what the approver was asked so far, in order.
func (a *Approver) Requests() []ringi.ApprovalRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}
