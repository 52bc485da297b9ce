package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/httpapi"
)

// The exit codes of every command.
const (
	exitDone     = 0 // it was done
	exitFailed   = 1 // it could not be done; nothing was recorded
	exitUsage    = 2 // the command was typed wrongly, or is not allowed here
	exitWaiting  = 3 // a run waits for a person
	exitUnproven = 4 // verification failed: something in the store is not what was recorded
)

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usagef makes an error of usage: exit 2.
func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// waitingf says that a run waits for a person: exit 3.
func waitingf(format string, args ...any) error {
	return &exitError{exitWaiting, fmt.Errorf(format, args...)}
}

// unprovenf says what does not verify: exit 4.
func unprovenf(format string, args ...any) error {
	return &exitError{exitUnproven, fmt.Errorf(format, args...)}
}

// outcomes is the one table from an error to an exit code, and to a sentence
// that says what to do. The first that fits counts. What is not in it is exit
// 1 and speaks for itself.
var outcomes = []struct {
	err      error
	code     int
	sentence string
}{
	{ringi.ErrCorrupt, exitUnproven, "Nothing of this run is shown or decided: `ringi verify` says what is broken."},
	{ringi.ErrNoKey, exitFailed, "Set TOOL_APPROVAL_SECRET to the key of this store. Without it a store can be read, not decided in."},
	{ringi.ErrStale, exitFailed, "Look at it again with `ringi show`, and decide on what it shows now."},
	{ringi.ErrSpent, exitFailed, "What was approved has already run, or begun to."},
	{ringi.ErrExpired, exitFailed, "Nobody decided in time, and silence is no consent: the call does not run."},
	{ringi.ErrWithdrawn, exitFailed, "There is nothing to decide any more."},
	{ringi.ErrNotPermitted, exitFailed, "Somebody else has to decide: `ringi show` says who may."},
	{ringi.ErrNoPrincipal, exitFailed, "The token is unknown there, has ended, or was revoked: `ringi token create` makes one."},
	{access.ErrForbidden, exitFailed, "Neither the token's scopes nor its owner's roles allow it; docs/access.md has the table."},
	{ringi.ErrAnswer, exitFailed, "`ringi show` lists the answers that the request allows."},
	{ringi.ErrNowDenied, exitFailed, "Policy has been tightened since the request was made."},
	{ringi.ErrFinal, exitFailed, "There is nothing to cancel any more."},
	{ringi.ErrSimulated, exitFailed, "A replay made this store: real tools do not join it."},
	{ringi.ErrClock, exitFailed, "Set this machine's clock right. If it is right, `ringi clock accept` says so."},
	{ringi.ErrNotRecorded, exitFailed, "Nothing was recorded."},
	{ringi.ErrConflict, exitFailed, "Somebody else is writing; try again."},
	{ringi.ErrBusy, exitFailed, "Another process drives the run; try again."},
	{context.Canceled, exitFailed, "It was interrupted. What was recorded stays."},
}

// exitCode returns the exit code of an error, and a sentence that says what to
// do; "" where the error says it all.
func exitCode(err error) (int, string) {
	if err == nil {
		return exitDone, ""
	}
	problem, atServer := errors.AsType[*httpapi.Problem](err)
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			if atServer && problem.Status >= 500 {
				return o.code, "That is for who runs the server; its log says more."
			}
			return o.code, o.sentence
		}
	}
	if limit, ok := errors.AsType[*access.LimitError](err); ok {
		return exitFailed, "Wait " + max(limit.After, time.Second).String() + " and try again."
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code, ""
	}
	if w, ok := errors.AsType[*ringi.WaitingError](err); ok {
		return exitWaiting, "Decide it with `ringi approve " + w.Request.ID + "` or `ringi deny " + w.Request.ID + "`."
	}
	return exitFailed, ""
}
