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

// names are names of members whose values are secret whatever they hold.
var names = regexp.MustCompile(`(?i)^(.*[-_.])?(authorization|cookie|password|passwd|passphrase|secret|token|credentials?|(api|access|private|secret)[-_]?key|apikey)$`)

// Name reports whether the name of a member says that its value is secret.
func Name(name string) bool { return names.MatchString(name) }

// looks are values that are secret wherever they stand: private keys, tokens of
// well-known services and ours, JSON Web Tokens (RFC 7519), bearer and basic
// credentials (RFC 6750, 2.1; RFC 7617, 2), passwords in addresses (RFC 3986,
// 3.2.1). The named ones are told from words by look alone.
var looks = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?` +
	`|\bringi_[0-9a-z]{10}_[0-9a-z]{52}` +
	`|\bAKIA[0-9A-Z]{12,}\b` +
	`|\bgh[pousr]_[A-Za-z0-9]{16,}` +
	`|\bgithub_pat_[A-Za-z0-9_]{22,}` +
	`|\bxox[abeoprs]-[A-Za-z0-9-]{8,}` +
	`|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*` +
	`|://[^/\s:@]+:[^/\s@]+@` +
	`|\bsk-(?P<sk>[A-Za-z0-9_-]{8,})` +
	`|(?i:\b(?:bearer|basic)\s+)(?P<auth>[A-Za-z0-9._~+/-]{8,}=*)`)

// Looks reports whether a text holds what looks like a secret.
func Looks(text string) bool { return sweep(text) != text }

// sweep masks what looks like a secret. What stands behind "sk-", "bearer" or
// "basic" may be a word: it counts from 16 characters, or with a digit.
func sweep(text string) string {
	if len(text) < 8 {
		return text
	}
	return looks.ReplaceAllStringFunc(text, func(found string) string {
		m := looks.FindStringSubmatch(found)
		if word := m[looks.SubexpIndex("sk")] + m[looks.SubexpIndex("auth")]; word != "" && len(word) < 16 && !strings.ContainsAny(word, "0123456789") {
			return found
		}
		return Mark
	})
}

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
	return sweep(text)
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
