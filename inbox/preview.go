package inbox

import (
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/escape"
)

// A preview is there to be read: it is folded late.
const (
	foldPreview      = 4000
	foldPreviewLines = 60
)

// previewView is a preview, drawn by its format. What does not have the form of
// its format is drawn as text: a preview is made of foreign values too.
type previewView struct {
	Format  string // text, diff, mail
	Text    shown
	Lines   []diffLine
	Headers []header
	Body    shown
	Flags   []string
}

type diffLine struct{ Kind, Sign, Said, Text string }

type header struct{ Name, Value string }

func previewOf(p *ringi.Preview, hide *masker) *previewView {
	if p == nil {
		return nil
	}
	text := hide.prose(p.Text)
	v := &previewView{Format: "text", Text: showTextTo(text, foldPreview, foldPreviewLines), Flags: warnings(escape.Flags(text))}
	switch p.Format {
	case "diff":
		v.Format, v.Lines = "diff", diffLines(text)
	case "mail":
		if headers, body, ok := mailOf(text); ok {
			v.Format, v.Headers, v.Body = "mail", headers, showTextTo(body, foldPreview, foldPreviewLines)
		}
	}
	return v
}

// diffLines reads a unified diff: each line says whether it is added, removed,
// or stands around it, in words as well as by its sign.
func diffLines(text string) []diffLine {
	var out []diffLine
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		d := diffLine{Kind: "same", Sign: " ", Text: escape.Line(line)}
		switch {
		case len(out) < 2 && (strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ")), strings.HasPrefix(line, "@@"):
			d.Kind, d.Sign, d.Said = "head", "", "heading: "
		case strings.HasPrefix(line, "+"):
			d = diffLine{"added", "+", "added: ", escape.Line(line[1:])}
		case strings.HasPrefix(line, "-"):
			d = diffLine{"removed", "−", "removed: ", escape.Line(line[1:])}
		case strings.HasPrefix(line, " "):
			d.Text = escape.Line(line[1:])
		}
		out = append(out, d)
	}
	return out
}

// mailOf reads the headers and the text of a mail's preview. Only lines of the
// form Name: value before the first empty line are headers.
func mailOf(text string) ([]header, string, bool) {
	head, body, ok := strings.Cut(text, "\n\n")
	if !ok {
		return nil, "", false
	}
	var out []header
	for line := range strings.SplitSeq(head, "\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-") != "" {
			return nil, "", false
		}
		out = append(out, header{name, escape.Line(strings.TrimSpace(value))})
	}
	return out, body, true
}
