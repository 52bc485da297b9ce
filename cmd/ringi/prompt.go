package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// errNothingDecided ends a question that nobody answered with yes.
var errNothingDecided = errors.New("nothing was decided")

// maxTries is how often a question is put before it is given up.
const maxTries = 3

// prompt asks a person at the terminal. A question has no default: Enter alone
// is no answer. What was typed before the question stood there is dropped, so
// that it decides nothing.
type prompt struct {
	e  *env
	tt *os.File
}

// asks returns a prompt, or an error of usage where nobody is at a terminal.
func (e *env) asks(instead string) (*prompt, error) {
	if !e.interactive() {
		return nil, usagef("this asks a person, and no terminal is here; %s", instead)
	}
	return &prompt{e, e.in.(*os.File)}, nil
}

// choose asks until one of the answers was typed in full, or its one-letter
// short form, and returns it. It waits first, so that the request is seen.
func (p *prompt) choose(ctx context.Context, question string, answers ...string) (string, error) {
	if err := p.wait(ctx); err != nil {
		return "", err
	}
	for range maxTries {
		line, err := p.line(ctx, question+" ["+strings.Join(answers, "/")+"] ")
		if err != nil {
			return "", err
		}
		typed := strings.ToLower(strings.TrimSpace(line))
		for _, a := range answers {
			if typed == a || len(typed) == 1 && typed == a[:1] {
				return a, nil
			}
		}
		p.e.tell("Type %s.\n", plain(strings.Join(answers, " or ")))
	}
	return "", errNothingDecided
}

// wait leaves what is on the screen there for a moment.
func (p *prompt) wait(ctx context.Context) error {
	select {
	case <-time.After(p.e.pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// line drops what was typed before, puts a question, and reads one line.
func (p *prompt) line(ctx context.Context, question string) (string, error) {
	return p.read(ctx, question, readLine)
}

// secret is line without an echo: it is off before the question stands there.
func (p *prompt) secret(ctx context.Context, question string) (string, error) {
	fd := int(p.tt.Fd())
	state, err := term.MakeRaw(fd)
	if err != nil {
		return "", fmt.Errorf("turn echo off: %w", err)
	}
	defer term.Restore(fd, state) // also where the read was left behind
	return p.read(ctx, "", func(f *os.File) (string, error) {
		screen := term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{f, p.e.err}, "")
		if err := screen.SetSize(max(width(f), 20), 1); err != nil {
			return "", err
		}
		return screen.ReadPassword(question)
	})
}

func (p *prompt) read(ctx context.Context, question string, from func(*os.File) (string, error)) (string, error) {
	if err := dropTyped(p.tt); err != nil {
		return "", fmt.Errorf("drop earlier input: %w", err)
	}
	p.e.tell("%s", plain(question))
	type answer struct {
		line string
		err  error
	}
	done := make(chan answer, 1)
	go func() { // a read from a terminal cannot be called off
		line, err := from(p.tt)
		done <- answer{line, err}
	}()
	select {
	case a := <-done:
		if errors.Is(a.err, io.EOF) {
			p.e.tell("\n")
			return "", errNothingDecided
		}
		if a.err != nil {
			return "", fmt.Errorf("read answer: %w", a.err)
		}
		return a.line, nil
	case <-ctx.Done():
		p.e.tell("\n")
		return "", ctx.Err()
	}
}

// readLine reads one line, byte for byte: what follows stays where it is.
func readLine(f *os.File) (string, error) {
	var line []byte
	var b [1]byte
	for {
		n, err := f.Read(b[:])
		switch {
		case n == 1 && b[0] == '\n':
			return strings.TrimSuffix(string(line), "\r"), nil
		case n == 1:
			line = append(line, b[0])
		case err != nil:
			return "", err
		}
		if len(line) > 1<<20 {
			return "", errors.New("line is too long")
		}
	}
}
