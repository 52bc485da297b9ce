package inbox

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// recentRuns is how many of the newest runs lists of decided requests, the
// day's numbers and "decided before" look at. The pages say so.
const recentRuns = 300

// note is what is kept in mind of a request: enough for lists and numbers, and
// nothing of its input.
type note struct {
	ringi.ApprovalRequest // without tool definition, input, preview and evidence
	agent                 string
	// alike is the same for calls that count as similar.
	alike string
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

// recent returns the requests of the newest runs in a status; nil: any.
func (in *inbox) recent(ctx context.Context, status []ringi.RunStatus, limit int) ([]runNotes, error) {
	rows, err := in.service.Runs(ctx, ringi.RunQuery{Status: status, Limit: limit})
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
	if p.runs == nil || len(p.runs) > 4*recentRuns {
		p.runs = map[string]runNotes{} // all of it is in the store
	}
	p.runs[row.ID] = n
	return n, nil
}

func noteOf(r ringi.ApprovalRequest, agent string) note {
	n := note{agent: agent, alike: alike(r)}
	name := r.Tool.Name
	if name == "" {
		name = r.Call.Tool
	}
	r.Tool, r.Call, r.Proposed, r.Preview, r.Evidence = ringi.Tool{Name: name}, ringi.ToolCall{}, "", nil, ""
	r.InputSchema, r.Verdict = nil, ringi.Verdict{}
	n.ApprovalRequest = r
	return n
}

// alike is the text by which two calls count as similar: the tool and the
// values of the keys that its schema marks ("x-similar": true), or where it
// marks none the whole input. Fourteen harmless approvals say nothing of a
// fifteenth call that merely has the same tool (S-33).
func alike(r ringi.ApprovalRequest) string {
	v, err := strictjson.ParseObject(string(r.Call.Input), strictjson.Limits{Bytes: -1})
	if err != nil {
		return ""
	}
	var schema struct {
		Properties map[string]struct {
			Similar bool `json:"x-similar"`
		} `json:"properties"`
	}
	picked := map[string]any{}
	if json.Unmarshal(r.Tool.InputSchema, &schema) == nil {
		for key, part := range schema.Properties {
			if value, there := v[key]; part.Similar && there {
				picked[key] = value
			}
		}
	}
	if len(picked) == 0 {
		picked = v
	}
	return digestOf(r.Tool.Name + "\x00" + string(strictjson.Canonical(picked, nil)))
}

// before says what was decided about calls like this one.
type before struct {
	Approved, Denied int
	LastBy           string
	LastAt           time.Time
	LastWord         string
	Marked           bool
}

func (in *inbox) before(ctx context.Context, who access.Who, s seen) (before, error) {
	var out before
	key := alike(s.ApprovalRequest)
	runs, err := in.recent(ctx, nil, recentRuns)
	if err != nil || key == "" {
		return out, err
	}
	since := in.now().AddDate(0, 0, -30)
	for _, run := range runs {
		for _, n := range run.notes {
			if n.alike != key || n.ID == s.ID || n.DecidedAt.Before(since) || n.Kind == ringi.KindOutcome ||
				!in.stands(who, n.ApprovalRequest, n.agent).may(who, access.ApprovalsRead) {
				continue
			}
			word := ""
			switch n.State {
			case ringi.Granted, ringi.Spent:
				out.Approved++
				word = "approved"
			case ringi.Refused:
				out.Denied++
				word = "denied"
			default:
				continue
			}
			if n.DecidedAt.After(out.LastAt) {
				out.LastAt, out.LastBy, out.LastWord = n.DecidedAt, in.nameOf(ctx, n.DecidedBy), word
			}
		}
	}
	return out, nil
}

// decided lists what was settled in the newest runs, newest first.
func (in *inbox) decided(ctx context.Context, who access.Who, states []ringi.RequestState) ([]note, error) {
	runs, err := in.recent(ctx, nil, recentRuns)
	if err != nil {
		return nil, err
	}
	var out []note
	for _, run := range runs {
		for _, n := range run.notes {
			if slices.Contains(states, n.State) && in.stands(who, n.ApprovalRequest, n.agent).may(who, access.ApprovalsList) {
				out = append(out, n)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b note) int { return cmp.Compare(b.settledAt().UnixMicro(), a.settledAt().UnixMicro()) })
	return out, nil
}

// settledAt is when a request was decided, or ended, or was put.
func (n note) settledAt() time.Time {
	switch {
	case !n.DecidedAt.IsZero():
		return n.DecidedAt
	case n.State == ringi.Expired && !n.ExpiresAt.IsZero():
		return n.ExpiresAt
	}
	return n.CreatedAt
}
