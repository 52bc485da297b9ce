// Package httpapi serves a [ringi.Service] over HTTP, and speaks to one.
//
// [New] makes a plain [http.Handler] with routes below /v1: threads, runs,
// approvals, tools, and two kinds of streams. [Client] is the same service seen
// from the other side of the wire. The document at /v1/openapi.json (OpenAPI
// 3.1) is made from the code; errors are RFC 9457 problems, from one table that
// docs/errors.md shows.
//
// Who asks is what the [access.Authenticator] says, never what a body says. Who
// sees what is package sight's word. Handlers ask access first, then the
// service, and hold no rule of their own.
package httpapi
