package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
)

// asked is a request with its place in the recording.
type asked struct {
	script  *script
	run     int
	request ringi.ApprovalRequest
}

// decider answers a request, or reports false and leaves it.
type decider func(ctx context.Context, a asked) (ringi.Decision, bool, error)

// scriptDecider is who decides in a replay. It is another one than who starts
// the runs, and its way in is on record: nobody takes it for a person's word.
var scriptDecider = ringi.Principal{ID: "script:replay", Name: "replay script", Kind: ringi.Person, Admin: true, Auth: "script"}

// The ways to answer requests, values of --approve.
const (
	approveAll       = "all"
	approveNone      = "none"
	approveAlternate = "alternate"
	approveAsk       = "ask"
	approveLater     = "later"
)

// The ways to settle unknown outcomes, values of --outcome.
const (
	outcomeLeave     = "leave"
	outcomeRan       = "ran"
	outcomeDidNotRun = "did-not-run"
)

// scriptAnswers makes the decider of the modes that ask nobody. asking are the
// tools whose calls ask, in alternate's count.
func scriptAnswers(approve, outcome string, join int, asking []string) decider {
	return func(_ context.Context, a asked) (ringi.Decision, bool, error) {
		r := a.request
		if r.Kind == ringi.KindOutcome {
			return settleOutcome(a, outcome, join)
		}
		yes := false
		switch approve {
		case approveLater:
			return ringi.Decision{}, false, nil
		case approveAll:
			yes = true
		case approveAlternate:
			n, err := askedBefore(a, join, asking)
			if err != nil {
				return ringi.Decision{}, false, err
			}
			yes = n%2 == 0
		}
		d := r.Deny(scriptDecider, "the replay approves nothing here")
		if yes {
			d = r.Approve(scriptDecider)
		}
		d.Channel = "script"
		return d, true, nil
	}
}

// settleOutcome says of a call that a kill interrupted what the mode says. A
// call that ran has its recorded result.
func settleOutcome(a asked, outcome string, join int) (ringi.Decision, bool, error) {
	var d ringi.Decision
	switch outcome {
	case outcomeRan:
		c, err := recordedAnswer(&a.script.runs[a.run], a.request.Call, join)
		if err != nil {
			return d, false, err
		}
		d = a.request.Ran(scriptDecider, c.answer)
	case outcomeDidNotRun:
		d = a.request.DidNotRun(scriptDecider)
	default:
		return d, false, nil
	}
	d.Channel = "script"
	return d, true, nil
}

// askedBefore counts the calls of asking tools that the conversation recorded
// before this one, so that alternate gives the same answers after a restart.
func askedBefore(a asked, join int, asking []string) (int, error) {
	step, pos, ok := callPlace(a.request.Call.ID)
	if !ok {
		return 0, fmt.Errorf("call %s is of no recorded run", a.request.Call.ID)
	}
	n := 0
	count := func(calls []recordedCall) {
		for _, c := range calls {
			if slices.Contains(asking, c.tool) {
				n++
			}
		}
	}
	for i := range a.script.runs[:a.run] {
		for _, m := range a.script.runs[i].said {
			count(m.calls)
		}
	}
	run := &a.script.runs[a.run]
	said := 0
	for ; step >= 1; step-- {
		turn, ok := run.turn(said, join)
		if !ok {
			return 0, fmt.Errorf("call %s is not the recorded one", a.request.Call.ID)
		}
		if step == 1 {
			turn.calls = turn.calls[:min(pos, len(turn.calls))]
		}
		count(turn.calls)
		said += turn.weight()
	}
	return n, nil
}
