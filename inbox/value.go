package inbox

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// A text above one of these is folded; what is folded is counted.
const (
	foldRunes = 300
	foldLines = 8
	headRunes = 80
)

// shown is foreign text, ready to be shown: escaped, counted, flagged.
type shown struct {
	Text string
	// Head is the beginning of a text that is folded; empty for one that is not.
	Head  string
	Count string
	Flags []string
	// Masked: Text is no part of the value.
	Masked bool
}

// showText makes foreign text ready to be shown.
func showText(s string) shown { return showTextTo(s, foldRunes, foldLines) }

// showTextTo is showText with its own bounds for folding.
func showTextTo(s string, runes, most int) shown {
	out := shown{Text: escape.Text(s), Flags: warnings(escape.Flags(s))}
	n, lines := utf8.RuneCountInString(s), strings.Count(s, "\n")+1
	if n > runes || lines > most {
		out.Head = escape.Line(cut(s, headRunes))
		out.Count = plural(n, "character")
		if lines > 1 {
			out.Count += ", " + plural(lines, "line")
		}
	}
	return out
}

// cut is the beginning of s, of at most n characters.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

var warningWords = map[string]string{
	escape.Bidi:        "turns the direction of text",
	escape.ZeroWidth:   "holds characters that take no room",
	escape.MixedScript: "mixes look-alike letters of several scripts",
	escape.Punycode:    "holds an encoded international name",
	escape.Tag:         "holds hidden characters that models read",
	escape.Control:     "holds control characters",
	escape.PrivateUse:  "holds characters without a meaning of their own",
	escape.Unassigned:  "holds unknown characters",
	escape.InvalidUTF8: "holds bytes that are no text",
	escape.ManyLines:   "is many lines long",
}

func warnings(flags []string) []string {
	out := make([]string, len(flags))
	for i, f := range flags {
		if out[i] = warningWords[f]; out[i] == "" {
			out[i] = f
		}
	}
	return out
}

// field is one line of a JSON document: a table's row.
type field struct {
	// Path is a JSON pointer (RFC 6901), as it stands; Name is the last step of
	// it, escaped.
	Path, Name string
	// Depth is 0 at the top and at most 6: deeper is drawn no further in.
	Depth int
	Type  string
	Value shown
	// raw is the value's own text.
	raw string
	// name has flags of its own.
	NameFlags []string
}

// document is a JSON text as a page shows it.
type document struct {
	Fields []field
	// Exact is the text byte for byte, escaped; empty where something of it is
	// masked.
	Exact string
	Bytes int
	// Masked are the pointers of what is masked.
	Masked []string
	// Broken: it is no JSON, and Exact is all there is; or it is masked whole.
	Broken bool
	Flags  []string

	hidden map[string]bool // by pointer
}

// showJSON makes a JSON text ready to be shown. hide says which values are
// masked; nil masks none.
func showJSON(text string, hide *masker) document {
	d := document{Bytes: len(text), Flags: warnings(escape.Flags(text))}
	d.hidden = hide.paths(text)
	if d.hidden[""] {
		d.Broken, d.Masked = true, []string{""}
		return d
	}
	if _, err := strictjson.Parse(text, strictjson.Limits{Bytes: -1}); err != nil {
		d.Broken, d.Exact = true, escape.Text(text)
		return d
	}
	d.walk("", "", 0, strings.TrimSpace(text))
	if d.Masked == nil {
		d.Exact = escape.Text(text)
	}
	for _, f := range d.Fields {
		for _, flag := range append(f.NameFlags, f.Value.Flags...) {
			d.Flags = add(d.Flags, flag)
		}
	}
	return d
}

func (d *document) walk(path, name string, depth int, raw string) {
	hidden := d.hidden[path]
	f := field{Path: path, Name: escape.Line(name), NameFlags: warnings(escape.Flags(name)), Depth: min(depth, 6), raw: raw}
	top := path == ""
	switch raw[0] {
	case '{':
		members, _ := strictjson.Members(raw, strictjson.Limits{Bytes: -1})
		f.Type = "object of " + grouped(len(members))
		if !top && !hidden || top && len(members) == 0 {
			d.Fields = append(d.Fields, f)
		}
		if hidden {
			break
		}
		for _, m := range members {
			next := depth + 1
			if top {
				next = 0
			}
			d.walk(string(strictjson.AppendPointer([]byte(path), m.Key)), m.Key, next, m.Value)
		}
		return
	case '[':
		list := items(raw)
		f.Type = "list of " + grouped(len(list))
		if hidden {
			break
		}
		d.Fields = append(d.Fields, f)
		for i, item := range list {
			d.walk(fmt.Sprintf("%s/%d", path, i), fmt.Sprint(i+1), depth+1, item)
		}
		return
	case '"':
		f.Type = "text"
		v, _ := strictjson.Parse(raw, strictjson.Limits{Bytes: -1})
		s, _ := v.(string)
		f.Value = showText(s)
	case 't', 'f':
		f.Type = "yes or no"
		f.Value = shown{Text: map[bool]string{true: "true (yes)", false: "false (no)"}[raw == "true"]}
	case 'n':
		f.Type, f.Value = "nothing", shown{Text: "null"}
	default:
		f.Type, f.Value = "number", shown{Text: raw}
	}
	if hidden {
		f.Value = shown{Masked: true}
		d.Masked = append(d.Masked, path)
	}
	d.Fields = append(d.Fields, f)
}

// items returns the items of an array that is known to be strict JSON, each
// with its own text.
func items(raw string) []string {
	var out []string
	dec := jsontext.NewDecoder(strings.NewReader(raw))
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			return out
		}
		out = append(out, string(v))
	}
	return out
}

// change is a field that differs between two documents.
type change struct {
	Path     string // escaped
	What     string // changed, added, removed
	Was, Now shown
}

// differences lists the fields that differ, in the order of the new document.
func differences(was, now document) []change {
	old := map[string]field{}
	for _, f := range was.Fields {
		old[f.Path] = f
	}
	var out []change
	seen := map[string]bool{}
	for _, f := range now.Fields {
		seen[f.Path] = true
		o, had := old[f.Path]
		switch {
		case !had:
			out = append(out, change{Path: escape.Line(f.Path), What: "added", Now: f.valueOrType()})
		case o.raw != f.raw && !(composite(o.raw) && composite(f.raw) && o.raw[0] == f.raw[0]) || o.Value.Masked != f.Value.Masked:
			out = append(out, change{Path: escape.Line(f.Path), What: "changed", Was: o.valueOrType(), Now: f.valueOrType()})
		}
	}
	for _, f := range was.Fields {
		if !seen[f.Path] {
			out = append(out, change{Path: escape.Line(f.Path), What: "removed", Was: f.valueOrType()})
		}
	}
	return out
}

func composite(raw string) bool { return raw[0] == '{' || raw[0] == '[' }

func (f field) valueOrType() shown {
	if composite(f.raw) && !f.Value.Masked {
		return shown{Text: f.Type}
	}
	return f.Value
}

func add(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}
