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
	"github.com/ringi-dev/ringi/policy"
)

// tokenLife is how long a turn that a client keeps can be answered.
const tokenLife = time.Hour

// Stateless is the path for a server that keeps nothing while a person thinks:
// the client keeps the conversation, and a token with the turn that asks. When
// the answers come, the turn is imported as a run and goes the normal path;
// that the run exists means that the token is spent.
//
// Nothing in the client's conversation carries authority. The token's bytes
// run, never the client's object; policy sees CallInfo.MessagesTrusted false.
type Stateless struct{ e *Engine }

// Stateless returns the engine's stateless entry. It needs a keyring, and a
// store that outlives requests and is shared by all machines that may get one:
// without, it does not start.
func (e *Engine) Stateless() (*Stateless, error) {
	if err := e.mayWrite(); err != nil {
		return nil, fmt.Errorf("start stateless mode: %w", err)
	}
	if e.cfg.Keyring == nil {
		return nil, fmt.Errorf("start stateless mode: %w", ringi.ErrNoKey)
	}
	if s, ok := e.store.(interface{ Volatile() bool }); ok && s.Volatile() {
		return nil, errors.New("start stateless mode: the store ends with this process, and what is spent must be remembered")
	}
	return &Stateless{e}, nil
}

// ClientTurn is a conversation that a client keeps, up to a turn with calls.
type ClientTurn struct {
	// Thread is the conversation; it must not be empty.
	Thread string
	// By is who posted, authenticated by the caller: the run's initiator, and
	// the decider of his own requests. It must not be zero.
	By    ringi.Principal
	Agent string
	// Messages are those before the turn, as the client gives them back.
	Messages []ringi.Message
	// Turn is what the model answered. Only Ask reads it.
	Turn ringi.ModelTurn
}

// Asked is what Ask came to: a Result where nothing of the turn asks, or else
// the requests and the token that travels with them.
type Asked struct {
	// Pending are the requests, all to be answered at once. They are not in the
	// store, and no inbox lists them.
	Pending []ringi.ApprovalRequest
	// Token is opaque, and good until the requests expire, an hour at most.
	Token  string
	Result *ringi.Result
}

// Ask judges every call of a turn before any of them runs. Where nothing asks,
// the turn is imported and runs at once. Where something does, nothing runs and
// nothing is stored. Errors: ErrNoPrincipal; ErrNotPermitted where a call needs
// four eyes, which cannot be met here; *ringi.RunError where a budget or the
// trust zone ends the conversation.
func (s *Stateless) Ask(ctx context.Context, t ClientTurn) (Asked, error) {
	a, im, err := s.judge(ctx, t)
	if err != nil {
		return Asked{}, fmt.Errorf("ask about a client's turn: %w", err)
	}
	if len(im.asks) == 0 {
		res, err := s.run(ctx, a, im)
		if err != nil {
			return Asked{}, fmt.Errorf("run a client's turn: %w", err)
		}
		return Asked{Result: res}, nil
	}
	out, err := s.seal(ctx, a, t, im)
	if err != nil {
		return Asked{}, fmt.Errorf("ask about a client's turn: %w", err)
	}
	return out, nil
}

// Resume takes a turn's answers, imports it, and runs what they allow. Each
// request of the token is answered exactly once; a Decision's By and Channel
// are set here. The same token again, on any machine, runs nothing more and
// returns what came of it.
//
// Errors: sign's for a token that is not ours, ErrStale for another principal,
// thread or earlier message, ErrExpired, ErrAnswer for a missing, repeated or
// unknown answer, ErrNotPermitted, ErrNoKey, and those of Decide. Before the
// turn is imported an error leaves nothing behind.
func (s *Stateless) Resume(ctx context.Context, t ClientTurn, token string, answers []ringi.Decision) (*ringi.Result, error) {
	res, err := s.resume(ctx, t, token, answers)
	if err != nil {
		return nil, fmt.Errorf("resume a client's turn: %w", err)
	}
	return res, nil
}

func (s *Stateless) resume(ctx context.Context, t ClientTurn, token string, answers []ringi.Decision) (*ringi.Result, error) {
	im, err := s.open(ctx, t, token)
	if err != nil {
		return nil, err
	}
	if err := s.mayAnswer(ctx, t, im, answers); err != nil {
		return nil, err
	}
	switch fresh, err := s.e.load(ctx, s.e.cfg.Space, im.Run); {
	case err == nil:
		if err := im.isRun(fresh); err != nil {
			return nil, err
		}
	case !errors.Is(err, ringi.ErrNotFound):
		return nil, err
	case s.expired(ctx, im):
		return nil, fmt.Errorf("%w at %s", ringi.ErrExpired, im.ExpiresAt.Format(time.RFC3339))
	default:
		if err := s.put(ctx, t, im); err != nil {
			return nil, err
		}
	}
	for _, d := range answers {
		d.By, d.Channel = t.By, "client"
		if err := s.decide(ctx, im.Run, d); err != nil {
			return nil, err
		}
	}
	return s.drive(ctx, im.Run)
}

// decide records an answer where its request is still pending. One that is not
// was answered, or closed, by an earlier post or by somebody else: what came of
// it is told by the run.
func (s *Stateless) decide(ctx context.Context, runID string, d ringi.Decision) error {
	run, err := s.e.load(ctx, s.e.cfg.Space, runID)
	if err != nil {
		return err
	}
	r := run.request(d.RequestID)
	if r.state == ringi.Pending {
		_, err = s.e.decide(ctx, d, false)
		if now, lerr := s.e.load(ctx, s.e.cfg.Space, runID); err == nil || lerr == nil && now.request(d.RequestID).state != ringi.Pending {
			return nil
		}
		return err
	}
	// An edit that was to be approved in the same message, and was cut.
	if next := run.successorOf(r); next != nil && d.AndApprove && next.state == ringi.Pending && mayFollow(next, d) && next.ev.ProposedBy == d.By.ID {
		approve := s.e.view(ctx, run, next).Approve(d.By)
		approve.Channel = d.Channel
		if _, err := s.e.decide(ctx, approve, false); err != nil {
			s.e.log.Warn("approve a proposal's request", "request", next.ev.Request, "error", err)
		}
	}
	return nil
}

// drive goes on with an imported run, and waits where another process does.
func (s *Stateless) drive(ctx context.Context, runID string) (*ringi.Result, error) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		res, err := s.e.resume(ctx, runID, nil)
		if !errors.Is(err, ringi.ErrBusy) {
			return res, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// judge makes the turn of a run that is not stored yet.
func (s *Stateless) judge(ctx context.Context, t ClientTurn) (*activation, *imported, error) {
	if len(t.Turn.Calls) == 0 {
		return nil, nil, errors.New("the turn has no call")
	}
	a, ev, err := s.begin(ctx, t, "")
	if err != nil {
		return nil, nil, err
	}
	steps, calls := counted(ev.Messages)
	if l := ev.Limits.Or(ringi.DefaultLimits()); l.Steps > 0 && steps >= l.Steps {
		return nil, nil, &ringi.RunError{RunID: a.id, Status: ringi.Completed, Reason: ringi.ReasonMaxSteps}
	}
	a.s.calls = calls
	if ctx, err = a.context(ctx); err != nil {
		return nil, nil, err
	}
	st, err := a.prepare(ctx, 1, a.msgs)
	if err != nil {
		return nil, nil, err
	}
	if a.above(st.zone) {
		return nil, nil, &ringi.RunError{RunID: a.id, Status: ringi.Failed, Reason: ringi.ReasonTrustZone}
	}
	st.prompt = a.promptDigest(st)
	turn := t.Turn
	im := &imported{Run: a.id, start: ev, Turn: a.judgeTurn(ctx, st, &turn)}
	im.asks = a.previews(ctx, st, im.Turn)
	return a, im, a.stopped(ctx)
}

// begin makes the start of an imported run; id is empty for a new one.
func (s *Stateless) begin(ctx context.Context, t ClientTurn, id string) (*activation, *ringi.RunStarted, error) {
	switch {
	case t.By.IsZero():
		return nil, nil, ringi.ErrNoPrincipal
	case t.Thread == "":
		return nil, nil, errors.New("the conversation has no thread")
	}
	start := ringi.RunStart{Thread: t.Thread, By: t.By, Agent: t.Agent, Messages: withoutRaw(t.Messages), TurnMode: ringi.Hold}
	a, ev, err := s.e.beginAs(ctx, start, id)
	if err != nil {
		return nil, nil, err
	}
	ev.Imported = true
	if err := a.s.apply(&ringi.Event{Seq: 1, Kind: ev.Kind(), At: a.s.newest, RunID: a.id, Body: ev}); err != nil {
		return nil, nil, err
	}
	a.setInfo()
	a.base = context.WithoutCancel(ctx)
	a.prepareMessages()
	return a, ev, nil
}

// counted counts the turns and calls since the last word of a person: budgets
// span the posts that a conversation is made of.
func counted(msgs []ringi.Message) (steps, calls int) {
	for _, m := range slices.Backward(msgs) {
		if m.Role == ringi.RoleUser {
			break
		}
		if n := len(m.Calls); n > 0 {
			steps, calls = steps+1, calls+n
		}
	}
	return steps, calls
}

// mayAnswer checks the answers, and what they are about, before anything is
// stored.
func (s *Stateless) mayAnswer(ctx context.Context, t ClientTurn, im *imported, answers []ringi.Decision) error {
	if missing := policy.Missing(im.Judges, s.e.judgesNow()); len(missing) > 0 {
		return fmt.Errorf("%w: %s", ringi.ErrPolicyMissing, strings.Join(missing, ", "))
	}
	if len(answers) != len(im.Requests) {
		return fmt.Errorf("%w: the turn asks %d times, and there are %d answers", ringi.ErrAnswer, len(im.Requests), len(answers))
	}
	for i := range im.Requests {
		r := &im.Requests[i]
		k := slices.IndexFunc(answers, func(d ringi.Decision) bool { return d.RequestID == r.Request })
		if k < 0 {
			return fmt.Errorf("%w: request %s has none", ringi.ErrAnswer, r.Request)
		}
		d := answers[k]
		d.By = t.By
		if err := s.e.checkAuthor(d); err != nil {
			return err
		}
		if d.Digest != r.Digest {
			return ringi.ErrStale
		}
		view := ringi.ApprovalRequest{Answers: r.Answers}
		if !view.Allows(d.Answer) {
			return fmt.Errorf("%w: %s", ringi.ErrAnswer, d.Answer)
		}
		tool, ok := s.e.reg.Tool(im.tool(r.Call))
		if !ok || s.e.reg.Digest(tool.Name) != cmp.Or(r.ToolDigest, im.call(r.Call).ToolDigest) {
			return fmt.Errorf("%w: the definition of tool %q has changed", ringi.ErrStale, im.tool(r.Call))
		}
		if err := s.checkAnswer(tool, im.call(r.Call), d); err != nil {
			return err
		}
		rule := policy.DecideRule{Deciders: r.Deciders, FourEyes: r.FourEyes, Initiators: r.Initiators, AdminOnly: tool.AdminOnly}
		if err := s.e.mayDecide(ctx, rule, t.By, d.Answer, ""); err != nil {
			return err
		}
	}
	return nil
}

// checkAnswer checks what the poster wrote against the tool, which is here and
// the one that was asked about.
func (s *Stateless) checkAnswer(tool ringi.Tool, c *ringi.JudgedCall, d ringi.Decision) error {
	if err := checkAnswer(tool, s.e.limits, d); err != nil {
		return err
	}
	input := ringi.Input(d.Input)
	switch d.Answer {
	case ringi.Fill:
		merged, _, err := s.e.reg.Merge(tool.Name, c.Input, d.Input)
		if err != nil {
			return err
		}
		input = merged
	case ringi.Edit:
	default:
		return nil
	}
	_, err := s.e.checkProposed(tool, input, s.e.limits, d.Answer == ringi.Fill)
	return err
}

// run imports a turn that asks nothing, and runs it.
func (s *Stateless) run(ctx context.Context, a *activation, im *imported) (*ringi.Result, error) {
	if err := a.importRun(ctx, im); err != nil {
		return nil, err
	}
	return s.drive(ctx, im.Run)
}

// put imports the turn of a token.
func (s *Stateless) put(ctx context.Context, t ClientTurn, im *imported) error {
	t.Agent = im.Agent
	a, ev, err := s.begin(ctx, t, im.Run)
	if err != nil {
		return s.putByOther(ctx, im, err)
	}
	ev.Judges = im.Judges
	im.start = ev
	for i := range im.Requests {
		r := &im.Requests[i]
		k := &ask{callID: r.Call, judged: im.call(r.Call)}
		im.rows = append(im.rows, a.e.row(a.s, r, k))
	}
	return s.putByOther(ctx, im, a.importRun(ctx, im))
}

// putByOther looks, where an import was refused, whether somebody was first
// with the same token.
func (s *Stateless) putByOther(ctx context.Context, im *imported, err error) error {
	if !errors.Is(err, ringi.ErrConflict) && !errors.Is(err, ringi.ErrRunOpen) {
		return err
	}
	fresh, lerr := s.e.load(ctx, s.e.cfg.Space, im.Run)
	if lerr != nil {
		return err
	}
	return im.isRun(fresh)
}

// importRun makes the run in one commit: its start, its turn and its requests.
func (a *activation) importRun(ctx context.Context, im *imported) error {
	a.s.start = nil // what was tried is made now
	a.s.newest = time.Time{}
	ch := &change{status: ringi.Queued, release: true, progress: true, wake: len(im.Requests) == 0}
	ch.add(im.start, im.Turn)
	for i := range im.Requests {
		ch.add(&im.Requests[i])
		a.keepTool(ch, im.tool(im.Requests[i].Call))
	}
	ch.rows = im.rows
	if len(ch.rows) > 0 {
		ch.status = a.waitsWith(ch)
	}
	a.s.calls = 0
	im.start.Limits = im.start.Limits.Beyond(ringi.DefaultLimits())
	return a.e.write(context.WithoutCancel(ctx), a.s, &a.l, ch)
}
