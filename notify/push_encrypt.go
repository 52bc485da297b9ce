package notify

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// recordSize is the record size that the header names; a message is one record.
const recordSize = 4096

// maxPush is the longest message that fits it: 4,096 bytes without the header
// (86), the tag (16) and the delimiter (1); RFC 8291, section 4.
const maxPush = recordSize - 86 - 16 - 1

// encryptPush encrypts a message for a browser: aes128gcm (RFC 8188) with keys
// of RFC 8291.
func encryptPush(d Device, text []byte) ([]byte, error) {
	ours, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	var salt [16]byte
	rand.Read(salt[:]) // never fails: the runtime ends the process instead
	return encryptWith(d, text, ours, salt)
}

func encryptWith(d Device, text []byte, ours *ecdh.PrivateKey, salt [16]byte) ([]byte, error) {
	if len(text) > maxPush {
		return nil, fmt.Errorf("the message has %d bytes, at most %d fit", len(text), maxPush)
	}
	theirs, auth, err := d.keys()
	if err != nil {
		return nil, err
	}
	shared, err := ours.ECDH(theirs)
	if err != nil {
		return nil, errors.New("the browser's key is not taken")
	}
	public := ours.PublicKey().Bytes()
	// RFC 8291, section 3.4.
	ikm, err := hkdf.Key(sha256.New, shared, auth, "WebPush: info\x00"+string(theirs.Bytes())+string(public), 32)
	if err != nil {
		return nil, err
	}
	// RFC 8188, sections 2.1 to 2.3.
	key, err := hkdf.Key(sha256.New, ikm, salt[:], "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, ikm, salt[:], "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	out := append([]byte{}, salt[:]...)
	out = binary.BigEndian.AppendUint32(out, recordSize)
	out = append(out, byte(len(public)))
	out = append(out, public...)
	return seal.Seal(out, nonce, append(append([]byte{}, text...), 2), nil), nil // 2 ends the last record
}
