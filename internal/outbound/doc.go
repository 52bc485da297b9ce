// Package outbound makes the one HTTP client by which the server speaks to
// addresses that a user or a configuration names: webhooks, push services,
// identity providers, tools (S-35).
//
// What it reaches is decided where the connection is made, by the address that
// is connected to: a name that meant something else a moment ago gains nothing.
// Reachable is what the special-purpose address registries of IANA call globally
// reachable (RFC 6890), over TLS, on port 443 or 80. What an operator allows by
// name or network may be anywhere, on any port, and without TLS.
package outbound
