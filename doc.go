// Package ringi is the vocabulary of an agent loop in which no tool call runs
// that nobody allowed: policy decides, people approve, and what was approved
// is exactly what runs, once. The loop itself is package engine.
//
// This is the tour. It takes ten minutes.
//
// # The path
//
// Seven words, in their order. Each is a type of this package or of engine,
// and the same word in the log, the store and the command line.
//
//	offer ─▶ call ─▶ verdict ─┬─ not-applicable, approved ──────────────────▶ grant ─▶ result
//	                          ├─ user-approval ─▶ request ─▶ decision ─ yes ▶ grant ─▶ result
//	                          │                                       └ no ──────────▶ result
//	                          └─ denied ─────────────────────────────────────────────▶ result
//
// What each word holds:
//
//   - An [Offer] is the tools that this run's model may see, and why it may
//     not see the others. Five gates, one AND.
//   - A [ToolCall] is what the model asked for. Its [Input] is a string: the
//     bytes that are judged, shown and digested are the bytes that run.
//   - A [Verdict] is policy's word on a call: a [Status], where it comes from,
//     and why. Package policy gives it, and no other.
//   - An [ApprovalRequest] is the question put to a person. One digest fixes
//     all that it shows.
//   - A [Decision] is the person's answer. It carries that digest back; another
//     one is refused as stale. The request's own methods make it:
//     [ApprovalRequest.Approve], [ApprovalRequest.Deny],
//     [ApprovalRequest.Edit], [ApprovalRequest.Fill], [ApprovalRequest.Respond].
//   - A grant is the right to run one call once. Nobody outside engine can
//     name one, and two functions inside make one.
//   - A [ToolResult] is what came back, or the refusal that the model is told.
//
// # A tool
//
// A [Tool] is plain data; a [Registry] joins it to its handler. [AddTool] takes
// a typed function, infers the schemas and decodes by exact names;
// [Registry.Add] takes a raw [ToolHandler]; [Registry.AddExternal] is for what
// somebody else runs.
//
// [Effect] says what a tool does to the world. A declared write asks a person
// by default. An effect that nobody declared is judged as a read and run as a
// write that is never repeated.
//
// # What policy says
//
// [Approval] holds the user's own settings. The first opinion counts:
//
//  1. [Approval].Func, one function for every call;
//  2. the function of the tool, typed by [When];
//  3. the status of the tool;
//  4. the tool's own NeedsApproval;
//  5. the rule: a marker, an operator's word on a remote tool, or a write.
//
// An operator's floor can only tighten. What fails, panics or is unknown denies.
//
// # A run, and a person
//
// A [RunStart] begins a run. Where a call waits and no callback answers it, the
// run returns as [WaitingForApproval]: what remains of it is rows in a [Store],
// no goroutine and no lock. Any process with that store may record the
// decision. A process with tools and model then resumes the run.
//
//	res, err := e.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("…")}})
//	_, err = e.Decide(ctx, res.Pending[0].Approve(ana)) // here, or in another process
//	res, err = e.Resume(ctx, res.RunID)
//
// [Result.Err] is nil for a run that completed by itself. [YesNo] adapts a
// function that answers yes or no, for a program that asks in process.
//
// # What is recorded
//
// A run is its log. Every [Event] has a kind and a body; each carries the hash
// of the one before it, and the state of a run is a fold over them. What could
// not be recorded does not run. A write that started and did not come back in
// time is unknown, and a person says what happened: [ApprovalRequest.Ran],
// [ApprovalRequest.DidNotRun], [ApprovalRequest.RunAgain].
//
// # Where to read on
//
// tool.go, call.go, verdict.go, request.go and decision.go hold the words.
// policy/offer.go and policy/judge.go say who may and who must ask.
// engine/step.go goes down to the pause; engine/settle.go and engine/execute.go
// go from the answer to the result. docs/path.md has the same in one page, and
// docs/README.md lists all pages.
package ringi
