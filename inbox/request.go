package inbox

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/escape"
)

type requestBody struct {
	R     ringi.ApprovalRequest
	Full  bool
	State string
	// The nine parts, in reading order.
	Sentence sentence
	Chips    []chip
	Risky    bool
	Money    []sum
	Input    document
	Changes  []change
	Author   string // of a change
	Preview  *previewView
	Blind    bool // there is a preview, and it is not for his roles
	Why      why
	Claims   []claimed // a client's, from outside
	Rule     rule
	Before   before
	Can      can
	History  []entry
	// Fill is the form of typed input.
	Fill *form
	// Evidence is a late result, for an outcome.
	Evidence  *shown
	WhyAsked  string
	Looking   []string
	Successor string
	Revealed  bool
	Problem   string
	Kept      kept
	Agent     string
	Decider   string
	Teams     []access.Team
	People    []access.User // who may be handed it
	// Fact is what is typed to approve; nil where nothing is.
	Fact *fact
	// Redefined: the tool's definition is another than the one that was asked for
	// first.
	Redefined bool
}

// kept is what somebody typed in a form that is shown again.
type kept struct{ Reason, Note, Result, Fact string }

// can says which buttons are worth showing.
type can struct {
	Approve, Deny, Edit, Respond, Fill, Ran, DidNotRun, RunAgain  bool
	TakeBack, Withdraw, Reassign, Extend, CancelRun, Reveal, Read bool
}

// Any reports whether there is anything to do.
func (c can) Any() bool {
	return c.Approve || c.Deny || c.Edit || c.Respond || c.Fill || c.Ran || c.DidNotRun || c.RunAgain
}

// Other reports whether there is anything beside answering.
func (c can) Other() bool { return c.TakeBack || c.Withdraw || c.Reassign || c.Extend || c.CancelRun }

type rule struct {
	Source, Reason, Deciders, Asked string
	FourEyes                        bool
}

func (in *inbox) request(w http.ResponseWriter, r *http.Request, who access.Who) error {
	s, err := in.find(r.Context(), who, access.ApprovalsRead, r.PathValue("id"))
	if err != nil {
		return err
	}
	return in.showRequest(w, r, who, s, http.StatusOK, requestBody{}, maskerOf(s.ApprovalRequest))
}

// showRequest shows a request; with is what the page shall show beside it.
func (in *inbox) showRequest(w http.ResponseWriter, r *http.Request, who access.Who, s seen, status int, with requestBody, hide *masker) error {
	ctx := r.Context()
	b := with
	b.R, b.Full, b.State, b.Agent = s.ApprovalRequest, s.full, stateWord(s.State), s.Agent
	b.Sentence = sentenceOf(s.ApprovalRequest)
	b.Can = in.canOf(who, s)
	if s.State == ringi.Pending && s.full {
		if err := in.presence(ctx, who, s.ID, &b); err != nil {
			return err
		}
	}
	if s.DecidedBy != "" {
		b.Decider = in.nameOf(ctx, s.DecidedBy)
	}
	if s.full {
		if err := in.fillRequest(ctx, who, s, hide, &b); err != nil {
			return err
		}
	}
	if s.State == ringi.Stale || s.State == ringi.Withdrawn {
		b.Successor = in.successor(ctx, s.ApprovalRequest)
	}
	title := b.Sentence.Tool + ", " + b.State
	return in.show(w, status, who, page{Name: "request", Title: title, Flash: in.flashOf(r, who), Body: b})
}

func (in *inbox) fillRequest(ctx context.Context, who access.Who, s seen, hide *masker, b *requestBody) error {
	b.Input = showJSON(string(s.Call.Input), hide)
	b.Chips = chipsOf(s.ApprovalRequest, b.Input.Flags)
	b.Risky = risky(s.ApprovalRequest)
	b.Money = moneyOf(s.ApprovalRequest)
	if b.Can.Approve && b.Risky {
		f := factOf(b.Sentence.Tool, b.Money, b.Input)
		b.Fact = &f
	}
	if s.Replaces != "" && in.redefined(ctx, s.ApprovalRequest) {
		b.Redefined = true
		b.Chips = append(b.Chips, chip{"danger", "The tool's definition has changed"})
	}
	if s.Proposed != "" {
		b.Changes = differences(showJSON(string(s.Proposed), hide), b.Input)
		b.Author = in.nameOf(ctx, s.ProposedBy)
	}
	if b.Blind = s.blind; b.Blind {
		b.R.Preview, b.R.PreviewError = nil, ""
	} else {
		b.Preview = previewOf(s.Preview, hide)
	}
	if s.Evidence != "" {
		e := showText(hide.prose(s.Evidence))
		b.Evidence = &e
	}
	b.WhyAsked = hide.prose(s.Why)
	b.Rule = rule{Source: sourceWord(s.Verdict.Source), Reason: escape.Text(hide.prose(s.Verdict.Reason)), Deciders: in.deciders(ctx, s.Deciders), FourEyes: s.FourEyes}
	b.Rule.Asked = in.names(ctx, s.Initiators)
	if b.Can.Fill && b.Fill == nil {
		f := formOf(s.InputSchema, "", nil)
		b.Fill = &f
	}
	events, err := in.service.Events(ctx, s.RunID, 0)
	if err != nil {
		return err
	}
	b.Claims = claimsOf(s.Claim, hide)
	b.Why = whyOf(events, s.ApprovalRequest, hide)
	b.History = in.historyOf(ctx, events, s.ApprovalRequest, hide)
	if b.Can.Reassign {
		if b.Teams, err = in.people.Teams(ctx); err != nil {
			return err
		}
		if b.People, err = in.people.Approvers(ctx); err != nil {
			return err
		}
	}
	b.Before, err = in.before(ctx, who, s)
	return err
}

func (in *inbox) canOf(who access.Who, s seen) can {
	asks := s.State == ringi.Pending
	c := can{
		Approve: s.answerable(who, ringi.Approve) && s.Kind == ringi.KindApproval,
		Deny:    s.answerable(who, ringi.Deny) && s.Kind != ringi.KindOutcome,
		Edit:    s.answerable(who, ringi.Edit), Respond: s.answerable(who, ringi.Respond), Fill: s.answerable(who, ringi.Fill),
		Ran: s.answerable(who, ringi.Ran), DidNotRun: s.answerable(who, ringi.DidNotRun), RunAgain: s.answerable(who, ringi.RunAgain),
		TakeBack: s.State == ringi.Granted && (s.DecidedBy == who.Principal.ID || who.Principal.Admin) && s.may(who, access.ApprovalsTakeBack),
		Withdraw: asks && s.may(who, access.ApprovalsWithdraw),
		Reassign: asks && s.Kind != ringi.KindOutcome && s.may(who, access.ApprovalsReassign),
		Extend:   asks && s.Kind != ringi.KindOutcome && !s.ExpiresAt.IsZero() && s.may(who, access.ApprovalsExtend),
		Read:     s.may(who, access.RunsRead),
		Reveal:   s.may(who, access.ApprovalsReveal) && (in.o.Revealed != nil || in.o.Logger != nil),
	}
	c.CancelRun = s.State.Open() && s.may(who, access.RunsCancel)
	return c
}

// successor is the request that took the place of one; empty where none did.
func (in *inbox) successor(ctx context.Context, r ringi.ApprovalRequest) string {
	list, err := in.requestsOf(ctx, r.RunID)
	if err != nil {
		return ""
	}
	for _, o := range list {
		if o.Replaces == r.ID {
			return o.ID
		}
	}
	return ""
}

// redefined reports whether the request that this one succeeds was put for
// another definition of the tool.
func (in *inbox) redefined(ctx context.Context, r ringi.ApprovalRequest) bool {
	list, err := in.requestsOf(ctx, r.RunID)
	if err != nil {
		return false
	}
	for _, o := range list {
		if o.ID == r.Replaces {
			return o.ToolDigest != r.ToolDigest
		}
	}
	return false
}

func (in *inbox) names(ctx context.Context, ids []string) string {
	if len(ids) == 0 {
		return "nobody who is known"
	}
	var out []string
	for _, id := range ids {
		out = append(out, in.nameOf(ctx, id))
	}
	return escape.Line(strings.Join(out, ", "))
}

// presence says that somebody has the request before him, and who else has. A
// directory that cannot record it is no reason to show nothing.
func (in *inbox) presence(ctx context.Context, who access.Who, id string, b *requestBody) error {
	if err := in.people.Look(ctx, who, id); err != nil {
		in.log.Warn("record who is looking", "request", id, "error", err)
	}
	looks, err := in.people.Looking(ctx, who, id)
	if err != nil {
		return err
	}
	for _, l := range looks {
		b.Looking = append(b.Looking, l.Name)
	}
	return nil
}

// reveal shows masked values once, and records that it did, before it does.
func (in *inbox) reveal(w http.ResponseWriter, r *http.Request, who access.Who) error {
	s, err := in.find(r.Context(), who, access.ApprovalsReveal, r.PathValue("id"))
	if err != nil {
		return err
	}
	keys := showJSON(string(s.Call.Input), maskerOf(s.ApprovalRequest)).Masked
	switch {
	case in.o.Revealed != nil:
		if err := in.o.Revealed(r.Context(), who.Principal, s.ID, keys); err != nil {
			return errors.Join(ringi.ErrNotRecorded, err)
		}
	case in.o.Logger != nil:
		in.log.Warn("masked values revealed", "request", s.ID, "run", s.RunID, "by", who.Principal.ID, "auth", who.Principal.Auth, "keys", keys)
	default:
		return ringi.ErrNotRecorded
	}
	return in.showRequest(w, r, who, s, http.StatusOK, requestBody{Revealed: true}, nil)
}
