package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ringi-dev/ringi"
)

// Every error that a caller branches on has its exit code, however deep it is
// wrapped, and those that a person can do something about a sentence.
func TestExitCodes(t *testing.T) {
	waiting := &ringi.WaitingError{Request: ringi.ApprovalRequest{ID: "req_1", Call: ringi.ToolCall{ID: "c", Tool: "t"}}}
	for _, c := range []struct {
		err      error
		code     int
		sentence bool
	}{
		{nil, 0, false},
		{errors.New("anything"), 1, false},
		{ringi.ErrNotFound, 1, false},
		{ringi.ErrNoKey, 1, true},
		{ringi.ErrStale, 1, true},
		{ringi.ErrExpired, 1, true},
		{ringi.ErrWithdrawn, 1, true},
		{ringi.ErrNotPermitted, 1, true},
		{ringi.ErrNowDenied, 1, true},
		{ringi.ErrSimulated, 1, true},
		{&ringi.DecidedError{State: ringi.Granted}, 1, false},
		{&ringi.DecidedError{State: ringi.Spent}, 1, true},
		{context.Canceled, 1, true},
		{errNothingDecided, 1, false},
		{usagef("typed wrongly"), 2, false},
		{waitingf("waits"), 3, false},
		{waiting, 3, true},
		{ringi.ErrCorrupt, 4, true},
		{unprovenf("broken"), 4, false},
		{errors.Join(ringi.ErrNotFound, fmt.Errorf("load: %w", ringi.ErrCorrupt)), 4, true},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("do it: %w", err)
		}
		code, sentence := exitCode(err)
		if code != c.code || (sentence != "") != c.sentence {
			t.Errorf("%v: exit %d and %q, want %d", c.err, code, sentence, c.code)
		}
	}
}

// S-10, F150: who types is the user of the operating system, never a
// placeholder.
func TestF150_APersonIsTheUserOfTheSystem(t *testing.T) {
	p, err := person()
	if err != nil {
		t.Fatal(err)
	}
	var uid int
	var host string
	if n, err := fmt.Sscanf(p.ID, "os:%d@%s", &uid, &host); err != nil || n != 2 || host == "" {
		t.Errorf("principal %q: %v", p.ID, err)
	}
	if p.Kind != ringi.Person || p.Admin || p.Auth != "os" {
		t.Errorf("principal %+v", p)
	}
}
