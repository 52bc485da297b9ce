package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/internal/escape"
)

// dialogue is a run that goes on at a terminal: what happens is told as it
// comes, and where it waits, the person there is asked.
type dialogue struct {
	e      *env
	out    io.Writer
	engine *engine.Engine
	store  ringi.Store // the engine's
	by     ringi.Principal
	// elsewhere is set where people decide at the server: nobody is asked here.
	elsewhere bool
	// answer makes a decision without asking; nil asks the person.
	answer func(ringi.ApprovalRequest) ringi.Decision
	// edit gets other input from the person; nil opens $EDITOR.
	edit func(context.Context, *prompt, ringi.ApprovalRequest) (ringi.Decision, error)
}

// finish decides what a result waits for, one request after another, and goes
// on, until the run ends or nobody here decides. It returns where it stands.
func (d *dialogue) finish(ctx context.Context, res *ringi.Result, err error) (*ringi.Result, error) {
	for err == nil && res.Status.Waiting() && len(res.Pending) > 0 {
		var decided bool
		if decided, err = d.settle(ctx, res.Pending[0]); err != nil || !decided {
			return res, err
		}
		res, err = d.resume(ctx, res.RunID)
	}
	return res, err
}

func (d *dialogue) start(ctx context.Context, s ringi.RunStart) (*ringi.Result, error) {
	return d.told(ctx, "", d.engine.Stream(ctx, s))
}

func (d *dialogue) resume(ctx context.Context, run string) (*ringi.Result, error) {
	return d.told(ctx, run, d.engine.StreamResume(ctx, run))
}

// told tells the events of a run as they come, and returns where it stands.
func (d *dialogue) told(ctx context.Context, run string, events func(func(ringi.Event, error) bool)) (*ringi.Result, error) {
	speaking := false // the agent's text is begun, and not ended
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		run = ev.RunID
		switch b := ev.Body.(type) {
		case *ringi.Delta:
			if b.DeltaKind == ringi.EventTextDelta && b.Text != "" {
				if !speaking {
					d.tell("\nThe agent:\n%s", agentMark)
				}
				speaking = true
				d.tell("%s", foreign(b.Text))
			} else if b.DeltaKind == ringi.EventStepDiscarded && speaking {
				d.tell("\n(that was cut off, and does not count)\n")
				speaking = false
			}
		case *ringi.ModelResponded:
			switch {
			case speaking:
				d.tell("\n")
			case b.Text != "":
				d.tell("\nThe agent:\n%s%s\n", agentMark, foreign(b.Text))
			}
			speaking = false
			for _, c := range b.Calls {
				d.tell("  calls %s %s: %s\n", c.Tool, c.Input, c.Verdict)
			}
		case *ringi.ToolFinished:
			for _, r := range b.Results {
				what := "it ran"
				if r.Origin != ringi.OriginTool {
					what = "told the agent"
				}
				d.tell("  %s: %s%s\n", plain(what), r.Output, r.Error)
			}
		}
	}
	return d.engine.Resume(ctx, run) // where it stands: waiting, or ended
}

// agentMark stands before every line of the agent's: no text of its own can be
// taken for what this program says (S-33).
const agentMark = plain("  │ ")

// foreign is text of the agent's, each further line with its mark.
func foreign(text string) plain {
	return plain(strings.ReplaceAll(escape.Text(text), "\n", "\n"+string(agentMark)))
}

// settle gets an answer to a request and records it. It reports false where
// nobody can be asked, or the person leaves it for later.
func (d *dialogue) settle(ctx context.Context, r ringi.ApprovalRequest) (bool, error) {
	page := d.e.paints(d.out)
	page.put("\n%s\n\n", page.in(bold, "The agent waits for you."))
	page.request(viewOf(r, false), d.e.now())
	if err := page.flush(d.out); err != nil {
		return false, err
	}
	var said ringi.Decision
	switch {
	case d.answer != nil:
		said = d.answer(r)
		said.Channel = "script"
	case d.elsewhere || !d.e.interactive():
		return false, nil
	default:
		var later bool
		var err error
		if said, later, err = d.ask(ctx, r); err != nil || later {
			return false, err
		}
		said.Channel = "cli"
	}
	err := decidedHere(ctx, d.store)
	if err == nil {
		_, err = d.engine.Decide(ctx, said)
	}
	_, first := errors.AsType[*ringi.DecidedError](err)
	if first || errors.Is(err, ringi.ErrStale) || d.answer == nil && errors.Is(err, ringi.ErrAnswer) {
		d.tell("%s\n", err) // decided at another terminal, or no answer to this: look how it stands
		return true, nil
	}
	return true, err
}

// saidAs are the words for answers, where the answer's own is not one to type.
var saidAs = map[string]ringi.Answer{
	"approve": ringi.Approve, "deny": ringi.Deny, "edit": ringi.Edit, "respond": ringi.Respond, "fill": ringi.Fill,
	"happened": ringi.Ran, "nothing": ringi.DidNotRun, "again": ringi.RunAgain,
}

// ask asks the person at the terminal. It reports true where he wants to
// decide later.
func (d *dialogue) ask(ctx context.Context, r ringi.ApprovalRequest) (_ ringi.Decision, later bool, err error) {
	p, err := d.e.asks("")
	if err != nil {
		return ringi.Decision{}, false, err
	}
	var words []string
	for _, w := range []string{"approve", "fill", "deny", "edit", "respond", "happened", "nothing", "again"} {
		if r.Allows(saidAs[w]) {
			words = append(words, w)
		}
	}
	d.e.tell("\n")
	said, err := p.choose(ctx, d.question(r), append(words, "later")...)
	if err != nil || said == "later" {
		return ringi.Decision{}, err == nil, err
	}
	out, err := d.made(ctx, p, r, saidAs[said])
	return out, false, err
}

func (d *dialogue) question(r ringi.ApprovalRequest) string {
	switch {
	case r.Kind == ringi.KindOutcome:
		return "Did it happen, did nothing, or shall it run again?"
	case r.Kind == ringi.KindResult:
		return "What came of it?"
	case r.Allows(ringi.Fill):
		return "Supply what it asks for?"
	}
	return "Let it run once, exactly so?"
}

// made makes the decision that was chosen, with what belongs to it.
func (d *dialogue) made(ctx context.Context, p *prompt, r ringi.ApprovalRequest, answer ringi.Answer) (ringi.Decision, error) {
	switch answer {
	case ringi.Approve:
		return r.Approve(d.by), nil
	case ringi.Deny:
		reason, err := p.line(ctx, "Why? The agent reads it; may be empty: ")
		return r.Deny(d.by, strings.TrimSpace(reason)), err
	case ringi.Edit:
		if d.edit != nil {
			return d.edit(ctx, p, r)
		}
		text, err := d.e.edited(ctx, r)
		if err == nil {
			d.e.tell("That is a new question: it is checked, and you see what would run.\n")
		}
		return r.Edit(d.by, json.RawMessage(text)), err
	case ringi.Fill:
		fields, err := fieldsOf(r.InputSchema)
		if err != nil {
			return ringi.Decision{}, err
		}
		values, err := p.askFields(ctx, fields)
		return r.Fill(d.by, json.RawMessage(values)), err
	}
	out := r.DidNotRun(d.by)
	out.Answer = answer
	var err error
	if answer == ringi.Respond || answer == ringi.Ran {
		out.Result, err = p.line(ctx, "With which result? As the tool would return it: ")
	}
	return out, err
}

// tell writes a sentence, what others wrote in it escaped.
func (d *dialogue) tell(format string, args ...any) { fmt.Fprintf(d.out, format, escaped(args)...) }
