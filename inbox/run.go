package inbox

import (
	"context"
	"net/http"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/internal/sight"
)

type runBody struct {
	Row    ringi.RunRow
	Word   string
	Full   bool
	Agent  string
	By     string
	Asked  []shown
	Lines  []entry
	Open   []openRequest
	Answer *shown
	Detail string
	// Took is from the start to the end, or until now; Waited the part of it in
	// which a person was waited for.
	Took, Waited string
	Share        int // per cent
	CanCancel    bool
}

type openRequest struct{ ID, Tool string }

func (in *inbox) run(w http.ResponseWriter, r *http.Request, who access.Who) error {
	row, events, requests, owner, err := in.runOf(r.Context(), who, access.RunsRead, r.PathValue("id"))
	if err != nil {
		return err
	}
	b := runBody{Row: row, Word: statusWord(row.Status), Agent: escape.Line(row.Agent),
		Full:      sight.Of(who, owner, false) == sight.Full,
		CanCancel: !row.Status.Final() && access.May(who, access.RunsCancel, owner) == nil}
	for _, q := range requests {
		if q.State == ringi.Pending {
			b.Open = append(b.Open, openRequest{q.ID, sentenceOf(q).Tool})
		}
	}
	in.timeline(r.Context(), &b, events, requests)
	return in.show(w, http.StatusOK, who, page{Name: "run", Title: "Run, " + b.Word, Flash: in.flashOf(r, who), Body: b})
}

func statusWord(s ringi.RunStatus) string {
	switch s {
	case ringi.Queued:
		return "about to go on"
	case ringi.Running:
		return "running"
	case ringi.WaitingForApproval:
		return "waits for an approval"
	case ringi.WaitingForInput:
		return "waits for input"
	case ringi.WaitingForOutcome:
		return "waits to hear what happened"
	}
	return escape.Line(string(s))
}

// timeline tells a run in order. Whoever merely asked for it sees what was said
// and which tools were called, and neither input, result nor notes.
func (in *inbox) timeline(ctx context.Context, b *runBody, events []ringi.Event, requests []ringi.ApprovalRequest) {
	t := timeline{in: in, body: b, hide: map[string]*masker{}, tools: map[string]string{}, asked: map[string]time.Time{}}
	known := in.offered(ctx, b.Row)
	for _, r := range requests {
		t.hide[r.Call.Tool] = maskerOf(r)
		known = append(known, r.Tool)
	}
	for _, tool := range known {
		if t.hide[tool.Name] == nil {
			t.hide[tool.Name] = maskerOf(ringi.ApprovalRequest{Tool: tool})
		}
	}
	t.all = &masker{text: sight.NewLog(events, known).Text}
	for _, e := range events {
		t.add(ctx, e)
	}
	if len(events) == 0 {
		return
	}
	end := events[len(events)-1].At
	if !b.Row.Status.Final() {
		end = in.now()
	}
	begin := events[0].At
	waited := t.waited(begin, end)
	b.Took, b.Waited = spoken(end.Sub(begin)), spoken(waited)
	if took := end.Sub(begin); took > 0 {
		b.Share = int(100 * waited / took)
	}
}

// offered are the tools of a run's agent as they stand: of an input whose tool
// nobody knows all is masked, wherever it stands again.
func (in *inbox) offered(ctx context.Context, row ringi.RunRow) []ringi.Tool {
	offer, err := in.service.Offered(ctx, ringi.RunInfo{Space: row.Space, Agent: row.Agent, By: ringi.Principal{ID: "inbox", Kind: ringi.Process, Admin: true}})
	if err != nil {
		return nil // an agent that is gone
	}
	return offer.Tools
}

type timeline struct {
	in    *inbox
	body  *runBody
	hide  map[string]*masker // by tool
	all   *masker            // for what was said
	tools map[string]string  // by call
	asked map[string]time.Time
	spans [][2]time.Time
}

func (t *timeline) add(ctx context.Context, e ringi.Event) {
	plain := func(kind, what string, texts ...said) {
		t.body.Lines = append(t.body.Lines, entry{At: e.At, Seq: e.Seq, Kind: kind, What: what, Said: texts})
	}
	prose := func(s string) shown { return showText(t.all.prose(s)) }
	switch b := e.Body.(type) {
	case nil:
		plain("end", "This was erased")
	case *ringi.RunStarted:
		if t.body.By = personName(b.By); b.By.Kind == ringi.Person && b.By.ID != "" {
			t.body.By = escape.Line(t.in.nameOf(ctx, b.By.ID))
		}
		var texts []said
		for _, m := range b.Messages {
			if m.Role == ringi.RoleUser {
				texts = append(texts, said{"Message", prose(m.Text)})
			}
		}
		plain("run", "The run began", texts...)
	case *ringi.ModelResponded:
		var texts []said
		if b.Text != "" {
			texts = append(texts, said{"The agent wrote", prose(b.Text)})
		}
		for _, c := range b.Calls {
			t.tools[c.ID] = c.Tool
			texts = append(texts, t.callSaid(c))
		}
		plain("model", "The model answered", texts...)
		t.finish(b.Finished)
	case *ringi.CallJudged:
		t.tools[b.Call.ID] = b.Call.Tool
		plain("model", "A call was judged", t.callSaid(b.Call))
	case *ringi.ToolStarted:
		plain("run", escape.Line(b.Tool)+" was started")
	case *ringi.ToolFinished:
		for _, f := range b.Results {
			t.result(plain, f)
		}
	case *ringi.CancelRequested:
		plain("no", personName(b.By)+" asked to cancel the run", said{"Reason", prose(b.Reason)})
	case *ringi.RunFinished:
		plain("end", "The run ended: "+escape.Line(string(b.Reason)))
		t.finish(b)
	default:
		t.asking(ctx, e)
	}
}

// asking tells events of requests, with how long was waited.
func (t *timeline) asking(ctx context.Context, e ringi.Event) {
	line, request, call := t.in.entryOf(ctx, e, t.all)
	if line.What == "" {
		return
	}
	line.Request = request
	if tool := t.tools[call]; tool != "" {
		line.What += " (" + escape.Line(tool) + ")"
	}
	if line.Kind == "ask" {
		t.asked[request] = e.At
	} else if since, open := t.asked[request]; open && e.Kind != ringi.EventInputProposed && e.Kind != ringi.EventInputRefused {
		line.Waited = e.At.Sub(since)
		t.spans = append(t.spans, [2]time.Time{since, e.At})
		delete(t.asked, request)
	}
	if !t.body.Full {
		line.Said = nil
	}
	t.body.Lines = append(t.body.Lines, line)
}

func (t *timeline) callSaid(c ringi.JudgedCall) said {
	label := "Called " + escape.Line(c.Tool)
	if c.Code != "" {
		return said{label + ", refused", showText(t.all.prose(c.Text))}
	}
	hide := t.hide[c.Tool]
	if !t.body.Full || hide == nil {
		// Without its definition nobody knows what of an input is secret.
		return said{label, shown{Text: "(" + plural(len(c.Input), "byte") + " of input)"}}
	}
	d := showJSON(string(c.Input), hide)
	if d.Masked != nil {
		return said{label, shown{Text: "(" + plural(len(c.Input), "byte") + " of input, some of it masked)"}}
	}
	return said{label, showText(string(c.Input))}
}

func (t *timeline) result(plain func(kind, what string, texts ...said), f ringi.FinishedCall) {
	what := escape.Line(t.tools[f.Call]) + " " + outcomeWord(f)
	if f.Duration > 0 {
		what += " in " + f.Duration.Round(time.Millisecond).String()
	}
	text := f.Output
	if f.Error != "" {
		text = f.Error
	}
	if text == "" || !t.body.Full {
		plain("run", what)
		return
	}
	plain("run", what, said{"Result", showText(t.all.prose(text))})
}

func (t *timeline) finish(f *ringi.RunFinished) {
	if f != nil {
		t.body.Detail = escape.Text(f.Detail)
	}
}

// waited is how long a person was waited for, spans that overlap once.
func (t *timeline) waited(begin, end time.Time) time.Duration {
	for _, since := range t.asked {
		t.spans = append(t.spans, [2]time.Time{since, end})
	}
	sortSpans(t.spans)
	var sum time.Duration
	at := begin
	for _, s := range t.spans {
		from, to := s[0], s[1]
		if from.Before(at) {
			from = at
		}
		if to.After(from) {
			sum += to.Sub(from)
			at = to
		}
	}
	return sum
}
