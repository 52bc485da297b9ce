package httpapi

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// Change is an event of the inbox stream: a hint to read the request again.
type Change struct {
	ID    string             `json:"id"`
	RunID string             `json:"run_id"`
	State ringi.RequestState `json:"state"`
	// Version is the request's ETag for this reader.
	Version string `json:"version"`
}

// note is a change that the hub saw, and when.
type note struct {
	seq     int64
	at      time.Time
	request ringi.ApprovalRequest
}

// maxNotes is how many changes a reader may miss before it starts anew.
const maxNotes = 10_000

// idle is how long the hub looks on when nobody listens.
const idle = 2 * time.Minute

// hub sees requests come and change. One goroutine looks for all readers, while
// there are any; the service has no feed of changes.
type hub struct {
	s *server
	// name is this process's alone: numbers of another one mean nothing here.
	name string

	starting sync.Mutex

	mu    sync.Mutex
	notes []note
	last  int64
	epoch int64 // rises where changes may have been missed
	looks bool
	heads int
	left  time.Time
	bell  chan struct{} // closed at every change

	// The picture: of who looks alone.
	seen   map[string]int64
	states map[string]map[string]string // run → request → version
}

func newHub(s *server) *hub { return &hub{s: s, name: rand.Text(), bell: make(chan struct{})} }

// join counts a reader, and returns where the log of changes is now.
func (h *hub) join() (epoch, last int64) {
	h.starting.Lock() // nobody joins before the first picture is taken
	defer h.starting.Unlock()
	h.mu.Lock()
	h.heads++
	looks := h.looks
	h.mu.Unlock()
	if !looks {
		h.start()
	}
	return h.now()
}

func (h *hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heads--
	h.left = time.Now()
}

// start takes the first picture, from which changes count, and begins to look.
func (h *hub) start() {
	h.seen, h.states = map[string]int64{}, map[string]map[string]string{}
	g := h.s.glance()
	h.look(context.Background(), true)
	h.mu.Lock()
	h.looks, h.epoch, h.notes = true, h.epoch+1, nil
	h.mu.Unlock()
	go h.watch(g)
}

// watch looks until nobody has listened for a while. It takes at most a tenth of
// the time for itself.
func (h *hub) watch(g glance) {
	ctx := context.Background()
	for {
		took := time.Since(g.begun)
		h.s.pause(ctx, g)
		if took > h.s.Look/10 {
			h.s.sleep(ctx, 9*took)
		}
		h.mu.Lock()
		if h.heads == 0 && time.Since(h.left) > idle || stopped(h.s.Done) {
			h.looks = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		g = h.s.glance()
		h.look(ctx, false)
	}
}

func stopped(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// live are the states of runs that may still change.
var live = []ringi.RunStatus{ringi.Queued, ringi.Running, ringi.WaitingForApproval, ringi.WaitingForInput, ringi.WaitingForOutcome}

// look reads the rows of all runs that have not ended, and the requests of those
// that have moved.
func (h *hub) look(ctx context.Context, first bool) {
	q := ringi.RunQuery{Status: live, Limit: 1000}
	now := map[string]int64{}
	for {
		rows, err := h.s.Service.Runs(ctx, q)
		if err != nil {
			h.s.Logger.Warn("look for changes", "error", err)
			return
		}
		for _, row := range rows {
			now[row.ID] = row.Seq
		}
		if len(rows) < q.Limit {
			break
		}
		q.After = rows[len(rows)-1].ID
	}
	for run, seq := range now {
		if before, known := h.seen[run]; !known || before != seq {
			if !h.read(ctx, run, first) {
				now[run] = -1 // again next time
			}
		}
	}
	for run := range h.seen {
		if _, still := now[run]; !still {
			if h.read(ctx, run, first) {
				delete(h.states, run)
			} else {
				now[run] = -1
			}
		}
	}
	h.seen = now
}

// read notes what changed in a run's requests.
func (h *hub) read(ctx context.Context, run string, first bool) bool {
	page, err := h.s.Service.Requests(ctx, ringi.RequestQuery{RunID: run, State: states, Limit: 1000})
	if err != nil {
		h.s.Logger.Warn("look for changes", "run", run, "error", err)
		return false
	}
	was := h.states[run]
	if was == nil {
		was = map[string]string{}
		h.states[run] = was
	}
	for _, r := range page.Requests {
		version := r.Digest + "." + string(r.State) + "." + strconv.FormatBool(r.ProposalWaits)
		if was[r.ID] == version {
			continue
		}
		was[r.ID] = version
		if !first {
			h.tell(r)
		}
	}
	return true
}

func (h *hub) tell(r ringi.ApprovalRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.notes = append(h.notes, note{h.last, h.s.Now(), r})
	if len(h.notes) > maxNotes {
		h.notes = append([]note(nil), h.notes[len(h.notes)-maxNotes/2:]...)
	}
	close(h.bell)
	h.bell = make(chan struct{})
}

// after returns the changes behind a number, and what rings at the next; false
// where some of them are gone.
func (h *hub) after(epoch, seq int64) ([]note, <-chan struct{}, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if epoch != h.epoch || seq > h.last || len(h.notes) > 0 && seq < h.notes[0].seq-1 || len(h.notes) == 0 && seq != h.last {
		return nil, nil, false
	}
	i := len(h.notes) - int(h.last-seq)
	return append([]note(nil), h.notes[i:]...), h.bell, true
}

type inboxInput struct {
	LastEventID string `header:"Last-Event-ID" doc:"The id of the last event that came, for a stream that goes on."`
	Accept      string `header:"Accept" doc:"text/event-stream, or anything."`
}

// getInbox streams what changes among the requests that w may see.
func (s *server) getInbox(ctx context.Context, in *inboxInput) (*output, error) {
	w, _ := access.FromContext(ctx)
	if err := access.May(w, access.ApprovalsList, every); err != nil {
		return nil, s.problem(ctx, w, err)
	}
	if in.Accept != "" && !strings.Contains(in.Accept, "text/event-stream") && !strings.Contains(in.Accept, "*/*") {
		return nil, s.problem(ctx, w, errAccept)
	}
	leave, err := s.open.enter(w, true)
	if err != nil {
		return nil, s.problem(ctx, w, err)
	}
	return &output{func(c huma.Context) {
		defer leave()
		epoch, seq := s.inbox.join()
		defer s.inbox.leave()
		st := begin(c)
		if st == nil {
			return
		}
		if in.LastEventID != "" {
			if epoch, seq, err = s.goOn(ctx, w, st, in.LastEventID, epoch, seq); err != nil {
				return
			}
		}
		s.followInbox(ctx, w, st, epoch, seq)
	}}, nil
}

func (s *server) followInbox(ctx context.Context, w access.Who, st *stream, epoch, seq int64) {
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	check := time.NewTicker(s.Heartbeat / 3)
	defer check.Stop()
	for {
		notes, bell, ok := s.inbox.after(epoch, seq)
		if !ok { // too slow to follow: begin anew
			epoch, seq = s.inbox.now()
			if s.reset(w, st, epoch, seq) != nil {
				return
			}
			continue
		}
		var err error
		if len(notes) > 0 {
			if w, err = s.mayGoOn(ctx, w); err != nil {
				return
			}
		}
		for _, n := range notes {
			seq = n.seq
			if s.hint(ctx, w, st, n.request, position{s.inbox.name, epoch, seq, n.at}) != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Done:
			return
		case <-bell:
		case <-check.C:
			if w, err = s.mayGoOn(ctx, w); err != nil {
				return
			}
		case <-beat.C:
			if st.send(": still here\n\n") != nil {
				return
			}
		}
	}
}

// now is where the log of changes is.
func (h *hub) now() (epoch, last int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.epoch, h.last
}

// mayGoOn reads the rights of a stream's reader anew.
func (s *server) mayGoOn(ctx context.Context, w access.Who) (access.Who, error) {
	w, err := s.Directory.Recheck(ctx, w)
	if err == nil {
		err = access.May(w, access.ApprovalsList, every)
	}
	return w, err
}
