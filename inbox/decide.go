package inbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// channel is what decisions made here are recorded under, with the network that
// they came over.
const channel = "inbox"

type confirmBody struct {
	R        ringi.ApprovalRequest
	Sentence sentence
	Answer   ringi.Answer
	Word     string
	Input    document
	Money    []sum
	Kept     kept
	Scope    string
	Digest   string
}

// decide takes an answer. What lets something run is shown once more and asked
// again, unless the script has held it back for its five seconds, or the page
// that asks is this one ("sure").
func (in *inbox) decide(w http.ResponseWriter, r *http.Request, who access.Who) error {
	answer := ringi.Answer(r.PostForm.Get("answer"))
	s, err := in.findToDecide(r, who, answer)
	if err != nil {
		return err
	}
	d := ringi.Decision{RequestID: s.ID, Digest: r.PostForm.Get("digest"), Answer: answer, By: who.Principal, Channel: who.Channel(channel),
		Reason: typed(r, "reason"), Note: typed(r, "note"), Result: typed(r, "result")}
	if answer == ringi.Deny && r.PostForm.Get("scope") == string(ringi.ThisTool) {
		d.Scope = ringi.ThisTool
	}
	if answer == ringi.Edit || answer == ringi.Fill {
		return ringi.ErrAnswer // they have forms of their own
	}
	if answer == ringi.Respond || answer == ringi.Ran {
		if len(s.Tool.OutputSchema) > 0 {
			d.Result = asJSON(d.Result)
		}
		if answer == ringi.Respond && strings.TrimSpace(d.Result) == "" {
			return in.again(w, r, who, s, "Say what the model shall read in the tool's place.")
		}
	}
	if answer == ringi.Approve && d.Digest == s.Digest && s.answerable(who, answer) && !in.factTyped(s, typed(r, "fact")) {
		return in.again(w, r, who, s, "Nothing was decided. Read the request, and type what the form asks for exactly as the request has it.")
	}
	if answer != ringi.Deny && r.PostForm.Get("sure") != "1" {
		return in.confirm(w, r, who, s, d)
	}
	_, err = in.settle(r.Context(), who, s, d)
	if input := (*ringi.InputError)(nil); errors.As(err, &input) {
		return in.again(w, r, who, s, "The answer does not have the form that the tool's own results have: "+input.Error())
	}
	if err != nil {
		return in.about(r, s, err)
	}
	return in.onward(w, r, who, s.ID)
}

// factTyped reports whether somebody has typed what a request with a risk asks
// for.
func (in *inbox) factTyped(s seen, text string) bool {
	d := showJSON(string(s.Call.Input), maskerOf(s.ApprovalRequest))
	return !risky(s.ApprovalRequest) || factOf(sentenceOf(s.ApprovalRequest).Tool, moneyOf(s.ApprovalRequest), d).typed(text)
}

// findToDecide returns a request that somebody may answer so.
func (in *inbox) findToDecide(r *http.Request, who access.Who, answer ringi.Answer) (seen, error) {
	route := access.ApprovalsDecide
	switch answer {
	case ringi.Ran, ringi.DidNotRun, ringi.RunAgain:
		route = access.OutcomeSettle
	}
	if !answer.Known() {
		return seen{}, ringi.ErrAnswer
	}
	return in.find(r.Context(), who, route, r.PathValue("id"))
}

// settle records a decision. The engine says whether he may, and keeps a refused
// one: that four eyes are two people and not two logins it learns from the
// directory, its Config.Persons (S-12).
func (in *inbox) settle(ctx context.Context, who access.Who, s seen, d ringi.Decision) (ringi.Settled, error) {
	if s.blind && d.Answer != ringi.Deny {
		err := fmt.Errorf("%w: the preview is not for his roles", ringi.ErrNotPermitted)
		in.refused(ctx, who, s.ID, string(d.Answer), err)
		return ringi.Settled{}, err
	}
	set, err := in.service.Decide(ctx, d)
	if decided := (*ringi.DecidedError)(nil); errors.As(err, &decided) && sameDecision(decided.Decision, d) {
		return ringi.Settled{RunID: s.RunID, Request: s.ApprovalRequest}, nil // a form that was sent twice
	}
	return set, err
}

// sameDecision reports whether one is the other once more.
func sameDecision(a, b ringi.Decision) bool {
	return a.RequestID == b.RequestID && a.Answer == b.Answer && a.By.ID == b.By.ID && a.Digest == b.Digest && a.Reason == b.Reason &&
		a.Note == b.Note && a.Result == b.Result && a.Scope == b.Scope
}

func (in *inbox) confirm(w http.ResponseWriter, r *http.Request, who access.Who, s seen, d ringi.Decision) error {
	switch {
	case d.Digest != s.Digest:
		return in.about(r, s, in.whyNot(r.Context(), s, d))
	case !s.answerable(who, d.Answer):
		return in.about(r, s, in.whyNot(r.Context(), s, d))
	}
	b := confirmBody{R: s.ApprovalRequest, Sentence: sentenceOf(s.ApprovalRequest), Answer: d.Answer, Word: confirmWord(d.Answer),
		Input: showJSON(string(s.Call.Input), maskerOf(s.ApprovalRequest)), Money: moneyOf(s.ApprovalRequest), Digest: d.Digest,
		Kept: kept{Reason: d.Reason, Note: d.Note, Result: d.Result, Fact: typed(r, "fact")}, Scope: string(d.Scope)}
	return in.show(w, http.StatusOK, who, page{Name: "confirm", Title: "Are you sure?", Body: b})
}

// whyNot is the error of a decision that is not worth a second question.
func (in *inbox) whyNot(ctx context.Context, s seen, d ringi.Decision) error {
	switch s.State {
	case ringi.Pending:
		if d.Digest != s.Digest || s.ProposalWaits {
			return ringi.ErrStale
		}
		return ringi.ErrAnswer
	case ringi.Expired:
		return ringi.ErrExpired
	case ringi.Withdrawn:
		return ringi.ErrWithdrawn
	case ringi.Stale:
		return ringi.ErrStale
	}
	e := &ringi.DecidedError{Decision: ringi.Decision{RequestID: s.ID}, State: s.State, At: s.DecidedAt}
	e.Decision.By = ringi.Principal{ID: s.DecidedBy, Name: in.nameOf(ctx, s.DecidedBy)}
	return e
}

func confirmWord(a ringi.Answer) string {
	switch a {
	case ringi.Approve:
		return "Approve: let it run"
	case ringi.Respond:
		return "Answer in the tool's place"
	case ringi.Ran:
		return "It ran"
	case ringi.DidNotRun:
		return "It did not run"
	}
	return "Run it again"
}

// about adds to an error what the page about it shows.
func (in *inbox) about(r *http.Request, s seen, err error) error {
	e := &aboutRequest{err: err, id: s.ID, successor: in.successor(r.Context(), s.ApprovalRequest)}
	for _, f := range [][2]string{{"reason", "Your reason"}, {"note", "Your note"}, {"result", "Your answer"}, {"raw", "Your input"}} {
		if text := typed(r, f[0]); text != "" {
			e.kept = append(e.kept, keptText{f[1], text})
		}
	}
	return e
}

// again shows the request's page with what is wrong, and what was typed.
func (in *inbox) again(w http.ResponseWriter, r *http.Request, who access.Who, s seen, problem string) error {
	b := requestBody{Problem: problem, Kept: kept{typed(r, "reason"), typed(r, "note"), typed(r, "result"), typed(r, "fact")}}
	return in.showRequest(w, r, who, s, http.StatusUnprocessableEntity, b, maskerOf(s.ApprovalRequest))
}

// onward goes to the next request that waits, or to the list, and says what was
// done.
func (in *inbox) onward(w http.ResponseWriter, r *http.Request, who access.Who, id string) error {
	next, err := in.nextFor(r.Context(), who, id)
	if err != nil {
		in.log.Warn("find next request", "error", err)
	}
	path := "/"
	if next != "" {
		path = "/a/" + url.PathEscape(next)
	}
	return in.to(w, r, path+"?done="+escapeQuery(id))
}

// nextFor is the request that somebody may decide next: behind id, else the
// first.
func (in *inbox) nextFor(ctx context.Context, who access.Who, id string) (string, error) {
	for _, after := range []string{id, ""} {
		p, err := in.service.Requests(ctx, ringi.RequestQuery{Limit: pageOf, After: after})
		if err != nil {
			return "", err
		}
		for _, r := range p.Requests {
			if s := stands(who, r); r.ID != id && s.answerable(who, ringi.Deny) {
				return r.ID, nil
			}
		}
	}
	return "", nil
}

// flash tells, on the page after a form, how a request stands now: read from
// the store, so that no address can make it say what is not so.
type flash struct {
	ID, Run, Tool, Word string
	By                  string
	TakeBack            bool
	Mine                bool
}

func (in *inbox) flashOf(r *http.Request, who access.Who) *flash {
	id := r.URL.Query().Get("done")
	if id == "" {
		return nil
	}
	s, err := in.find(r.Context(), who, access.ApprovalsRead, id)
	if err != nil {
		return nil
	}
	f := &flash{ID: s.ID, Run: s.RunID, Tool: sentenceOf(s.ApprovalRequest).Tool, Word: stateWord(s.State), Mine: s.DecidedBy == who.Principal.ID}
	f.TakeBack = in.canOf(who, s).TakeBack
	if s.DecidedBy != "" {
		f.By = in.nameOf(r.Context(), s.DecidedBy)
	}
	return f
}

// typed is a field of a form with the line feeds that were typed: browsers send
// a carriage return with each (HTML, 4.10.21.4).
func typed(r *http.Request, name string) string {
	return strings.ReplaceAll(r.PostForm.Get(name), "\r\n", "\n")
}

// asJSON is an answer as the tool's own results are: JSON as it was typed, or
// the text as a JSON string.
func asJSON(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	if _, err := strictjson.Parse(s, strictjson.Limits{}); err == nil {
		return s
	}
	return string(strictjson.AppendString(nil, s))
}
