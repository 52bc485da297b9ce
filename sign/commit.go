package sign

import (
	"crypto/sha256"
	"fmt"
)

// SignCommit appends the MAC of a commit to dst, 32 raw bytes, and returns it
// with the id of the key that made it. The MAC binds the head of a run's chain,
// which is the hash of its newest event, to its sequence number, run and store:
//
//	["ringi-commit-v1", key id, store id, run id, sequence number, head in hex]
//
// It runs on every commit and allocates nothing where dst has room for 32 bytes.
// On an error dst comes back as it was: a [*FieldError] for an empty id or a
// negative sequence number, [ErrNoKeyring] without a key.
func (k *Keyring) SignCommit(dst []byte, storeID, runID string, seq int64, head [sha256.Size]byte) (mac []byte, keyID string, err error) {
	keyID = k.SigningID()
	sum, err := k.commitSum(keyID, storeID, runID, seq, &head)
	if err != nil {
		return dst, "", fmt.Errorf("sign commit: %w", err)
	}
	return append(dst, sum[:]...), keyID, nil
}

// VerifyCommit returns nil only where keyID and mac came from SignCommit for
// exactly these values and the keyring holds that key. Else the error wraps
// [ErrMissing] (neither key id nor MAC), [ErrMalformed], [ErrWrong],
// [ErrRetired], [ErrNoKeyring] or is a [*FieldError].
func (k *Keyring) VerifyCommit(storeID, runID string, seq int64, head [sha256.Size]byte, keyID string, mac []byte) error {
	if err := k.verifyCommit(storeID, runID, seq, &head, keyID, mac); err != nil {
		return fmt.Errorf("verify commit: %w", err)
	}
	return nil
}

func (k *Keyring) verifyCommit(storeID, runID string, seq int64, head *[sha256.Size]byte, keyID string, mac []byte) error {
	if keyID == "" && len(mac) == 0 {
		return ErrMissing
	}
	if !isKeyID(keyID) || len(mac) != sha256.Size {
		return ErrMalformed
	}
	sum, err := k.commitSum(keyID, storeID, runID, seq, head)
	if err != nil {
		return err
	}
	return same(sum, [sha256.Size]byte(mac))
}

func (k *Keyring) commitSum(keyID, storeID, runID string, seq int64, head *[sha256.Size]byte) ([sha256.Size]byte, error) {
	if err := need(2, storeID, runID); err != nil {
		return [sha256.Size]byte{}, err
	}
	if seq < 0 {
		return [sha256.Size]byte{}, &FieldError{Index: 4, Reason: reasonNegative}
	}
	w, err := k.open(PurposeLog, keyID)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	w.add(storeID, runID)
	w.addInt(seq)
	w.addHex(head[:])
	return w.close()
}
