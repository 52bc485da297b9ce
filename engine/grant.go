package engine

import (
	"github.com/ringi-dev/ringi"
)

// grant is the right to run one call once, with exactly these bytes. Two
// functions make one; nothing else can, and nothing outside this package can
// name it.
type grant struct {
	callID string
	tool   string
	input  ringi.Input
	effect ringi.Effect // how the call is run: the stricter of then and now
	// request is the approval that the start spends; empty where policy alone
	// lets the call run.
	request string
	decider string
	// start says that tool_started is committed first.
	start bool
	// attempt counts from 1; repeat says that an earlier start is on record.
	attempt int
}

// grantByPolicy makes the grant of a call that policy lets run without a
// person: this activation's own verdict, nothing asked, nothing settled.
func grantByPolicy(c *call) (grant, bool) {
	if c.result != nil || c.request != nil || c.again || !c.fresh || c.asks != "" || !c.verdict.Runs() || c.judged.Code != "" {
		return grant{}, false
	}
	return grant{callID: c.judged.ID, tool: c.judged.Tool, input: c.input, attempt: len(c.started) + 1}, true
}

// grantByPerson makes the grant of a call that a person approved. The request
// is the newest of its call, the decision is on record, and both were checked
// by mayspend against the log that was read; the commit of the start spends it.
func grantByPerson(s *state, c *call, r *request) (grant, bool) {
	again := r.state == ringi.Spent && len(c.started) > 0
	if c.result != nil || c.request != r || r.decided == nil || r.decided.Answer != ringi.Approve ||
		r.state != ringi.Granted && !again || s.cancel != nil || s.finished != nil {
		return grant{}, false
	}
	return grant{callID: c.judged.ID, tool: c.judged.Tool, input: c.input, request: r.ev.Request, decider: r.decided.By.ID,
		start: true, attempt: len(c.started) + 1}, true
}
