// Package aisdk serves the AI SDK's chat (useChat of @ai-sdk/react, majors 6 and
// 7 of the package ai) from Go, with approvals that mean something.
//
// It speaks the SDK's UI message stream. What it does not take over is the SDK's
// trust: there, a suspended run is the list of messages that the client sends
// back. Here the store holds the run and what it waits for. Of a client's body
// two things count: a new user message, and answers to requests that wait. All
// else in it is compared with what is known, and refused where it differs.
//
// A chat belongs to who speaks in it: its thread is derived from agent, principal
// and the client's own id of the chat, so that nobody reaches another's by
// guessing. One run is one assistant message, and the run's id is the message's.
//
// A decision carries the digest of what its author saw. The chat gets it as the
// signature of an approval, bound to the input that was shown; what comes back is
// checked against the input in the part that the client echoes. An input that
// JavaScript cannot hold exactly (integers beyond 2^53) is not decided in a chat:
// what its user saw would not be what runs.
//
// Routes, below where the handler is mounted:
//
//	POST /                  the SDK's body {id, messages, trigger, messageId}: a stream
//	POST /{id}              the same
//	GET  /{id}/stream       the newest assistant message from its first part; 204 where nothing changed
//	GET  /{id}/messages     the chat as UIMessage[]
//	GET  /{id}/events       server-sent events: settled, changed
//	POST /{id}/decisions    one answer, with the part that was shown
//	POST /{id}/stop         ends the run; a call in flight is recorded first
//
// A client that goes away stops nothing.
package aisdk
