package mask

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// shortest is the length of the shortest secret that is looked for elsewhere:
// masking every "7" would hide everything and protect nothing.
const shortest = 4

// looks are values that are secret wherever they stand: private keys, tokens of
// well-known services and ours, JSON Web Tokens (RFC 7519), bearer tokens (RFC
// 6750, 2.1).
var looks = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(-----END [A-Z ]*PRIVATE KEY-----)?` +
	`|\bringi_[0-9a-z]{10}_[0-9a-z]{52}` +
	`|\bAKIA[0-9A-Z]{16}\b` +
	`|\bgh[pousr]_[A-Za-z0-9]{36,}` +
	`|\bgithub_pat_[A-Za-z0-9_]{22,}` +
	`|\bxox[abeoprs]-[A-Za-z0-9-]{10,}` +
	`|\bsk-[A-Za-z0-9_-]{20,}` +
	`|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*` +
	`|(?i:\bbearer +)[A-Za-z0-9._~+/-]{16,}=*`)

// Sweeper masks secrets in running text. The zero value masks what looks like a
// key.
type Sweeper struct{ r *strings.Replacer }

// NewSweeper returns a sweeper that also masks these values, as they are and as
// they stand inside JSON. Values shorter than four bytes are left.
func NewSweeper(secrets []string) Sweeper {
	var forms []string
	for _, s := range secrets {
		if len(s) < shortest || s == Mark {
			continue
		}
		forms = append(forms, s)
		inJSON := strictjson.AppendString(nil, s)
		forms = append(forms, string(inJSON[1:len(inJSON)-1]))
		if b, err := json.Marshal(s); err == nil {
			forms = append(forms, string(b[1:len(b)-1]))
		}
	}
	if len(forms) == 0 {
		return Sweeper{}
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) }) // the longest first
	forms = slices.Compact(forms)
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f, Mark)
	}
	return Sweeper{strings.NewReplacer(pairs...)}
}

// Text masks a text.
func (s Sweeper) Text(text string) string {
	if s.r != nil {
		text = s.r.Replace(text)
	}
	if len(text) < 16 {
		return text
	}
	return looks.ReplaceAllString(text, Mark)
}

// JSON masks every string of a JSON document, names of members too, and keeps
// all else byte for byte.
func (s Sweeper) JSON(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for i := 0; i < len(doc); {
		if doc[i] != '"' {
			out = append(out, doc[i])
			i++
			continue
		}
		end := i + 1
		for end < len(doc) && doc[end] != '"' {
			if doc[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(doc))
		out = s.literal(out, doc[i:end])
		i = end
	}
	return out
}

func (s Sweeper) literal(out, literal []byte) []byte {
	var text string
	if json.Unmarshal(literal, &text) != nil {
		return append(out, literal...)
	}
	swept := s.Text(text)
	if swept == text {
		return append(out, literal...)
	}
	b, _ := json.Marshal(swept) // a string always encodes
	return append(out, b...)
}
