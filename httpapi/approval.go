package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/mask"
	"github.com/ringi-dev/ringi/internal/sight"
)

// etag is a request's strong validator (RFC 9110, 8.8.1) for one reader: what
// was shown, and its state. Who sees no digest gets the id in its place.
func etag(r sight.Request) string {
	tag := r.Digest
	if tag == "" {
		tag = r.ID
	}
	state := string(r.State)
	if r.ProposalWaits {
		state += "-proposal"
	}
	return `"` + tag + "." + state + `"`
}

// matches compares If-Match with a request. A request that has only moved on in
// its state is left to the service, which says who was first. Weak tags never
// match (RFC 9110, 13.1.1).
func matches(header string, r sight.Request) error {
	now := etag(r)
	for _, tag := range strings.Split(header, ",") {
		if what := shown(strings.TrimSpace(tag)); what != "" && what == shown(now) {
			return nil
		}
	}
	return &matchError{now}
}

// shown is the part of a tag that says what was shown.
func shown(tag string) string {
	if i := strings.LastIndexByte(tag, '.'); i > 0 {
		return tag[:i]
	}
	return ""
}

// show is a request as its reader sees it.
func (s *server) show(ctx context.Context, v seen, r ringi.ApprovalRequest) sight.Request {
	return v.show(r, s.reason(ctx, v, r))
}

// reason is what a decider wrote for the model; it stands in the log alone.
func (s *server) reason(ctx context.Context, v seen, r ringi.ApprovalRequest) string {
	if v.sight < sight.Client || r.State == ringi.Pending {
		return ""
	}
	events, err := s.Service.Events(ctx, r.RunID, 0)
	if err != nil {
		return ""
	}
	for _, ev := range events {
		switch b := ev.Body.(type) {
		case *ringi.ApprovalDecided:
			if b.Request == r.ID {
				return b.Reason
			}
		case *ringi.OutcomeSettled:
			if b.Request == r.ID {
				return b.Reason
			}
		case *ringi.RequestClosed:
			if b.Request == r.ID && r.State == ringi.Withdrawn {
				return b.Why
			}
		}
	}
	return ""
}

// asRequest answers with a request.
func asRequest(status int, r sight.Request) (*answer, error) {
	a, err := asJSON(status, r)
	if err != nil {
		return nil, err
	}
	a.etag = etag(r)
	return a, nil
}

type oneInput struct {
	ID          string `path:"id" doc:"The approval's id."`
	Wait        string `query:"wait" doc:"Wait for a change, at most 60s: a duration such as 30s. With If-None-Match: until the version differs; else until it is no longer pending." example:"30s"`
	IfNoneMatch string `header:"If-None-Match" doc:"The ETag that you have."`
}

func (s *server) getApproval(ctx context.Context, w access.Who, in *oneInput) (*answer, error) {
	r, v, err := s.request(ctx, w, in.ID, access.ApprovalsRead)
	if err != nil {
		return nil, err
	}
	out := s.show(ctx, v, r)
	if in.Wait != "" {
		same := func(r sight.Request) bool {
			return in.IfNoneMatch == "" && r.State == ringi.Pending || in.IfNoneMatch != "" && in.IfNoneMatch == etag(r)
		}
		if out, err = s.awaitRequest(ctx, w, in, out, same); err != nil {
			return nil, err
		}
	}
	if in.IfNoneMatch != "" && in.IfNoneMatch == etag(out) {
		return &answer{status: http.StatusNotModified, etag: etag(out)}, nil
	}
	return asRequest(http.StatusOK, out)
}

// awaitRequest looks again until the request is no longer the same.
func (s *server) awaitRequest(ctx context.Context, w access.Who, in *oneInput, out sight.Request, same func(sight.Request) bool) (sight.Request, error) {
	seq := int64(-1)
	err := s.poll(ctx, w, in.Wait, func(ctx context.Context, w access.Who) (bool, error) {
		row, err := s.Service.Row(ctx, out.RunID)
		if err != nil {
			return false, err
		}
		if row.Seq == seq && (out.ExpiresAt.IsZero() || s.Now().Before(out.ExpiresAt)) {
			return false, nil
		}
		seq = row.Seq
		r, v, err := s.request(ctx, w, in.ID, access.ApprovalsRead)
		if err != nil {
			return false, err
		}
		out = s.show(ctx, v, r)
		return !same(out), nil
	})
	return out, err
}

// Approvals is a page of approvals.
type Approvals struct {
	Requests []sight.Request `json:"requests"`
	// Next continues the list as its cursor; empty at the end.
	Next string `json:"next,omitempty"`
}

// Filters narrow a list of approvals, and what is counted of one.
type Filters struct {
	Tool  string   `query:"tool" doc:"Only this tool's."`
	Agent string   `query:"agent" doc:"Only this agent's."`
	Kind  string   `query:"kind" enum:"approval,input,approval_and_input,result,outcome" doc:"Only what asks for this."`
	For   string   `query:"for" doc:"Only what this principal may decide by name, or what names nobody."`
	Teams []string `query:"for_team" doc:"Only what one of these teams may decide, or what names nobody; with for: either."`
	By    string   `query:"initiator" doc:"Only what this principal asked for."`
}

// query is what the service is asked for.
func (f *Filters) query() ringi.RequestQuery {
	return ringi.RequestQuery{Tool: f.Tool, Agent: f.Agent, Kind: ringi.RequestKind(f.Kind), For: ringi.Principal{ID: f.For, Teams: f.Teams}, Initiator: f.By}
}

// States are the states of what is listed or counted.
type States struct {
	State []string `query:"state" doc:"States, separated by commas; default: pending." enum:"pending,approved,denied,expired,withdrawn,stale,spent"`
}

func (s *States) states() (out []ringi.RequestState) {
	for _, state := range s.State {
		out = append(out, ringi.RequestState(state))
	}
	return out
}

type listInput struct {
	Filters
	States
	Thread string `query:"thread" doc:"Only this thread's."`
	Run    string `query:"run" doc:"Only this run's."`
	Risk   string `query:"risk" enum:"high,medium,low" doc:"Only those to be looked at so closely."`
	Search string `query:"q" maxLength:"200" doc:"Only those whose text holds every word: tool, agent, ids, and the texts of the input where the reader sees it."`
	Order  string `query:"order" enum:"oldest,newest,soonest,riskiest" default:"oldest" doc:"soonest: by the time at which they expire. riskiest: by risk, then the oldest first."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"At most so many."`
	Cursor string `query:"cursor" doc:"The member next of the page before."`
}

// query is what the service is asked for; a cursor is good for it alone.
func (in *listInput) query() ringi.RequestQuery {
	q := in.Filters.query()
	q.State, q.RunID, q.Thread, q.Risk, q.Search, q.Order = in.states(), in.Run, in.Thread, ringi.Risk(in.Risk), in.Search, ringi.RequestOrder(in.Order)
	if in.Order == "oldest" {
		q.Order = ringi.OldestFirst
	}
	return q
}

// maxScan is how many requests one page looks through.
const maxScan = 2000

func (s *server) listApprovals(ctx context.Context, w access.Who, in *listInput) (*answer, error) {
	if err := access.May(w, access.ApprovalsList, every); err != nil {
		return nil, err
	}
	q := in.query()
	text, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("name list: %w", err)
	}
	label := "approvals\n" + w.Principal.ID + "\n" + string(text)
	q.Limit = max(in.Limit, 50)
	if q.After, err = s.seal.opened(label, in.Cursor); err != nil {
		return nil, err
	}
	page := Approvals{Requests: []sight.Request{}}
	for looked := 0; ; {
		got, err := s.Service.Requests(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, r := range got.Requests {
			if len(page.Requests) == in.Limit || looked == maxScan {
				page.Next = s.seal.closed(label, q.After)
				return asPage(ctx, page, page.Next)
			}
			looked++
			q.After = r.ID
			if one, ok := s.listed(ctx, w, in, r); ok {
				page.Requests = append(page.Requests, one)
			}
		}
		if got.Next == "" {
			return asPage(ctx, page, "")
		}
		q.After = got.Next
	}
}

// listed shows a request that w may see. The service's filters look at more than
// some readers see; what a list holds tells them nothing of the rest.
func (s *server) listed(ctx context.Context, w access.Who, in *listInput, r ringi.ApprovalRequest) (sight.Request, bool) {
	v := s.asked(w, r)
	if access.May(w, access.ApprovalsRead, v.owner) != nil || in.Agent != "" && v.agent != in.Agent {
		return sight.Request{}, false
	}
	out := v.show(r, "")
	if v.sight < sight.Full {
		if in.For != "" || len(in.Teams) > 0 || in.Risk != "" || in.By != "" && in.By != w.Principal.ID {
			return sight.Request{}, false
		}
		text := strings.ToLower(strings.Join([]string{out.Call.Tool, out.Agent, out.ID, out.Call.ID, out.Call.Input}, "\n"))
		for _, word := range (ringi.RequestQuery{Search: in.Search}).Words() {
			if !strings.Contains(text, word) {
				return sight.Request{}, false
			}
		}
	}
	return out, true
}

// asPage answers with a page and a Link to the next one (RFC 8288).
func asPage(ctx context.Context, page any, next string) (*answer, error) {
	a, err := asJSON(http.StatusOK, page)
	if r := requestOf(ctx); err == nil && next != "" && r != nil {
		q := r.URL.Query()
		q.Set("cursor", next)
		a.link = "<" + r.URL.EscapedPath() + "?" + q.Encode() + `>; rel="next"`
	}
	return a, err
}

// DecisionBody is a person's answer to a request.
type DecisionBody struct {
	Digest string `json:"digest" minLength:"1" doc:"The digest of the request that was shown."`
	Answer string `json:"answer" enum:"approve,deny,edit,fill,respond,ran,did_not_run,run_again"`
	// Input is the proposed input of an edit, or the values of a fill.
	Input json.RawMessage `json:"input,omitempty" doc:"A JSON object: the whole input of an edit, or the values of a fill."`
	// Result is the text that stands in the tool's place, or what a call that ran
	// returned.
	Result string `json:"result,omitempty" doc:"The text of the result, for respond and ran; JSON as text where the tool's output is JSON."`
	Reason string `json:"reason,omitempty" doc:"The model reads it. At most 8 KiB."`
	Note   string `json:"note,omitempty" doc:"For people only. At most 8 KiB."`
	Scope  string `json:"scope,omitempty" enum:"tool" doc:"tool: a denial answers every later call of the tool in this thread."`
	// AndApprove approves what an edit or a fill leads to, where nothing else is
	// shown there.
	AndApprove bool `json:"and_approve,omitempty" doc:"Approve what an edit or a fill leads to, where it shows nothing else."`
}

// Settled is what a decision led to.
type Settled struct {
	RunID     string        `json:"run_id"`
	Request   sight.Request `json:"request"`
	Remaining int           `json:"remaining"`
	Proposed  bool          `json:"proposed,omitempty"`
}

type decideInput struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match" doc:"The request's ETag. Required."`
	Key     string `header:"Idempotency-Key" doc:"1 to 255 visible ASCII characters: a repeat gets the same answer for 24 hours."`
	Body    DecisionBody
	RawBody []byte
}

func (s *server) postDecision(ctx context.Context, w access.Who, in *decideInput) (*answer, error) {
	r, v, err := s.request(ctx, w, in.ID, access.ApprovalsDecide)
	if err != nil {
		return nil, s.refused(ctx, w, in.ID, in.Body.Answer, err)
	}
	return s.once(ctx, w, v, access.ApprovalsDecide, in.Key, in.RawBody, func(bool) (*answer, error) {
		set, status, err := s.decide(ctx, w, v, r, in.IfMatch, in.Body)
		if err != nil {
			return nil, err
		}
		a, err := asJSON(status, set)
		if err == nil {
			a.etag = etag(set.Request)
		}
		return a, err
	})
}

// decide records an answer. The same person's same answer again is 200, with
// the request as it stands.
func (s *server) decide(ctx context.Context, w access.Who, v seen, r ringi.ApprovalRequest, match string, b DecisionBody) (Settled, int, error) {
	if err := s.mayDecide(ctx, w, v, r, match, b); err != nil {
		return Settled{}, 0, s.refused(ctx, w, r.ID, b.Answer, err)
	}
	d := ringi.Decision{RequestID: r.ID, Digest: b.Digest, Answer: ringi.Answer(b.Answer), Input: string(b.Input), Result: b.Result, Reason: b.Reason,
		Note: b.Note, Scope: ringi.DenyScope(b.Scope), By: w.Principal, Channel: w.Channel("api"), AndApprove: b.AndApprove}
	set, err := s.Service.Decide(ctx, d)
	if first := (*ringi.DecidedError)(nil); errors.As(err, &first) && repeats(first.Decision, d) {
		now, err := s.Service.Request(ctx, r.ID)
		if err != nil {
			return Settled{}, 0, err
		}
		return Settled{RunID: now.RunID, Request: s.show(ctx, v, now)}, http.StatusOK, nil
	}
	if input := (*ringi.InputError)(nil); errors.As(err, &input) { // its text may quote what was typed
		said := mask.NewSweeper(sight.Typed(r.Tool, b.Input)).Text(input.Error())
		return Settled{}, 0, &ringi.InputError{Tool: input.Tool, Code: input.Code, Err: errors.New(said)}
	}
	if err != nil {
		return Settled{}, 0, err
	}
	return s.settled(ctx, v, set), http.StatusCreated, nil
}

// mayDecide refuses what the service need not be asked for.
func (s *server) mayDecide(ctx context.Context, w access.Who, v seen, r ringi.ApprovalRequest, match string, b DecisionBody) error {
	if r.Kind == ringi.KindOutcome {
		if err := access.May(w, access.OutcomeSettle, v.owner); err != nil {
			return err
		}
	}
	if match == "" || match == "*" {
		return errNoMatch
	}
	if err := matches(match, v.show(r, "")); err != nil {
		return err
	}
	if strings.Contains(string(b.Input), mask.Mark) {
		return &ringi.InputError{Tool: r.Call.Tool, Code: ringi.CodeInvalidInput, Err: errors.New("the input holds a masked value: write the value itself")}
	}
	if b.Answer != string(ringi.Deny) && sight.Blind(r, v.previews) {
		return fmt.Errorf("%w: the preview is of a data class that your roles are not shown: you may deny", ringi.ErrNotPermitted)
	}
	return s.fourEyes(ctx, w, r, ringi.Answer(b.Answer))
}

// refused keeps that w was refused something with a request, where the service
// was not asked, and hands the reason on (S-31).
func (s *server) refused(ctx context.Context, w access.Who, id, what string, err error) error {
	if k, ok := s.Service.(ringi.RefusalKeeper); ok && !w.Principal.IsZero() && wordOf(err).status < http.StatusInternalServerError {
		k.KeepRefusal(ctx, ringi.Decision{RequestID: id, Answer: ringi.Answer(what), By: w.Principal, Channel: w.Channel("api")}, err)
	}
	return err
}

// fourEyes refuses a second login of the same person, and everybody where
// somebody who asked is not known (S-12): people are the directory's to know.
func (s *server) fourEyes(ctx context.Context, w access.Who, r ringi.ApprovalRequest, answer ringi.Answer) error {
	if !r.FourEyes || answer == ringi.Deny {
		return nil
	}
	asked := slices.Clone(r.Initiators)
	if r.ProposedBy != "" {
		asked = append(asked, r.ProposedBy)
	}
	second, err := s.Directory.FourEyes(ctx, asked, w.Principal)
	if err != nil {
		return err
	}
	if !second {
		return fmt.Errorf("%w: four eyes: a second person is needed, and everybody who asked must be known", ringi.ErrNotPermitted)
	}
	return nil
}

func (s *server) settled(ctx context.Context, v seen, set ringi.Settled) Settled {
	return Settled{RunID: set.RunID, Request: s.show(ctx, v, set.Request), Remaining: set.Remaining, Proposed: set.Proposed}
}

// repeats reports whether d says again what its author has said.
func repeats(first, d ringi.Decision) bool {
	return first.By.ID == d.By.ID && first.Answer == d.Answer && first.Digest == d.Digest && d.Digest != "" && first.Reason == d.Reason
}

// BatchItem is one decision of a batch.
type BatchItem struct {
	ID      string `json:"id" doc:"The approval's id."`
	IfMatch string `json:"if_match,omitempty" doc:"The request's ETag. Required."`
	DecisionBody
}

// BatchBody is a list of decisions.
type BatchBody struct {
	Items []BatchItem `json:"items" minItems:"1" maxItems:"50"`
}

// BatchResult is what became of one decision.
type BatchResult struct {
	ID string `json:"id"`
	// Status is what the decision alone would have been answered.
	Status  int      `json:"status"`
	Settled *Settled `json:"settled,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// BatchResults are in the order of the decisions.
type BatchResults struct {
	Results []BatchResult `json:"results"`
}

type batchInput struct {
	Key     string `header:"Idempotency-Key"`
	Body    BatchBody
	RawBody []byte
}

func (s *server) postBatch(ctx context.Context, w access.Who, in *batchInput) (*answer, error) {
	if err := access.May(w, access.ApprovalsDecide, every); err != nil {
		for _, item := range in.Body.Items {
			err = s.refused(ctx, w, item.ID, item.Answer, err)
		}
		return nil, err
	}
	v := seen{owner: every}
	return s.once(ctx, w, v, access.ApprovalsDecide, in.Key, in.RawBody, func(bool) (*answer, error) {
		out := BatchResults{Results: []BatchResult{}}
		for _, item := range in.Body.Items {
			out.Results = append(out.Results, s.decideOne(ctx, w, item))
		}
		return asJSON(http.StatusOK, out)
	})
}

func (s *server) decideOne(ctx context.Context, w access.Who, item BatchItem) BatchResult {
	r, v, err := s.request(ctx, w, item.ID, access.ApprovalsDecide)
	if err != nil {
		err = s.refused(ctx, w, item.ID, item.Answer, err)
	} else {
		var set Settled
		var status int
		if set, status, err = s.decide(ctx, w, v, r, item.IfMatch, item.DecisionBody); err == nil {
			return BatchResult{ID: item.ID, Status: status, Settled: &set}
		}
	}
	p := s.problem(ctx, w, err)
	return BatchResult{ID: item.ID, Status: p.Status, Problem: p}
}

// ReasonBody says why.
type ReasonBody struct {
	Reason string `json:"reason,omitempty" doc:"At most 8 KiB."`
}

type reasonInput struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match" doc:"The request's ETag, where only that version is meant."`
	Key     string `header:"Idempotency-Key"`
	Body    ReasonBody
	RawBody []byte
}

func (s *server) postTakeBack(ctx context.Context, w access.Who, in *reasonInput) (*answer, error) {
	return s.move(ctx, w, in.ID, access.ApprovalsTakeBack, in.IfMatch, in.Key, in.RawBody, func() (ringi.Settled, error) {
		return s.Service.TakeBack(ctx, in.ID, w.Principal, in.Body.Reason)
	})
}

func (s *server) postWithdrawal(ctx context.Context, w access.Who, in *reasonInput) (*answer, error) {
	return s.move(ctx, w, in.ID, access.ApprovalsWithdraw, in.IfMatch, in.Key, in.RawBody, func() (ringi.Settled, error) {
		return s.Service.Withdraw(ctx, in.ID, w.Principal, in.Body.Reason)
	})
}

// ReassignBody names who may decide.
type ReassignBody struct {
	People []string `json:"people,omitempty" doc:"Principal ids."`
	Teams  []string `json:"teams,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

type reassignInput struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match"`
	Key     string `header:"Idempotency-Key"`
	Body    ReassignBody
	RawBody []byte
}

func (s *server) postReassignment(ctx context.Context, w access.Who, in *reassignInput) (*answer, error) {
	return s.move(ctx, w, in.ID, access.ApprovalsReassign, in.IfMatch, in.Key, in.RawBody, func() (ringi.Settled, error) {
		to := ringi.Deciders{People: in.Body.People, Teams: in.Body.Teams}
		if err := s.Directory.CheckDeciders(ctx, to); errors.Is(err, access.ErrInvalid) {
			return ringi.Settled{}, fmt.Errorf("%w: %w", errUnread, err)
		} else if err != nil {
			return ringi.Settled{}, err
		}
		return s.Service.Reassign(ctx, in.ID, to, w.Principal, in.Body.Reason)
	})
}

// ExtendBody says until when a request waits.
type ExtendBody struct {
	Until  time.Time `json:"until" doc:"RFC 3339."`
	Reason string    `json:"reason,omitempty"`
}

type extendInput struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match"`
	Key     string `header:"Idempotency-Key"`
	Body    ExtendBody
	RawBody []byte
}

func (s *server) postExtension(ctx context.Context, w access.Who, in *extendInput) (*answer, error) {
	return s.move(ctx, w, in.ID, access.ApprovalsExtend, in.IfMatch, in.Key, in.RawBody, func() (ringi.Settled, error) {
		return s.Service.Extend(ctx, in.ID, in.Body.Until, w.Principal, in.Body.Reason)
	})
}

// moves are the engine's words for what is done with a request.
var moves = map[access.Route]string{access.ApprovalsTakeBack: "take_back", access.ApprovalsWithdraw: "withdraw",
	access.ApprovalsReassign: "reassign", access.ApprovalsExtend: "extend"}

// move does with a request what is no answer to it.
func (s *server) move(ctx context.Context, w access.Who, id string, route access.Route, match, key string, body []byte,
	do func() (ringi.Settled, error)) (*answer, error) {
	what := moves[route]
	r, v, err := s.request(ctx, w, id, route)
	if err != nil {
		return nil, s.refused(ctx, w, id, what, err)
	}
	if match != "" && match != "*" {
		if err := matches(match, v.show(r, "")); err != nil {
			return nil, s.refused(ctx, w, id, what, err)
		}
	}
	return s.once(ctx, w, v, route, key, body, func(bool) (*answer, error) {
		set, err := do()
		if err != nil {
			return nil, err
		}
		out := s.settled(ctx, v, set)
		a, err := asJSON(http.StatusOK, out)
		if err == nil {
			a.etag = etag(out.Request)
		}
		return a, err
	})
}
