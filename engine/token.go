package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
	"github.com/ringi-dev/ringi/sign"
)

// imported is a turn that a client keeps, as its token carries it: JSON,
// base64url, a point, and the signature of a key made for nothing else.
type imported struct {
	Version   int          `json:"v"` // 1
	Run       string       `json:"run"`
	Space     string       `json:"space"`
	Thread    string       `json:"thread"`
	By        string       `json:"by"`
	Agent     string       `json:"agent,omitempty"`
	Judges    ringi.Judges `json:"judges"`   // what judged the turn
	Messages  string       `json:"messages"` // digest of those before the turn
	ExpiresAt time.Time    `json:"expires_at"`
	// Bodies are the turn and its requests as the log will keep them.
	Bodies []json.RawMessage `json:"bodies"`

	Turn     *ringi.ModelResponded     `json:"-"`
	Requests []ringi.ApprovalRequested `json:"-"`

	start *ringi.RunStarted
	asks  []*ask
	rows  []ringi.RequestRow
}

const tokenVersion = 1

// seal makes the requests of a turn, and the token.
func (s *Stateless) seal(ctx context.Context, a *activation, t ClientTurn, im *imported) (Asked, error) {
	e := s.e
	at, err := e.now(ctx)
	if err != nil {
		return Asked{}, err
	}
	im.Version, im.Space, im.Thread, im.By = tokenVersion, a.space, t.Thread, t.By.ID
	im.Agent, im.Judges = im.start.Agent, im.start.Judges
	im.ExpiresAt = at.Add(a.expiry())
	if im.Messages, err = historyDigest(t.Messages); err != nil {
		return Asked{}, err
	}
	out := Asked{}
	for _, k := range im.asks {
		ev, _, err := a.request(at, k)
		if err != nil {
			return Asked{}, fmt.Errorf("make request for call %s: %w", k.callID, err)
		}
		if ev.FourEyes {
			return Asked{}, fmt.Errorf("call of tool %q: %w: four eyes cannot be met where the asker answers", k.judged.Tool, ringi.ErrNotPermitted)
		}
		im.Requests = append(im.Requests, *ev)
	}
	if out.Pending, err = s.shown(ctx, a, im); err != nil {
		return Asked{}, err
	}
	if err := im.encode(); err != nil {
		return Asked{}, err
	}
	body, err := json.Marshal(im)
	if err != nil {
		return Asked{}, fmt.Errorf("encode token: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	sig, err := e.cfg.Keyring.Sign(sign.PurposeToken, e.storeID, tokenDigest(text))
	if err != nil {
		return Asked{}, fmt.Errorf("sign token: %w", err)
	}
	out.Token = text + "." + sig
	return out, nil
}

// encode writes the turn and its requests as payloads of the log.
func (im *imported) encode() error {
	bodies := []ringi.EventBody{im.Turn}
	for i := range im.Requests {
		bodies = append(bodies, &im.Requests[i])
	}
	for _, body := range bodies {
		b, err := audit.EncodeBody(body)
		if err != nil {
			return fmt.Errorf("encode token: %w", err)
		}
		im.Bodies = append(im.Bodies, b)
	}
	return nil
}

// decode reads them back: one turn, and at least one request.
func (im *imported) decode() error {
	if len(im.Bodies) < 2 {
		return errors.New("it asks nothing")
	}
	turn, err := audit.DecodeBody(ringi.EventModelResponded, im.Bodies[0])
	if err != nil {
		return err
	}
	im.Turn = turn.(*ringi.ModelResponded)
	for _, b := range im.Bodies[1:] {
		r, err := audit.DecodeBody(ringi.EventApprovalRequested, b)
		if err != nil {
			return err
		}
		im.Requests = append(im.Requests, *r.(*ringi.ApprovalRequested))
	}
	return nil
}

// shown are the requests as a person sees them: the turn is folded as it will
// be once it is imported.
func (s *Stateless) shown(ctx context.Context, a *activation, im *imported) ([]ringi.ApprovalRequest, error) {
	st := &state{space: a.space, id: a.id, start: a.s.start}
	turn := *im.Turn
	if err := st.apply(&ringi.Event{Seq: 2, Kind: turn.Kind(), Body: &turn}); err != nil {
		return nil, err
	}
	var out []ringi.ApprovalRequest
	for i := range im.Requests {
		r := im.Requests[i]
		if err := st.apply(&ringi.Event{Seq: int64(3 + i), Kind: r.Kind(), Body: &r}); err != nil {
			return nil, err
		}
		out = append(out, s.e.view(ctx, st, st.request(r.Request)))
	}
	return out, nil
}

// open reads a token, and holds it against who posts it and with what.
func (s *Stateless) open(ctx context.Context, t ClientTurn, token string) (*imported, error) {
	text, sig, ok := strings.Cut(token, ".")
	if !ok {
		return nil, fmt.Errorf("read token: %w", sign.ErrMalformed)
	}
	if err := s.e.cfg.Keyring.Verify(sign.PurposeToken, sig, s.e.storeID, tokenDigest(text)); err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("read token: %w", sign.ErrMalformed)
	}
	im := &imported{}
	if err := json.Unmarshal(body, im); err != nil || im.Version != tokenVersion {
		return nil, fmt.Errorf("read token: %w: it is of another version", sign.ErrMalformed)
	}
	if err := im.decode(); err != nil {
		return nil, fmt.Errorf("read token: %w: %w", sign.ErrMalformed, err)
	}
	switch digest, err := historyDigest(t.Messages); {
	case err != nil:
		return nil, err
	case t.By.IsZero():
		return nil, ringi.ErrNoPrincipal
	case im.By != t.By.ID:
		return nil, fmt.Errorf("%w: the turn is another principal's", ringi.ErrStale)
	case im.Space != s.e.cfg.Space || im.Thread != t.Thread:
		return nil, fmt.Errorf("%w: the turn is of another conversation", ringi.ErrStale)
	case im.Messages != digest:
		return nil, fmt.Errorf("%w: the conversation before the turn is not the one that was asked about", ringi.ErrStale)
	}
	return im, nil
}

// expired reports whether a token is past its time. Where the time cannot be
// read it is.
func (s *Stateless) expired(ctx context.Context, im *imported) bool {
	at, err := s.e.now(ctx)
	return err != nil || past(im.ExpiresAt, at)
}

// isRun reports whether a stored run was made of this token.
func (im *imported) isRun(s *state) error {
	same := s.start.Imported && s.start.Thread == im.Thread && s.start.By.ID == im.By
	for i := range im.Requests {
		r := s.request(im.Requests[i].Request)
		same = same && r != nil && r.ev.Digest == im.Requests[i].Digest
	}
	if !same {
		return fmt.Errorf("run %s: %w: it is not of this token", im.Run, ringi.ErrConflict)
	}
	return nil
}

// call finds a call of the turn.
func (im *imported) call(id string) *ringi.JudgedCall {
	for i := range im.Turn.Calls {
		if im.Turn.Calls[i].ID == id {
			return &im.Turn.Calls[i]
		}
	}
	return &ringi.JudgedCall{}
}

func (im *imported) tool(callID string) string { return im.call(callID).Tool }

func tokenDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// historyDigest names the conversation before a turn, as any JavaScript client
// would give it back: JSON is compared by value. Who wrote a message is not in
// it; the client does not know.
func historyDigest(msgs []ringi.Message) (string, error) {
	msgs, err := given(msgs, ringi.Principal{}) // each result with its call
	if err != nil {
		return "", err
	}
	var b []byte
	for i := range msgs {
		m := &msgs[i]
		b = appendFields(b, string(m.Role), m.Text, m.Opaque)
		for k := range m.Calls {
			c := &m.Calls[k]
			b = appendFields(b, "call", c.ID, c.ModelID, c.Tool, clientJSON(string(c.Input)))
		}
		for k := range m.Results {
			r := &m.Results[k]
			b = appendFields(b, "result", r.ModelID, string(r.Outcome), clientJSON(r.Output), r.Error)
		}
	}
	sum := sha256.Sum256(appendFields(nil, "ringi-history-v1", string(b)))
	return hex.EncodeToString(sum[:]), nil
}

// withoutRaw leaves out what a client says that its model wrote: nothing holds
// it against the input beside it.
func withoutRaw(msgs []ringi.Message) []ringi.Message {
	out := cloneMessages(msgs)
	for i := range out {
		for k := range out[i].Calls {
			out[i].Calls[k].Raw = ""
		}
	}
	return out
}

func clientJSON(text string) string {
	if b, err := sign.ClientJSON(text); err == nil {
		return string(b)
	}
	return text
}
