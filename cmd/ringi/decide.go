package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

// The commands that record a person's answer. Each shows nothing to a model
// and runs no tool: the process that resumes the run does.

// consent are the flags of an answer that lets something happen: it is given
// at the terminal, or by a script where the store says that scripts may.
type consent struct {
	yes    bool
	digest string
	reveal bool
}

func (c *consent) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&c.yes, "yes", false, "do not ask: needs --digest, and a store with scripted decisions on")
	f.StringVar(&c.digest, "digest", "", "the digest of the request that is meant; another one is refused as stale")
	f.BoolVar(&c.reveal, "reveal", false, "show the values that the tool's schema marks as secret")
}

// authored makes a decision of the person who types, on a request as read.
type authored func(ringi.ApprovalRequest, ringi.Principal) ringi.Decision

// answer is what is on its way.
type answer struct {
	desk     desk
	request  ringi.ApprovalRequest
	decision ringi.Decision
}

// answering opens the desk, reads the request, and makes the decision of the
// person who types. The caller closes the desk.
func (e *env) answering(ctx context.Context, id, digest string, say authored) (*answer, error) {
	at, err := e.settling(ctx)
	if err != nil {
		return nil, err
	}
	r, err := e.request(ctx, at, id)
	if err != nil {
		at.close()
		return nil, err
	}
	d := say(r, at.typist())
	d.Channel = "cli"
	if digest != "" {
		d.Digest = digest
	}
	return &answer{at, r, d}, nil
}

// settle asks, where the answer lets something happen, records it and says
// what comes next.
func (e *env) settle(ctx context.Context, id string, c consent, question string, say authored) error {
	if c.yes && c.digest == "" {
		return usagef("--yes needs --digest: the digest of the request that is meant")
	}
	if !c.yes && !e.interactive() {
		return usagef("this asks a person, and no terminal is here; a script says --yes --digest DIGEST, where the store allows it")
	}
	a, err := e.answering(ctx, id, c.digest, say)
	if err != nil {
		return err
	}
	defer a.desk.close()
	if err := e.agree(ctx, a, c, question); err != nil {
		return err
	}
	return e.record(ctx, a)
}

// agree asks the person, or checks that a script may answer here.
func (e *env) agree(ctx context.Context, a *answer, c consent, question string) error {
	if c.yes {
		a.decision.Channel = "script"
		on, err := a.desk.scripts(ctx)
		if err != nil {
			return err
		}
		if !on {
			return usagef("--yes is refused: this store takes no scripted decisions. `ringi store set scripted-decisions on` lets any script of this user decide")
		}
		return nil
	}
	if r := a.request; r.State != ringi.Pending || r.ProposalWaits || !r.Allows(a.decision.Answer) || r.Digest != a.decision.Digest {
		return nil // Decide refuses it, and says why
	}
	shown := a.request
	if c.reveal {
		var err error
		if shown, err = a.desk.reveal(ctx, shown); err != nil {
			return err
		}
	}
	page := e.paints(e.err)
	page.request(viewOf(shown, c.reveal), e.now())
	if err := page.flush(e.err); err != nil {
		return err
	}
	p, err := e.asks("")
	if err != nil {
		return err
	}
	e.tell("\n")
	said, err := p.choose(ctx, question, "yes", "no")
	if err != nil {
		return err
	}
	if said == "no" {
		return fmt.Errorf("%w; `ringi deny %s` refuses the call", errNothingDecided, a.request.ID)
	}
	return nil
}

// record commits the decision and says what comes next.
func (e *env) record(ctx context.Context, a *answer) error {
	if !a.request.Allows(a.decision.Answer) && a.request.State == ringi.Pending {
		return fmt.Errorf("decide request %s: %w: it asks for %s; answer with %s", a.request.ID, ringi.ErrAnswer,
			kindText(a.request.Kind), answersText(requestView{ApprovalRequest: a.request}))
	}
	set, err := a.desk.Decide(ctx, a.decision)
	if err != nil {
		return err
	}
	return e.next(set, a.decision.Answer)
}

// settledView is the JSON of what an answer led to.
type settledView struct {
	RunID     string      `json:"run_id"`
	Request   requestView `json:"request"`
	Remaining int         `json:"remaining"`
	Proposed  bool        `json:"proposed,omitempty"`
}

// next says what an answer led to, and what comes next.
func (e *env) next(set ringi.Settled, answer ringi.Answer) error {
	if e.json {
		return e.printJSON(settledView{set.RunID, viewOf(set.Request, false), set.Remaining, set.Proposed})
	}
	e.say("%s\n", plain(recordedText(set, answer)))
	remaining := set.Remaining
	if set.Proposed {
		e.say("This process has no tools, so it is a proposal: the process that resumes the run\n" +
			"checks it, and asks again with a new request that shows what will run.\n")
		remaining-- // the request itself waits for that process, not for a person
	}
	switch {
	case remaining > 0:
		e.say("%s of run %s still %s for a person.\n", count(remaining, "request"), set.RunID, plain(verb(remaining, "waits", "wait")))
	default:
		e.say("Run %s can go on where its process resumes it.\n", set.RunID)
	}
	return nil
}

func recordedText(set ringi.Settled, answer ringi.Answer) string {
	what := map[ringi.Answer]string{
		ringi.Approve: "Approved", ringi.Deny: "Denied", ringi.Edit: "Recorded other input for", ringi.Fill: "Recorded values for",
		ringi.Respond: "Answered in the tool's place:", ringi.Ran: "Recorded that it ran:", ringi.DidNotRun: "Recorded that it did not run:",
		ringi.RunAgain: "Recorded to run it again, which asks anew:",
	}[answer]
	return fmt.Sprintf("%s %s (%s).", what, escapedOne(set.Request.ID), escapedOne(set.Request.Call.Tool))
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
