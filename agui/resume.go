package agui

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
)

// answered takes resume entries. All are checked before one is recorded; what was
// answered before is no error, so a resume can be sent again.
func (h *Handler) answered(s *stream, newest *ringi.RunRow) error {
	if last := s.in.last(); last != nil && last.Role == "user" {
		return chat.Problemf(http.StatusConflict, "message", "Answers and a new message do not go together. Nothing ran. Answer first.")
	}
	if newest == nil {
		return errUnknown("")
	}
	v, err := h.chat.View(s.r.Context(), s.c, newest.ID)
	if err != nil {
		return err
	}
	if err := known(s.in, v); err != nil {
		return err
	}
	decisions, err := h.decisions(s, v)
	if err != nil {
		return err
	}
	// What can still be refused comes first: a proposal's input is checked as it is
	// recorded.
	slices.SortStableFunc(decisions, func(a, b ringi.Decision) int { return cmp.Compare(late(a), late(b)) })
	for i, d := range decisions {
		if _, err := h.o.Service.Decide(s.r.Context(), d); err != nil {
			if i == 0 {
				return err
			}
			h.chat.Drive(newest.ID)
			p := h.problem(s.r, err)
			return &chat.Problem{Status: p.Status, Code: p.Code, Text: p.Text + " Other answers were taken: connect, and look again."}
		}
	}
	return s.goOn(v, false)
}

func late(d ringi.Decision) int {
	if d.Answer == ringi.Edit || d.Answer == ringi.Fill {
		return 0
	}
	return 1
}

// decisions reads the decisions out of the entries. They answer everything that
// waits, or nothing is recorded (AG-UI: partial resumes are not supported).
func (h *Handler) decisions(s *stream, v *chat.View) ([]ringi.Decision, error) {
	covered := map[string]bool{}
	var out []ringi.Decision
	for i := range s.in.Resume {
		x := &s.in.Resume[i]
		id, _ := requestOf(x.InterruptID)
		a := v.Asks[id]
		switch {
		case x.Status != "resolved" && x.Status != "cancelled":
			return nil, chat.Problemf(http.StatusBadRequest, "malformed", "An entry's status is resolved or cancelled.")
		case covered[id]:
			return nil, chat.Problemf(http.StatusConflict, "twice", "An interrupt is answered twice. Nothing ran.")
		case id == v.Row.ID && x.Status == "cancelled": // the interrupt of a run whose requests are not shown
		case a == nil || a.Made == nil:
			return nil, errUnknown(id)
		default:
			d, err := h.decision(s, a, x)
			if err != nil {
				return nil, err
			}
			if d != nil {
				out = append(out, *d)
			}
		}
		covered[id] = true
	}
	var missing []string
	for _, a := range open(v) {
		if !covered[a.ID] {
			missing = append(missing, a.ID)
		}
	}
	if len(out) > 0 && len(missing) > 0 {
		return nil, chat.Problemf(http.StatusConflict, "partial", "These wait as well and are not answered: %s. Nothing ran. Answer all at once; connect to see what waits.", strings.Join(missing, ", "))
	}
	return out, nil
}

func errUnknown(id string) error {
	return chat.Problemf(http.StatusConflict, "unknown_interrupt", "Nothing of this thread's newest answer waits for %q. Nothing ran. Connect, and look again.", id)
}

// decision is the decision in an entry; nil for none.
func (h *Handler) decision(s *stream, a *chat.Ask, x *entry) (*ringi.Decision, error) {
	if a.State != ringi.Pending {
		return nil, settled(s, a, x)
	}
	if !a.Here {
		switch {
		case x.Status == "cancelled":
			return nil, nil // nobody's word; it is decided elsewhere
		case a.ProposalWaits:
			return nil, chat.Problemf(http.StatusConflict, "proposal_waits", "Somebody proposed another input, which is being checked. Nothing ran. Connect, and look again.")
		}
		return nil, ringi.ErrNotPermitted
	}
	_, token := requestOf(x.InterruptID)
	digest, err := h.digest(s, a, token)
	if err != nil {
		return nil, err
	}
	d := &ringi.Decision{RequestID: a.ID, Digest: digest, By: s.c.By, Channel: "chat"}
	if err := fill(d, a, x); err != nil {
		return nil, err
	}
	if !a.Allows(d.Answer) {
		return nil, ringi.ErrAnswer
	}
	return d, nil
}

// digest is the digest of what the entry's author saw. It comes out of the
// interrupt's id, whose seal is held against the call in his own messages.
func (h *Handler) digest(s *stream, a *chat.Ask, token string) (string, error) {
	shown, ok := s.in.echoed(a.Call.ID)
	if !ok || !chat.Same(shown, a.Made.Input) {
		return "", ringi.ErrStale
	}
	if chat.Typed(a.Kind) {
		shown = chat.TypedShown(shown, string(a.InputSchema))
	}
	return h.chat.Unseal(s.c.Thread, token, a.Sealed(shown))
}

// echoed are a call's arguments in the client's messages.
func (in *input) echoed(callID string) (arguments string, ok bool) {
	for i := range in.Messages {
		for _, c := range in.Messages[i].ToolCalls {
			if c.ID == callID {
				return c.Function.Arguments, true
			}
		}
	}
	return "", false
}

// payload is what a person may say.
type payload struct {
	Approved   *bool          `json:"approved"`
	Reason     string         `json:"reason"`
	EditedArgs jsontext.Value `json:"editedArgs"`
	Result     jsontext.Value `json:"result"`
	Error      *string        `json:"error"`
}

// fill reads an entry into a decision. A call that is abandoned is denied: its
// model has to know, and nothing waits for ever.
func fill(d *ringi.Decision, a *chat.Ask, x *entry) error {
	if x.Status == "cancelled" {
		d.Answer, d.Reason = ringi.Deny, "The user did not answer."
		return nil
	}
	if chat.Typed(a.Kind) {
		if !isObject(x.Payload) {
			return errPayload("The values are an object, as the interrupt's responseSchema says.")
		}
		d.Answer, d.Input, d.AndApprove = ringi.Fill, string(x.Payload), true
		return nil
	}
	p, err := x.said()
	if err != nil {
		return err
	}
	if a.Kind == ringi.KindResult {
		return fillResult(d, p)
	}
	switch {
	case p.Approved == nil:
		return errPayload("The payload's approved is true or false.")
	case p.Result != nil || p.Error != nil:
		return errPayload("This asks for an approval, not for a result.")
	case p.EditedArgs != nil && !isObject(p.EditedArgs):
		return errPayload("The payload's editedArgs is an object.")
	case !*p.Approved && p.EditedArgs != nil:
		return errPayload("A call that is not allowed has no editedArgs.")
	case !*p.Approved:
		d.Answer, d.Reason = ringi.Deny, p.Reason
	case p.EditedArgs != nil:
		d.Answer, d.Reason, d.Input, d.AndApprove = ringi.Edit, p.Reason, string(p.EditedArgs), true
		return chat.Proposed(a.Call.Tool, d.Input)
	default:
		d.Answer, d.Reason = ringi.Approve, p.Reason
	}
	return nil
}

// fillResult reads what a tool came to that the client ran.
func fillResult(d *ringi.Decision, p *payload) error {
	d.Answer, d.Result = ringi.Respond, string(p.Result)
	switch {
	case p.Approved != nil || p.EditedArgs != nil || (p.Result == nil) == (p.Error == nil):
		return errPayload("The payload holds a result or an error.")
	case p.Error != nil:
		b, err := json.Marshal(map[string]string{"error": *p.Error})
		if err != nil {
			return err
		}
		d.Result = string(b)
	}
	return nil
}

func (x *entry) said() (*payload, error) {
	var p payload
	if !isObject(x.Payload) || json.Unmarshal(x.Payload, &p, json.RejectUnknownMembers(true)) != nil {
		return nil, errPayload("The payload is an object, as the interrupt's responseSchema says.")
	}
	return &p, nil
}

func isObject(v jsontext.Value) bool { return len(v) > 0 && v.Kind() == '{' }

func errPayload(why string) error {
	return chat.Problemf(http.StatusUnprocessableEntity, "payload", "%s Nothing ran.", why)
}

// settled says what an entry for a request means that waits no more: nothing,
// where it says what was decided or says nothing.
func settled(s *stream, a *chat.Ask, x *entry) error {
	if x.Status == "cancelled" || sentAgain(s, a, x) {
		return nil
	}
	return chat.Settled(a)
}

// sentAgain reports whether an entry says what was decided.
func sentAgain(s *stream, a *chat.Ask, x *entry) bool {
	if a.State == ringi.Stale {
		return proposedAgain(s, a, x)
	}
	var d ringi.Decision
	if a.Decided == nil || fill(&d, a, x) != nil || d.Answer != a.Decided.Answer {
		return false
	}
	return d.Answer != ringi.Respond || chat.Same(d.Result, a.Decided.Result)
}

// proposedAgain reports whether a request gave way to what the entry proposes.
func proposedAgain(s *stream, a *chat.Ask, x *entry) bool {
	for _, next := range a.Made.Asks {
		if next.Replaces != a.ID || next.ProposedBy != s.c.By.ID {
			continue
		}
		if chat.Typed(a.Kind) {
			return true
		}
		p, err := x.said()
		return err == nil && p.EditedArgs != nil && chat.Same(string(p.EditedArgs), next.Made.Input)
	}
	return false
}

// known refuses messages that are not what the server sent of the run that is
// answered: a call that was never made, a call twice, a result that nobody gave
// (S-05, S-14).
func known(in *input, v *chat.View) error {
	calls, had := map[string]*chat.Call{}, map[string]bool{}
	for _, s := range v.Steps {
		for _, one := range s.Calls {
			calls[one.ID] = one
		}
	}
	for i := range in.Messages {
		m := &in.Messages[i]
		if one := calls[m.ToolCallID]; m.Role == "tool" && one != nil && one.Result == nil {
			return errForged("it holds a result of a call that has none")
		}
		for _, c := range m.ToolCalls {
			one := calls[c.ID]
			switch {
			case had[c.ID]:
				return errForged("it holds a call twice")
			case one == nil && m.run() == v.Row.ID, one != nil && (m.run() != v.Row.ID || one.Tool != c.Function.Name):
				return errForged("it holds a call that was never made")
			}
			had[c.ID] = true
		}
	}
	return nil
}

func errForged(why string) error {
	return chat.Problemf(http.StatusConflict, "history", "This history is not what the server sent: %s. Nothing ran. Connect, and look again.", why)
}
