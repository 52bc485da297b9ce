package aisdk

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/chat"
)

// answered takes the answers in the assistant's message that the client gives
// back. All are checked before one is recorded.
func (h *Handler) answered(w http.ResponseWriter, r *http.Request, c *caller, m *message, newest *ringi.RunRow) error {
	if newest == nil || m.ID != newest.ID {
		return chat.Problemf(http.StatusConflict, "behind", "Only the newest answer can be gone on with. Nothing ran. Reload the chat.")
	}
	v, err := h.chat.View(r.Context(), &c.Caller, newest.ID)
	if err != nil {
		return err
	}
	decisions, err := h.answers(c, v, m)
	if err != nil {
		return err
	}
	for i, d := range decisions {
		if _, err := h.o.Service.Decide(r.Context(), d); err != nil {
			if i > 0 {
				p := chat.ProblemOf(err)
				return &chat.Problem{Status: p.Status, Code: p.Code, Text: p.Text + " Other answers of this message were taken."}
			}
			return err
		}
	}
	e := newEmitter(h, c)
	e.load(m)
	if len(decisions) == 0 && v.Rests {
		probe := newEmitter(h, c)
		probe.load(m)
		probe.Sync(v)
		if len(probe.Buf) == 0 {
			// An answer to this would be asked for again and again.
			return chat.Problemf(http.StatusConflict, "nothing_new", "There is nothing new in this message: %s.", standing(v))
		}
	}
	h.chat.Drive(newest.ID)
	e.start(newest.ID)
	h.follow(w, r, c, newest.ID, e)
	return nil
}

// standing says how a run stands.
func standing(v *chat.View) string {
	if v.Row.Status.Waiting() {
		return "the answer waits for a decision"
	}
	return "the answer has ended"
}

// answers reads the decisions out of a message, and refuses a message that is
// not what was sent.
func (h *Handler) answers(c *caller, v *chat.View, m *message) ([]ringi.Decision, error) {
	calls := map[string]*chat.Call{}
	for _, s := range v.Steps {
		for _, one := range s.Calls {
			calls[one.ID] = one
		}
	}
	var out []ringi.Decision
	for i := range m.Parts {
		p := &m.Parts[i]
		tool, ok := p.tool()
		if !ok {
			continue
		}
		one := calls[p.ToolCallID]
		if one == nil && p.State == "input-streaming" {
			continue // of a turn that came to nothing
		}
		if one == nil || one.Tool != tool {
			return nil, errForged("it holds a call that was never made")
		}
		d, err := h.answer(c, one, p)
		if err != nil {
			return nil, err
		}
		if d != nil {
			out = append(out, *d)
		}
	}
	return out, nil
}

// answer is the decision in one part; nil for none.
func (h *Handler) answer(c *caller, one *chat.Call, p *part) (*ringi.Decision, error) {
	if p.Approval != nil && strings.HasPrefix(p.Approval.ID, "auto_") {
		return nil, automaticEcho(one, p)
	}
	switch p.State {
	case "approval-responded":
		return h.approvalAnswer(c, one, p)
	case "output-available", "output-error":
		if one.Result != nil {
			return nil, nil // the server's own stands
		}
		return h.resultAnswer(c, one, p)
	}
	return nil, nil
}

// automaticEcho refuses a part that turns an automatic answer round: it was
// settled as it was made, and nobody decides it.
func automaticEcho(one *chat.Call, p *part) error {
	yes, ok := one.Automatic()
	if !ok || p.Approval.ID != autoID(one.ID) || p.State == "approval-responded" && string(p.Approval.Approved) != chat.BoolText(yes) {
		return errForged("an automatic answer is another in it")
	}
	return nil
}

// approvalAnswer is a person's yes or no. The digest comes out of the part, and
// the part's own input is what its seal is held against.
func (h *Handler) approvalAnswer(c *caller, one *chat.Call, p *part) (*ringi.Decision, error) {
	if p.Approval == nil {
		return nil, errForged("an answer names no approval")
	}
	said := string(p.Approval.Approved)
	if said != "true" && said != "false" {
		return nil, chat.Problemf(http.StatusBadRequest, "malformed", "An approval is true or false.")
	}
	a := one.Find(p.Approval.ID)
	if a == nil {
		return nil, errForged("an answer belongs to another call")
	}
	if yes, decided := a.Approved(); decided || a.State != ringi.Pending {
		if decided && chat.BoolText(yes) == said {
			return nil, nil // known: it was sent before, or somebody said the same
		}
		return nil, chat.Settled(a)
	}
	if a.Kind != ringi.KindApproval {
		return nil, ringi.ErrAnswer
	}
	d, err := h.decision(c, one, a, p.Approval.Signature, string(p.Input))
	if err != nil {
		return nil, err
	}
	d.Answer, d.Reason = ringi.Approve, p.Approval.Reason
	if said == "false" {
		d.Answer = ringi.Deny
	} else {
		d.Reason = p.Approval.Reason
	}
	return d, nil
}

// resultAnswer is what a tool came to that the browser ran.
func (h *Handler) resultAnswer(c *caller, one *chat.Call, p *part) (*ringi.Decision, error) {
	a := one.Newest()
	if a == nil || a.Kind != ringi.KindResult || a.State != ringi.Pending {
		return nil, errForged("it holds a result of a call that has none")
	}
	d, err := h.decision(c, one, a, p.Metadata.Ringi.Seal, string(p.Input))
	if err != nil {
		return nil, err
	}
	d.Answer, d.Result = ringi.Respond, string(p.Output)
	if p.State == "output-error" {
		b, err := json.Marshal(map[string]string{"error": p.ErrorText})
		if err != nil {
			return nil, err
		}
		d.Result = string(b)
	}
	if d.Result == "" {
		d.Result = "null"
	}
	return d, nil
}

// decision begins a decision: by whom, and with the digest of what he saw, which
// is computed from what came back.
func (h *Handler) decision(c *caller, one *chat.Call, a *chat.Ask, token, input string) (*ringi.Decision, error) {
	if !a.Here {
		return nil, ringi.ErrNotPermitted
	}
	digest, err := h.chat.Unseal(c.Thread, token, a.Sealed(input))
	if err != nil {
		return nil, err
	}
	if !chat.Same(input, one.Input) {
		return nil, ringi.ErrStale
	}
	return &ringi.Decision{RequestID: a.ID, Digest: digest, By: c.By, Channel: "chat"}, nil
}

// single is the body of POST /{id}/decisions: one part as it was shown, and the
// answer to it.
type single struct {
	Part   part            `json:"part"`
	Answer ringi.Answer    `json:"answer"`
	Reason string          `json:"reason"`
	Values json.RawMessage `json:"values"` // fill
	Input  json.RawMessage `json:"input"`  // edit
	Result json.RawMessage `json:"result"` // respond
}

// decide records one answer and says how its request stands. The stream that
// follows is the client's to ask for.
func (h *Handler) decide(w http.ResponseWriter, r *http.Request, c *caller) error {
	var b single
	if err := chat.ReadBody(r, &b); err != nil {
		return err
	}
	d, run, err := h.single(r.Context(), c, &b)
	if err != nil {
		return err
	}
	got, err := h.o.Service.Decide(r.Context(), *d)
	if err != nil {
		return err
	}
	h.chat.Drive(run)
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(map[string]any{"request": got.Request.ID, "state": got.Request.State, "remaining": got.Remaining})
}

func (h *Handler) single(ctx context.Context, c *caller, b *single) (*ringi.Decision, string, error) {
	newest, err := h.chat.Newest(ctx, &c.Caller)
	if err != nil {
		return nil, "", err
	}
	if newest == nil {
		return nil, "", ringi.ErrNotFound
	}
	v, err := h.chat.View(ctx, &c.Caller, newest.ID)
	if err != nil {
		return nil, "", err
	}
	shown, token, id := string(b.Part.Input), "", b.Part.Metadata.Ringi.Request
	if b.Part.Approval != nil {
		id, token = b.Part.Approval.ID, b.Part.Approval.Signature
	} else {
		token = b.Part.Metadata.Ringi.Seal
	}
	if b.Part.Type == "data-ringi-request" {
		if id, token, shown, err = typedPart(&b.Part); err != nil {
			return nil, "", err
		}
	}
	a := v.Asks[id]
	switch {
	case a == nil || a.Made == nil:
		return nil, "", ringi.ErrNotFound
	case a.State != ringi.Pending:
		return nil, "", chat.Settled(a)
	case !a.Here:
		return nil, "", ringi.ErrNotPermitted
	case !a.Allows(b.Answer):
		return nil, "", ringi.ErrAnswer
	case !chat.Same(shown, a.Shown()):
		return nil, "", ringi.ErrStale
	}
	digest, err := h.chat.Unseal(c.Thread, token, a.Sealed(shown))
	if err != nil {
		return nil, "", err
	}
	d := &ringi.Decision{RequestID: a.ID, Digest: digest, Answer: b.Answer, Reason: b.Reason, Result: string(b.Result), By: c.By, Channel: "chat"}
	if b.Answer == ringi.Edit || b.Answer == ringi.Fill {
		if err := chat.Proposed(a.Call.Tool, string(b.Values)+string(b.Input)); err != nil {
			return nil, "", err
		}
	}
	switch b.Answer {
	case ringi.Fill:
		d.Input, d.AndApprove = string(b.Values), true
	case ringi.Edit:
		d.Input, d.AndApprove = string(b.Input), true
	}
	return d, newest.ID, nil
}

// typedPart reads a data-ringi-request part that came back.
func typedPart(p *part) (id, token, shown string, err error) {
	var d struct {
		Request string          `json:"request"`
		Seal    string          `json:"seal"`
		Input   json.RawMessage `json:"input"`
		Schema  json.RawMessage `json:"schema"`
	}
	if err := json.Unmarshal(p.Data, &d); err != nil {
		return "", "", "", chat.Problemf(http.StatusBadRequest, "malformed", "The part could not be read.")
	}
	return d.Request, d.Seal, chat.TypedShown(string(d.Input), string(d.Schema)), nil
}
