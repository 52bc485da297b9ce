package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

// stepping is one step in the making: what the model may see and is sent, and
// what its calls are judged by.
type stepping struct {
	n        int
	offer    *ringi.Offer    // shared with other runs
	msgs     []ringi.Message // as sent
	system   string
	model    ringi.Model
	zone     ringi.TrustZone
	tighten  ringi.Approval // PrepareStep's own floor
	prompt   string         // digest of what is sent
	attempts int
}

// step goes from what the model may see to a turn that is judged and recorded.
// What the turn allows is run by closeTurn; what asks pauses there.
func (a *activation) step(ctx context.Context) error {
	if done, err := a.budgetsOrStop(ctx); done || err != nil {
		return err
	}
	st, err := a.prepare(ctx, len(a.s.turns)+1, a.msgs)
	if serr := a.stopped(ctx); serr != nil {
		return serr // what was prepared under an ended context does not count
	}
	if err != nil {
		return a.end(ctx, ringi.Failed, ringi.ReasonModelFailed, err.Error())
	}
	if ok, err := a.mayRead(ctx, st); !ok || err != nil {
		return err
	}
	if err := a.claim(ctx); err != nil || !a.l.held || len(a.s.turns) >= st.n {
		return err // others went on with the run: drive looks anew
	}
	a.tellStepStart(ctx, st.n)
	st.prompt = a.promptDigest(st) // before a model could write into what it is sent
	turn, err := a.ask(&a.asking, st)
	if err != nil && a.isCut() {
		return a.reload(context.WithoutCancel(ctx)) // the wish to cancel is in the log
	}
	if err != nil {
		return a.askFailed(ctx, st, err)
	}
	ev := a.judgeTurn(ctx, st, turn)
	if err := a.stopped(ctx); err != nil && a.funcsAsked {
		return err // functions were asked under an ended context: no verdict of theirs counts
	}
	return a.recordTurn(ctx, st, ev)
}

// budgetsOrStop ends the run where a budget is used up or a stop condition
// holds. Budgets are read from the log, so they span a suspension.
func (a *activation) budgetsOrStop(ctx context.Context) (bool, error) {
	s, l := a.s, a.s.start.Limits
	t := s.turn()
	if t != nil && len(t.calls) == 0 {
		// A turn without calls is the last; it is recorded with the run's end,
		// but for a broken one.
		return true, a.end(ctx, ringi.Failed, ringi.ReasonModelFailed, "the model's turn ended early: "+string(t.ev.Finish))
	}
	if t != nil && len(a.e.cfg.StopWhen) > 0 && a.stopHolds(t) {
		return true, a.end(ctx, ringi.Completed, ringi.ReasonCompleted, "a stop condition holds")
	}
	if l.Steps > 0 && len(s.turns) >= l.Steps {
		return true, a.end(ctx, ringi.Completed, ringi.ReasonMaxSteps, "")
	}
	if l.ToolCalls > 0 && s.calls >= l.ToolCalls || a.treeFull(1) {
		return true, a.end(ctx, ringi.Completed, ringi.ReasonMaxToolCalls, "")
	}
	return false, nil
}

// stopHolds asks the stop conditions of the step that ended; one that panics
// holds.
func (a *activation) stopHolds(t *turn) (holds bool) {
	defer func() {
		if p := recover(); p != nil {
			a.e.log.Error("stop condition panicked", "run", a.s.id, "panic", fmt.Sprint(p))
			holds = true
		}
	}()
	info := StepInfo{Run: cloneInfo(a.info), Step: t.ev.Step, Usage: a.s.usage, Messages: cloneMessages(a.msgs)}
	for _, c := range t.calls {
		info.Calls = append(info.Calls, c.toolCall())
		info.Results = append(info.Results, *c.result)
	}
	for _, f := range a.e.cfg.StopWhen {
		if f(info) {
			return true
		}
	}
	return false
}

// prepare makes the step: PrepareStep first, then the gates, so that what a
// plan changed is gated like everything else.
func (a *activation) prepare(ctx context.Context, n int, msgs []ringi.Message) (*stepping, error) {
	st := &a.step1
	*st = stepping{n: n, msgs: msgs[:len(msgs):len(msgs)], system: a.s.start.System, model: a.e.cfg.Model, zone: a.e.zone(a.s.start.Zone)}
	a.info.Step = n
	narrow := a.narrow()
	st.offer = a.offer(st.zone, narrow)
	if a.e.cfg.PrepareStep == nil {
		return st, nil
	}
	plan, err := a.plan(ctx, n, msgs)
	if err != nil {
		return nil, fmt.Errorf("prepare step %d: %w", n, err)
	}
	if err := policy.Check(plan.Approval, ringi.Approval{}, nil, a.e.reg); err != nil {
		return nil, fmt.Errorf("prepare step %d: %w", n, err)
	}
	if plan.Model != nil {
		st.model = plan.Model
		if plan.Zone != "" {
			st.zone = plan.Zone
		}
		if st.zone, err = zoneWith(st.zone, plan.Model); err != nil {
			return nil, fmt.Errorf("prepare step %d: %w", n, err)
		}
	}
	if plan.System != nil {
		st.system = *plan.System
	}
	if plan.Messages != nil {
		if st.msgs, err = given(plan.Messages, ringi.Principal{}); err != nil {
			return nil, fmt.Errorf("prepare step %d: %w", n, err)
		}
	}
	st.tighten = plan.Approval
	st.offer = a.offer(st.zone, narrow)
	if plan.Tools != nil {
		narrowed := *st.offer
		narrowed.Tools = slices.DeleteFunc(slices.Clone(narrowed.Tools), func(t ringi.Tool) bool {
			return !slices.Contains(plan.Tools, t.Name)
		})
		st.offer = &narrowed
	}
	return st, nil
}

// plan asks PrepareStep, recovered.
func (a *activation) plan(ctx context.Context, n int, msgs []ringi.Message) (plan StepPlan, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return a.e.cfg.PrepareStep(ctx, StepInfo{Run: cloneInfo(a.info), Step: n, Usage: a.s.usage, Messages: cloneMessages(msgs)})
}

// cloneMessages copies as deep as a function could reach in.
func cloneMessages(msgs []ringi.Message) []ringi.Message {
	out := slices.Clone(msgs)
	for i := range out {
		out[i].Calls = slices.Clone(out[i].Calls)
		out[i].Results = slices.Clone(out[i].Results)
	}
	return out
}

// zone is the less trusted of the recorded zone and today's.
func (e *Engine) zone(recorded ringi.TrustZone) ringi.TrustZone {
	return lessTrusted(recorded, e.cfg.Zone)
}

// zoneWith is the less trusted of a declared zone and the one that a model
// itself knows: a chain of models is as trusted as its least trusted one.
func zoneWith(declared ringi.TrustZone, m ringi.Model) (ringi.TrustZone, error) {
	zoned, ok := m.(ringi.ZonedModel)
	if !ok {
		return declared, nil
	}
	own := zoned.TrustZone()
	if own != "" && !own.Known() {
		return "", fmt.Errorf("model has unknown trust zone %q", own)
	}
	if declared != "" && !declared.Known() {
		return declared, nil // refused elsewhere, by its own name
	}
	return lessTrusted(declared, own), nil
}

// offered is an offer with its digest, computed once.
type offered struct {
	zone   ringi.TrustZone
	offer  ringi.Offer
	digest string
}

// offer applies the five gates, and narrows an unattended run's to what runs
// without a person. Gates and configuration are fixed for an activation.
func (a *activation) offer(zone ringi.TrustZone, narrow []string) *ringi.Offer {
	if a.cached == nil || a.cached.zone != zone {
		a.cached = a.e.offers.get(a, zone, narrow)
	}
	return &a.cached.offer
}

// offers keeps the offers of ordinary runs, which differ by zone and by
// whether an admin acts. A registry only grows, so its length says whether
// they still hold.
type offers struct {
	mu   sync.Mutex
	len  int
	kept map[offerKey]*offered
}

type offerKey struct {
	zone  ringi.TrustZone
	admin bool
}

func (o *offers) get(a *activation, zone ringi.TrustZone, narrow []string) *offered {
	plain := a.e.cfg.ObserveZoneUntil.IsZero() && narrow == nil && a.info.Groups == nil && a.s.start.Unattended == ringi.Attended
	if !plain {
		return a.makeOffer(zone, narrow)
	}
	k := offerKey{zone, a.info.By.Admin && !a.info.By.IsZero()}
	n := a.e.reg.Len()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kept == nil || o.len != n {
		o.len, o.kept = n, map[offerKey]*offered{}
	}
	made, ok := o.kept[k]
	if !ok {
		made = a.makeOffer(zone, narrow)
		o.kept[k] = made
	}
	return made
}

func (a *activation) makeOffer(zone ringi.TrustZone, narrow []string) *offered {
	o := a.e.gatesAt(a.asOf()).Offer(a.info, zone, narrow)
	if mode := a.s.start.Unattended; mode != ringi.Attended {
		answers := a.e.Unattended().Explain(o.Names())
		kept := make([]ringi.Tool, 0, len(o.Tools))
		for i, t := range o.Tools {
			if ans := answers[i].Answer; ans == ringi.UnattendedRuns || mode == ringi.PerCall && ans == ringi.UnattendedPerCall {
				kept = append(kept, t)
			}
		}
		o.Tools = kept
	}
	o.Tools = o.Tools[:len(o.Tools):len(o.Tools)]
	return &offered{zone: zone, offer: o, digest: a.offerDigest(o)}
}

// mayRead ends the run where the conversation holds data that the model's zone
// must not read: no model is called, whoever chose it.
func (a *activation) mayRead(ctx context.Context, st *stepping) (bool, error) {
	if !a.above(st.zone) {
		return true, nil
	}
	return false, a.end(ctx, ringi.Failed, ringi.ReasonTrustZone, a.aboveText(st.zone))
}

func (a *activation) aboveText(zone ringi.TrustZone) string {
	return fmt.Sprintf("the conversation holds %s, above the ceiling of zone %s", a.mark, zone)
}

// asOf is the time that gates are asked at. A step is as old as the newest
// event; a gate may stand open for days.
func (a *activation) asOf() time.Time {
	if a.g != nil {
		if at, err := a.e.now(context.Background()); err == nil {
			return at
		}
	}
	return a.s.newest
}

// above reports whether the conversation holds data above a zone's ceiling. An
// undeclared zone has none.
func (a *activation) above(zone ringi.TrustZone) bool {
	if zone == "" {
		return false
	}
	ceiling, ok := zone.Ceiling()
	return !ok || a.mark != "" && a.mark.Rank() > ceiling.Rank()
}

// claim takes the lease in a commit of its own: before a model call, and on
// every takeover that does not start with a tool.
func (a *activation) claim(ctx context.Context) error { return a.claimAs(ctx, false) }

// claimAs claims, and says whether that is progress: to ask a person is, since
// nothing of the run is tried meanwhile.
func (a *activation) claimAs(ctx context.Context, progress bool) error {
	if a.l.held {
		return nil
	}
	return a.commit(ctx, func() (*change, error) {
		if a.l.held || a.s.finished != nil {
			return nil, nil // held, or somebody else ended the run
		}
		return &change{status: ringi.Running, progress: progress}, nil
	})
}

// ask calls the model, and again where a call failed in a way that may pass:
// nothing of a broken turn has run.
func (a *activation) ask(ctx context.Context, st *stepping) (*ringi.ModelTurn, error) {
	tries := 1 + max(a.s.start.Limits.ModelRetries, 0)
	for {
		st.attempts++
		turn, err := a.generate(ctx, st)
		if err == nil {
			return turn, nil
		}
		if a.told() {
			a.emitLive(ringi.Event{Kind: ringi.EventStepDiscarded, RunID: a.s.id,
				Body: &ringi.StepDiscarded{Step: st.n, Attempt: st.attempts, Why: errText(err)}})
		}
		if ctx.Err() != nil || errors.Is(err, errLeft) || st.attempts >= tries {
			return nil, err
		}
		wait, again, err := retryWait(err, st.attempts)
		if !again {
			return nil, err
		}
		if sleep(ctx, wait); ctx.Err() != nil {
			return nil, err
		}
	}
}

// generation is one stream of the model, read to its closed turn.
type generation struct {
	a    *activation
	st   *stepping
	turn *ringi.ModelTurn
	err  error
}

// generate reads one stream of the model.
func (a *activation) generate(ctx context.Context, st *stepping) (*ringi.ModelTurn, error) {
	if a.told() {
		a.emitLive(ringi.Event{Kind: ringi.EventStepStarted, RunID: a.s.id, Body: &ringi.StepStarted{Step: st.n, Attempt: st.attempts}})
	}
	g := &a.gen
	*g = generation{a: a, st: st}
	if a.take == nil {
		a.take = g.take
	}
	g.read(ctx)
	switch {
	case g.err != nil:
		return nil, g.err
	case g.turn == nil:
		return nil, errors.New("model's stream ended without a turn")
	}
	return g.turn, nil
}

// read runs the model's iterator, recovered. It is called, not ranged over:
// that is one allocation a step.
func (g *generation) read(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			g.turn, g.err = nil, fmt.Errorf("model panicked: %v", p)
		}
	}()
	st := g.st
	st.model.Generate(ctx, ringi.ModelRequest{System: st.system, Messages: st.msgs, Tools: g.a.handOut(st), RunID: g.a.s.id,
		Thread: g.a.s.start.Thread, Step: st.n, Attempt: st.attempts})(g.a.take)
}

// handOut is the model's own copy of the offer: what it does to it changes no
// gate, and no other run's offer.
func (a *activation) handOut(st *stepping) []ringi.Tool {
	if len(a.shown) != len(st.offer.Tools) || len(a.shown) > 0 && a.shownOf != &st.offer.Tools[0] {
		a.shown = slices.Clone(st.offer.Tools)
		if len(a.shown) > 0 {
			a.shownOf = &st.offer.Tools[0]
		}
	}
	return a.shown
}

// take takes one event; false ends the stream.
func (g *generation) take(ev ringi.ModelEvent, err error) bool {
	switch {
	case g.err != nil: // an iterator that goes on after false
	case err != nil:
		g.err = err
	case g.turn != nil:
		g.err = errors.New("model spoke after its turn was closed")
	case ev.Turn != nil:
		g.turn = ev.Turn
	case g.a.told():
		g.a.deltas(g.st, &ev)
		if g.a.st != nil && g.a.st.left {
			g.err = errLeft
		}
	}
	return g.err == nil
}

func (a *activation) deltas(st *stepping, ev *ringi.ModelEvent) {
	if ev.TextDelta != "" {
		a.delta(ringi.EventTextDelta, ringi.Delta{Step: st.n, Attempt: st.attempts, Text: ev.TextDelta})
	}
	if ev.ReasoningDelta != "" {
		a.delta(ringi.EventReasoningDelta, ringi.Delta{Step: st.n, Attempt: st.attempts, Text: ev.ReasoningDelta})
	}
	if ev.InputDelta != "" {
		a.delta(ringi.EventInputDelta, ringi.Delta{Step: st.n, Attempt: st.attempts, Text: ev.InputDelta, Index: ev.CallIndex,
			Tool: ev.CallTool, Call: callID(a.s.id, st.n, ev.CallIndex)})
	}
}

// askFailed ends the run, or leaves it queued where the caller has gone.
func (a *activation) askFailed(ctx context.Context, st *stepping, err error) error {
	if errors.Is(err, errLeft) {
		return nil // drive gives the run back
	}
	if ctx.Err() != nil {
		return a.stopped(ctx)
	}
	return a.end(ctx, ringi.Failed, ringi.ReasonModelFailed, fmt.Sprintf("step %d, %d attempts: %s", st.n, st.attempts, errText(err)))
}

// errText is an error's text as the log keeps it. The error is somebody else's
// code: its text may panic, as that of a typed nil does.
func errText(err error) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = "the error's own text panicked"
		}
	}()
	return strings.ToValidUTF8(err.Error(), "\uFFFD")
}

// newTurn makes the event of a turn with room for its calls. Most turns hold
// one call or are the last: what they need is made at once.
func newTurn(calls int) *ringi.ModelResponded {
	switch calls {
	case 0:
		last := &struct {
			ev  ringi.ModelResponded
			end ringi.RunFinished
		}{}
		last.ev.Finished = &last.end
		return &last.ev
	case 1:
		made := &struct {
			ev   ringi.ModelResponded
			only [1]ringi.JudgedCall
		}{}
		made.ev.Calls = made.only[:]
		return &made.ev
	}
	return &ringi.ModelResponded{Calls: make([]ringi.JudgedCall, calls)}
}

// judgeTurn judges every call of the turn, before any of them runs.
func (a *activation) judgeTurn(ctx context.Context, st *stepping, t *ringi.ModelTurn) *ringi.ModelResponded {
	ev := newTurn(len(t.Calls))
	ev.Step, ev.Text, ev.Opaque, ev.Finish, ev.Usage = st.n, strings.ToValidUTF8(t.Text, "\uFFFD"), t.Opaque, t.Finish, t.Usage
	ev.OfferDigest, ev.PromptDigest = st.offerDigest(a), st.prompt
	if t := a.s.turn(); t != nil && t.ev.OfferDigest == ev.OfferDigest {
		ev.OfferDigest = "" // as in the step before
	}
	if st.attempts > 1 {
		ev.Attempt = st.attempts
	}
	if len(t.Calls) == 0 {
		if !t.Finish.Clean() {
			ev.Finished = nil
			return ev
		}
		*ev.Finished = ringi.RunFinished{Status: ringi.Completed, Reason: ringi.ReasonCompleted, Withheld: a.withheld(st)}
		return ev
	}
	j := a.judging(st)
	if a.values == nil {
		a.values = a.valueRoom[:0]
	}
	a.values = slices.Grow(a.values[:0], len(t.Calls))[:len(t.Calls)]
	clear(a.values)
	j.values = a.values
	for i := range t.Calls {
		c := &ev.Calls[i]
		raw := t.Calls[i]
		c.ID = callID(a.s.id, st.n, i)
		c.ModelID, c.Tool, c.Input = raw.ModelID, raw.Tool, raw.Input
		if !t.Finish.Clean() {
			c.Code, c.Text = ringi.CodeIncompleteTurn, "not executed: incomplete turn (the model's answer ended early: "+string(t.Finish)+")"
			continue
		}
		j.judge(ctx, c, i)
	}
	return ev
}

// idTail is what ids that are derived from a run's id share with it. A run id
// of another form than ours is named by its hash, so that no two runs derive
// the same.
func idTail(runID string) string {
	if tail, ok := strings.CutPrefix(runID, "run_"); ok && tail != "" && len(tail) <= 64 && !strings.Contains(tail, "_") {
		return tail
	}
	return hex16(sha256.Sum256([]byte(runID)))
}

// callID derives a call's id from its run, step and position.
func callID(runID string, step, pos int) string {
	b := make([]byte, 0, 48)
	b = append(b, "call_"...)
	b = append(b, idTail(runID)...)
	b = append(b, '_')
	b = strconv.AppendInt(b, int64(step), 10)
	b = append(b, '_')
	b = strconv.AppendInt(b, int64(pos), 10)
	return string(b)
}

// recordTurn commits the turn with every verdict. Where nothing of it can run
// before the requests are answered, they ride in the same commit.
func (a *activation) recordTurn(ctx context.Context, st *stepping, ev *ringi.ModelResponded) error {
	asks, early := a.turnShape(ev)
	var asked []*ask
	if asks && !early {
		asked = a.previews(ctx, st, ev)
		if err := a.stopped(ctx); err != nil {
			return err // a preview that was cut is none
		}
	}
	err := a.commit(ctx, func() (*change, error) {
		if a.s.cancel != nil || len(a.s.turns) >= st.n {
			return nil, nil
		}
		ch := a.of(ev, ringi.Running)
		if ev.Finished != nil {
			ch.status, ch.reason, ch.release = ev.Finished.Status, ev.Finished.Reason, true
			return ch, nil
		}
		if asked != nil {
			if err := a.put(ctx, ch, asked); err != nil {
				return nil, err
			}
		}
		return ch, nil
	})
	if err != nil {
		return err
	}
	if t := a.s.turn(); t != nil && t.ev == ev {
		a.spend(len(ev.Calls))
		a.markFresh(t)
		a.stepping = st
		if !t.open() {
			a.extendMessages()
			a.tellStepEnd(ctx, t)
		}
	}
	return nil
}

// markFresh remembers that the verdicts of a turn are this activation's own.
func (a *activation) markFresh(t *turn) {
	for _, c := range t.calls {
		c.fresh = true
		if c.pos < len(a.values) {
			c.value = a.values[c.pos]
		}
	}
	if a.at == nil {
		a.at = a.atRoom[:0]
	}
	if len(a.at) < len(a.s.turns) {
		a.at = append(a.at, len(a.msgs))
	}
}

// turnShape says whether a call of the turn asks, and whether another may run
// before it is answered.
func (a *activation) turnShape(ev *ringi.ModelResponded) (asks, early bool) {
	hold := a.s.start.TurnMode == ringi.Hold
	for i := range ev.Calls {
		c := &ev.Calls[i]
		switch {
		case c.Code != "":
		case c.Asks != "":
			asks = true
		case !hold && (!asks || a.e.readOnly(c.Tool)):
			early = true
		}
	}
	return asks, early && asks
}

func (e *Engine) readOnly(name string) bool {
	effect, ok := e.reg.RunEffect(name)
	return ok && effect == ringi.ReadOnly
}

// offerDigest names what this step's model was offered.
func (st *stepping) offerDigest(a *activation) string {
	if c := a.cached; c != nil && c.zone == st.zone && len(c.offer.Tools) == len(st.offer.Tools) {
		return c.digest
	}
	return a.offerDigest(*st.offer)
}

func (a *activation) offerDigest(o ringi.Offer) string {
	if len(o.Tools) == 0 {
		return ""
	}
	buf := make([]byte, 0, 1024)
	for i := range o.Tools {
		buf = append(buf, a.e.reg.Digest(o.Tools[i].Name)...)
	}
	return hex16(sha256.Sum256(buf))
}

// promptDigest names what the model was sent. The conversation is hashed as it
// grows, each digest over the one before, so that a long run costs no more a
// step than a short one.
func (a *activation) promptDigest(st *stepping) string {
	if len(st.msgs) != len(a.msgs) || len(st.msgs) > 0 && &st.msgs[0] != &a.msgs[0] || st.system != a.s.start.System {
		sum := promptOpening(st.system)
		return hex16(sha256.Sum256(appendMessages(sum[:], st.msgs)))
	}
	if a.hashed == 0 {
		a.prompt = a.e.opening
		if st.system != a.e.cfg.System {
			a.prompt = promptOpening(st.system)
		}
	}
	// One link a step: what a process resumes gives the same digests.
	for _, n := range a.at {
		a.hashTo(n)
	}
	a.hashTo(len(a.msgs))
	return hex16(a.prompt)
}

// promptOpening is the digest of a prompt without messages.
func promptOpening(system string) [sha256.Size]byte {
	return sha256.Sum256(appendFields(nil, "ringi-prompt-v1", system))
}

func (a *activation) hashTo(n int) {
	if n > a.hashed {
		var room [1024]byte
		a.prompt, a.hashed = sha256.Sum256(appendMessages(append(room[:0], a.prompt[:]...), a.msgs[a.hashed:n])), n
	}
}

func hex16(sum [sha256.Size]byte) string {
	var text [32]byte
	hex.Encode(text[:], sum[:16])
	return string(text[:])
}

// appendMessages appends what of messages a digest covers: all that a model is
// sent.
func appendMessages(b []byte, msgs []ringi.Message) []byte {
	for i := range msgs {
		m := &msgs[i]
		b = appendFields(b, string(m.Role), m.Text, m.Opaque)
		for k := range m.Calls {
			b = appendFields(b, m.Calls[k].ModelID, m.Calls[k].Tool, string(m.Calls[k].Input))
		}
		for k := range m.Results {
			r := &m.Results[k]
			b = appendFields(b, r.ModelID, r.Note, r.Output, r.Error)
		}
	}
	return b
}

// withheld is what an unattended run did without.
func (a *activation) withheld(st *stepping) []ringi.Withheld {
	if a.s.start.Unattended == ringi.Attended {
		return nil
	}
	var out []ringi.Withheld
	for _, t := range a.s.turns {
		for _, c := range t.calls {
			if c.judged.Code == ringi.CodeUnattended || c.result != nil && c.result.Code == ringi.CodeUnattended {
				out = append(out, ringi.Withheld{Tool: c.judged.Tool, CallID: c.judged.ID, Answer: ringi.UnattendedAsks, Reason: c.judged.Text})
			}
		}
	}
	all := a.e.gatesAt(a.asOf()).Offer(a.info, a.e.zone(a.s.start.Zone), a.narrow())
	for _, w := range a.e.Unattended().Explain(all.Names()) {
		if w.Answer != ringi.UnattendedRuns && !(w.Answer == ringi.UnattendedPerCall && a.s.start.Unattended == ringi.PerCall) {
			out = append(out, w)
		}
	}
	return out
}

func (a *activation) narrow() []string {
	if a.s.start.AllTools {
		return nil
	}
	if a.s.start.Tools == nil {
		return []string{}
	}
	return a.s.start.Tools
}

// end finishes the run. Every call without a result gets one, and every open
// request is closed, in the same commit.
func (a *activation) end(ctx context.Context, status ringi.RunStatus, reason ringi.Reason, detail string) error {
	return a.commit(ctx, func() (*change, error) {
		if a.s.finished != nil {
			return nil, nil
		}
		if a.g != nil && a.g.anyFlies() {
			return nil, fmt.Errorf("run %s: %w: a call is in flight", a.s.id, ringi.ErrBusy)
		}
		ch := &change{status: status, reason: reason, release: true, progress: true}
		code := ringi.CodeRunEnded
		if status == ringi.Cancelled {
			code = ringi.CodeCancelled
		}
		closeAll(a.s, ch, code, "the run ended: "+string(reason))
		if !utf8.ValidString(detail) {
			detail = strings.ToValidUTF8(detail, "\uFFFD")
		}
		ch.add(&ringi.RunFinished{Status: status, Reason: reason, Detail: detail, Withheld: a.withheld(nil)})
		return ch, nil
	})
}
