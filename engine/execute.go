package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/sign"
)

// This file is the only one that asks the registry for a handler. It takes a
// grant; there is no other way to run a tool.

// lateResult is the kind of an attempt that holds a result which came after
// its call was given up.
const lateResult = "late_result"

// run starts one call, and finishes it. It reports whether the turn must be
// looked at anew: the start was refused, or the outcome is unknown.
func (a *activation) run(ctx context.Context, g grant) (bool, error) {
	tool, ok := a.e.reg.Tool(g.tool)
	if !ok {
		return true, fmt.Errorf("run call %s: tool %q is gone", g.callID, g.tool)
	}
	g.effect = tool.RunEffect()
	g.start = g.start || g.effect != ringi.ReadOnly
	a.st.hold()
	defer a.st.release()
	key, err := a.key(g)
	if err != nil {
		return true, err
	}
	begun := time.Now()
	if g.start {
		if ok, err := a.start(ctx, g); !ok || err != nil {
			return true, err
		}
	}
	out := a.execute(ctx, tool, g, key, begun)
	if out.unknown != "" {
		c := a.s.call(g.callID)
		return true, a.unknown(ctx, c, out.unknown)
	}
	return false, a.finish(ctx, out.fin)
}

// start commits tool_started, and spends the approval in the same statement
// that compares its time.
func (a *activation) start(ctx context.Context, g grant) (bool, error) {
	started := false
	err := a.commit(ctx, func() (*change, error) {
		started = false
		c := a.s.call(g.callID)
		if c == nil || c.result != nil || a.s.cancel != nil || c.input != g.input || len(c.started)+1 != g.attempt {
			return nil, nil
		}
		ch := &change{status: ringi.Running, admit: a.admission(c)} // a start alone is no progress
		ev := &ringi.ToolStarted{Call: g.callID, Tool: g.tool, Effect: g.effect, Attempt: g.attempt, Request: g.request}
		if g.request != "" {
			r := a.s.request(g.request)
			again := r != nil && r.state == ringi.Spent && g.attempt > 1
			if r == nil || r.state != ringi.Granted && !again {
				return nil, nil // taken back, or closed, in between
			}
			if r.decided.Bytes != r.blind(g.input) {
				return nil, fmt.Errorf("start call %s: %w: the bytes are not those approved", g.callID, ringi.ErrCorrupt)
			}
			if !again {
				ch.changes = []ringi.RequestChange{{ID: g.request, From: ringi.Granted, To: ringi.Spent, Live: true}}
			}
		} else {
			ev.Input = sign.InputDigest([sign.NonceSize]byte{}, string(g.input))
		}
		ch.add(ev)
		started = true
		return ch, nil
	})
	if errors.Is(err, ringi.ErrNotAdmitted) {
		return false, a.notAdmitted(ctx, g, err)
	}
	if _, ok := errors.AsType[*ringi.RequestStateError](err); ok {
		return false, a.contradicted(ctx, g)
	}
	return started && err == nil, err
}

// contradicted reads the run anew where the store refused to spend an
// approval: it is past its time, or was settled. Where the log still says that
// it is good, the inbox's row contradicts it, and nothing goes on.
func (a *activation) contradicted(ctx context.Context, g grant) error {
	if err := a.reload(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	at, err := a.e.now(ctx)
	if err != nil {
		return err
	}
	if r := a.s.request(g.request); r != nil && r.state == ringi.Granted && !past(r.decided.UseBy, at) {
		return fmt.Errorf("start call %s: %w: the row of request %s contradicts the log", g.callID, ringi.ErrCorrupt, g.request)
	}
	return nil
}

// blind is the digest of bytes under the request's nonce.
func (r *request) blind(input ringi.Input) string {
	return sign.InputDigest(r.nonce(), string(input))
}

// outcome of one execution: a result, or why nobody knows.
type outcome struct {
	fin     ringi.FinishedCall
	unknown string
}

// execute runs the handler of a granted call: a read on this goroutine, with a
// cooperative time limit; anything else on one of its own, so that the engine
// can go on at the time limit.
func (a *activation) execute(ctx context.Context, tool ringi.Tool, g grant, key string, begun time.Time) outcome {
	handler, ok := a.e.reg.Handler(g.tool)
	if !ok {
		return outcome{fin: failed(g.callID, ringi.CodeNotDone, "tool has no handler here")}
	}
	return a.invoke(ctx, handler, tool, g, key, begun)
}

// invoke runs a handler under a grant: a tool's own, or a gate's loop's.
func (a *activation) invoke(ctx context.Context, handler ringi.ToolHandler, tool ringi.Tool, g grant, key string, begun time.Time) outcome {
	call := a.s.call(g.callID).toolCall()
	a.tellToolStart(ctx, call)
	limit := timeLimit(a.s.start.Limits, tool)
	from := begun
	if g.start {
		from = time.Now() // the commit of the start is not the tool's time
	}
	p := a.toolContext(&a.calling, &g, key, from, limit)
	defer p.over.Store(true)
	defer p.ctx.Cancel()
	if c := a.s.call(g.callID); c.value != nil && c.input == c.judged.Input {
		p.ctx.Checked, p.ctx.CheckedInput, c.value = c.value, string(c.input), nil
	}
	var out outcome
	if g.effect == ringi.ReadOnly {
		out = a.callInline(&p.ctx, handler, call)
	} else {
		out = a.callApart(&p.ctx, handler, call, limit, g, begun)
	}
	out.fin.Duration = time.Since(begun)
	if m := p.raised.Load(); m != nil {
		out.fin.Class = *m
	}
	return out
}

// timeLimit is how long a call of the tool may take; 0 or less for no limit.
func timeLimit(l ringi.Limits, tool ringi.Tool) time.Duration {
	limit := l.ToolTimeout
	if tool.Timeout > 0 && (limit <= 0 || tool.Timeout < limit) {
		limit = tool.Timeout
	}
	return limit
}

// overslept reports whether more than limit has passed by the larger of the
// monotonic and the wall clock: the first stands still while a machine sleeps.
func overslept(since time.Time, limit time.Duration) bool {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0))) > limit
}

// toolContext is what the handler runs under: the caller's values without its
// cancellation, what the engine tells the tool, and what a run that is started
// inside it inherits. The tool's time is limit, from the given moment on.
func (a *activation) toolContext(ctx context.Context, g *grant, key string, from time.Time, limit time.Duration) *parentage {
	p := &parentage{}
	a.parentageOf(p, g.callID)
	p.call = told{space: a.s.space, tool: g.tool, key: key, input: g.input, attempt: g.attempt}
	if key == "" {
		c := a.s.call(g.callID)
		p.call.step, p.call.pos = c.step, c.pos
	}
	if g.decider != "" {
		p.call.decider = opaque(a.e.storeID, g.decider)
	}
	p.ctx.Base, p.ctx.Tool, p.ctx.Run = ctx, p, p
	if limit > 0 {
		p.ctx.Until = from.Add(limit)
	}
	return p
}

// callInline runs a read here.
func (a *activation) callInline(ctx context.Context, h ringi.ToolHandler, call ringi.ToolCall) outcome {
	res, err, panicked := callRecovered(ctx, h, call)
	if panicked {
		a.e.log.Error("tool panicked", "run", a.s.id, "tool", call.Tool, "panic", err)
		return outcome{fin: failed(call.ID, ringi.CodeToolError, "the tool failed")}
	}
	return outcome{fin: a.finished(a.s.call(call.ID), res, err, 0)}
}

// callApart runs a write on a goroutine of its own. What does not return in
// time is unknown; what comes later is kept as evidence.
func (a *activation) callApart(ctx context.Context, h ringi.ToolHandler, call ringi.ToolCall, limit time.Duration, g grant, begun time.Time) outcome {
	type answer struct {
		res      ringi.ToolResult
		err      error
		panicked bool
	}
	done := make(chan answer, 1)
	var mu sync.Mutex
	gone := false
	runID, space := a.id, a.space // the activation may have gone on when an answer comes late
	go func() {
		ans := answer{err: errExited, panicked: true}
		defer func() { // also where the handler ends its goroutine
			mu.Lock()
			defer mu.Unlock()
			if gone && ans.err == errSlept {
				return // it was given up before it was called
			}
			if gone {
				a.e.keepLate(space, runID, call.ID, ans.res, ans.err)
				return
			}
			done <- ans
		}()
		// The last thing before the call: whatever stood in between, a process
		// that slept may have been taken over.
		mu.Lock()
		given := gone
		mu.Unlock()
		if given || overslept(begun, a.e.cfg.Lease/2) {
			ans.err = errSlept
			return
		}
		ans.res, ans.err, ans.panicked = callRecovered(ctx, h, call)
	}()
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	why := ""
	select {
	case ans := <-done:
		if !ans.panicked {
			return outcome{fin: a.finished(a.s.call(call.ID), ans.res, ans.err, 0)}
		}
		a.e.log.Error("tool panicked", "run", a.s.id, "tool", call.Tool, "panic", ans.err)
		why = "the tool panicked"
		if ans.err == errSlept {
			why = errSlept.Error()
		}
	case <-timeout:
		why = fmt.Sprintf("the tool did not return within %s", limit)
	case <-a.cuts():
		why = "the run was cancelled while the call was in flight"
	}
	mu.Lock()
	gone = true
	mu.Unlock()
	select {
	case ans := <-done: // it came in the same moment
		if !ans.panicked {
			return outcome{fin: a.finished(a.s.call(call.ID), ans.res, ans.err, 0)}
		}
	default:
	}
	if g.effect == ringi.IdempotentWrite {
		return outcome{fin: failed(call.ID, ringi.CodeToolError, why+"; it may have run, and may be called again without harm")}
	}
	return outcome{unknown: why}
}

var (
	errExited = errors.New("the function ended its goroutine")
	errSlept  = errors.New("the process slept past half its lease after the start was recorded; the call was not sent")
)

// callRecovered calls a handler; a panic is told apart from an error.
func callRecovered(ctx context.Context, h ringi.ToolHandler, call ringi.ToolCall) (res ringi.ToolResult, err error, panicked bool) {
	defer func() {
		if p := recover(); p != nil {
			err, panicked = fmt.Errorf("panic: %v", p), true
		}
	}()
	res, err = h(ctx, call)
	return res, err, false
}

// failed is a result that the engine gives for a tool that could not answer.
func failed(callID string, code ringi.ResultCode, text string) ringi.FinishedCall {
	return ringi.FinishedCall{Call: callID, Outcome: ringi.OutcomeError, Code: code, Error: text}
}

// finished makes the result of a handler that returned: its output, or its
// error, which is the tool's answer.
func (a *activation) finished(c *call, res ringi.ToolResult, err error, d time.Duration) ringi.FinishedCall {
	f := ringi.FinishedCall{Call: c.judged.ID, Outcome: ringi.OutcomeOK, Output: res.Output, Duration: d}
	switch {
	case err != nil:
		f.Outcome, f.Code, f.Error, f.Output = ringi.OutcomeError, ringi.CodeToolError, errText(err), ""
		if f.Error == "" {
			f.Error = "the tool failed"
		}
		if ringi.IsNotDone(err) {
			f.Code = ringi.CodeNotDone
		}
	case res.Error != "":
		f.Outcome, f.Code, f.Error, f.Output = ringi.OutcomeError, ringi.CodeToolError, res.Error, res.Output
	}
	limit := a.s.start.Limits.ResultBytes
	f.Output, f.Truncated = cutText(f.Output, limit, f.Truncated)
	f.Error, f.Truncated = cutText(f.Error, limit, f.Truncated)
	return f
}

// cutText bounds a text at a rune's border.
func cutText(s string, limit int, was bool) (string, bool) {
	if limit > 0 && len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
		return s, true
	}
	return s, was
}

// finish records results. A result of a tool that ran is never dropped: the
// commit is tried again over every conflict, and what cannot be recorded at
// all is kept as evidence.
func (a *activation) finish(ctx context.Context, fins ...ringi.FinishedCall) error {
	a.recording = true
	defer func() { a.recording = false }()
	err := a.commit(ctx, func() (*change, error) {
		open := fins // nearly always all of them
		if slices.ContainsFunc(fins, a.answered) {
			open = slices.DeleteFunc(slices.Clone(fins), a.answered)
		}
		if len(open) == 0 {
			return nil, nil
		}
		return a.of(&ringi.ToolFinished{Results: open}, ringi.Running), nil
	})
	if err != nil {
		for _, f := range fins {
			a.e.keepLate(a.s.space, a.s.id, f.Call, ringi.ToolResult{Output: f.Output, Error: f.Error}, nil)
		}
		return fmt.Errorf("record result: %w", err)
	}
	for _, f := range fins {
		if c := a.s.call(f.Call); c != nil && c.result != nil {
			a.tellToolEnd(ctx, c.result)
		}
	}
	return nil
}

// answered reports whether the call of a result has one already.
func (a *activation) answered(f ringi.FinishedCall) bool {
	c := a.s.call(f.Call)
	return c == nil || c.result != nil
}

// maxLate is how many late results are kept of a call: whoever sends more of
// them pushes nothing out, and nobody who looks has to read them all.
const maxLate = 10

// keepLate leaves a result beside the chain, for whoever settles the outcome.
func (e *Engine) keepLate(space, runID, callID string, res ringi.ToolResult, err error) {
	if e.hasLate(space, runID, callID) >= maxLate {
		e.log.Warn("late result is one too many, and not kept", "run", runID, "call", callID)
		return
	}
	text := res.Text()
	if err != nil {
		text = "error: " + errText(err)
	}
	text, _ = cutText(text, ringi.DefaultLimits().ResultBytes, false)
	at, nerr := e.store.Now(context.Background())
	if nerr != nil {
		at = time.Now()
	}
	aerr := e.store.Attempt(context.Background(), ringi.Attempt{Space: space, RunID: runID, CallID: callID, Kind: lateResult,
		Detail: strings.ToValidUTF8(text, "\uFFFD"), At: at})
	if aerr != nil {
		e.log.Error("keep late result", "run", runID, "call", callID, "error", aerr)
	}
}

// hasLate counts the late results that are kept of a call; 0 where that cannot be
// read.
func (e *Engine) hasLate(space, runID, callID string) (n int) {
	kept, err := e.store.Attempts(context.Background(), space, runID)
	if err != nil {
		return 0
	}
	for _, a := range kept {
		if a.Kind == lateResult && a.CallID == callID {
			n++
		}
	}
	return n
}

// runReads runs the reads of the turn that nobody gated, together: the first
// here, others beside it where it takes long. One commit for the group.
func (a *activation) runReads(ctx context.Context, st *stepping, t *turn) (bool, error) {
	grants := a.grants[:0]
	for _, c := range t.calls {
		if c.result != nil || !a.e.readOnly(c.judged.Tool) || stricterBefore(c) {
			continue
		}
		if g, ok := grantByPolicy(c); ok {
			g.effect = ringi.ReadOnly
			grants = append(grants, g)
		}
	}
	a.grants = grants
	if len(grants) == 0 {
		return false, nil
	}
	if err := a.stopped(ctx); err != nil {
		return false, err
	}
	if err := a.claim(ctx); err != nil || !a.l.held {
		return true, err
	}
	a.st.hold()
	defer a.st.release()
	return false, a.finish(ctx, a.readGroup(ctx, grants)...)
}

// stricterBefore reports whether the call was started as something that must
// not be repeated.
func stricterBefore(c *call) bool {
	for _, s := range c.started {
		if !s.Effect.Repeatable() {
			return true
		}
	}
	return false
}

// readDelay is how long the first read of a group may take before the others
// get goroutines of their own.
const readDelay = 100 * time.Microsecond

// readGroup runs reads, at most Limits.Reads at once, results in order.
func (a *activation) readGroup(ctx context.Context, grants []grant) []ringi.FinishedCall {
	out := make([]ringi.FinishedCall, len(grants))
	if len(grants) == 1 {
		out[0] = a.readOne(ctx, grants[0])
		return out
	}
	r := a.reads
	if r == nil {
		r = &reading{a: a}
		a.reads = r
	}
	r.ctx, r.grants, r.out, r.workers = ctx, grants, out, len(grants)
	if most := a.s.start.Limits.Reads; most > 0 {
		r.workers = min(r.workers, most)
	}
	r.next.Store(1) // the first is the caller's, however late he comes to it
	r.all.Add(1)
	if r.late == nil {
		r.late = time.AfterFunc(readDelay, r.others)
	} else {
		r.late.Reset(readDelay)
	}
	r.from(0)
	if r.late.Stop() {
		r.all.Done()
	}
	r.all.Wait()
	return out
}

// reading is a group of reads that share their workers. A run's next group uses
// it again, once all workers of the last one are done.
type reading struct {
	a       *activation
	ctx     context.Context
	grants  []grant
	out     []ringi.FinishedCall
	workers int
	next    atomic.Int64
	all     sync.WaitGroup
	late    *time.Timer // starts the others
}

// others starts the workers beside the first.
func (r *reading) others() {
	for range r.workers - 1 {
		r.all.Go(r.work)
	}
	r.all.Done()
}

// work takes reads until none is left.
func (r *reading) work() { r.from(int(r.next.Add(1)) - 1) }

func (r *reading) from(i int) {
	for ; i < len(r.grants); i = int(r.next.Add(1)) - 1 {
		// What stands here first holds where a handler ends its goroutine.
		r.out[i] = failed(r.grants[i].callID, ringi.CodeToolError, "the tool failed")
		r.out[i] = r.a.readOne(r.ctx, r.grants[i])
	}
}

func (a *activation) readOne(ctx context.Context, g grant) ringi.FinishedCall {
	tool, _ := a.e.reg.Tool(g.tool)
	if !plainID(a.s.id) || !plainID(g.tool) { // else the key is derived when the tool asks for it
		key, err := a.key(g)
		if err != nil {
			return failed(g.callID, ringi.CodeNotDone, errText(err))
		}
		return a.execute(ctx, tool, g, key, time.Now()).fin
	}
	return a.execute(ctx, tool, g, "", time.Now()).fin
}

// plainID reports whether an id is of letters, digits and "_-.": a key can be
// derived from it.
func plainID(id string) bool {
	for i := range len(id) {
		switch b := id[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_', b == '-', b == '.':
		default:
			return false
		}
	}
	return id != ""
}

// key is the call's idempotency key: the same for the same call after a
// restart, another for any other bytes.
func (a *activation) key(g grant) (string, error) {
	c := a.s.call(g.callID)
	return sign.IdempotencyKey(a.s.id, c.step, c.pos, g.tool, string(g.input))
}
