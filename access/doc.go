// Package access says who is asking, and what he may do.
//
// Three parts, read in this order:
//
//   - One table: [Route] by [Role] by [Owner]. [May] answers from it, [Table]
//     prints it, and a test walks it.
//   - The [Directory]: users, teams, tokens, sessions, login links, stored
//     answers and presence, over one SQL database. Whoever copies the database
//     has nothing that logs in: secrets are kept as SHA-256.
//   - The [Authenticator] and its neighbours turn an HTTP request into a [Who]:
//     bearer token or session cookie, origin and form token, [Hosts],
//     [Headers], [Limiter], [Proxies].
//
// What is unclear refuses. Rights are read from the directory at every request,
// so that a revoked token, an ended session or a disabled user counts at once.
// Whether a person may decide one request (deciders, four eyes, the tool's own
// gate) is policy's word and the engine's; this package says who may ask.
package access
