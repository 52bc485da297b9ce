// Package audit is the log of a run: how an event becomes bytes, how each
// record is chained to the one before it, and how a chain is verified. It
// stores nothing.
//
// # A record
//
// An event is kept as a header, a payload and 32 random bytes (the salt). The
// header is chained. Payload and salt lie beside the chain and can be erased
// together while the chain stays whole: the header holds no more of them than
// a commitment. Headers hold ids and digests, never free text.
//
// The header's exact bytes are frozen, members in this order:
//
//	{"v":1,"seq":2,"kind":"tool_started","at":1767225600000000,"epoch":1,
//	 "call":"…","request":"…","by":"…","answer":"…","digest":"…",
//	 "commitment":"…"}
//
// without the line breaks and blanks. at counts microseconds since 1970 in
// UTC. call, request, by, answer and digest are left out where the event has
// none. by is the principal's id; digest is the request digest that the event
// makes or answers; call is left out where an event is about several calls.
// None of the five is longer than 1,024 bytes or holds control characters.
//
//	commitment = base64url without padding of
//	             SHA-256("ringi-commitment-v1" 0x00 salt payload)
//	hash       = SHA-256(hash of the record before header)
//
// The hash before the first record is the genesis: SHA-256 over
// "ringi-genesis-v1" 0x00 and, for each of store id, space and run id, its
// length as eight bytes (big endian) and its bytes.
//
// # A payload
//
// A payload is the body as JSON (RFC 8259), its members named by the json tags
// of the body's type, in the order of its fields, without blanks. Members that
// the tags leave out are left out. Beyond that:
//
//   - A string that is valid UTF-8 is a JSON string. Only the quotation mark,
//     the backslash and control characters below U+0020 are escaped: \" \\ \n
//     \r \t, and \u00xx in lower case for the others.
//   - A string that is not valid UTF-8 is the object {"b64":"…"}: base64url
//     without padding (RFC 4648, section 5) of its bytes. So the bytes of a
//     model, a tool or a person always come back exactly.
//   - A [encoding/json.RawMessage] is a string that holds its text. It is never
//     embedded, since a JSON library does not keep its bytes.
//   - A time is RFC 3339 in UTC with six digits of the second. What is finer
//     than a microsecond is cut.
//   - A duration is a whole number of nanoseconds.
//
// Payloads are written by hand and read by hand in that spelling. Any other
// spelling of the same body, with members in another order or unknown ones, is
// read by the JSON library; so is an older payload that lacks a member.
package audit
