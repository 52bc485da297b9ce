package main

import (
	"context"
	"fmt"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
)

// replaySummary counts what a store holds of the played conversations. It is
// read from the log, so it is the same whoever made the runs, and however
// often it was killed.
type replaySummary struct {
	Transcripts int `json:"transcripts"`
	Runs        int `json:"runs"`
	ModelTurns  int `json:"model_turns"`
	ToolCalls   int `json:"tool_calls"`
	// Executed are calls that the tool itself answered.
	Executed int `json:"executed"`
	// Requests are those for leave; Approved and Denied are a decider's answers.
	Requests int `json:"requests"`
	Approved int `json:"approved"`
	Denied   int `json:"denied"`
	// Withheld are calls that an unattended run did without.
	Withheld int `json:"withheld"`
	// Waiting are runs that wait for a person.
	Waiting int `json:"waiting"`
	// UnknownOutcome are calls of which a crash left unknown whether they ran,
	// settled or not.
	UnknownOutcome int `json:"unknown_outcome"`
	// Mismatches are messages of finished threads that differ from the
	// recording, results of denied and withheld calls aside.
	Mismatches int     `json:"mismatches"`
	Events     int     `json:"events"`
	Seconds    float64 `json:"seconds"`

	unfinished int    // threads that are not played to their end
	first      string // the first mismatch, for people
}

// summarize reads the runs of the conversations from the store.
func summarize(ctx context.Context, store ringi.Store, space string, scripts []*script, join int) (*replaySummary, error) {
	id, err := store.ID(ctx)
	if err != nil {
		return nil, fmt.Errorf("read store id: %w", err)
	}
	sum := &replaySummary{Transcripts: len(scripts)}
	for _, s := range scripts {
		if err := sum.addThread(ctx, store, id, space, s, join); err != nil {
			return nil, fmt.Errorf("sum up %s: %w", s.thread, err)
		}
	}
	return sum, nil
}

func (sum *replaySummary) addThread(ctx context.Context, store ringi.Store, storeID, space string, s *script, join int) error {
	stored, err := store.Transcript(ctx, space, s.thread)
	if err != nil {
		return err
	}
	rows, err := store.Runs(ctx, ringi.RunQuery{Space: space, Thread: s.thread, Limit: 1})
	if err != nil {
		return err
	}
	finished := len(stored) == len(s.runs)
	if len(rows) > 0 && !rows[0].Status.Final() {
		finished = false
		open, err := store.Load(ctx, space, rows[0].ID)
		if err != nil {
			return err
		}
		stored = append(stored, open)
	}
	if !finished {
		sum.unfinished++
	}
	for i, run := range stored {
		events, err := audit.Events(storeID, space, run.Row.ID, run.Records, run.Row.Head, run.Row.Seq)
		if err != nil {
			return fmt.Errorf("run %s: %w", run.Row.ID, err)
		}
		played := foldPlayed(events)
		sum.add(run, played)
		if finished {
			sum.compare(&s.runs[i], played, join, s.thread)
		}
	}
	return nil
}

func (sum *replaySummary) add(run *ringi.StoredRun, p *playedRun) {
	sum.Runs++
	sum.Events += len(run.Records)
	if run.Row.Status.Waiting() {
		sum.Waiting++
	}
	sum.ModelTurns += len(p.turns)
	sum.Requests += p.requests
	sum.Approved += p.approved
	sum.Denied += p.denied
	for _, t := range p.turns {
		sum.ToolCalls += len(t.Calls)
		for i := range t.Calls {
			switch r := p.results[t.Calls[i].ID]; {
			case r.executed:
				sum.Executed++
			case r.withheld:
				sum.Withheld++
			}
		}
	}
	sum.UnknownOutcome += len(p.unknown)
}

// playedRun is what a run's log says of its messages.
type playedRun struct {
	users    []ringi.Message
	turns    []*ringi.ModelResponded
	results  map[string]playedResult // by call id
	unknown  map[string]bool         // calls whose outcome was unknown
	asks     map[string]string       // call by request
	requests int
	approved int
	denied   int
}

// playedResult is what the model was told of a call.
type playedResult struct {
	text     string
	executed bool
	withheld bool
	// expected says that a person's answer, or that nobody was there to give
	// one, stands in the recorded result's place.
	expected bool
}

func foldPlayed(events []ringi.Event) *playedRun {
	p := &playedRun{results: map[string]playedResult{}, unknown: map[string]bool{}, asks: map[string]string{}}
	for i := range events {
		switch b := events[i].Body.(type) {
		case *ringi.RunStarted:
			p.users = b.Messages
		case *ringi.ModelResponded:
			p.turn(b)
		case *ringi.ApprovalRequested:
			p.requests++
			p.asks[b.Request] = b.Call
		case *ringi.ApprovalDecided:
			p.decided(b)
		case *ringi.ToolFinished:
			for i := range b.Results {
				p.finished(&b.Results[i])
			}
		case *ringi.OutcomeUnknown:
			p.unknown[b.Call] = true
		case *ringi.OutcomeSettled:
			p.results[b.Call] = playedResult{text: b.Result, expected: b.Answer != ringi.Ran}
		}
	}
	return p
}

func (p *playedRun) turn(b *ringi.ModelResponded) {
	p.turns = append(p.turns, b)
	for i := range b.Calls {
		if c := &b.Calls[i]; c.Code != "" {
			withheld := c.Code == ringi.CodeUnattended
			p.results[c.ID] = playedResult{text: c.Text, withheld: withheld, expected: withheld}
		}
	}
}

func (p *playedRun) decided(b *ringi.ApprovalDecided) {
	switch b.Answer {
	case ringi.Approve:
		p.approved++
	case ringi.Deny:
		p.denied++
		p.results[p.asks[b.Request]] = playedResult{text: b.Reason, expected: true}
	case ringi.Respond:
		p.approved++
		p.results[p.asks[b.Request]] = playedResult{text: b.Result}
	}
}

func (p *playedRun) finished(f *ringi.FinishedCall) {
	withheld := f.Code == ringi.CodeUnattended
	res := ringi.ToolResult{Outcome: f.Outcome, Origin: f.Origin, Output: f.Output, Error: f.Error}
	r := playedResult{text: res.Text(), executed: res.Executed(), withheld: withheld, expected: withheld}
	p.results[f.Call] = r
}

// compare counts the messages of a run that are not as recorded.
func (sum *replaySummary) compare(r *scriptRun, p *playedRun, join int, thread string) {
	differs := func(what string, args ...any) {
		if sum.Mismatches++; sum.first == "" {
			sum.first = thread + ": " + fmt.Sprintf(what, args...)
		}
	}
	for i := range max(len(r.users), len(p.users)) {
		if i >= len(r.users) || i >= len(p.users) || p.users[i].Role != ringi.RoleUser || p.users[i].Text != r.users[i] {
			differs("user message %d", i+1)
		}
	}
	said := 0
	for i := 0; ; i++ {
		want, _ := r.turn(said, join)
		if i >= len(p.turns) {
			if r.ended(said) {
				return
			}
			differs("turn %d was not said", i+1)
			said += want.weight()
			continue
		}
		// Where the recording ends on a result, the script's last turn is empty.
		compareTurn(&want, p.turns[i], p, differs)
		said += want.weight()
	}
}

// ended reports whether the recording has no more to say.
func (r *scriptRun) ended(said int) bool {
	for i := range r.said {
		said -= r.said[i].weight()
	}
	return said >= 0
}

// compareTurn counts what differs in one turn and its results.
func compareTurn(want *recordedMessage, got *ringi.ModelResponded, p *playedRun, differs func(string, ...any)) {
	if want.text != got.Text {
		differs("text of turn %d", got.Step)
	}
	for i := range max(len(want.calls), len(got.Calls)) {
		if i >= len(want.calls) || i >= len(got.Calls) {
			differs("call %d of turn %d", i+1, got.Step)
			continue
		}
		w, c := &want.calls[i], &got.Calls[i]
		call := ringi.ToolCall{Tool: c.Tool, ModelID: c.ModelID, Input: c.Input, Raw: c.Raw}
		if w.tool != c.Tool || w.modelID != c.ModelID || !wrote(call, w.input) {
			differs("call %s", c.ID)
		}
		if res, ok := p.results[c.ID]; !ok || res.text != w.answer && !res.expected {
			differs("result of call %s to %s: %.200q", c.ID, c.Tool, res.text)
		}
	}
}
