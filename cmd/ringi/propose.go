package main

import (
	"context"
	"strings"

	"github.com/ringi-dev/ringi"
)

// Edit and fill propose: nothing runs by them. They lead to a new request that
// shows what would run, and that is asked for like any other. So neither is
// asked twice here, and a script may propose.

// propose records a proposal.
func (e *env) propose(ctx context.Context, id, digest string, proposal func(ringi.ApprovalRequest, ringi.Principal) (ringi.Decision, error)) error {
	var failed error
	a, err := e.answering(ctx, id, digest, func(r ringi.ApprovalRequest, by ringi.Principal) ringi.Decision {
		d, err := proposal(r, by)
		failed = err
		return d
	})
	if err != nil {
		return err
	}
	defer a.desk.close()
	if failed != nil {
		return failed
	}
	return e.record(ctx, a)
}

// givenObject reads a JSON object that a flag names: itself, FILE or @FILE, or
// - for standard input.
func (e *env) givenObject(flag string) (string, error) {
	text := strings.TrimSpace(flag)
	switch {
	case text == "" || text == "-" || strings.HasPrefix(text, "@") || strings.HasPrefix(text, "{"):
	default:
		text = "@" + flag
	}
	text, err := e.given(text)
	return strings.TrimSpace(text), err
}
