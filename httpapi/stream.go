package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/sight"
)

// Server-sent events (WHATWG HTML, 9.2).

// stream writes events to one reader.
type stream struct {
	w  io.Writer
	rc *http.ResponseController
}

// writeTime is how long a reader may take to take what is sent.
const writeTime = 10 * time.Second

// begin opens the stream; nil where only its head was asked for.
func begin(c huma.Context) *stream {
	r, w := humago.Unwrap(c)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	st := &stream{w, http.NewResponseController(w)}
	if r.Method == http.MethodHead || st.send("retry: 3000\n\n") != nil {
		return nil
	}
	return st
}

func (st *stream) send(text string) error {
	// A writer that knows no deadlines, or cannot flush, is a test's.
	if err := st.rc.SetWriteDeadline(time.Now().Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := io.WriteString(st.w, text); err != nil {
		return err
	}
	if err := st.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return st.rc.SetWriteDeadline(time.Time{})
}

// event writes one event; an empty id leaves the last one standing.
func (st *stream) event(kind, id string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	text := "event: " + kind + "\n"
	if id != "" {
		text += "id: " + id + "\n"
	}
	return st.send(text + "data: " + string(b) + "\n\n")
}

// Events is a run's log.
type Events struct {
	Events []sight.Event `json:"events"`
}

type eventsInput struct {
	ID          string `path:"id" doc:"The run's id."`
	After       int64  `query:"after" minimum:"0" doc:"Only events behind this sequence number."`
	LastEventID string `header:"Last-Event-ID" doc:"The sequence number of the last event that came, for a stream that goes on."`
	Accept      string `header:"Accept" doc:"text/event-stream for a stream."`
}

// getEvents answers with the log, or goes on with it as a stream until the run
// has ended.
func (s *server) getEvents(ctx context.Context, in *eventsInput) (*output, error) {
	w, _ := access.FromContext(ctx)
	v, err := s.run(ctx, w, in.ID, access.RunsRead, access.AuditRead)
	if err != nil {
		return nil, s.problem(ctx, w, err)
	}
	after := in.After
	if in.LastEventID != "" {
		if after, err = strconv.ParseInt(in.LastEventID, 10, 64); err != nil || after < 0 {
			return nil, s.problem(ctx, w, fmt.Errorf("%w: Last-Event-ID is a sequence number", errMalformed))
		}
	}
	if strings.Contains(in.Accept, "text/event-stream") {
		leave, err := s.open.enter(w, true)
		if err != nil {
			return nil, s.problem(ctx, w, err)
		}
		return &output{func(c huma.Context) {
			defer leave()
			if st := begin(c); st != nil {
				s.follow(ctx, w, v, st, after)
			}
		}}, nil
	}
	out, _, err := s.events(ctx, v, after)
	if err != nil {
		return nil, s.problem(ctx, w, err)
	}
	a, err := asJSON(http.StatusOK, Events{out})
	if err != nil {
		return nil, s.problem(ctx, w, err)
	}
	return a.output(), nil
}

// events are a run's behind a number, as v sees them; more is false where the
// run has ended.
func (s *server) events(ctx context.Context, v seen, after int64) (out []sight.Event, more bool, err error) {
	log, events, err := s.log(ctx, v, after)
	if err != nil {
		return nil, false, err
	}
	out, more = []sight.Event{}, true
	for _, ev := range events {
		e, err := log.Event(v.sight, v.previews, ev)
		if err != nil {
			return nil, false, err
		}
		out = append(out, e)
	}
	row, err := s.Service.Row(ctx, v.run)
	if err != nil {
		return nil, false, err
	}
	return out, !row.Status.Final() || row.Seq > after+int64(len(out)), nil
}

// follow writes a run's events until it has ended, its reader has gone, or may
// no longer read.
func (s *server) follow(ctx context.Context, w access.Who, v seen, st *stream, after int64) {
	seq, silent, checked := int64(-1), time.Now(), time.Now()
	for {
		g := s.glance()
		row, err := s.Service.Row(ctx, v.run)
		if err != nil {
			return
		}
		changed := row.Seq != seq
		if changed || time.Since(checked) > s.Heartbeat/3 {
			if w, err = s.Directory.Recheck(ctx, w); err != nil {
				return
			}
			if v, err = s.run(ctx, w, v.run, access.RunsRead, access.AuditRead); err != nil {
				return
			}
			checked = time.Now()
		}
		if changed {
			seq = row.Seq
			events, more, err := s.events(ctx, v, after)
			if err != nil {
				s.Logger.Error("stream events", "run", v.run, "error", err)
				return
			}
			for _, ev := range events {
				if st.event(string(ev.Kind), strconv.FormatInt(ev.Seq, 10), ev) != nil {
					return
				}
				after, silent = ev.Seq, time.Now()
			}
			if !more {
				st.event("end", "", map[string]any{"status": row.Status})
				return
			}
		}
		if time.Since(silent) > s.Heartbeat {
			if st.send(": still here\n\n") != nil {
				return
			}
			silent = time.Now()
		}
		if !s.pause(ctx, g) {
			return
		}
	}
}
