package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/risk"
	"github.com/ringi-dev/ringi/sign"
)

// ask is a request in the making: all but time, nonce and digest.
type ask struct {
	callID  string
	judged  *ringi.JudgedCall
	step    int
	pos     int
	n       int // earlier requests for the call
	kind    ringi.RequestKind
	verdict ringi.Verdict
	input   ringi.Input
	claim   *ringi.Claim
	preview *ringi.Preview
	noView  string

	proposed   bool
	proposedBy string
	supplied   []string
	replaces   string
	why        string // kind outcome

	// deciders and expires are a person's, where a request was handed over or
	// extended; zero for what run and configuration say.
	deciders ringi.Deciders
	expires  time.Time
}

// previews prepares the requests of a fresh turn, with a preview each.
func (a *activation) previews(ctx context.Context, st *stepping, ev *ringi.ModelResponded) []*ask {
	var out []*ask
	for i := range ev.Calls {
		c := &ev.Calls[i]
		if c.Asks == "" {
			continue
		}
		k := &ask{callID: c.ID, judged: c, step: st.n, pos: i, kind: c.Asks, verdict: c.Verdict, input: c.Input}
		a.preview(ctx, k)
		out = append(out, k)
	}
	return out
}

// askFor prepares a request for a call of the open turn.
func (a *activation) askFor(ctx context.Context, c *call) *ask {
	k := &ask{callID: c.judged.ID, judged: c.judged, step: c.step, pos: c.pos, n: a.s.asked(c), kind: c.asks, verdict: c.verdict, input: c.input}
	if r := c.request; r != nil {
		k.replaces = r.ev.Request
		if r.ev.Proposed { // a person's bytes stay the person's when they are asked again
			k.proposed, k.proposedBy, k.supplied = true, r.ev.ProposedBy, r.ev.Supplied
			if len(k.supplied) > 0 {
				k.kind = ringi.KindApproval
			}
		}
	}
	a.preview(ctx, k)
	return k
}

// asked counts the requests that a call has had.
func (s *state) asked(c *call) int {
	n := 0
	for _, r := range s.requests {
		if r.ev.Call == c.judged.ID {
			n++
		}
	}
	return n
}

// put makes the requests of a change: nonce, digest, signature, inbox row.
func (a *activation) put(ctx context.Context, ch *change, asks []*ask) error {
	at, err := a.e.now(ctx)
	if err != nil {
		return err
	}
	for _, k := range asks {
		ev, row, err := a.request(at, k)
		if err != nil {
			return fmt.Errorf("make request for call %s: %w", k.callID, err)
		}
		a.keepTool(ch, k.judged.Tool)
		if k.kind == ringi.KindOutcome {
			ch.add(&ringi.OutcomeUnknown{Call: k.callID, Why: k.why, Request: *ev})
		} else {
			ch.add(ev)
		}
		ch.rows = append(ch.rows, row)
	}
	ch.status = a.waitsWith(ch)
	ch.release = a.e.cfg.OnApprovalRequired == nil
	if !ch.release {
		ch.status = ringi.Running
	}
	return nil
}

// waitsWith is the state that the run waits in once the change is made.
func (a *activation) waitsWith(ch *change) ringi.RunStatus {
	st := a.s.waits()
	for i := range ch.rows {
		st = waitsAs(st, ch.rows[i].Kind)
	}
	return st
}

// keepTool snapshots a definition in the store, so that a process without the
// registry can show and decide.
func (a *activation) keepTool(ch *change, name string) {
	digest := a.e.reg.Digest(name)
	if digest == "" {
		return
	}
	if _, kept := a.e.kept.Load(digest); kept {
		return // by a commit that was made
	}
	if ch.tools == nil {
		ch.tools = map[string][]byte{}
	}
	ch.tools[digest] = a.e.reg.Definition(name)
}

// request makes one request with its inbox row.
func (a *activation) request(at time.Time, k *ask) (*ringi.ApprovalRequested, ringi.RequestRow, error) {
	e, s := a.e, a.s
	tool, _ := e.reg.Tool(k.judged.Tool)
	var nonce [sign.NonceSize]byte
	rand.Read(nonce[:])
	ev := &ringi.ApprovalRequested{
		Request: requestID(s.id, k.step, k.pos, k.n), Call: k.callID, Ask: k.kind, Nonce: base64.RawURLEncoding.EncodeToString(nonce[:]),
		ToolDigest: e.reg.Digest(k.judged.Tool), Verdict: k.verdict, Proposed: k.proposed, ProposedBy: k.proposedBy,
		Supplied: k.supplied, Replaces: k.replaces, Preview: k.preview, PreviewError: k.noView,
		Initiators: a.allInitiators(), Deciders: a.deciders(tool), FourEyes: fourEyes(FourEyes(s.start.FourEyes), tool),
		Answers: a.answers(tool, k), Untrusted: a.untrusted(), CreatedAt: at, UseBy: e.cfg.UseBy, Why: k.why,
	}
	if ev.ToolDigest == "" { // a tool that is gone: its outcome can still be told
		ev.ToolDigest = k.judged.ToolDigest
	}
	if ev.FourEyes && k.proposedBy != "" && !slices.Contains(ev.Initiators, k.proposedBy) {
		ev.Initiators = append(slices.Clone(ev.Initiators), k.proposedBy)
	}
	if k.proposed {
		ev.Input = k.input
	}
	if len(k.supplied) > 0 {
		ev.Told = e.reg.Told(k.judged.Tool, k.supplied)
	}
	if d := a.expiry(); d > 0 && k.kind != ringi.KindOutcome {
		ev.ExpiresAt = at.Add(d)
	}
	if !k.expires.IsZero() {
		ev.ExpiresAt = k.expires
	}
	if !k.deciders.IsZero() {
		ev.Deciders = k.deciders
	}
	if c := s.call(k.callID); c != nil {
		k.claim = c.claim
	}
	ev.Digest = e.digest(s, ev, k.judged.Tool, k.input, k.claim)
	if e.cfg.Keyring != nil {
		var err error
		if ev.Signature, err = e.cfg.Keyring.SignRequest(e.storeID, ev.Digest); err != nil {
			return nil, ringi.RequestRow{}, err
		}
	}
	// What the request has in common with its call is not written again.
	if ev.ToolDigest == k.judged.ToolDigest {
		ev.ToolDigest = ""
	}
	if ev.Verdict == k.judged.Verdict {
		ev.Verdict = ringi.Verdict{}
	}
	return ev, e.row(s, ev, k), nil
}

// expiry is how long the run's requests wait; 0 or less for ever.
func (a *activation) expiry() time.Duration {
	d := a.e.cfg.Expiry
	if a.s.start.Imported && (d <= 0 || d > tokenLife) {
		return tokenLife
	}
	return d
}

// requestID derives a request's id from its run, step, position and number.
func requestID(runID string, step, pos, n int) string {
	b := make([]byte, 0, 48)
	b = append(b, "req_"...)
	b = append(b, idTail(runID)...)
	b = append(b, '_')
	b = strconv.AppendInt(b, int64(step), 10)
	b = append(b, '_')
	b = strconv.AppendInt(b, int64(pos), 10)
	if n > 0 {
		b = append(b, '_')
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(b)
}

// answers are those that the request allows: approve and deny always, edit and
// respond where tool and agent allow them.
func (a *activation) answers(tool ringi.Tool, k *ask) []ringi.Answer {
	switch k.kind {
	case ringi.KindOutcome:
		return []ringi.Answer{ringi.Ran, ringi.DidNotRun, ringi.RunAgain}
	case ringi.KindResult:
		return []ringi.Answer{ringi.Respond, ringi.Deny}
	case ringi.KindInput, ringi.KindApprovalAndInput:
		return []ringi.Answer{ringi.Fill, ringi.Deny}
	}
	out := make([]ringi.Answer, 2, 4)
	out[0], out[1] = ringi.Approve, ringi.Deny
	if tool.AllowEdit && len(k.supplied) == 0 && !slices.Contains(a.e.cfg.ForbidAnswers, ringi.Edit) {
		out = append(out, ringi.Edit)
	}
	if tool.AllowRespond && !slices.Contains(a.e.cfg.ForbidAnswers, ringi.Respond) {
		out = append(out, ringi.Respond)
	}
	return out
}

// untrusted reports whether the run has read text from outside.
func (a *activation) untrusted() bool {
	if a.prior.untrusted {
		return true
	}
	for _, t := range a.s.turns {
		for _, c := range t.calls {
			if a.e.untrusted(c, a.s.start.Gate) {
				return true
			}
		}
	}
	return false
}

// row is the inbox's projection of a request; never the source of a grant.
// What it shows is read from the log.
func (e *Engine) row(s *state, ev *ringi.ApprovalRequested, k *ask) ringi.RequestRow {
	row := ringi.RequestRow{
		Space: s.space, ID: ev.Request, RunID: s.id, Thread: s.start.Thread, CallID: ev.Call, Kind: ev.Ask,
		Tool: k.judged.Tool, State: ringi.Pending, Digest: ev.Digest, CreatedAt: ev.CreatedAt, ExpiresAt: ev.ExpiresAt,
		Agent: s.start.Agent, People: ev.Deciders.People, Teams: ev.Deciders.Teams,
	}
	if len(ev.Initiators) > 0 {
		row.Initiator = ev.Initiators[0]
	}
	row.Text = e.searchText(&row, k.input)
	tool, _ := e.reg.Tool(row.Tool)
	row.Risk = risk.Of(&ringi.ApprovalRequest{Kind: ev.Ask, Tool: tool, Call: ringi.ToolCall{Tool: row.Tool, Input: k.input}, Untrusted: ev.Untrusted})
	return row
}

// describe fills in what a request shows, from its event.
func describe(v *ringi.ApprovalRequest, s *state, ev *ringi.ApprovalRequested) {
	v.ID, v.Space, v.Thread, v.RunID, v.Agent = ev.Request, s.space, s.start.Thread, s.id, s.start.Agent
	v.Kind, v.State, v.Digest, v.Signature = ev.Ask, ringi.Pending, ev.Digest, ev.Signature
	v.ProposedBy, v.Supplied, v.Replaces = ev.ProposedBy, ev.Supplied, ev.Replaces
	v.ToolDigest, v.Verdict, v.Preview, v.PreviewError = ev.ToolDigest, ev.Verdict, ev.Preview, ev.PreviewError
	v.Initiators, v.Deciders, v.FourEyes, v.Answers = ev.Initiators, ev.Deciders, ev.FourEyes, ev.Answers
	v.Untrusted, v.CreatedAt, v.ExpiresAt, v.UseBy, v.Why = ev.Untrusted, ev.CreatedAt, ev.ExpiresAt, ev.UseBy, ev.Why
}

// digest fixes everything that a request shows and binds, as one SHA-256 over
// length-prefixed fields: no two requests share their bytes. The nonce comes
// first, so that an erased short input cannot be found from the digest.
func (e *Engine) digest(s *state, ev *ringi.ApprovalRequested, tool string, input ringi.Input, claim *ringi.Claim) string {
	var room [1536]byte // most requests fit: no allocation
	buf := room[:0]
	buf = appendFields(buf, "ringi-request-v1", ev.Nonce, e.storeID, s.space, s.start.Thread, s.id, ev.Request, ev.Call, string(ev.Ask),
		tool, ev.ToolDigest, string(input))
	buf = appendFields(buf, string(ev.Verdict.Status), ev.Verdict.Source, ev.Verdict.Reason, ev.Why, ev.ProposedBy, ev.Replaces, ev.PreviewError)
	buf = appendList(buf, ev.Supplied)
	if ev.Preview != nil {
		buf = appendFields(buf, ev.Preview.Text, ev.Preview.Format, ev.Preview.Precondition)
	}
	buf = appendList(buf, ev.Initiators)
	buf = appendList(buf, ev.Deciders.People)
	buf = appendList(buf, ev.Deciders.Teams)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(ev.Answers)))
	for _, a := range ev.Answers {
		buf = appendFields(buf, string(a))
	}
	if claim != nil {
		buf = appendFields(buf, "claim", claim.Reason, claim.Preview, claim.OnBehalfOf)
	}
	// The flags stand at a fixed distance from the end: they say which of the
	// fields above are there.
	var flags byte
	for i, f := range []bool{ev.FourEyes, ev.Proposed, ev.Untrusted, ev.Preview != nil, ev.ExpiresAt.IsZero(), claim != nil} {
		if f {
			flags |= 1 << i
		}
	}
	buf = append(buf, flags)
	buf = binary.BigEndian.AppendUint64(buf, uint64(ev.CreatedAt.UnixMicro()))
	buf = binary.BigEndian.AppendUint64(buf, uint64(ev.ExpiresAt.UnixMicro()))
	buf = binary.BigEndian.AppendUint64(buf, uint64(ev.UseBy))
	sum := sha256.Sum256(buf)
	return hexText(sum[:])
}

// hexText is hex.EncodeToString with one allocation.
func hexText(b []byte) string {
	var text [64]byte
	return string(hex.AppendEncode(text[:0], b))
}

func appendFields(dst []byte, fields ...string) []byte {
	for _, f := range fields {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(f)))
		dst = append(dst, f...)
	}
	return dst
}

func appendList(dst []byte, list []string) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(list)))
	return appendFields(dst, list...)
}

// view is a request as it stands, with the tool's definition as it was asked
// for: from this registry where the digest is the same, else from the store.
func (e *Engine) view(ctx context.Context, s *state, r *request) ringi.ApprovalRequest {
	j := r.call.judged
	v := ringi.ApprovalRequest{Call: r.call.modelCall()}
	if r.ev.Proposed {
		v.Proposed, v.Call.Input, v.Call.Raw = j.Input, r.ev.Input, ""
	} else {
		v.Call.Input = e.inputOf(r)
	}
	describe(&v, s, r.ev)
	v.Claim = r.call.claim
	v.State, v.ProposalWaits = r.state, r.proposal != nil
	if d := r.decided; d != nil {
		v.DecidedAt, v.DecidedBy = d.At, d.By.ID
	}
	if d := r.settled; d != nil {
		v.DecidedAt, v.DecidedBy = d.At, d.By.ID
	}
	v.Tool, _ = e.definition(ctx, j.Tool, r.ev.ToolDigest)
	if r.ev.Ask == ringi.KindInput || r.ev.Ask == ringi.KindApprovalAndInput {
		v.InputSchema = v.Tool.InputRequired
	}
	if r.outcomeKind() {
		v.Evidence = e.evidence(ctx, s, r)
	}
	v.Risk = risk.Of(&v)
	return v
}

// inputOf is the input that a request showed.
func (e *Engine) inputOf(r *request) ringi.Input {
	if r.ev.Proposed {
		return r.ev.Input
	}
	return r.call.judged.Input
}

// definition finds a tool's definition by its digest: from this registry where
// that is the same, else from the store. A store is not believed: what it keeps
// must have the digest. Where nothing fits, the name alone is known, and the
// error says so.
func (e *Engine) definition(ctx context.Context, name, digest string) (ringi.Tool, error) {
	if e.reg.Digest(name) == digest && digest != "" {
		t, _ := e.reg.Tool(name)
		return t, nil
	}
	if t, ok := e.read.get(name, digest); ok {
		return t, nil
	}
	bare := ringi.Tool{Name: name}
	b, err := e.store.Tool(ctx, digest)
	if err != nil {
		return bare, fmt.Errorf("read definition of tool %q: %w", name, err)
	}
	t, err := ringi.DecodeTool(b)
	if err != nil {
		return bare, fmt.Errorf("read definition of tool %q: %w: %w", name, ringi.ErrCorrupt, err)
	}
	if d, err := t.Digest(); err != nil || d != digest || t.Name != name {
		return bare, fmt.Errorf("read definition of tool %q: %w: it does not match its digest", name, ringi.ErrCorrupt)
	}
	e.read.put(t, digest)
	return t, nil
}

// definitions remembers what was read of the store and has its digest. A list of
// requests asks for the same few again and again.
type definitions struct {
	mu sync.Mutex
	by map[string]ringi.Tool // by digest
}

// maxDefinitions bounds them: foreign loops may bring any number.
const maxDefinitions = 1000

func (d *definitions) get(name, digest string) (ringi.Tool, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, ok := d.by[digest]
	return t, ok && t.Name == name
}

func (d *definitions) put(t ringi.Tool, digest string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil || len(d.by) >= maxDefinitions {
		d.by = map[string]ringi.Tool{}
	}
	d.by[digest] = t
}

// evidence is the late result of a call whose outcome is unknown.
func (e *Engine) evidence(ctx context.Context, s *state, r *request) string {
	late, err := e.store.Attempts(ctx, s.space, s.id)
	if err != nil {
		return ""
	}
	for _, l := range slices.Backward(late) {
		if l.Kind == lateResult && l.CallID == r.ev.Call {
			return l.Detail
		}
	}
	return ""
}
