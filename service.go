package ringi

import (
	"context"
	"time"
)

// Service is what an inbox, an API and a client speak. It takes principals as
// authenticated by its caller, and holds them against what a run records; who
// may see what is the caller's to keep.
type Service interface {
	RunService
	RequestService
	CallService
	// Agents lists the agents that runs are started for, by name.
	Agents(ctx context.Context) ([]AgentInfo, error)
	// Offered returns what a run would be offered, and what it would be
	// refused. run.Agent names the agent.
	Offered(ctx context.Context, run RunInfo) (Offer, error)
	// Withheld says of every tool of the agent's what it is to a caller without
	// an approval step.
	Withheld(ctx context.Context, agent string) ([]Withheld, error)
}

// AgentInfo is what a list of agents shows.
type AgentInfo struct {
	Name  string    `json:"name"`
	Zone  TrustZone `json:"zone,omitempty"`
	Tools []string  `json:"tools,omitempty"`
}

// RunService starts, shows and ends runs.
type RunService interface {
	// Run starts a run and returns when it ended or waits for a person.
	Run(ctx context.Context, s RunStart) (*Result, error)
	// Enqueue starts a run that a worker goes on with, and returns at once.
	Enqueue(ctx context.Context, s RunStart) (*Result, error)
	// Status returns a run as it stands. It drives nothing.
	Status(ctx context.Context, runID string) (*Result, error)
	// Row returns a run's row alone: the cheapest look at it.
	Row(ctx context.Context, runID string) (RunRow, error)
	// Runs lists runs, newest first.
	Runs(ctx context.Context, q RunQuery) ([]RunRow, error)
	// Events returns the log events of a run after a sequence number, checked.
	Events(ctx context.Context, runID string, after int64) ([]Event, error)
	// Cancel ends a run: its open requests are withdrawn, a call in flight is
	// recorded first, or cut with now.
	Cancel(ctx context.Context, runID string, by Principal, reason string, now bool) error
}

// RequestService shows and settles requests.
type RequestService interface {
	// Decide records a decision. It never runs a tool and never asks a model.
	Decide(ctx context.Context, d Decision) (Settled, error)
	// Request returns one request, read from the checked log.
	Request(ctx context.Context, id string) (ApprovalRequest, error)
	// Requests lists requests, in the order that q asks for.
	Requests(ctx context.Context, q RequestQuery) (RequestPage, error)
	// TakeBack takes an approval back until it is spent: by its author, or an
	// admin.
	TakeBack(ctx context.Context, requestID string, by Principal, reason string) (Settled, error)
	// Withdraw closes a pending request, by an initiator of its run or an
	// admin; the model reads the reason.
	Withdraw(ctx context.Context, requestID string, by Principal, reason string) (Settled, error)
	// Reassign hands a pending request over: a successor names who may decide.
	Reassign(ctx context.Context, requestID string, to Deciders, by Principal, reason string) (Settled, error)
	// Extend gives a pending request more time: a successor waits until then.
	Extend(ctx context.Context, requestID string, until time.Time, by Principal, reason string) (Settled, error)
	// Wait returns a request once it is settled.
	Wait(ctx context.Context, requestID string) (ApprovalRequest, error)
}

// RefusalKeeper is a service that keeps refusals which were made in front of it:
// what it refuses itself it keeps anyway.
type RefusalKeeper interface {
	// KeepRefusal keeps, beside the run's chain and bounded as [Store.Attempt] is,
	// that d.By was refused d.Answer to d.RequestID by way of d.Channel. Of a
	// request that does not exist nothing is kept. It reports no error: who is
	// refused learns nothing of it.
	KeepRefusal(ctx context.Context, d Decision, cause error)
}

// Settled is what a decision led to.
type Settled struct {
	RunID string `json:"run_id"`
	// Request is the request as it stands; after an edit or a fill it is the
	// new request that shows what will run.
	Request ApprovalRequest `json:"request"`
	// Remaining counts the requests of the run that still wait.
	Remaining int `json:"remaining"`
	// Proposed is set where a proposal was recorded by a process that has no
	// tools: the next Resume checks it.
	Proposed bool `json:"proposed,omitempty"`
}

// RequestPage is a page of requests.
type RequestPage struct {
	Requests []ApprovalRequest `json:"requests"`
	// Next continues the list; empty at its end.
	Next string `json:"next,omitempty"`
}
