package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/policy"
)

// policyTimeout bounds one of the user's approval functions.
const policyTimeout = 2 * time.Second

// judging judges the calls of one turn, in the model's order. It asks the
// user's functions; the judgement itself is policy.Judge, which is pure.
type judging struct {
	a       *activation
	st      *stepping
	denials denials
	counted bool
	asks    int   // requests that are open or will be
	put     int   // of them those of this turn
	values  []any // the decoded inputs of a turn in the making
}

func (a *activation) judging(st *stepping) judging {
	j := judging{a: a, st: st}
	for _, r := range a.s.requests {
		if r.state.Open() {
			j.asks++
		}
	}
	return j
}

// judge gives a call its verdict, and the refusal or the question that follows
// from it. pos counts within the turn.
func (j *judging) judge(ctx context.Context, c *ringi.JudgedCall, pos int) {
	l := j.a.s.start.Limits
	if l.CallsPerTurn > 0 && pos >= l.CallsPerTurn || l.ToolCalls > 0 && j.a.s.calls+pos >= l.ToolCalls || j.a.treeFull(pos+1) {
		refuse(c, ringi.CodeLimit, ringi.SourceLimit, "not executed: limit of tool calls")
		return
	}
	tool, ok := j.known(c)
	if !ok {
		return
	}
	checked, err := j.a.e.reg.CheckInput(c.Tool, c.Input, ringi.InputLimits{Bytes: l.InputBytes, Depth: l.InputDepth})
	if err != nil {
		j.invalid(c, err)
		return
	}
	c.Input, c.Raw = checked.Input, checked.Raw
	if pos < len(j.values) {
		j.values[pos] = checked.Value
	}
	c.ToolDigest = j.a.e.reg.Digest(c.Tool)
	c.Verdict = j.verdict(ctx, tool, ringi.ToolCall{ID: c.ID, ModelID: c.ModelID, Tool: c.Tool, Input: c.Input, Raw: c.Raw})
	j.conclude(ctx, c, tool)
}

// known refuses a tool that does not exist or is not in the offer, before any
// function sees its name.
func (j *judging) known(c *ringi.JudgedCall) (ringi.Tool, bool) {
	e := j.a.e
	tool, ok := e.reg.Tool(c.Tool)
	if !ok {
		refuse(c, ringi.CodeUnknownTool, ringi.SourceOffer, fmt.Sprintf("unknown tool %.80q: it does not exist, nothing was executed", c.Tool))
		return tool, false
	}
	if _, _, foreign := ringi.Foreign(c.Tool); foreign && !j.a.takes(c.Tool) {
		refuse(c, ringi.CodeUnknownTool, ringi.SourceOffer, fmt.Sprintf("unknown tool %.80q: it does not exist for this client, nothing was executed", c.Tool))
		return tool, false
	}
	if j.st.offer.Has(c.Tool) {
		return tool, true
	}
	if r, refused := e.gatesAt(j.a.asOf()).Refuses(c.Tool, j.a.info, j.st.zone); refused {
		refuse(c, ringi.CodeNotOffered, ringi.SourceOffer, "not offered, not executed: "+string(r.Reason))
		return tool, false
	}
	if j.a.takes(c.Tool) {
		return tool, true // no offer lists it
	}
	if j.a.s.start.Unattended != ringi.Attended {
		refuse(c, ringi.CodeUnattended, ringi.SourceUnattended, "not executed: the tool needs a person, and nobody is there to ask")
		return tool, false
	}
	refuse(c, ringi.CodeNotOffered, ringi.SourceOffer, "not offered in this step, not executed")
	return tool, false
}

func (j *judging) invalid(c *ringi.JudgedCall, err error) {
	code := ringi.CodeInvalidInput
	if ie, ok := errors.AsType[*ringi.InputError](err); ok && ie.Code != "" {
		code = ie.Code
	}
	refuse(c, code, ringi.SourceOffer, "invalid input, not executed: "+errText(err))
}

// refuse settles a call as it is judged.
func refuse(c *ringi.JudgedCall, code ringi.ResultCode, source, text string) {
	c.Code, c.Text = code, text
	c.Verdict = ringi.Verdict{Status: ringi.Denied, Source: source, Reason: string(code)}
}

// verdict asks the rungs, the floor and the rule.
func (j *judging) verdict(ctx context.Context, tool ringi.Tool, call ringi.ToolCall) ringi.Verdict {
	e := j.a.e
	needs := e.reg.Hooks(tool.Name).NeedsApproval
	tightened := j.st.tighten.Func != nil || len(j.st.tighten.Tools) > 0
	if e.silent && needs == nil && !tightened && j.a.parent == nil {
		return policy.Judge(ringi.Verdict{}, tool, ringi.Verdict{}, e.rule) // there is nobody to ask
	}
	info := ringi.CallInfo{Call: call, Tool: tool, Run: j.a.info, MessagesTrusted: !j.a.s.start.Imported, Runtime: j.a.s.start.Runtime}
	if e.asksFuncs(needs) || tightened || j.a.parent != nil {
		// Functions get copies: what they change changes nothing that runs.
		j.a.funcsAsked = true
		info.Tool, info.Run = cloneTool(tool), cloneInfo(j.a.info)
		info.Runtime = slices.Clone(info.Runtime)
		info.Messages = cloneMessages(j.st.msgs)
		ctx = e.logFaults(ctx, j.a.s.id, tool.Name)
	}
	opinion := policy.Ask(ctx, e.cfg.Approval, needs, info, policyTimeout)
	floor := policy.AskFloor(ctx, e.cfg.Floor, e.cfg.RequireApproval, info, policyTimeout)
	if tightened {
		floor = policy.Strictest(floor, policy.AskFloor(ctx, j.st.tighten, nil, info, policyTimeout))
	}
	for p := j.a.parent; p != nil; p = p.up {
		floor = policy.Strictest(floor, policy.AskFloor(ctx, p.e.cfg.Floor, p.e.cfg.RequireApproval, info, policyTimeout))
	}
	return policy.Judge(opinion, tool, floor, e.rule)
}

// asksFuncs reports whether a function of the user's is asked about a call.
func (e *Engine) asksFuncs(needs func(context.Context, ringi.ToolCall) (bool, error)) bool {
	return needs != nil || e.hasFuncs
}

func (e *Engine) logFaults(ctx context.Context, runID, tool string) context.Context {
	return policy.WithFaultFunc(ctx, func(source string, err error) {
		e.log.Warn("approval function failed: the call is denied", "run", runID, "tool", tool, "source", source, "error", err)
	})
}

func cloneTool(t ringi.Tool) ringi.Tool {
	t.InputSchema, t.OutputSchema = slices.Clone(t.InputSchema), slices.Clone(t.OutputSchema)
	t.InputRequired = slices.Clone(t.InputRequired)
	t.Deciders.People, t.Deciders.Teams = slices.Clone(t.Deciders.People), slices.Clone(t.Deciders.Teams)
	if t.Remote != nil {
		r := *t.Remote
		r.Annotations = slices.Clone(r.Annotations)
		t.Remote = &r
	}
	return t
}

func cloneInfo(i ringi.RunInfo) ringi.RunInfo {
	i.Groups, i.By.Teams = slices.Clone(i.Groups), slices.Clone(i.By.Teams)
	return i
}

// conclude turns a verdict into a refusal, a question, or leave to run.
func (j *judging) conclude(ctx context.Context, c *ringi.JudgedCall, tool ringi.Tool) {
	v := c.Verdict
	switch v.Status {
	case ringi.NotApplicable, ringi.Approved:
		switch {
		case tool.External && !j.a.gate:
			c.Asks = ringi.KindResult
		case len(tool.InputRequired) > 0:
			c.Asks = ringi.KindInput
		default:
			return
		}
	case ringi.UserApproval:
		c.Asks = ringi.KindApproval
		if tool.External && !j.a.gate {
			c.Asks = ringi.KindResult
		} else if len(tool.InputRequired) > 0 {
			c.Asks = ringi.KindApprovalAndInput
		}
	default: // denied, and anything that this build does not know
		deny(c, ringi.CodeDeniedByPolicy, v, "denied by policy, not executed")
		return
	}
	j.mayAsk(ctx, c, tool)
}

// deny refuses a call with the reason that policy gave.
func deny(c *ringi.JudgedCall, code ringi.ResultCode, v ringi.Verdict, text string) {
	if v.Reason != "" {
		text += ". Reason: " + v.Reason
	}
	v.Status = ringi.Denied
	c.Asks, c.Code, c.Text, c.Verdict = "", code, text, v
}

// mayAsk refuses a question that must not, or cannot usefully, be put.
func (j *judging) mayAsk(ctx context.Context, c *ringi.JudgedCall, tool ringi.Tool) {
	s := j.a.s
	v := func(source, reason string) ringi.Verdict { return ringi.Verdict{Source: source, Reason: reason} }
	if s.start.Unattended != ringi.Attended {
		why := "it needs an approval"
		if c.Asks == ringi.KindInput {
			why = "it needs typed input"
		}
		if c.Verdict.Reason != "" {
			why += ": " + c.Verdict.Reason
		}
		deny(c, ringi.CodeUnattended, v(ringi.SourceUnattended, why), "not executed: nobody is there to ask")
		return
	}
	if d := j.deniedBefore(); d.total > 0 {
		n := s.start.Limits.SameDenied
		switch {
		case d.tools[c.Tool]:
			deny(c, ringi.CodeDeniedByPerson, v(ringi.SourceDenialBudget, "a person denied this tool in this conversation"), "denied, not executed")
			return
		case n > 0 && d.same[sameKey(c.Tool, c.Input)] >= n:
			deny(c, ringi.CodeDeniedByPerson, v(ringi.SourceDenialBudget, fmt.Sprintf("a person denied the same call %d times", n)),
				"denied, not executed; it is not asked again")
			return
		}
	}
	if j.a.e.noDecider(ctx, j.a.decideRule(tool, "")) {
		deny(c, ringi.CodeNoDecider, v(ringi.SourceDeciders, "nobody is left who may decide"), "denied, not executed")
		return
	}
	if why := j.tooMany(ctx); why != "" {
		deny(c, ringi.CodeTooMany, v(ringi.SourceLimit, why), "denied, not executed")
		return
	}
	j.asks, j.put = j.asks+1, j.put+1
}

// tooMany says why nobody is to be asked once more; empty where somebody is. A
// run, a thread and an agent are counted each, so that a new message, or a new
// run, is no fresh budget (S-23).
func (j *judging) tooMany(ctx context.Context) string {
	if n := j.a.s.start.Limits.OpenRequests; n > 0 && j.asks >= n {
		return "too many open requests"
	}
	cfg := &j.a.e.cfg
	if n := cfg.ThreadRequests; n > 0 && j.a.askedWithin(time.Hour)+j.put >= n {
		return fmt.Sprintf("%d requests within an hour of this conversation", n)
	}
	if n := cfg.AgentRequests; n > 0 {
		open, err := j.a.e.store.RequestCount(ctx, ringi.RequestQuery{Space: cfg.Space, Agent: j.a.s.start.Agent}, n)
		switch {
		case err != nil:
			return "the agent's open requests cannot be counted"
		case open+j.put >= n:
			return fmt.Sprintf("%d open requests of this agent", n)
		}
	}
	return ""
}

func (j *judging) deniedBefore() *denials {
	if !j.counted {
		j.denials, j.counted = j.a.denials(), true
	}
	return &j.denials
}

// decideRule is the rule on who may decide a call of the tool.
func (a *activation) decideRule(tool ringi.Tool, proposedBy string) policy.DecideRule {
	st := a.s.start
	r := policy.DecideRule{Deciders: a.deciders(tool), FourEyes: fourEyes(FourEyes(st.FourEyes), tool), AdminOnly: tool.AdminOnly,
		Initiators: a.allInitiators(), AllowProcess: a.e.cfg.OnApprovalRequired != nil}
	if r.FourEyes && proposedBy != "" {
		r.Initiators = append(slices.Clone(r.Initiators), proposedBy)
	}
	return r
}

// allInitiators are those that the run started with, and every author of the
// thread that its model sees: a run of another process may have ended in
// between.
func (a *activation) allInitiators() []string {
	out := a.s.start.Initiators
	for _, id := range a.prior.authors {
		if !slices.Contains(out, id) {
			out = append(slices.Clip(out), id)
		}
	}
	return out
}

// deciders are the tool's own, or those that the run started with.
func (a *activation) deciders(tool ringi.Tool) ringi.Deciders {
	if !tool.Deciders.IsZero() {
		return tool.Deciders
	}
	return a.s.start.Deciders
}

func fourEyes(reach FourEyes, tool ringi.Tool) bool {
	switch reach {
	case FourEyesOff:
		return false
	case FourEyesWrites:
		return tool.RunEffect() != ringi.ReadOnly
	}
	return true
}

// judgeAgain judges a call that has not started, in a process that did not
// judge it: offer and verdict again, with the messages of its own step.
func (a *activation) judgeAgain(ctx context.Context, st *stepping, c *call) ringi.JudgedCall {
	j := a.judging(st)
	again := *c.judged
	again.Asks, again.Code, again.Text = "", "", ""
	tool, ok := j.known(&again)
	if !ok {
		return again
	}
	again.Input = c.input
	if r := c.request; r != nil && r.ev.Proposed {
		_, err := a.e.checkProposed(tool, c.input, a.s.start.Limits, len(r.ev.Supplied) > 0)
		switch {
		case err != nil && len(r.ev.Supplied) > 0:
			// What refuses a person's typed value may quote it: the model reads none of that.
			refuse(&again, ringi.CodeInvalidInput, ringi.SourceOffer, "invalid input, not executed: a value that a person supplied does not fit the tool as it is now")
			return again
		case err != nil:
			j.invalid(&again, err)
			return again
		}
	} else if c.judged.ToolDigest != a.e.reg.Digest(c.judged.Tool) {
		// The same definition gives the same answer; another is asked.
		if _, err := a.e.reg.CheckInput(c.judged.Tool, c.input, ringi.InputLimits{}); err != nil {
			j.invalid(&again, err)
			return again
		}
	}
	again.ToolDigest = a.e.reg.Digest(c.judged.Tool)
	again.Verdict = j.verdict(ctx, tool, c.toolCall())
	if !c.approved() {
		j.conclude(ctx, &again, tool)
	} else if v := again.Verdict; v.Status == ringi.Denied || !v.Status.Known() {
		// Reasons not to ask (budgets, nobody there) do not undo an answer.
		deny(&again, ringi.CodeDeniedByPolicy, v, "denied by policy, not executed")
	}
	return again
}

// approved reports whether a person's approval lets the call run: not spent
// yet, or spent by a start that may be repeated.
func (c *call) approved() bool {
	r := c.request
	return r != nil && !c.again && (r.state == ringi.Granted || r.state == ringi.Spent && len(c.started) > 0)
}
