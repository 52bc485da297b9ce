package main

import (
	"fmt"
	"time"
)

// steps counts long work on a terminal, on a line of its own that goes away.
// In a pipe, with --json, and for work that is done at once, it is silent.
type steps struct {
	e     *env
	what  string
	done  int
	drawn time.Time
	shown bool
}

// stepsEvery is how often the line is drawn anew, and how long work takes
// before it is.
const stepsEvery = 200 * time.Millisecond

func newSteps(e *env, what string) *steps { return &steps{e: e, what: what, drawn: time.Now()} }

func (s *steps) step() {
	s.done++
	if s.e.json || !isTerminal(s.e.err) || time.Since(s.drawn) < stepsEvery {
		return
	}
	s.drawn, s.shown = time.Now(), true
	fmt.Fprintf(s.e.err, "\r%s checked \x1b[K", count(s.done, s.what))
}

// stop takes the line away.
func (s *steps) stop() {
	if s.shown {
		fmt.Fprint(s.e.err, "\r\x1b[K")
	}
}
