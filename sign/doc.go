// Package sign makes and checks the bytes that an approval hangs on: canonical
// tuples, digests, HMAC signatures and the keyring that holds the keys.
//
// A signed thing is always a JSON array of strings with a label and a version
// first, so no two different things ever have the same bytes (see [Tuple]):
//
//	["ringi-approval-v1", key id, store id, request digest]
//	["ringi-decision-v1", key id, store id, request digest, answer,
//	    digest of the bytes that shall run, digest of the reason, decider,
//	    how the decider was authenticated, time]
//	["ringi-commit-v1", key id, store id, run id, sequence number, head]
//
// Both the question and the answer are signed, and each commit. Whoever can
// write to the store but has no key can make none of the three. HMAC is
// symmetric: who can verify can also sign.
//
// Reading order: tuple.go (bytes), keyring.go and secret.go (keys), request.go,
// decision.go and commit.go (what is signed), mac.go and signature.go (how),
// digest.go (what is only hashed). aisdk.go stands apart: it speaks the
// AI SDK's own form, which is never enough to run anything here.
//
// Everything fails closed. A check returns nil or one of four errors:
// [ErrMissing], [ErrMalformed], [ErrWrong], [ErrRetired]; or a [FieldError]
// where the fields could not have been signed at all; or [ErrNoKeyring].
package sign
