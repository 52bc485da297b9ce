package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
)

// state is a run as the fold over its events: everything that a process needs
// to go on with it. It is made by Load, and moved on by the writer's own
// commits.
type state struct {
	space, id string
	row       ringi.RunRow  // as read; owner and epoch are the lease seen then
	chain     audit.Chain   // without a head once sealer has drafts
	sealer    *audit.Sealer // of the drafts since the run was read
	newest    time.Time     // of the newest event

	start    *ringi.RunStarted
	turns    []*turn
	requests []*request

	turnRoom    [3]*turn // for the first of each
	requestRoom [1]*request

	cancel   *ringi.CancelRequested
	finished *ringi.RunFinished
	usage    ringi.Usage
	calls    int               // judged so far, budgets span a suspension
	refs     map[string]string // calls of a gate, by their client's own names
	firstAt  time.Time
	heads    []ringi.Record // as read, to find a commit that reported failure
}

// turn is one closed turn of the model.
type turn struct {
	ev    *ringi.ModelResponded
	calls []*call
}

// call is one call with all that happened to it.
type call struct {
	step, pos int
	judged    *ringi.JudgedCall
	claim     *ringi.Claim // of a foreign loop
	input     ringi.Input  // what would run: the model's, or a person's
	started   []*ringi.ToolStarted
	startedAt time.Time // of the newest start
	starts    int       // all of them, those that were settled too
	lost      bool      // nobody knows, or knew, what became of its newest start
	result    *ringi.ToolResult
	class     ringi.DataClass // of the result, where it is not the tool's own
	request   *request        // the newest that asks for leave, input or a result
	outcome   *request        // the newest that asks what happened
	// again says that the call must be judged and asked anew.
	again bool
	// asks is set by a judgement of this activation that has not been put yet.
	asks    ringi.RequestKind
	verdict ringi.Verdict
	// fresh says that verdict is this activation's own.
	fresh bool
	value any // the input as it was decoded when it was judged here
}

// request is a question with its answer.
type request struct {
	ev       *ringi.ApprovalRequested
	call     *call
	state    ringi.RequestState
	decided  *ringi.ApprovalDecided
	settled  *ringi.OutcomeSettled
	proposal *ringi.InputProposed // not looked at yet
	why      string
}

// outcomeKind reports whether the request asks what happened.
func (r *request) outcomeKind() bool { return r.ev.Ask == ringi.KindOutcome }

// foldError says which event does not fit. A log that does not fold is
// corrupt: nothing of it runs.
type foldError struct {
	seq int64
	why string
}

func (e *foldError) Error() string { return fmt.Sprintf("fold event %d: %s", e.seq, e.why) }
func (e *foldError) Unwrap() error { return ringi.ErrCorrupt }

// apply moves the state on by one event.
func (s *state) apply(ev *ringi.Event) error {
	if why := s.applyBody(ev); why != "" {
		return &foldError{ev.Seq, why}
	}
	if ev.At.After(s.newest) {
		s.newest = ev.At
	}
	return nil
}

func (s *state) applyBody(ev *ringi.Event) string {
	if s.start == nil && ev.Kind != ringi.EventRunStarted {
		return "run has not started"
	}
	if s.finished != nil && ev.Kind != ringi.EventRunErased {
		return "run has ended"
	}
	switch b := ev.Body.(type) {
	case *ringi.RunStarted:
		if s.start != nil {
			return "run started twice"
		}
		b.Limits = b.Limits.Or(ringi.DefaultLimits()) // the log keeps what differs
		s.start, s.firstAt = b, ev.At
	case *ringi.ModelResponded:
		return s.applyTurn(b)
	case *ringi.CallJudged:
		return s.applyJudged(b)
	case *ringi.ApprovalRequested:
		return s.applyRequested(b)
	case *ringi.InputProposed:
		return s.applyProposed(b)
	case *ringi.InputRefused:
		r := s.request(b.Request)
		if r == nil || r.proposal == nil {
			return "no proposal to refuse"
		}
		r.proposal = nil
	case *ringi.ApprovalDecided:
		return s.applyDecided(b)
	case *ringi.ApprovalTakenBack:
		return s.applyTakenBack(b)
	case *ringi.RequestClosed:
		return s.applyClosed(b)
	case *ringi.ToolStarted:
		return s.applyStarted(b, ev.At)
	case *ringi.ToolFinished:
		return s.applyFinished(b)
	case *ringi.OutcomeUnknown:
		return s.applyUnknown(b)
	case *ringi.OutcomeSettled:
		return s.applySettled(b)
	case *ringi.CancelRequested:
		if s.cancel == nil || b.Now {
			s.cancel = b
		}
	case *ringi.RunFinished:
		return s.applyEnd(b)
	case *ringi.RunErased:
	default:
		return fmt.Sprintf("kind %q is not of this build", ev.Kind)
	}
	return ""
}

func (s *state) applyTurn(b *ringi.ModelResponded) string {
	if s.start.Gate {
		return "turn of a model in a gate's run"
	}
	if t := s.turn(); t != nil && t.open() {
		return "a turn is open"
	}
	if want := len(s.turns) + 1; b.Step != want {
		return fmt.Sprintf("step %d, want %d", b.Step, want)
	}
	if t := s.turn(); t != nil && b.OfferDigest == "" {
		b.OfferDigest = t.ev.OfferDigest // written where it changes
	}
	t, calls := foldedTurn(len(b.Calls))
	t.ev = b
	for i := range b.Calls {
		calls[i].judgedAs(b.Step, i, &b.Calls[i])
		t.calls[i] = &calls[i]
	}
	if s.turns == nil {
		s.turns = s.turnRoom[:0]
	}
	s.turns = append(s.turns, t)
	s.usage = s.usage.Add(b.Usage)
	s.calls += len(b.Calls)
	if b.Finished != nil {
		return s.applyEnd(b.Finished)
	}
	return ""
}

// applyJudged takes in a call of a gate: a turn of its own, which may be open
// beside others.
func (s *state) applyJudged(b *ringi.CallJudged) string {
	if !s.start.Gate {
		return "call of a gate in another run"
	}
	if want := len(s.turns) + 1; b.Number != want {
		return fmt.Sprintf("call %d, want %d", b.Number, want)
	}
	t, block := foldedTurn(1)
	t.ev = &ringi.ModelResponded{Step: b.Number}
	block[0].judgedAs(b.Number, 0, &b.Call)
	block[0].claim = b.Claim
	t.calls[0] = &block[0]
	s.turns = append(s.turns, t)
	s.calls++
	if b.Ref != "" {
		if s.refs == nil {
			s.refs = map[string]string{}
		}
		s.refs[b.Ref] = b.Call.ID
	}
	return ""
}

// judgedAs fills a call in as it was judged.
func (c *call) judgedAs(step, pos int, j *ringi.JudgedCall) {
	c.step, c.pos, c.judged, c.input, c.verdict, c.asks = step, pos, j, j.Input, j.Verdict, j.Asks
	if j.Code != "" {
		c.result = refusal(c)
	}
}

// foldedTurn makes a turn and the memory of its calls. Most turns hold one call
// or none: what they need is made at once.
func foldedTurn(calls int) (*turn, []call) {
	switch calls {
	case 0:
		return &turn{}, nil
	case 1:
		made := &struct {
			turn  turn
			calls [1]*call
			only  [1]call
		}{}
		made.turn.calls = made.calls[:]
		return &made.turn, made.only[:]
	}
	return &turn{calls: make([]*call, calls)}, make([]call, calls)
}

func (s *state) applyEnd(b *ringi.RunFinished) string {
	if len(s.unanswered()) > 0 {
		return "run ended with an open call"
	}
	if len(s.openRequests()) > 0 {
		return "run ended with an open request"
	}
	if !b.Status.Final() {
		return fmt.Sprintf("run ended as %q", b.Status)
	}
	s.finished = b
	return ""
}

func (s *state) applyRequested(b *ringi.ApprovalRequested) string {
	c := s.call(b.Call)
	if c == nil {
		return "request for an unknown call"
	}
	if c.result != nil {
		return "request for a call that has its result"
	}
	if b.Ask == ringi.KindOutcome {
		return "an outcome that is not unknown"
	}
	return s.putOnce(c, b)
}

// putOnce refuses a request whose id is taken, or whose call has an open one.
func (s *state) putOnce(c *call, b *ringi.ApprovalRequested) string {
	switch {
	case s.request(b.Request) != nil:
		return "request is there already"
	case c.asked():
		return "call has an open request"
	}
	s.put(c, b)
	return ""
}

// asked reports whether a request of the call is open.
func (c *call) asked() bool {
	return c.request != nil && c.request.state.Open() || c.outcome != nil && c.outcome.state.Open()
}

func (s *state) put(c *call, b *ringi.ApprovalRequested) {
	// What a request has in common with its call is written once.
	if b.ToolDigest == "" {
		b.ToolDigest = c.judged.ToolDigest
	}
	if b.Verdict.Status == "" {
		b.Verdict = c.judged.Verdict
	}
	r := &request{ev: b, call: c, state: ringi.Pending}
	if s.requests == nil {
		s.requests = s.requestRoom[:0]
	}
	s.requests = append(s.requests, r)
	if b.Ask == ringi.KindOutcome {
		c.outcome = r
		return
	}
	c.request, c.again, c.asks = r, false, ""
	if b.Proposed {
		c.input = b.Input
	}
}

func (s *state) applyProposed(b *ringi.InputProposed) string {
	r := s.request(b.Request)
	switch {
	case r == nil:
		return "proposal for an unknown request"
	case r.state != ringi.Pending:
		return "proposal for a request that is " + string(r.state)
	case r.proposal != nil:
		return "second proposal"
	case b.Digest != r.ev.Digest:
		return "proposal on another digest"
	}
	r.proposal = b
	return ""
}

func (s *state) applyDecided(b *ringi.ApprovalDecided) string {
	r := s.request(b.Request)
	switch {
	case r == nil:
		return "decision on an unknown request"
	case r.state != ringi.Pending:
		return "decision on a request that is " + string(r.state)
	case r.outcomeKind():
		return "decision on an outcome"
	case b.Digest != r.ev.Digest:
		return "decision on another digest"
	}
	r.decided = b
	switch b.Answer {
	case ringi.Approve:
		r.state = ringi.Granted
	case ringi.Deny:
		r.state = ringi.Refused
		s.finish(r.call, deniedByPerson(r))
	case ringi.Respond:
		r.state = ringi.Spent
		s.finish(r.call, responded(r))
	default:
		return fmt.Sprintf("decision %q", b.Answer)
	}
	return ""
}

func (s *state) applyTakenBack(b *ringi.ApprovalTakenBack) string {
	r := s.request(b.Request)
	if r == nil || r.state != ringi.Granted {
		return "no approval to take back"
	}
	r.state, r.why, r.call.again = ringi.Withdrawn, "taken back", true
	return ""
}

func (s *state) applyClosed(b *ringi.RequestClosed) string {
	r := s.request(b.Request)
	if r == nil || !r.state.Open() {
		return "no open request to close"
	}
	switch b.State {
	case ringi.Expired, ringi.Withdrawn, ringi.Stale:
	default:
		return fmt.Sprintf("request closed as %q", b.State)
	}
	r.state, r.why, r.proposal = b.State, b.Why, nil
	switch {
	case r.outcomeKind():
	case b.Again || b.Successor != "":
		r.call.again = true
	case b.State == ringi.Expired:
		s.finish(r.call, expired(r.call))
	case b.State == ringi.Withdrawn:
		s.finish(r.call, withdrawn(r.call, b.Why))
	default:
		r.call.again = true
	}
	return ""
}

func (s *state) applyStarted(b *ringi.ToolStarted, at time.Time) string {
	c := s.call(b.Call)
	switch {
	case c == nil:
		return "start of an unknown call"
	case c.result != nil:
		return "start of a call that has its result"
	}
	if b.Request != "" {
		r := s.request(b.Request)
		if r == nil || r.call != c || r.state != ringi.Granted && !(r.state == ringi.Spent && b.Attempt > 1) {
			return "start without the approval that it names"
		}
		r.state = ringi.Spent
	}
	if c.asked() {
		return "start of a call that is still asked"
	}
	c.started, c.startedAt, c.lost = append(c.started, b), at, false
	c.starts++
	return ""
}

func (s *state) applyFinished(b *ringi.ToolFinished) string {
	results := make([]ringi.ToolResult, len(b.Results))
	for i := range b.Results {
		f := &b.Results[i]
		c := s.call(f.Call)
		if c == nil || c.result != nil || c.asked() {
			return "result of a call that is not open, or whose request is"
		}
		resultOf(c, f, &results[i])
		c.class = f.Class
		s.finish(c, &results[i])
	}
	return ""
}

func (s *state) applyUnknown(b *ringi.OutcomeUnknown) string {
	c := s.call(b.Call)
	if c == nil || c.result != nil || len(c.started) == 0 || c.asked() {
		return "unknown outcome of a call that did not start, or that is asked"
	}
	c.lost = true
	if b.Request.Request == "" {
		return "" // an unattended run: it ends with this
	}
	if b.Request.Ask != ringi.KindOutcome || b.Request.Call != b.Call {
		return "unknown outcome asks for something else"
	}
	return s.putOnce(c, &b.Request)
}

func (s *state) applySettled(b *ringi.OutcomeSettled) string {
	r := s.request(b.Request)
	if r == nil || !r.outcomeKind() || r.state != ringi.Pending || r.ev.Call != b.Call || b.Digest != r.ev.Digest {
		return "no unknown outcome to settle"
	}
	r.settled = b
	r.state = ringi.Spent
	switch b.Answer {
	case ringi.Ran:
		s.finish(r.call, ranByWord(r))
	case ringi.DidNotRun:
		s.finish(r.call, didNotRun(r))
	case ringi.RunAgain:
		r.call.again = true
		r.call.started = nil // the old start is settled
	default:
		return fmt.Sprintf("outcome %q", b.Answer)
	}
	return ""
}

// finish gives a call its result.
func (s *state) finish(c *call, res *ringi.ToolResult) { c.result = res }

// turn returns the newest turn, or nil.
func (s *state) turn() *turn {
	if len(s.turns) == 0 {
		return nil
	}
	return s.turns[len(s.turns)-1]
}

// unanswered returns the calls without a result: those of the newest turn, or,
// of a gate's run, of any.
func (s *state) unanswered() []*call {
	t := s.turn()
	if t == nil {
		return nil
	}
	open := s.turns[len(s.turns)-1:]
	if s.start.Gate {
		open = s.turns
	}
	var out []*call
	for _, t := range open {
		for _, c := range t.calls {
			if c.result == nil {
				out = append(out, c)
			}
		}
	}
	return out
}

// open reports whether a call of the turn has no result.
func (t *turn) open() bool {
	for _, c := range t.calls {
		if c.result == nil {
			return true
		}
	}
	return false
}

// call finds a call; the newest turn's are looked at first.
func (s *state) call(id string) *call {
	for _, t := range slices.Backward(s.turns) {
		for _, c := range t.calls {
			if c.judged.ID == id {
				return c
			}
		}
	}
	return nil
}

func (s *state) request(id string) *request {
	for _, r := range slices.Backward(s.requests) {
		if r.ev.Request == id {
			return r
		}
	}
	return nil
}

// pending returns the requests that a person can answer.
func (s *state) pending() []*request {
	var out []*request
	for _, r := range s.requests {
		if r.state == ringi.Pending {
			out = append(out, r)
		}
	}
	return out
}

// openRequests returns those that something may still come of.
func (s *state) openRequests() []*request {
	var out []*request
	for _, r := range s.requests {
		if r.state.Open() {
			out = append(out, r)
		}
	}
	return out
}

// waits is the state that a run with pending requests waits in, by precedence
// outcome, approval, input; "" where nothing is pending.
func (s *state) waits() ringi.RunStatus {
	var st ringi.RunStatus
	for _, r := range s.requests {
		if r.state != ringi.Pending || r.proposal != nil {
			continue
		}
		st = waitsAs(st, r.ev.Ask)
	}
	return st
}

// waitsAs is the state of a run that waits in st and for one request more, by
// precedence outcome, approval, input.
func waitsAs(st ringi.RunStatus, kind ringi.RequestKind) ringi.RunStatus {
	switch {
	case st == ringi.WaitingForOutcome || kind == ringi.KindOutcome:
		return ringi.WaitingForOutcome
	case kind != ringi.KindInput && kind != ringi.KindResult:
		return ringi.WaitingForApproval
	case st == "":
		return ringi.WaitingForInput
	}
	return st
}
