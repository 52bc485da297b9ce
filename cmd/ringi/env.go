package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/ringi-dev/ringi/internal/escape"
)

// env is what every command works with: streams, environment, clock, and the
// flags that all commands share. Tests make their own.
type env struct {
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) string
	now    func() time.Time

	// store, space and json are the values of --store, --space and --json.
	store string
	space string
	json  bool
	// server and tokenFile are those of --server and --token-file.
	server, tokenFile string
	// pause is how long a request stands on the screen before the question.
	pause time.Duration
	// started is set once a command line was understood and its command runs.
	started bool
}

// osEnv is the environment of the process.
func osEnv() *env {
	return &env{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, now: time.Now}
}

// printf writes to standard output. Arguments that a model, a tool or another
// person wrote must have gone through escape.Line or escape.Text; say does it
// by itself.
func (e *env) printf(format string, args ...any) { fmt.Fprintf(e.out, format, args...) }

// warnf writes to standard error, under the same rule as printf.
func (e *env) warnf(format string, args ...any) { fmt.Fprintf(e.err, format, args...) }

// say writes a sentence to standard output, with every text and error among
// its arguments escaped.
func (e *env) say(format string, args ...any) { fmt.Fprintf(e.out, format, escaped(args)...) }

// tell is say to standard error.
func (e *env) tell(format string, args ...any) { fmt.Fprintf(e.err, format, escaped(args)...) }

// printJSON writes v as one JSON document, with everything that is not plainly
// visible as \u escapes.
func (e *env) printJSON(v any) error { return writeJSON(e.out, v) }

func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	if _, err := w.Write(escape.JSON(nil, b.Bytes())); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// colours reports whether a stream may be coloured: it is a terminal, and
// NO_COLOR (no-color.org) is not set or empty.
func (e *env) colours(w io.Writer) bool {
	return e.getenv("NO_COLOR") == "" && e.getenv("TERM") != "dumb" && isTerminal(w)
}

// interactive reports whether a person can be asked: standard input and
// standard error are a terminal.
func (e *env) interactive() bool { return isTerminal(e.in) && isTerminal(e.err) }

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is how many columns a stream's terminal has; 0 where it is none.
func width(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return max(columns, 20)
}
