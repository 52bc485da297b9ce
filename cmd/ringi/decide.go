package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

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

// answer is what is on its way to the store.
type answer struct {
	session  *session
	request  ringi.ApprovalRequest
	decision ringi.Decision
}

// answering opens the store, reads the request, and makes the decision of the
// person who types. The caller closes the session.
func (e *env) answering(ctx context.Context, id, digest string, say authored) (*answer, error) {
	by, err := person()
	if err != nil {
		return nil, err
	}
	s, err := e.deciding(ctx)
	if err != nil {
		return nil, err
	}
	r, err := e.request(ctx, s, id)
	if err != nil {
		s.close()
		return nil, err
	}
	d := say(r, by)
	d.Channel = "cli"
	if digest != "" {
		d.Digest = digest
	}
	return &answer{s, r, d}, nil
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
	defer a.session.close()
	if err := e.agree(ctx, a, c, question); err != nil {
		return err
	}
	return e.record(ctx, a)
}

// agree asks the person, or checks that a script may answer here.
func (e *env) agree(ctx context.Context, a *answer, c consent, question string) error {
	if c.yes {
		a.decision.Channel = "script"
		on, err := a.session.store.Flag(ctx, flagScripted)
		if err != nil {
			return err
		}
		if on != "on" {
			return usagef("--yes is refused: this store takes no scripted decisions. `ringi store set scripted-decisions on` lets any script of this user decide")
		}
		return nil
	}
	if r := a.request; r.State != ringi.Pending || r.ProposalWaits || !r.Allows(a.decision.Answer) || r.Digest != a.decision.Digest {
		return nil // Decide refuses it, and says why
	}
	page := e.paints(e.err)
	page.request(viewOf(a.request, c.reveal), e.now())
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
	set, err := a.session.engine.Decide(ctx, a.decision)
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

func newApproveCommand(e *env) *cobra.Command {
	var c consent
	var note string
	cmd := &cobra.Command{
		Use:   "approve REQUEST",
		Short: "Show a request, ask, and let the call run once",
		Example: "  ringi approve req_01k… --store sqlite:ringi.db\n" +
			"  ringi approve req_01k… --yes --digest 9f2c…   (only where scripted decisions are on)",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.settle(cmd.Context(), args[0], c, "Let it run once, exactly so?", func(r ringi.ApprovalRequest, by ringi.Principal) ringi.Decision {
				d := r.Approve(by)
				d.Note = note
				return d
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&note, "note", "", "for people: the model does not read it")
	return cmd
}

func newDenyCommand(e *env) *cobra.Command {
	var reason, note, digest string
	var thisTool bool
	cmd := &cobra.Command{
		Use:     "deny REQUEST",
		Short:   "Refuse a call; the model reads the reason",
		Example: "  ringi deny req_01k… --reason \"the customer has been refunded\" --store sqlite:ringi.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := e.answering(cmd.Context(), args[0], digest, func(r ringi.ApprovalRequest, by ringi.Principal) ringi.Decision {
				d := r.Deny(by, reason)
				d.Note = note
				if thisTool {
					d.Scope = ringi.ThisTool
				}
				return d
			})
			if err != nil {
				return err
			}
			defer a.session.close()
			return e.record(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.StringVar(&reason, "reason", "", "why: the model reads it")
	f.StringVar(&note, "note", "", "for people: the model does not read it")
	f.BoolVar(&thisTool, "this-tool", false, "refuse every later call of the tool in this thread too")
	f.StringVar(&digest, "digest", "", "the digest of the request that is meant; another one is refused as stale")
	return cmd
}

func newRespondCommand(e *env) *cobra.Command {
	var c consent
	var result, note string
	cmd := &cobra.Command{
		Use:   "respond REQUEST --result RESULT|@FILE|-",
		Short: "Give the result in the tool's place; the tool does not run",
		Example: "  ringi respond req_01k… --result '{\"refund_id\":\"R-7\"}' --store sqlite:ringi.db\n" +
			"  ringi respond req_01k… --result @result.json",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("result") {
				return usagef("no result: say --result RESULT, --result @FILE, or --result - for standard input")
			}
			text, err := e.given(result)
			if err != nil {
				return err
			}
			return e.settle(cmd.Context(), args[0], c, "Answer so, in the tool's place?\n"+string(e.framed(text)), func(r ringi.ApprovalRequest, by ringi.Principal) ringi.Decision {
				d := r.Respond(by, json.RawMessage(text))
				d.Note = note
				return d
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&result, "result", "", "the result, as the tool would return it")
	cmd.Flags().StringVar(&note, "note", "", "for people: the model does not read it")
	return cmd
}

func newOutcomeCommand(e *env) *cobra.Command {
	var c consent
	var result, reason, note string
	answers := map[string]ringi.Answer{"ran": ringi.Ran, "did-not-run": ringi.DidNotRun, "run-again": ringi.RunAgain}
	cmd := &cobra.Command{
		Use:   "outcome REQUEST ran|did-not-run|run-again",
		Short: "Say what happened to a call that may have run",
		Example: "  ringi outcome req_01k… ran --result '{\"refund_id\":\"R-7\"}' --store sqlite:ringi.db\n" +
			"  ringi outcome req_01k… did-not-run",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			said, ok := answers[args[1]]
			if !ok {
				return usagef("unknown outcome %q: say ran, did-not-run or run-again", args[1])
			}
			if said != ringi.Ran && cmd.Flags().Changed("result") {
				return usagef("--result belongs to ran")
			}
			text, err := e.given(result)
			if err != nil {
				return err
			}
			return e.settle(cmd.Context(), args[0], c, e.outcomeQuestion(said, text), func(r ringi.ApprovalRequest, by ringi.Principal) ringi.Decision {
				d := r.DidNotRun(by)
				d.Answer, d.Result, d.Reason, d.Note = said, text, reason, note
				return d
			})
		},
	}
	c.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&result, "result", "", "with ran: what it returned; RESULT, @FILE or - for standard input")
	f.StringVar(&reason, "reason", "", "why: the model reads it")
	f.StringVar(&note, "note", "", "for people: the model does not read it")
	return cmd
}

func (e *env) outcomeQuestion(said ringi.Answer, result string) string {
	switch said {
	case ringi.Ran:
		return "It surely ran, and returned this?\n" + string(e.framed(result))
	case ringi.DidNotRun:
		return "It surely did not run?"
	}
	return "Ask for it to be run again?"
}

func newTakeBackCommand(e *env) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "take-back REQUEST",
		Short:   "Take an approval back that has not been used yet",
		Example: "  ringi take-back req_01k… --reason \"wrong order\" --store sqlite:ringi.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			by, err := person()
			if err != nil {
				return err
			}
			s, err := e.deciding(ctx)
			if err != nil {
				return err
			}
			defer s.close()
			if _, err := e.request(ctx, s, args[0]); err != nil {
				return err
			}
			set, err := s.engine.TakeBack(ctx, args[0], by, reason)
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(settledView{set.RunID, viewOf(set.Request, false), set.Remaining, set.Proposed})
			}
			e.say("Taken back: %s (%s). The call is asked anew when run %s is resumed.\n", set.Request.ID, set.Request.Call.Tool, set.RunID)
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people")
	return cmd
}

// cancelled is the JSON of ringi cancel.
type cancelled struct {
	RunID  string          `json:"run_id"`
	Status ringi.RunStatus `json:"status"`
}

func newCancelCommand(e *env) *cobra.Command {
	var reason string
	var now bool
	cmd := &cobra.Command{
		Use:     "cancel RUN",
		Short:   "End a run: what it waits for is withdrawn, never denied",
		Example: "  ringi cancel run_01k… --reason \"no longer needed\" --store sqlite:ringi.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			by, err := person()
			if err != nil {
				return err
			}
			s, err := e.deciding(ctx)
			if err != nil {
				return err
			}
			defer s.close()
			if err := s.engine.Cancel(ctx, args[0], by, reason, now); err != nil {
				return err
			}
			row, err := s.store.Row(ctx, e.space, args[0])
			if err != nil {
				return fmt.Errorf("read run: %w", err)
			}
			switch {
			case e.json:
				return e.printJSON(cancelled{row.ID, row.Status})
			case row.Status.Final():
				e.say("Run %s is cancelled.\n", row.ID)
			default:
				e.say("Run %s will be cancelled by the process that drives it; a call in flight is recorded first.\n", row.ID)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people")
	cmd.Flags().BoolVar(&now, "now", false, "cut a call in flight: a write that was cut may have happened or not")
	return cmd
}

// given reads the text that a flag names: itself, @FILE, or - for standard
// input. A terminal is read to its end too.
func (e *env) given(flag string) (string, error) {
	if flag == "-" {
		return readText(e.in)
	}
	name, ok := strings.CutPrefix(flag, "@")
	if !ok {
		return flag, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readText(f)
}

// maxGiven is more than any answer may hold: the engine has the true limits.
const maxGiven = 8 << 20

func readText(r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxGiven+1))
	if err != nil {
		return "", fmt.Errorf("read input: %w", err)
	}
	if len(b) > maxGiven {
		return "", errors.New("read input: it is larger than 8 MiB")
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// framed shows a text of the person's own before he agrees to it.
func (e *env) framed(text string) plain {
	page := e.paints(e.err)
	page.frame(text)
	return plain(page.buf.String())
}
