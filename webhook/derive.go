package webhook

import (
	"net/url"
	"strings"

	"github.com/ringi-dev/ringi"
)

// From a run's checked log to the messages that it stands for. The same log
// gives the same messages, however often and in whatever pieces it is read.

// asked is a request as far as messages need it.
type asked struct {
	data    Data
	pending bool
}

// fold reads a log from its beginning.
type fold struct {
	base     string // of the pages for people; empty for none
	run      Data
	tools    map[string]string // by call
	requests map[string]*asked
	pending  int
	ended    *ringi.RunFinished
	wanted   func(seq int64) bool
	out      []message
	err      error
}

// derive returns the messages of those records of a run that are wanted.
func derive(base, space, run string, events []ringi.Event, wanted func(seq int64) bool) ([]message, error) {
	f := &fold{base: strings.TrimSuffix(base, "/"), run: Data{Space: space, RunID: run},
		tools: map[string]string{}, requests: map[string]*asked{}, wanted: wanted}
	for len(events) > 0 && f.err == nil {
		n := 1
		for n < len(events) && !begins(&events[0], &events[n]) {
			n++
		}
		f.commit(events[:n])
		events = events[n:]
	}
	return f.out, f.err
}

// begins reports whether a record is of another commit than one before it. Those
// of one commit share their time; but where a clock was set back, a store's time
// stands still, and commits share it too. A turn, a person's word
// and the end of a request begin anew: what follows an end in its commit, a
// successor or the end of the run, is taken together with it.
func begins(before, ev *ringi.Event) bool {
	if !ev.At.Equal(before.At) || ev.Epoch != before.Epoch {
		return true
	}
	switch ev.Kind {
	case ringi.EventModelResponded, ringi.EventCallJudged, ringi.EventApprovalDecided, ringi.EventApprovalTakenBack, ringi.EventOutcomeSettled,
		ringi.EventRequestClosed:
		return true
	}
	return false
}

// commit tells what each record says, and then what they come to together: a
// request that another one replaces at once leaves no moment without one.
func (f *fold) commit(events []ringi.Event) {
	before := f.pending
	last := &events[0] // of those that tell
	for i := range events {
		if f.event(&events[i]); tells(events[i].Kind) {
			last = &events[i]
		}
	}
	d := f.run
	d.URL = f.page("/run/", d.RunID)
	switch {
	case f.ended != nil:
		d.State, d.Reason = string(f.ended.Status), f.ended.Reason
		f.tell(RunFinished, last, d)
		f.ended, f.pending = nil, 0
	case before == 0 && f.pending > 0:
		d.State = f.waits()
		f.tell(RunWaiting, last, d)
	case before > 0 && f.pending == 0:
		d.State = string(ringi.Running)
		f.tell(RunResumed, last, d)
	}
}

// event takes one record. One whose payload was erased says nothing.
func (f *fold) event(ev *ringi.Event) {
	switch b := ev.Body.(type) {
	case *ringi.RunStarted:
		f.run.Thread, f.run.Agent = b.Thread, b.Agent
	case *ringi.ModelResponded:
		for _, c := range b.Calls {
			f.tools[c.ID] = c.Tool
		}
		if b.Finished != nil {
			f.ended = b.Finished
		}
	case *ringi.CallJudged:
		f.tools[b.Call.ID] = b.Call.Tool
	case *ringi.ApprovalRequested:
		f.ask(ev, b)
	case *ringi.OutcomeUnknown:
		f.ask(ev, &b.Request)
	case *ringi.ApprovalDecided:
		f.settle(ev, ApprovalDecided, b.Request, Data{Answer: b.Answer, State: string(decided(b.Answer))})
	case *ringi.OutcomeSettled:
		f.settle(ev, ApprovalDecided, b.Request, Data{Answer: b.Answer, State: string(decided(b.Answer))})
	case *ringi.ApprovalTakenBack:
		f.settle(ev, ApprovalWithdrawn, b.Request, Data{State: string(ringi.Withdrawn)})
	case *ringi.RequestClosed:
		if typ := closed(b.State); typ != "" {
			f.settle(ev, typ, b.Request, Data{State: string(b.State), Successor: b.Successor})
		}
	case *ringi.RunFinished:
		f.ended = b
	}
}

// decided is the state that an answer leads to.
func decided(a ringi.Answer) ringi.RequestState {
	switch a {
	case ringi.Approve:
		return ringi.Granted
	case ringi.Deny:
		return ringi.Refused
	}
	return ringi.Spent // given and used up at once
}

func closed(s ringi.RequestState) Type {
	switch s {
	case ringi.Expired:
		return ApprovalExpired
	case ringi.Withdrawn:
		return ApprovalWithdrawn
	case ringi.Stale:
		return ApprovalStale
	}
	return ""
}

func (f *fold) ask(ev *ringi.Event, b *ringi.ApprovalRequested) {
	d := f.run
	d.RequestID, d.CallID, d.Kind, d.Tool = b.Request, b.Call, b.Ask, f.tools[b.Call]
	d.URL = f.page("/a/", b.Request)
	f.requests[b.Request] = &asked{d, true}
	f.pending++
	d.State, d.Replaces, d.ExpiresAt = string(ringi.Pending), b.Replaces, b.ExpiresAt
	f.tell(ApprovalRequested, ev, d)
}

func (f *fold) settle(ev *ringi.Event, typ Type, request string, says Data) {
	r := f.requests[request]
	if r == nil {
		return // it was asked in a record that is erased
	}
	if r.pending {
		r.pending = false
		f.pending--
	}
	d := r.data
	d.State, d.Answer, d.Successor = says.State, says.Answer, says.Successor
	f.tell(typ, ev, d)
}

// waits is the state of a waiting run, by the precedence outcome, approval,
// input.
func (f *fold) waits() string {
	state := ringi.WaitingForInput
	for _, r := range f.requests {
		switch {
		case !r.pending:
		case r.data.Kind == ringi.KindOutcome:
			return string(ringi.WaitingForOutcome)
		case r.data.Kind != ringi.KindInput && r.data.Kind != ringi.KindResult:
			state = ringi.WaitingForApproval
		}
	}
	return string(state)
}

func (f *fold) tell(typ Type, ev *ringi.Event, d Data) {
	if f.err != nil || !f.wanted(ev.Seq) {
		return
	}
	m, err := newMessage(typ, ev.Seq, ev.At, d)
	if err != nil {
		f.err = err
		return
	}
	f.out = append(f.out, m)
}

func (f *fold) page(under, id string) string {
	if f.base == "" {
		return ""
	}
	return f.base + under + url.PathEscape(id)
}

// tells reports whether a record of the kind may stand for a message: only then
// its run is read.
func tells(k ringi.EventKind) bool {
	switch k {
	case ringi.EventModelResponded, ringi.EventApprovalRequested, ringi.EventApprovalDecided, ringi.EventApprovalTakenBack,
		ringi.EventRequestClosed, ringi.EventOutcomeUnknown, ringi.EventOutcomeSettled, ringi.EventRunFinished:
		return true
	}
	return false
}
