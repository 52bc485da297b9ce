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
			s, err := e.reading(ctx)
			if err != nil {
				return err
			}
			defer s.close()
			r, err := e.request(ctx, s, args[0])
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

func kindText(k ringi.RequestKind) string {
	switch k {
	case ringi.KindApproval:
		return "leave to run a call"
	case ringi.KindInput:
		return "values that a person supplies"
	case ringi.KindApprovalAndInput:
		return "leave to run a call, and values that a person supplies"
	case ringi.KindResult:
		return "the result of a call that somebody else runs"
	case ringi.KindOutcome:
		return "what happened to a call that may have run"
	}
	return fmt.Sprint(escapedOne(k))
}

func effectText(t ringi.Tool) string {
	text := "says nothing of what it does, so it counts as a change that is not repeated"
	switch t.Effect {
	case ringi.ReadOnly:
		text = "reads (read_only)"
	case ringi.IdempotentWrite:
		text = "changes something; twice is once (idempotent_write)"
	case ringi.NonIdempotentWrite:
		text = "changes something; twice is twice (non_idempotent_write)"
	}
	if t.AdminOnly {
		text += "; for admins"
	}
	return text
}

func initiatorText(ids []string) string {
	if len(ids) == 0 {
		return "nobody who is known"
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = fmt.Sprint(escapedOne(id))
		if id == "" {
			names[i] = "somebody unknown"
		}
	}
	return strings.Join(names, ", ")
}

func decidersText(v requestView) string {
	text := "any person"
	if !v.Deciders.IsZero() {
		var who []string
		for _, id := range v.Deciders.People {
			who = append(who, fmt.Sprint(escapedOne(id)))
		}
		for _, team := range v.Deciders.Teams {
			who = append(who, fmt.Sprint("team ", escapedOne(team)))
		}
		text = strings.Join(who, ", ")
	}
	if v.Tool.AdminOnly {
		text += "; an admin"
	}
	if v.FourEyes {
		text += "; four eyes: none of those who asked may approve"
	}
	return text
}

func answersText(v requestView) string {
	names := make([]string, len(v.Answers))
	for i, a := range v.Answers {
		names[i] = strings.ReplaceAll(fmt.Sprint(escapedOne(a)), "_", "-")
	}
	return strings.Join(names, ", ")
}

func signedText(signature string) string {
	if signature == "" {
		return "not signed"
	}
	return "signed"
}

// timeText is a moment in UTC with its distance from now.
func timeText(t, now time.Time) string {
	d := t.Sub(now)
	distance := "in " + durationText(d)
	if d < 0 {
		distance = durationText(-d) + " ago"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z") + ", " + distance
}

// durationText is a duration in its two largest units.
func durationText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}
