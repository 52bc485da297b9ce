package inbox

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/ringi-dev/ringi/internal/escape"
)

// fact is what somebody types to approve a request whose risk is to be looked
// at: he has to read it first. The zero value asks for nothing.
type fact struct {
	// Label asks for it and does not say it.
	Label string
	// Of names the field that holds it.
	Of string

	want []string
}

// maxFact is how long a fact may be, in characters: typing more teaches nothing.
const maxFact = 40

// factOf picks what is typed: an amount of money, else the host of an address,
// else a short value, else the tool's name. What cannot be typed or is not shown
// is never asked for.
func factOf(tool string, money []sum, d document) fact {
	if len(money) > 0 {
		amount, currency, _ := strings.Cut(money[0].Text, " ")
		return fact{"Type the amount in " + currency + " to approve", money[0].From, []string{amount, money[0].Text}}
	}
	for _, f := range d.Fields {
		if host := hostOf(f); host != "" {
			return fact{"Type the host of “" + f.Name + "” to approve", f.Path, []string{host}}
		}
	}
	for _, f := range d.Fields {
		if text, ok := typable(f); ok {
			return fact{"Type the value of “" + f.Name + "” to approve", f.Path, []string{text}}
		}
	}
	return fact{"Type the name of the tool to approve", "", []string{tool}}
}

// typable is a field's value where it is short and can be typed as it is shown.
func typable(f field) (string, bool) {
	text, is := textOf(f.raw)
	if f.Type == "number" {
		text, is = f.raw, true
	}
	text = strings.TrimSpace(text)
	return text, is && !f.Value.Masked && text != "" && utf8.RuneCountInString(text) <= maxFact &&
		len(f.Value.Flags)+len(f.NameFlags) == 0 && text == escape.Line(text)
}

// hostOf is the host of a field that holds an address of the web or of mail.
func hostOf(f field) string {
	text, is := textOf(f.raw)
	if !is || f.Value.Masked || len(f.Value.Flags)+len(f.NameFlags) > 0 || text != escape.Line(text) {
		return ""
	}
	host := ""
	if u, err := url.Parse(text); err == nil && u.Scheme != "" && u.Host != "" {
		host = u.Hostname()
	} else if _, domain, found := strings.Cut(text, "@"); found && !strings.ContainsAny(text, " \t\n,;<>") && strings.Contains(domain, ".") {
		host = domain
	}
	if host == "" || utf8.RuneCountInString(host) > maxFact {
		return ""
	}
	return host
}

// typed reports whether a text says the fact: case, blanks, a comma for a point
// and separators of thousands are no difference.
func (f fact) typed(text string) bool {
	for _, want := range f.want {
		if plainFact(text) == plainFact(want) {
			return true
		}
	}
	return f.Label == ""
}

func plainFact(s string) string {
	s = strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "", ",", ".").Replace(strings.TrimSpace(s))
	return strings.ToLower(s)
}
