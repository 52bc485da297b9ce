package audit

import "github.com/ringi-dev/ringi"

// The members of each event's body, in the order in which they are written.

func runStarted(c *codec, v *ringi.RunStarted) {
	text(c, "agent", may, &v.Agent)
	text(c, "thread", must, &v.Thread)
	object(c, "by", unless(v.By.IsZero()), &v.By, principal)
	texts(c, "initiators", may, &v.Initiators)
	object(c, "parent", unless(v.Parent.IsZero()), &v.Parent, parentRef)
	text(c, "zone", may, &v.Zone)
	text(c, "mark", may, &v.Mark)
	texts(c, "groups", may, &v.Groups)
	fact(c, "all_groups", &v.AllGroups)
	texts(c, "tools", may, &v.Tools)
	fact(c, "all_tools", &v.AllTools)
	object(c, "limits", must, &v.Limits, limits)
	text(c, "turn_mode", may, &v.TurnMode)
	text(c, "unattended", may, &v.Unattended)
	object(c, "deciders", may, &v.Deciders, deciders)
	text(c, "four_eyes", may, &v.FourEyes)
	object(c, "judges", may, &v.Judges, judges)
	text(c, "system", may, &v.System)
	objects(c, "messages", may, &v.Messages, message)
	raw(c, "runtime", &v.Runtime)
	fact(c, "gate", &v.Gate)
	fact(c, "imported", &v.Imported)
}

func judges(c *codec, v *ringi.Judges) {
	text(c, "version", may, &v.Version)
	fact(c, "func", &v.Func)
	texts(c, "tool_funcs", may, &v.ToolFuncs)
	texts(c, "statuses", may, &v.Statuses)
	texts(c, "needs", may, &v.Needs)
	text(c, "floor_version", may, &v.FloorVersion)
	fact(c, "floor_func", &v.FloorFunc)
	texts(c, "floor_tool_funcs", may, &v.FloorToolFuncs)
	texts(c, "floor_statuses", may, &v.FloorStatuses)
	texts(c, "require", may, &v.Require)
	fact(c, "prepare_step", &v.PrepareStep)
	fact(c, "admit", &v.Admit)
	text(c, "config", may, &v.Config)
}

func modelResponded(c *codec, v *ringi.ModelResponded) {
	number(c, "step", must, &v.Step)
	number(c, "attempt", may, &v.Attempt)
	text(c, "text", may, &v.Text)
	text(c, "opaque", may, &v.Opaque)
	text(c, "finish", may, &v.Finish)
	object(c, "usage", may, &v.Usage, usage)
	text(c, "offer_digest", may, &v.OfferDigest)
	text(c, "prompt_digest", may, &v.PromptDigest)
	objects(c, "calls", may, &v.Calls, judgedCall)
	pointer(c, "finished", &v.Finished, runFinished)
}

func judgedCall(c *codec, v *ringi.JudgedCall) {
	text(c, "id", must, &v.ID)
	text(c, "model_id", may, &v.ModelID)
	text(c, "tool", must, &v.Tool)
	text(c, "raw", may, &v.Raw)
	text(c, "input", must, &v.Input)
	text(c, "tool_digest", may, &v.ToolDigest)
	object(c, "verdict", must, &v.Verdict, verdict)
	text(c, "code", may, &v.Code)
	text(c, "text", may, &v.Text)
	text(c, "asks", may, &v.Asks)
}

func claim(c *codec, v *ringi.Claim) {
	text(c, "reason", may, &v.Reason)
	text(c, "preview", may, &v.Preview)
	text(c, "on_behalf_of", may, &v.OnBehalfOf)
}

func callJudged(c *codec, v *ringi.CallJudged) {
	number(c, "number", must, &v.Number)
	object(c, "call", must, &v.Call, judgedCall)
	text(c, "ref", may, &v.Ref)
	pointer(c, "claim", &v.Claim, claim)
}

func approvalRequested(c *codec, v *ringi.ApprovalRequested) {
	text(c, "request", must, &v.Request)
	text(c, "call", must, &v.Call)
	text(c, "ask", must, &v.Ask)
	text(c, "digest", must, &v.Digest)
	text(c, "signature", may, &v.Signature)
	text(c, "nonce", must, &v.Nonce)
	text(c, "tool_digest", may, &v.ToolDigest)
	object(c, "verdict", unless(v.Verdict == ringi.Verdict{}), &v.Verdict, verdict)
	fact(c, "proposed", &v.Proposed)
	text(c, "input", may, &v.Input)
	text(c, "proposed_by", may, &v.ProposedBy)
	texts(c, "supplied", may, &v.Supplied)
	text(c, "replaces", may, &v.Replaces)
	pointer(c, "preview", &v.Preview, preview)
	text(c, "preview_error", may, &v.PreviewError)
	texts(c, "initiators", may, &v.Initiators)
	object(c, "deciders", may, &v.Deciders, deciders)
	fact(c, "four_eyes", &v.FourEyes)
	list(c, "answers", may, &v.Answers, textValue[ringi.Answer])
	fact(c, "untrusted", &v.Untrusted)
	moment(c, "created_at", must, &v.CreatedAt)
	moment(c, "expires_at", may, &v.ExpiresAt)
	number(c, "use_by", must, &v.UseBy)
	text(c, "why", may, &v.Why)
	texts(c, "told", may, &v.Told)
}

func inputProposed(c *codec, v *ringi.InputProposed) {
	text(c, "request", must, &v.Request)
	text(c, "digest", must, &v.Digest)
	text(c, "answer", must, &v.Answer)
	text(c, "input", must, &v.Input)
	object(c, "by", must, &v.By, principal)
	text(c, "channel", may, &v.Channel)
	fact(c, "and_approve", &v.AndApprove)
}

func inputRefused(c *codec, v *ringi.InputRefused) {
	text(c, "request", must, &v.Request)
	text(c, "code", must, &v.Code)
	text(c, "text", must, &v.Text)
}

func approvalDecided(c *codec, v *ringi.ApprovalDecided) {
	text(c, "request", must, &v.Request)
	text(c, "answer", must, &v.Answer)
	object(c, "by", must, &v.By, principal)
	text(c, "channel", may, &v.Channel)
	text(c, "reason", may, &v.Reason)
	text(c, "note", may, &v.Note)
	text(c, "scope", may, &v.Scope)
	text(c, "digest", must, &v.Digest)
	text(c, "bytes", may, &v.Bytes)
	text(c, "result", may, &v.Result)
	moment(c, "use_by", may, &v.UseBy)
	moment(c, "at", must, &v.At)
	text(c, "signature", may, &v.Signature)
}

func approvalTakenBack(c *codec, v *ringi.ApprovalTakenBack) {
	text(c, "request", must, &v.Request)
	object(c, "by", must, &v.By, principal)
	text(c, "reason", may, &v.Reason)
}

func requestClosed(c *codec, v *ringi.RequestClosed) {
	text(c, "request", must, &v.Request)
	text(c, "state", must, &v.State)
	text(c, "why", may, &v.Why)
	text(c, "successor", may, &v.Successor)
	fact(c, "again", &v.Again)
	object(c, "by", unless(v.By.IsZero()), &v.By, principal)
}

func toolStarted(c *codec, v *ringi.ToolStarted) {
	text(c, "call", must, &v.Call)
	text(c, "tool", must, &v.Tool)
	text(c, "effect", must, &v.Effect)
	number(c, "attempt", must, &v.Attempt)
	text(c, "input", may, &v.Input)
	text(c, "request", may, &v.Request)
}

func toolFinished(c *codec, v *ringi.ToolFinished) {
	objects(c, "results", must, &v.Results, finishedCall)
}

func finishedCall(c *codec, v *ringi.FinishedCall) {
	text(c, "call", must, &v.Call)
	text(c, "outcome", must, &v.Outcome)
	text(c, "code", may, &v.Code)
	text(c, "origin", may, &v.Origin)
	text(c, "output", may, &v.Output)
	text(c, "error", may, &v.Error)
	fact(c, "truncated", &v.Truncated)
	number(c, "duration", may, &v.Duration)
	text(c, "class", may, &v.Class)
}

func outcomeUnknown(c *codec, v *ringi.OutcomeUnknown) {
	text(c, "call", must, &v.Call)
	text(c, "why", must, &v.Why)
	object(c, "request", must, &v.Request, approvalRequested)
}

func outcomeSettled(c *codec, v *ringi.OutcomeSettled) {
	text(c, "request", must, &v.Request)
	text(c, "call", must, &v.Call)
	text(c, "answer", must, &v.Answer)
	object(c, "by", must, &v.By, principal)
	text(c, "channel", may, &v.Channel)
	text(c, "reason", may, &v.Reason)
	text(c, "note", may, &v.Note)
	text(c, "digest", must, &v.Digest)
	text(c, "result", may, &v.Result)
	moment(c, "at", must, &v.At)
	text(c, "signature", may, &v.Signature)
}

func cancelRequested(c *codec, v *ringi.CancelRequested) {
	object(c, "by", must, &v.By, principal)
	text(c, "reason", may, &v.Reason)
	fact(c, "now", &v.Now)
}

func runFinished(c *codec, v *ringi.RunFinished) {
	text(c, "status", must, &v.Status)
	text(c, "reason", must, &v.Reason)
	text(c, "detail", may, &v.Detail)
	objects(c, "withheld", may, &v.Withheld, withheld)
}

func runErased(c *codec, v *ringi.RunErased) {
	object(c, "by", must, &v.By, principal)
	text(c, "reason", may, &v.Reason)
}
