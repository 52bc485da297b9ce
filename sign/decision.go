package sign

import (
	"fmt"
	"strconv"
	"time"
)

// Decision holds what is signed of a person's answer. Every field is bound:
// change one and the signature is wrong. Fields follow the rules of [Tuple].
type Decision struct {
	// StoreID is the store that holds request and decision. Required.
	StoreID string
	// RequestDigest is the digest of the request that its author saw. Required.
	RequestDigest string
	// Answer is the kind of answer, such as "approve" or "deny". Required.
	Answer string
	// InputDigest is the digest of the bytes that shall run, blinded by the
	// request's nonce ([InputDigest]); for an answer that supplies a result in
	// the tool's place, the digest of that result. Required, but for the answer
	// "deny", where nothing runs.
	InputDigest string
	// ReasonDigest is the digest of the reason ([ReasonDigest]); empty where
	// none was given.
	ReasonDigest string
	// Decider is the id of the person who answered. Required.
	Decider string
	// Authenticated says how the decider was authenticated. Required.
	Authenticated string
	// At is when the answer was given. It is signed as decimal microseconds
	// since 1970-01-01 UTC, as events store it: one spelling, no time zone.
	// What is finer is cut off. Years 1970 to 9999; the zero time is refused.
	At time.Time
}

// answerDeny is the one answer after which nothing runs.
const answerDeny = "deny"

// SignDecision signs an answer. Only the process that authenticated its author
// may call it. The text has the form of [Keyring.SignRequest]. The error is a
// [*FieldError] where a field is missing or cannot be signed, [ErrNoKeyring]
// without a key.
func (k *Keyring) SignDecision(d Decision) (string, error) {
	var text [signatureSize]byte
	out, err := k.AppendDecisionSignature(text[:0], d)
	return string(out), err
}

// AppendDecisionSignature is [Keyring.SignDecision] that appends to dst. On an
// error dst comes back as it was.
func (k *Keyring) AppendDecisionSignature(dst []byte, d Decision) ([]byte, error) {
	fields, err := d.fields()
	if err == nil {
		dst, err = k.sign(dst, PurposeDecision, fields[:]...)
	}
	if err != nil {
		return dst, fmt.Errorf("sign decision: %w", err)
	}
	return dst, nil
}

// VerifyDecision returns nil only where signature was made by SignDecision for
// exactly these fields, under a key of this keyring. Else the error wraps one of
// those of [Keyring.VerifyRequest].
func (k *Keyring) VerifyDecision(d Decision, signature string) error {
	fields, err := d.fields()
	if err == nil {
		err = k.verify(PurposeDecision, signature, fields[:]...)
	}
	if err != nil {
		return fmt.Errorf("verify decision: %w", err)
	}
	return nil
}

// fields gives what stands behind label and key id. It refuses a decision that
// leaves open what it must bind.
func (d *Decision) fields() (fields [8]string, err error) {
	if err := need(2, d.StoreID, d.RequestDigest, d.Answer); err != nil {
		return fields, err
	}
	if d.InputDigest == "" && d.Answer != answerDeny {
		return fields, &FieldError{Index: 5, Reason: reasonEmpty}
	}
	if err := need(7, d.Decider, d.Authenticated); err != nil {
		return fields, err
	}
	if year := d.At.UTC().Year(); year < 1970 || year > 9999 {
		return fields, &FieldError{Index: 9, Reason: reasonTime}
	}
	at := strconv.FormatInt(d.At.UnixMicro(), 10)
	return [8]string{d.StoreID, d.RequestDigest, d.Answer, d.InputDigest, d.ReasonDigest, d.Decider, d.Authenticated, at}, nil
}
