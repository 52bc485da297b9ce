package agui

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
)

// run takes answers or a new message, and streams what comes of it.
func (h *Handler) run(s *stream) error {
	newest, err := h.chat.Newest(s.r.Context(), s.c)
	if err != nil {
		return err
	}
	last := s.in.last()
	switch {
	case len(s.in.Resume) > 0:
		return h.answered(s, newest)
	case last != nil && last.Role == "user":
		return h.said(s, newest)
	}
	return s.look(newest)
}

// connect gives the thread as it stands, and goes on with it while its run goes
// on.
func (h *Handler) connect(s *stream) error {
	newest, err := h.chat.Newest(s.r.Context(), s.c)
	if err != nil {
		return err
	}
	return s.look(newest)
}

// said starts a run for a new user message.
func (h *Handler) said(s *stream, newest *ringi.RunRow) error {
	text, err := s.in.last().text()
	if err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return chat.Problemf(http.StatusUnprocessableEntity, "empty", "The message is empty.")
	}
	for {
		if newest != nil && s.in.answered() != newest.ID {
			again, err := h.behind(s.r.Context(), s, text)
			if err != nil {
				return err
			}
			if again {
				return s.look(newest)
			}
		}
		id, err := h.chat.Begin(s.r.Context(), s.c, newest, text)
		if err == nil {
			return s.follow(newEmitter(s, id))
		}
		if !errors.Is(err, ringi.ErrConflict) {
			return err
		}
		// Another process has begun a run: of this very message, perhaps.
		if newest, err = h.chat.Newest(s.r.Context(), s.c); err != nil {
			return err
		}
	}
}

// behind looks at a message of a client that has not seen the newest run: it is
// the message of that run, sent again (again), or comes after runs that said
// nothing; else the client is behind.
func (h *Handler) behind(ctx context.Context, s *stream, text string) (again bool, err error) {
	rows, err := h.o.Service.Runs(ctx, ringi.RunQuery{Thread: s.c.Thread, Limit: 20})
	if err != nil {
		return false, err
	}
	said := []ringi.RunRow{}
	var newest string
	for _, row := range rows {
		v, err := h.chat.View(ctx, s.c, row.ID)
		if err != nil {
			return false, err
		}
		if row.Status.Final() && len(v.Steps) == 0 {
			continue // it failed before it said anything
		}
		if said = append(said, row); len(said) == 2 {
			break
		}
		newest = strings.Join(v.Users, "\n")
	}
	known := func(i int) string {
		if i < len(said) {
			return said[i].ID
		}
		return ""
	}
	switch seen := s.in.answered(); {
	case seen == known(0):
		return false, nil
	case seen == known(1) && said[0].ID == rows[0].ID && newest == text:
		return true, nil
	}
	return false, chat.Problemf(http.StatusConflict, "behind", "The thread has gone on, or this message was sent before. Nothing ran. Connect, and look again.")
}

// look gives the thread as it stands.
func (s *stream) look(newest *ringi.RunRow) error {
	if newest == nil {
		e := newEmitter(s, "")
		e.start()
		e.finished(`{"type":"success"}`, "")
		return s.flush(e)
	}
	v, err := s.h.chat.View(s.r.Context(), s.c, newest.ID)
	if err != nil {
		return err
	}
	return s.goOn(v, true)
}

// goOn streams what is new of a run that the client knows, as the view has it. A
// client whose copy is another is sent the whole, and so is whoever asks.
func (s *stream) goOn(v *chat.View, whole bool) error {
	s.h.chat.Drive(v.Row.ID)
	e := newEmitter(s, v.Row.ID)
	e.have(v)
	if whole || !s.in.holds(v) {
		e.start()
		e.snapshotOf(v)
	}
	return s.follow(e)
}

// follow streams a run until it ended or waits, or its reader has gone. That stops
// nothing of the run.
func (s *stream) follow(e *emitter) error {
	e.start()
	if err := s.flush(e); err != nil {
		return err
	}
	_, err := s.h.chat.Follow(s.r.Context(), s.sink, s.c, e.run, e)
	if errors.Is(err, chat.ErrStopping) {
		return chat.Problemf(http.StatusConflict, "stopping", "The server stops. Nothing is lost: connect again.")
	}
	return err
}

func (s *stream) flush(e *emitter) error {
	b, err := e.Take()
	if err != nil {
		return err
	}
	return s.send(b)
}
