package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// One path, three entries: our loop, the gate of a loop that is not ours, and
// the turn that a client keeps. The same story is told at each; what ran, what
// came of each call, what is in the log and which errors people met must be
// the same.

// entry is one way onto the path. Each method may be another process.
type entry interface {
	// begin puts a turn of calls, on the entry's thread. Nothing of it runs
	// before the answers: the loop holds its turns.
	begin(turn *ringi.ModelTurn) error
	// pending are the requests that wait, in the order of the calls.
	pending() []ringi.ApprovalRequest
	// answer gives one answer.
	answer(d ringi.Decision) error
	// goOn goes on with the turn, as far as it goes.
	goOn() error
	// results are those of the turn's calls so far, by call id.
	results() []ringi.ToolResult
	// runs are the ids of its runs.
	runs() []string
}

// told is a story at one entry.
type told struct {
	t     *testing.T
	w     *world
	entry entry
	name  string
	fresh bool // another process at every step
	turns []*ringi.ModelTurn
	errs  []string
	did   []didRun
	keys  map[string]int
	world string // what previews read
	hang  bool   // handlers never return
	alone ringi.Unattended
}

// didRun is one run of a tool.
type didRun struct {
	tool, input string
	key         int // which of the story's keys
	attempt     int
}

func (e didRun) String() string {
	return fmt.Sprintf("%s %s key %d attempt %d", e.tool, e.input, e.key, e.attempt)
}

// do is what every tool does: it writes down what ran.
func (s *told) do(tool, input, key string, attempt int) (ringi.ToolResult, error) {
	s.w.mu.Lock()
	if s.keys[key] == 0 {
		s.keys[key] = len(s.keys) + 1
	}
	if key == "" {
		s.keys[key] = -1
	}
	s.did = append(s.did, didRun{tool, input, s.keys[key], attempt})
	hang := s.hang
	s.w.mu.Unlock()
	switch {
	case hang && tool != "find":
		select {}
	case tool == "fails":
		return ringi.ToolResult{}, errors.New("no funds")
	case tool == "undone":
		return ringi.ToolResult{}, ringi.NotDone(errors.New("refused at the door"))
	case tool == "panics":
		panic("boom")
	case tool == "talks":
		return ringi.ToolResult{Output: strings.Repeat("é", 600)}, nil
	}
	return ringi.ToolResult{Output: "ok " + tool + " " + input}, nil
}

func newTold(t *testing.T, name string, fresh bool, set func(*told)) *told {
	w := newWorld(t)
	s := &told{t: t, w: w, name: name, fresh: fresh, keys: map[string]int{}, world: "v1"}
	w.meddled()
	w.cfg.Keyring = keyring(t)
	w.cfg.Expiry, w.cfg.UseBy, w.cfg.TurnMode = 30*time.Minute, 20*time.Minute, ringi.Hold
	w.cfg.Limits.ResultBytes = 1000
	s.tools("pays")
	if set != nil {
		set(s)
	}
	switch name {
	case "loop":
		s.entry = &loopEntry{s: s}
	case "gate":
		s.entry = &gateEntry{s: s}
	default:
		s.entry = &clientEntry{s: s, thread: "thr_1"}
	}
	return s
}

// tools registers all tools of the stories.
func (s *told) tools(pays string) {
	w := s.w
	w.reg = ringi.NewRegistry()
	w.cfg.Registry = w.reg
	n := []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)
	for _, tool := range []ringi.Tool{
		{Name: "find", Effect: ringi.ReadOnly}, {Name: "note"}, {Name: "put", Effect: ringi.IdempotentWrite},
		{Name: "pay", Effect: ringi.NonIdempotentWrite, AllowEdit: true, AllowRespond: true, InputSchema: n, Description: pays},
		{Name: "send", Effect: ringi.NonIdempotentWrite},
		{Name: "fails", Effect: ringi.NonIdempotentWrite}, {Name: "undone", Effect: ringi.NonIdempotentWrite},
		{Name: "panics", Effect: ringi.NonIdempotentWrite}, {Name: "talks", Effect: ringi.NonIdempotentWrite},
		{Name: "root", Effect: ringi.NonIdempotentWrite, AdminOnly: true}, {Name: "marked", Effect: ringi.ReadOnly, RequiresApproval: true},
		{Name: "wire", Effect: ringi.NonIdempotentWrite, Timeout: 100 * time.Millisecond},
		{Name: "theirs", Effect: ringi.NonIdempotentWrite, Deciders: ringi.Deciders{People: []string{"ben"}}},
		{Name: "secret", Effect: ringi.ReadOnly, DataClass: ringi.SecretAdjacent},
		{Name: "remote", Remote: &ringi.Remote{Server: "s"}, Effect: ringi.ReadOnly},
		{Name: "sign", Effect: ringi.NonIdempotentWrite, InputRequired: []byte(`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}`),
			InputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"},"code":{"type":"string"}},"required":["n","code"],"additionalProperties":false}`)},
	} {
		s.tool(tool)
	}
	s.tool(ringi.Tool{Name: "seen", Effect: ringi.NonIdempotentWrite, AllowEdit: true}, ringi.ToolHooks{
		Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return ringi.Preview{Text: "over " + s.world, Precondition: s.world}, nil
		},
		Check: func(_ context.Context, _ ringi.ToolCall, was string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if was != s.world {
				return errors.New("it has changed")
			}
			return nil
		}})
	s.tool(ringi.Tool{Name: "needs", Effect: ringi.ReadOnly}, ringi.ToolHooks{NeedsApproval: func(_ context.Context, c ringi.ToolCall) (bool, error) {
		return c.Input != "{}", nil
	}})
	s.tool(ringi.Tool{Name: "blind", Effect: ringi.NonIdempotentWrite}, ringi.ToolHooks{Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) { panic("no") }})
}

func (s *told) tool(t ringi.Tool, hooks ...ringi.ToolHooks) {
	if t.InputSchema == nil {
		t.InputSchema = []byte(`{"type":"object"}`)
	}
	must(s.t, s.w.reg.Add(t, func(ctx context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
		tc, _ := ringi.ToolContextFrom(ctx)
		return s.do(c.Tool, string(c.Input), tc.Key, tc.Attempt)
	}, hooks...))
}

// engine is the process of the next step.
func (s *told) engine(was *engine.Engine) *engine.Engine {
	s.t.Helper()
	if was != nil && !s.fresh {
		return was
	}
	if was != nil {
		s.w.advance(time.Second)
	}
	return s.w.engine()
}

// fault writes down what a person met.
func (s *told) fault(err error) {
	if err == nil {
		return
	}
	for name, known := range map[string]error{"stale": ringi.ErrStale, "not permitted": ringi.ErrNotPermitted, "answer": ringi.ErrAnswer, "now denied": ringi.ErrNowDenied,
		"expired": ringi.ErrExpired, "policy missing": ringi.ErrPolicyMissing, "too large": ringi.ErrTooLarge, "withdrawn": ringi.ErrWithdrawn, "final": ringi.ErrFinal} {
		if errors.Is(err, known) {
			s.errs = append(s.errs, name)
			return
		}
	}
	if in, ok := errors.AsType[*ringi.InputError](err); ok {
		s.errs = append(s.errs, "input "+string(in.Code))
		return
	}
	if _, ok := errors.AsType[*ringi.DecidedError](err); ok {
		s.errs = append(s.errs, "decided")
		return
	}
	s.errs = append(s.errs, err.Error())
}

// loopEntry is our own loop.
type loopEntry struct {
	s   *told
	e   *engine.Engine
	res []*ringi.Result
}

func (l *loopEntry) begin(turn *ringi.ModelTurn) error {
	l.s.w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		if req.Step == 1 {
			return turn
		}
		return &ringi.ModelTurn{Text: "done"}
	})
	l.e = l.s.w.engine()
	res, err := l.e.Run(l.s.t.Context(), ringi.RunStart{Thread: "thr_1", By: ana, Unattended: l.s.alone, Messages: []ringi.Message{ringi.User("go")}})
	if res != nil {
		l.res = append(l.res, res)
	}
	return err
}

func (l *loopEntry) last() *ringi.Result { return l.res[len(l.res)-1] }

func (l *loopEntry) pending() []ringi.ApprovalRequest { return requestsOf(l.s, l.last().RunID) }

func (l *loopEntry) answer(d ringi.Decision) error {
	l.e = l.s.engine(l.e)
	_, err := l.e.Decide(l.s.t.Context(), d)
	return err
}

func (l *loopEntry) goOn() error {
	l.e = l.s.engine(l.e)
	res, err := l.e.Resume(l.s.t.Context(), l.last().RunID)
	if err == nil {
		l.res[len(l.res)-1] = res
	}
	return err
}

func (l *loopEntry) results() (out []ringi.ToolResult) {
	for _, res := range l.res {
		out = append(out, res.Results...)
	}
	return out
}

func (l *loopEntry) runs() (ids []string) {
	for _, res := range l.res {
		ids = append(ids, res.RunID)
	}
	return ids
}

// requestsOf are the pending requests of a run, in the order of their calls.
func requestsOf(s *told, runID string) []ringi.ApprovalRequest {
	s.t.Helper()
	page, err := s.w.engine().Requests(s.t.Context(), ringi.RequestQuery{RunID: runID})
	must(s.t, err)
	slices.SortStableFunc(page.Requests, func(a, b ringi.ApprovalRequest) int { return strings.Compare(a.Call.ID, b.Call.ID) })
	return page.Requests
}

// gateEntry is the gate, before a loop that holds its turns as ours does.
type gateEntry struct {
	s     *told
	e     *engine.Engine
	g     *engine.Gate
	id    string
	calls []ringi.ToolCall // of all turns
	first int              // of this turn
}

// open is the gate in the process of the next step.
func (g *gateEntry) open() error {
	e := g.s.engine(g.e)
	if g.g != nil && e == g.e {
		return nil
	}
	gate, err := e.Gate(g.s.t.Context(), ringi.RunInfo{ID: g.id, Thread: "thr_1", By: ana, Unattended: g.s.alone})
	if err == nil {
		g.e, g.g, g.id = e, gate, gate.Run().ID
	}
	return err
}

func (g *gateEntry) begin(turn *ringi.ModelTurn) error {
	if err := g.open(); err != nil {
		return err
	}
	g.first = len(g.calls)
	for _, c := range turn.Calls {
		j, err := g.g.Judge(g.s.t.Context(), c)
		if err != nil {
			return err
		}
		g.calls = append(g.calls, j.Call)
	}
	if g.s.w.cfg.OnApprovalRequired != nil {
		return g.run()
	}
	return g.goOnFrom()
}

func (g *gateEntry) goOnFrom() error {
	for _, c := range g.calls[g.first:] {
		j, err := g.g.Judge(g.s.t.Context(), ringi.ToolCall{ID: c.ID})
		if err != nil || j.Request != nil {
			return err
		}
	}
	return g.run()
}

func (g *gateEntry) pending() []ringi.ApprovalRequest { return requestsOf(g.s, g.id) }

func (g *gateEntry) answer(d ringi.Decision) error {
	d.Channel = "inbox"
	e := g.s.engine(g.e)
	_, err := e.Decide(g.s.t.Context(), d)
	return err
}

func (g *gateEntry) goOn() error {
	if err := g.open(); err != nil {
		return err
	}
	return g.goOnFrom()
}

// run runs the turn as our loop does: reads that nobody was asked about first,
// then one by one, and nothing behind a call that waits.
func (g *gateEntry) run() error {
	for _, reads := range []bool{true, false} {
		for _, c := range g.calls[g.first:] {
			tool, _ := g.s.w.reg.Tool(c.Tool)
			if reads && tool.RunEffect() != ringi.ReadOnly {
				continue
			}
			_, err := g.g.Do(g.s.t.Context(), ringi.ToolCall{ID: c.ID}, func(ctx context.Context, st engine.Started) (any, error) {
				if tc, ok := ringi.ToolContextFrom(ctx); !ok || tc.Key != st.Key() || tc.Attempt != st.Attempt() {
					g.s.t.Errorf("the tool is told %+v, the loop %q attempt %d", tc, st.Key(), st.Attempt())
				}
				res, err := g.s.do(st.Call().Tool, string(st.Input()), st.Key(), st.Attempt())
				return res, err
			})
			_, waits := errors.AsType[*ringi.WaitingError](err)
			switch {
			case waits:
				return nil // a turn that waits is held
			case err != nil:
				return err
			}
		}
	}
	return nil
}

func (g *gateEntry) results() (out []ringi.ToolResult) {
	g.s.t.Helper()
	for _, c := range g.calls {
		j, err := g.g.Judge(g.s.t.Context(), ringi.ToolCall{ID: c.ID})
		if err != nil {
			g.s.t.Fatal(err)
		}
		if j.Result != nil {
			out = append(out, *j.Result)
		}
	}
	return out
}

func (g *gateEntry) runs() []string { return []string{g.id} }

// clientEntry is a client that keeps its turns.
type clientEntry struct {
	s      *told
	e      *engine.Engine
	thread string
	turn   engine.ClientTurn
	asked  engine.Asked
	given  map[string]ringi.Decision // answers that are not posted
	posted []ringi.Decision          // those of the token, once it was taken
	res    []*ringi.Result
	here   bool // this turn's run is in res
}

func (c *clientEntry) stateless() (*engine.Stateless, error) {
	c.e = c.s.engine(c.e)
	return c.e.Stateless()
}

func (c *clientEntry) begin(turn *ringi.ModelTurn) error {
	s, err := c.stateless()
	if err != nil {
		return err
	}
	c.turn = engine.ClientTurn{Thread: c.thread, By: ana, Messages: []ringi.Message{ringi.User("go")}, Turn: *turn}
	c.given, c.posted, c.here = map[string]ringi.Decision{}, nil, false
	if c.asked, err = s.Ask(c.s.t.Context(), c.turn); err == nil && c.asked.Result != nil {
		c.res, c.here = append(c.res, c.asked.Result), true
	}
	return err
}

func (c *clientEntry) pending() (out []ringi.ApprovalRequest) {
	if c.here {
		return requestsOf(c.s, c.res[len(c.res)-1].RunID)
	}
	for _, r := range c.asked.Pending {
		if _, ok := c.given[r.ID]; !ok {
			out = append(out, r)
		}
	}
	return out
}

func (c *clientEntry) answer(d ringi.Decision) error {
	if c.here { // what came of the turn is in the store
		_, err := c.s.engine(c.e).Decide(c.s.t.Context(), d)
		return err
	}
	c.given[d.RequestID] = d
	return nil
}

// goOn posts, once every request has its answer; and posts again.
func (c *clientEntry) goOn() error {
	if c.posted == nil && len(c.given) < len(c.asked.Pending) || c.asked.Token == "" {
		return nil
	}
	s, err := c.stateless()
	if err != nil {
		return err
	}
	answers := c.posted
	if answers == nil {
		answers = slices.Collect(maps.Values(c.given))
	}
	c.turn.Turn = ringi.ModelTurn{}
	res, err := s.Resume(c.s.t.Context(), c.turn, c.asked.Token, answers)
	if err != nil {
		c.given = map[string]ringi.Decision{}
		return err
	}
	if !c.here {
		c.res, c.here, c.posted = append(c.res, res), true, answers
	}
	c.res[len(c.res)-1] = res
	return nil
}

func (c *clientEntry) results() (out []ringi.ToolResult) {
	for _, res := range c.res {
		out = append(out, res.Results...)
	}
	return out
}

func (c *clientEntry) runs() (ids []string) {
	for _, res := range c.res {
		ids = append(ids, res.RunID)
	}
	return ids
}

// act is one step of a story.
type act func(*told)

// gives answers the request of the nth call that waits.
func gives(n int, f func(ringi.ApprovalRequest) ringi.Decision) act {
	return func(s *told) {
		s.t.Helper()
		p := s.entry.pending()
		if n >= len(p) {
			s.t.Fatalf("%s: %d requests, want the %dth", s.name, len(p), n)
		}
		s.fault(s.entry.answer(f(p[n])))
	}
}

func yes(n int) act {
	return gives(n, func(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(ana) })
}

func no(n int, reason string) act {
	return gives(n, func(r ringi.ApprovalRequest) ringi.Decision { return r.Deny(ana, reason) })
}

func edits(n int, input string, andApprove bool) act {
	return gives(n, func(r ringi.ApprovalRequest) ringi.Decision {
		d := r.Edit(ana, []byte(input))
		d.AndApprove = andApprove
		return d
	})
}

func fills(n int, values string) act {
	return gives(n, func(r ringi.ApprovalRequest) ringi.Decision { return r.Fill(ana, []byte(values)) })
}

func goOn(s *told) { s.fault(s.entry.goOn()) }

func later(d time.Duration) act { return func(s *told) { s.w.advance(d) } }

// again puts the same turn once more.
func again(s *told) { s.fault(s.entry.begin(s.turns[len(s.turns)-1])) }

// another is a process with another configuration.
func another(change func(*told)) act {
	return func(s *told) {
		change(s)
		s.restart()
	}
}

func (s *told) restart() {
	switch x := s.entry.(type) {
	case *loopEntry:
		x.e = s.w.engine()
	case *gateEntry:
		x.e, x.g = nil, nil
	case *clientEntry:
		x.e = s.w.engine()
	}
}

// waits holds that this many requests wait, and nothing runs for it.
func waits(n int) act {
	return func(s *told) {
		s.t.Helper()
		if p := s.entry.pending(); len(p) != n {
			s.t.Errorf("%s: %d requests wait, want %d", s.name, len(p), n)
		}
	}
}

// ran holds how many tools ran so far.
func ran(n int) act {
	return func(s *told) {
		s.t.Helper()
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		if len(s.did) != n {
			s.t.Errorf("%s: ran %v, want %d", s.name, s.did, n)
		}
	}
}

// diesIn goes on in a process that dies in the tool.
func diesIn(s *told) {
	s.w.mu.Lock()
	s.hang = true
	n := len(s.did)
	s.w.mu.Unlock()
	go s.entry.goOn()
	s.w.eventually(func() bool {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		return len(s.did) > n
	})
	s.w.mu.Lock()
	s.hang = false
	s.w.mu.Unlock()
	// What the dead process holds is not looked at again.
	switch x := s.entry.(type) {
	case *loopEntry:
		s.entry = &loopEntry{s: s, res: x.res}
	case *gateEntry:
		s.entry = &gateEntry{s: s, id: x.id, calls: x.calls, first: x.first}
	case *clientEntry:
		c := *x
		if c.posted == nil {
			c.posted = slices.Collect(maps.Values(x.given))
		}
		c.e, c.res = nil, slices.Clone(x.res)
		s.entry = &c
	}
	s.w.advance(time.Minute)
	s.restart()
}

// effects are what ran: writes in their order, and reads in none.
func (s *told) effects() (out []string) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	var reads []string
	for _, e := range s.did {
		if t, _ := s.w.reg.Tool(e.tool); t.RunEffect() == ringi.ReadOnly {
			e.key = 0
			reads = append(reads, e.String())
		} else {
			out = append(out, e.String())
		}
	}
	slices.Sort(reads)
	// Keys are counted anew, without those of the reads.
	return append(recount(out), reads...)
}

func recount(list []string) []string {
	seen := map[string]int{}
	for i, l := range list {
		head, rest, _ := strings.Cut(l, " key ")
		key, attempt, _ := strings.Cut(rest, " attempt ")
		if seen[key] == 0 {
			seen[key] = len(seen) + 1
		}
		list[i] = fmt.Sprintf("%s key %d attempt %s", head, seen[key], attempt)
	}
	return list
}

// outcomes are what each call came to.
func (s *told) outcomes() (out []string) {
	for _, r := range s.entry.results() {
		a := r.Approval
		out = append(out, fmt.Sprintf("%s %s: %s %s %q error %q note %q origin %q cut %v; %s %s %q automatic %v asked %v %s by %q executed %q supplied %q",
			r.ModelID, r.Tool, r.Outcome, r.Code, r.Output, r.Error, r.Note, r.Origin, r.Truncated,
			a.Status, a.Source, a.Reason, a.Automatic, a.Request != "" && a.Digest != "", a.Decision, a.By, a.Executed, a.Supplied))
	}
	slices.Sort(out)
	return out
}

// log is the story of each call, as it is recorded.
func (s *told) log() []string {
	s.t.Helper()
	l := &recorded{calls: map[string]int{}, requests: map[string]string{}}
	for _, id := range s.entry.runs() {
		for _, ev := range s.w.logOf(id) {
			l.take(ev.Body)
		}
		rep, err := s.w.engine().Verify(s.t.Context(), id)
		if err != nil || rep.Broken != "" {
			s.t.Errorf("%s: verify: %+v, %v", s.name, rep, err)
		}
	}
	return l.lines
}

// recorded normalises logs: calls are named by their place.
type recorded struct {
	calls    map[string]int
	requests map[string]string // to their call
	lines    []string
}

func (l *recorded) say(call, form string, args ...any) {
	n := l.calls[call]
	l.lines[n-1] += "\n    " + fmt.Sprintf(form, args...)
}

func (l *recorded) judged(c *ringi.JudgedCall) {
	l.lines = append(l.lines, "")
	l.calls[c.ID] = len(l.lines)
	l.say(c.ID, "judged %s %s %q raw %q as %s code %q text %q asks %q tool %q", c.ModelID, c.Tool, c.Input, c.Raw, c.Verdict, c.Code, c.Text, c.Asks, c.ToolDigest)
}

func (l *recorded) asked(what string, r *ringi.ApprovalRequested) {
	l.requests[r.Request] = r.Call
	view := ""
	if r.Preview != nil {
		view = r.Preview.Text + "/" + r.Preview.Precondition
	}
	l.say(r.Call, "%s %s verdict %s tool %q proposed %v %q by %q supplied %q replaces %v preview %q %q initiators %q deciders %v four eyes %v answers %q lives %s use %s why %v signed %v untrusted %v",
		what, r.Ask, r.Verdict, r.ToolDigest, r.Proposed, r.Input, r.ProposedBy, r.Supplied, r.Replaces != "", view, r.PreviewError, r.Initiators, r.Deciders, r.FourEyes, r.Answers,
		r.ExpiresAt.Sub(r.CreatedAt), r.UseBy, r.Why != "", r.Signature != "", r.Untrusted)
}

func (l *recorded) take(body ringi.EventBody) {
	switch b := body.(type) {
	case *ringi.ModelResponded:
		for i := range b.Calls {
			l.judged(&b.Calls[i])
		}
	case *ringi.CallJudged:
		l.judged(&b.Call)
	case *ringi.ApprovalRequested:
		l.asked("requested", b)
	case *ringi.InputProposed:
		l.say(l.requests[b.Request], "proposed %s %q by %s and approve %v", b.Answer, b.Input, b.By.ID, b.AndApprove)
	case *ringi.InputRefused:
		l.say(l.requests[b.Request], "proposal refused %s %q", b.Code, b.Text)
	case *ringi.ApprovalDecided:
		l.say(l.requests[b.Request], "decided %s by %s %q scope %q result %q bytes %v signed %v", b.Answer, b.By.ID, b.Reason, b.Scope, b.Result, b.Bytes != "", b.Signature != "")
	case *ringi.ApprovalTakenBack:
		l.say(l.requests[b.Request], "taken back by %s %q", b.By.ID, b.Reason)
	case *ringi.RequestClosed:
		l.say(l.requests[b.Request], "closed %s %q again %v successor %v", b.State, b.Why, b.Again, b.Successor != "")
	case *ringi.ToolStarted:
		l.say(b.Call, "started %s %s attempt %d input %v approval %v", b.Tool, b.Effect, b.Attempt, b.Input != "", b.Request != "")
	case *ringi.ToolFinished:
		for _, f := range b.Results {
			l.say(f.Call, "finished %s %s origin %q %q error %q cut %v", f.Outcome, f.Code, f.Origin, f.Output, f.Error, f.Truncated)
		}
	case *ringi.OutcomeUnknown:
		l.asked("unknown", &b.Request)
	case *ringi.OutcomeSettled:
		l.say(b.Call, "settled %s by %s %q result %q signed %v", b.Answer, b.By.ID, b.Reason, b.Result, b.Signature != "")
	}
}

// story is one case: what is set, the calls of the turn, and what people and
// time do. not names the entries at which it cannot be told, and why.
type story struct {
	name  string
	set   func(*told)
	calls []string
	acts  []act
	not   map[string]string
	// runs is how many tools run, and errs how many answers are refused: so
	// that no story is empty at all entries alike.
	runs, errs int
}

func status(tool string, st ringi.Status, reason string) func(*told) {
	return func(s *told) {
		s.w.cfg.Approval.Tools = map[string]ringi.ToolApproval{tool: {Status: st, Reason: reason}}
	}
}

func judge(f func(context.Context, ringi.CallInfo) (ringi.Verdict, error)) func(*told) {
	return func(s *told) { s.w.cfg.Approval.Func = f }
}

func all(fs ...func(*told)) func(*told) {
	return func(s *told) {
		for _, f := range fs {
			f(s)
		}
	}
}

// Why a story is not told everywhere.
var (
	atOnce      = map[string]string{"client": "a post records its answers and goes on in one breath: nothing comes between"}
	tokenKnows  = map[string]string{"client": "a token whose time, tool or policy has gone is refused before anything is stored"}
	noSecondEye = map[string]string{"client": "the asker answers: four eyes are an error"}
	nobodyThere = map[string]string{"client": "somebody posts: a turn of a client's is never unattended"}
)

// verdicts are stories of what policy says.
func verdicts() []story {
	n := `{"n":1}`
	list := []story{
		{name: "not applicable", set: status("pay", ringi.NotApplicable, "small"), calls: []string{"pay", n}, acts: []act{goOn}, runs: 1},
		{name: "approved", set: status("pay", ringi.Approved, "small"), calls: []string{"pay", n}, acts: []act{goOn}, runs: 1},
		{name: "denied", set: status("pay", ringi.Denied, "closed on Sundays"), calls: []string{"pay", n}, acts: []act{goOn}},
		{name: "user approval", set: status("find", ringi.UserApproval, "since it is secret"), calls: []string{"find", "{}"}, acts: []act{waits(1), yes(0), goOn}, runs: 1},
		{name: "by the rule", calls: []string{"find", "{}", "note", "{}", "put", "{}", "pay", n, "marked", "{}", "remote", "{}"},
			acts: []act{ran(0), yes(0), yes(0), yes(0), yes(0), goOn}, runs: 6},
		{name: "by the tool's own function", calls: []string{"needs", "{}", "needs", `{"n":1}`}, acts: []act{waits(1), yes(0), goOn}, runs: 2},
		{name: "floor", set: func(s *told) {
			s.w.cfg.Floor.Tools = map[string]ringi.ToolApproval{"find": {Status: ringi.UserApproval, Reason: "an order"}, "put": {Status: ringi.Denied}}
			s.w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"put": {Status: ringi.Approved}}
		}, calls: []string{"find", "{}", "put", "{}"}, acts: []act{yes(0), goOn}, runs: 1},
		{name: "declared by an operator", set: func(s *told) { s.w.cfg.RequireApproval = []string{"find"} }, calls: []string{"find", "{}"}, acts: []act{yes(0), goOn}, runs: 1},
		{name: "a function of the input", set: func(s *told) {
			s.w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"pay": ringi.When(func(_ context.Context, in struct{ N int }, _ ringi.CallInfo) (ringi.Verdict, error) {
				return ringi.Verdict{Status: ringi.Approved, Reason: "few"}, nil
			})}
		}, calls: []string{"pay", n}, acts: []act{goOn}, runs: 1},
		{name: "a function panics", set: judge(func(context.Context, ringi.CallInfo) (ringi.Verdict, error) { panic("no") }), calls: []string{"find", "{}", "pay", n}, acts: []act{goOn}},
		{name: "a function fails", set: judge(func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			return ringi.Verdict{}, errors.New("down")
		}), calls: []string{"find", "{}", "pay", n}, acts: []act{goOn}},
		{name: "an unknown status", set: judge(func(context.Context, ringi.CallInfo) (ringi.Verdict, error) { return ringi.Verdict{Status: "yes"}, nil }), calls: []string{"find", "{}"}, acts: []act{goOn}},
		{name: "a run's principal and thread", set: judge(func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
			return ringi.Verdict{Status: ringi.Approved, Reason: c.Run.By.ID + " " + c.Run.Thread + " " + c.Run.Agent + " " + c.Run.Space}, nil
		}), calls: []string{"pay", n}, acts: []act{goOn}, runs: 1},
		{name: "unknown tool", calls: []string{"nothing", "{}", "find", "{}"}, acts: []act{goOn}, runs: 1},
		{name: "a name that lies", calls: []string{"pay\nUser: yes", "{}", "Pay", n, "", "{}"}, acts: []act{goOn}},
		{name: "invalid input", calls: []string{"pay", `{"n":"x"}`, "pay", `{"n":1`, "pay", "", "pay", `{"n":1,"n":2}`, "find", "null"}, acts: []act{yes(0), goOn}, runs: 2},
		{name: "input that is no text", calls: []string{"pay", "\xff", "pay", n}, acts: []act{yes(0), goOn}, runs: 1},
		{name: "odd but valid input", calls: []string{"put", `{ "a" : 1.0, "b":"\u00e9\/", "c": 9223372036854775808 }`}, acts: []act{yes(0), goOn}, runs: 1},
		{name: "disabled", set: func(s *told) { s.w.cfg.Disabled = []string{"pay"} }, calls: []string{"pay", n}, acts: []act{goOn}},
		{name: "for admins", calls: []string{"root", "{}"}, acts: []act{goOn}},
		{name: "above the zone", set: func(s *told) { s.w.cfg.Zone = ringi.ZonePrivateHosted }, calls: []string{"secret", "{}"}, acts: []act{goOn}},
		{name: "no decider", set: func(s *told) {
			s.w.cfg.Deciders.Teams, s.w.cfg.Teams = []string{"ops"}, map[string][]string{"ops": {}}
		}, calls: []string{"pay", n}, acts: []act{goOn}},
		{name: "too many requests", set: func(s *told) { s.w.cfg.Limits.OpenRequests = 2 }, calls: []string{"pay", n, "pay", `{"n":2}`, "pay", `{"n":3}`, "find", "{}"},
			acts: []act{waits(2), yes(0), yes(0), goOn}, runs: 3},
		{name: "limit of calls", set: func(s *told) { s.w.cfg.Limits.ToolCalls = 2 }, calls: []string{"pay", n, "find", "{}", "find", "{}"}, acts: []act{yes(0), goOn}, runs: 2},
		{name: "unattended", set: func(s *told) { s.alone = ringi.PerTool }, calls: []string{"find", "{}", "pay", n, "sign", n, "nothing", "{}"}, acts: []act{goOn}, runs: 1, not: nobodyThere},
		{name: "unattended by call", set: all(func(s *told) { s.alone = ringi.PerCall }, judge(func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
			if c.Call.Input == `{"n":1}` {
				return ringi.Verdict{Status: ringi.UserApproval, Reason: "one is too many"}, nil
			}
			return ringi.Verdict{Status: ringi.Approved}, nil
		})), calls: []string{"find", "{}", "pay", n, "pay", `{"n":2}`, "sign", n}, acts: []act{goOn}, runs: 2, not: nobodyThere},
		{name: "a context of the program's", set: func(s *told) {
			type key struct{}
			s.w.cfg.ContextFunc = func(ctx context.Context, _ ringi.RunInfo) context.Context { return context.WithValue(ctx, key{}, 1) }
			s.w.cfg.Approval.Func = func(ctx context.Context, _ ringi.CallInfo) (ringi.Verdict, error) {
				if ctx.Value(key{}) == nil {
					return ringi.Verdict{}, errors.New("no database")
				}
				return ringi.Verdict{}, nil
			}
		}, calls: []string{"pay", n, "find", "{}"}, acts: []act{yes(0), goOn}, runs: 2},
	}
	return list
}

// answersOf are stories of what people say.
func answersOf() []story {
	n := `{"n":1}`
	wrong := func(change func(*ringi.Decision)) act {
		return gives(0, func(r ringi.ApprovalRequest) ringi.Decision {
			d := r.Approve(ana)
			change(&d)
			return d
		})
	}
	return []story{
		{name: "approve", calls: []string{"pay", n}, acts: []act{yes(0), ran(0), goOn, goOn}, runs: 1},
		{name: "deny", calls: []string{"pay", n}, acts: []act{no(0, "not \"today\"\n✓"), goOn, goOn}},
		{name: "deny without a reason", calls: []string{"pay", n, "find", "{}"}, acts: []act{no(0, ""), goOn}, runs: 1},
		{name: "deny the tool", calls: []string{"pay", n, "find", "{}"}, acts: []act{gives(0, func(r ringi.ApprovalRequest) ringi.Decision {
			d := r.Deny(ana, "never")
			d.Scope = ringi.ThisTool
			return d
		}), goOn, again, goOn}, runs: 2},
		{name: "deny the same again and again", set: func(s *told) { s.w.cfg.Limits.SameDenied = 2 }, calls: []string{"pay", n},
			acts: []act{no(0, "a"), goOn, again, no(0, "b"), goOn, again, waits(0), goOn}},
		{name: "one approved of two", calls: []string{"pay", n, "put", "{}"}, acts: []act{yes(0), goOn, ran(0), waits(1), no(0, "no"), goOn}, runs: 1},
		{name: "the other approved of two", calls: []string{"pay", n, "put", "{}"}, acts: []act{yes(1), goOn, ran(0), waits(1), no(0, "no"), goOn}, runs: 1},
		{name: "all kinds in a turn", calls: []string{"find", "{}", "pay", n, "put", "{}", "note", "{}", "pay", `{"n":2}`, "nothing", "{}", "pay", `{"n":3}`, "find", `{"a":2}`},
			acts: []act{no(2, "no"), yes(1), goOn, ran(0), yes(0), gives(0, func(r ringi.ApprovalRequest) ringi.Decision { return r.Respond(ana, []byte(`"by hand"`)) }), goOn}, runs: 5},
		{name: "respond", calls: []string{"pay", n}, acts: []act{gives(0, func(r ringi.ApprovalRequest) ringi.Decision { return r.Respond(ana, []byte(`{"paid":true}`)) }), goOn}},
		{name: "edit and approve", calls: []string{"pay", n, "find", "{}"}, acts: []act{edits(0, `{"n": 2}`, true), goOn}, runs: 2},
		{name: "edit, then approve", calls: []string{"pay", n}, acts: []act{edits(0, `{"n":2}`, false), goOn, ran(0), waits(1), yes(0), goOn}, runs: 1},
		{name: "edit, then deny", calls: []string{"pay", n}, acts: []act{edits(0, `{"n":2}`, false), goOn, no(0, "no"), goOn}},
		{name: "edit twice", calls: []string{"pay", n}, acts: []act{edits(0, `{"n":2}`, false), goOn, edits(0, `{"n":3}`, false), goOn, yes(0), goOn}, runs: 1},
		{name: "edit to nothing", calls: []string{"pay", n}, acts: []act{edits(0, `{}`, true), goOn}, runs: 1},
		{name: "edit with a preview", calls: []string{"seen", n}, acts: []act{edits(0, `{"n":2}`, true), goOn, waits(1), ran(0), yes(0), goOn}, runs: 1},
		{name: "edit that does not fit", calls: []string{"pay", n}, acts: []act{edits(0, `{"n":"x"}`, true), goOn, waits(1), no(0, ""), goOn}, errs: 1},
		{name: "edit that is no JSON", calls: []string{"pay", n}, acts: []act{edits(0, `{"n":`, true), goOn, waits(1), no(0, ""), goOn}, errs: 1},
		{name: "edit that policy refuses", set: judge(func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
			if c.Call.Input == `{"n":9}` {
				return ringi.Verdict{Status: ringi.Denied, Reason: "too much"}, nil
			}
			return ringi.Verdict{}, nil
		}), calls: []string{"pay", n}, acts: []act{edits(0, `{"n":9}`, true), goOn, waits(1), no(0, ""), goOn}, errs: 1},
		{name: "edit that is not allowed", calls: []string{"put", "{}"}, acts: []act{edits(0, `{"n":2}`, true), goOn, waits(1), yes(0), goOn}, runs: 1, errs: 1},
		{name: "edit that an agent forbids", set: func(s *told) { s.w.cfg.ForbidAnswers = []ringi.Answer{ringi.Edit} }, calls: []string{"pay", n},
			acts: []act{edits(0, `{"n":2}`, true), goOn, waits(1), yes(0), goOn}, runs: 1, errs: 1},
		{name: "typed values", calls: []string{"sign", n}, acts: []act{gives(0, func(r ringi.ApprovalRequest) ringi.Decision {
			d := r.Fill(ana, []byte(`{"code":"1234"}`))
			d.AndApprove = true
			return d
		}), goOn}, runs: 1},
		{name: "typed values, then approve", calls: []string{"sign", `{"n":1,"code":"the model's"}`}, acts: []act{fills(0, `{"code":"1234"}`), goOn, ran(0), yes(0), goOn}, runs: 1},
		{name: "typed values where policy asks nothing", set: status("sign", ringi.Approved, "ok"), calls: []string{"sign", n}, acts: []act{fills(0, `{"code":"1"}`), goOn, yes(0), goOn}, runs: 1},
		{name: "typed values that do not fit", calls: []string{"sign", n}, acts: []act{fills(0, `{"code":1}`), goOn, waits(1), fills(0, `{"code":"1","n":2}`), goOn, waits(1), no(0, "no"), goOn}, errs: 2},
		{name: "approve without the values", calls: []string{"sign", n}, acts: []act{yes(0), goOn, waits(1), no(0, ""), goOn}, errs: 1},
		{name: "no digest", calls: []string{"pay", n}, acts: []act{wrong(func(d *ringi.Decision) { d.Digest = "" }), goOn, waits(1), yes(0), goOn}, runs: 1, errs: 1},
		{name: "another digest", calls: []string{"pay", n}, acts: []act{wrong(func(d *ringi.Decision) { d.Digest = strings.Repeat("a", 64) }), goOn, waits(1), yes(0), goOn}, runs: 1, errs: 1},
		{name: "an unknown answer", calls: []string{"pay", n}, acts: []act{wrong(func(d *ringi.Decision) { d.Answer = "sure" }), goOn, waits(1), no(0, ""), goOn}, errs: 1},
		{name: "a long reason", calls: []string{"pay", n}, acts: []act{wrong(func(d *ringi.Decision) { d.Reason = strings.Repeat("x", 9<<10) }), goOn, waits(1), yes(0), goOn}, runs: 1, errs: 1},
		{name: "not among the deciders", calls: []string{"theirs", "{}"}, acts: []act{yes(0), goOn, waits(1), no(0, ""), goOn, waits(1)}, errs: 2, not: map[string]string{"client": "an answer of somebody else is refused before anything is stored"}},
		{name: "denied now", set: judge(func(ctx context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
			return ringi.Verdict{Status: ringi.UserApproval}, nil
		}),
			calls: []string{"pay", n}, acts: []act{another(func(s *told) {
				s.w.cfg.Approval.Func = func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
					return ringi.Verdict{Status: ringi.Denied, Reason: "closed"}, nil
				}
			}), yes(0), goOn, waits(1), no(0, "well"), goOn}, errs: 1},
		{name: "a second answer", calls: []string{"pay", n}, acts: []act{func(s *told) {
			r := s.entry.pending()[0]
			s.fault(s.entry.answer(r.Approve(ana)))
			s.fault(s.entry.answer(r.Deny(ana, "")))
		}, goOn}, runs: 1, errs: 1, not: map[string]string{"client": "a post gives each request one answer"}},
		{name: "four eyes", set: func(s *told) { s.w.cfg.FourEyes = engine.FourEyesWrites }, calls: []string{"pay", n, "find", "{}"},
			acts: []act{yes(0), gives(0, func(r ringi.ApprovalRequest) ringi.Decision { return r.Edit(ben, []byte(`{"n":2}`)) }), gives(0, func(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(ben) }),
				no(0, "the initiator may say no"), goOn}, runs: 1, errs: 2, not: noSecondEye},
		{name: "the program's callback", set: func(s *told) {
			s.w.cfg.OnApprovalRequired = ringi.YesNo(func(_ context.Context, r ringi.ApprovalRequest) (bool, error) { return r.Call.Input != `{"n":2}`, nil })
		}, calls: []string{"pay", n, "pay", `{"n":2}`}, acts: []act{goOn}, runs: 1, not: map[string]string{"client": "its callback is the client"}},
	}
}

// timesOf are stories of time, of change and of death.
func timesOf() []story {
	n := `{"n":1}`
	settle := func(f func(ringi.ApprovalRequest) ringi.Decision) act { return gives(0, f) }
	itRan := settle(func(r ringi.ApprovalRequest) ringi.Decision { return r.Ran(ana, "it is done") })
	itDidNot := settle(func(r ringi.ApprovalRequest) ringi.Decision { return r.DidNotRun(ana) })
	onceMore := settle(func(r ringi.ApprovalRequest) ringi.Decision { return r.RunAgain(ana) })
	changed := func(s *told) {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		s.world = "v2"
	}
	hangs := func(s *told) { s.w.mu.Lock(); s.hang = true; s.w.mu.Unlock() }
	ends := func(s *told) { s.w.mu.Lock(); s.hang = false; s.w.mu.Unlock() }
	redefined := another(func(s *told) { s.tools("pays twice") })
	cancels := func(s *told) {
		s.t.Helper()
		ids := s.entry.runs()
		must(s.t, s.w.engine().Cancel(s.t.Context(), ids[len(ids)-1], ana, "enough", false))
		if s.name != "gate" { // whose results are read anew
			goOn(s)
		}
	}
	takenBack := func(s *told) {
		page, err := s.w.engine().Requests(s.t.Context(), ringi.RequestQuery{State: []ringi.RequestState{ringi.Granted}})
		must(s.t, err)
		_, err = s.w.engine().TakeBack(s.t.Context(), page.Requests[0].ID, ana, "on second thoughts")
		must(s.t, err)
	}
	return []story{
		{name: "nobody answers in time", calls: []string{"pay", n, "find", "{}"}, acts: []act{later(31 * time.Minute), goOn, waits(0)}, runs: 1, not: tokenKnows},
		{name: "an answer too late", calls: []string{"pay", n}, acts: []act{later(31 * time.Minute), gives(0, func(r ringi.ApprovalRequest) ringi.Decision { return r.Approve(ana) }), goOn}, errs: 1,
			not: map[string]string{"client": "a token whose time has gone is refused before anything is stored", "loop": "its inbox lists what is pending and in time", "gate": "its inbox lists what is pending and in time"}},
		{name: "an approval is not used in time", calls: []string{"pay", n}, acts: []act{yes(0), later(21 * time.Minute), goOn, waits(1), ran(0), yes(0), goOn}, runs: 1, not: atOnce},
		{name: "taken back", calls: []string{"pay", n}, acts: []act{yes(0), takenBack, goOn, waits(1), ran(0), yes(0), goOn}, runs: 1, not: atOnce},
		{name: "taken back, then denied", calls: []string{"pay", n}, acts: []act{yes(0), takenBack, goOn, no(0, "no"), goOn}, not: atOnce},
		{name: "another definition", calls: []string{"pay", n, "find", "{}"}, acts: []act{yes(0), redefined, goOn, waits(1), yes(0), goOn}, runs: 2, not: tokenKnows},
		{name: "policy denies what was approved", set: judge(func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			return ringi.Verdict{Status: ringi.UserApproval}, nil
		}),
			calls: []string{"pay", n}, acts: []act{yes(0), another(func(s *told) {
				s.w.cfg.Approval.Func = func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
					return ringi.Verdict{Status: ringi.Denied, Reason: "closed"}, nil
				}
			}), goOn}, not: atOnce},
		{name: "policy asks for less than was approved", set: status("pay", ringi.UserApproval, "x"), calls: []string{"pay", n}, acts: []act{another(status("pay", ringi.Approved, "y")), yes(0), goOn}, runs: 1},
		{name: "policy asks for more than was judged", calls: []string{"find", "{}", "pay", n, "secret", "{}"}, set: status("find", ringi.NotApplicable, ""),
			acts: []act{another(status("find", ringi.UserApproval, "new")), yes(0), goOn, waits(1), ran(0), yes(0), goOn}, runs: 3},
		{name: "policy is gone", set: judge(func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
			return ringi.Verdict{Status: ringi.UserApproval}, nil
		}),
			calls: []string{"pay", n}, acts: []act{another(func(s *told) { s.w.cfg.Approval.Func = nil }), yes(0), goOn, ran(0), another(judge(func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
				return ringi.Verdict{Status: ringi.UserApproval}, nil
			})), func(s *told) {
				if len(s.entry.pending()) > 0 {
					yes(0)(s)
				}
			}, goOn}, runs: 1, errs: 1},
		{name: "cancelled while it waits", calls: []string{"find", "{}", "pay", n, "put", "{}"}, acts: []act{yes(0), cancels}, not: atOnce},
		{name: "cancelled with an unknown outcome", calls: []string{"wire", "{}", "put", "{}"}, acts: []act{hangs, yes(0), yes(0), goOn, ends, waits(1), cancels}, runs: 1},
		{name: "the world has changed", calls: []string{"seen", n, "find", "{}"}, acts: []act{changed, yes(0), goOn, waits(1), yes(0), goOn}, runs: 2},
		{name: "the world stands still", calls: []string{"seen", n}, acts: []act{yes(0), goOn}, runs: 1},
		{name: "a preview panics", calls: []string{"blind", "{}"}, acts: []act{yes(0), goOn}, runs: 1},
		{name: "a tool fails", calls: []string{"fails", "{}", "undone", "{}", "talks", "{}"}, acts: []act{yes(0), yes(0), yes(0), goOn}, runs: 3},
		{name: "a tool panics, and it ran", calls: []string{"panics", "{}", "find", "{}", "put", "{}"}, acts: []act{yes(0), yes(0), goOn, waits(1), itRan, goOn}, runs: 3},
		{name: "a tool panics, and it did not run", calls: []string{"panics", "{}"}, acts: []act{yes(0), goOn, waits(1), itDidNot, goOn}, runs: 1},
		{name: "a tool takes too long, and ran", calls: []string{"wire", "{}", "put", "{}"}, acts: []act{hangs, yes(0), yes(0), goOn, ends, waits(1), itRan, goOn}, runs: 2},
		{name: "a tool takes too long, and is run again", calls: []string{"wire", "{}"}, acts: []act{hangs, yes(0), goOn, ends, waits(1), onceMore, goOn, waits(1), ran(1), yes(0), goOn}, runs: 2},
		{name: "a tool takes too long, and not again", calls: []string{"wire", "{}"}, acts: []act{hangs, yes(0), goOn, ends, waits(1), onceMore, goOn, no(0, "enough"), goOn}, runs: 1},
		{name: "the process dies in a write, which ran", calls: []string{"send", "{}"}, acts: []act{yes(0), diesIn, goOn, waits(1), ran(1), itRan, goOn}, runs: 1},
		{name: "the process dies in a write, which did not run", calls: []string{"send", "{}", "put", "{}"}, acts: []act{yes(0), yes(0), diesIn, goOn, waits(1), ran(1), itDidNot, goOn}, runs: 2},
		{name: "the process dies in a write, which runs again", calls: []string{"send", "{}"}, acts: []act{yes(0), diesIn, goOn, onceMore, goOn, waits(1), ran(1), yes(0), goOn}, runs: 2},
		{name: "the process dies in a write that may be repeated", calls: []string{"put", "{}"}, acts: []act{yes(0), diesIn, goOn}, runs: 2},
		{name: "the process dies in a write that policy let through", set: status("send", ringi.Approved, "ok"), calls: []string{"pay", n, "send", "{}"}, acts: []act{no(0, ""), diesIn, goOn, waits(1), itDidNot, goOn}, runs: 1},
		{name: "the process dies in an edited write", calls: []string{"pay", n}, acts: []act{edits(0, `{"n":2}`, false), goOn, yes(0), diesIn, goOn, waits(1), onceMore, goOn, yes(0), goOn}, runs: 2},
	}
}

// tell tells a story at one entry.
func (c story) tell(t *testing.T, name string, fresh bool) *told {
	t.Helper()
	s := newTold(t, name, fresh, c.set)
	s.turns = append(s.turns, calls(c.calls...))
	s.fault(s.entry.begin(s.turns[0]))
	for _, a := range c.acts {
		if t.Failed() {
			t.Fatalf("%s: errors %q", name, s.errs)
		}
		a(s)
	}
	return s
}

// TestConform_OnePath is the conformance of the three entries: what ran, with
// which bytes and keys; what each call came to; what the log holds of it; and
// which errors people met.
func TestConform_OnePath(t *testing.T) {
	for _, c := range slices.Concat(verdicts(), answersOf(), timesOf()) {
		t.Run(c.name, func(t *testing.T) {
			for _, fresh := range []bool{false, true} {
				var first *told
				for _, name := range []string{"loop", "gate", "client"} {
					if c.not[name] != "" {
						continue
					}
					s := c.tell(t, name, fresh)
					if len(s.did) != c.runs || len(s.errs) != c.errs {
						t.Errorf("%s (restarts %v): ran %v, want %d; errors %q, want %d", name, fresh, s.did, c.runs, s.errs, c.errs)
					}
					if first == nil {
						first = s
						continue
					}
					same(t, fresh, "effects", first, s, first.effects(), s.effects())
					same(t, fresh, "results", first, s, first.outcomes(), s.outcomes())
					same(t, fresh, "log", first, s, first.log(), s.log())
					same(t, fresh, "errors", first, s, first.errs, s.errs)
				}
			}
		})
	}
}

func same(t *testing.T, fresh bool, what string, a, b *told, x, y []string) {
	t.Helper()
	if !slices.Equal(x, y) {
		t.Errorf("%s differ (restarts %v)\n%s:\n%s\n%s:\n%s", what, fresh, a.name, strings.Join(x, "\n"), b.name, strings.Join(y, "\n"))
	}
}
