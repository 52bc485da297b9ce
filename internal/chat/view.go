package chat

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

// View is a run as its chat's user sees it: the fold of its log, masked.
type View struct {
	Row ringi.RunRow
	// Seq is the newest event that is in; Rests says that nothing is behind it.
	Seq      int64
	Rests    bool
	Users    []string // what was said to begin it
	Steps    []*Step
	Asks     map[string]*Ask // by request
	Finished *ringi.RunFinished
	// Quiet says that something of the run is masked: its text is shown a turn at
	// a time, when all that is secret in it is known.
	Quiet bool
}

// Step is a turn of the model.
type Step struct {
	Text   string
	Calls  []*Call
	Closed bool // every call has its result, and the model goes on or the run ended
}

// Call is a call with what was asked about it and what came of it.
type Call struct {
	ID, Tool        string
	Input           string // JSON, "" where the user does not see it
	Open            bool   // input and result are seen
	Judged          ringi.JudgedCall
	External        bool
	Asks            []*Ask
	Result          *ringi.FinishedCall
	Output, Failure string // of result, as seen
}

// Ask is a request about a call.
type Ask struct {
	ringi.ApprovalRequest
	Made *Call
	// Here says that the user may answer in the chat.
	Here bool
	// Decided is what a person said, nil for nobody.
	Decided *ringi.ApprovalDecided
	Seal    string
}

// States are all states of a request.
var States = []ringi.RequestState{ringi.Pending, ringi.Granted, ringi.Refused, ringi.Expired, ringi.Withdrawn, ringi.Stale, ringi.Spent}

// View reads a run.
func (h *Server) View(ctx context.Context, c *Caller, runID string) (*View, error) {
	row, err := h.Service.Row(ctx, runID)
	if err != nil {
		return nil, err
	}
	events, err := h.Service.Events(ctx, runID, 0)
	if err != nil {
		return nil, err
	}
	v := &View{Row: row, Asks: map[string]*Ask{}, Seq: int64(len(events))}
	v.Rests = row.Seq == v.Seq && (row.Status.Waiting() || row.Status.Final())
	tools, err := h.tools(ctx, c, row, events, v)
	if err != nil {
		return nil, err
	}
	v.Rests = v.Rests && !v.due()
	log := sight.NewLog(events, tools)
	f := &folding{v: v, log: log, calls: map[string]*Call{}}
	for _, ev := range events {
		f.event(ev)
	}
	for _, s := range v.Steps {
		for _, one := range s.Calls {
			h.show(ctx, c, v, log, one)
		}
	}
	v.close()
	return v, nil
}

// due reports whether the run waits for nobody any more: its requests have expired,
// and whoever goes on with it will see.
func (v *View) due() bool {
	if !v.Row.Status.Waiting() {
		return false
	}
	for _, a := range v.Asks {
		if a.State == ringi.Pending {
			return false
		}
	}
	return len(v.Asks) > 0
}

// tools are the definitions that mask what the run holds; it also reads the run's
// requests, where it has any.
func (h *Server) tools(ctx context.Context, c *Caller, row ringi.RunRow, events []ringi.Event, v *View) ([]ringi.Tool, error) {
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
	if offer, err := h.Service.Offered(ctx, ringi.RunInfo{Space: row.Space, Agent: row.Agent, By: who}); err == nil {
		tools = offer.Tools // an agent that is gone has none: its inputs are masked whole
	}
	if !asks {
		return tools, nil
	}
	for after := ""; ; {
		page, err := h.Service.Requests(ctx, ringi.RequestQuery{RunID: row.ID, State: States, Limit: 1000, After: after})
		if err != nil {
			return nil, err
		}
		for _, r := range page.Requests {
			tools = append(tools, r.Tool)
			v.Asks[r.ID] = &Ask{ApprovalRequest: r}
		}
		if after = page.Next; after == "" {
			return tools, nil
		}
	}
}

// folding reads events into a view.
type folding struct {
	v     *View
	log   *sight.Log
	calls map[string]*Call
}

func (f *folding) event(ev ringi.Event) {
	switch b := ev.Body.(type) {
	case *ringi.RunStarted:
		for _, m := range b.Messages {
			if m.Role == ringi.RoleUser {
				f.v.Users = append(f.v.Users, f.log.Text(m.Text))
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
		if a := f.v.Asks[b.Request]; a != nil {
			a.Decided = nil
		}
	case *ringi.RequestClosed:
		f.over(b)
	case *ringi.ToolFinished:
		for i := range b.Results {
			if one := f.calls[b.Results[i].Call]; one != nil {
				one.Result = &b.Results[i]
			}
		}
	case *ringi.OutcomeSettled:
		f.outcome(b)
	case *ringi.RunFinished:
		f.v.Finished = b
	}
}

func (f *folding) turn(b *ringi.ModelResponded) {
	s := &Step{Text: f.log.Text(b.Text)}
	f.v.Quiet = f.v.Quiet || s.Text != b.Text
	shown := f.log.Calls(sight.Full, b.Calls)
	for i, j := range shown {
		f.v.Quiet = f.v.Quiet || j.Input != b.Calls[i].Input
		one := &Call{ID: j.ID, Tool: j.Tool, Judged: j, Input: string(j.Input)}
		if j.Code != "" {
			one.Result = &ringi.FinishedCall{Call: j.ID, Code: j.Code, Origin: ringi.OriginEngine, Error: j.Text, Outcome: refusal(j)}
		}
		f.calls[j.ID] = one
		s.Calls = append(s.Calls, one)
	}
	f.v.Steps = append(f.v.Steps, s)
	if b.Finished != nil {
		f.v.Finished = b.Finished
	}
}

// decided takes a person's decision in. A denial and an answer are the call's
// result.
func (f *folding) decided(b *ringi.ApprovalDecided) {
	a := f.v.Asks[b.Request]
	if a == nil || a.Made == nil {
		return
	}
	a.Decided = b
	switch b.Answer {
	case ringi.Deny:
		text := "Denied, not executed."
		if b.Reason != "" {
			text += " " + b.Reason
		}
		a.Made.Result = &ringi.FinishedCall{Call: a.Made.ID, Outcome: ringi.OutcomeDenied, Code: ringi.CodeDeniedByPerson, Origin: ringi.OriginPerson, Error: text}
	case ringi.Respond:
		a.Made.Result = &ringi.FinishedCall{Call: a.Made.ID, Outcome: ringi.OutcomeResponded, Origin: ringi.OriginPerson, Output: b.Result}
	}
}

// over takes the end of a request without an answer in.
func (f *folding) over(b *ringi.RequestClosed) {
	a := f.v.Asks[b.Request]
	if a == nil || a.Made == nil || a.Kind == ringi.KindOutcome || b.Again || b.Successor != "" {
		return
	}
	switch b.State {
	case ringi.Expired:
		a.Made.Result = &ringi.FinishedCall{Call: a.Made.ID, Outcome: ringi.OutcomeExpired, Code: ringi.CodeExpired, Origin: ringi.OriginEngine, Error: "Nobody decided in time, not executed."}
	case ringi.Withdrawn:
		a.Made.Result = &ringi.FinishedCall{Call: a.Made.ID, Outcome: ringi.OutcomeCancelled, Code: ringi.CodeWithdrawn, Origin: ringi.OriginEngine, Error: "Withdrawn, not executed."}
	}
}

// outcome takes a person's word on a call that may have run in.
func (f *folding) outcome(b *ringi.OutcomeSettled) {
	one := f.calls[b.Call]
	switch {
	case one == nil:
	case b.Answer == ringi.Ran:
		one.Result = &ringi.FinishedCall{Call: b.Call, Outcome: ringi.OutcomeResponded, Origin: ringi.OriginPerson, Output: b.Result}
	case b.Answer == ringi.DidNotRun:
		one.Result = &ringi.FinishedCall{Call: b.Call, Outcome: ringi.OutcomeNotExecuted, Code: ringi.CodeDidNotRun, Origin: ringi.OriginPerson, Error: "This did not run."}
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
	a, one := f.v.Asks[request], f.calls[callID]
	if a == nil || one == nil {
		return
	}
	a.Made, one.External = one, a.Tool.External
	one.Asks = append(one.Asks, a)
}

// show settles what the user sees of a call, and what he may answer.
func (h *Server) show(ctx context.Context, c *Caller, v *View, log *sight.Log, one *Call) {
	one.Open = h.Open
	for _, a := range one.Asks {
		shown := sight.Full.Request(a.ApprovalRequest, nil, "") // its preview is not read here
		v.Quiet = v.Quiet || len(shown.Masked) > 0
		if a.State != ringi.Stale {
			one.Input = shown.Call.Input
		}
		if h.May(ctx, c, a) {
			one.Open = true
		}
	}
	if r := one.Result; r != nil {
		one.Output, one.Failure = log.Text(r.Output), log.Text(cmp.Or(r.Error, r.Output))
		v.Quiet = v.Quiet || one.Output != r.Output
	}
	for _, a := range one.Asks {
		a.Here = a.State == ringi.Pending && !a.ProposalWaits && h.May(ctx, c, a) && h.answerable(a)
		if !a.Here {
			continue
		}
		var err error
		if a.Seal, err = h.Seal(c.Thread, a.Digest, a.Sealed(a.Shown())); err != nil {
			a.Here = false
		}
	}
}

// May reports whether the request lets who speaks decide: what the engine holds
// against a decision anyway.
func (h *Server) May(ctx context.Context, c *Caller, a *Ask) bool {
	r := &a.ApprovalRequest
	switch {
	case c.By.Kind != ringi.Person,
		r.Tool.AdminOnly && !c.By.Admin,
		r.FourEyes && slices.Contains(r.Initiators, c.By.ID):
		return false
	case !r.Deciders.IsZero() && !slices.Contains(r.Deciders.People, c.By.ID) &&
		!slices.ContainsFunc(r.Deciders.Teams, func(t string) bool { return slices.Contains(c.By.Teams, t) }):
		return false
	}
	return h.MayDecide == nil || h.MayDecide(ctx, c.By, *r)
}

// answerable reports whether a chat can show what an answer would bind, and ask
// for it.
func (h *Server) answerable(a *Ask) bool {
	switch a.Kind {
	case ringi.KindApproval:
		return Fits(a.Made.Input)
	case ringi.KindInput, ringi.KindApprovalAndInput:
		return Fits(a.Made.Input) && Harmless(string(a.InputSchema))
	case ringi.KindResult:
		// A browser runs its tools by itself: one that a person has to allow first
		// is answered elsewhere.
		return Fits(a.Made.Input) && a.Verdict.Status != ringi.UserApproval
	}
	return false
}

// Typed reports whether a request asks for values.
func Typed(k ringi.RequestKind) bool {
	return k == ringi.KindInput || k == ringi.KindApprovalAndInput
}

// TypedShown is what a request for typed input shows.
func TypedShown(input, schema string) string {
	return `{"input":` + cmp.Or(input, "{}") + `,"schema":` + cmp.Or(schema, "{}") + `}`
}

// close marks the steps that are over.
func (v *View) close() {
	for i, s := range v.Steps {
		s.Closed = i < len(v.Steps)-1 || v.Finished != nil
	}
}

// Newest is the request that stands for a call now; nil where none was put.
func (one *Call) Newest() *Ask {
	if len(one.Asks) == 0 {
		return nil
	}
	return one.Asks[len(one.Asks)-1]
}

// ShownInput is a call's input as JSON that every client takes.
func (one *Call) ShownInput() string {
	switch {
	case !one.Open:
		return "{}"
	case one.Input == "":
		return "{}"
	case !Fits(one.Input):
		return Quote(one.Input) // its text, as it would run
	}
	return one.Input
}

// ShownOutput is a result as JSON that every client takes.
func (one *Call) ShownOutput() string {
	switch {
	case !one.Open || one.Output == "":
		return "null"
	case Valid(one.Output) && Harmless(one.Output):
		return one.Output
	}
	return Quote(one.Output)
}

// ShownFailure is what the user is told of a call without a result.
func (one *Call) ShownFailure() string {
	if one.Open && one.Failure != "" {
		return one.Failure
	}
	switch one.Result.Outcome {
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

// Valid reports whether a text is JSON.
func Valid(text string) bool {
	_, err := strictjson.Parse(text, strictjson.Limits{Bytes: len(text) + 1, Depth: 512})
	return err == nil
}

// Quote is a JSON string of a text; what is no UTF-8 is replaced.
func Quote(text string) string {
	return string(strictjson.AppendString(nil, strings.ToValidUTF8(text, "\uFFFD")))
}

// Said is what a decision's author wrote for all to read.
func (a *Ask) Said() string {
	if a.Decided == nil || !a.Made.Open {
		return ""
	}
	return mask.NewSweeper(sight.Secrets(a.ApprovalRequest)).Text(a.Decided.Reason)
}

// Approved says what a person's decision came to; ok is false for none.
func (a *Ask) Approved() (yes, ok bool) {
	if a.Decided == nil || a.State == ringi.Pending {
		return false, false
	}
	return a.Decided.Answer != ringi.Deny, true
}

// Unix is a moment as RFC 3339 writes it; "" for none.
func Unix(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Sealed is what an answer to the request binds, where this was shown.
func (a *Ask) Sealed(shown string) Sealed {
	return Sealed{Request: a.ID, Call: a.Call.ID, Tool: a.Call.Tool, Shown: shown}
}

// Shown is the text that a request's seal is over.
func (a *Ask) Shown() string {
	if Typed(a.Kind) {
		return TypedShown(a.Made.Input, string(a.InputSchema))
	}
	return a.Made.Input
}

// Find finds a request of a call.
func (one *Call) Find(id string) *Ask {
	for _, a := range one.Asks {
		if a.ID == id {
			return a
		}
	}
	return nil
}

// Automatic says what policy answered; ok is false where it left the call alone.
func (one *Call) Automatic() (yes, ok bool) {
	switch {
	case one.Judged.Verdict.Status == ringi.Approved:
		return true, true
	case one.Result != nil && one.Result.Outcome == ringi.OutcomeDenied && len(one.Asks) == 0:
		return false, true
	}
	return false, false
}

// AutoReason is why policy answered, where the user may read it.
func (one *Call) AutoReason() string {
	if !one.Open {
		return ""
	}
	return one.Judged.Verdict.Reason
}

// Stands is a request's state as the chat tells it: an approval that was used is
// one.
func (a *Ask) Stands() string {
	if a.State == ringi.Spent {
		return string(ringi.Granted)
	}
	return string(a.State)
}

// closeBefore marks the steps before one that the model is at: they are over. It
// CloseBefore marks the steps before one that the model is at: they are over. It
// reports whether that was news.
func (v *View) CloseBefore(step int) (news bool) {
	for i, s := range v.Steps {
		if !s.Closed && i+1 < step {
			s.Closed, news = true, true
		}
	}
	return news
}
