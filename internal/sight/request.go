package sight

import (
	"encoding/json"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/mask"
)

// Request is a request as a reader sees it: the fields of
// [ringi.ApprovalRequest] that he may see, under the same names.
type Request struct {
	ID     string             `json:"id"`
	Space  string             `json:"space"`
	Thread string             `json:"thread"`
	RunID  string             `json:"run_id"`
	Agent  string             `json:"agent,omitempty"`
	Kind   ringi.RequestKind  `json:"kind"`
	State  ringi.RequestState `json:"state"`
	// Digest goes back with a decision.
	Digest       string         `json:"digest,omitempty"`
	Signature    string         `json:"signature,omitempty"`
	Call         Call           `json:"call"`
	Proposed     string         `json:"proposed,omitempty"`
	ProposedBy   string         `json:"proposed_by,omitempty"`
	Supplied     []string       `json:"supplied,omitempty"`
	Replaces     string         `json:"replaces,omitempty"`
	Tool         *ringi.Tool    `json:"tool,omitempty"`
	ToolDigest   string         `json:"tool_digest,omitempty"`
	Verdict      *ringi.Verdict `json:"verdict,omitempty"`
	Preview      *ringi.Preview `json:"preview,omitempty"`
	PreviewError string         `json:"preview_error,omitempty"`
	// PreviewHidden says that there is a preview, of a data class that none of
	// the reader's roles is shown. He may deny.
	PreviewHidden bool            `json:"preview_hidden,omitempty"`
	InputSchema   json.RawMessage `json:"input_schema,omitempty"`
	Initiators    []string        `json:"initiators,omitempty"`
	Deciders      *ringi.Deciders `json:"deciders,omitempty"`
	FourEyes      bool            `json:"four_eyes,omitempty"`
	Answers       []ringi.Answer  `json:"answers,omitempty"`
	Why           string          `json:"why,omitempty"`
	Evidence      string          `json:"evidence,omitempty"`
	// Foreign names the client whose own tool it is, which nobody registered;
	// Claim is what the client says of the call, and nobody checked.
	Foreign   string       `json:"foreign,omitempty"`
	Claim     *ringi.Claim `json:"claim,omitempty"`
	Untrusted bool         `json:"untrusted,omitempty"`
	Risk      ringi.Risk   `json:"risk,omitempty"`
	CreatedAt time.Time    `json:"created_at"`
	ExpiresAt time.Time    `json:"expires_at,omitzero"`
	// UseBy is how long an approval is good, in nanoseconds.
	UseBy         time.Duration `json:"use_by,omitempty"`
	ProposalWaits bool          `json:"proposal_waits,omitempty"`
	DecidedAt     time.Time     `json:"decided_at,omitzero"`
	DecidedBy     string        `json:"decided_by,omitempty"`
	// Reason is the decider's, which the model reads too.
	Reason string `json:"reason,omitempty"`
	// Masked are the places of the input that are masked, as JSON pointers (RFC
	// 6901).
	Masked []string `json:"masked,omitempty"`
}

// Call is a call as a reader sees it.
type Call struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Input is the text of the JSON that runs, where the reader may see it.
	Input   string `json:"input,omitempty"`
	ModelID string `json:"model_id,omitempty"`
	Raw     string `json:"raw,omitempty"`
}

// Request shows a request. previews says which previews its reader is shown;
// reason is its decider's.
func (s Sight) Request(r ringi.ApprovalRequest, previews Previews, reason string) Request {
	out := Request{ID: r.ID, Space: r.Space, Thread: r.Thread, RunID: r.RunID, Agent: r.Agent, Kind: r.Kind, State: r.State,
		Call: Call{ID: r.Call.ID, Tool: r.Call.Tool}, Replaces: r.Replaces, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, DecidedAt: r.DecidedAt}
	if s < Waits {
		return Request{ID: r.ID, RunID: r.RunID, State: r.State, Kind: r.Kind}
	}
	out.Foreign, _, _ = ringi.Foreign(r.Call.Tool)
	secrets := Secrets(r)
	sweep := mask.NewSweeper(secrets)
	if s.input() {
		now := masked(r.Tool, r.Call.Input)
		out.Call.Input, out.Masked = sweep.Text(now.Text), now.Paths
		out.Call.Raw = sweep.Text(masked(r.Tool, r.Call.Raw).Text)
		out.Proposed = sweep.Text(masked(r.Tool, r.Proposed).Text)
		out.Call.ModelID = sweep.Text(r.Call.ModelID)
		out.Reason = sweep.Text(reason)
		out.Why = sweep.Text(r.Why)
		out.Supplied = r.Supplied
	}
	out.PreviewHidden = s.preview() && Blind(r, previews)
	if out.PreviewHidden {
		r.Preview, r.PreviewError = nil, ""
	}
	if s.preview() && r.Preview != nil {
		p := *r.Preview
		p.Text = sweep.Text(p.Text)
		p.Precondition = sweep.Text(p.Precondition)
		if s < Full {
			p.Precondition = ""
		}
		out.Preview = &p
	}
	if s == Client || s == Full {
		out.Claim = claimed(sweep, r.Claim)
	}
	if s == Client {
		v := r.Verdict
		v.Reason = sweep.Text(v.Reason)
		out.Verdict = &v
	}
	if s == Full {
		s.deciders(&out, r, sweep)
	}
	if out.PreviewHidden { // a reader that knows no more than the error is told so too
		out.PreviewError = "there is a preview, and it is not for your roles"
	}
	return out
}

// deciders adds what only who decides and who answers for it sees.
func (s Sight) deciders(out *Request, r ringi.ApprovalRequest, sweep mask.Sweeper) {
	tool, verdict, deciders := r.Tool, r.Verdict, r.Deciders
	verdict.Reason = sweep.Text(verdict.Reason)
	out.Tool, out.Verdict = &tool, &verdict
	if !deciders.IsZero() {
		out.Deciders = &deciders
	}
	out.Digest, out.Signature, out.ToolDigest = r.Digest, r.Signature, r.ToolDigest
	out.ProposedBy, out.DecidedBy = r.ProposedBy, r.DecidedBy
	out.PreviewError, out.Evidence = sweep.Text(r.PreviewError), sweep.Text(r.Evidence)
	out.InputSchema, out.Initiators, out.FourEyes, out.Answers = r.InputSchema, r.Initiators, r.FourEyes, r.Answers
	out.Untrusted, out.Risk, out.UseBy, out.ProposalWaits = r.Untrusted, r.Risk.OrHigh(), r.UseBy, r.ProposalWaits
}

// claimed is a client's claim without what is secret.
func claimed(sweep mask.Sweeper, c *ringi.Claim) *ringi.Claim {
	if c == nil {
		return nil
	}
	return &ringi.Claim{Reason: sweep.Text(c.Reason), Preview: sweep.Text(c.Preview), OnBehalfOf: sweep.Text(c.OnBehalfOf)}
}

// Secrets are the masked values of a request's inputs.
func Secrets(r ringi.ApprovalRequest) []string {
	var out []string
	for _, text := range []ringi.Input{r.Call.Input, r.Call.Raw, r.Proposed} {
		out = append(out, masked(r.Tool, text).Secrets...)
	}
	return out
}

// Place is a masked place of a request's input, and the text of the JSON that
// stands there.
type Place struct{ Pointer, Text string }

// Hidden are the places that Request masks in the input, under the pointers of
// its Masked. What of them may be shown, and to whom, is the caller's to ask
// and to record.
func Hidden(r ringi.ApprovalRequest) []Place {
	var out []Place
	m := masked(r.Tool, r.Call.Input)
	for i, p := range m.Paths {
		out = append(out, Place{p, m.Values[i]})
	}
	return out
}

// Typed are the masked values of what a person typed for a tool.
func Typed(tool ringi.Tool, input []byte) []string { return masked(tool, ringi.Input(input)).Secrets }

// masked masks an input by the schema that the model was offered, and by that
// of what a person supplies.
func masked(tool ringi.Tool, input ringi.Input) mask.Masked {
	return mask.Input(string(input), tool.InputSchema, tool.InputRequired)
}
