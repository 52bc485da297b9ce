package ringi

import (
	"errors"
	"fmt"
	"time"
)

// ModelErrorClass says what kind of fault ended a model call, alike for every
// vendor, so that a caller can branch. The zero value is no class: nothing is
// known of the fault.
type ModelErrorClass string

// The classes.
const (
	// ModelAuth: no key, a wrong key, or one that may not use the model.
	ModelAuth ModelErrorClass = "auth"
	// ModelRateLimit: too many requests or tokens in a time; a later try may pass.
	ModelRateLimit ModelErrorClass = "rate_limit"
	// ModelQuota: the account is used up; no later try passes by itself.
	ModelQuota ModelErrorClass = "quota"
	// ModelContextLength: the conversation is longer than the model takes.
	ModelContextLength ModelErrorClass = "context_length"
	// ModelBadRequest: the vendor refuses the request as it stands.
	ModelBadRequest ModelErrorClass = "bad_request"
	// ModelFiltered: the vendor's content rules refuse the request.
	ModelFiltered ModelErrorClass = "filtered"
	// ModelOverloaded: the vendor has no room now.
	ModelOverloaded ModelErrorClass = "overloaded"
	// ModelServer: a fault of the vendor's own.
	ModelServer ModelErrorClass = "server"
	// ModelTimeout: the vendor was silent, or took, too long.
	ModelTimeout ModelErrorClass = "timeout"
	// ModelConnection: the vendor was not reached.
	ModelConnection ModelErrorClass = "connection"
	// ModelBroken: an answer that ended early, or that nobody can read.
	ModelBroken ModelErrorClass = "broken"
)

// Retryable reports whether the same request may pass on a later try.
func (c ModelErrorClass) Retryable() bool {
	switch c {
	case ModelRateLimit, ModelOverloaded, ModelServer, ModelTimeout, ModelConnection, ModelBroken:
		return true
	}
	return false
}

// ModelError is what a provider yields where a model call failed. The engine
// asks again where the class is retryable, after RetryAfter; nothing beneath
// it retries. It holds no key and no header.
type ModelError struct {
	Class ModelErrorClass
	// Provider names the provider that failed: "openai".
	Provider string
	// Status is the HTTP status; zero where there was none.
	Status int
	// Code is the vendor's own word, where it gave one.
	Code string
	// RetryAfter is how long the vendor asked to wait; zero where it did not.
	RetryAfter time.Duration
	// Err is what happened. Its text may come from the vendor.
	Err error
}

func (e *ModelError) Error() string {
	s := string(e.Class)
	if e.Provider != "" {
		s = e.Provider + ": " + s
	}
	if e.Status != 0 {
		s += fmt.Sprintf(" (%d", e.Status)
		if e.Code != "" {
			s += " " + e.Code
		}
		s += ")"
	} else if e.Code != "" {
		s += " (" + e.Code + ")"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns what happened.
func (e *ModelError) Unwrap() error { return e.Err }

// ModelErrorOf returns the ModelError that err is or wraps. It reports false
// where there is none: then nothing is known of the fault.
func ModelErrorOf(err error) (e *ModelError, ok bool) {
	defer func() {
		if recover() != nil {
			e, ok = nil, false // a method of a foreign error panicked
		}
	}()
	if errors.As(err, &e) && e != nil {
		return e, true
	}
	return nil, false
}

// ZonedModel is a model that knows where it runs: a chain of models, which
// counts as the least trusted zone that it can reach. An engine takes the less
// trusted of this and its own configuration.
type ZonedModel interface {
	Model
	// TrustZone is the zone; "" is undeclared.
	TrustZone() TrustZone
}
