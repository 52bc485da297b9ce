package main

import (
	"context"
	"errors"

	"github.com/ringi-dev/ringi"
)

// askInstead is what to say where nobody is at a terminal.
const askInstead = "say --approve all, none, alternate or later"

// askInTerminal puts each request to the person at the terminal, with the
// whole input, as ringi approve does. Unknown outcomes are settled as otherwise says.
func (e *env) askInTerminal(otherwise decider) (decider, error) {
	ask, err := e.asks(askInstead)
	if err != nil {
		return nil, err
	}
	by, err := person()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, a asked) (ringi.Decision, bool, error) {
		r := a.request
		if r.Kind == ringi.KindOutcome {
			return otherwise(ctx, a)
		}
		shown := e.paints(e.err)
		shown.request(viewOf(r, true), e.now())
		if err := shown.flush(e.err); err != nil {
			return ringi.Decision{}, false, err
		}
		var d ringi.Decision
		switch word, err := ask.choose(ctx, "Run it?", "approve", "deny", "later"); {
		case errors.Is(err, errNothingDecided):
			return d, false, nil
		case err != nil:
			return d, false, err
		case word == "approve":
			d = r.Approve(by)
		case word == "deny":
			d = r.Deny(by, "")
		default:
			return d, false, nil
		}
		d.Channel = "cli"
		return d, true, nil
	}, nil
}
