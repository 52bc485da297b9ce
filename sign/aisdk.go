package sign

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"unicode/utf8"
)

// AISDKSignature makes the signature of a tool approval request in the form of
// the AI SDK, "ai-sdk-tool-approval-v1", so that a server of theirs can check it:
//
//	digest    = base64url(SHA-256(canonical JSON of input))
//	signature = base64url(HMAC-SHA-256(secret,
//	              ["ai-sdk-tool-approval-v1", approval id, tool call id, tool name, digest]))
//
// NEVER TAKE IT FOR AN APPROVAL. Nothing in Ringi runs on this form, and nothing
// may. It binds no run, no thread, no time, no decider and no decision: it is a
// bearer's token that any server with the secret honours as often as it is
// shown. And it does not bind the bytes: it hashes JavaScript values, so
// 9007199254740993 and 9007199254740992, 1e999 and null, a doubled key and a
// single one share a signature. What runs here needs [Keyring.VerifyRequest]
// and [Keyring.VerifyDecision].
//
// The secret is one of its own (AI_SDK_APPROVAL_SECRET), never an entry of the
// keyring. Its text is taken as bytes, as theirs is; it is not decoded and not
// split at commas. An empty secret is an error. The ids and the name are valid
// UTF-8; control characters are allowed, as theirs allows them, and escaped.
// input is JSON text, valid UTF-8, at most 512 levels deep. The older form, whose
// fields are joined by line ends, is neither made nor accepted here.
func AISDKSignature(secret []byte, approvalID, toolCallID, toolName, input string) (string, error) {
	sum, err := aisdkSum(secret, approvalID, toolCallID, toolName, input)
	if err != nil {
		return "", fmt.Errorf("sign in AI SDK form: %w", err)
	}
	return strictURL.EncodeToString(sum[:]), nil
}

// AISDKVerify returns nil only where signature is the one spelling that
// [AISDKSignature] makes for these fields. It is for tests and tools: see there
// why a nil error never lets anything run. It is stricter than the SDK, which
// also takes padding, the other alphabet and the older form. Else the error
// wraps [ErrMissing], [ErrMalformed] or [ErrWrong], or says why the fields or
// the secret are no good.
func AISDKVerify(secret []byte, approvalID, toolCallID, toolName, input, signature string) error {
	if err := aisdkVerify(secret, approvalID, toolCallID, toolName, input, signature); err != nil {
		return fmt.Errorf("verify in AI SDK form: %w", err)
	}
	return nil
}

func aisdkVerify(secret []byte, approvalID, toolCallID, toolName, input, signature string) error {
	if signature == "" {
		return ErrMissing
	}
	claimed, err := parseSum(signature)
	if err != nil {
		return err
	}
	sum, err := aisdkSum(secret, approvalID, toolCallID, toolName, input)
	if err != nil {
		return err
	}
	return same(sum, claimed)
}

func aisdkSum(secret []byte, approvalID, toolCallID, toolName, input string) (sum [sha256.Size]byte, err error) {
	if len(secret) == 0 {
		return sum, errors.New("empty secret")
	}
	payload, err := aisdkPayload(approvalID, toolCallID, toolName, input)
	if err != nil {
		return sum, err
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(payload)
	mac.Sum(sum[:0])
	return sum, nil
}

// aisdkPayload gives the bytes that are signed. They differ from a [Tuple] only
// in that control characters are allowed.
func aisdkPayload(approvalID, toolCallID, toolName, input string) ([]byte, error) {
	digest, err := aisdkDigest(input)
	if err != nil {
		return nil, err
	}
	payload := []byte{'['}
	for i, field := range [...]string{"ai-sdk-tool-approval-v1", approvalID, toolCallID, toolName, digest} {
		if !utf8.ValidString(field) {
			return nil, &FieldError{Index: i, Reason: reasonUTF8}
		}
		if i > 0 {
			payload = append(payload, ',')
		}
		payload = appendJSString(payload, jsUnits(field))
	}
	return append(payload, ']'), nil
}

func aisdkDigest(input string) (string, error) {
	canonical, err := jsCanonical(input)
	if err != nil {
		return "", fmt.Errorf("input: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return strictURL.EncodeToString(sum[:]), nil
}
