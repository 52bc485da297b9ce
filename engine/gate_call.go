package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
)

// The life of one call of a gate: judge, then look at what became of it, start
// and finish. Everything here holds Gate.mu.

// wish is a call as a loop gives it.
type wish struct {
	ringi.ToolCall
	claim *ringi.Claim
	ref   string // the loop's own name for it; empty: it comes once
}

// judge judges a new call, or looks at a known one.
func (g *Gate) judge(ctx context.Context, call wish) (*call, error) {
	if err := g.refresh(ctx); err != nil {
		return nil, err
	}
	if call.ID == "" {
		return g.first(ctx, call)
	}
	c := g.a.s.call(call.ID)
	if c == nil {
		return nil, fmt.Errorf("call %s: %w", call.ID, ringi.ErrNotFound)
	}
	if err := c.isThat(call.ToolCall); err != nil {
		return nil, err
	}
	return g.look(ctx, c)
}

// known is the call that was judged for the same wish before, or nil.
func (g *Gate) known(given wish) *call {
	id, ok := g.a.s.refs[given.ref]
	if !ok {
		return nil
	}
	return g.a.s.call(id)
}

// isThat refuses a known id with another tool or other bytes. A loop may give
// the model's bytes or those that run.
func (c *call) isThat(given ringi.ToolCall) error {
	if given.Tool != "" && given.Tool != c.judged.Tool {
		return fmt.Errorf("call %s: %w: it is of tool %q", given.ID, ringi.ErrStale, c.judged.Tool)
	}
	switch given.Input {
	case "", c.judged.Input, c.judged.Raw, c.input:
		return nil
	}
	return fmt.Errorf("call %s: %w: its id is known with other bytes", given.ID, ringi.ErrStale)
}

// refresh takes in what others committed.
func (g *Gate) refresh(ctx context.Context) error {
	a := g.a
	row, err := g.e.store.Row(ctx, a.space, a.id)
	if err != nil {
		return fmt.Errorf("read run %s: %w", a.id, err)
	}
	if row.Seq == a.s.chain.Seq && row.Head == a.s.chain.Head && row.Corrupt == "" {
		return nil
	}
	if err := a.reload(ctx); err != nil {
		return err
	}
	a.mark = a.markOf()
	return nil
}

// errMoved says that another process was first, and all is judged anew.
var errMoved = errors.New("the run has moved")

// first judges a new call and commits it.
func (g *Gate) first(ctx context.Context, given wish) (*call, error) {
	a := g.a
	for range 1000 {
		if c := g.known(given); c != nil {
			if err := c.isThat(ringi.ToolCall{ID: c.judged.ID, Tool: given.Tool, Input: given.Input}); err != nil {
				return nil, err
			}
			return g.look(ctx, c)
		}
		if err := g.mayGoOn(ctx); err != nil {
			return nil, err
		}
		n := len(a.s.turns) + 1
		ev, k, err := g.judgeNew(ctx, n, given)
		if err != nil {
			return nil, err
		}
		var ch *change
		var made [][32]byte // random bytes of what was tried before
		err = a.commit(ctx, func() (*change, error) {
			if ch != nil && ch.tried != ([32]byte{}) {
				made = append(made, ch.tried)
			}
			if slices.ContainsFunc(a.s.heads, func(r ringi.Record) bool { return slices.Contains(made, saltOf(&r)) }) {
				return nil, nil // the commit that reported a failure was made
			}
			if len(a.s.turns)+1 != n || a.s.finished != nil || a.s.cancel != nil {
				return nil, errMoved
			}
			ch = a.of(ev, ringi.Running)
			if k == nil {
				return ch, nil
			}
			return ch, a.put(ctx, ch, []*ask{k})
		})
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return nil, err
		}
		a.spend(1)
		return a.s.call(ev.Call.ID), nil
	}
	return nil, ringi.ErrConflict
}

// mayGoOn ends a run that is not to go on, and says so. What is in flight is
// recorded first: until it has come back nothing new starts.
func (g *Gate) mayGoOn(ctx context.Context) error {
	a := g.a
	if err := a.stopped(ctx); err != nil {
		return err
	}
	if a.s.finished == nil {
		status, reason, detail := g.endsAs(ctx)
		switch {
		case reason == "":
			return nil
		case g.anyFlies():
			return &ringi.RunError{RunID: a.id, Status: status, Reason: reason, Detail: detail, Err: ringi.ErrFinal}
		}
		if err := a.end(ctx, status, reason, detail); err != nil {
			return err
		}
	}
	f := a.s.finished
	return &ringi.RunError{RunID: a.id, Status: f.Status, Reason: f.Reason, Detail: f.Detail, Err: ringi.ErrFinal}
}

// endsAs says why the run is to end; no reason where it goes on.
func (g *Gate) endsAs(ctx context.Context) (ringi.RunStatus, ringi.Reason, string) {
	a := g.a
	switch zone := g.e.zone(a.s.start.Zone); {
	case a.s.cancel != nil:
		return ringi.Cancelled, ringi.ReasonCancelled, a.s.cancel.Reason
	case a.orphanedGate(ctx):
		return ringi.Cancelled, ringi.ReasonCancelled, "the call that started this run has ended"
	case slices.ContainsFunc(a.s.unanswered(), func(c *call) bool { return c.lost && c.outcome == nil }):
		return ringi.Failed, ringi.ReasonOutcomeUnknown, "" // nobody is there to say what became of it
	case a.deniedTooOften():
		return ringi.Failed, ringi.ReasonDeniedTooOften, ""
	case a.above(zone):
		return ringi.Failed, ringi.ReasonTrustZone, a.aboveText(zone)
	}
	return "", "", ""
}

// step is what a call is judged by: the offer, as of now.
func (g *Gate) step(n int) *stepping {
	zone := g.e.zone(g.a.s.start.Zone)
	g.a.cached = nil // a gate outlives tools and dates
	return &stepping{n: n, zone: zone, offer: g.a.offer(zone, g.a.narrow())}
}

// judgeNew gives a new call its verdict, and prepares the question that
// follows from it.
func (g *Gate) judgeNew(ctx context.Context, n int, given wish) (*ringi.CallJudged, *ask, error) {
	a, st := g.a, g.step(n)
	a.info.Step = n
	ev := &ringi.CallJudged{Number: n, Ref: given.ref, Call: ringi.JudgedCall{ID: callID(a.id, n, 0), ModelID: given.ModelID, Tool: given.Tool,
		Input: given.Input}, Claim: given.claim}
	c := &ev.Call
	j := a.judging(st)
	j.judge(ctx, c, 0)
	var k *ask
	if c.Asks != "" {
		k = &ask{callID: c.ID, judged: c, step: n, kind: c.Asks, verdict: c.Verdict, input: c.Input, claim: given.claim}
		a.preview(ctx, k)
	}
	return ev, k, a.stopped(ctx) // functions that were asked under an ended context have not spoken
}

// look brings a known call as far as it goes without running it: what time or
// a person changed is settled, and what must be asked anew is asked.
func (g *Gate) look(ctx context.Context, c *call) (*call, error) {
	a, id := g.a, c.judged.ID
	for range 100 {
		if c = a.s.call(id); c.result != nil {
			return c, nil
		}
		if err := a.stopped(ctx); err != nil {
			return nil, err
		}
		done, err := g.lookOnce(ctx, c)
		if err != nil {
			return nil, err
		}
		if done {
			return a.s.call(id), nil
		}
	}
	return nil, fmt.Errorf("call %s: %w", id, ringi.ErrConflict)
}

// lookOnce settles one thing. It reports whether nothing is left to settle.
func (g *Gate) lookOnce(ctx context.Context, c *call) (bool, error) {
	a := g.a
	if moved, err := a.settleCall(ctx, c); moved || err != nil {
		return false, err
	}
	switch {
	case c.waitsFor() != nil:
		return true, nil
	case g.flies(c):
		return true, nil
	case a.s.cancel != nil || a.s.finished != nil || c.lost && c.outcome == nil:
		err := g.mayGoOn(ctx)
		if now := a.s.call(c.judged.ID); now.result != nil {
			return true, nil // it got one as the run ended
		}
		return false, err
	case len(c.started) > 0 && !c.again:
		return a.unfinished(ctx, c)
	case c.again:
		return false, g.askAgain(ctx, c)
	}
	return true, nil
}

// settleCall settles what time or a person changed about a call's requests. It
// reports whether something moved.
func (a *activation) settleCall(ctx context.Context, c *call) (bool, error) {
	r := c.request
	if r == nil || !r.state.Open() {
		return false, nil
	}
	at, err := a.e.now(ctx)
	if err != nil {
		return false, err
	}
	return a.settleRequest(ctx, r, at)
}

// unfinished deals with a call that was started and did not come back in its
// time. What may be repeated may be started again; the outcome of anything
// else is unknown. It reports whether the call stands as it is.
func (a *activation) unfinished(ctx context.Context, c *call) (bool, error) {
	if a.e.repeatable(c) {
		return true, nil
	}
	if found, err := a.lookUp(ctx, c); found || err != nil {
		return false, err
	}
	return false, a.unknown(ctx, c, "the call was started, and nobody finished it in its time")
}

// repeatable reports whether a started call may run again: by the stricter of
// what it was started as and what the tool is now.
func (e *Engine) repeatable(c *call) bool {
	tool, ok := e.reg.Tool(c.judged.Tool)
	return ok && !stricterBefore(c) && tool.RunEffect().Repeatable()
}

// flies reports whether a call runs: here, or, within its time, elsewhere.
func (g *Gate) flies(c *call) bool {
	if f := g.here[c.judged.ID]; f != nil {
		is := f.a != nil || f.nth == c.starts && !c.again // another process may have finished it, and more
		if is && (f.a != nil || f.limit <= 0 || !g.late(f.since, f.limit)) {
			return true
		}
		g.landed(c.judged.ID, f)
	}
	if len(c.started) == 0 || c.result != nil || c.again || c.lost {
		return false
	}
	limit := g.a.timeOf(c)
	return limit <= 0 || !g.late(c.startedAt, limit)
}

// anyFlies reports whether any call of the run is in flight.
func (g *Gate) anyFlies() bool { return slices.ContainsFunc(g.a.s.unanswered(), g.flies) }

// late reports whether more than limit has passed in the store's time. Where
// that cannot be read, nothing is late.
func (g *Gate) late(since time.Time, limit time.Duration) bool {
	at, err := g.e.now(context.Background())
	return err == nil && at.Sub(since) >= limit
}

// timeOf is how long a call may take; 0 or less for no limit.
func (a *activation) timeOf(c *call) time.Duration {
	tool, _ := a.e.reg.Tool(c.judged.Tool)
	return timeLimit(a.s.start.Limits, tool)
}

// landed forgets a call that ran here; another start of it stays.
func (g *Gate) landed(id string, f *inFlight) {
	if f != nil && g.here[id] == f {
		delete(g.here, id)
		close(f.done)
	}
}

// askAgain judges a call anew whose request came to nothing: taken back, not
// used in time, stale, or run again by a person's word. It was asked once, and
// is asked again whatever today's verdict is.
func (g *Gate) askAgain(ctx context.Context, c *call) error {
	a := g.a
	j := a.judgeAgain(ctx, g.step(c.step), c)
	if err := a.stopped(ctx); err != nil {
		return err
	}
	if j.Code != "" {
		return a.refuseOpen(ctx, c, j)
	}
	c.verdict, c.asks = j.Verdict, j.Asks
	if c.asks == "" {
		c.asks = ringi.KindApproval
	}
	return g.put(ctx, c)
}

// put asks about a call that waits for it.
func (g *Gate) put(ctx context.Context, c *call) error {
	a := g.a
	k := a.askFor(ctx, c)
	if err := a.stopped(ctx); err != nil {
		return err // a preview that was cut is none
	}
	return a.commit(ctx, func() (*change, error) {
		now := a.s.call(k.callID)
		if now == nil || now.result != nil || now.asked() || a.s.cancel != nil {
			return nil, nil
		}
		ch := &change{progress: true}
		return ch, a.put(ctx, ch, []*ask{k})
	})
}

// start starts a call that was judged. just says that it was judged in the
// same moment: policy is then not asked twice. A start on record is committed
// whatever the tool is: without it two processes could start the same read.
func (g *Gate) start(ctx context.Context, c *call, just, onRecord bool) (Started, error) {
	a, id := g.a, c.judged.ID
	for range 100 {
		if err := g.mayStart(c); err != nil {
			return Started{}, err
		}
		s, ok, err := g.grant(ctx, c, just, onRecord)
		if err != nil || ok {
			return s, err
		}
		if c, err = g.look(ctx, a.s.call(id)); err != nil {
			return Started{}, err
		}
		just = false
	}
	return Started{}, ringi.ErrConflict
}

// mayStart says why a call does not start now.
func (g *Gate) mayStart(c *call) error {
	switch r := c.waitsFor(); {
	case c.result != nil:
		return &ringi.ResultError{Result: *c.result}
	case r != nil:
		return &ringi.WaitingError{Request: g.e.view(context.Background(), g.a.s, r)}
	case g.flies(c):
		return &ringi.StartedError{CallID: c.judged.ID, Attempt: c.starts, At: c.startedAt}
	}
	return nil
}

// waitsFor is the request that keeps a call waiting, or nil.
func (c *call) waitsFor() *request {
	switch {
	case c.outcome != nil && c.outcome.state == ringi.Pending:
		return c.outcome
	case c.request != nil && c.request.state == ringi.Pending:
		return c.request
	}
	return nil
}

// grant makes the grant of a call and commits its start. It reports false
// where the state moved instead.
func (g *Gate) grant(ctx context.Context, c *call, just, onRecord bool) (Started, bool, error) {
	a := g.a
	tool, ok := a.e.reg.Tool(c.judged.Tool)
	if !ok {
		return Started{}, false, fmt.Errorf("tool %q is gone", c.judged.Tool)
	}
	var gr grant
	if c.approved() {
		if ok, err := a.mayspend(ctx, g.step(c.step), c, c.request); err != nil || !ok {
			return Started{}, false, err
		}
		gr, ok = grantByPerson(a.s, c, c.request)
	} else {
		if moved, err := g.judgeFresh(ctx, c, just); err != nil || moved {
			return Started{}, false, err
		}
		gr, ok = grantByPolicy(c)
	}
	if !ok {
		return Started{}, false, fmt.Errorf("call %s: %w", c.judged.ID, ringi.ErrConflict)
	}
	gr.effect = tool.RunEffect()
	gr.start = gr.start || onRecord || gr.effect != ringi.ReadOnly
	return g.begin(ctx, c, gr)
}

// begin commits the start under a grant.
func (g *Gate) begin(ctx context.Context, c *call, gr grant) (Started, bool, error) {
	a := g.a
	key, err := a.key(gr)
	if err != nil {
		return Started{}, false, err
	}
	s := Started{gate: g, grant: gr, call: c.toolCall(), key: key, begun: time.Now()}
	if gr.start {
		if ok, err := a.start(ctx, gr); err != nil || !ok {
			return Started{}, false, err
		}
	}
	at, err := a.e.now(context.WithoutCancel(ctx))
	if err != nil {
		at = s.begun
	}
	now := a.s.call(gr.callID)
	s.flight, s.nth = &inFlight{done: make(chan struct{}), since: at, limit: a.timeOf(now), nth: now.starts}, now.starts
	g.here[gr.callID] = s.flight
	return s, true, nil
}

// judgeFresh judges a call that nobody was asked about, right before it starts.
// Where policy now refuses or asks, that is committed instead.
func (g *Gate) judgeFresh(ctx context.Context, c *call, just bool) (bool, error) {
	a := g.a
	if just {
		c.fresh = true
		return false, nil
	}
	j := a.judgeAgain(ctx, g.step(c.step), c)
	if err := a.stopped(ctx); err != nil {
		return false, err
	}
	switch {
	case j.Code != "":
		return true, a.refuseOpen(ctx, c, j)
	case j.Asks != "" && len(c.started) > 0:
		return true, a.unknown(ctx, c, "the call was interrupted, and a person must be asked now before it is repeated")
	case j.Asks != "":
		c.verdict, c.asks = j.Verdict, j.Asks
		return true, g.put(ctx, c)
	}
	c.verdict, c.asks, c.fresh = j.Verdict, "", true
	return false, nil
}

// answerOf is a result as the loop tells it. What is neither a result nor an
// error of the tool's, nor a doubt, is refused: nothing is turned into success.
func answerOf(callID string, r ringi.ToolResult) (outcome, error) {
	f := ringi.FinishedCall{Call: callID, Outcome: ringi.OutcomeOK, Output: r.Output, Duration: r.Duration}
	switch {
	case r.Outcome == ringi.OutcomeInDoubt:
		return outcome{fin: f, unknown: "the loop does not know whether the call ran"}, nil
	case r.Code != "" && r.Code != ringi.CodeToolError && r.Code != ringi.CodeNotDone:
		return outcome{}, fmt.Errorf("%w: a tool's result has no code %q", ringi.ErrAnswer, r.Code)
	case r.Outcome != "" && r.Outcome != ringi.OutcomeOK && r.Outcome != ringi.OutcomeError:
		return outcome{}, fmt.Errorf("%w: outcome %q of a tool's result", ringi.ErrAnswer, r.Outcome)
	case r.Outcome == ringi.OutcomeOK && (r.Error != "" || r.Code != ""):
		return outcome{}, fmt.Errorf("%w: a result that is both ok and an error", ringi.ErrAnswer)
	case r.Outcome == ringi.OutcomeError || r.Error != "" || r.Code != "":
		f.Outcome, f.Code, f.Error = ringi.OutcomeError, cmp.Or(r.Code, ringi.CodeToolError), strings.ToValidUTF8(cmp.Or(r.Error, "the tool failed"), "\uFFFD")
	}
	return outcome{fin: f}, nil
}

// lateError says that a call was given up before its result came, and how it
// stands.
type lateError struct{ error }

func (e *lateError) Unwrap() []error { return []error{e.error, ringi.ErrLate} }

// finish commits what came of the nth start of a call.
func (g *Gate) finish(ctx context.Context, id string, nth int, flight *inFlight, out outcome) error {
	a := g.a
	ctx = context.WithoutCancel(ctx) // what was started is recorded, whoever has gone
	mine := g.here[id] == nil || g.here[id] == flight
	g.landed(id, flight)
	if err := g.refresh(ctx); err != nil {
		g.keepLate(id, out)
		return fmt.Errorf("record result: %w", err)
	}
	c := a.s.call(id)
	if r := c.waitsFor(); c.result != nil || r != nil || !mine || c.starts != nth || c.lost {
		if c.result == nil || c.outcome != nil {
			g.keepLate(id, out) // it was given up: evidence for a person, or against his word
		}
		switch {
		case c.result != nil:
			return &ringi.ResultError{Result: *c.result}
		case r != nil:
			return &lateError{&ringi.WaitingError{Request: g.e.view(ctx, a.s, r)}}
		case c.starts == nth:
			return &lateError{fmt.Errorf("%w: nobody knew what became of the call", ringi.ErrBusy)}
		}
		return &ringi.StartedError{CallID: id, Attempt: c.starts, At: c.startedAt}
	}
	if out.unknown != "" && len(c.started) == 0 {
		// A read that nobody was asked about: it may be called again, so nobody is asked what became of it.
		out = outcome{fin: failed(id, ringi.CodeToolError, "the read failed: "+out.unknown)}
	}
	if out.unknown != "" {
		if out.fin.Output != "" {
			g.keepLate(id, out) // what the loop has goes to whoever settles it
		}
		if err := a.unknown(ctx, c, out.unknown); err != nil {
			return err
		}
		return g.unfinishedAs(ctx, id)
	}
	out.fin.Output, out.fin.Truncated = cutText(out.fin.Output, a.s.start.Limits.ResultBytes, out.fin.Truncated)
	out.fin.Error, out.fin.Truncated = cutText(out.fin.Error, a.s.start.Limits.ResultBytes, out.fin.Truncated)
	if err := a.finish(ctx, out.fin); err != nil {
		return err
	}
	a.mark = higher(a.mark, a.e.classOf(a.s.call(id)))
	a.raise()
	if err := g.endIfDue(ctx); err != nil {
		a.e.log.Warn("end run of a gate", "run", a.id, "error", err) // the result is recorded; whoever comes next ends it
	}
	return nil
}

// endIfDue ends a run that was to end and waited for what was in flight.
func (g *Gate) endIfDue(ctx context.Context) error {
	if status, reason, detail := g.endsAs(ctx); reason != "" && g.a.s.finished == nil && !g.anyFlies() {
		return g.a.end(ctx, status, reason, detail)
	}
	return nil
}

// unfinishedAs says what became of a call whose outcome is unknown: a person is
// asked, or an unattended run has ended with it.
func (g *Gate) unfinishedAs(ctx context.Context, id string) error {
	c := g.a.s.call(id)
	if r := c.waitsFor(); r != nil {
		return &ringi.WaitingError{Request: g.e.view(ctx, g.a.s, r)}
	}
	err := g.mayGoOn(context.WithoutCancel(ctx))
	if c = g.a.s.call(id); c.result != nil {
		return &ringi.ResultError{Result: *c.result}
	}
	return err
}

func (g *Gate) keepLate(id string, out outcome) {
	g.e.keepLate(g.a.space, g.a.id, id, ringi.ToolResult{Output: out.fin.Output, Error: out.fin.Error}, nil)
}

// judged is where a call stands.
func (g *Gate) judged(ctx context.Context, c *call) Judged {
	out := Judged{Call: c.toolCall(), Verdict: c.verdict}
	switch r := c.waitsFor(); {
	case c.result != nil:
		res := *c.result
		out.Result = &res
	case r != nil:
		v := g.e.view(ctx, g.a.s, r)
		out.Request = &v
	default:
		out.InFlight = g.flies(c)
	}
	return out
}
