package aisdk

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
)

// post takes a new message, answers, or the wish for another answer, and streams
// what comes of it.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, c *caller) error {
	var b body
	if err := chat.ReadBody(r, &b); err != nil {
		return err
	}
	if c.ID == "" || b.ID != "" {
		if err := h.chat.Name(&c.Caller, b.ID); err != nil {
			return err
		}
	}
	last := b.last()
	if last == nil {
		return chat.Problemf(http.StatusBadRequest, "malformed", "There is no message in the body.")
	}
	newest, err := h.chat.Newest(r.Context(), &c.Caller)
	if err != nil {
		return err
	}
	if err := h.known(r.Context(), c, &b); err != nil {
		return err
	}
	switch {
	case b.Trigger == "regenerate-message":
		return h.again(w, r, c, &b, newest)
	case b.Trigger != "" && b.Trigger != "submit-message":
		return chat.Problemf(http.StatusBadRequest, "trigger", "This trigger is unknown.")
	case last.Role == "user":
		return h.said(w, r, c, &b, newest)
	case last.Role == "assistant":
		return h.answered(w, r, c, last, newest)
	}
	return chat.Problemf(http.StatusBadRequest, "role", "The last message is the user's, or the assistant's with answers in it.")
}

// known refuses a history that names an approval of another chat, or one that
// never was: it was put together by somebody.
func (h *Handler) known(ctx context.Context, c *caller, b *body) error {
	mine := map[string]bool{}
	read := false
	for _, m := range b.Messages {
		calls := map[string]bool{}
		for i := range m.Parts {
			p := &m.Parts[i]
			if _, tool := p.tool(); !tool {
				continue
			}
			if m.Role != "assistant" || calls[p.ToolCallID] {
				return errForged("it holds a call twice, or in a message that is not the assistant's")
			}
			calls[p.ToolCallID] = true
			if p.Approval == nil || strings.HasPrefix(p.Approval.ID, "auto_") {
				continue
			}
			if !read {
				if err := h.requests(ctx, c, mine); err != nil {
					return err
				}
				read = true
			}
			if !mine[p.Approval.ID] {
				return errForged("it names an approval that is not this chat's")
			}
		}
	}
	return nil
}

func (h *Handler) requests(ctx context.Context, c *caller, mine map[string]bool) error {
	for after := ""; ; {
		page, err := h.o.Service.Requests(ctx, ringi.RequestQuery{Thread: c.Thread, State: chat.States, Limit: 1000, After: after})
		if err != nil {
			return err
		}
		for _, r := range page.Requests {
			mine[r.ID] = true
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

func errForged(why string) error {
	return chat.Problemf(http.StatusConflict, "history", "This history is not what the server sent: %s. Nothing ran. Reload the chat.", why)
}

// said starts a run for a new user message.
func (h *Handler) said(w http.ResponseWriter, r *http.Request, c *caller, b *body, newest *ringi.RunRow) error {
	text, err := said(b.last())
	if err != nil {
		return err
	}
	if newest != nil && b.answered() != newest.ID {
		return errBehind
	}
	return h.begin(w, r, c, newest, text)
}

// said is the text of a user message.
func said(m *message) (string, error) {
	var text []string
	for _, p := range m.Parts {
		if p.Type != "text" {
			return "", chat.Problemf(http.StatusUnprocessableEntity, "part", "A message holds text; %q cannot be taken.", p.Type)
		}
		text = append(text, p.Text)
	}
	all := strings.Join(text, "\n")
	if strings.TrimSpace(all) == "" {
		return "", chat.Problemf(http.StatusUnprocessableEntity, "empty", "The message is empty.")
	}
	return all, nil
}

// again asks the model once more, with the user's own words as the server has
// them. Nothing of the first answer is undone, and the model sees what it did.
func (h *Handler) again(w http.ResponseWriter, r *http.Request, c *caller, b *body, newest *ringi.RunRow) error {
	switch last := b.last(); {
	case newest == nil:
		return chat.Problemf(http.StatusConflict, "behind", "There is no answer to give again.")
	case last.Role != "user", b.answered() == newest.ID,
		b.MessageID != "" && b.MessageID != newest.ID && b.MessageID != last.ID:
		return chat.Problemf(http.StatusConflict, "behind", "Only the newest answer can be given again. Nothing ran. Reload the chat.")
	}
	v, err := h.chat.View(r.Context(), &c.Caller, newest.ID)
	if err != nil {
		return err
	}
	if len(v.Users) == 0 {
		return chat.Problemf(http.StatusConflict, "behind", "There is no message to answer again.")
	}
	return h.begin(w, r, c, newest, strings.Join(v.Users, "\n"))
}

// begin starts a run and streams it. Another process may have begun one since
// the chat was looked at: then the message was sent twice, or its page is behind.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request, c *caller, newest *ringi.RunRow, text string) error {
	id, err := h.chat.Begin(r.Context(), &c.Caller, newest, text)
	if errors.Is(err, ringi.ErrConflict) {
		return errBehind
	}
	if err != nil {
		return err
	}
	e := newEmitter(h, c)
	e.start(id)
	h.follow(w, r, c, id, e)
	return nil
}

var errBehind = chat.Problemf(http.StatusConflict, "behind", "The chat has gone on, or this message was sent before. Nothing ran. Reload the chat.")

// stop ends the chat's run: what it waits for is withdrawn, a call in flight is
// recorded first.
func (h *Handler) stop(w http.ResponseWriter, r *http.Request, c *caller) error {
	if err := h.chat.Stop(r.Context(), &c.Caller); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
