package engine_test

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/sign"
)

// witness reads a log by itself, not by the engine's fold: what it says of who
// allowed what is a second opinion.
type witness struct {
	calls    map[string]*heardCall
	order    []string
	requests map[string]*heardRequest
	attended bool
	ended    bool
	at       time.Time // of the event that is heard
}

// heardCall is one call as the log tells it.
type heardCall struct {
	tool    string
	input   ringi.Input
	results int
	starts  []*ringi.ToolStarted
	since   int // starts since a person said "run again"
	again   int // how often a person said so
}

// heardRequest is one question as the log tells it.
type heardRequest struct {
	call  string
	bytes ringi.Input // what was shown
	nonce string
	ask   ringi.RequestKind
	state ringi.RequestState
	// approved says that a person said yes to it, once.
	approved bool
	starts   int
	// expires and useBy are until when it may be answered, and used.
	expires, useBy time.Time
}

// hear takes a whole log in. Its error names the event that breaks a promise.
func hear(events []ringi.Event) (*witness, error) {
	w := &witness{calls: map[string]*heardCall{}, requests: map[string]*heardRequest{}}
	for i := range events {
		ev := &events[i]
		if ev.Seq != int64(i)+1 {
			return w, fmt.Errorf("event %d has the number %d", i+1, ev.Seq)
		}
		if w.ended {
			return w, fmt.Errorf("event %d (%s) stands behind the run's end", ev.Seq, ev.Kind)
		}
		w.at = ev.At
		if err := w.event(ev.Body); err != nil {
			return w, fmt.Errorf("event %d (%s): %w", ev.Seq, ev.Kind, err)
		}
	}
	return w, nil
}

func (w *witness) event(body ringi.EventBody) error {
	switch b := body.(type) {
	case *ringi.RunStarted:
		w.attended = b.Unattended == ringi.Attended
	case *ringi.ModelResponded:
		return w.turn(b)
	case *ringi.ApprovalRequested:
		return w.asked(b)
	case *ringi.ApprovalDecided:
		return w.decided(b)
	case *ringi.ApprovalTakenBack:
		return w.move(b.Request, ringi.Granted, ringi.Withdrawn)
	case *ringi.RequestClosed:
		return w.closed(b)
	case *ringi.ToolStarted:
		return w.started(b)
	case *ringi.ToolFinished:
		for _, f := range b.Results {
			if err := w.result(f.Call); err != nil {
				return err
			}
		}
	case *ringi.OutcomeUnknown:
		if c := w.calls[b.Call]; c == nil || c.results != 0 || c.since == 0 {
			return fmt.Errorf("call %s did not start since a person was asked, or has its result", b.Call)
		}
		if b.Request.Request != "" {
			return w.asked(&b.Request)
		}
	case *ringi.OutcomeSettled:
		return w.settled(b)
	case *ringi.RunFinished:
		return w.end()
	}
	return nil
}

func (w *witness) turn(b *ringi.ModelResponded) error {
	if err := w.closedTurn(); err != nil {
		return err
	}
	for _, j := range b.Calls {
		if w.calls[j.ID] != nil {
			return fmt.Errorf("call %s is there already", j.ID)
		}
		w.calls[j.ID] = &heardCall{tool: j.Tool, input: j.Input}
		w.order = append(w.order, j.ID)
		if j.Code != "" {
			w.calls[j.ID].results++
		}
	}
	if b.Finished != nil {
		return w.end()
	}
	return nil
}

// closedTurn says which call has no result.
func (w *witness) closedTurn() error {
	for _, id := range w.order {
		if w.calls[id].results != 1 {
			return fmt.Errorf("call %s has %d results", id, w.calls[id].results)
		}
	}
	return nil
}

func (w *witness) end() error {
	w.ended = true
	for id, r := range w.requests {
		if r.state.Open() {
			return fmt.Errorf("request %s is %s as the run ends", id, r.state)
		}
	}
	return w.closedTurn()
}

func (w *witness) result(call string) error {
	c := w.calls[call]
	if c == nil || c.results != 0 {
		return fmt.Errorf("call %s is unknown, or has a result already", call)
	}
	c.results++
	return nil
}

func (w *witness) asked(b *ringi.ApprovalRequested) error {
	c := w.calls[b.Call]
	switch {
	case c == nil || c.results != 0:
		return fmt.Errorf("call %s is unknown, or has its result", b.Call)
	case w.requests[b.Request] != nil:
		return fmt.Errorf("request %s is there already", b.Request)
	case !w.attended:
		return fmt.Errorf("an unattended run asks")
	}
	for id, r := range w.requests {
		if r.call == b.Call && r.state.Open() {
			return fmt.Errorf("call %s is asked twice: %s is %s", b.Call, id, r.state)
		}
	}
	bytes := c.input
	if b.Proposed {
		bytes = b.Input
	}
	w.requests[b.Request] = &heardRequest{call: b.Call, bytes: bytes, nonce: b.Nonce, ask: b.Ask, state: ringi.Pending, expires: b.ExpiresAt}
	return nil
}

func (w *witness) move(id string, from, to ringi.RequestState) error {
	r := w.requests[id]
	if r == nil || r.state != from {
		return fmt.Errorf("request %s is not %s: %+v", id, from, r)
	}
	r.state = to
	return nil
}

func (w *witness) decided(b *ringi.ApprovalDecided) error {
	to := map[ringi.Answer]ringi.RequestState{ringi.Approve: ringi.Granted, ringi.Deny: ringi.Refused, ringi.Respond: ringi.Spent}[b.Answer]
	if err := w.move(b.Request, ringi.Pending, to); err != nil {
		return err
	}
	r := w.requests[b.Request]
	r.approved = b.Answer == ringi.Approve
	if b.By.Kind != ringi.Person {
		return fmt.Errorf("decided by %+v", b.By)
	}
	if !r.expires.IsZero() && !w.at.Before(r.expires) {
		return fmt.Errorf("decided after %s", r.expires)
	}
	r.useBy = b.UseBy
	if !r.approved {
		return w.result(r.call)
	}
	var nonce [sign.NonceSize]byte
	if _, err := base64.RawURLEncoding.Decode(nonce[:], []byte(r.nonce)); err != nil {
		return err
	}
	if sign.InputDigest(nonce, string(r.bytes)) != b.Bytes {
		return fmt.Errorf("approved are other bytes than %s", r.bytes)
	}
	return nil
}

func (w *witness) closed(b *ringi.RequestClosed) error {
	r := w.requests[b.Request]
	if r == nil || !r.state.Open() {
		return fmt.Errorf("request %s is not open: %+v", b.Request, r)
	}
	r.state = b.State
	if r.ask == ringi.KindOutcome || b.Again || b.Successor != "" || b.State == ringi.Stale {
		return nil
	}
	return w.result(r.call)
}

func (w *witness) settled(b *ringi.OutcomeSettled) error {
	if err := w.move(b.Request, ringi.Pending, ringi.Spent); err != nil {
		return err
	}
	if b.Answer != ringi.RunAgain {
		return w.result(b.Call)
	}
	w.calls[b.Call].again++
	w.calls[b.Call].since = 0
	return nil
}

func (w *witness) started(b *ringi.ToolStarted) error {
	c := w.calls[b.Call]
	if c == nil || c.results != 0 {
		return fmt.Errorf("call %s is unknown, or has its result", b.Call)
	}
	c.starts = append(c.starts, b)
	if c.since++; c.since > 1 && !b.Effect.Repeatable() {
		return fmt.Errorf("call %s (%s) starts again, and nobody said so", b.Call, b.Effect)
	}
	if b.Request == "" {
		return nil
	}
	r := w.requests[b.Request]
	switch {
	case r == nil || r.call != b.Call || !r.approved:
		return fmt.Errorf("no approval %s", b.Request)
	case r.state == ringi.Spent && b.Attempt > 1 && b.Effect.Repeatable():
	case r.state != ringi.Granted:
		return fmt.Errorf("approval %s is %s", b.Request, r.state)
	case !r.useBy.IsZero() && !w.at.Before(r.useBy):
		return fmt.Errorf("approval %s was good until %s", b.Request, r.useBy)
	}
	r.state = ringi.Spent
	r.starts++
	return nil
}

// effect is one start of a handler, as the world outside saw it.
type effect struct {
	run, call, tool, key string
	input                ringi.Input
}

// allowed holds what the world saw against what the log says. gated tools need
// a person's approval of exactly the bytes that ran.
func (w *witness) allowed(effects []effect, gated func(tool string) bool, effectOf func(tool string) ringi.Effect) error {
	ran := map[string]int{}
	keys := map[string]string{}
	for _, e := range effects {
		c := w.calls[e.call]
		if c == nil || c.tool != e.tool {
			return fmt.Errorf("%+v ran and is in no log", e)
		}
		if gated(e.tool) && !w.approvedBytes(e) {
			return fmt.Errorf("%+v ran without an approval of its bytes", e)
		}
		ran[e.call]++
		what := e.call + "\x00" + string(e.input)
		if k, ok := keys[what]; ok && k != e.key {
			return fmt.Errorf("%+v: the key was %s", e, k)
		}
		keys[what] = e.key
	}
	for id, c := range w.calls {
		for _, s := range c.starts {
			if gated(c.tool) && s.Request == "" {
				return fmt.Errorf("call %s of %s was started without an approval", id, c.tool)
			}
		}
	}
	for id, n := range ran {
		c := w.calls[id]
		eff := effectOf(c.tool)
		if !eff.Repeatable() && n > 1+c.again {
			return fmt.Errorf("call %s of %s ran %d times; a person said %d times to run it again", id, c.tool, n, c.again)
		}
		if eff != ringi.ReadOnly && n > len(c.starts) {
			return fmt.Errorf("call %s of %s ran %d times and was started %d times", id, c.tool, n, len(c.starts))
		}
	}
	for id, r := range w.requests {
		if r.starts > 1 && !effectOf(w.calls[r.call].tool).Repeatable() {
			return fmt.Errorf("approval %s started %d calls", id, r.starts)
		}
	}
	return nil
}

func (w *witness) approvedBytes(e effect) bool {
	for _, s := range w.calls[e.call].starts {
		if r := w.requests[s.Request]; r != nil && r.approved && r.call == e.call && r.bytes == e.input {
			return true
		}
	}
	return false
}
