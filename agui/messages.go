package agui

import (
	"strings"

	"github.com/ringi-dev/ringi/internal/chat"
)

// snapshotOf sends the messages of the thread as they stand: all of its earlier
// runs, and of this one what the client knows, as the view has it.
func (e *emitter) snapshotOf(v *chat.View) {
	e.endPart()
	rows, err := e.s.h.chat.Runs(e.s.r.Context(), e.s.c)
	if err != nil {
		e.err = err
		return
	}
	ids := e.s.in.said(e.run)
	var all []string
	for _, row := range rows {
		if row.ID == v.Row.ID {
			all = appendRun(all, e.known(v), ids[row.ID])
			break // a newer one is not this stream's
		}
		earlier, err := e.s.h.chat.View(e.s.r.Context(), e.s.c, row.ID)
		if err != nil {
			e.err = err
			return
		}
		all = appendRun(all, earlier, ids[row.ID])
	}
	e.snapshot(all...)
}

// known is a view without what the client is yet to be sent.
func (e *emitter) known(v *chat.View) *chat.View {
	out := *v
	out.Steps = nil
	for i, s := range v.Steps {
		if i >= e.steps {
			break
		}
		turn := *s
		turn.Calls = nil
		for _, one := range s.Calls {
			x := e.call(one.ID)
			if !x.ended {
				continue
			}
			x.shown = one.ShownInput()
			had := *one
			if !x.over {
				had.Result = nil
			}
			turn.Calls = append(turn.Calls, &had)
		}
		out.Steps = append(out.Steps, &turn)
	}
	return &out
}

func (e *emitter) snapshot(messages ...string) {
	e.Begin("MESSAGES_SNAPSHOT")
	e.Raw("messages", "["+strings.Join(messages, ",")+"]")
	e.End()
}

// appendRun appends a run as messages. What its user said keeps the client's id:
// the client orders what it knows by that.
func appendRun(all []string, v *chat.View, userID string) []string {
	if userID == "" {
		userID = v.Row.ID + ".0"
	}
	if len(v.Users) > 0 {
		all = append(all, `{"id":`+chat.Quote(userID)+`,"role":"user","content":`+chat.Quote(strings.Join(v.Users, "\n"))+`}`)
	}
	for i, s := range v.Steps {
		all = append(all, turn(messageID(v.Row.ID, i+1), s))
		for _, one := range s.Calls {
			if one.Result != nil {
				all = append(all, `{"id":`+chat.Quote(resultID(one))+`,"role":"tool","toolCallId":`+chat.Quote(one.ID)+
					`,"content":`+chat.Quote(resultText(one))+`,"metadata":`+resultMetadata(one)+`}`)
			}
		}
	}
	return all
}

// turn is a turn of the model as an assistant's message.
func turn(id string, s *chat.Step) string {
	out := `{"id":` + chat.Quote(id) + `,"role":"assistant","content":` + chat.Quote(s.Text)
	if len(s.Calls) == 0 {
		return out + "}"
	}
	var calls []string
	for _, one := range s.Calls {
		calls = append(calls, `{"id":`+chat.Quote(one.ID)+`,"type":"function","function":{"name":`+chat.Quote(one.Tool)+
			`,"arguments":`+chat.Quote(one.ShownInput())+`}}`)
	}
	return out + `,"toolCalls":[` + strings.Join(calls, ",") + `]}`
}

// holds reports whether a client's messages hold a run as the view does.
func (in *input) holds(v *chat.View) bool {
	turns, results, calls := map[string]string{}, map[string]string{}, map[string]toolCall{}
	for i := range in.Messages {
		m := &in.Messages[i]
		text, err := m.text()
		switch {
		case err != nil:
		case m.Role == "tool":
			results[m.ToolCallID] = text
		case m.run() == v.Row.ID:
			turns[m.ID] = text
			for _, c := range m.ToolCalls {
				calls[c.ID] = c
			}
		}
	}
	if len(turns) != len(v.Steps) {
		return false
	}
	for i, s := range v.Steps {
		if text, ok := turns[messageID(v.Row.ID, i+1)]; !ok || text != s.Text {
			return false
		}
		for _, one := range s.Calls {
			result, ok := results[one.ID]
			if ok != (one.Result != nil) || ok && result != resultText(one) {
				return false
			}
			if c := calls[one.ID]; c.Function.Name != one.Tool || c.Function.Arguments != one.ShownInput() {
				return false
			}
		}
	}
	return true
}
