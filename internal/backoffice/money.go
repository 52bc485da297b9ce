package backoffice

import (
	"fmt"
	"strings"
	"unicode"
)

// money writes an amount of cents as people read it: 3490 EUR is "34.90 EUR".
func money(cents int64, currency string) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s%d.%02d %s", sign, cents/100, cents%100, currency)
}

// oneLine puts a text on one line, so that a name cannot pass for a line of a
// preview. Everything else stays for the page to show as what it is.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}
