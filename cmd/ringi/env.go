package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/ringi-dev/ringi"
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
}

// osEnv is the environment of the process.
func osEnv() *env {
	return &env{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, now: time.Now}
}

// printf writes to standard output. Arguments that a model, a tool or another
// person wrote must have gone through escape.Line or escape.Text.
func (e *env) printf(format string, args ...any) { fmt.Fprintf(e.out, format, args...) }

// warnf writes to standard error, under the same rule as printf.
func (e *env) warnf(format string, args ...any) { fmt.Fprintf(e.err, format, args...) }

// printJSON writes v as one JSON document, with everything that is not plainly
// visible as \u escapes.
func (e *env) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	if _, err := e.out.Write(escape.JSON(nil, b.Bytes())); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// colour reports whether standard output may be coloured: it is a terminal,
// and NO_COLOR (no-color.org) is not set or empty.
func (e *env) colour() bool {
	return e.getenv("NO_COLOR") == "" && e.getenv("TERM") != "dumb" && isTerminal(e.out)
}

// interactive reports whether a person can be asked: standard input and
// standard error are a terminal.
func (e *env) interactive() bool { return isTerminal(e.in) && isTerminal(e.err) }

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// opened opens the store that --store or RINGI_STORE names. The caller closes
// it.
func (e *env) opened(ctx context.Context) (ringi.Store, error) {
	name := e.store
	if name == "" {
		name = e.getenv("RINGI_STORE")
	}
	if name == "" {
		return nil, usagef("no store: say --store sqlite:FILE, or set RINGI_STORE")
	}
	return openStore(ctx, name)
}
