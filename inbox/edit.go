package inbox

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/internal/schema"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

type editBody struct {
	R        ringi.ApprovalRequest
	Sentence sentence
	Form     form
	// Raw is the input as JSON, spread over lines; empty where something of it
	// is masked.
	Raw        string
	RawProblem string
	RawRows    int
	Masked     bool
	Problems   []string
	Digest     string
}

func (in *inbox) editPage(w http.ResponseWriter, r *http.Request, who access.Who) error {
	s, err := in.find(r.Context(), who, access.ApprovalsDecide, r.PathValue("id"))
	if err != nil {
		return err
	}
	if !s.answerable(who, ringi.Edit) {
		return in.about(r, s, in.whyNot(r.Context(), s, ringi.Decision{Digest: s.Digest}))
	}
	return in.showEdit(w, who, s, http.StatusOK, in.editBodyOf(s))
}

func (in *inbox) editBodyOf(s seen) editBody {
	hide := maskerOf(s.ApprovalRequest)
	b := editBody{R: s.ApprovalRequest, Sentence: sentenceOf(s.ApprovalRequest), Digest: s.Digest}
	b.Form = formOf(s.Tool.InputSchema, string(s.Call.Input), hide)
	if b.Masked = showJSON(string(s.Call.Input), hide).Masked != nil; !b.Masked {
		b.Raw = string(escape.JSON(nil, []byte(indented(string(s.Call.Input)))))
		b.RawRows = min(max(6, strings.Count(b.Raw, "\n")+2), 24)
	}
	return b
}

func (in *inbox) showEdit(w http.ResponseWriter, who access.Who, s seen, status int, b editBody) error {
	return in.show(w, status, who, page{Name: "edit", Title: "Change the input of " + b.Sentence.Tool, Body: b})
}

// edit proposes another input: by the fields, or by the JSON text. The request
// that it leads to is shown, with the difference; it is approved there.
func (in *inbox) edit(w http.ResponseWriter, r *http.Request, who access.Who) error {
	s, err := in.find(r.Context(), who, access.ApprovalsDecide, r.PathValue("id"))
	if err != nil {
		return err
	}
	d := s.Edit(who.Principal, nil)
	d.Digest, d.Channel = r.PostForm.Get("digest"), who.Channel(channel)
	if d.Digest != s.Digest || !s.answerable(who, ringi.Edit) {
		return in.about(r, s, in.whyNot(r.Context(), s, d))
	}
	b := in.editBodyOf(s)
	wrong := func() error { return in.showEdit(w, who, s, http.StatusUnprocessableEntity, b) }
	if r.PostForm.Get("by") == "raw" {
		if b.Masked {
			return ringi.ErrAnswer
		}
		raw := typed(r, "raw")
		b.Raw = raw
		if _, err := strictjson.ParseObject(raw, strictjson.Limits{}); err != nil {
			b.RawProblem = jsonProblem(raw, err)
			return wrong()
		}
		d.Input = raw
		if sameValue(raw, string(s.Call.Input)) {
			b.Problems = []string{"Nothing is changed. Approve the request as it is, or change something."}
			return wrong()
		}
	} else {
		var ok bool
		if d.Input, ok = b.Form.read(string(s.Call.Input), r.PostForm); !ok {
			b.Problems = []string{"Some fields cannot be taken; see below."}
			return wrong()
		}
		if sameValue(d.Input, string(s.Call.Input)) {
			b.Problems = []string{"Nothing is changed. Approve the request as it is, or change something."}
			return wrong()
		}
	}
	set, err := in.settle(r.Context(), who, s, d)
	if problems, ok := inputProblems(err, &b.Form); ok {
		b.Problems = problems
		return wrong()
	}
	if err != nil {
		return in.about(r, s, err)
	}
	return in.to(w, r, "/a/"+url.PathEscape(set.Request.ID))
}

// fill proposes the typed values that a request asks for.
func (in *inbox) fill(w http.ResponseWriter, r *http.Request, who access.Who) error {
	s, err := in.find(r.Context(), who, access.ApprovalsDecide, r.PathValue("id"))
	if err != nil {
		return err
	}
	d := s.Fill(who.Principal, nil)
	d.Digest, d.Channel = r.PostForm.Get("digest"), who.Channel(channel)
	if d.Digest != s.Digest || !s.answerable(who, ringi.Fill) {
		return in.about(r, s, in.whyNot(r.Context(), s, d))
	}
	f := formOf(s.InputSchema, "", nil)
	b := requestBody{Fill: &f}
	var ok bool
	if d.Input, ok = f.read("", r.PostForm); !ok {
		b.Problem = "Some values cannot be taken; see the form."
		return in.showRequest(w, r, who, s, http.StatusUnprocessableEntity, b, maskerOf(s.ApprovalRequest))
	}
	set, err := in.settle(r.Context(), who, s, d)
	if problems, ok := inputProblems(err, &f); ok {
		b.Problem = strings.Join(append([]string{"Some values cannot be taken; see the form."}, problems...), " ")
		return in.showRequest(w, r, who, s, http.StatusUnprocessableEntity, b, maskerOf(s.ApprovalRequest))
	}
	if err != nil {
		return in.about(r, s, err)
	}
	return in.to(w, r, "/a/"+url.PathEscape(set.Request.ID))
}

// inputProblems says what is wrong with a proposed input, where that is what an
// error says. Problems of a field stand at the field.
func inputProblems(err error, f *form) ([]string, bool) {
	input := (*ringi.InputError)(nil)
	if !errors.As(err, &input) {
		return nil, false
	}
	if e, ok := errors.AsType[*schema.Error](err); ok {
		return append([]string{"The tool does not take this input."}, f.blame(e)...), true
	}
	return []string{"The tool does not take this input: " + escape.Line(input.Error())}, true
}

func asSyntax(err error) (*strictjson.SyntaxError, bool) {
	return errors.AsType[*strictjson.SyntaxError](err)
}

func sameValue(a, b string) bool {
	return ringi.Input(a).Canonical() == ringi.Input(b).Canonical()
}

// indented spreads a JSON text over lines. Tokens keep their bytes.
func indented(text string) string {
	var b strings.Builder
	depth, inString, skip := 0, false, false
	line := func() { b.WriteString("\n" + strings.Repeat("  ", depth)) }
	for i := 0; i < len(text); i++ {
		c := text[i]
		if inString {
			b.WriteByte(c)
			switch {
			case skip:
				skip = false
			case c == '\\':
				skip = true
			case c == '"':
				inString = false
			}
			continue
		}
		switch c {
		case ' ', '\n', '\t', '\r':
		case '"':
			inString = true
			b.WriteByte(c)
		case '{', '[':
			b.WriteByte(c)
			if rest := strings.TrimLeft(text[i+1:], " \n\t\r"); rest != "" && (rest[0] == '}' || rest[0] == ']') {
				b.WriteByte(rest[0])
				i = len(text) - len(rest)
				continue
			}
			depth++
			line()
		case '}', ']':
			depth--
			line()
			b.WriteByte(c)
		case ',':
			b.WriteByte(c)
			line()
		case ':':
			b.WriteString(": ")
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
