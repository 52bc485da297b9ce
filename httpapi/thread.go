package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/sight"
)

// threadRuns lists the runs of a thread, oldest first.
func (s *server) threadRuns(ctx context.Context, id string) ([]ringi.RunRow, error) {
	if id == "" {
		return nil, ringi.ErrNotFound // an empty name would list all runs
	}
	var out []ringi.RunRow
	q := ringi.RunQuery{Thread: id, Limit: 1000}
	for {
		rows, err := s.Service.Runs(ctx, q)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
		if len(rows) < q.Limit {
			break
		}
		q.After = rows[len(rows)-1].ID
	}
	if len(out) == 0 {
		return nil, ringi.ErrNotFound
	}
	slices.Reverse(out)
	return out, nil
}

// thread finds a thread that w may use a route on. It is of those who began a
// run in it.
func (s *server) thread(ctx context.Context, w access.Who, id string, route access.Route) (seen, error) {
	if err := access.May(w, route, every); err != nil {
		return seen{}, err
	}
	rows, err := s.threadRuns(ctx, id)
	if err != nil {
		return seen{}, s.hidden(w, route, err)
	}
	var thing access.Thing
	for _, row := range rows {
		at, err := s.place(ctx, row.ID)
		if err != nil {
			return seen{}, s.hidden(w, route, err)
		}
		thing.Space, thing.Agent = at.space, at.agent
		thing.By = append(thing.By, at.by...)
	}
	if thing.Deciders, err = s.deciders(ctx, w, ringi.RequestQuery{Thread: id}); err != nil {
		return seen{}, err
	}
	owner := w.OwnerOf(thing)
	if err := access.May(w, route, owner); err != nil {
		return seen{}, err
	}
	at := place{space: thing.Space, thread: id, agent: thing.Agent, by: thing.By}
	return seen{at, owner, sight.Of(w, owner, s.isOpen(at.agent)), w.SeesPreview}, nil
}

// ThreadMessage is a message of a thread.
type ThreadMessage struct {
	RunID string     `json:"run_id"`
	Seq   int64      `json:"seq"`
	At    time.Time  `json:"at"`
	Role  ringi.Role `json:"role"`
	Text  string     `json:"text,omitempty"`
	// Author is the principal behind a user message.
	Author string `json:"author,omitempty"`
	// Calls are what the model asked for.
	Calls []ringi.JudgedCall `json:"calls,omitempty"`
}

// Messages are a thread's, oldest first.
type Messages struct {
	Thread   string          `json:"thread"`
	Messages []ThreadMessage `json:"messages"`
}

type threadInput struct {
	ID string `path:"id" doc:"The thread's id."`
}

func (s *server) getMessages(ctx context.Context, w access.Who, in *threadInput) (*answer, error) {
	v, err := s.thread(ctx, w, in.ID, access.ThreadsRead)
	if err != nil {
		return nil, err
	}
	rows, err := s.threadRuns(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	out := Messages{Thread: in.ID, Messages: []ThreadMessage{}}
	for _, row := range rows {
		one := v
		one.run = row.ID
		log, events, err := s.log(ctx, one, 0)
		if err != nil {
			return nil, err
		}
		for _, ev := range events {
			out.Messages = append(out.Messages, messages(log, v.sight, row.ID, ev)...)
		}
	}
	return asJSON(http.StatusOK, out)
}

// messages are those that an event adds to a thread.
func messages(log *sight.Log, s sight.Sight, run string, ev ringi.Event) []ThreadMessage {
	m := ThreadMessage{RunID: run, Seq: ev.Seq, At: ev.At}
	switch b := ev.Body.(type) {
	case *ringi.RunStarted:
		var out []ThreadMessage
		for _, said := range b.Messages {
			if said.Role != ringi.RoleUser && said.Role != ringi.RoleAssistant {
				continue
			}
			one := m
			one.Role, one.Text, one.Author = said.Role, log.Text(said.Text), said.Author
			out = append(out, one)
		}
		return out
	case *ringi.ModelResponded:
		m.Role, m.Text, m.Calls = ringi.RoleAssistant, log.Text(b.Text), log.Calls(s, b.Calls)
		return []ThreadMessage{m}
	}
	return nil
}
