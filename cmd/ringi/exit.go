package main

import (
	"errors"
	"fmt"
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

// exitCode is the one table from an error to an exit code.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailed
}
