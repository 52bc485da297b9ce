package aisdk

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
	"github.com/ringi-dev/ringi/live"
)

// events tells a page that something was decided elsewhere (settled), or that the
// chat has gone on (changed); it then asks for the stream. The first event,
// ready, says that all later ones will come.
func (h *Handler) events(w http.ResponseWriter, r *http.Request, c *caller) error {
	l := &listening{h: h, c: c}
	if err := l.look(r.Context(), nil); err != nil {
		return err
	}
	l.s = chat.Open(w)
	defer l.s.Close()
	w.WriteHeader(http.StatusOK)
	defer l.leave()
	if err := l.all(r.Context()); err != nil && r.Context().Err() == nil {
		h.o.Logger.Info("chat events end", "error", err)
	}
	return nil
}

type listening struct {
	h    *Handler
	c    *caller
	s    *chat.Sink
	run  string
	seq  int64
	open map[string]bool // requests that wait
	feed *live.Follower
}

func (l *listening) leave() {
	if l.feed != nil {
		l.feed.Close()
	}
}

func (l *listening) all(ctx context.Context) error {
	if err := l.s.Send([]byte("retry: 3000\n\nevent: ready\ndata: {}\n\n")); err != nil {
		return err
	}
	timer := time.NewTimer(l.h.o.Look)
	defer timer.Stop()
	for {
		timer.Reset(l.h.o.Look)
		var bell <-chan struct{}
		if l.feed != nil {
			bell = l.feed.Bell()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.h.o.Done:
			return chat.ErrStopping
		case <-bell:
			if _, st := l.feed.Read(nil); st.Seq <= l.seq {
				continue // deltas
			}
		case <-timer.C:
		}
		if err := l.h.chat.Still(&l.c.Caller); err != nil {
			return err
		}
		var out []byte
		if err := l.look(ctx, &out); err != nil {
			return err
		}
		if len(out) == 0 && time.Since(l.s.Silent) > l.h.o.Heartbeat {
			out = []byte(": still here\n\n")
		}
		if len(out) > 0 {
			if err := l.s.Send(out); err != nil {
				return err
			}
		}
	}
}

// look compares the chat with what it was, and says what is new; out is nil the
// first time.
func (l *listening) look(ctx context.Context, out *[]byte) error {
	row, err := l.h.chat.Newest(ctx, &l.c.Caller)
	if err != nil || row == nil || row.ID == l.run && row.Seq == l.seq {
		return err
	}
	page, err := l.h.o.Service.Requests(ctx, ringi.RequestQuery{RunID: row.ID, State: chat.States, Limit: 1000})
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for _, r := range page.Requests {
		open[r.ID] = r.State == ringi.Pending
		if out != nil && l.open[r.ID] && r.State != ringi.Pending {
			l.h.seen.hint(l.c.Thread, l.h.o.Now())
			*out = append(*out, "event: settled\nid: "+strconv.FormatInt(row.Seq, 10)+"\ndata: {\"request\":"+chat.Quote(r.ID)+",\"state\":"+chat.Quote(string(r.State))+"}\n\n"...)
		}
	}
	if out != nil && (row.ID != l.run || row.Status.Final()) {
		*out = append(*out, "event: changed\ndata: {\"run\":"+chat.Quote(row.ID)+",\"status\":"+chat.Quote(string(row.Status))+"}\n\n"...)
	}
	if row.ID != l.run {
		l.leave()
		l.feed = l.h.o.Feed.Follow(row.ID)
	}
	l.run, l.seq, l.open = row.ID, row.Seq, open
	return nil
}
