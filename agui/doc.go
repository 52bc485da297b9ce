// Package agui serves an agent over AG-UI, the Agent User Interaction Protocol, in
// its version 1.0: the HttpAgent of @ag-ui/client drives a Ringi agent as it stands.
//
// What it does not take over is the protocol's trust in the client's history. The
// store holds the run and what it waits for. Of a RunAgentInput two things count:
// a new user message, and resume entries for what waits. Its tools, state, context
// and forwarded properties reach no model.
//
// A thread belongs to who speaks in it: it is derived from agent, principal and the
// client's threadId, so that nobody reaches another's by guessing. A run of Ringi
// goes on over several runs of the protocol: the first ends with an interrupt, the
// next brings the answer.
//
// A decision carries the digest of what its author saw. An interrupt's id holds it,
// with a seal over the input that was shown; what comes back is checked against the
// arguments of the call in the messages that the client sends along.
//
// Routes, below where the handler is mounted:
//
//	POST /               RunAgentInput: a stream of events
//	POST /connect        the same body, which starts nothing: the thread as it stands
//	POST /{thread}/stop  ends the run; a call in flight is recorded first
//
// A client that goes away stops nothing.
package agui
