package main

import (
	"fmt"
	"reflect"

	"github.com/ringi-dev/ringi/internal/escape"
)

// plain is text of this program's own, or that was escaped before.
type plain string

// escaped passes every argument that is a text through the one escape
// function: strings and types made of them, errors, and whatever prints itself.
func escaped(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = escapedOne(a)
	}
	return out
}

func escapedOne(a any) any {
	switch a := a.(type) {
	case plain:
		return string(a)
	case string:
		return escape.Line(a)
	case error:
		return escape.Line(a.Error())
	case fmt.Stringer:
		return escape.Line(a.String())
	}
	if v := reflect.ValueOf(a); v.Kind() == reflect.String {
		return escape.Line(v.String())
	}
	return a
}

// plainText escapes text of several lines.
func plainText(s string) plain { return plain(escape.Text(s)) }

// flagText says what a flag of escape.Flags means to a reader.
func flagText(flag string) string {
	switch flag {
	case escape.Bidi:
		return "characters that change the direction of reading"
	case escape.ZeroWidth:
		return "characters that take no room"
	case escape.MixedScript:
		return "a word of letters from several scripts: some may only look like what they seem"
	case escape.Punycode:
		return "a name in punycode (xn--): it may be shown elsewhere as other letters"
	case escape.Tag:
		return "invisible tag characters"
	case escape.Control:
		return "control characters"
	case escape.PrivateUse:
		return "private-use characters"
	case escape.Unassigned:
		return "characters that Unicode does not know"
	case escape.InvalidUTF8:
		return "bytes that are no text"
	case escape.ManyLines:
		return "many lines: look at the last one too"
	}
	return flag
}
