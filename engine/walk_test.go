package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// TestWalk lives random lives: runs start, people answer, take back and cancel,
// clocks jump, commits fail, processes die, and what a handler does meets all
// of it. After every step and at the end each log is read by a witness of its
// own (walk_witness_test.go). RINGI_WALKS is how often the hundred lives
// (-rapid.checks) are lived; 1.
func TestWalk(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("RINGI_WALKS"))
	for range max(rounds, 1) {
		rapid.Check(t, func(rt *rapid.T) { live(t, rt) })
	}
}

func live(t *testing.T, rt *rapid.T) {
	k := newWalk(t, rt)
	acts := k.acts()
	var names []string
	for name, weight := range map[string]int{"start": 2, "resume": 5, "stream": 1, "decide": 6, "take back": 1, "cancel": 1, "time passes": 1, "policy changes": 1, "restart": 1} {
		names = append(names, slices.Repeat([]string{name}, weight)...)
	}
	slices.Sort(names)
	k.start()
	for range rapid.SampledFrom([]int{3, 10, 20, 30, 40}).Draw(rt, "steps") {
		name := rapid.SampledFrom(names).Draw(rt, "act")
		acts[name]()
		k.check()
	}
	k.settleAll()
	k.check()
	k.verify()
}

// walk is one life: a world, the process that lives in it, and what is drawn
// for it.
type walk struct {
	*rapid.T
	w     *world
	proc  *process
	e     *engine.Engine
	calm  bool // the end: nothing fails any more
	stops context.CancelFunc

	mu      sync.Mutex
	scripts [][]*ringi.ModelTurn // by the number in the run's message
	fates   []fate               // of the next handlers
	effects []effect
	running int // handlers, also those that were given up
	rest    *sync.Cond
	push    ringi.Status // today's policy on push
	faults  []string     // what broke a promise inside a handler or a model
	steals  int
}

// fate is what happens in a handler.
type fate string

const (
	answers   fate = "answers"
	fails     fate = "fails"
	notDone   fate = "says that nothing was done"
	panics    fate = "panics"
	dies      fate = "dies"
	late      fate = "comes late"
	cancels   fate = "is cancelled meanwhile"
	cut       fate = "is cut"
	decisions fate = "decisions come meanwhile"
	hangsUp   fate = "the caller hangs up"
	sleeps    fate = "the machine sleeps"
	stolen    fate = "another process takes over"
)

// drawnFates holds each, and often that a handler simply answers.
var drawnFates = append(slices.Repeat([]fate{answers}, 14), fails, notDone, panics, panics, dies, dies, dies, late, cancels, cut, decisions, hangsUp, sleeps, stolen)

// walkTools are the tools of a life. Those in gatedTools always ask.
var walkTools = []ringi.Tool{
	{Name: "find", Effect: ringi.ReadOnly}, {Name: "look", Effect: ringi.ReadOnly, RequiresApproval: true},
	{Name: "save", Effect: ringi.IdempotentWrite}, {Name: "put", Effect: ringi.IdempotentWrite},
	{Name: "pay", Effect: ringi.NonIdempotentWrite, AllowEdit: true, AllowRespond: true}, {Name: "push", Effect: ringi.NonIdempotentWrite},
	{Name: "bare"}, {Name: "seal", Effect: ringi.NonIdempotentWrite, InputSchema: coded, InputRequired: code},
	{Name: "form", Effect: ringi.ReadOnly, InputSchema: coded, InputRequired: code},
}

var (
	coded      = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"code":{"type":"string"}}}`)
	code       = json.RawMessage(`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}`)
	gatedTools = map[string]bool{"look": true, "save": true, "pay": true, "seal": true, "form": true}
)

func walkEffect(name string) ringi.Effect {
	for _, t := range walkTools {
		if t.Name == name {
			return t.RunEffect()
		}
	}
	return ringi.NonIdempotentWrite
}

func newWalk(t *testing.T, rt *rapid.T) *walk {
	k := &walk{T: rt, w: newWorld(t), push: ringi.Approved, stops: func() {}}
	k.rest = sync.NewCond(&k.mu)
	w := k.w
	w.reg = ringi.NewRegistry()
	w.cfg.Registry = w.reg
	for _, tool := range walkTools {
		tool.Timeout = 5 * time.Millisecond
		if tool.Effect == ringi.ReadOnly {
			tool.Timeout = 0
		}
		w.tool(tool, k.handle)
	}
	must(t, w.reg.AddExternal(ringi.Tool{Name: "outside"}))
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"put": {Status: ringi.NotApplicable}, "push": {Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		return ringi.Verdict{Status: k.push, Reason: "today"}, nil
	}}}
	w.cfg.Model = modelFunc(k.answer)
	w.cfg.Limits = ringi.Limits{Steps: 6, ToolCalls: 30, OpenRequests: 6}
	if rapid.Bool().Draw(rt, "keyed") {
		w.cfg.Keyring = keyring(t)
	}
	w.cfg.TurnMode = rapid.SampledFrom([]ringi.TurnMode{ringi.Eager, ringi.Hold}).Draw(rt, "mode")
	if k.index("callback", 5) == 4 {
		w.cfg.OnApprovalRequired = k.callBack
	}
	k.newProcess()
	return k
}

// newProcess is another process on the same store; the old one is forgotten.
func (k *walk) newProcess() {
	p := &process{Store: k.w.store}
	e := k.engineOn(p)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.proc, k.e = p, e
}

func (k *walk) engineOn(p *process) *engine.Engine {
	cfg := k.w.cfg
	cfg.Store = p
	if k.calm {
		cfg.OnApprovalRequired = nil
	}
	e, err := engine.New(cfg)
	if err != nil {
		k.Fatal(err)
	}
	return e
}

// callBack answers in process, by what fate comes next.
func (k *walk) callBack(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := answers
	if len(k.fates) > 0 {
		f, k.fates = k.fates[0], k.fates[1:]
	}
	switch f {
	case fails:
		return ringi.Decision{}, errors.New("no answer")
	case panics:
		panic("boom")
	case dies:
		k.proc.die()
	case hangsUp:
		k.stops()
	case notDone:
		return r.Deny(ana, "no"), nil
	case decisions:
		return ringi.Decision{}, nil
	}
	d := r.Approve(ana)
	switch d.Answer = r.Answers[len(r.Answers)-1]; d.Answer {
	case ringi.Fill:
		d.Input, d.AndApprove = `{"code":"9"}`, true
	case ringi.Respond:
		d.Answer = ringi.Approve
		if !r.Allows(ringi.Approve) {
			d.Answer, d.Result = ringi.Respond, `"by callback"`
		}
	case ringi.RunAgain:
		d.Answer = ringi.DidNotRun
	default:
		d.Answer = ringi.Approve
	}
	return d, nil
}

// answer is the model: it says the script that the run's newest user message
// names, and looks at what it is sent.
func (k *walk) answer(req ringi.ModelRequest) *ringi.ModelTurn {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := shape(req.Messages); err != nil {
		k.faults = append(k.faults, "the model is sent: "+err.Error())
	}
	for _, m := range slices.Backward(req.Messages) {
		if n, err := strconv.Atoi(m.Text); m.Role == ringi.RoleUser && err == nil {
			if req.Step <= len(k.scripts[n]) {
				return k.scripts[n][req.Step-1]
			}
			break
		}
	}
	return &ringi.ModelTurn{Text: "done"}
}

// tolerate notes an error that is none of those expected. In a process that
// has died, or whose commits failed, everything may fail.
func (k *walk) tolerate(err error, expected ...error) {
	if err == nil || errors.Is(err, errDead) {
		return
	}
	for _, want := range expected {
		if errors.Is(err, want) {
			return
		}
	}
	if _, ok := errors.AsType[*ringi.DecidedError](err); ok && len(expected) > 2 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.proc.disturbed() {
		return
	}
	k.faults = append(k.faults, "unexpected: "+err.Error())
}

// decideErrors are what may meet a decision in a life where all is allowed.
var decideErrors = []error{ringi.ErrStale, ringi.ErrExpired, ringi.ErrWithdrawn, ringi.ErrSpent, ringi.ErrAnswer, ringi.ErrNowDenied, ringi.ErrNotPermitted}

// acts are what can happen between two looks.
func (k *walk) acts() map[string]func() {
	return map[string]func(){
		"start": k.start, "resume": k.resume, "decide": k.decide, "take back": k.takeBack,
		"cancel": k.cancel, "time passes": k.timePasses, "policy changes": k.policyChanges, "restart": k.restart, "stream": k.stream,
	}
}

// step does one thing in the process that lives, with what befalls it drawn
// first.
func (k *walk) step(expected []error, do func(ctx context.Context, e *engine.Engine) error) {
	k.disturb()
	fates := make([]fate, 6)
	for i := range fates {
		fates[i] = rapid.SampledFrom(drawnFates).Draw(k.T, "fate")
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	driven := k.driven()
	k.mu.Lock()
	k.fates, k.stops, k.steals = fates, stop, 0
	k.mu.Unlock()
	err := do(ctx, k.e)
	k.mu.Lock()
	for k.running > 0 {
		k.rest.Wait()
	}
	k.mu.Unlock()
	k.Logf("  %v", err)
	if ctx.Err() != nil {
		expected = append(slices.Clone(expected), context.Canceled)
	}
	k.tolerate(err, append(slices.Clone(expected), ringi.ErrLeaseLost)...)
	if now := k.driven(); !k.proc.disturbed() {
		for id := range now {
			if !driven[id] {
				k.Fatalf("run %s is left running, and nobody drives it\n%s", id, kindsOf(k.w.logOf(id)))
			}
		}
	}
	if k.proc.alive() != nil {
		if rapid.Bool().Draw(k.T, "its lease ends") {
			k.w.advance(time.Minute)
		}
		k.newProcess()
	}
}

// driven are the runs that a process holds: between two steps, one that died.
func (k *walk) driven() map[string]bool {
	held := map[string]bool{}
	for _, row := range k.rows(unended...) {
		if row.Owner != "" {
			held[row.ID] = true
		}
	}
	return held
}

func (k *walk) start() {
	k.mu.Lock()
	n := len(k.scripts)
	k.mu.Unlock()
	script := rapid.Custom(drawTurns).Draw(k.T, "script")
	k.mu.Lock()
	k.scripts = append(k.scripts, script)
	k.mu.Unlock()
	start := ringi.RunStart{
		Thread:       rapid.SampledFrom([]string{"", "thr_a", "thr_b"}).Draw(k.T, "thread"),
		WithdrawOpen: k.index("withdraw", 4) == 3,
		Unattended:   rapid.SampledFrom([]ringi.Unattended{ringi.Attended, ringi.Attended, ringi.Attended, ringi.PerTool, ringi.PerCall}).Draw(k.T, "unattended"),
		Messages:     []ringi.Message{ringi.User(strconv.Itoa(n))}, By: ana,
	}
	k.step([]error{ringi.ErrRunOpen, ringi.ErrBusy}, func(ctx context.Context, e *engine.Engine) error {
		res, err := e.Run(ctx, start)
		return k.rests(res, err)
	})
}

// rests holds what Run and Resume return: an end, or who is asked.
func (k *walk) rests(res *ringi.Result, err error) error {
	if err == nil && !res.Status.Final() && !(res.Status.Waiting() && len(res.Pending) > 0) {
		return fmt.Errorf("run %s is left as %s with %d requests", res.RunID, res.Status, len(res.Pending))
	}
	return err
}

func drawTurns(t *rapid.T) []*ringi.ModelTurn {
	tools := []string{"find", "look", "save", "put", "pay", "pay", "push", "bare", "seal", "form", "outside", "nope"}
	var turns []*ringi.ModelTurn
	for range rapid.SampledFrom([]int{1, 2, 3}).Draw(t, "turns") {
		turn := &ringi.ModelTurn{}
		for range rapid.SampledFrom([]int{1, 2, 3, 4}).Draw(t, "calls") {
			in := fmt.Sprintf(`{"n":%d}`, rapid.IntRange(1, 3).Draw(t, "n"))
			turn.Calls = append(turn.Calls, ringi.ToolCall{ModelID: "m", Tool: rapid.SampledFrom(tools).Draw(t, "tool"), Input: ringi.Input(in)})
		}
		turns = append(turns, turn)
	}
	return turns
}

// oneOf draws a run; "" where there is none.
func (k *walk) oneOf(status ...ringi.RunStatus) string {
	rows := k.rows(status...)
	if len(rows) == 0 {
		return ""
	}
	return rows[k.index("run", len(rows))].ID
}

func (k *walk) index(what string, n int) int { return rapid.IntRange(0, n-1).Draw(k.T, what) }

func (k *walk) rows(status ...ringi.RunStatus) []ringi.RunRow {
	rows, err := k.w.store.Runs(context.Background(), ringi.RunQuery{Space: "default", Status: status, Limit: 1000})
	if err != nil {
		k.Fatal(err)
	}
	return rows
}

var unended = []ringi.RunStatus{ringi.Queued, ringi.Running, ringi.WaitingForApproval, ringi.WaitingForInput, ringi.WaitingForOutcome}

func (k *walk) resume() {
	if id := k.oneOf(); id != "" {
		k.step([]error{ringi.ErrBusy}, func(ctx context.Context, e *engine.Engine) error {
			res, err := e.Resume(ctx, id)
			return k.rests(res, err)
		})
	}
}

// stream resumes with a reader who may leave.
func (k *walk) stream() {
	id := k.oneOf(unended...)
	if id == "" {
		return
	}
	leave := rapid.SampledFrom([]int{1, 2, 3, 5, 8, 99}).Draw(k.T, "leaves after")
	k.step([]error{ringi.ErrBusy}, func(ctx context.Context, e *engine.Engine) error {
		var seq int64
		for ev, err := range e.StreamResume(ctx, id) {
			if err != nil {
				return err
			}
			if ev.Seq != 0 && ev.Seq <= seq {
				return fmt.Errorf("event %d comes after %d", ev.Seq, seq)
			}
			seq = max(seq, ev.Seq)
			if leave--; leave == 0 {
				break
			}
		}
		return nil
	})
}

// decide draws a request and an answer to it, mostly one that it allows; now
// and then in a process without tools.
func (k *walk) decide() {
	page, err := k.engineOn(&process{Store: k.w.store}).Requests(context.Background(), ringi.RequestQuery{Limit: 100})
	if err != nil {
		k.Fatal(err)
	}
	if len(page.Requests) == 0 {
		return
	}
	r := page.Requests[k.index("request", len(page.Requests))]
	d := k.draw(r)
	cli := rapid.Bool().Draw(k.T, "cli")
	k.step(decideErrors, func(ctx context.Context, e *engine.Engine) error {
		if cli {
			var err error
			if e, err = engine.New(engine.Config{Store: k.proc, Keyring: k.w.cfg.Keyring}); err != nil {
				return err
			}
		}
		_, err := e.Decide(ctx, d)
		if _, ok := errors.AsType[*ringi.InputError](err); ok {
			return nil
		}
		return err
	})
}

func (k *walk) draw(r ringi.ApprovalRequest) ringi.Decision {
	by := []ringi.Principal{ana, ben}[k.index("by", 2)]
	d := r.Approve(by)
	d.Answer = rapid.SampledFrom(r.Answers).Draw(k.T, "answer")
	d.AndApprove = rapid.Bool().Draw(k.T, "and approve")
	switch d.Answer {
	case ringi.Edit:
		d.Input = rapid.SampledFrom([]string{`{"n":7}`, `{"n":1}`, `{}`, `[]`}).Draw(k.T, "edit")
	case ringi.Fill:
		d.Input = rapid.SampledFrom([]string{`{"code":"1"}`, `{"code":"2"}`, `{"code":3}`}).Draw(k.T, "fill")
	case ringi.Respond, ringi.Ran:
		d.Result = `"by hand"`
	case ringi.Deny:
		d.Scope = rapid.SampledFrom([]ringi.DenyScope{ringi.ThisCall, ringi.ThisCall, ringi.ThisTool}).Draw(k.T, "scope")
	}
	return d
}

func (k *walk) takeBack() {
	rows, err := k.w.store.Requests(context.Background(), ringi.RequestQuery{Space: "default", State: []ringi.RequestState{ringi.Granted}})
	if err != nil {
		k.Fatal(err)
	}
	if len(rows) == 0 {
		return
	}
	row := rows[k.index("approval", len(rows))]
	k.step(decideErrors, func(ctx context.Context, e *engine.Engine) error {
		_, err := e.TakeBack(ctx, row.ID, ringi.Principal{ID: row.DecidedBy, Kind: ringi.Person}, "")
		return err
	})
}

func (k *walk) cancel() {
	if id := k.oneOf(unended...); id != "" && k.index("really", 3) == 0 {
		now := rapid.Bool().Draw(k.T, "now")
		k.step([]error{ringi.ErrFinal}, func(ctx context.Context, e *engine.Engine) error { return e.Cancel(ctx, id, ben, "enough", now) })
	}
}

func (k *walk) timePasses() {
	k.w.advance(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, 25 * time.Hour, 73 * time.Hour}).Draw(k.T, "time"))
	if rapid.Bool().Draw(k.T, "sweep") {
		k.step(nil, func(ctx context.Context, e *engine.Engine) error {
			_, err := e.Expire(ctx, 10)
			return err
		})
	}
}

func (k *walk) policyChanges() {
	st := rapid.SampledFrom([]ringi.Status{ringi.Approved, ringi.UserApproval, ringi.Denied}).Draw(k.T, "push is")
	k.mu.Lock()
	defer k.mu.Unlock()
	k.push = st
}

func (k *walk) restart() {
	k.proc.die()
	if rapid.Bool().Draw(k.T, "its lease ends") {
		k.w.advance(time.Minute)
	}
	k.newProcess()
}

// check holds every log, and what the world saw, to the promises.
func (k *walk) check() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.faults) > 0 {
		k.Fatal(strings.Join(k.faults, "\n"))
	}
	byRun := map[string][]effect{}
	for _, e := range k.effects {
		byRun[e.run] = append(byRun[e.run], e)
	}
	for _, row := range k.rows() {
		log := k.w.logOf(row.ID)
		heard, err := hear(log)
		if err == nil {
			err = heard.allowed(byRun[row.ID], func(tool string) bool { return gatedTools[tool] }, walkEffect)
		}
		if err == nil && heard.ended != row.Status.Final() {
			err = fmt.Errorf("ended: %v", heard.ended)
		}
		if err == nil && row.Corrupt != "" {
			err = errors.New(row.Corrupt)
		}
		if err != nil {
			k.Fatalf("run %s is %s: %v\n%s", row.ID, row.Status, err, kindsOf(log))
		}
		k.requestsAgree(row, heard)
	}
}

// requestsAgree holds the inbox's rows to the log.
func (k *walk) requestsAgree(row ringi.RunRow, heard *witness) {
	all := []ringi.RequestState{ringi.Pending, ringi.Granted, ringi.Refused, ringi.Expired, ringi.Withdrawn, ringi.Stale, ringi.Spent}
	rows, err := k.w.store.Requests(context.Background(), ringi.RequestQuery{Space: "default", RunID: row.ID, State: all, Limit: 1000})
	if err != nil {
		k.Fatal(err)
	}
	if len(rows) != len(heard.requests) {
		k.Fatalf("run %s has %d requests, the inbox %d", row.ID, len(heard.requests), len(rows))
	}
	for _, r := range rows {
		// A pending row past its time is shown as expired.
		if h := heard.requests[r.ID]; h == nil || h.state != r.State && !(h.state == ringi.Pending && r.State == ringi.Expired) {
			k.Fatalf("request %s is %s in the inbox, in the log %+v", r.ID, r.State, h)
		}
	}
}

// settleAll brings every run to its end, in a process that nothing befalls:
// whatever happened before, each resume ends the run or finds who is asked.
func (k *walk) settleAll() {
	k.proc.die()
	k.calm = true
	k.w.advance(time.Minute)
	k.newProcess()
	k.mu.Lock()
	k.fates = nil
	k.mu.Unlock()
	ctx := context.Background()
	for _, row := range k.rows(unended...) {
		var res *ringi.Result
		var err error
		for round := 0; round < 60; round++ {
			if res, err = k.e.Resume(ctx, row.ID); err != nil {
				k.Fatalf("run %s was %s and cannot go on: %v\n%s", row.ID, row.Status, err, kindsOf(k.w.logOf(row.ID)))
			}
			if res.Status.Final() {
				break
			}
			if !res.Status.Waiting() || len(res.Pending) == 0 {
				k.Fatalf("run %s is stranded: %s, %d requests\n%s", row.ID, res.Status, len(res.Pending), kindsOf(k.w.logOf(row.ID)))
			}
			for _, r := range res.Pending {
				k.finally(ctx, r)
			}
		}
		if !res.Status.Final() {
			k.Fatalf("run %s does not end: %s\n%s", row.ID, res.Status, kindsOf(k.w.logOf(row.ID)))
		}
		if len(res.Results) != res.ToolCalls {
			k.Fatalf("run %s: %d results of %d calls", row.ID, len(res.Results), res.ToolCalls)
		}
	}
}

// finally answers a request so that the run comes to its end.
func (k *walk) finally(ctx context.Context, r ringi.ApprovalRequest) {
	if r.ProposalWaits {
		return // the next resume looks at it
	}
	d := r.Approve(ben)
	switch d.Answer = r.Answers[0]; d.Answer {
	case ringi.Fill:
		d.Input, d.AndApprove = `{"code":"0"}`, true
	case ringi.Respond, ringi.Ran:
		d.Result = `"settled"`
	}
	_, err := k.e.Decide(ctx, d)
	if errors.Is(err, ringi.ErrNowDenied) {
		_, err = k.e.Decide(ctx, r.Deny(ben, ""))
	}
	k.tolerate(err, ringi.ErrExpired)
}

// verify checks every chain, MAC and signature at the end.
func (k *walk) verify() {
	for _, row := range k.rows() {
		v, err := k.e.Verify(context.Background(), row.ID)
		if err != nil || v.Broken != "" || int64(v.Records) != row.Seq {
			k.Fatalf("run %s: %+v, %v", row.ID, v, err)
		}
	}
}
