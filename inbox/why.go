package inbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/escape"
)

// why is what the run says for itself. Nothing of it is checked: it stands
// folded, below the facts.
type why struct {
	Claim   *shown // what the model wrote with the call
	Asked   *shown // the last message of a person
	AskedBy string
	Calls   []madeCall // the last five before it, newest first
}

type madeCall struct{ Tool, Outcome string }

func whyOf(events []ringi.Event, r ringi.ApprovalRequest, hide *masker) why {
	var out why
	tools := map[string]string{}
	prose := func(s string) *shown {
		if s == "" {
			return nil
		}
		t := showText(hide.prose(s))
		return &t
	}
	for _, e := range events {
		switch b := e.Body.(type) {
		case *ringi.RunStarted:
			for _, m := range b.Messages {
				if m.Role == ringi.RoleUser {
					out.Asked, out.AskedBy = prose(m.Text), escape.Line(m.Author)
				}
			}
		case *ringi.ModelResponded:
			mine := slices.ContainsFunc(b.Calls, func(c ringi.JudgedCall) bool { return c.ID == r.Call.ID })
			if mine {
				out.Claim = prose(b.Text)
			}
			for _, c := range b.Calls {
				tools[c.ID] = c.Tool
				if c.Code != "" {
					out.Calls = append(out.Calls, madeCall{escape.Line(c.Tool), escape.Line(string(c.Code))})
				}
			}
			if mine {
				return out.last(5)
			}
		case *ringi.CallJudged:
			tools[b.Call.ID] = b.Call.Tool
		case *ringi.ToolFinished:
			for _, f := range b.Results {
				out.Calls = append(out.Calls, madeCall{escape.Line(tools[f.Call]), outcomeWord(f)})
			}
		}
	}
	return out.last(5)
}

func (w why) last(n int) why {
	w.Calls = w.Calls[max(0, len(w.Calls)-n):]
	slices.Reverse(w.Calls)
	return w
}

func outcomeWord(f ringi.FinishedCall) string {
	switch f.Outcome {
	case ringi.OutcomeOK:
		return "ran"
	case ringi.OutcomeError:
		return "ran with an error"
	case ringi.OutcomeDenied:
		return "was denied"
	case ringi.OutcomeInvalid:
		return "was not valid"
	case ringi.OutcomeResponded:
		return "was answered by a person"
	case ringi.OutcomeNotExecuted:
		return "did not run"
	case ringi.OutcomeExpired:
		return "expired"
	case ringi.OutcomeCancelled:
		return "was cancelled"
	case ringi.OutcomeInDoubt:
		return "may have run"
	}
	return escape.Line(string(f.Outcome))
}

// entry is a line of a history.
type entry struct {
	At  time.Time
	Seq int64
	// Who did it, and over which channel; empty for the engine itself.
	Who, Channel string
	What         string
	// Said are texts that go with it, each with its label.
	Said []said
	// Kind picks a sign: ask, yes, no, run, end.
	Kind string
	// Waited is how long a person was waited for until then.
	Waited time.Duration
	// Request links to a request's page.
	Request string
	Open    bool
}

// WaitedText is the time that was waited, in words.
func (e entry) WaitedText() string { return spoken(e.Waited) }

type said struct {
	Label string
	Text  shown
}

// historyOf is what happened to a request, and to those that it replaces.
func (in *inbox) historyOf(ctx context.Context, events []ringi.Event, r ringi.ApprovalRequest, hide *masker) []entry {
	mine := map[string]bool{r.ID: true}
	replaces := map[string]string{}
	for _, e := range events {
		if b, ok := e.Body.(*ringi.ApprovalRequested); ok && b.Replaces != "" {
			replaces[b.Request] = b.Replaces
		}
	}
	for id := replaces[r.ID]; id != "" && !mine[id]; id = replaces[id] {
		mine[id] = true
	}
	var out []entry
	for _, e := range events {
		line, request, call := in.entryOf(ctx, e, hide)
		if line.What != "" && (mine[request] || request == "" && call != "" && call == r.Call.ID) {
			out = append(out, line)
		}
	}
	return out
}

// entryOf tells an event in words, with the request or call that it is about.
func (in *inbox) entryOf(ctx context.Context, e ringi.Event, hide *masker) (line entry, request, call string) {
	line = entry{At: e.At, Seq: e.Seq}
	by := func(p ringi.Principal, channel string) {
		line.Who, line.Channel = personName(p), channelWord(channel)
	}
	say := func(label, text string) {
		if text != "" {
			line.Said = append(line.Said, said{label, showText(hide.prose(text))})
		}
	}
	switch b := e.Body.(type) {
	case *ringi.ApprovalRequested:
		line.What, line.Kind = "A person was asked", "ask"
		if b.Replaces != "" {
			line.What = "A person was asked anew"
		}
		return line, b.Request, b.Call
	case *ringi.InputProposed:
		by(b.By, b.Channel)
		line.What, line.Kind = answerWord(b.Answer), "yes"
		return line, b.Request, ""
	case *ringi.InputRefused:
		line.What, line.Kind = "The proposed input was refused", "no"
		say("Why", b.Text)
		return line, b.Request, ""
	case *ringi.ApprovalDecided:
		by(b.By, b.Channel)
		line.What, line.Kind = answerWord(b.Answer), "yes"
		if b.Answer == ringi.Deny {
			line.Kind = "no"
		}
		say("Reason, read by the model", b.Reason)
		say("Note, for people", b.Note)
		say("Answer in the tool's place", b.Result)
		return line, b.Request, ""
	case *ringi.ApprovalTakenBack:
		by(b.By, "")
		line.What, line.Kind = "took the approval back", "no"
		say("Reason", b.Reason)
		return line, b.Request, ""
	case *ringi.RequestClosed:
		by(b.By, "")
		line.What, line.Kind = "closed: "+stateWord(b.State), "no"
		say("Why", b.Why)
		return line, b.Request, ""
	case *ringi.ToolStarted:
		line.What, line.Kind = "The call was started", "run"
		if b.Attempt > 1 {
			line.What += fmt.Sprintf(", attempt %d", b.Attempt)
		}
		return line, "", b.Call
	case *ringi.OutcomeUnknown:
		line.What, line.Kind = "Nobody knows whether the call ran; a person was asked", "ask"
		say("Why", b.Why)
		return line, b.Request.Request, b.Call
	case *ringi.OutcomeSettled:
		by(b.By, b.Channel)
		line.What, line.Kind = answerWord(b.Answer), "yes"
		say("Reason", b.Reason)
		say("Note, for people", b.Note)
		say("What it returned", b.Result)
		return line, b.Request, b.Call
	case *ringi.ToolFinished:
		if len(b.Results) == 1 {
			line.What, line.Kind = "The call "+outcomeWord(b.Results[0]), "run"
			return line, "", b.Results[0].Call
		}
	}
	return line, "", ""
}

// channelWord says over what a decision came, and from how far away.
func channelWord(channel string) string {
	name, network, _ := strings.Cut(channel, ":")
	switch access.Network(network) {
	case access.Loopback:
		return escape.Line(name) + ", on the server's own machine"
	case access.Private:
		return escape.Line(name) + ", from a private network"
	case access.Public:
		return escape.Line(name) + ", from a public address"
	}
	return escape.Line(channel)
}

func personName(p ringi.Principal) string {
	switch {
	case p.Name != "":
		return escape.Line(p.Name)
	case p.ID != "":
		return escape.Line(p.ID)
	}
	return ""
}
