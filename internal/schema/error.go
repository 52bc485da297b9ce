package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// Kind names why a schema or a value was refused. The set is closed.
type Kind string

// The kinds of refusal. Validate gives the first three; Compile, Without and
// Canonical give all but KindWork.
const (
	KindInvalid   Kind = "invalid"   // a value that does not match, or a schema that is not well formed
	KindWork      Kind = "work"      // checking this value would take too long
	KindPanic     Kind = "panic"     // the validator broke off
	KindJSON      Kind = "json"      // the schema is not strict JSON; Unwrap gives a *strictjson.SyntaxError
	KindSize      Kind = "size"      // above MaxBytes
	KindDepth     Kind = "depth"     // above MaxDepth
	KindNodes     Kind = "nodes"     // above MaxNodes
	KindRecursive Kind = "recursive" // a reference that leads back to itself
	KindReference Kind = "reference" // a reference out of the document, or to nothing; $id below the root
	KindDialect   Kind = "dialect"   // $schema is neither 2020-12 nor draft-07
	KindPattern   Kind = "pattern"   // not a Go regular expression, or too big a one
)

const (
	maxProblems  = 10
	maxErrorText = 2 << 10 // bytes of Error.Error

	excerptBytes = 40  // of a name or value from outside
	pathBytes    = 160 // of a pointer
	messageBytes = 400
)

// Problem is one thing that is wrong with a value.
type Problem struct {
	// Path is a JSON pointer (RFC 6901), for reading: names above 40 bytes and
	// pointers above 160 are cut. Its names are the sender's, with any
	// character in them. Empty at the top.
	Path string
	// Message says what must be sent instead. It never holds the value that
	// was sent, quotes all foreign names, and is safe to show.
	Message string
}

// Error is a refused value. Its text is written for the model that sent the
// value.
type Error struct {
	Kind     Kind
	Problems []Problem // at least one, at most 10, by path; the same value always gives the same
	More     int       // problems left out
}

// Error tells all problems in at most 2 KiB.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("input does not match the schema: ")
	if e.Kind != KindInvalid {
		b.Reset()
		b.WriteString("input not checked: ")
	}
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(p.text())
	}
	if e.More > 0 {
		b.WriteString("; and " + strconv.Itoa(e.More) + " more")
	}
	return b.String()
}

func (p Problem) text() string {
	if p.Path == "" {
		return p.Message
	}
	return "at " + strconv.Quote(p.Path) + ": " + p.Message
}

// CompileError is a refused schema.
type CompileError struct {
	Kind Kind
	Path string // JSON pointer into the schema, cut as Problem.Path is; empty at the top

	detail string
	err    error
}

// Error tells the kind, the place and what is wrong.
func (e *CompileError) Error() string {
	text := "schema refused (" + string(e.Kind) + ")"
	if e.Path != "" {
		text += " at " + strconv.Quote(e.Path)
	}
	return text + ": " + e.detail
}

// Unwrap gives the error of the JSON or pattern parser, where there is one.
func (e *CompileError) Unwrap() error { return e.err }

// pointer joins the steps of a path for reading.
func pointer(steps []string) string {
	var b []byte
	for _, step := range steps {
		b = strictjson.AppendPointer(b, cutText(step, excerptBytes))
		if len(b) > pathBytes {
			break
		}
	}
	return cutPath(string(b))
}

func cutPath(path string) string { return cutText(path, pathBytes) }

// cutText shows at most max bytes of s, cut between characters.
func cutText(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}

// names quotes up to eight names in their order.
func names(list []string) string {
	const most = 8
	quoted := make([]string, 0, most)
	for _, name := range list[:min(len(list), most)] {
		quoted = append(quoted, strictjson.Excerpt(name, excerptBytes))
	}
	text := strings.Join(quoted, ", ")
	if left := len(list) - most; left > 0 {
		text += " and " + strconv.Itoa(left) + " more"
	}
	return text
}
