package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/strictjson"
	"github.com/ringi-dev/ringi/policy"
	"github.com/ringi-dev/ringi/sign"
)

// From a person's answer to the commit that records it. Nothing here runs a
// tool or asks a model: any process with store and key may do it. What is
// checked here from the store alone is checked again, with everything that a
// process with tools knows, before an approval is spent (mayspend).

const (
	reasonBytes  = 8 << 10
	respondBytes = 64 << 10
)

// Decide records a decision: first answer wins. Each refusal has its own
// error: *ringi.DecidedError, ErrStale, ErrExpired, ErrWithdrawn, ErrSpent,
// ErrNotPermitted, ErrNoPrincipal, ErrAnswer, ErrNowDenied, ErrNoKey,
// *ringi.InputError. The ctx bounds one commit.
func (e *Engine) Decide(ctx context.Context, d ringi.Decision) (ringi.Settled, error) {
	return e.decide(ctx, d, false)
}

func (e *Engine) decide(ctx context.Context, d ringi.Decision, callback bool) (ringi.Settled, error) {
	var set ringi.Settled
	err := e.checkAuthor(d)
	for try := 0; err == nil && try < 1000; try++ {
		var s *state
		var r *request
		if s, r, err = e.find(ctx, e.cfg.Space, d.RequestID); err != nil {
			break
		}
		if err = e.mayAnswer(ctx, s, r, d, callback); err != nil {
			break
		}
		switch d.Answer {
		case ringi.Edit, ringi.Fill:
			set, err = e.propose(ctx, s, r, d)
		case ringi.Ran, ringi.DidNotRun, ringi.RunAgain:
			set, err = e.recordOutcome(ctx, s, r, d)
		default:
			set, err = e.recordDecision(ctx, s, r, d)
		}
		if err == nil {
			return set, nil
		}
		if _, moved := errors.AsType[*ringi.RequestStateError](err); moved || errors.Is(err, ringi.ErrConflict) {
			err = nil // somebody was first: read again, and say who
			if ctx.Err() != nil {
				err = ctx.Err()
			}
		}
	}
	if err == nil {
		err = ringi.ErrConflict
	}
	e.refused(ctx, d, err)
	return ringi.Settled{}, fmt.Errorf("decide request %s: %w", d.RequestID, err)
}

// checkAuthor refuses what needs no store to refuse.
func (e *Engine) checkAuthor(d ringi.Decision) error {
	switch {
	case e.cfg.ReadOnly:
		return e.mayWrite()
	case d.By.IsZero():
		return ringi.ErrNoPrincipal
	case !d.Answer.Known():
		return fmt.Errorf("%w: %q", ringi.ErrAnswer, d.Answer)
	case len(d.Reason) > reasonBytes || len(d.Note) > reasonBytes:
		return fmt.Errorf("%w: reason and note hold at most 8 KiB", ringi.ErrTooLarge)
	case len(d.Result) > respondBytes:
		return fmt.Errorf("%w: an answer in a tool's place holds at most 64 KiB", ringi.ErrTooLarge)
	case d.Scope != ringi.ThisCall && d.Scope != ringi.ThisTool:
		return fmt.Errorf("%w: unknown scope %q", ringi.ErrAnswer, d.Scope)
	}
	for _, text := range []string{d.Reason, d.Note, d.Result, d.Input, d.By.ID, d.By.Name, d.By.Auth, d.Channel} {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%w: text is not valid UTF-8", ringi.ErrAnswer)
		}
	}
	return nil
}

// KeepRefusal keeps an attempt that was refused before the engine was asked.
func (e *Engine) KeepRefusal(ctx context.Context, d ringi.Decision, cause error) {
	row, err := e.store.Request(context.WithoutCancel(ctx), e.cfg.Space, d.RequestID)
	switch {
	case err == nil:
		e.attempted(ctx, row, d, cause)
	case !errors.Is(err, ringi.ErrNotFound):
		e.log.Warn("keep refused attempt", "request", d.RequestID, "error", err)
	}
}

// refused keeps an attempt beside the chain, where a request is concerned.
func (e *Engine) refused(ctx context.Context, d ringi.Decision, cause error) {
	if d.RequestID == "" {
		return
	}
	row, err := e.store.Request(context.WithoutCancel(ctx), e.cfg.Space, d.RequestID)
	if err != nil {
		row.Space = e.cfg.Space
	}
	e.attempted(ctx, row, d, cause)
}

func (e *Engine) attempted(ctx context.Context, row ringi.RequestRow, d ringi.Decision, cause error) {
	if e.cfg.ReadOnly {
		return
	}
	at, err := e.store.Now(context.WithoutCancel(ctx))
	if err != nil {
		return
	}
	err = e.store.Attempt(context.WithoutCancel(ctx), ringi.Attempt{Space: row.Space, RunID: row.RunID, RequestID: d.RequestID,
		CallID: row.CallID, Kind: "refused_" + string(d.Answer), By: d.By.ID, Channel: d.Channel, Detail: cause.Error(), At: at})
	if err != nil {
		e.log.Warn("keep refused attempt", "request", d.RequestID, "error", err)
	}
}

// mayAnswer checks a decision against the log and the store alone: state,
// time, digest, signature, the decider's rule, the tool's stored definition.
func (e *Engine) mayAnswer(ctx context.Context, s *state, r *request, d ringi.Decision, callback bool) error {
	if err := e.isOpen(ctx, s, r); err != nil {
		return err
	}
	if d.Digest == "" || d.Digest != r.ev.Digest {
		return ringi.ErrStale
	}
	if err := e.verifyRequest(s, r); err != nil {
		return err
	}
	tool, err := e.definition(ctx, r.call.judged.Tool, r.ev.ToolDigest)
	if err != nil && d.Answer != ringi.Deny && !r.outcomeKind() {
		return err // nobody says yes to what cannot be shown
	}
	view := ringi.ApprovalRequest{Answers: r.ev.Answers}
	if !view.Allows(d.Answer) {
		return fmt.Errorf("%w: %s", ringi.ErrAnswer, d.Answer)
	}
	rule := policy.DecideRule{Deciders: r.ev.Deciders, FourEyes: r.ev.FourEyes, Initiators: r.ev.Initiators, AdminOnly: tool.AdminOnly,
		AllowProcess: callback}
	if err := e.mayDecide(ctx, rule, d.By, d.Answer, r.ev.ProposedBy); err != nil {
		return err
	}
	if err := checkAnswer(tool, s.start.Limits, d); err != nil {
		return err
	}
	if d.Answer == ringi.Approve || d.Answer == ringi.Respond {
		return e.notDeniedNow(ctx, s, r)
	}
	return nil
}

// checkAnswer checks what a person wrote: a result, other input, typed values.
func checkAnswer(tool ringi.Tool, l ringi.Limits, d ringi.Decision) error {
	switch d.Answer {
	case ringi.Respond, ringi.Ran:
		if err := ringi.CheckResultDefinition(tool, d.Result); err != nil && d.Answer == ringi.Respond {
			return fmt.Errorf("%w: %w", ringi.ErrAnswer, err)
		}
	case ringi.Edit:
		lim := strictjson.Limits{Bytes: l.InputBytes, Depth: l.InputDepth}
		if _, err := strictjson.ParseObject(d.Input, lim); err != nil && !strictjson.IsEmptyObject(d.Input) {
			return &ringi.InputError{Tool: tool.Name, Code: ringi.CodeInvalidInput, Err: err}
		}
	case ringi.Fill:
		if n := l.InputBytes; n > 0 && len(d.Input) > n {
			return fmt.Errorf("%w: typed values", ringi.ErrTooLarge)
		}
		return ringi.CheckValues(tool, d.Input)
	}
	return nil
}

// isOpen gives each state its own error. A request past its time is closed
// here, by whoever comes late: nothing depends on a sweeper.
func (e *Engine) isOpen(ctx context.Context, s *state, r *request) error {
	switch r.state {
	case ringi.Pending:
	case ringi.Expired:
		return ringi.ErrExpired
	case ringi.Withdrawn:
		return ringi.ErrWithdrawn
	case ringi.Stale:
		return fmt.Errorf("%w: %s", ringi.ErrStale, r.why)
	default:
		err := &ringi.DecidedError{State: r.state, Decision: ringi.Decision{RequestID: r.ev.Request}}
		if d := r.decided; d != nil {
			err.Decision.Answer, err.Decision.By, err.Decision.Reason, err.Decision.Digest, err.At = d.Answer, d.By, d.Reason, d.Digest, d.At
		}
		if d := r.settled; d != nil {
			err.Decision.Answer, err.Decision.By, err.Decision.Digest, err.At = d.Answer, d.By, d.Digest, d.At
		}
		return err
	}
	if s.finished != nil || s.cancel != nil {
		return ringi.ErrWithdrawn
	}
	at, err := e.now(ctx)
	if err != nil {
		return err
	}
	if past(r.ev.ExpiresAt, at) {
		e.expire(ctx, s, r)
		return fmt.Errorf("%w at %s", ringi.ErrExpired, r.ev.ExpiresAt.Format(time.RFC3339))
	}
	if r.proposal != nil {
		return fmt.Errorf("%w: a proposal waits to be looked at", ringi.ErrStale)
	}
	return nil
}

// verifyRequest recomputes a request's digest from the log and checks its
// signature. A process without the key of a keyed store does not decide.
func (e *Engine) verifyRequest(s *state, r *request) error {
	if e.digest(s, r.ev, r.call.judged.Tool, e.inputOf(r), r.call.claim) != r.ev.Digest {
		return fmt.Errorf("%w: request %s does not match its digest", ringi.ErrCorrupt, r.ev.Request)
	}
	if e.cfg.Keyring == nil {
		if r.ev.Signature != "" {
			return ringi.ErrNoKey
		}
		return nil
	}
	return e.cfg.Keyring.VerifyRequest(e.storeID, r.ev.Digest, r.ev.Signature)
}

// notDeniedNow asks policy, where this process has what judges the run: what
// policy would refuse now cannot be approved.
func (e *Engine) notDeniedNow(ctx context.Context, s *state, r *request) error {
	if _, ok := e.reg.Tool(r.call.judged.Tool); !ok || len(policy.Missing(s.start.Judges, e.judgesNow())) > 0 {
		return nil
	}
	a, st, err := e.outside(ctx, s, r.call)
	if err != nil {
		return err
	}
	if ctx, err = a.context(ctx); err != nil {
		return err
	}
	j := a.judging(st)
	again := *r.call.judged
	if _, ok := j.known(&again); !ok {
		return fmt.Errorf("%w: %s", ringi.ErrNowDenied, again.Text)
	}
	tool, _ := e.reg.Tool(r.call.judged.Tool)
	v := j.verdict(ctx, tool, callOf(r))
	if ctx.Err() != nil {
		return context.Cause(ctx) // a function that was cut has not spoken
	}
	if v.Status == ringi.Denied || !v.Status.Known() {
		return fmt.Errorf("%w: %s", ringi.ErrNowDenied, v)
	}
	return nil
}

func callOf(r *request) ringi.ToolCall {
	c := r.call.toolCall()
	if r.ev.Proposed {
		c.Input = r.ev.Input
	}
	return c
}

// outside is an activation that holds no lease: it judges and makes requests
// for a decider, and drives nothing.
func (e *Engine) outside(ctx context.Context, s *state, c *call) (*activation, *stepping, error) {
	a := &activation{e: e, s: s, id: s.id, space: s.space, l: lease{owner: e.heart.owner}, gate: s.start.Gate}
	a.setInfo()
	if !e.asksFuncs(e.reg.Hooks(c.judged.Tool).NeedsApproval) && e.cfg.PrepareStep == nil {
		// Nobody looks at messages: the step is its offer.
		zone := e.zone(s.start.Zone)
		return a, &stepping{n: c.step, zone: zone, offer: a.offer(zone, a.narrow())}, nil
	}
	prior, err := e.remember(ctx, s.space, s.start.Thread)
	if err != nil {
		return nil, nil, err
	}
	a.prior = prior
	a.prepareMessages()
	st, err := a.stepOf(ctx, s.turns[c.step-1])
	return a, st, err
}

// recordDecision commits approve, deny or respond, with its signature.
func (e *Engine) recordDecision(ctx context.Context, s *state, r *request, d ringi.Decision) (ringi.Settled, error) {
	at, err := e.now(ctx)
	if err != nil {
		return ringi.Settled{}, err
	}
	ev := &ringi.ApprovalDecided{Request: r.ev.Request, Answer: d.Answer, By: d.By, Channel: d.Channel, Reason: d.Reason, Note: d.Note,
		Scope: d.Scope, Digest: d.Digest, At: at}
	to := ringi.Refused
	switch d.Answer {
	case ringi.Approve:
		to = ringi.Granted
		ev.Bytes = r.blind(e.inputOf(r))
		ev.UseBy = at.Add(r.ev.UseBy)
		if r.ev.UseBy < 0 {
			ev.UseBy = time.Time{}
		}
	case ringi.Respond:
		to = ringi.Spent
		ev.Result = d.Result
		ev.Bytes = r.blind(ringi.Input(d.Result))
	}
	if ev.Signature, err = e.signDecision(r, d, ev.Bytes, at); err != nil {
		return ringi.Settled{}, err
	}
	first := ringi.RequestChange{ID: r.ev.Request, From: ringi.Pending, To: to, Live: true, DecidedAt: at, DecidedBy: d.By.ID, UseBy: ev.UseBy}
	changes := []ringi.RequestChange{first}
	if to == ringi.Spent { // answered in the tool's place: approved and spent at once
		changes[0].To = ringi.Granted
		changes = append(changes, ringi.RequestChange{ID: r.ev.Request, From: ringi.Granted, To: ringi.Spent})
	}
	ch := &change{settle: true, bodies: []ringi.EventBody{ev}, changes: changes}
	return e.record(ctx, s, r, ch)
}

// signDecision signs what its author decided; empty without a keyring.
func (e *Engine) signDecision(r *request, d ringi.Decision, bytes string, at time.Time) (string, error) {
	if e.cfg.Keyring == nil {
		return "", nil
	}
	sig, err := e.cfg.Keyring.SignDecision(e.tuple(r, d.Answer, bytes, d.Reason, d.By, at))
	if err != nil {
		return "", fmt.Errorf("sign decision: %w", err)
	}
	return sig, nil
}

func (e *Engine) tuple(r *request, answer ringi.Answer, bytes, reason string, by ringi.Principal, at time.Time) sign.Decision {
	auth := by.Auth
	if auth == "" {
		auth = "program" // the library's caller vouches for the principal
	}
	return sign.Decision{StoreID: e.storeID, RequestDigest: r.ev.Digest, Answer: string(answer), InputDigest: bytes,
		ReasonDigest: sign.ReasonDigest(r.nonce(), reason), Decider: by.ID, Authenticated: auth, At: at}
}

// nonce is the request's own, which blinds every digest of its bytes.
func (r *request) nonce() [sign.NonceSize]byte {
	var n [sign.NonceSize]byte
	base64.RawURLEncoding.Decode(n[:], []byte(r.ev.Nonce)) // a malformed one gives no digest that is on record
	return n
}

// record commits a settler's change. The run goes on only if it waits and
// nothing else is pending; while it runs, the change is recorded and its owner
// finds it.
func (e *Engine) record(ctx context.Context, s *state, r *request, ch *change) (ringi.Settled, error) {
	remaining := 0
	for _, o := range s.pending() {
		if o != r {
			remaining++
		}
	}
	// The store takes the status only where nobody drives the run.
	ch.status = s.waitsWithout(r)
	if ch.status == "" || s.proposed() || ch.proposes() {
		ch.status = ringi.Queued // a proposal is looked at whatever else is pending
	}
	ch.wake = ch.status == ringi.Queued && s.row.Status != ringi.Running
	if err := e.write(ctx, s, nil, ch); err != nil {
		return ringi.Settled{}, err
	}
	return ringi.Settled{RunID: s.id, Request: e.view(ctx, s, s.request(r.ev.Request)), Remaining: remaining}, nil
}

// proposed reports whether a proposal waits to be looked at.
func (s *state) proposed() bool {
	return slices.ContainsFunc(s.requests, func(r *request) bool { return r.proposal != nil })
}

// proposes reports whether the change records a proposal.
func (ch *change) proposes() bool {
	return slices.ContainsFunc(ch.bodies, func(b ringi.EventBody) bool { return b.Kind() == ringi.EventInputProposed })
}

// waitsWithout is the state that the run waits in once r is settled.
func (s *state) waitsWithout(r *request) ringi.RunStatus {
	was := r.state
	r.state = ringi.Stale
	defer func() { r.state = was }()
	return s.waits()
}

// recordOutcome commits a person's word on a call that may have run.
func (e *Engine) recordOutcome(ctx context.Context, s *state, r *request, d ringi.Decision) (ringi.Settled, error) {
	at, err := e.now(ctx)
	if err != nil {
		return ringi.Settled{}, err
	}
	ev := &ringi.OutcomeSettled{Request: r.ev.Request, Call: r.ev.Call, Answer: d.Answer, By: d.By, Channel: d.Channel, Reason: d.Reason,
		Note: d.Note, Digest: d.Digest, Result: d.Result, At: at}
	if ev.Signature, err = e.signDecision(r, d, r.blind(ringi.Input(d.Result)), at); err != nil {
		return ringi.Settled{}, err
	}
	ch := &change{settle: true, bodies: []ringi.EventBody{ev}, changes: []ringi.RequestChange{{ID: r.ev.Request, From: ringi.Pending,
		To: ringi.Granted, Live: true, DecidedAt: at, DecidedBy: d.By.ID}, {ID: r.ev.Request, From: ringi.Granted, To: ringi.Spent}}}
	return e.record(ctx, s, r, ch)
}

// TakeBack takes an approval back until it is spent: by its author, or by an
// admin. The call is asked again.
func (e *Engine) TakeBack(ctx context.Context, requestID string, by ringi.Principal, reason string) (ringi.Settled, error) {
	d := ringi.Decision{RequestID: requestID, By: by, Reason: reason, Answer: "take_back"}
	var err error
	if by.IsZero() {
		err = ringi.ErrNoPrincipal
	} else if len(reason) > reasonBytes || !utf8.ValidString(reason) {
		err = fmt.Errorf("%w: reason", ringi.ErrTooLarge)
	}
	for try := 0; err == nil && try < 1000; try++ {
		var s *state
		var r *request
		if s, r, err = e.find(ctx, e.cfg.Space, requestID); err != nil {
			break
		}
		if r.state != ringi.Granted {
			if err = e.isOpen(ctx, s, r); err == nil {
				err = fmt.Errorf("%w: request is not approved", ringi.ErrAnswer)
			}
			break
		}
		if by.ID != r.decided.By.ID && !(by.Admin && by.Kind == ringi.Person) {
			err = ringi.ErrNotPermitted
			break
		}
		ch := &change{settle: true, bodies: []ringi.EventBody{&ringi.ApprovalTakenBack{Request: requestID, By: by, Reason: reason}},
			changes: []ringi.RequestChange{{ID: requestID, From: ringi.Granted, To: ringi.Withdrawn}}}
		var set ringi.Settled
		if set, err = e.record(ctx, s, r, ch); err == nil {
			return set, nil
		}
		if _, moved := errors.AsType[*ringi.RequestStateError](err); moved || errors.Is(err, ringi.ErrConflict) {
			err = ctx.Err()
		}
	}
	if err == nil {
		err = ringi.ErrConflict
	}
	e.refused(ctx, d, err)
	return ringi.Settled{}, fmt.Errorf("take back request %s: %w", requestID, err)
}

// expire closes one pending request past its time, as a settler.
func (e *Engine) expire(ctx context.Context, s *state, r *request) bool {
	to := ringi.RequestClosed{Request: r.ev.Request, State: ringi.Expired, Why: "nobody decided in time"}
	if r.state == ringi.Granted {
		to.Why, to.Again = "the approval was not used in time", true
	}
	ch := &change{settle: true, bodies: []ringi.EventBody{&to},
		changes: []ringi.RequestChange{{ID: r.ev.Request, From: r.state, To: ringi.Expired, Past: true}}}
	_, err := e.record(ctx, s, r, ch)
	return err == nil
}

// Expire closes requests that are past their time in at most limit runs, and
// wakes what can go on. Nothing depends on it but promptness: a late Decide and
// Resume do the same for their own run.
func (e *Engine) Expire(ctx context.Context, limit int) (int, error) {
	if err := e.mayWrite(); err != nil {
		return 0, err
	}
	rows, err := e.store.Runnable(ctx, limit)
	if err != nil {
		return 0, fmt.Errorf("list runnable runs: %w", err)
	}
	at, err := e.now(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range rows {
		if row := &rows[i]; row.Space == e.cfg.Space {
			n += e.expireRun(ctx, row, at)
		}
	}
	return n, nil
}

// expireRun closes the requests of one run that are past their time.
func (e *Engine) expireRun(ctx context.Context, row *ringi.RunRow, at time.Time) int {
	// A run without an owner that has a deadline and does not wait is a gate's.
	if !row.Status.Waiting() && (row.Deadline.IsZero() || row.Owner != "") {
		return 0
	}
	s, err := e.load(ctx, row.Space, row.ID)
	if err != nil {
		e.log.Warn("expire requests", "run", row.ID, "error", err)
		return 0
	}
	if s.start.Gate {
		n, err := e.tendGate(ctx, s)
		if err != nil {
			e.log.Warn("tend gate", "run", row.ID, "error", err)
		}
		return n
	}
	n := 0
	for _, r := range s.openRequests() {
		deadline := r.ev.ExpiresAt
		if r.state == ringi.Granted {
			deadline = r.decided.UseBy
		}
		if past(deadline, at) && e.expire(ctx, s, r) {
			n++
		}
	}
	return n
}

// Request returns one request, read from the checked log.
func (e *Engine) Request(ctx context.Context, id string) (ringi.ApprovalRequest, error) {
	s, r, err := e.find(ctx, e.cfg.Space, id)
	if err != nil {
		return ringi.ApprovalRequest{}, err
	}
	v := e.view(ctx, s, r)
	if at, err := e.now(ctx); err == nil && v.State == ringi.Pending && past(v.ExpiresAt, at) {
		v.State = ringi.Expired
	}
	return v, nil
}

// Requests lists requests, in the order that q asks for: the store's rows say
// which, and each is read from its run's checked log, a run once. One whose run
// is corrupt is left out and logged.
func (e *Engine) Requests(ctx context.Context, q ringi.RequestQuery) (ringi.RequestPage, error) {
	var page ringi.RequestPage
	q.Space = e.cfg.Space
	rows, err := e.store.Requests(ctx, q)
	if err != nil {
		return page, fmt.Errorf("list requests: %w", err)
	}
	runs := map[string]*state{}
	for i := range rows {
		row := &rows[i]
		s, loaded := runs[row.RunID]
		if !loaded {
			if s, err = e.load(ctx, row.Space, row.RunID); err != nil {
				e.log.Warn("list request", "request", row.ID, "error", err)
				s = nil
			}
			runs[row.RunID] = s
		}
		if s == nil {
			continue
		}
		if r := s.request(row.ID); r != nil {
			v := e.view(ctx, s, r)
			v.State = row.State
			page.Requests = append(page.Requests, v)
		}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 50
	}
	limit = min(limit, 1000) // as the store does
	if len(rows) == limit {
		page.Next = rows[len(rows)-1].ID
	}
	return page, nil
}

// RequestTally counts what was settled from a time on and before another. It
// reads no log.
func (e *Engine) RequestTally(ctx context.Context, q ringi.RequestQuery, from, to time.Time) (ringi.RequestTally, error) {
	q.Space = e.cfg.Space
	t, err := e.store.RequestTally(ctx, q, from, to)
	if err != nil {
		return t, fmt.Errorf("tally requests: %w", err)
	}
	return t, nil
}

// RequestCount counts the rows of requests that Requests would list were it not
// for Limit and After, up to limit (0: 1,000; at most 1,000). It reads no log.
func (e *Engine) RequestCount(ctx context.Context, q ringi.RequestQuery, limit int) (int, error) {
	q.Space = e.cfg.Space
	n, err := e.store.RequestCount(ctx, q, limit)
	if err != nil {
		return 0, fmt.Errorf("count requests: %w", err)
	}
	return n, nil
}
