// Package live hands a run's deltas to whoever looks on, in the process that
// drives it: chats, terminals, pages.
//
// A [Feed] keeps, of every run that is driven here, the text of the open turn
// and nothing else. A follower holds a place in it, so a late one gets the turn
// from its start, a slow one gets more at once, and no one keeps the engine
// waiting. What is committed is only counted: the log is read with
// [ringi.Service] Events.
package live

import (
	"sync"

	"github.com/ringi-dev/ringi"
)

// MaxTurn bounds the text that is kept of an open turn. Beyond it followers
// wait for the turn itself.
const MaxTurn = 4 << 20

// Feed takes what an engine tells (engine.Config.Live) and lets any number of
// followers read it. Its zero value is ready to use, and safe for goroutines.
type Feed struct {
	mu   sync.RWMutex
	runs map[string]*run
}

// run is one run that is driven here, or followed.
type run struct {
	mu        sync.Mutex
	state     State
	pieces    []piece // of the open turn
	size      int
	followers []*Follower
}

// piece is a stretch of one kind in an open turn.
type piece struct {
	kind ringi.EventKind
	call string
	tool string
	text []byte
}

// State is how a run stands.
type State struct {
	// Seq is the newest number that was committed; 0 where none was since the
	// feed knows the run.
	Seq int64
	// Step and Attempt name the turn that is open or was last.
	Step, Attempt int
	// Open says that the model speaks: what is read belongs to Step.
	Open bool
	// Driven says that a process that tells this feed goes on with the run.
	Driven bool
}

// Fragment is a stretch of an open turn.
type Fragment struct {
	// Kind is text_delta, reasoning_delta or input_delta.
	Kind ringi.EventKind
	// Piece counts the stretches of the turn: fragments of one number are one.
	Piece int
	// Call and Tool name the call, for input.
	Call, Tool string
	Text       string
}

// Publish takes one event. It never waits for a follower, and keeps nothing of
// the event's body.
func (f *Feed) Publish(ev ringi.Event) {
	r := f.run(ev.RunID)
	r.mu.Lock()
	gone := r.take(&ev)
	for _, w := range r.followers {
		w.ring()
	}
	r.mu.Unlock()
	if gone {
		f.forget(ev.RunID, r)
	}
}

func (f *Feed) run(id string) *run {
	f.mu.RLock()
	r := f.runs[id]
	f.mu.RUnlock()
	if r != nil {
		return r
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r = f.runs[id]; r == nil {
		if f.runs == nil {
			f.runs = map[string]*run{}
		}
		r = &run{}
		f.runs[id] = r
	}
	return r
}

// forget drops a run that nobody drives and nobody follows.
func (f *Feed) forget(id string, r *run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.runs[id] == r && !r.state.Driven && len(r.followers) == 0 {
		delete(f.runs, id)
	}
}

// take moves the run on; true where nobody needs it any more.
func (r *run) take(ev *ringi.Event) bool {
	switch b := ev.Body.(type) {
	case *ringi.Delta:
		r.add(ev.Kind, b)
	case *ringi.StepStarted:
		r.begin(b.Step, b.Attempt)
	case *ringi.StepDiscarded:
		r.close()
	}
	if ev.Seq > r.state.Seq {
		r.state.Seq = ev.Seq
	}
	switch ev.Kind {
	case ringi.EventModelResponded:
		r.close()
	case ringi.EventRunLeft:
		r.close()
		r.state.Driven = false
	}
	return !r.state.Driven && len(r.followers) == 0
}

func (r *run) begin(step, attempt int) {
	r.close()
	r.state.Step, r.state.Attempt, r.state.Open, r.state.Driven = step, attempt, true, true
}

// close ends the open turn: the log has it, or nobody.
func (r *run) close() {
	clear(r.pieces)
	r.pieces, r.size, r.state.Open = r.pieces[:0], 0, false
	for _, w := range r.followers {
		w.piece, w.at = 0, 0
	}
}

func (r *run) add(kind ringi.EventKind, d *ringi.Delta) {
	if !r.state.Open || r.state.Step != d.Step || r.state.Attempt != d.Attempt {
		r.begin(d.Step, d.Attempt)
	}
	if r.size += len(d.Text); r.size > MaxTurn {
		return
	}
	n := len(r.pieces)
	if n == 0 || r.pieces[n-1].kind != kind || r.pieces[n-1].call != d.Call {
		r.pieces = append(r.pieces, piece{kind: kind, call: d.Call, tool: d.Tool})
		n++
	}
	p := &r.pieces[n-1]
	p.text = append(p.text, d.Text...)
}

// Follower reads one run. It is for one goroutine; Close it.
type Follower struct {
	feed  *Feed
	id    string
	r     *run
	bell  chan struct{}
	piece int // the next that is read
	at    int // from here on
}

// Follow begins to read a run, at the start of its open turn.
func (f *Feed) Follow(runID string) *Follower {
	w := &Follower{feed: f, id: runID, bell: make(chan struct{}, 1)}
	for {
		r := f.run(runID)
		f.mu.RLock()
		if f.runs[runID] == r { // not forgotten meanwhile
			r.mu.Lock()
			w.r, r.followers = r, append(r.followers, w)
			r.mu.Unlock()
			f.mu.RUnlock()
			return w
		}
		f.mu.RUnlock()
	}
}

func (w *Follower) ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// Bell gets a value after something happened since the last one was taken.
func (w *Follower) Bell() <-chan struct{} { return w.bell }

// Read appends what came since the last Read to dst. Where the state's Step or
// Attempt is another than before, the fragments are that turn's, from its
// start.
func (w *Follower) Read(dst []Fragment) ([]Fragment, State) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	for ; w.piece < len(w.r.pieces); w.piece++ {
		p := &w.r.pieces[w.piece]
		if w.at < len(p.text) || len(p.text) == 0 {
			dst = append(dst, Fragment{Kind: p.kind, Piece: w.piece, Call: p.call, Tool: p.tool, Text: string(p.text[w.at:])})
		}
		w.at = len(p.text)
		if w.piece == len(w.r.pieces)-1 {
			break // it may grow
		}
		w.at = 0
	}
	return dst, w.r.state
}

// Close ends the reading.
func (w *Follower) Close() {
	w.r.mu.Lock()
	for i, other := range w.r.followers {
		if other == w {
			w.r.followers = append(w.r.followers[:i], w.r.followers[i+1:]...)
			break
		}
	}
	gone := !w.r.state.Driven && len(w.r.followers) == 0
	w.r.mu.Unlock()
	if gone {
		w.feed.forget(w.id, w.r)
	}
}
