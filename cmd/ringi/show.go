package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

func newShowCommand(e *env) *cobra.Command {
	var reveal bool
	cmd := &cobra.Command{
		Use:   "show REQUEST",
		Short: "Show exactly what would run, and why a person is asked",
		Example: "  ringi show req_01k… --store sqlite:ringi.db\n" +
			"  ringi show req_01k… --store sqlite:ringi.db --json",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			d, err := e.looking(ctx)
			if err != nil {
				return err
			}
			defer d.close()
			r, err := e.request(ctx, d, args[0])
			if err == nil && reveal {
				r, err = d.reveal(ctx, r)
			}
			if err != nil {
				return err
			}
			v := viewOf(r, reveal)
			if e.json {
				return e.printJSON(v)
			}
			p := e.paints(e.out)
			p.request(v, e.now())
			return p.flush(e.out)
		},
	}
	cmd.Flags().BoolVar(&reveal, "reveal", false, "show the values that the tool's schema marks as secret")
	return cmd
}

// request writes everything that a decider must see. Facts come first; what a
// model, a tool or a person wrote stands behind a bar, in full.
func (p *painter) request(v requestView, now time.Time) {
	p.put("%s  %s\n", p.in(bold, "Request"), v.ID)
	p.fact("asks for", "%s", plain(kindText(v.Kind)))
	p.fact("state", "%s", p.state(v, now))
	p.fact("tool", "%s", v.Call.Tool)
	p.fact("effect", "%s", plain(effectText(v.Tool)))
	if v.Tool.Remote != nil {
		p.fact("runs at", "server %s", v.Tool.Remote.Server)
	}
	p.fact("asked by", "%s", plain(initiatorText(v.Initiators)))
	p.fact("why", "%s", v.Verdict)
	p.fact("may decide", "%s", plain(decidersText(v)))
	p.fact("answers", "%s", plain(answersText(v)))
	p.times(v, now)
	p.fact("run", "%s in thread %s", v.RunID, v.Thread)
	p.fact("digest", "%s (%s)", v.Digest, plain(signedText(v.Signature)))
	if v.Replaces != "" {
		p.fact("replaces", "%s", v.Replaces)
	}
	p.warnings(v)
	p.input(v)
	p.difference(v)
	p.preview(v)
	p.unknown(v)
	p.asked(v)
	if v.Tool.Description != "" {
		p.head("What the tool's author says of it")
		p.frame(v.Tool.Description)
	}
}

// state says where the request stands.
func (p *painter) state(v requestView, now time.Time) plain {
	switch {
	case v.ProposalWaits:
		return p.in(yellow, "pending; a person's input was proposed, and the process that resumes the run looks at it first")
	case v.State == ringi.Pending:
		return p.in(yellow, "pending")
	case v.DecidedBy == "":
		return plain(fmt.Sprint(escapedOne(v.State)))
	}
	return plain(fmt.Sprintf("%s, by %s at %s", escapedOne(v.State), escapedOne(v.DecidedBy), timeText(v.DecidedAt, now)))
}

// times says until when an answer counts.
func (p *painter) times(v requestView, now time.Time) {
	p.fact("asked at", "%s", plain(timeText(v.CreatedAt, now)))
	switch {
	case v.ExpiresAt.IsZero():
		p.fact("expires", "never")
	default:
		p.fact("expires", "%s", plain(timeText(v.ExpiresAt, now)))
	}
	switch {
	case !v.Allows(ringi.Approve):
	case v.UseBy < 0:
		p.fact("good for", "ever, once approved")
	default:
		p.fact("good for", "%s, once approved", plain(durationText(v.UseBy)))
	}
}

// warnings says what to look at closely.
func (p *painter) warnings(v requestView) {
	var lines []string
	if v.Untrusted {
		lines = append(lines, "the run has read text from outside, which may have steered the model")
	}
	for _, field := range []string{"tool", "input", "proposed", "preview", "reason", "evidence", "description"} {
		for _, f := range v.Flags[field] {
			lines = append(lines, field+": "+flagText(f))
		}
	}
	if len(v.Masked) > 0 {
		lines = append(lines, fmt.Sprintf("masked: %s", escapedOne(strings.Join(v.Masked, ", "))))
	}
	if lines == nil {
		return
	}
	p.put("\n%s\n", p.in(yellow, "Look closely"))
	for _, l := range lines {
		p.fold("  ! ", "    ", l)
	}
}

// input writes what will run: every byte of it.
func (p *painter) input(v requestView) {
	title, bytes := "Exactly what will run", "  "+size(string(v.Call.Input))
	switch {
	case v.Kind == ringi.KindOutcome:
		title = "What was started"
	case v.Kind == ringi.KindInput || v.Kind == ringi.KindApprovalAndInput:
		title = "The model's part of what will run"
	case v.Kind == ringi.KindResult:
		title = "What somebody else is to do"
	case len(v.Masked) > 0:
		title, bytes = "What will run, with masked values", "" // the length of a secret is part of it
	}
	p.put("\n%s%s\n", p.in(bold, title), bytes)
	p.frame(string(v.Call.Input))
	for _, s := range spelled(string(v.Call.Input)) {
		what := "reads as"
		if s.key {
			what = "is a key, and reads as"
		}
		p.put("  %s %s  %s\n", s.path, plain(what), size(s.text))
		p.frame(s.text)
	}
	if v.Call.Raw != "" && v.Call.Raw != v.Call.Input {
		p.head("The model wrote it so")
		p.frame(string(v.Call.Raw))
	}
}

// difference writes what a person changed of the model's input.
func (p *painter) difference(v requestView) {
	if v.Proposed == "" {
		return
	}
	what := "Changed by"
	if len(v.Supplied) > 0 {
		what = "Supplied by"
	}
	p.put("\n%s %s\n", p.in(bold, what), v.ProposedBy)
	before, err := strictjson.Members(string(v.Proposed), strictjson.Limits{Bytes: -1, Depth: -1})
	after, err2 := strictjson.Members(string(v.Call.Input), strictjson.Limits{Bytes: -1, Depth: -1})
	if err != nil || err2 != nil { // masked values are no JSON
		p.put("  the model proposed\n")
		p.frame(string(v.Proposed))
		return
	}
	same := true
	for _, m := range before {
		if !slices.Contains(after, m) {
			p.change(red, "-", m)
			same = false
		}
	}
	for _, m := range after {
		if !slices.Contains(before, m) {
			p.change(green, "+", m)
			same = false
		}
	}
	if same {
		p.put("  nothing but blanks and order\n")
	}
}

func (p *painter) change(colour, sign string, m strictjson.Member) {
	line := fmt.Sprintf("%s: %s", strictjson.AppendString(nil, m.Key), m.Value)
	first := "  " + string(p.in(colour, sign)) + " │ "
	for part := range strings.SplitSeq(string(plainText(line)), "\n") {
		p.foldIn(first, 6, "    ┊ ", part)
	}
}

func (p *painter) preview(v requestView) {
	switch {
	case v.Preview != nil && v.Preview.Text != "":
		p.put("\n%s  %s\n", p.in(bold, "Preview, by the tool"), size(v.Preview.Text))
		p.frame(v.Preview.Text)
	case v.PreviewError != "":
		p.head("Preview")
		p.fold("  ! ", "    ", string(plainText(v.PreviewError)))
	}
}

// unknown says what is not known of a call that started.
func (p *painter) unknown(v requestView) {
	if v.Kind != ringi.KindOutcome {
		return
	}
	p.head("What is not known")
	p.frame(v.Why)
	if v.Evidence != "" {
		p.put("\n%s  %s\n", p.in(bold, "What came back later"), size(v.Evidence))
		p.frame(v.Evidence)
	}
}

// asked lists what the person is to supply.
func (p *painter) asked(v requestView) {
	fields, err := fieldsOf(v.InputSchema)
	if err != nil || len(fields) == 0 {
		return
	}
	p.head("Values to supply")
	for _, f := range fields {
		p.fold("  ", "    ", fmt.Sprintf("%s  %s", escapedOne(f.name), escapedOne(f.hint())))
		if f.description != "" {
			p.frame(f.description)
		}
	}
}
