// Package oidc logs people in by an OpenID Connect provider: the authorization
// code flow with PKCE (RFC 7636), state and nonce bound to the browser
// (OpenID Connect Core 1.0, 3.1; RFC 9700).
//
// Who a person is are issuer and subject, never an address or a name. What he
// may do is what the configuration makes of his groups, read anew at each
// login; who is in none of them gets no role (finding S-21).
//
// Read provider.go, then login.go from the button to the session, then claims.go.
package oidc
