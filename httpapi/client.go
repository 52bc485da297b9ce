package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/news"
	"github.com/ringi-dev/ringi/internal/sight"
)

// Client is a [ringi.Service] over HTTP. Who acts is whose the token is: the
// principals that its methods take are not sent. What the token may not see is
// empty in what it returns.
//
// Errors are the service's own again, so that errors.Is works: see
// docs/errors.md. A *[Problem] is in every chain that the server began, 401 is
// [ringi.ErrNoPrincipal], 403 [access.ErrForbidden] or ringi.ErrNotPermitted,
// and 429 an *[access.LimitError].
//
// What did not come through, and what the server asks to repeat (429, 502, 503,
// 504, an answer that is being worked on), is tried again up to three times: a
// GET as it is, a POST under the Idempotency-Key of the first try, so that it is
// done once. What gives a secret is sent once. The ctx bounds it all.
type Client struct {
	// HTTP sends the requests; nil means a client that takes at most 90 s for an
	// answer and follows no redirects.
	HTTP *http.Client

	base, token string
}

var (
	_ ringi.Service        = (*Client)(nil)
	_ ringi.CallService    = (*Client)(nil)
	_ ringi.RequestCounter = (*Client)(nil)
)

var patient = &http.Client{
	Timeout:       MaxWait + 30*time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// NewClient makes a client of the server at an address ("https://host:7464")
// with a token. A token goes over plain http to this machine alone.
func NewClient(address, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("make client: the address is http(s)://host[:port]")
	}
	addr, _ := netip.ParseAddr(u.Hostname())
	if u.Scheme == "http" && u.Hostname() != "localhost" && !addr.IsLoopback() {
		return nil, errors.New("make client: a token over plain http goes to this machine alone: say https")
	}
	if token == "" {
		return nil, fmt.Errorf("make client: %w: no token", ringi.ErrNoPrincipal)
	}
	return &Client{base: strings.TrimRight(address, "/"), token: token}, nil
}

// at is an address with an id in it.
func at(before, id, after string) string { return before + url.PathEscape(id) + after }

// Enqueue starts a run. System prompt, runtime value and limits are the
// server's: a start that sets them is refused, as are messages of any role but
// user.
func (c *Client) Enqueue(ctx context.Context, start ringi.RunStart) (*ringi.Result, error) {
	if start.System != "" || start.Runtime != nil || start.Limits != (ringi.Limits{}) {
		return nil, errors.New("enqueue run: system prompt, runtime value and limits are the server's")
	}
	b := StartBody{Agent: start.Agent, Thread: start.Thread, Tools: start.Tools, Groups: start.Groups, Unattended: string(start.Unattended),
		TurnMode: string(start.TurnMode), WithdrawOpen: start.WithdrawOpen, Follows: start.Follows}
	for _, m := range start.Messages {
		if m.Role != ringi.RoleUser || m.Approval != "" || len(m.Calls)+len(m.Results) > 0 {
			return nil, fmt.Errorf("enqueue run: %w", ringi.ErrAuthority)
		}
		b.Messages = append(b.Messages, StartMessage{Role: string(m.Role), Text: m.Text})
	}
	var out wireRun
	if err := c.post(ctx, "/v1/runs", b, &out); err != nil {
		return nil, err
	}
	return &out.Result, nil
}

// Run starts a run, and returns when it ended or waits for a person.
func (c *Client) Run(ctx context.Context, start ringi.RunStart) (*ringi.Result, error) {
	res, err := c.Enqueue(ctx, start)
	for err == nil && !res.Status.Final() && !res.Status.Waiting() {
		var out wireRun
		err = c.get(ctx, at("/v1/runs/", res.RunID, ""), url.Values{"wait": {MaxWait.String()}}, &out)
		res = &out.Result
	}
	if err != nil {
		return nil, err
	}
	return res, nil
}

// wireRun is a run as it comes: a result and a row.
type wireRun struct {
	ringi.Result
	Agent    string    `json:"agent"`
	Parent   string    `json:"parent"`
	Seq      int64     `json:"seq"`
	Deadline time.Time `json:"deadline"`
	Created  time.Time `json:"created_at"`
	Updated  time.Time `json:"updated_at"`
}

func (r wireRun) row() ringi.RunRow {
	return ringi.RunRow{ID: r.RunID, Thread: r.Thread, Agent: r.Agent, Parent: r.Parent, Status: r.Status, Reason: r.Reason, Seq: r.Seq,
		Deadline: r.Deadline, CreatedAt: r.Created, UpdatedAt: r.Updated}
}

// Status returns a run as it stands.
func (c *Client) Status(ctx context.Context, runID string) (*ringi.Result, error) {
	var out wireRun
	if err := c.get(ctx, at("/v1/runs/", runID, ""), nil, &out); err != nil {
		return nil, err
	}
	return &out.Result, nil
}

// Row returns a run's row, without its chain and lease.
func (c *Client) Row(ctx context.Context, runID string) (ringi.RunRow, error) {
	var out wireRun
	err := c.get(ctx, at("/v1/runs/", runID, ""), nil, &out)
	return out.row(), during("read run "+runID, err)
}

// Runs lists runs, newest first.
func (c *Client) Runs(ctx context.Context, q ringi.RunQuery) ([]ringi.RunRow, error) {
	v := url.Values{}
	set(v, "thread", q.Thread)
	set(v, "after", q.After)
	for _, s := range q.Status {
		v.Add("status", string(s))
	}
	v["status"] = joined(v["status"])
	limit := min(q.Limit, 1000)
	if limit <= 0 {
		limit = 100
	}
	var out []ringi.RunRow
	for {
		v.Set("limit", strconv.Itoa(min(limit-len(out), maxPage)))
		var page struct {
			Runs []wireRun `json:"runs"`
			Next string    `json:"next"`
		}
		if err := c.get(ctx, "/v1/runs", tidy(v), &page); err != nil {
			return nil, during("list runs", err)
		}
		for _, r := range page.Runs {
			out = append(out, r.row())
		}
		if page.Next == "" || len(out) >= limit {
			return out, nil
		}
		v.Del("after")
		v.Set("cursor", page.Next)
	}
}

func set(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

func joined(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return []string{strings.Join(list, ",")}
}

// tidy leaves out names without values.
func tidy(v url.Values) url.Values {
	out := url.Values{}
	for name, values := range v {
		if len(values) > 0 {
			out[name] = values
		}
	}
	return out
}

// Events returns the log events of a run after a sequence number. A body that
// the token may not see is nil.
func (c *Client) Events(ctx context.Context, runID string, after int64) ([]ringi.Event, error) {
	var page Events
	err := c.get(ctx, at("/v1/runs/", runID, "/events"), url.Values{"after": {strconv.FormatInt(max(after, 0), 10)}}, &page)
	if err != nil {
		return nil, err
	}
	var out []ringi.Event
	for _, ev := range page.Events {
		one := ringi.Event{Seq: ev.Seq, Kind: ev.Kind, At: ev.At, Epoch: ev.Epoch, RunID: ev.RunID}
		if body := newBody(ev.Kind); body != nil && ev.Body != nil {
			if err := json.Unmarshal(ev.Body, body); err != nil {
				return nil, fmt.Errorf("read event %d of run %s: %w", ev.Seq, runID, err)
			}
			one.Body = body
		}
		out = append(out, one)
	}
	return out, nil
}

// newBody is an empty body of a kind; nil for a kind that is unknown here.
func newBody(kind ringi.EventKind) ringi.EventBody {
	for _, b := range []ringi.EventBody{new(ringi.RunStarted), new(ringi.ModelResponded), new(ringi.CallJudged), new(ringi.ApprovalRequested),
		new(ringi.InputProposed), new(ringi.InputRefused), new(ringi.ApprovalDecided), new(ringi.ApprovalTakenBack), new(ringi.RequestClosed),
		new(ringi.ToolStarted), new(ringi.ToolFinished), new(ringi.OutcomeUnknown), new(ringi.OutcomeSettled), new(ringi.CancelRequested),
		new(ringi.RunFinished), new(ringi.RunErased)} {
		if b.Kind() == kind {
			return b
		}
	}
	return nil
}

// Cancel ends a run.
func (c *Client) Cancel(ctx context.Context, runID string, _ ringi.Principal, reason string, now bool) error {
	return during("cancel run "+runID, c.post(ctx, at("/v1/runs/", runID, "/cancel"), CancelBody{reason, now}, &wireRun{}))
}

// Decide records a decision by the token's person. d.By and d.Channel are not
// sent.
func (c *Client) Decide(ctx context.Context, d ringi.Decision) (ringi.Settled, error) {
	b := DecisionBody{Digest: d.Digest, Answer: string(d.Answer), Result: d.Result, Reason: d.Reason, Note: d.Note, Scope: string(d.Scope), AndApprove: d.AndApprove}
	if d.Input != "" {
		if !json.Valid([]byte(d.Input)) {
			return ringi.Settled{}, fmt.Errorf("decide request %s: %w", d.RequestID,
				&ringi.InputError{Code: ringi.CodeInvalidInput, Err: errors.New("the input is not JSON")})
		}
		b.Input = json.RawMessage(d.Input)
	}
	if d.Digest == "" {
		return ringi.Settled{}, fmt.Errorf("decide request %s: %w", d.RequestID, ringi.ErrStale)
	}
	match := etag(sight.Request{Digest: d.Digest, State: ringi.Pending})
	var out ringi.Settled
	var before bool
	err := c.send(ctx, message{method: http.MethodPost, path: at("/v1/approvals/", d.RequestID, "/decisions"), match: match, body: b, out: &out, repeats: &before})
	if err == nil && before { // the same person's same answer: the server says yes, the service that he was first
		first := ringi.Decision{RequestID: d.RequestID, Answer: d.Answer, Digest: d.Digest, By: ringi.Principal{ID: out.Request.DecidedBy}}
		err = &ringi.DecidedError{Decision: first, State: out.Request.State, At: out.Request.DecidedAt}
	}
	if errors.Is(err, errMatch) { // the version that was shown is not the one that is
		err = &remoteError{ringi.ErrStale, problemIn(err)}
	}
	if first := (*ringi.DecidedError)(nil); errors.As(err, &first) {
		first.Decision.RequestID = d.RequestID
	}
	return out, during("decide request "+d.RequestID, err)
}

// Request returns one request.
func (c *Client) Request(ctx context.Context, id string) (ringi.ApprovalRequest, error) {
	var out ringi.ApprovalRequest
	err := c.get(ctx, at("/v1/approvals/", id, ""), nil, &out)
	return out, during("read request "+id, err)
}

// Requests lists requests, in the order that q asks for. q.After is the Next of
// the page before. Of q.For the ID and the Teams are sent; q.Space is the
// token's.
func (c *Client) Requests(ctx context.Context, q ringi.RequestQuery) (ringi.RequestPage, error) {
	if err := q.Check(); err != nil {
		return ringi.RequestPage{}, fmt.Errorf("list requests: %w", err)
	}
	v := filters(q)
	for name, value := range map[string]string{"run": q.RunID, "thread": q.Thread, "risk": riskOf(q), "q": strings.Join(q.Words(), " "), "order": string(q.Order), "cursor": q.After} {
		set(v, name, value)
	}
	limit := min(q.Limit, 1000)
	if limit <= 0 {
		limit = 50
	}
	var out ringi.RequestPage
	for {
		v.Set("limit", strconv.Itoa(min(limit-len(out.Requests), maxPage)))
		var page ringi.RequestPage
		if err := c.get(ctx, "/v1/approvals", v, &page); err != nil {
			return ringi.RequestPage{}, during("list requests", err)
		}
		out.Requests, out.Next = append(out.Requests, page.Requests...), page.Next
		if page.Next == "" || len(out.Requests) >= limit {
			return out, nil
		}
		v.Set("cursor", page.Next)
	}
}

// RequestCount counts what Requests would list, up to limit (0: 1,000; at most
// 1,000), of what the token's owner may count: an admin all, who decides what he
// is asked, anybody what he asked for. A search, a risk, a thread or a run is refused.
func (c *Client) RequestCount(ctx context.Context, q ringi.RequestQuery, limit int) (int, error) {
	v, err := countable(q)
	if err != nil {
		return 0, fmt.Errorf("count requests: %w", err)
	}
	var out Count
	if err := c.get(ctx, "/v1/approval-count", v, &out); err != nil {
		return 0, during("count requests", err)
	}
	if limit <= 0 || limit > 1000 {
		limit = 1000
	}
	return min(out.Count, limit), nil
}

// RequestTally counts what was settled from a time on and before another, of
// what the token's owner may count; see [Client.RequestCount].
func (c *Client) RequestTally(ctx context.Context, q ringi.RequestQuery, from, to time.Time) (ringi.RequestTally, error) {
	v, err := countable(q)
	if err != nil {
		return ringi.RequestTally{}, fmt.Errorf("tally requests: %w", err)
	}
	v.Del("state") // a tally is of those that were settled
	v.Set("from", from.UTC().Format(time.RFC3339Nano))
	v.Set("to", to.UTC().Format(time.RFC3339Nano))
	var out Tally
	if err := c.get(ctx, "/v1/approval-tally", v, &out); err != nil {
		return ringi.RequestTally{}, during("tally requests", err)
	}
	return ringi.RequestTally{Tools: out.Tools, Hasty: out.Hasty, Median: time.Duration(out.MedianMS) * time.Millisecond}, nil
}

func countable(q ringi.RequestQuery) (url.Values, error) {
	if q.Search != "" || q.Thread != "" || q.RunID != "" || q.Risk != "" {
		return nil, errors.New("a server counts by tool, agent, kind, decider and initiator alone")
	}
	return filters(q), nil
}

func riskOf(q ringi.RequestQuery) string {
	if q.Risk == "" {
		return ""
	}
	return string(q.Risk.OrHigh())
}

// filters are the parameters of [Filters] and [States].
func filters(q ringi.RequestQuery) url.Values {
	var states []string
	for _, s := range q.State {
		states = append(states, string(s))
	}
	v := url.Values{}
	for name, value := range map[string]string{"tool": q.Tool, "agent": q.Agent, "kind": string(q.Kind), "for": q.For.ID,
		"for_team": strings.Join(q.For.Teams, ","), "initiator": q.Initiator, "state": strings.Join(states, ",")} {
		set(v, name, value)
	}
	return v
}

// maxPage is the most that a list of the API holds.
const maxPage = 200

func (c *Client) move(ctx context.Context, verb, id, what string, body any) (ringi.Settled, error) {
	var out ringi.Settled
	err := c.post(ctx, at("/v1/approvals/", id, what), body, &out)
	return out, during(verb+" request "+id, err)
}

// TakeBack takes an approval back until it is spent.
func (c *Client) TakeBack(ctx context.Context, requestID string, _ ringi.Principal, reason string) (ringi.Settled, error) {
	return c.move(ctx, "take back", requestID, "/take-back", ReasonBody{reason})
}

// Withdraw closes a pending request.
func (c *Client) Withdraw(ctx context.Context, requestID string, _ ringi.Principal, reason string) (ringi.Settled, error) {
	return c.move(ctx, "withdraw", requestID, "/withdrawal", ReasonBody{reason})
}

// Reassign hands a pending request over.
func (c *Client) Reassign(ctx context.Context, requestID string, to ringi.Deciders, _ ringi.Principal, reason string) (ringi.Settled, error) {
	return c.move(ctx, "reassign", requestID, "/reassignment", ReassignBody{to.People, to.Teams, reason})
}

// Extend gives a pending request more time.
func (c *Client) Extend(ctx context.Context, requestID string, until time.Time, _ ringi.Principal, reason string) (ringi.Settled, error) {
	return c.move(ctx, "extend", requestID, "/extension", ExtendBody{until, reason})
}

// Wait returns a request once it is settled; where an edit or typed values took
// its place, the one that succeeds it.
func (c *Client) Wait(ctx context.Context, requestID string) (ringi.ApprovalRequest, error) {
	for {
		var r ringi.ApprovalRequest
		if err := c.get(ctx, at("/v1/approvals/", requestID, ""), url.Values{"wait": {MaxWait.String()}}, &r); err != nil {
			return r, err
		}
		if r.State == ringi.Pending {
			continue
		}
		next, err := c.successor(ctx, r)
		if err != nil || next == "" {
			return r, err
		}
		requestID = next
	}
}

// successor is the id of the request that took r's place, or empty.
func (c *Client) successor(ctx context.Context, r ringi.ApprovalRequest) (string, error) {
	q := ringi.RequestQuery{RunID: r.RunID, State: news.States, Limit: 200}
	for {
		page, err := c.Requests(ctx, q)
		if err != nil {
			return "", err
		}
		for _, o := range page.Requests {
			if o.Replaces == r.ID {
				return o.ID, nil
			}
		}
		if page.Next == "" {
			return "", nil
		}
		q.After = page.Next
	}
}

// Agents lists the agents that the token may use.
func (c *Client) Agents(ctx context.Context) ([]ringi.AgentInfo, error) {
	var out Agents
	err := c.get(ctx, "/v1/agents", nil, &out)
	return out.Agents, err
}

// Offered returns what a run of run.Agent would be offered, to the token's
// principal.
func (c *Client) Offered(ctx context.Context, run ringi.RunInfo) (ringi.Offer, error) {
	v := url.Values{}
	set(v, "agent", run.Agent)
	set(v, "unattended", string(run.Unattended))
	v["groups"] = joined(run.Groups)
	var out ringi.Offer
	err := c.get(ctx, "/v1/tools", tidy(v), &out)
	return out, err
}

// Withheld says what the agent's tools are to a caller without an approval step.
func (c *Client) Withheld(ctx context.Context, agent string) ([]ringi.Withheld, error) {
	v := url.Values{}
	set(v, "agent", agent)
	var out WithheldTools
	err := c.get(ctx, "/v1/tools/unattended", v, &out)
	return out.Withheld, err
}

// Verify checks a run's log, on the server.
func (c *Client) Verify(ctx context.Context, runID string) (Verification, error) {
	var out Verification
	err := c.get(ctx, at("/v1/runs/", runID, "/verification"), nil, &out)
	return out, during("verify run "+runID, err)
}
