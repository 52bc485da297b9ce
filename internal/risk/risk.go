// Package risk tells how closely a request should be looked at, the same for
// the list that orders by it and for the page that asks for more than one key.
package risk

import (
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// Of reads a request's kind, tool, call and Untrusted, and nothing else of it.
func Of(r *ringi.ApprovalRequest) ringi.Risk {
	_, _, foreign := ringi.Foreign(r.Call.Tool)
	switch {
	case r.Untrusted, foreign, r.Tool.Remote != nil, r.Kind == ringi.KindOutcome, hides(string(r.Call.Input)):
		return ringi.RiskHigh
	case r.Tool.Effect == ringi.ReadOnly:
		return ringi.RiskLow
	}
	return ringi.RiskMedium
}

// hides reports whether a reader of an input should be warned of it: of its text,
// or of what its keys and strings stand for.
func hides(input string) bool {
	if plain(input) {
		return false
	}
	if escape.Flags(input) != nil {
		return true
	}
	v, err := strictjson.Parse(input, strictjson.Limits{Bytes: -1, Depth: -1})
	return err == nil && flagged(v)
}

// plain reports whether a text is printable ASCII on one line without an escape
// or an encoded name: none of the flags is for such a text.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return !strings.Contains(s, "--")
}

func flagged(value any) bool {
	switch v := value.(type) {
	case string:
		return escape.Flags(v) != nil
	case []any:
		for _, sub := range v {
			if flagged(sub) {
				return true
			}
		}
	case map[string]any:
		for key, sub := range v {
			if escape.Flags(key) != nil || flagged(sub) {
				return true
			}
		}
	}
	return false
}
