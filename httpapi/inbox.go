package httpapi

import (
	"context"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/news"
)

// Change is an event of the inbox stream: a hint to read the request again.
type Change struct {
	ID    string             `json:"id"`
	RunID string             `json:"run_id"`
	State ringi.RequestState `json:"state"`
	// Version is the request's ETag for this reader.
	Version string `json:"version"`
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
		at := s.inbox.Join()
		defer s.inbox.Leave()
		st := begin(c)
		if st == nil {
			return
		}
		if in.LastEventID != "" {
			if at, err = s.goOn(ctx, w, st, in.LastEventID, at); err != nil {
				return
			}
		}
		s.followInbox(ctx, w, st, at)
	}}, nil
}

func (s *server) followInbox(ctx context.Context, w access.Who, st *stream, at news.Place) {
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	check := time.NewTicker(s.Heartbeat / 3)
	defer check.Stop()
	for {
		notes, bell, ok := s.inbox.After(at)
		if !ok { // too slow to follow: begin anew
			at = s.inbox.Now()
			if s.reset(w, st, at) != nil {
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
			at.Seq = n.Seq
			if n.Request != nil && s.hint(ctx, w, st, *n.Request, position{s.inbox.Name, at, n.At}) != nil {
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

// mayGoOn reads the rights of a stream's reader anew.
func (s *server) mayGoOn(ctx context.Context, w access.Who) (access.Who, error) {
	w, err := s.Directory.Recheck(ctx, w)
	if err == nil {
		err = access.May(w, access.ApprovalsList, every)
	}
	return w, err
}
