package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/news"
)

const (
	recheck   = time.Second // how often a listener's rights are read anew
	heartbeat = 20 * time.Second
	maxListen = 1000 // streams at once
	maxOwn    = 50   // of them one person's: nobody takes everybody's place
)

// hint is what a page is told: ids and states, and nothing that was said.
type hint struct {
	ID    string             `json:"id,omitempty"`
	Run   string             `json:"run"`
	State ringi.RequestState `json:"state,omitempty"`
	// Seq is the newest event of the run, for pages about one run.
	Seq int64 `json:"seq,omitempty"`
	// Asked is when the request was put, in milliseconds: a list knows by it what
	// it does not hold because it is new.
	Asked int64 `json:"asked,omitempty"`
}

// hints is what one event says: what has changed, and how many requests wait
// now. Missed says that there is more that cannot be told.
type hints struct {
	Count  int    `json:"count"`
	News   []hint `json:"news"`
	Missed bool   `json:"missed,omitempty"`
}

// listeners counts the pages that listen, by person.
type listeners struct {
	mu  sync.Mutex
	all int
	own map[string]int
}

// enter takes a place of a person's; false where none is free.
func (l *listeners) enter(person string) (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= maxListen || l.own[person] >= maxOwn {
		return nil, false
	}
	if l.own == nil {
		l.own = map[string]int{}
	}
	l.all++
	l.own[person]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all--
		if l.own[person]--; l.own[person] == 0 {
			delete(l.own, person)
		}
	}, true
}

// newHub looks for all listeners at once, and only while there are any.
func (in *inbox) newHub() *news.Hub {
	return news.New(news.Options{Service: in.service, Logger: in.log, Now: in.now,
		Glance: func() news.Glance { return news.Glance{Begun: time.Now()} },
		Pause: func(ctx context.Context, _ news.Glance) bool {
			select {
			case <-ctx.Done():
				return false
			case <-time.After(in.o.Poll):
				return true
			}
		}})
}

// events streams what is new to a page (server-sent events, HTML 9.2): to one
// about a run, to one about a request, and to a list that was made at a time. It
// says ids and states alone; a page that wants more asks for itself.
func (in *inbox) events(w http.ResponseWriter, r *http.Request) {
	who, err := in.who(r)
	if err != nil {
		http.Error(w, "You are not logged in.", http.StatusUnauthorized)
		return
	}
	leave, ok := in.listeners.enter(who.Principal.ID)
	if !ok {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "Too many pages listen.", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	in.hub.Join()
	defer in.hub.Leave()
	q := r.URL.Query()
	s := stream{ctx: r.Context(), w: w, c: http.NewResponseController(w), in: in, who: who, run: q.Get("run"), request: q.Get("request"), at: in.hub.Now()}
	first, err := s.first(q.Get("since"))
	if errors.Is(err, errSince) {
		http.Error(w, "That is no time.", http.StatusBadRequest)
		return
	}
	if err != nil {
		http.Error(w, "There is nothing here.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	if s.write("retry: 3000\n\n") && s.tell("all", first) {
		s.follow()
	}
}

// stream is one page that listens.
type stream struct {
	ctx          context.Context
	w            http.ResponseWriter
	c            *http.ResponseController
	in           *inbox
	who          access.Who
	run, request string // what the page is about, where it is no list
	at           news.Place
}

var errSince = errors.New("since is no time")

// first is what a page is told at once: how its run or its request stands, or
// what has changed since its list was made.
func (s *stream) first(since string) (hints, error) {
	switch {
	case s.run != "":
		row, _, _, _, err := s.in.runOf(s.ctx, s.who, access.RunsRead, s.run)
		return hints{News: []hint{{Run: row.ID, Seq: row.Seq}}}, err
	case s.request != "":
		r, err := s.in.find(s.ctx, s.who, access.ApprovalsRead, s.request)
		return hints{News: []hint{hintOf(r.ApprovalRequest, 0)}}, err
	case since == "":
		return hints{}, nil
	}
	ms, err := strconv.ParseInt(since, 10, 64)
	if err != nil {
		return hints{}, errSince
	}
	notes, at, whole := s.in.hub.Since(time.UnixMilli(ms))
	s.at = at
	return hints{News: s.pick(notes), Missed: !whole}, nil
}

// follow tells a page what comes, until it has gone or may no longer listen.
func (s *stream) follow() {
	rights, beat := time.NewTicker(recheck), time.NewTicker(heartbeat)
	defer rights.Stop()
	defer beat.Stop()
	for {
		notes, bell, ok := s.in.hub.After(s.at)
		if !ok { // too slow to follow
			s.at = s.in.hub.Now()
			if !s.tell("news", hints{Missed: true}) {
				return
			}
			continue
		}
		if len(notes) > 0 {
			s.at.Seq = notes[len(notes)-1].Seq
			if now := s.pick(notes); len(now) > 0 && !s.tell("news", hints{News: now}) {
				return
			}
		}
		select {
		case <-bell:
		case <-beat.C:
			if !s.write(": still here\n\n") {
				return
			}
		case <-rights.C:
			if s.mayListen() != nil {
				s.write("event: end\ndata: {}\n\n")
				return
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// mayListen reads the rights of a page's reader anew.
func (s *stream) mayListen() error {
	var err error
	if s.who, err = s.in.people.Recheck(s.ctx, s.who); err == nil && s.run != "" {
		_, _, _, _, err = s.in.runOf(s.ctx, s.who, access.RunsRead, s.run)
	}
	return err
}

// pick makes of notes what this page hears of them: of each request the last.
func (s *stream) pick(notes []news.Note) []hint {
	var out []hint
	told := map[string]bool{}
	for _, n := range slices.Backward(notes) {
		var c hint
		switch {
		case s.run != "":
			if n.Run != s.run {
				continue
			}
			c = hint{Run: n.Run, Seq: n.RunSeq}
		case n.Request == nil || !s.hears(*n.Request):
			continue
		default:
			c = hintOf(*n.Request, n.RunSeq)
		}
		if !told[c.ID] {
			told[c.ID] = true
			out = append(out, c)
		}
	}
	slices.Reverse(out)
	return out
}

func hintOf(r ringi.ApprovalRequest, seq int64) hint {
	return hint{r.ID, r.RunID, r.State, seq, r.CreatedAt.UnixMilli()}
}

// hears reports whether the page is told of a request: a list hears of what its
// reader is asked, a request's page of that.
func (s *stream) hears(r ringi.ApprovalRequest) bool {
	stands := stands(s.who, r)
	if s.request != "" {
		return r.ID == s.request && stands.may(s.who, access.ApprovalsRead)
	}
	return stands.full && stands.owner&access.Asked != 0 && stands.may(s.who, access.ApprovalsList)
}

func (s *stream) tell(kind string, c hints) bool {
	if c.News == nil {
		c.News = []hint{}
	}
	c.Count = s.in.waiting(s.ctx, s.who)
	body, err := json.Marshal(c)
	return err == nil && s.write("event: "+kind+"\ndata: "+string(body)+"\n\n")
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
