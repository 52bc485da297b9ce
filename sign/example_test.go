package sign_test

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi/sign"
)

// A request is signed, checked, found changed, and outlives a change of keys.
func ExampleKeyring() {
	old := bytes.Repeat([]byte("old secret "), 3) // in earnest: 32 random bytes
	ring, err := sign.New(old)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ring)

	nonce := [sign.NonceSize]byte{1} // in earnest: random
	digest, _ := sign.Digest("example-request-v1", "run_1", "refund", sign.InputDigest(nonce, `{"order":"o-91"}`))
	signature, _ := ring.SignRequest("sto_1", digest)
	fmt.Println(signature)
	fmt.Println("the same request:", ring.VerifyRequest("sto_1", digest, signature))

	changed, _ := sign.Digest("example-request-v1", "run_1", "refund", sign.InputDigest(nonce, `{"order":"o-92"}`))
	fmt.Println("another order:", errors.Is(ring.VerifyRequest("sto_1", changed, signature), sign.ErrWrong))

	// Rotation: the new secret signs, the old one still verifies.
	fresh := bytes.Repeat([]byte("new secret "), 3)
	both, _ := sign.New(fresh, old)
	fmt.Println("both keys:", both.VerifyRequest("sto_1", digest, signature))
	alone, _ := sign.New(fresh)
	fmt.Println("new key alone:", alone.VerifyRequest("sto_1", digest, signature))

	// Output:
	// keyring(1b0c9f66a01f3172)
	// v1.1b0c9f66a01f3172.K5lonvrcb_pcyzld7G62vvQ8nMcWDl7qOaNEhHNFQvI
	// the same request: <nil>
	// another order: true
	// both keys: <nil>
	// new key alone: verify request: signature by a retired key
}

func ExampleTuple() {
	a, _ := sign.Tuple(nil, "pay", `call"1`)
	b, err := sign.Tuple(nil, "pay\ncall", "1")
	fmt.Printf("%s\n", a)
	fmt.Printf("%q %v\n", b, err)
	// Output:
	// ["pay","call\"1"]
	// "" field 0: control character
}
