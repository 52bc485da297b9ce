package sign

import "fmt"

// SignRequest signs the question: the request digest, which fixes everything
// that the request asks, within one store. The text is
// "v1.<key id>.<base64url>", 63 bytes.
//
// The store id is part of it, so that a row copied from another store under the
// same secret is worth nothing. Both fields must be given and may be signed (see
// [Tuple]); else the error is a [*FieldError]. Without a key it is [ErrNoKeyring].
func (k *Keyring) SignRequest(storeID, requestDigest string) (string, error) {
	var text [signatureSize]byte
	out, err := k.AppendRequestSignature(text[:0], storeID, requestDigest)
	return string(out), err
}

// AppendRequestSignature is [Keyring.SignRequest] that appends to dst. On an
// error dst comes back as it was. It allocates nothing where dst has room for 63
// bytes.
func (k *Keyring) AppendRequestSignature(dst []byte, storeID, requestDigest string) ([]byte, error) {
	if err := need(2, storeID, requestDigest); err != nil {
		return dst, fmt.Errorf("sign request: %w", err)
	}
	dst, err := k.sign(dst, PurposeApproval, storeID, requestDigest)
	if err != nil {
		return dst, fmt.Errorf("sign request: %w", err)
	}
	return dst, nil
}

// VerifyRequest returns nil only where signature was made by SignRequest for
// this store and this request digest, under a key of this keyring. Else the
// error wraps [ErrMissing], [ErrMalformed], [ErrWrong], [ErrRetired],
// [ErrNoKeyring] or is a [*FieldError].
func (k *Keyring) VerifyRequest(storeID, requestDigest, signature string) error {
	if err := need(2, storeID, requestDigest); err != nil {
		return fmt.Errorf("verify request: %w", err)
	}
	if err := k.verify(PurposeApproval, signature, storeID, requestDigest); err != nil {
		return fmt.Errorf("verify request: %w", err)
	}
	return nil
}

// need refuses an empty field: an id that somebody forgot to fill in binds
// nothing. first is the tuple index of the first field.
func need(first int, fields ...string) error {
	for i, field := range fields {
		if field == "" {
			return &FieldError{Index: first + i, Reason: reasonEmpty}
		}
	}
	return nil
}
