package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/toolcontext"
	"github.com/ringi-dev/ringi/policy"
)

// Run starts a run and returns when it ended, or waits for a person. An error
// means that the run could not go on here; what was recorded stays, and Resume
// takes it up.
func (e *Engine) Run(ctx context.Context, start ringi.RunStart) (*ringi.Result, error) {
	return e.run(ctx, start, nil)
}

// Stream is Run as a sequence of events. Log events carry their sequence
// number and come after their commit; deltas have none and may be taken back
// by step_discarded. Leaving the loop stops after the call in flight is
// recorded and leaves the run queued; it does not cancel.
func (e *Engine) Stream(ctx context.Context, start ringi.RunStart) iter.Seq2[ringi.Event, error] {
	return func(yield func(ringi.Event, error) bool) {
		st := &stream{yield: yield}
		_, err := e.run(ctx, start, st)
		st.end(err)
	}
}

// Resume goes on with a run in a process that has tools and model. On a run
// that still waits it returns the waiting result, on an ended one its result,
// on one that another process holds ErrBusy.
func (e *Engine) Resume(ctx context.Context, runID string) (*ringi.Result, error) {
	return e.resume(ctx, runID, nil)
}

// StreamResume is Resume as a sequence of events, from the first that Resume
// commits.
func (e *Engine) StreamResume(ctx context.Context, runID string) iter.Seq2[ringi.Event, error] {
	return func(yield func(ringi.Event, error) bool) {
		st := &stream{yield: yield}
		_, err := e.resume(ctx, runID, st)
		st.end(err)
	}
}

// activation is one process going on with one run: from the lease that it
// takes to the commit that frees it.
type activation struct {
	e    *Engine
	s    *state
	l    lease
	info ringi.RunInfo
	st   *stream

	prior  conversation    // what the thread's ended runs left
	msgs   []ringi.Message // as sent to the model, append only
	built  int             // turns that are in msgs
	atRoom [2]int
	at     []int             // at[i]: length of msgs when turn i was asked
	prompt [sha256.Size]byte // over the messages sent so far
	hashed int               // messages that are in prompt
	mark   ringi.DataClass   // highest data class of the conversation
	parent *parentage        // in whose tool this run was started
	id     string            // as in s, for the heart
	space  string
	// stepping is the step of the open turn, kept while it is open.
	stepping *stepping
	cached   *offered
	base     context.Context // the caller's values, without its cancellation
	cutMu    sync.Mutex
	cut      chan struct{} // closed to cut the call in flight; made when one runs
	// Memory that every step needs again.
	gen        generation
	take       func(ringi.ModelEvent, error) bool
	step1      stepping
	grants     []grant
	reads      *reading
	change     change
	values     []any // decoded inputs of the turn in the making
	valueRoom  [1]any
	shown      []ringi.Tool // handed to the model, made from shownOf
	shownOf    *ringi.Tool
	first      state               // s of a run that starts here
	asking     toolcontext.Context // a model runs under it
	calling    toolcontext.Context // a tool runs under it
	tree       *tree               // shared with the runs below
	treeOnce   sync.Once
	noAnswer   bool // the callback gave no decision: the run waits
	returned   bool // as it should: not by a panic or Goexit
	recording  bool // a result is being recorded
	wasCut     bool // under cutMu
	funcsAsked bool // a function of the user judged a call
	panicked   bool // in our own code: the claim counts as an attempt
	gate       bool // of a foreign loop: the lease is held for a commit alone
	g          *Gate
	fragment   ringi.Delta // the newest, for Config.Live
}

func (e *Engine) run(ctx context.Context, start ringi.RunStart, st *stream) (*ringi.Result, error) {
	if err := e.mayWrite(); err != nil {
		return nil, err
	}
	if e.cfg.Model == nil {
		return nil, errors.New("start run: engine has no model")
	}
	a, ev, err := e.begin(ctx, start)
	if err != nil {
		return nil, fmt.Errorf("start run: %w", err)
	}
	a.st = st
	if err := e.heart.enter(a); err != nil {
		return nil, err
	}
	defer e.heart.leave(a)
	done := a.guard(ctx)
	defer done()
	err = a.commitStart(ctx, ev, func(ch *change) { ch.follows = start.Follows })
	if err != nil {
		if !isDefinite(err) {
			e.heart.orphan(a)
		}
		a.returned = true
		return nil, a.failed(fmt.Errorf("start run: %w", err))
	}
	if err := a.rememberAgain(ctx); err != nil {
		a.giveBack(ctx)
		a.returned = true
		return nil, a.failed(fmt.Errorf("start run: %w", err))
	}
	return a.activate(ctx)
}

// failed names the run in an error: Resume takes it up.
func (a *activation) failed(err error) error {
	return &ringi.RunError{RunID: a.id, Status: a.s.row.Status, Err: err}
}

// guard gives the run back where this activation is left by a panic or by
// runtime.Goexit: somebody else's function ended the goroutine.
func (a *activation) guard(ctx context.Context) func() {
	return func() {
		if !a.returned {
			a.panicked = true
			a.giveBack(ctx)
		}
	}
}

// commitStart makes the first commit of a run: as running and leased, or as
// with says.
func (a *activation) commitStart(ctx context.Context, ev *ringi.RunStarted, with func(*change)) error {
	var made [][32]byte // random bytes of what was tried before
	return a.commit(ctx, func() (*change, error) {
		if a.change.tried != ([32]byte{}) {
			made = append(made, a.change.tried)
		}
		if a.s.start != nil {
			return nil, a.recordedAfterAll(made)
		}
		ch := a.of(ev, ringi.Running)
		with(ch)
		return ch, nil
	})
}

// recordedAfterAll reports whether the first commit, which reported a failure,
// was made: the log begins with a record that we made. Else the run's id is
// somebody else's.
func (a *activation) recordedAfterAll(made [][32]byte) error {
	if len(a.s.heads) > 0 && slices.Contains(made, saltOf(&a.s.heads[0])) {
		return nil
	}
	return fmt.Errorf("%w: run id %s exists", ringi.ErrConflict, a.s.id)
}

// rememberAgain looks whether a run of the thread started and ended between
// the reading of the thread and the first commit of this run, which closed the
// thread to others.
func (a *activation) rememberAgain(ctx context.Context) error {
	if !a.prior.read {
		return nil
	}
	rows, err := a.e.store.Runs(ctx, ringi.RunQuery{Space: a.s.space, Thread: a.s.start.Thread, Limit: 1, After: a.s.id})
	if err != nil {
		return fmt.Errorf("read thread: %w", err)
	}
	last := ""
	if len(rows) > 0 {
		last = rows[0].ID
	}
	if last == a.prior.last {
		return nil
	}
	a.prior, err = a.e.remember(ctx, a.s.space, a.s.start.Thread)
	return err
}

// begin makes the first event of a run, and refuses what must not start.
func (e *Engine) begin(ctx context.Context, start ringi.RunStart) (*activation, *ringi.RunStarted, error) {
	return e.beginAs(ctx, start, "")
}

// beginAs begins a run under an id that is known already; empty makes one.
func (e *Engine) beginAs(ctx context.Context, start ringi.RunStart, id string) (*activation, *ringi.RunStarted, error) {
	at, err := e.now(ctx)
	if err != nil {
		return nil, nil, err
	}
	a := &activation{e: e, parent: parentOf(ctx), l: lease{owner: e.heart.owner}}
	sp := e.cfg.Space
	thread, known := start.Thread, start.Thread != ""
	if !known {
		thread = e.cfg.NewID("thr_", at)
	}
	if id == "" {
		id = e.cfg.NewID("run_", at)
	}
	a.id, a.space = id, sp
	a.s = &a.first
	a.s.space, a.s.id = sp, id
	a.s.row.Space, a.s.row.ID, a.s.row.Thread, a.s.row.Agent = sp, id, thread, e.agent(start)
	if known {
		if err := e.openRun(ctx, sp, thread, start); err != nil {
			return nil, nil, err
		}
		if a.prior, err = e.remember(ctx, sp, thread); err != nil {
			return nil, nil, err
		}
	}
	if a.parent != nil && a.parent.depth >= maxDepth {
		return nil, nil, fmt.Errorf("runs inside runs go %d deep at most", maxDepth)
	}
	ev, err := a.started(start, thread)
	if err != nil {
		return nil, nil, err
	}
	return a, ev, nil
}

func (e *Engine) agent(start ringi.RunStart) string {
	if start.Agent != "" {
		return start.Agent
	}
	return e.cfg.Agent
}

// started makes run_started: everything that must hold for the whole run.
func (a *activation) started(start ringi.RunStart, thread string) (*ringi.RunStarted, error) {
	e := a.e
	msgs, err := given(start.Messages, start.By)
	if err != nil {
		return nil, err
	}
	start.System, start.Groups = cmp.Or(start.System, e.cfg.System), e.groups(start.Groups)
	runtime, err := ringi.EncodeRuntime(start.Runtime)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(start.System) {
		return nil, errors.New("system prompt is not valid UTF-8")
	}
	start.By.Teams = slices.Clone(start.By.Teams)
	ev := &ringi.RunStarted{
		Agent: a.s.row.Agent, Thread: thread, By: start.By, Zone: e.cfg.Zone, Mark: a.prior.mark,
		Groups: slices.Clone(start.Groups), AllGroups: start.Groups == nil, Tools: slices.Clone(start.Tools), AllTools: start.Tools == nil,
		Limits: e.limits.Strictest(start.Limits), TurnMode: e.cfg.TurnMode, Unattended: start.Unattended,
		Deciders: e.cfg.Deciders, FourEyes: string(e.cfg.FourEyes), Judges: e.judgesNow(),
		System: start.System, Messages: msgs, Runtime: slices.Clone(runtime),
	}
	if start.TurnMode != "" {
		ev.TurnMode = start.TurnMode
	}
	switch ev.TurnMode {
	case "", ringi.Eager, ringi.Hold:
	default:
		return nil, fmt.Errorf("unknown turn mode %q", ev.TurnMode)
	}
	switch ev.Unattended {
	case ringi.Attended, ringi.PerTool, ringi.PerCall:
	default:
		return nil, fmt.Errorf("unknown unattended mode %q", ev.Unattended)
	}
	a.inherit(ev)
	ev.Limits = ev.Limits.Beyond(ringi.DefaultLimits())
	ev.Initiators = a.initiators(ev)
	if ev.FourEyes != "" && ev.Unattended == ringi.Attended {
		if err := authored(ev, a.prior); err != nil {
			return nil, err
		}
	}
	return ev, nil
}

// groups are those of a run that wants some: of the configuration's, if it has
// any.
func (e *Engine) groups(want []string) []string {
	has := e.cfg.Groups
	switch {
	case has == nil:
		return want
	case want == nil:
		return has
	}
	return slices.DeleteFunc(slices.Clone(want), func(g string) bool { return !slices.Contains(has, g) })
}

// initiators are all who asked for the run: who started it, the person who
// answers for a service that did, every author of a user message that its model
// sees, and its parent's. An unknown one stands as
// the empty id and makes four eyes impossible.
func (a *activation) initiators(ev *ringi.RunStarted) []string {
	seen := map[string]bool{}
	var out []string
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	if ev.FourEyes != "" || !ev.By.IsZero() {
		add(ev.By.ID)
	}
	if ev.By.Owner != "" {
		add(ev.By.Owner)
	}
	for _, id := range a.prior.authors {
		add(id)
	}
	for i := range ev.Messages {
		if m := &ev.Messages[i]; m.Role == ringi.RoleUser && m.Author != "" {
			add(m.Author)
		}
	}
	if a.parent != nil {
		for _, id := range a.parent.start.Initiators {
			add(id)
		}
	}
	return out
}

// authored refuses a user message without an author where four eyes hold.
func authored(ev *ringi.RunStarted, prior conversation) error {
	for i := range ev.Messages {
		if m := &ev.Messages[i]; m.Role == ringi.RoleUser && m.Author == "" {
			return ringi.ErrNoAuthor
		}
	}
	if prior.anonymous || ev.By.IsZero() {
		return ringi.ErrNoAuthor
	}
	return nil
}

// openRun deals with a run that still waits on the thread: refuse, or withdraw
// its requests and end it; never silently both.
func (e *Engine) openRun(ctx context.Context, sp, thread string, start ringi.RunStart) error {
	row, open, err := e.openRunOf(ctx, sp, thread)
	if err != nil || !open {
		return err
	}
	if start.Follows != "" && row.ID != start.Follows {
		return fmt.Errorf("thread %s: %w: %s has begun", thread, ringi.ErrConflict, row.ID)
	}
	if !start.WithdrawOpen || !row.Status.Waiting() || row.Status == ringi.WaitingForOutcome {
		return fmt.Errorf("thread %s: %w: %s is %s", thread, ringi.ErrRunOpen, row.ID, row.Status)
	}
	by := start.By
	if by.IsZero() {
		by = ringi.Principal{ID: "process", Kind: ringi.Process}
	}
	if err := e.cancelIn(ctx, sp, row.ID, by, "a newer message came", false); !errors.Is(err, ringi.ErrFinal) {
		return err
	}
	return nil // it has just ended by itself
}

// openRunOf finds the run of a thread that has not ended.
func (e *Engine) openRunOf(ctx context.Context, space, thread string) (ringi.RunRow, bool, error) {
	rows, err := e.store.Runs(ctx, ringi.RunQuery{Space: space, Thread: thread, Limit: 1,
		Status: []ringi.RunStatus{ringi.Queued, ringi.Running, ringi.WaitingForApproval, ringi.WaitingForInput, ringi.WaitingForOutcome}})
	if err != nil {
		return ringi.RunRow{}, false, fmt.Errorf("find open run: %w", err)
	}
	if len(rows) == 0 {
		return ringi.RunRow{}, false, nil
	}
	return rows[0], true, nil
}

func (e *Engine) resume(ctx context.Context, runID string, st *stream) (*ringi.Result, error) {
	if err := e.mayWrite(); err != nil {
		return nil, err
	}
	s, err := e.load(ctx, e.cfg.Space, runID)
	if err != nil {
		return nil, err
	}
	if s.start.Gate {
		return e.tend(ctx, s)
	}
	a := &activation{e: e, s: s, st: st, id: s.id, space: s.space, l: lease{owner: e.heart.owner}, parent: parentOf(ctx)}
	if st != nil {
		st.seen = s.chain.Seq
	}
	at, err := e.now(ctx)
	if err != nil {
		return nil, err
	}
	// A callback of this engine is asked again; a row that a dead process left
	// running is moved to where it waits.
	rests := s.row.Status.Waiting() && e.cfg.OnApprovalRequired == nil
	if s.finished != nil || s.cancel == nil && rests && s.stillWaits(at) {
		a.setInfo()
		return a.result(ctx), nil
	}
	if e.cfg.Model == nil && !s.start.Imported {
		return nil, fmt.Errorf("resume run %s: engine has no model", runID)
	}
	if err := a.mayJudge(); err != nil {
		return nil, err
	}
	if a.prior, err = e.remember(ctx, s.space, s.start.Thread); err != nil {
		return nil, err
	}
	if err := e.heart.enter(a); err != nil {
		return nil, err
	}
	defer e.heart.leave(a)
	defer a.guard(ctx)()
	return a.activate(ctx)
}

// stillWaits reports whether a request keeps the run waiting: pending and in
// time, with no proposal to look at.
func (s *state) stillWaits(at time.Time) bool {
	if s.proposed() {
		return false
	}
	for _, r := range s.requests {
		if r.state == ringi.Pending && (r.ev.ExpiresAt.IsZero() || at.Before(r.ev.ExpiresAt)) {
			return true
		}
	}
	return false
}

// mayJudge holds what judged the run when it started against what this process
// has. One that lacks a rung judges nothing and runs nothing.
func (a *activation) mayJudge() error {
	if missing := policy.Missing(a.s.start.Judges, a.e.judgesNow()); len(missing) > 0 {
		a.e.log.Error("process lacks what judges the run", "run", a.s.id, "missing", missing)
		return fmt.Errorf("resume run %s: %w: %s", a.s.id, ringi.ErrPolicyMissing, strings.Join(missing, ", "))
	}
	return nil
}

// activate drives the run until it ends, waits, or cannot go on here. Whatever
// happens, the run is given back.
func (a *activation) activate(ctx context.Context) (*ringi.Result, error) {
	defer a.e.tellLive(ringi.Event{Kind: ringi.EventRunLeft, RunID: a.id})
	a.setInfo()
	c, err := a.context(ctx)
	if err != nil {
		a.giveBack(ctx)
		a.returned = true
		return nil, a.failed(err)
	}
	if c != ctx || a.base == nil {
		ctx, a.base = c, toolcontext.Detach(c)
	}
	a.asking.Base, a.calling.Base = ctx, a.base
	defer a.asking.Cancel() // a long-lived caller keeps nothing of it
	a.prepareMessages()
	a.tellStart(ctx)
	res, err := a.driveRecovered(ctx)
	a.raise()
	if err != nil {
		a.giveBack(ctx)
		a.returned = true
		return nil, a.failed(err)
	}
	a.returned = true
	a.tellEnd(ctx, res)
	return res, nil
}

// driveRecovered turns a panic of our own into an error: the claim is counted,
// and a run that does so again and again is poisoned.
func (a *activation) driveRecovered(ctx context.Context) (res *ringi.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.panicked = true
			a.e.log.Error("run panicked", "run", a.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			res, err = nil, fmt.Errorf("run %s panicked: %v", a.id, p)
		}
	}()
	return a.drive(ctx)
}

func (a *activation) setInfo() {
	st := a.s.start
	a.info = ringi.RunInfo{ID: a.s.id, Space: a.s.space, Thread: st.Thread, Agent: st.Agent, By: st.By,
		Zone: st.Zone, Unattended: st.Unattended, Parent: st.Parent}
	if !st.AllGroups {
		a.info.Groups = st.Groups
		if a.info.Groups == nil {
			a.info.Groups = []string{}
		}
	}
}

// context gives back what must not be stored.
func (a *activation) context(ctx context.Context) (out context.Context, err error) {
	f := a.e.cfg.ContextFunc
	if f == nil {
		return ctx, nil
	}
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("run %s: ContextFunc panicked: %v", a.s.id, p)
		}
	}()
	if c := f(ctx, cloneInfo(a.info)); c != nil {
		return c, nil
	}
	return ctx, nil
}

// drive moves the run: close the open turn, or take the next step.
func (a *activation) drive(ctx context.Context) (*ringi.Result, error) {
	for {
		s := a.s
		if s.finished != nil {
			return a.result(ctx), nil
		}
		if err := a.stopped(ctx); err != nil {
			return nil, err
		}
		if a.st != nil && a.st.left {
			return a.leave(ctx)
		}
		var waits bool
		var err error
		switch t := s.turn(); {
		case s.cancel != nil:
			err = a.endCancelled(ctx)
		case s.row.Attempts > 0 && a.poisoned():
			err = a.end(ctx, ringi.Failed, ringi.ReasonPoisoned, fmt.Sprintf("%d attempts without progress", s.row.Attempts))
		case a.orphaned():
			err = a.end(ctx, ringi.Cancelled, ringi.ReasonCancelled, "the call that started this run has ended")
		case a.deniedTooOften():
			err = a.end(ctx, ringi.Failed, ringi.ReasonDeniedTooOften, "")
		case t != nil && t.open():
			waits, err = a.closeTurn(ctx)
		case s.start.Imported:
			err = a.end(ctx, ringi.Completed, ringi.ReasonCompleted, "")
		default:
			err = a.step(ctx)
		}
		if err != nil {
			return nil, err
		}
		if waits {
			return a.result(ctx), nil
		}
	}
}

// poisoned reports whether a run that nobody has moved was claimed too often.
func (a *activation) poisoned() bool {
	limit := a.s.start.Limits.Attempts
	return limit > 0 && !a.l.held && a.s.row.Attempts >= limit
}

// stopped returns the context's error: a cancelled context starts nothing
// more.
func (a *activation) stopped(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return nil
}

// leave frees a run whose stream's reader has gone; it stays queued.
func (a *activation) leave(ctx context.Context) (*ringi.Result, error) {
	a.giveBack(ctx)
	return a.result(ctx), nil
}

// giveBack frees the lease of an activation that ends without a final or
// waiting state. Where that fails too the heart tries again, and in the end
// time frees the run.
func (a *activation) giveBack(ctx context.Context) {
	if !a.l.held {
		return
	}
	ctx = context.WithoutCancel(ctx)
	for range 3 {
		err := a.e.write(ctx, a.s, &a.l, &change{status: ringi.Queued, release: true, wake: true, progress: !a.panicked})
		if err == nil || errors.Is(err, ringi.ErrLeaseLost) {
			return
		}
		if errors.Is(err, ringi.ErrConflict) && a.reload(ctx) != nil {
			break
		}
	}
	a.e.log.Warn("give run back", "run", a.s.id)
	a.e.heart.orphan(a)
}

// commit writes an owner's change. Where a settler was first it folds what
// came in, derives the change anew and tries again: the result of a tool that
// ran is never dropped. build returns nil where nothing is left to write.
func (a *activation) commit(ctx context.Context, build func() (*change, error)) error {
	if a.base == nil {
		a.base = toolcontext.Detach(ctx)
	}
	ctx = a.base
	stale, conflicts, failures := false, 0, 0
	var conflict error // what the last try met
	for {
		if stale {
			err := a.reload(ctx)
			if conflict != nil && errors.Is(err, ringi.ErrNotFound) {
				return conflict // not with this run: with another of its thread
			}
			if err != nil && !errors.Is(err, ringi.ErrNotFound) {
				if failures++; isDefinite(err) || !a.pause(failures) {
					return err
				}
				continue
			}
			stale = false
		}
		ch, err := build()
		if err != nil || ch == nil {
			return err
		}
		if a.gate {
			a.between(ch)
		}
		ch.stream, ch.whole, conflict = a.st != nil, ch.whole || a.gate || a.st != nil, nil
		switch err = a.e.write(ctx, a.s, &a.l, ch); {
		case err == nil:
			a.emitCommitted(ch)
			return nil
		case errors.Is(err, ringi.ErrConflict):
			if conflicts++; conflicts > 1000 {
				return err
			}
			conflict = err
		case errors.Is(err, ringi.ErrNotRecorded):
			if failures++; !a.pause(failures) {
				return err
			}
		default:
			return err
		}
		stale = true
	}
}

// pause gives a store that fails a moment, and reports whether it is worth
// another try: five tries within 11 ms, and six within 45 ms where the result of a tool that ran would be lost.
func (a *activation) pause(failures int) bool {
	most, unit := 5, 200*time.Microsecond
	if a.recording {
		most, unit = 6, 500*time.Microsecond
	}
	if failures > most {
		return false
	}
	time.Sleep(time.Duration(failures*failures) * unit)
	return true
}

// reload reads the run anew after a conflict and checks the epoch.
func (a *activation) reload(ctx context.Context) error {
	fresh, err := a.e.load(ctx, a.s.space, a.s.id)
	if err != nil {
		return err
	}
	if a.l.held && (fresh.row.Owner != a.l.owner || fresh.row.Epoch != a.l.epoch) {
		a.l.held = false
		return fmt.Errorf("run %s: %w", a.s.id, ringi.ErrLeaseLost)
	}
	a.s.replace(fresh)
	a.emitRead()
	return nil
}

// result is what Run and Resume return.
func (a *activation) result(ctx context.Context) *ringi.Result {
	s := a.s
	res := &ringi.Result{RunID: s.id, Thread: s.start.Thread, Status: s.row.Status, Steps: len(s.turns), ToolCalls: s.calls, Usage: s.usage}
	if s.finished != nil {
		res.Status, res.Reason, res.Detail, res.Withheld = s.finished.Status, s.finished.Reason, s.finished.Detail, s.finished.Withheld
	}
	if s.calls > 0 {
		res.Results = make([]ringi.ToolResult, 0, s.calls)
	}
	for _, t := range s.turns {
		if t.ev.Text != "" {
			res.Text = t.ev.Text
		}
		for _, c := range t.calls {
			if c.result != nil {
				res.Results = append(res.Results, *c.result)
			}
		}
	}
	if s.finished == nil {
		for _, r := range s.pending() {
			res.Pending = append(res.Pending, a.e.view(ctx, s, r))
		}
		if len(res.Pending) > 0 && !res.Status.Waiting() {
			res.Status = s.waits()
		}
	}
	if a.st != nil && len(res.Pending) > 0 {
		a.st.emit(ringi.Event{Kind: ringi.EventRunWaiting, RunID: s.id, Body: &ringi.RunWaiting{Status: res.Status, Pending: res.Pending}})
	}
	return res
}
