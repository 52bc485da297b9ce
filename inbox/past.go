package inbox

import (
	"context"
	"sync"

	"github.com/ringi-dev/ringi"
)

// liveRuns is how many of the newest open runs are watched for pages that
// listen. What older ones ask is on every list, at the next look.
const liveRuns = 300

// note is what is kept in mind of a request: enough to tell who may hear of it,
// and nothing of its input.
type note struct {
	ringi.ApprovalRequest // without tool definition, input, preview and evidence
	agent                 string
}

// past keeps the requests of runs that were looked at, by run, for as long as
// nothing new stands in the run's log.
type past struct {
	mu   sync.Mutex
	runs map[string]runNotes
}

type runNotes struct {
	row   ringi.RunRow
	notes []note
}

// recent returns the requests of the newest open runs.
func (in *inbox) recent(ctx context.Context) ([]runNotes, error) {
	rows, err := in.service.Runs(ctx, ringi.RunQuery{Status: openStatus, Limit: liveRuns})
	if err != nil {
		return nil, err
	}
	out := make([]runNotes, 0, len(rows))
	for _, row := range rows {
		n, err := in.notesOf(ctx, row)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func (in *inbox) notesOf(ctx context.Context, row ringi.RunRow) (runNotes, error) {
	p := &in.past
	p.mu.Lock()
	n, ok := p.runs[row.ID]
	p.mu.Unlock()
	if ok && n.row.Seq == row.Seq {
		n.row = row
		return n, nil
	}
	requests, err := in.requestsOf(ctx, row.ID)
	if err != nil {
		return runNotes{}, err
	}
	n = runNotes{row: row}
	for _, r := range requests {
		n.notes = append(n.notes, noteOf(r, row.Agent))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil || len(p.runs) > 4*liveRuns {
		p.runs = map[string]runNotes{} // all of it is in the store
	}
	p.runs[row.ID] = n
	return n, nil
}

func noteOf(r ringi.ApprovalRequest, agent string) note {
	r.Tool, r.Call, r.Proposed, r.Preview, r.Evidence = ringi.Tool{}, ringi.ToolCall{}, "", nil, ""
	r.InputSchema, r.Verdict = nil, ringi.Verdict{}
	return note{r, agent}
}
