package backoffice

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/ringi-dev/ringi"
)

// talk is a conversation as the script reads it: what the user said last, the
// calls since then, and those before.
type talk struct {
	said    string
	since   []done
	earlier []done
}

// done is a call of the model's with its result.
type done struct {
	call   ringi.ToolCall
	result ringi.ToolResult
}

func read(msgs []ringi.Message) talk {
	var t talk
	var asked []ringi.ToolCall
	for _, m := range msgs {
		switch m.Role {
		case ringi.RoleUser:
			t.said = m.Text
			t.earlier = append(t.earlier, t.since...)
			t.since = nil
		case ringi.RoleAssistant:
			asked = m.Calls
		case ringi.RoleTool:
			for i, r := range m.Results {
				if i < len(asked) {
					t.since = append(t.since, done{asked[i], r})
				}
			}
			asked = nil
		}
	}
	return t
}

// all returns the calls of a tool since the user spoke, in order.
func (t talk) all(tool string) []done { return ofTool(t.since, tool) }

// last returns the newest call of a tool since the user spoke.
func (t talk) last(tool string) (done, bool) {
	list := t.all(tool)
	if len(list) == 0 {
		return done{}, false
	}
	return list[len(list)-1], true
}

func ofTool(list []done, tool string) []done {
	var out []done
	for _, d := range list {
		if d.call.Tool == tool {
			out = append(out, d)
		}
	}
	return out
}

// into decodes a result; false where there is none that fits.
func (d done) into(v any) bool {
	return d.result.Output != "" && json.Unmarshal([]byte(d.result.Output), v) == nil
}

// asked decodes what the model asked for.
func (d done) asked(v any) bool { return json.Unmarshal([]byte(d.call.Input), v) == nil }

// step is what the script does next: a text, and the calls behind it. Without
// a call the run ends.
type step struct {
	text string
	asks []ask
}

type ask struct {
	tool  string
	input any
}

func say(text string) step { return step{text: text} }

func (s step) and(tool string, input any) step {
	s.asks = append(s.asks, ask{tool, input})
	return s
}

// has reports whether the user said one of the words, in any letter case: a
// word begins so, or with a blank at the end, is so.
func (t talk) has(words ...string) bool {
	said := " " + strings.Join(strings.FieldsFunc(strings.ToLower(t.said), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " ") + " "
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, " "+w) })
}

var (
	orderNumber = regexp.MustCompile(`(?i)\b(?:A-([0-9]{4})|(10[0-9]{2}))\b`)
	mailAddress = regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
	customerID  = regexp.MustCompile(`(?i)\bC-[0-9]{4}\b`)
	// personName is two capitalised words or more in a row.
	personName = regexp.MustCompile(`\p{Lu}[\p{L}'’-]+(?: \p{Lu}[\p{L}'’-]+)+`)
	// opening is how a sentence begins that is no part of a name.
	opening = regexp.MustCompile(`\b(?:Please|Refund|Cancel|Change|Write|Mail|Pay|Customer|Dear|Hello|The)\b`)
	amount  = regexp.MustCompile(`\b([0-9]{1,6})[.,]([0-9]{2})\b`)
)

// orders are the order numbers that the user named, each once.
func (t talk) orders() []string {
	var out []string
	said := customerID.ReplaceAllString(mailAddress.ReplaceAllString(t.said, ""), "")
	for _, m := range orderNumber.FindAllStringSubmatch(said, -1) {
		if id := "A-" + m[1] + m[2]; !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// person is whom the user named: a number, a mail address or a name.
func (t talk) person() string {
	if id := customerID.FindString(t.said); id != "" {
		return strings.ToUpper(id)
	}
	if mail := mailAddress.FindString(t.said); mail != "" {
		return mail
	}
	return personName.FindString(opening.ReplaceAllStringFunc(t.said, strings.ToLower))
}
