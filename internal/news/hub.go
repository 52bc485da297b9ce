// Package news tells any number of readers of requests that come and change.
package news

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
)

// Note is something that a [Hub] saw.
type Note struct {
	Seq int64
	At  time.Time
	// Run has grown to RunSeq.
	Run    string
	RunSeq int64
	// Request is what came or changed, without its definition, input, preview
	// and evidence; nil where only the run has grown.
	Request *ringi.ApprovalRequest
}

// Options of a hub.
type Options struct {
	// Service is looked at: through its [ringi.Feed] where it has one.
	Service ringi.Service
	Logger  *slog.Logger
	Now     func() time.Time
	// Pause waits until it is time for the next look, from when the last began;
	// false where there is to be none. Glance is called before a look; what it
	// returns goes to Pause.
	Glance func() Glance
	Pause  func(context.Context, Glance) bool
}

// Glance is taken before a look, so that what changes meanwhile is seen by the
// next one.
type Glance struct {
	Begun   time.Time
	Changed <-chan struct{} // nil where nothing tells
}

// maxNotes is how many notes are kept: who misses more begins anew.
const maxNotes = 10_000

// maxStates bounds the runs whose requests' states are kept in mind. Of one that
// is forgotten something is told twice, and nothing is missed.
const maxStates = 10_000

// idle is how long a hub looks on when nobody listens.
const idle = 2 * time.Minute

// Hub looks for all its readers at once, while there are any. Make one with
// [New]; it is safe for goroutines.
type Hub struct {
	// Name is this hub's alone: places of another one mean nothing here.
	Name string
	o    Options

	starting sync.Mutex

	mu      sync.Mutex
	notes   []Note
	last    Place
	dropped bool // notes were, of this epoch
	began   time.Time
	looks   bool
	heads   int
	left    time.Time
	bell    chan struct{} // closed at every note

	// Of who looks alone.
	moved  *moved
	behind []run                        // could not be read yet
	states map[string]map[string]string // run → request → version
}

// Place is where a reader stands. Epoch rises where notes may have been missed.
type Place struct{ Epoch, Seq int64 }

// New makes a hub; it looks at nothing before somebody joins.
func New(o Options) *Hub {
	return &Hub{Name: rand.Text(), o: o, bell: make(chan struct{}), moved: newMoved(o.Service)}
}

// Join counts a reader, who reads from the place on. He leaves.
func (h *Hub) Join() Place {
	h.starting.Lock() // nobody joins before the first look
	defer h.starting.Unlock()
	h.mu.Lock()
	h.heads++
	looks := h.looks
	h.mu.Unlock()
	if !looks {
		h.start()
	}
	return h.Now()
}

// Leave ends a reading.
func (h *Hub) Leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heads--
	h.left = time.Now()
}

// Now is where the newest note is.
func (h *Hub) Now() Place {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// After returns the notes behind a place, and what rings at the next; false
// where some of them are gone.
func (h *Hub) After(p Place) ([]Note, <-chan struct{}, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.Epoch != h.last.Epoch || p.Seq > h.last.Seq || h.last.Seq-p.Seq > int64(len(h.notes)) {
		return nil, nil, false
	}
	return append([]Note(nil), h.notes[len(h.notes)-int(h.last.Seq-p.Seq):]...), h.bell, true
}

// moment is how long before its beginning a hub is sure to know: a page is made,
// and begins to listen.
const moment = 10 * time.Second

// Since returns the notes of a time and later, and the place behind them. whole
// says that none can be missing.
func (h *Hub) Since(t time.Time) (notes []Note, p Place, whole bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := len(h.notes)
	for i > 0 && !h.notes[i-1].At.Before(t) {
		i--
	}
	whole = !h.dropped && h.began.Sub(t) < moment || i > 0
	return append([]Note(nil), h.notes[i:]...), h.last, whole
}

func (h *Hub) start() {
	h.mu.Lock()
	h.last.Epoch++
	h.notes, h.dropped, h.began = nil, false, h.o.Now()
	h.mu.Unlock()
	h.states, h.behind = map[string]map[string]string{}, nil
	g := h.o.Glance()
	h.look(context.Background(), h.moved.begin)
	h.mu.Lock()
	h.looks = true
	h.mu.Unlock()
	go h.watch(g)
}

// watch looks until nobody has listened for a while. It takes at most a tenth of
// the time for itself.
func (h *Hub) watch(g Glance) {
	ctx := context.Background()
	for {
		took := time.Since(g.Begun)
		on := h.o.Pause(ctx, g)
		for begun := time.Now(); on && time.Since(begun) < 9*took; {
			on = h.o.Pause(ctx, Glance{Begun: time.Now()})
		}
		h.mu.Lock()
		if !on || h.heads == 0 && time.Since(h.left) > idle {
			h.looks = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		g = h.o.Glance()
		h.look(ctx, h.moved.next)
	}
}

// look notes what has changed in the runs that have moved.
func (h *Hub) look(ctx context.Context, moved func(context.Context) ([]run, error)) {
	runs, err := moved(ctx)
	if err != nil {
		h.o.Logger.Warn("look for changes", "error", err)
	}
	runs, h.behind = append(h.behind, runs...), nil
	for _, r := range runs {
		if !h.read(ctx, r) {
			h.behind = append(h.behind, r)
		}
	}
	if len(h.behind) > most { // too many to try again: who listens begins anew
		h.behind = nil
		h.mu.Lock()
		h.last.Epoch++
		h.notes, h.dropped = nil, true
		h.ring()
		h.mu.Unlock()
	}
}

// States are all states of a request.
var States = []ringi.RequestState{ringi.Pending, ringi.Granted, ringi.Refused, ringi.Spent, ringi.Expired, ringi.Withdrawn, ringi.Stale}

// read notes what changed in a run's requests; false where it could not look.
func (h *Hub) read(ctx context.Context, r run) bool {
	page, err := h.o.Service.Requests(ctx, ringi.RequestQuery{RunID: r.id, State: States, Limit: 1000})
	if err != nil {
		h.o.Logger.Warn("look for changes", "run", r.id, "error", err)
		return false
	}
	was := h.states[r.id]
	if was == nil {
		if len(h.states) >= maxStates {
			clear(h.states)
		}
		was = map[string]string{}
		h.states[r.id] = was
	}
	told := false
	for _, q := range page.Requests {
		version := q.Digest + "." + string(q.State) + "." + strconv.FormatBool(q.ProposalWaits)
		if was[q.ID] == version {
			continue
		}
		was[q.ID] = version
		h.tell(r, &q)
		told = true
	}
	if !told {
		h.tell(r, nil)
	}
	return true
}

func (h *Hub) tell(r run, q *ringi.ApprovalRequest) {
	if q != nil {
		q.Tool, q.Call, q.Proposed, q.Preview, q.Evidence = ringi.Tool{}, ringi.ToolCall{}, "", nil, ""
		q.InputSchema, q.Verdict = nil, ringi.Verdict{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last.Seq++
	h.notes = append(h.notes, Note{Seq: h.last.Seq, At: h.o.Now(), Run: r.id, RunSeq: r.seq, Request: q})
	if len(h.notes) > maxNotes {
		h.notes, h.dropped = append([]Note(nil), h.notes[len(h.notes)-maxNotes/2:]...), true
	}
	h.ring()
}

func (h *Hub) ring() {
	close(h.bell)
	h.bell = make(chan struct{})
}
