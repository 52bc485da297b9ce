package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// progress draws a bar on a terminal, and nothing in a pipe.
type progress struct {
	e     *env
	shown bool

	mu            sync.Mutex
	threads, runs int // done
	of, ofRuns    int
	drawn         time.Time
}

func newProgress(e *env, wanted bool) *progress {
	return &progress{e: e, shown: wanted && isTerminal(e.err)}
}

// progressEvery is how often the bar is drawn anew.
const progressEvery = 100 * time.Millisecond

func (p *progress) start(scripts []*script) {
	p.of = len(scripts)
	for _, s := range scripts {
		p.ofRuns += len(s.runs)
	}
	p.draw(true)
}

// run counts a run that ended, thread a conversation that is left.
func (p *progress) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs++
	p.draw(false)
}

func (p *progress) thread() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.threads++
	p.draw(false)
}

func (p *progress) draw(now bool) {
	if !p.shown || !now && time.Since(p.drawn) < progressEvery {
		return
	}
	p.drawn = time.Now()
	const width = 30
	full := width
	if p.of > 0 {
		full = width * p.threads / p.of
	}
	p.e.warnf("\r[%s%s] %d of %d conversations, %s", strings.Repeat("#", full), strings.Repeat(".", width-full),
		p.threads, p.of, fmt.Sprintf("%d of %d runs", p.runs, p.ofRuns))
}

// stop takes the bar away.
func (p *progress) stop() {
	if p.shown {
		p.e.warnf("\r\x1b[K")
	}
}
