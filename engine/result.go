package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// This file writes every text that a model reads in a tool's place. The codes
// keep "no such tool", "denied" and "expired" apart, and each text says that
// nothing ran.

// refusal is the result of a call that was refused as it was judged.
func refusal(c *call) *ringi.ToolResult {
	j := c.judged
	res := engineResult(c, ringi.OutcomeDenied, j.Code, j.Text)
	switch j.Code {
	case ringi.CodeUnknownTool, ringi.CodeNotOffered, ringi.CodeInvalidInput:
		res.Outcome = ringi.OutcomeInvalid
	case ringi.CodeIncompleteTurn, ringi.CodeLimit, ringi.CodeRunEnded:
		res.Outcome = ringi.OutcomeNotExecuted
	case ringi.CodeCancelled:
		res.Outcome = ringi.OutcomeCancelled
	}
	return res
}

func engineResult(c *call, o ringi.CallOutcome, code ringi.ResultCode, text string) *ringi.ToolResult {
	return &ringi.ToolResult{
		CallID: c.judged.ID, ModelID: c.judged.ModelID, Tool: c.judged.Tool,
		Outcome: o, Code: code, Origin: ringi.OriginEngine, Error: text, Approval: record(c),
	}
}

func deniedByPerson(r *request) *ringi.ToolResult {
	text := "denied by a person, not executed; this is final for this call"
	if r.decided.Scope == ringi.ThisTool {
		text = "denied by a person, not executed; this holds for every call of this tool in this conversation"
	}
	if r.decided.Reason != "" {
		text += ". Reason: " + r.decided.Reason
	}
	return engineResult(r.call, ringi.OutcomeDenied, ringi.CodeDeniedByPerson, text)
}

func responded(r *request) *ringi.ToolResult {
	c := r.call
	res := &ringi.ToolResult{
		CallID: c.judged.ID, ModelID: c.judged.ModelID, Tool: c.judged.Tool, Outcome: ringi.OutcomeResponded,
		Origin: ringi.OriginPerson, Output: r.decided.Result, Approval: record(c),
	}
	if !c.external() {
		res.Note = "A person answered in the tool's place; the tool did not run."
	}
	return res
}

func expired(c *call) *ringi.ToolResult {
	return engineResult(c, ringi.OutcomeExpired, ringi.CodeExpired,
		"expired, not executed: nobody decided in time, and silence is not consent")
}

func withdrawn(c *call, why string) *ringi.ToolResult {
	text := "withdrawn, not executed"
	if why != "" {
		text += ": " + why
	}
	return engineResult(c, ringi.OutcomeNotExecuted, ringi.CodeWithdrawn, text)
}

func ranByWord(r *request) *ringi.ToolResult {
	c := r.call
	return &ringi.ToolResult{
		CallID: c.judged.ID, ModelID: c.judged.ModelID, Tool: c.judged.Tool, Outcome: ringi.OutcomeResponded,
		Origin: ringi.OriginPerson, Output: r.settled.Result, Approval: record(c),
		Note: "The call was interrupted; a person says that it ran, with this result.",
	}
}

func didNotRun(r *request) *ringi.ToolResult {
	text := "the call was interrupted; a person says that it did not run"
	if r.settled.Reason != "" {
		text += ". Reason: " + r.settled.Reason
	}
	return engineResult(r.call, ringi.OutcomeNotExecuted, ringi.CodeDidNotRun, text)
}

// resultOf fills in the result of a call that the engine finished.
func resultOf(c *call, f *ringi.FinishedCall, res *ringi.ToolResult) {
	*res = ringi.ToolResult{
		CallID: c.judged.ID, ModelID: c.judged.ModelID, Tool: c.judged.Tool, Outcome: f.Outcome, Code: f.Code,
		Origin: f.Origin, Output: f.Output, Error: f.Error, Truncated: f.Truncated, Duration: f.Duration,
		Approval: record(c),
	}
	if f.Truncated {
		res.Note = "The result was longer than the limit and was cut."
	}
	if r := c.request; r != nil && r.ev.Proposed && f.Origin == ringi.OriginTool {
		res.Note = joinNotes(changedNote(r), res.Note)
	}
}

// changedNote tells the model that a person changed its call. Of typed values it
// is told which keys a person supplied, and the values of those alone that the
// tool's schema marks with x-tell-model.
func changedNote(r *request) string {
	if len(r.ev.Supplied) > 0 {
		parts := slices.Clone(r.ev.Supplied)
		if len(r.ev.Told) > 0 {
			tellValues(parts, r.ev)
		}
		return "A person supplied: " + strings.Join(parts, ", ") + "."
	}
	return fmt.Sprintf("A person changed the input before the call ran. Executed input: %s", r.ev.Input)
}

// The most of typed values that a note tells, in bytes as they are told: of one,
// and of all. What is longer is named alone; a value is never cut.
const (
	maxToldValue  = 256
	maxToldValues = 2 << 10
)

// tellValues puts the values that may be told behind their keys. They are what
// runs, as JSON on one line, so that no text of a person's passes for a part of
// the note; what is not plainly visible is told as escapes.
func tellValues(parts []string, ev *ringi.ApprovalRequested) {
	members, err := strictjson.Members(string(ev.Input), strictjson.Limits{})
	if err != nil {
		return // a name is all that can be told
	}
	left := maxToldValues
	for _, m := range members {
		i := slices.Index(parts, m.Key)
		if i < 0 || !slices.Contains(ev.Told, m.Key) {
			continue
		}
		var line bytes.Buffer
		if json.Compact(&line, []byte(m.Value)) != nil {
			continue
		}
		value := escape.JSON(nil, line.Bytes())
		if len(value) > maxToldValue || len(value) > left {
			parts[i] += " (a value too long to tell)"
			continue
		}
		left -= len(value)
		parts[i] += " = " + string(value)
	}
}

func joinNotes(a, b string) string {
	if b == "" {
		return a
	}
	return a + "\n" + b
}

// record tells caller, page and auditor the same of a call.
func record(c *call) ringi.ApprovalRecord {
	a := ringi.ApprovalRecord{Status: c.verdict.Status, Source: c.verdict.Source, Reason: c.verdict.Reason}
	a.Automatic = a.Status == ringi.Approved || a.Status == ringi.Denied
	r := c.request
	if r == nil {
		return a
	}
	a.Status, a.Source, a.Reason, a.Automatic = ringi.UserApproval, r.ev.Verdict.Source, r.ev.Verdict.Reason, false
	a.Request, a.Digest, a.Supplied = r.ev.Request, r.ev.Digest, r.ev.Supplied
	if d := r.decided; d != nil {
		a.Decision, a.By = d.Answer, d.By.ID
	}
	if r.ev.Proposed {
		a.Executed = r.ev.Input
	}
	return a
}

// external reports whether somebody else runs the tool.
func (c *call) external() bool {
	return c.request != nil && c.request.ev.Ask == ringi.KindResult
}
