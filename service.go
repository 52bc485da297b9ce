package ringi

import "context"

// Service is what an inbox, an API and a client speak.
type Service interface {
	// Run starts a run and returns when it ended or waits for a person.
	Run(ctx context.Context, s RunStart) (*Result, error)
	// Decide records a decision. It never runs a tool and never asks a model.
	Decide(ctx context.Context, d Decision) (Settled, error)
	// Request returns one request, read from the checked log.
	Request(ctx context.Context, id string) (ApprovalRequest, error)
	// Requests lists requests, oldest first.
	Requests(ctx context.Context, q RequestQuery) (RequestPage, error)
	// TakeBack takes an approval back until it is spent: by its author, or an
	// admin.
	TakeBack(ctx context.Context, requestID string, by Principal, reason string) (Settled, error)
	// Cancel ends a run: its open requests are withdrawn, a call in flight is
	// recorded first, or cut with now.
	Cancel(ctx context.Context, runID string, by Principal, reason string, now bool) error
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
