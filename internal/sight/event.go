package sight

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/mask"
)

// Event is an event of a run's log as a reader sees it.
type Event struct {
	Seq   int64           `json:"seq"`
	Kind  ringi.EventKind `json:"kind"`
	At    time.Time       `json:"at"`
	Epoch int64           `json:"epoch,omitempty"`
	RunID string          `json:"run_id,omitempty"`
	// Body is left out where the reader sees none, or it is erased.
	Body json.RawMessage `json:"body,omitempty"`
}

// Log shows a run's events to readers.
type Log struct {
	tools map[string]ringi.Tool // by name, and by the ids of calls and requests
	sweep mask.Sweeper
}

// NewLog reads all events of a run: what is secret in one is masked in each.
// tools are the definitions that are known; an input of any other is masked
// whole.
func NewLog(events []ringi.Event, tools []ringi.Tool) *Log {
	l := &Log{tools: map[string]ringi.Tool{}}
	for _, t := range tools {
		l.tools[t.Name] = t
	}
	var secrets []string
	tool := map[string]string{} // by call
	for _, ev := range events {
		switch b := ev.Body.(type) {
		case *ringi.ModelResponded:
			for _, c := range b.Calls {
				tool[c.ID] = c.Tool
				secrets = append(append(secrets, l.input(c.Tool, c.Input).Secrets...), l.input(c.Tool, c.Raw).Secrets...)
			}
		case *ringi.CallJudged:
			tool[b.Call.ID] = b.Call.Tool
			secrets = append(append(secrets, l.input(b.Call.Tool, b.Call.Input).Secrets...), l.input(b.Call.Tool, b.Call.Raw).Secrets...)
		case *ringi.ApprovalRequested:
			secrets = append(secrets, l.input(tool[b.Call], b.Input).Secrets...)
			tool[b.Request] = tool[b.Call]
		case *ringi.InputProposed:
			secrets = append(secrets, l.input(tool[b.Request], ringi.Input(b.Input)).Secrets...)
		}
	}
	l.sweep = mask.NewSweeper(secrets)
	l.remember(tool)
	return l
}

// remember keeps the tool of each call and request under its id as well.
func (l *Log) remember(tool map[string]string) {
	for id, name := range tool {
		if t, known := l.tools[name]; known {
			l.tools[id] = t
		}
	}
}

func (l *Log) input(of string, text ringi.Input) mask.Masked {
	t, known := l.tools[of]
	if !known {
		return mask.All(string(text))
	}
	return masked(t, text)
}

// Text masks what is secret in the run in a text of it.
func (l *Log) Text(text string) string { return l.sweep.Text(text) }

// Event shows an event. previews says which previews its reader is shown.
func (l *Log) Event(s Sight, previews Previews, ev ringi.Event) (Event, error) {
	out := Event{Seq: ev.Seq, Kind: ev.Kind, At: ev.At, RunID: ev.RunID}
	if s == Full || s == Heads {
		out.Epoch = ev.Epoch
	}
	if s < Waits || ev.Body == nil {
		return out, nil
	}
	body := l.body(s, l.unseen(previews, ev.Body))
	if body == nil {
		return out, nil
	}
	b, err := json.Marshal(body)
	if err != nil {
		return Event{}, fmt.Errorf("show event %d: %w", ev.Seq, err)
	}
	out.Body = l.sweep.JSON(b)
	return out, nil
}

// unseen is a body without a preview that its reader is not shown. The class of
// a tool that is not known here is undeclared.
func (l *Log) unseen(previews Previews, b ringi.EventBody) ringi.EventBody {
	switch b := b.(type) {
	case *ringi.ApprovalRequested:
		if (b.Preview != nil || b.PreviewError != "") && !previews.sees(l.tools[b.Call]) {
			out := *b
			out.Preview, out.PreviewError = nil, ""
			return &out
		}
	case *ringi.OutcomeUnknown:
		out := *b
		out.Request = *l.unseen(previews, &b.Request).(*ringi.ApprovalRequested)
		return &out
	}
	return b
}

// body is what of a body is seen; nil for nothing. It never writes into b.
func (l *Log) body(s Sight, b ringi.EventBody) any {
	if s == Full {
		return l.full(b)
	}
	switch b := b.(type) {
	case *ringi.RunStarted:
		return &ringi.RunStarted{Agent: b.Agent, Thread: b.Thread, Messages: said(b.Messages)}
	case *ringi.ModelResponded:
		out := &ringi.ModelResponded{Step: b.Step, Attempt: b.Attempt, Text: b.Text, Finish: b.Finish, Calls: l.Calls(s, b.Calls)}
		if b.Finished != nil {
			out.Finished = &ringi.RunFinished{Status: b.Finished.Status, Reason: b.Finished.Reason}
		}
		return out
	case *ringi.CallJudged:
		return &ringi.CallJudged{Number: b.Number, Call: l.Calls(s, []ringi.JudgedCall{b.Call})[0]}
	case *ringi.ApprovalRequested:
		return l.requested(s, b)
	case *ringi.ApprovalDecided:
		out := &ringi.ApprovalDecided{Request: b.Request, Answer: b.Answer, At: b.At, UseBy: b.UseBy}
		if s.input() {
			out.Reason = b.Reason
		}
		return out
	case *ringi.RequestClosed:
		return &ringi.RequestClosed{Request: b.Request, State: b.State, Successor: b.Successor, Again: b.Again}
	case *ringi.ToolStarted:
		return &ringi.ToolStarted{Call: b.Call, Tool: b.Tool, Effect: b.Effect, Attempt: b.Attempt, Request: b.Request}
	case *ringi.ToolFinished:
		return finished(s, b)
	case *ringi.OutcomeUnknown:
		return &ringi.OutcomeUnknown{Call: b.Call, Request: *l.requested(s, &b.Request)}
	case *ringi.RunFinished:
		return &ringi.RunFinished{Status: b.Status, Reason: b.Reason}
	}
	return nil
}

// said are the messages without what only the server needs.
func said(in []ringi.Message) []ringi.Message {
	var out []ringi.Message
	for _, m := range in {
		if m.Role == ringi.RoleUser || m.Role == ringi.RoleAssistant {
			out = append(out, ringi.Message{Role: m.Role, Text: m.Text})
		}
	}
	return out
}

// Calls are the calls of a turn as their reader sees them.
func (l *Log) Calls(s Sight, in []ringi.JudgedCall) []ringi.JudgedCall {
	var out []ringi.JudgedCall
	for _, c := range in {
		show := ringi.JudgedCall{ID: c.ID, Tool: c.Tool, Code: c.Code, Asks: c.Asks, Verdict: ringi.Verdict{Status: c.Verdict.Status}}
		if s.input() {
			show.Input = ringi.Input(l.sweep.Text(l.input(c.Tool, c.Input).Text))
		}
		if s == Client || s == Full {
			show.Verdict, show.Text = c.Verdict, l.sweep.Text(c.Text)
			show.Verdict.Reason = l.sweep.Text(c.Verdict.Reason)
		}
		if s == Full {
			show.ModelID, show.ToolDigest, show.Raw = l.sweep.Text(c.ModelID), c.ToolDigest, ringi.Input(l.sweep.Text(l.input(c.Tool, c.Raw).Text))
		}
		out = append(out, show)
	}
	return out
}

func (l *Log) requested(s Sight, b *ringi.ApprovalRequested) *ringi.ApprovalRequested {
	out := &ringi.ApprovalRequested{Request: b.Request, Call: b.Call, Ask: b.Ask, Replaces: b.Replaces, CreatedAt: b.CreatedAt, ExpiresAt: b.ExpiresAt}
	if s.input() {
		out.Proposed, out.Input = b.Proposed, ringi.Input(l.input(b.Call, b.Input).Text)
	}
	if s == Client {
		out.Verdict = b.Verdict
	}
	if s.preview() && b.Preview != nil {
		out.Preview = &ringi.Preview{Text: b.Preview.Text, Format: b.Preview.Format}
	}
	return out
}

func finished(s Sight, b *ringi.ToolFinished) *ringi.ToolFinished {
	out := &ringi.ToolFinished{}
	for _, r := range b.Results {
		show := ringi.FinishedCall{Call: r.Call, Outcome: r.Outcome, Code: r.Code}
		if s.preview() {
			show = r
		}
		out.Results = append(out.Results, show)
	}
	return out
}

// full is a body with its inputs masked.
func (l *Log) full(b ringi.EventBody) ringi.EventBody {
	switch b := b.(type) {
	case *ringi.RunStarted:
		out := *b
		out.Runtime = nil // the program's own, for its functions
		return &out
	case *ringi.ModelResponded:
		out := *b
		out.Calls, out.Opaque = l.Calls(Full, b.Calls), ""
		return &out
	case *ringi.CallJudged:
		return &ringi.CallJudged{Number: b.Number, Call: l.Calls(Full, []ringi.JudgedCall{b.Call})[0], Claim: claimed(l.sweep, b.Claim)}
	case *ringi.ApprovalRequested:
		out := *b
		out.Input = ringi.Input(l.input(b.Call, b.Input).Text)
		out.Nonce = ""
		return &out
	case *ringi.InputProposed:
		out := *b
		out.Input = l.input(b.Request, ringi.Input(b.Input)).Text
		return &out
	case *ringi.OutcomeUnknown:
		out := *b
		out.Request = *l.full(&b.Request).(*ringi.ApprovalRequested)
		return &out
	}
	return b
}

// Result is a result as its reader sees it.
func (l *Log) Result(s Sight, r ringi.ToolResult) ringi.ToolResult {
	out := ringi.ToolResult{CallID: r.CallID, Tool: r.Tool, Outcome: r.Outcome, Code: r.Code, Origin: r.Origin}
	if s == Client || s == Full {
		out.Approval = ringi.ApprovalRecord{Status: r.Approval.Status, Source: r.Approval.Source, Reason: l.sweep.Text(r.Approval.Reason),
			Automatic: r.Approval.Automatic, Request: r.Approval.Request, Decision: r.Approval.Decision,
			Executed: ringi.Input(l.input(r.Tool, r.Approval.Executed).Text)}
	}
	if s == Full {
		out.Approval.Digest, out.Approval.By, out.Approval.Supplied = r.Approval.Digest, r.Approval.By, r.Approval.Supplied
		out.ModelID, out.Note = l.sweep.Text(r.ModelID), l.sweep.Text(r.Note)
	}
	if s.preview() {
		out.Output, out.Error, out.Truncated, out.Duration = l.sweep.Text(r.Output), l.sweep.Text(r.Error), r.Truncated, r.Duration
	}
	return out
}
