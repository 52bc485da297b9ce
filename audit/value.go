package audit

import "github.com/ringi-dev/ringi"

// The members of the values that stand inside bodies and requests.

func principal(c *codec, v *ringi.Principal) {
	text(c, "id", must, &v.ID)
	text(c, "name", may, &v.Name)
	text(c, "kind", may, &v.Kind)
	fact(c, "admin", &v.Admin)
	texts(c, "teams", may, &v.Teams)
	text(c, "auth", may, &v.Auth)
	text(c, "owner", may, &v.Owner)
}

func parentRef(c *codec, v *ringi.ParentRef) {
	text(c, "thread", may, &v.Thread)
	text(c, "run_id", may, &v.RunID)
	text(c, "call_id", may, &v.CallID)
}

func limits(c *codec, v *ringi.Limits) {
	number(c, "steps", may, &v.Steps)
	number(c, "tool_calls", may, &v.ToolCalls)
	number(c, "calls_per_turn", may, &v.CallsPerTurn)
	number(c, "tool_timeout", may, &v.ToolTimeout)
	number(c, "input_bytes", may, &v.InputBytes)
	number(c, "input_depth", may, &v.InputDepth)
	number(c, "result_bytes", may, &v.ResultBytes)
	number(c, "open_requests", may, &v.OpenRequests)
	number(c, "same_denied", may, &v.SameDenied)
	number(c, "denied", may, &v.Denied)
	number(c, "attempts", may, &v.Attempts)
	number(c, "model_retries", may, &v.ModelRetries)
	number(c, "reads", may, &v.Reads)
}

func deciders(c *codec, v *ringi.Deciders) {
	texts(c, "people", may, &v.People)
	texts(c, "teams", may, &v.Teams)
}

func usage(c *codec, v *ringi.Usage) {
	number(c, "input_tokens", may, &v.InputTokens)
	number(c, "output_tokens", may, &v.OutputTokens)
	number(c, "reasoning_tokens", may, &v.ReasoningTokens)
	number(c, "cached_tokens", may, &v.CachedTokens)
}

func verdict(c *codec, v *ringi.Verdict) {
	text(c, "status", must, &v.Status)
	text(c, "source", may, &v.Source)
	text(c, "reason", may, &v.Reason)
}

func preview(c *codec, v *ringi.Preview) {
	text(c, "text", must, &v.Text)
	text(c, "format", may, &v.Format)
	text(c, "precondition", may, &v.Precondition)
}

func withheld(c *codec, v *ringi.Withheld) {
	text(c, "tool", must, &v.Tool)
	text(c, "call_id", may, &v.CallID)
	text(c, "answer", may, &v.Answer)
	text(c, "reason", may, &v.Reason)
}

func message(c *codec, v *ringi.Message) {
	text(c, "role", must, &v.Role)
	text(c, "text", may, &v.Text)
	text(c, "author", may, &v.Author)
	objects(c, "calls", may, &v.Calls, toolCall)
	objects(c, "results", may, &v.Results, toolResult)
	text(c, "opaque", may, &v.Opaque)
	text(c, "approval", may, &v.Approval)
}

func toolCall(c *codec, v *ringi.ToolCall) {
	text(c, "id", must, &v.ID)
	text(c, "model_id", may, &v.ModelID)
	text(c, "tool", must, &v.Tool)
	text(c, "input", must, &v.Input)
	text(c, "raw", may, &v.Raw)
}

func toolResult(c *codec, v *ringi.ToolResult) {
	text(c, "call_id", may, &v.CallID)
	text(c, "model_id", may, &v.ModelID)
	text(c, "tool", may, &v.Tool)
	text(c, "outcome", may, &v.Outcome)
	text(c, "code", may, &v.Code)
	text(c, "origin", may, &v.Origin)
	text(c, "output", may, &v.Output)
	text(c, "error", may, &v.Error)
	text(c, "note", may, &v.Note)
	fact(c, "truncated", &v.Truncated)
	number(c, "duration", may, &v.Duration)
	object(c, "approval", unless(v.Approval.IsZero()), &v.Approval, approvalRecord)
}

func approvalRecord(c *codec, v *ringi.ApprovalRecord) {
	text(c, "status", may, &v.Status)
	text(c, "source", may, &v.Source)
	text(c, "reason", may, &v.Reason)
	fact(c, "automatic", &v.Automatic)
	text(c, "request", may, &v.Request)
	text(c, "digest", may, &v.Digest)
	text(c, "decision", may, &v.Decision)
	text(c, "by", may, &v.By)
	text(c, "executed", may, &v.Executed)
	texts(c, "supplied", may, &v.Supplied)
}
