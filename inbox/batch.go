package inbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/escape"
)

// maxBatch is how many requests are decided on one page (S-33).
const maxBatch = 50

type batchBody struct {
	Tool     string
	Sentence sentence
	Same     []field
	Columns  []string
	Rows     []batchRow
	Left     []batchLeft // asked for, and not on the page
	Confirm  bool
	Approve  int
	Deny     int
	Results  bool
	Problem  string
}

type batchRow struct {
	ID, Digest string
	Number     int
	Cells      []shown
	Verdict    string // approve, deny, or empty: leave it
	Reason     string
	Result     string // after the decision, in words
	Failed     bool
	Expires    ringi.ApprovalRequest

	s seen
	d document
}

type batchLeft struct{ ID, Why string }

// batchable says why a request is not decided beside others; empty where it is.
func batchable(s seen, d document) string {
	switch {
	case s.Kind != ringi.KindApproval:
		return "it asks for more than a yes or no"
	case s.State != ringi.Pending || s.ProposalWaits:
		return "it does not wait for a decision"
	case s.Preview != nil || s.PreviewError != "":
		return "it has a preview of its own to be read"
	case risky(s.ApprovalRequest):
		return "its risk is to be looked at by itself"
	case d.Broken:
		return "its input cannot be laid in columns"
	case s.ProposedBy != "":
		return "a person changed it"
	case s.FourEyes, s.Tool.AdminOnly:
		return "its rule asks for a look of its own"
	}
	return ""
}

// shape is the same for inputs that fit one table.
func shape(s seen, d document) string {
	parts := []string{s.Agent, s.Tool.Name, s.ToolDigest}
	for _, f := range d.Fields {
		kind := f.Type
		if composite(f.raw) {
			kind = f.raw // lists and objects must be the same, in size too
			kind = kind[:1] + f.Type
		}
		parts = append(parts, f.Path, kind)
	}
	slices.Sort(parts[3:])
	return strings.Join(parts, "\x00")
}

// batchKey is the same for requests that one page decides: of one shape, and
// without a difference that no page shows (S-33).
func batchKey(s seen, d document) string {
	key := shape(s, d)
	for _, f := range d.Fields {
		if f.Value.Masked {
			sum := sha256.Sum256([]byte(f.raw))
			key += "\x00" + f.Path + string(sum[:])
		}
	}
	return key
}

// gather reads the requests that somebody wants to decide together, and leaves
// out those that do not belong.
func (in *inbox) gather(ctx context.Context, who access.Who, ids []string) (batchBody, error) {
	var b batchBody
	first := ""
	for i, id := range slices.Compact(ids) {
		if i == maxBatch {
			b.Left = append(b.Left, batchLeft{id, "a page holds 50"})
			continue
		}
		s, err := in.find(ctx, who, access.ApprovalsDecide, id)
		if errors.Is(err, ringi.ErrNotFound) || errors.Is(err, access.ErrForbidden) {
			b.Left = append(b.Left, batchLeft{id, "it is not yours to decide"})
			continue
		}
		if err != nil {
			return b, err
		}
		d := showJSON(string(s.Call.Input), maskerOf(s.ApprovalRequest))
		why := batchable(s, d)
		if why == "" && !s.answerable(who, ringi.Approve) {
			why = "it is not yours to decide"
		}
		if why == "" && first == "" {
			first = shape(s, d)
			b.Tool, b.Sentence = sentenceOf(s.ApprovalRequest).Tool, sentenceOf(s.ApprovalRequest)
		}
		if why == "" && shape(s, d) != first {
			why = "its tool or the form of its input is another"
		}
		if why == "" && len(b.Rows) > 0 && hiddenDiffers(b.Rows[0].d, d) {
			why = "a masked value differs"
		}
		if why != "" {
			b.Left = append(b.Left, batchLeft{id, why})
			continue
		}
		b.Rows = append(b.Rows, batchRow{ID: s.ID, Digest: s.Digest, Number: len(b.Rows) + 1, Expires: s.ApprovalRequest, s: s, d: d})
	}
	b.columns()
	return b, nil
}

// hiddenDiffers reports whether a value that no page shows differs between two
// inputs: one verdict could not be told from the other.
func hiddenDiffers(a, b document) bool {
	values := map[string]string{}
	for _, f := range a.Fields {
		if f.Value.Masked {
			values[f.Path] = f.raw
		}
	}
	for _, f := range b.Fields {
		if f.Value.Masked != (values[f.Path] != "") || f.Value.Masked && values[f.Path] != f.raw {
			return true
		}
	}
	return false
}

// columns parts what is the same in all rows from what differs.
func (b *batchBody) columns() {
	if len(b.Rows) == 0 {
		return
	}
	for _, f := range b.Rows[0].d.Fields {
		same := true
		for _, row := range b.Rows[1:] {
			o, ok := row.d.at(f.Path)
			same = same && ok && (o.raw == f.raw || composite(f.raw))
		}
		if same {
			b.Same = append(b.Same, f)
			continue
		}
		b.Columns = append(b.Columns, escape.Line(strings.TrimPrefix(f.Path, "/")))
		for i := range b.Rows {
			o, _ := b.Rows[i].d.at(f.Path)
			b.Rows[i].Cells = append(b.Rows[i].Cells, o.Value)
		}
	}
}

func (d document) at(path string) (field, bool) {
	i := slices.IndexFunc(d.Fields, func(f field) bool { return f.Path == path })
	if i < 0 {
		return field{}, false
	}
	return d.Fields[i], true
}

func (in *inbox) batchPage(w http.ResponseWriter, r *http.Request, who access.Who) error {
	b, err := in.gather(r.Context(), who, r.URL.Query()["id"])
	if err != nil {
		return err
	}
	return in.showBatch(w, who, http.StatusOK, b)
}

func (in *inbox) showBatch(w http.ResponseWriter, who access.Who, status int, b batchBody) error {
	title := "Decide together"
	if b.Confirm {
		title = "Are you sure?"
	}
	if b.Results {
		title = "What became of them"
	}
	return in.show(w, status, who, page{Name: "batch", Title: title, Body: b})
}

// batch takes a verdict a row. Each is a decision of its own, by the digest of
// its row; one that fails says so and holds no other up.
func (in *inbox) batch(w http.ResponseWriter, r *http.Request, who access.Who) error {
	b, err := in.gather(r.Context(), who, r.PostForm["id"])
	if err != nil {
		return err
	}
	for i := range b.Rows {
		row := &b.Rows[i]
		switch v := r.PostForm.Get("verdict." + row.ID); v {
		case "approve":
			row.Verdict = v
			b.Approve++
		case "deny":
			row.Verdict, row.Reason = v, typed(r, "reason."+row.ID)
			b.Deny++
		}
		if d := r.PostForm.Get("digest." + row.ID); row.Verdict != "" && d != row.Digest {
			row.Verdict, row.Failed, row.Result = "", true, "This row has changed since you saw it. Nothing was decided about it."
		}
	}
	switch {
	case b.Approve+b.Deny == 0:
		b.Problem = "You have decided nothing. Choose approve or deny in a row, or leave it."
		return in.showBatch(w, who, http.StatusUnprocessableEntity, b)
	case r.PostForm.Get("sure") != "1":
		b.Confirm = true
		return in.showBatch(w, who, http.StatusOK, b)
	}
	for i := range b.Rows {
		in.decideRow(r.Context(), who, &b.Rows[i])
	}
	b.Results = true
	return in.showBatch(w, who, http.StatusOK, b)
}

func (in *inbox) decideRow(ctx context.Context, who access.Who, row *batchRow) {
	if row.Verdict == "" {
		if row.Result == "" {
			row.Result = "Left as it is."
		}
		return
	}
	d := row.s.Approve(who.Principal)
	if row.Verdict == "deny" {
		d = row.s.Deny(who.Principal, row.Reason)
	}
	d.Channel = who.Channel(channel)
	_, err := in.settle(ctx, who, row.s, d)
	if err == nil {
		row.Result = strings.ToUpper(answerWord(d.Answer)[:1]) + answerWord(d.Answer)[1:] + "."
		return
	}
	row.Failed = true
	if decided := (*ringi.DecidedError)(nil); errors.As(err, &decided) {
		row.Result = in.firstWas(decided)
		return
	}
	row.Result = "It could not be decided; see its page."
	for _, line := range refusals {
		if errors.Is(err, line.err) {
			row.Result = line.title + ". " + line.text
			return
		}
	}
	in.log.Error("decide a row of a batch", "request", row.ID, "error", err)
}
