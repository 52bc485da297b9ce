package chat

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/sign"
)

// Sealed is what a part shows of a request, as far as an answer binds it.
type Sealed struct {
	Request, Call, Tool string
	// shown is the JSON text of the input; for typed input of input and schema.
	Shown string
}

// Seal makes the token that goes out with a request and comes back with its
// answer: "r1." digest of the request "." sum over what was shown, which is
// HMAC-SHA-256 with a key and SHA-256 without. It lets nothing run: it says what
// its bearer was shown, and a decision still is its author's.
func (h *Server) Seal(thread, digest string, s Sealed) (string, error) {
	shown, err := sign.ClientJSON(s.Shown)
	if err != nil {
		return "", err
	}
	in := sha256.Sum256(shown)
	b, err := json.Marshal([]string{"ringi-chat-v1", thread, s.Request, s.Call, s.Tool, digest, base64.RawURLEncoding.EncodeToString(in[:])})
	if err != nil {
		return "", err
	}
	var sum []byte
	if len(h.Key) > 0 {
		mac := hmac.New(sha256.New, h.Key)
		mac.Write(b)
		sum = mac.Sum(nil)
	} else {
		plain := sha256.Sum256(b)
		sum = plain[:]
	}
	return "r1." + digest + "." + base64.RawURLEncoding.EncodeToString(sum), nil
}

// Unseal gives the digest that a part carries, where the seal fits the part as it
// came back. It asks no store.
func (h *Server) Unseal(thread, token string, s Sealed) (digest string, err error) {
	body, ok := strings.CutPrefix(token, "r1.")
	at := strings.LastIndexByte(body, '.')
	if !ok || at <= 0 {
		return "", ringi.ErrStale
	}
	want, err := h.Seal(thread, body[:at], s)
	if err != nil || !hmac.Equal([]byte(want), []byte(token)) {
		return "", ringi.ErrStale
	}
	return body[:at], nil
}

// Fits reports whether JavaScript reads a JSON text as what it says: every number
// is one that a double holds and prints (ECMAScript, Number::toString), and no
// name is one that the SDK's parser refuses.
func Fits(text string) bool { return walk(text, true) }

// Harmless reports whether the SDK's parser takes a JSON text: a name that could
// reach a prototype makes the whole chat fail there.
func Harmless(text string) bool { return walk(text, false) }

func walk(text string, numbers bool) bool {
	dec := jsontext.NewDecoder(strings.NewReader(text))
	for depth := 0; ; {
		name := false
		if kind, n := dec.StackIndex(dec.StackDepth()); kind == '{' {
			name = n%2 == 0
		}
		t, err := dec.ReadToken()
		if err != nil {
			return false
		}
		switch t.Kind() {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			if s := t.String(); name && (s == "__proto__" || s == "constructor" || s == "prototype") {
				return false
			}
		case '0':
			if numbers && !exact(t.String()) {
				return false
			}
		}
		if depth == 0 {
			_, err := dec.ReadToken()
			return err != nil && dec.StackDepth() == 0 && strings.TrimSpace(text[dec.InputOffset():]) == ""
		}
	}
}

func exact(number string) bool {
	if len(number) > 128 {
		return false
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		if n, err := strconv.Atoi(number[i+1:]); err != nil || n > 400 || n < -400 {
			return false
		}
	}
	wrote, ok := new(big.Rat).SetString(number)
	shows, ok2 := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return ok && ok2 && wrote.Cmp(shows) == 0
}

// Same reports whether a text that came back is the one that was shown.
func Same(came, shown string) bool {
	a, err := sign.ClientJSON(came)
	if err != nil {
		return false
	}
	b, err := sign.ClientJSON(shown)
	return err == nil && string(a) == string(b)
}
