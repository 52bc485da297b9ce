package aisdk

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/mask"
	"github.com/ringi-dev/ringi/internal/sight"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// view is a run as its chat's user sees it: the fold of its log, masked.
type view struct {
	row ringi.RunRow
	// seq is the newest event that is in; rests says that nothing is behind it.
	seq      int64
	rests    bool
	users    []string // what was said to begin it
	steps    []*step
	asks     map[string]*ask // by request
	finished *ringi.RunFinished
	// quiet says that something of the run is masked: its text is shown a turn at
	// a time, when all that is secret in it is known.
	quiet bool
}

type step struct {
	text   string
	calls  []*call
	closed bool // every call has its result, and the model goes on or the run ended
}

// call is a call with what was asked about it and what came of it.
type call struct {
	id, tool, title string
	input           string // JSON, "" where the user does not see it
	open            bool   // input and result are seen
	judged          ringi.JudgedCall
	external        bool
	asks            []*ask
	result          *ringi.FinishedCall
	output, failure string // of result, as seen
}

// ask is a request about a call.
type ask struct {
	ringi.ApprovalRequest
	call *call
	// here says that the user may answer in the chat.
	here bool
	// decided is what a person said, nil for nobody.
	decided *ringi.ApprovalDecided
	seal    string
}

// states are all states of a request.
var states = []ringi.RequestState{ringi.Pending, ringi.Granted, ringi.Refused, ringi.Expired, ringi.Withdrawn, ringi.Stale, ringi.Spent}

// view reads a run.
func (h *Handler) view(ctx context.Context, c *chat, runID string) (*view, error) {
	row, err := h.o.Service.Row(ctx, runID)
	if err != nil {
		return nil, err
	}
	events, err := h.o.Service.Events(ctx, runID, 0)
	if err != nil {
		return nil, err
	}
	v := &view{row: row, asks: map[string]*ask{}, seq: int64(len(events))}
	v.rests = row.Seq == v.seq && (row.Status.Waiting() || row.Status.Final())
	tools, err := h.tools(ctx, c, row, events, v)
	if err != nil {
		return nil, err
	}
	log := sight.NewLog(events, tools)
	f := &folding{v: v, log: log, calls: map[string]*call{}}
	for _, ev := range events {
		f.event(ev)
	}
	for _, s := range v.steps {
		for _, one := range s.calls {
			h.show(ctx, c, v, log, one)
		}
	}
	v.close()
	return v, nil
}

// tools are the definitions that mask what the run holds; it also reads the run's
// requests, where it has any.
func (h *Handler) tools(ctx context.Context, c *chat, row ringi.RunRow, events []ringi.Event, v *view) ([]ringi.Tool, error) {
	var calls, asks bool
	for _, ev := range events {
		switch b := ev.Body.(type) {
		case *ringi.ModelResponded:
			calls = calls || len(b.Calls) > 0
		case *ringi.ApprovalRequested, *ringi.OutcomeUnknown:
			asks = true
		}
	}
	if !calls {
		return nil, nil
	}
	var tools []ringi.Tool
	who := ringi.Principal{ID: "chat", Kind: ringi.Process, Admin: true} // masking looks at every tool
	if offer, err := h.o.Service.Offered(ctx, ringi.RunInfo{Space: row.Space, Agent: row.Agent, By: who}); err == nil {
		tools = offer.Tools // an agent that is gone has none: its inputs are masked whole
	}
	if !asks {
		return tools, nil
	}
	for after := ""; ; {
		page, err := h.o.Service.Requests(ctx, ringi.RequestQuery{RunID: row.ID, State: states, Limit: 1000, After: after})
		if err != nil {
			return nil, err
		}
		for _, r := range page.Requests {
			tools = append(tools, r.Tool)
			v.asks[r.ID] = &ask{ApprovalRequest: r}
		}
		if after = page.Next; after == "" {
			return tools, nil
		}
	}
}

// folding reads events into a view.
type folding struct {
	v     *view
	log   *sight.Log
	calls map[string]*call
}

func (f *folding) event(ev ringi.Event) {
	switch b := ev.Body.(type) {
	case *ringi.RunStarted:
		for _, m := range b.Messages {
			if m.Role == ringi.RoleUser {
				f.v.users = append(f.v.users, f.log.Text(m.Text))
			}
		}
	case *ringi.ModelResponded:
		f.turn(b)
	case *ringi.ApprovalRequested:
		f.asked(b.Request, b.Call)
	case *ringi.OutcomeUnknown:
		f.asked(b.Request.Request, b.Call)
	case *ringi.ApprovalDecided:
		f.decided(b)
	case *ringi.ApprovalTakenBack:
		if a := f.v.asks[b.Request]; a != nil {
			a.decided = nil
		}
	case *ringi.RequestClosed:
		f.over(b)
	case *ringi.ToolFinished:
		for i := range b.Results {
			if one := f.calls[b.Results[i].Call]; one != nil {
				one.result = &b.Results[i]
			}
		}
	case *ringi.OutcomeSettled:
		f.outcome(b)
	case *ringi.RunFinished:
		f.v.finished = b
	}
}

func (f *folding) turn(b *ringi.ModelResponded) {
	s := &step{text: f.log.Text(b.Text)}
	f.v.quiet = f.v.quiet || s.text != b.Text
	shown := f.log.Calls(sight.Full, b.Calls)
	for i, j := range shown {
		f.v.quiet = f.v.quiet || j.Input != b.Calls[i].Input
		one := &call{id: j.ID, tool: j.Tool, judged: j, input: string(j.Input)}
		if j.Code != "" {
			one.result = &ringi.FinishedCall{Call: j.ID, Code: j.Code, Origin: ringi.OriginEngine, Error: j.Text, Outcome: refusal(j)}
		}
		f.calls[j.ID] = one
		s.calls = append(s.calls, one)
	}
	f.v.steps = append(f.v.steps, s)
	if b.Finished != nil {
		f.v.finished = b.Finished
	}
}

// decided takes a person's decision in. A denial and an answer are the call's
// result.
func (f *folding) decided(b *ringi.ApprovalDecided) {
	a := f.v.asks[b.Request]
	if a == nil || a.call == nil {
		return
	}
	a.decided = b
	switch b.Answer {
	case ringi.Deny:
		text := "Denied, not executed."
		if b.Reason != "" {
			text += " " + b.Reason
		}
		a.call.result = &ringi.FinishedCall{Call: a.call.id, Outcome: ringi.OutcomeDenied, Code: ringi.CodeDeniedByPerson, Origin: ringi.OriginPerson, Error: text}
	case ringi.Respond:
		a.call.result = &ringi.FinishedCall{Call: a.call.id, Outcome: ringi.OutcomeResponded, Origin: ringi.OriginPerson, Output: b.Result}
	}
}

// over takes the end of a request without an answer in.
func (f *folding) over(b *ringi.RequestClosed) {
	a := f.v.asks[b.Request]
	if a == nil || a.call == nil || a.Kind == ringi.KindOutcome || b.Again || b.Successor != "" {
		return
	}
	switch b.State {
	case ringi.Expired:
		a.call.result = &ringi.FinishedCall{Call: a.call.id, Outcome: ringi.OutcomeExpired, Code: ringi.CodeExpired, Origin: ringi.OriginEngine, Error: "Nobody decided in time, not executed."}
	case ringi.Withdrawn:
		a.call.result = &ringi.FinishedCall{Call: a.call.id, Outcome: ringi.OutcomeCancelled, Code: ringi.CodeWithdrawn, Origin: ringi.OriginEngine, Error: "Withdrawn, not executed."}
	}
}

// outcome takes a person's word on a call that may have run in.
func (f *folding) outcome(b *ringi.OutcomeSettled) {
	one := f.calls[b.Call]
	switch {
	case one == nil:
	case b.Answer == ringi.Ran:
		one.result = &ringi.FinishedCall{Call: b.Call, Outcome: ringi.OutcomeResponded, Origin: ringi.OriginPerson, Output: b.Result}
	case b.Answer == ringi.DidNotRun:
		one.result = &ringi.FinishedCall{Call: b.Call, Outcome: ringi.OutcomeNotExecuted, Code: ringi.CodeDidNotRun, Origin: ringi.OriginPerson, Error: "This did not run."}
	}
}

// refusal is how a call that was refused at once ended.
func refusal(j ringi.JudgedCall) ringi.CallOutcome {
	switch j.Code {
	case ringi.CodeUnknownTool, ringi.CodeNotOffered, ringi.CodeInvalidInput:
		return ringi.OutcomeInvalid
	case ringi.CodeLimit, ringi.CodeTooMany, ringi.CodeIncompleteTurn, ringi.CodeCancelled, ringi.CodeRunEnded:
		return ringi.OutcomeNotExecuted
	}
	return ringi.OutcomeDenied
}

func (f *folding) asked(request, callID string) {
	a, one := f.v.asks[request], f.calls[callID]
	if a == nil || one == nil {
		return
	}
	a.call, one.external = one, a.Tool.External
	one.asks = append(one.asks, a)
}

// show settles what the user sees of a call, and what he may answer.
func (h *Handler) show(ctx context.Context, c *chat, v *view, log *sight.Log, one *call) {
	one.open = h.o.Open
	for _, a := range one.asks {
		shown := sight.Full.Request(a.ApprovalRequest, v.row.Agent, "")
		v.quiet = v.quiet || len(shown.Masked) > 0
		if a.State != ringi.Stale {
			one.input = shown.Call.Input
		}
		if h.may(ctx, c, a) {
			one.open = true
		}
	}
	if r := one.result; r != nil {
		one.output, one.failure = log.Text(r.Output), log.Text(cmp.Or(r.Error, r.Output))
		v.quiet = v.quiet || one.output != r.Output
	}
	for _, a := range one.asks {
		a.here = a.State == ringi.Pending && !a.ProposalWaits && h.may(ctx, c, a) && h.answerable(a)
		if !a.here {
			continue
		}
		s := sealed{a.ID, a.Call.ID, a.Call.Tool, one.input}
		if typed(a.Kind) {
			s.shown = typedShown(one.input, string(a.InputSchema))
		}
		var err error
		if a.seal, err = h.seal(c.thread, a.Digest, s); err != nil {
			a.here = false
		}
	}
}

// may reports whether the request lets who speaks decide: what the engine holds
// against a decision anyway.
func (h *Handler) may(ctx context.Context, c *chat, a *ask) bool {
	r := &a.ApprovalRequest
	switch {
	case c.by.Kind != ringi.Person,
		r.Tool.AdminOnly && !c.by.Admin,
		r.FourEyes && slices.Contains(r.Initiators, c.by.ID):
		return false
	case !r.Deciders.IsZero() && !slices.Contains(r.Deciders.People, c.by.ID) &&
		!slices.ContainsFunc(r.Deciders.Teams, func(t string) bool { return slices.Contains(c.by.Teams, t) }):
		return false
	}
	return h.o.MayDecide == nil || h.o.MayDecide(ctx, c.by, *r)
}

// answerable reports whether a chat can show what an answer would bind, and ask
// for it.
func (h *Handler) answerable(a *ask) bool {
	switch a.Kind {
	case ringi.KindApproval:
		return fits(a.call.input)
	case ringi.KindInput, ringi.KindApprovalAndInput:
		return fits(a.call.input) && harmless(string(a.InputSchema))
	case ringi.KindResult:
		// A browser runs its tools by itself: one that a person has to allow first
		// is answered elsewhere.
		return fits(a.call.input) && a.Verdict.Status != ringi.UserApproval
	}
	return false
}

func typed(k ringi.RequestKind) bool {
	return k == ringi.KindInput || k == ringi.KindApprovalAndInput
}

// typedShown is what a request for typed input shows.
func typedShown(input, schema string) string {
	return `{"input":` + cmp.Or(input, "{}") + `,"schema":` + cmp.Or(schema, "{}") + `}`
}

// close marks the steps that are over.
func (v *view) close() {
	for i, s := range v.steps {
		s.closed = i < len(v.steps)-1 || v.finished != nil
	}
}

// newest is the request that stands for a call now; nil where none was put.
func (one *call) newest() *ask {
	if len(one.asks) == 0 {
		return nil
	}
	return one.asks[len(one.asks)-1]
}

// shownInput is a call's input as JSON that every client takes.
func (one *call) shownInput() string {
	switch {
	case !one.open:
		return "{}"
	case one.input == "":
		return "{}"
	case !fits(one.input):
		return quote(one.input) // its text, as it would run
	}
	return one.input
}

// shownOutput is a result as JSON that every client takes.
func (one *call) shownOutput() string {
	switch {
	case !one.open || one.output == "":
		return "null"
	case valid(one.output) && harmless(one.output):
		return one.output
	}
	return quote(one.output)
}

// shownFailure is what the user is told of a call without a result.
func (one *call) shownFailure() string {
	if one.open && one.failure != "" {
		return one.failure
	}
	switch one.result.Outcome {
	case ringi.OutcomeError:
		return "The tool answered with an error."
	case ringi.OutcomeExpired:
		return "Nobody decided in time, not executed."
	case ringi.OutcomeDenied:
		return "Denied, not executed."
	case ringi.OutcomeInDoubt:
		return "It is not known whether this ran."
	}
	return "Not executed."
}

func valid(text string) bool {
	_, err := strictjson.Parse(text, strictjson.Limits{Bytes: len(text) + 1, Depth: 512})
	return err == nil
}

// quote is a JSON string of a text; what is no UTF-8 is replaced.
func quote(text string) string {
	return string(strictjson.AppendString(nil, strings.ToValidUTF8(text, "\uFFFD")))
}

// reason is what a decision's author wrote for all to read.
func (a *ask) reason() string {
	if a.decided == nil || !a.call.open {
		return ""
	}
	return mask.NewSweeper(sight.Secrets(a.ApprovalRequest)).Text(a.decided.Reason)
}

// approved says what a person's decision came to; ok is false for none.
func (a *ask) approved() (yes, ok bool) {
	if a.decided == nil || a.State == ringi.Pending {
		return false, false
	}
	return a.decided.Answer != ringi.Deny, true
}

func unix(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
