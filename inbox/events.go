package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

const (
	recheck   = time.Second // how often a listener's rights are read anew
	heartbeat = 20 * time.Second
	maxListen = 1000 // streams at once
	maxOwn    = 50   // of them one person's: nobody takes everybody's place
)

// news is what a page is told: ids and states, and nothing that was said.
type news struct {
	ID    string             `json:"id"`
	Run   string             `json:"run"`
	State ringi.RequestState `json:"state"`
	// Seq is the newest event of the run, for pages about one run.
	Seq int64 `json:"seq"`
	// Asked is when the request was put, in milliseconds: a list knows by it what
	// it does not hold because it is new.
	Asked int64 `json:"asked,omitempty"`
}

// newsBatch is what one event says: what has changed, and how many requests
// wait now.
type newsBatch struct {
	Count int    `json:"count"`
	News  []news `json:"news"`
}

// watch looks at the store for all listeners at once, and only while there are
// any. A memory of what was seen last tells what is new.
type watch struct {
	mu        sync.Mutex
	listeners map[chan []seenNews]bool
	own       map[string]int // listeners by person
	stop      context.CancelFunc
	last      []seenNews
}

type seenNews struct {
	news
	note note
}

// listen adds a listener of a person's; it first gets all that is open.
func (in *inbox) listen(person string) (chan []seenNews, func(), bool) {
	w := &in.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.listeners) >= maxListen || w.own[person] >= maxOwn {
		return nil, nil, false
	}
	if w.own == nil {
		w.own = map[string]int{}
	}
	w.own[person]++
	ch := make(chan []seenNews, 1)
	if w.listeners == nil {
		w.listeners = map[chan []seenNews]bool{}
	}
	if len(w.listeners) == 0 {
		ctx, cancel := context.WithCancel(context.Background())
		w.stop, w.last = cancel, nil
		go in.poll(ctx)
	} else if w.last != nil {
		ch <- w.last
	}
	w.listeners[ch] = true
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.listeners, ch)
		if w.own[person]--; w.own[person] == 0 {
			delete(w.own, person)
		}
		if len(w.listeners) == 0 {
			w.stop()
		}
	}, true
}

// poll looks at the open runs until nobody listens.
func (in *inbox) poll(ctx context.Context) {
	tick := time.NewTicker(in.o.Poll)
	defer tick.Stop()
	open := map[string]ringi.RunRow{}
	for {
		all, err := in.openNews(ctx, open)
		if err != nil && ctx.Err() == nil {
			in.log.Warn("look for news", "error", err)
		}
		if err == nil {
			in.tell(ctx, all)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// tell gives every listener how things stand now. One that has not read the
// last yet gets this one in its place: nothing is a step from another.
func (in *inbox) tell(ctx context.Context, all []seenNews) {
	w := &in.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	w.last = all
	for ch := range w.listeners {
		select {
		case <-ch:
		default:
		}
		ch <- all
	}
}

var openStatus = []ringi.RunStatus{ringi.Queued, ringi.Running, ringi.WaitingForApproval, ringi.WaitingForInput, ringi.WaitingForOutcome}

// openNews lists the requests of the newest open runs, and of those that were
// open when it looked last.
func (in *inbox) openNews(ctx context.Context, open map[string]ringi.RunRow) ([]seenNews, error) {
	runs, err := in.recent(ctx)
	if err != nil {
		return nil, err
	}
	now := map[string]bool{}
	for _, r := range runs {
		now[r.row.ID] = true
		open[r.row.ID] = r.row
	}
	for id := range open {
		if now[id] {
			continue
		}
		row, err := in.service.Row(ctx, id)
		if err != nil {
			return nil, err
		}
		r, err := in.notesOf(ctx, row)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
		if in.now().Sub(row.UpdatedAt) > time.Minute {
			delete(open, id) // every listener has heard of its end
		}
	}
	out := []seenNews{}
	for _, r := range runs {
		for _, n := range r.notes {
			out = append(out, seenNews{news{n.ID, r.row.ID, n.State, r.row.Seq, n.CreatedAt.UnixMilli()}, n})
		}
		if len(r.notes) == 0 {
			out = append(out, seenNews{news: news{Run: r.row.ID, Seq: r.row.Seq}})
		}
	}
	return out, nil
}

// events streams what is new to a page (server-sent events, HTML 9.2). It says
// ids and states alone; a page that wants more asks for itself.
func (in *inbox) events(w http.ResponseWriter, r *http.Request) {
	who, err := in.who(r)
	if err != nil {
		http.Error(w, "You are not logged in.", http.StatusUnauthorized)
		return
	}
	run := r.URL.Query().Get("run")
	if run != "" {
		if _, _, _, _, err := in.runOf(r.Context(), who, access.RunsRead, run); err != nil {
			http.Error(w, "There is nothing here.", http.StatusNotFound)
			return
		}
	}
	ch, leave, ok := in.listen(who.Principal.ID)
	if !ok {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "Too many pages listen.", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	s := stream{ctx: r.Context(), w: w, c: http.NewResponseController(w), in: in, who: who, run: run, told: map[string]string{}}
	if !s.write("retry: 3000\n\n") {
		return
	}
	rights, beat := time.NewTicker(recheck), time.NewTicker(heartbeat)
	defer rights.Stop()
	defer beat.Stop()
	for alive := true; alive; {
		select {
		case all := <-ch:
			alive = s.tell(all)
		case <-beat.C:
			alive = s.write(": still here\n\n")
		case <-rights.C:
			if s.who, err = in.people.Recheck(r.Context(), s.who); err == nil && run != "" {
				_, _, _, _, err = in.runOf(r.Context(), s.who, access.RunsRead, run)
			}
			if err != nil {
				s.write("event: end\ndata: {}\n\n")
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// stream is one page that listens.
type stream struct {
	ctx  context.Context
	w    http.ResponseWriter
	c    *http.ResponseController
	in   *inbox
	who  access.Who
	run  string
	told map[string]string
}

// tell writes what differs from what the page was told before. The first time
// that is all, in one event.
func (s *stream) tell(all []seenNews) bool {
	first := len(s.told) == 0
	now := []news{}
	for _, n := range all {
		if !s.sees(n) {
			continue
		}
		key, value := n.Run+" "+n.ID, string(n.State)
		if s.run != "" {
			value += fmt.Sprint(" ", n.Seq)
		}
		if s.told[key] != value {
			s.told[key] = value
			now = append(now, n.news)
		}
	}
	if len(now) == 0 && !first {
		return true
	}
	s.told[""] = "told"
	body, err := json.Marshal(newsBatch{s.in.waiting(s.ctx, s.who), now})
	if err != nil {
		return false
	}
	kind := "news"
	if first {
		kind = "all"
	}
	return s.write("event: " + kind + "\ndata: " + string(body) + "\n\n")
}

func (s *stream) sees(n seenNews) bool {
	if s.run != "" {
		return n.Run == s.run
	}
	if n.ID == "" {
		return false
	}
	stands := stands(s.who, n.note.ApprovalRequest)
	return stands.full && stands.owner&access.Asked != 0 && stands.may(s.who, access.ApprovalsList)
}

// write sends a piece at once, and gives a browser that does not read ten
// seconds.
func (s *stream) write(text string) bool {
	_ = s.c.SetWriteDeadline(time.Now().Add(10 * time.Second)) // where the server cannot, its own limits hold
	if _, err := s.w.Write([]byte(text)); err != nil {
		return false
	}
	return s.c.Flush() == nil
}
