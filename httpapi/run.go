package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/news"
	"github.com/ringi-dev/ringi/internal/sight"
)

// Run is a run as its reader sees it.
type Run struct {
	RunID  string          `json:"run_id"`
	Thread string          `json:"thread"`
	Agent  string          `json:"agent,omitempty"`
	Parent string          `json:"parent,omitempty"`
	Status ringi.RunStatus `json:"status"`
	Reason ringi.Reason    `json:"reason,omitempty"`
	// Detail says more to people, where the run failed.
	Detail string `json:"detail,omitempty"`
	// Text is the model's last text.
	Text     string             `json:"text,omitempty"`
	Pending  []sight.Request    `json:"pending,omitempty"`
	Withheld []ringi.Withheld   `json:"withheld,omitempty"`
	Results  []ringi.ToolResult `json:"results,omitempty"`
	Steps    int                `json:"steps,omitempty"`
	Calls    int                `json:"tool_calls,omitempty"`
	Usage    ringi.Usage        `json:"usage,omitzero"`
	Seq      int64              `json:"seq"`
	Deadline time.Time          `json:"deadline,omitzero"`
	Created  time.Time          `json:"created_at,omitzero"`
	Updated  time.Time          `json:"updated_at,omitzero"`
}

// StartBody is what a run begins with. Who starts it is who asks.
type StartBody struct {
	Agent  string `json:"agent,omitempty" doc:"The agent; empty where there is one."`
	Thread string `json:"thread,omitempty" doc:"A thread of your own to go on with; empty begins one."`
	// Text is short for one message.
	Text     string         `json:"text,omitempty" doc:"One user message."`
	Messages []StartMessage `json:"messages,omitempty" doc:"User messages, in place of text."`
	Tools    []string       `json:"tools,omitempty" doc:"Narrows the offer to these tools."`
	Groups   []string       `json:"groups,omitempty" doc:"Narrows the offer to these groups."`
	// Unattended says that nobody can be asked.
	Unattended   string `json:"unattended,omitempty" enum:"per_tool,per_call"`
	TurnMode     string `json:"turn_mode,omitempty" enum:"eager,hold"`
	WithdrawOpen bool   `json:"withdraw_open,omitempty" doc:"Withdraws what waits on the thread, and ends its run."`
	Follows      string `json:"follows,omitempty" doc:"The newest run of the thread that you know of, or none. Where the thread has gone on since, nothing begins."`
}

// StartMessage is a message of a run that starts.
type StartMessage struct {
	Role string `json:"role,omitempty" doc:"user, or nothing; any other is refused."`
	Text string `json:"text"`
}

type startInput struct {
	Wait    string `query:"wait" doc:"Wait until the run ended or waits for a person, at most 60s." example:"20s"`
	Key     string `header:"Idempotency-Key"`
	Body    StartBody
	RawBody []byte
}

func (s *server) postRun(ctx context.Context, w access.Who, in *startInput) (*answer, error) {
	if in.Wait != "" {
		if _, err := parseWait(in.Wait); err != nil {
			return nil, err
		}
	}
	start, v, err := s.start(ctx, w, in.Body)
	if err != nil {
		return nil, err
	}
	var run string
	a, err := s.once(ctx, w, v, access.RunsStart, in.Key, in.RawBody, func(again bool) (*answer, error) {
		a, id, err := s.enqueue(ctx, w, start, in.Key, again)
		run = id
		return a, err
	})
	if err == nil && a.replayed {
		run = strings.TrimPrefix(a.location, "/v1/runs/") // waits like the first, and sees the run as it is now
	}
	if err != nil || in.Wait == "" || run == "" {
		return a, err
	}
	if err := s.awaitRun(ctx, w, run, in.Wait); err != nil {
		return nil, err
	}
	b, err := s.oneRun(ctx, w, run)
	if err != nil {
		return nil, err
	}
	a.body = b.body
	return a, nil
}

// start is the run that a body asks for, of a thread and an agent that w may
// use. Another's thread is as unknown as one that does not exist.
func (s *server) start(ctx context.Context, w access.Who, b StartBody) (ringi.RunStart, seen, error) {
	out := ringi.RunStart{Thread: b.Thread, Agent: b.Agent, Tools: b.Tools, Groups: b.Groups, By: w.Principal,
		Unattended: ringi.Unattended(b.Unattended), TurnMode: ringi.TurnMode(b.TurnMode), WithdrawOpen: b.WithdrawOpen, Follows: b.Follows}
	if err := access.May(w, access.RunsStart, access.Own); err != nil {
		return out, seen{}, err
	}
	for _, m := range b.Messages {
		if m.Role != "" && m.Role != string(ringi.RoleUser) {
			return out, seen{}, ringi.ErrAuthority
		}
		out.Messages = append(out.Messages, ringi.Message{Role: ringi.RoleUser, Text: m.Text, Author: w.Principal.ID})
	}
	if b.Text != "" {
		out.Messages = append(out.Messages, ringi.Message{Role: ringi.RoleUser, Text: b.Text, Author: w.Principal.ID})
	}
	if len(out.Messages) == 0 {
		return out, seen{}, fmt.Errorf("%w: say text or messages", errUnread)
	}
	agent, err := s.agent(ctx, w, b.Agent, access.RunsStart)
	if err != nil {
		return out, seen{}, err
	}
	out.Agent = agent
	v := seen{place: place{agent: agent}, owner: access.Own}
	if b.Thread == "" {
		return out, v, nil
	}
	v, err = s.thread(ctx, w, b.Thread, access.RunsStart)
	return out, v, err
}

// agent is the name of an agent that w may use; an empty one means the only
// one.
func (s *server) agent(ctx context.Context, w access.Who, name string, route access.Route) (string, error) {
	agents, err := s.Service.Agents(ctx)
	if err != nil {
		return "", err
	}
	if name == "" && len(agents) == 1 {
		name = agents[0].Name
	}
	known := slices.ContainsFunc(agents, func(a ringi.AgentInfo) bool { return a.Name == name })
	thing := access.Thing{Space: w.Space, Agent: name}
	if route == access.RunsStart || route == access.CallsMake {
		thing.By = []string{w.Principal.ID}
	}
	owner := w.OwnerOf(thing)
	if !known {
		owner = 0
	}
	return name, access.May(w, route, owner)
}

// enqueue starts a run. Where an earlier try may have started it, the thread
// tells: for a repeat of a new thread's it is derived from the key.
func (s *server) enqueue(ctx context.Context, w access.Who, start ringi.RunStart, key string, again bool) (*answer, string, error) {
	fresh := start.Thread == ""
	if fresh && key != "" {
		sum := sha256.Sum256([]byte("ringi-thread-v1\n" + w.Principal.ID + "\n" + key))
		start.Thread = "thr_" + hex.EncodeToString(sum[:])[:32]
	}
	if again {
		if !fresh {
			return nil, "", errUnclear
		}
		rows, err := s.Service.Runs(ctx, ringi.RunQuery{Thread: start.Thread, Limit: 1})
		if err != nil {
			return nil, "", err
		}
		if len(rows) > 0 {
			a, err := s.oneRun(ctx, w, rows[0].ID)
			return a, rows[0].ID, err
		}
	}
	res, err := s.Service.Enqueue(ctx, start)
	if err != nil {
		return nil, "", err
	}
	a, err := s.oneRun(ctx, w, res.RunID)
	if err != nil {
		return nil, "", err
	}
	a.status, a.location = http.StatusCreated, "/v1/runs/"+res.RunID
	return a, res.RunID, nil
}

type runInput struct {
	ID   string `path:"id" doc:"The run's id."`
	Wait string `query:"wait" doc:"Wait until the run ended or waits for a person, at most 60s." example:"20s"`
}

func (s *server) getRun(ctx context.Context, w access.Who, in *runInput) (*answer, error) {
	if _, err := s.run(ctx, w, in.ID, access.RunsRead, access.AuditRead); err != nil {
		return nil, err
	}
	if in.Wait != "" {
		if err := s.awaitRun(ctx, w, in.ID, in.Wait); err != nil {
			return nil, err
		}
	}
	return s.oneRun(ctx, w, in.ID)
}

// awaitRun waits until nothing drives the run.
func (s *server) awaitRun(ctx context.Context, w access.Who, id, wait string) error {
	return s.poll(ctx, w, wait, func(ctx context.Context, w access.Who) (bool, error) {
		row, err := s.Service.Row(ctx, id)
		if err != nil {
			return false, err
		}
		return row.Status.Final() || row.Status.Waiting(), nil
	})
}

// oneRun answers with a run.
func (s *server) oneRun(ctx context.Context, w access.Who, id string) (*answer, error) {
	v, err := s.run(ctx, w, id, access.RunsRead, access.AuditRead)
	if err != nil {
		return nil, err
	}
	row, err := s.Service.Row(ctx, id)
	if err != nil {
		return nil, err
	}
	out := rowOf(row)
	if v.sight < sight.Waits {
		return asJSON(http.StatusOK, out)
	}
	res, err := s.Service.Status(ctx, id)
	if err != nil {
		return nil, err
	}
	log, _, err := s.log(ctx, v, 0)
	if err != nil {
		return nil, err
	}
	out.Status, out.Reason, out.Text, out.Steps, out.Calls = res.Status, res.Reason, log.Text(res.Text), res.Steps, res.ToolCalls
	if v.sight >= sight.Client {
		out.Detail, out.Withheld, out.Usage = log.Text(res.Detail), res.Withheld, res.Usage
	}
	for _, r := range res.Pending {
		own := s.asked(w, r) // among a run's requests he may be asked for some
		out.Pending = append(out.Pending, own.show(r, ""))
	}
	for _, r := range res.Results {
		out.Results = append(out.Results, log.Result(v.sight, r))
	}
	return asJSON(http.StatusOK, out)
}

func rowOf(row ringi.RunRow) Run {
	return Run{RunID: row.ID, Thread: row.Thread, Agent: row.Agent, Parent: row.Parent, Status: row.Status, Reason: row.Reason, Seq: row.Seq,
		Deadline: row.Deadline, Created: row.CreatedAt, Updated: row.UpdatedAt}
}

// log reads a run's events and what is secret in them.
func (s *server) log(ctx context.Context, v seen, after int64) (*sight.Log, []ringi.Event, error) {
	events, err := s.Service.Events(ctx, v.run, 0)
	if err != nil {
		return nil, nil, err
	}
	var tools []ringi.Tool
	offer, err := s.Service.Offered(ctx, ringi.RunInfo{Space: v.space, Agent: v.agent, By: ringi.Principal{ID: "api", Kind: ringi.Process, Admin: true}})
	if err == nil { // an agent that is gone has no tools: its inputs are masked whole
		tools = offer.Tools
	}
	page, err := s.Service.Requests(ctx, ringi.RequestQuery{RunID: v.run, State: news.States, Limit: 1000})
	if err != nil {
		return nil, nil, err
	}
	for _, r := range page.Requests {
		tools = append(tools, r.Tool)
	}
	log := sight.NewLog(events, tools)
	if after > 0 {
		events = events[min(after, int64(len(events))):]
	}
	return log, events, nil
}

// Runs is a page of runs.
type Runs struct {
	Runs []Run  `json:"runs"`
	Next string `json:"next,omitempty"`
}

type runsInput struct {
	Thread string   `query:"thread"`
	Status []string `query:"status" enum:"queued,running,waiting_for_approval,waiting_for_input,waiting_for_outcome,completed,failed,cancelled"`
	Agent  string   `query:"agent"`
	Limit  int      `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor string   `query:"cursor"`
	After  string   `query:"after" doc:"A run's id: go on behind it. In place of cursor."`
}

func (s *server) listRuns(ctx context.Context, w access.Who, in *runsInput) (*answer, error) {
	if err := mayAny(w, every, []access.Route{access.RunsRead, access.AuditRead}); err != nil {
		return nil, err
	}
	q := ringi.RunQuery{Thread: in.Thread, Limit: 200}
	for _, status := range in.Status {
		q.Status = append(q.Status, ringi.RunStatus(status))
	}
	label := strings.Join([]string{"runs", w.Principal.ID, in.Thread, in.Agent, strings.Join(in.Status, ",")}, "\n")
	var err error
	if q.After, err = s.seal.opened(label, in.Cursor); err != nil {
		return nil, err
	}
	if in.After != "" {
		if _, err := s.run(ctx, w, in.After, access.RunsRead, access.AuditRead); err != nil {
			return nil, err
		}
		q.After = in.After
	}
	page := Runs{Runs: []Run{}}
	for looked := 0; ; {
		rows, err := s.Service.Runs(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if len(page.Runs) == in.Limit || looked == maxScan {
				page.Next = s.seal.closed(label, q.After)
				return asPage(ctx, page, page.Next)
			}
			looked++
			q.After = row.ID
			if in.Agent != "" && row.Agent != in.Agent {
				continue
			}
			if _, err := s.run(ctx, w, row.ID, access.RunsRead, access.AuditRead); err == nil {
				page.Runs = append(page.Runs, rowOf(row))
			}
		}
		if len(rows) < q.Limit {
			return asPage(ctx, page, "")
		}
	}
}

// CancelBody says why a run is to end.
type CancelBody struct {
	Reason string `json:"reason,omitempty"`
	Now    bool   `json:"now,omitempty" doc:"Cut a call in flight: its outcome may stay unknown."`
}

type cancelInput struct {
	ID      string `path:"id"`
	Key     string `header:"Idempotency-Key"`
	Body    CancelBody
	RawBody []byte
}

func (s *server) postCancel(ctx context.Context, w access.Who, in *cancelInput) (*answer, error) {
	v, err := s.run(ctx, w, in.ID, access.RunsCancel)
	if err != nil {
		return nil, err
	}
	return s.once(ctx, w, v, access.RunsCancel, in.Key, in.RawBody, func(bool) (*answer, error) {
		if err := s.Service.Cancel(ctx, in.ID, w.Principal, in.Body.Reason, in.Body.Now); err != nil {
			return nil, err
		}
		return s.oneRun(ctx, w, in.ID)
	})
}

type verifyInput struct {
	ID string `path:"id"`
}

func (s *server) getVerification(ctx context.Context, w access.Who, in *verifyInput) (*answer, error) {
	if _, err := s.run(ctx, w, in.ID, access.Verify); err != nil {
		return nil, err
	}
	if s.Verify == nil {
		return nil, errNoVerify
	}
	v, err := s.Verify(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return asJSON(http.StatusOK, v)
}
