package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
)

// conversation is what a thread's ended runs leave to the next: a fold over them,
// like everything else. Nothing of it is kept in a row of its own.
type conversation struct {
	msgs      []ringi.Message
	authors   []string
	anonymous bool            // a user message without an author
	mark      ringi.DataClass // the highest class of any result
	denials   denials
	asked     []time.Time // when requests were put
	untrusted bool        // a result came from outside
	read      bool        // from a thread that was there
	last      string      // its newest ended run
}

// denials count a person's denials over a thread.
type denials struct {
	total int
	same  map[string]int  // by tool and JSON value of the input
	tools map[string]bool // denied for the whole thread
}

// remember folds the ended runs of a thread, each checked like any other.
func (e *Engine) remember(ctx context.Context, sp, thread string) (conversation, error) {
	m := conversation{read: true}
	runs, err := e.store.Transcript(ctx, sp, thread)
	if err != nil {
		return m, fmt.Errorf("read transcript of %s: %w", thread, err)
	}
	for _, stored := range runs {
		m.last = stored.Row.ID
		s, err := e.fold(stored)
		if errors.Is(err, errErased) {
			continue // its words are gone
		}
		if err != nil {
			return m, fmt.Errorf("read transcript of %s: run %s: %w", thread, stored.Row.ID, e.broken(ctx, &stored.Row, err))
		}
		m.add(e, s)
	}
	return m, nil
}

// add takes an ended run in.
func (m *conversation) add(e *Engine, s *state) {
	kept := s.start.Gate || s.start.Imported // by a foreign loop, or by a client
	if !kept {
		m.msgs = append(m.msgs, s.start.Messages...)
	}
	for i := range s.start.Messages {
		switch msg := &s.start.Messages[i]; {
		case msg.Role != ringi.RoleUser:
		case msg.Author == "":
			m.anonymous = true
		default:
			m.authors = append(m.authors, msg.Author)
		}
	}
	if s.start.Mark != "" {
		m.mark = higher(m.mark, s.start.Mark)
	}
	for _, t := range s.turns {
		if !kept {
			m.msgs = t.messages(m.msgs)
		}
		for _, c := range t.calls {
			m.mark = higher(m.mark, e.classOf(c))
			m.untrusted = m.untrusted || e.untrusted(c, s.start.Gate)
		}
	}
	m.denials.count(s)
	m.asked = s.askedAt(m.asked)
}

// askedAt appends when the run put each of its questions: successors of one, and
// what asks for an outcome, are no further ones.
func (s *state) askedAt(to []time.Time) []time.Time {
	for _, r := range s.requests {
		if !r.outcomeKind() && r.ev.Replaces == "" {
			to = append(to, r.ev.CreatedAt)
		}
	}
	return to
}

// askedWithin counts the thread's requests of a span until the run's newest
// event.
func (a *activation) askedWithin(span time.Duration) int {
	n := 0
	for _, at := range a.s.askedAt(slices.Clip(a.prior.asked)) {
		if a.s.newest.Sub(at) < span {
			n++
		}
	}
	return n
}

// higher returns the more sensitive of two classes; "" is none at all here.
func higher(a, b ringi.DataClass) ringi.DataClass {
	if a == "" || b != "" && b.Rank() > a.Rank() {
		return b
	}
	return a
}

// classOf is the data class of a call's result: its tool's, an undeclared one
// counted as the most sensitive; "" where no result of a tool was read.
func (e *Engine) classOf(c *call) ringi.DataClass {
	if c.result == nil || c.result.Origin == ringi.OriginEngine {
		return ""
	}
	class := e.reg.DataClass(c.judged.Tool)
	if class == "" {
		class = ringi.SecretAdjacent
	}
	return higher(class, c.class)
}

// untrusted reports whether a call brought text from outside. What an external
// tool answers in our own loop is a person's or a browser's; at a gate it is
// what the loop's own function returned.
func (e *Engine) untrusted(c *call, gate bool) bool {
	if c.result == nil || c.result.Origin != ringi.OriginTool {
		return false
	}
	t, ok := e.reg.Tool(c.judged.Tool)
	return !ok || t.Remote != nil || t.External && !gate
}

// count adds a person's denials of a run.
func (d *denials) count(s *state) {
	for _, r := range s.requests {
		if r.decided != nil && r.decided.Answer == ringi.Deny && !r.outcomeKind() {
			d.add(r)
		}
	}
}

func (d *denials) add(r *request) {
	if d.same == nil {
		d.same, d.tools = map[string]int{}, map[string]bool{}
	}
	d.total++
	d.same[sameKey(r.call.judged.Tool, r.call.judged.Input)]++
	if r.decided.Scope == ringi.ThisTool {
		d.tools[r.call.judged.Tool] = true
	}
}

// sameKey names a call by tool and JSON value: blanks and key order aside,
// numbers by their text.
func sameKey(tool string, input ringi.Input) string {
	return tool + "\x00" + input.Canonical()
}

// denials of this run and the thread's earlier ones.
func (a *activation) denials() denials {
	d := denials{total: a.prior.denials.total}
	for k, n := range a.prior.denials.same {
		if d.same == nil {
			d.same, d.tools = map[string]int{}, map[string]bool{}
		}
		d.same[k] = n
	}
	for t := range a.prior.denials.tools {
		d.tools[t] = true
	}
	d.count(a.s)
	return d
}

func (a *activation) deniedTooOften() bool {
	limit := a.s.start.Limits.Denied
	if limit <= 0 {
		return false
	}
	if a.prior.denials.total == 0 && len(a.s.requests) == 0 {
		return false
	}
	return a.denials().total >= limit && a.deniedHere()
}

// deniedHere reports whether this run has a person's denial itself: a thread's
// old ones alone end no run that asked nothing.
func (a *activation) deniedHere() bool {
	for _, r := range a.s.requests {
		if r.decided != nil && r.decided.Answer == ringi.Deny {
			return true
		}
	}
	return false
}

// messages appends what a turn adds to the conversation.
func (t *turn) messages(dst []ringi.Message) []ringi.Message {
	m := ringi.Message{Role: ringi.RoleAssistant, Text: t.ev.Text, Opaque: t.ev.Opaque}
	if len(t.calls) == 0 {
		return append(dst, m)
	}
	m.Calls = make([]ringi.ToolCall, len(t.calls))
	results := make([]ringi.ToolResult, len(t.calls))
	for i, c := range t.calls {
		m.Calls[i] = c.modelCall()
		if c.result != nil {
			results[i] = *c.result
			// Who decided, and what a person typed, is not the model's to know.
			results[i].Approval = ringi.ApprovalRecord{}
		}
	}
	return append(dst, m, ringi.Message{Role: ringi.RoleTool, Results: results})
}

// modelCall is the call as the model knows it: its own bytes, whatever ran.
func (c *call) modelCall() ringi.ToolCall {
	return ringi.ToolCall{ID: c.judged.ID, ModelID: c.judged.ModelID, Tool: c.judged.Tool, Input: c.judged.Input, Raw: c.judged.Raw}
}

// toolCall is the call with the bytes that would run.
func (c *call) toolCall() ringi.ToolCall {
	return ringi.ToolCall{ID: c.judged.ID, ModelID: c.judged.ModelID, Tool: c.judged.Tool, Input: c.input, Raw: c.judged.Raw}
}

// prepareMessages builds what the model is sent: the thread's messages, the
// run's own, and every turn so far.
func (a *activation) prepareMessages() {
	if a.s.start.Gate {
		a.msgs, a.mark = nil, a.markOf()
		return
	}
	a.msgs = make([]ringi.Message, 0, len(a.prior.msgs)+len(a.s.start.Messages)+3)
	a.msgs = append(append(a.msgs, a.prior.msgs...), a.s.start.Messages...)
	a.mark = higher(a.prior.mark, a.s.start.Mark)
	a.at = a.at[:0]
	a.built = 0
	a.extendMessages()
}

// extendMessages takes closed turns in. at remembers what each turn was sent,
// so that judging again sees the messages of its step.
func (a *activation) extendMessages() {
	if a.s.start.Gate {
		return // the messages are the foreign loop's
	}
	for a.built < len(a.s.turns) {
		t := a.s.turns[a.built]
		if len(a.at) == a.built {
			a.at = append(a.at, len(a.msgs))
		}
		if t.open() {
			return
		}
		if len(t.calls) > 0 && len(a.msgs)+2 > cap(a.msgs) { // a long run moves them a few times, not at every doubling
			a.msgs = slices.Grow(a.msgs, 3*len(a.msgs))
		}
		a.msgs = t.messages(a.msgs)
		for _, c := range t.calls {
			a.mark = higher(a.mark, a.e.classOf(c))
		}
		a.built++
	}
}

// given checks the messages that a caller passes in. They never carry
// authority: approval parts are refused, and a call without a result is
// answered "not executed" before any model sees it.
func given(msgs []ringi.Message, by ringi.Principal) ([]ringi.Message, error) {
	out := make([]ringi.Message, 0, len(msgs))
	for i := range msgs {
		m := msgs[i]
		if m.Approval != "" {
			return nil, fmt.Errorf("message %d: %w", i, ringi.ErrAuthority)
		}
		if !utf8.ValidString(m.Text) {
			return nil, fmt.Errorf("message %d: text is not valid UTF-8", i)
		}
		switch m.Role {
		case ringi.RoleUser:
			if m.Author == "" {
				m.Author = by.ID
			}
			out = append(out, ringi.Message{Role: m.Role, Text: m.Text, Author: m.Author})
		case ringi.RoleAssistant:
			out = append(out, ringi.Message{Role: m.Role, Text: m.Text, Calls: m.Calls, Opaque: m.Opaque})
			if len(m.Calls) > 0 {
				var next *ringi.Message
				if i+1 < len(msgs) && msgs[i+1].Role == ringi.RoleTool {
					next = &msgs[i+1]
				}
				out = append(out, ringi.Message{Role: ringi.RoleTool, Results: answers(m.Calls, next)})
			}
		case ringi.RoleTool:
			if i == 0 || len(msgs[i-1].Calls) == 0 {
				return nil, fmt.Errorf("message %d: results without a call", i)
			}
		default:
			return nil, fmt.Errorf("message %d: unknown role %q", i, m.Role)
		}
	}
	return out, nil
}

// answers pairs given results with calls, in the calls' order; repeated ids
// are paired in order. What has no result gets one that says so.
func answers(calls []ringi.ToolCall, next *ringi.Message) []ringi.ToolResult {
	out := make([]ringi.ToolResult, len(calls))
	used := map[int]bool{}
	for i, c := range calls {
		out[i] = ringi.ToolResult{CallID: c.ID, ModelID: c.ModelID, Tool: c.Tool, Outcome: ringi.OutcomeNotExecuted,
			Code: ringi.CodeDangling, Origin: ringi.OriginEngine, Error: "not executed"}
		if next == nil {
			continue
		}
		for k := range next.Results {
			r := &next.Results[k]
			if used[k] || r.CallID != c.ID || r.ModelID != c.ModelID {
				continue
			}
			used[k] = true
			out[i].Outcome, out[i].Code, out[i].Origin = ringi.OutcomeOK, "", ringi.OriginTool
			out[i].Output, out[i].Error = r.Output, r.Error
			break
		}
	}
	return out
}
