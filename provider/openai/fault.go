package openai

import (
	"encoding/json"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// wireFault is an error as the vendor writes it: in an error's body under
// "error", and in a stream. Other servers write the code as a number, or the
// members at the top.
type wireFault struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
}

func (f *wireFault) code() string {
	var text string
	if json.Unmarshal(f.Code, &text) == nil && text != "" {
		return text
	}
	return f.Type
}

// readFault reads an error's body.
func readFault(a vendor.Answer) vendor.Said {
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(a.Body, &outer) != nil {
		return vendor.Said{}
	}
	var f wireFault
	if len(outer.Error) == 0 {
		outer.Error = a.Body
	}
	if json.Unmarshal(outer.Error, &f) != nil && json.Unmarshal(outer.Error, &f.Message) != nil {
		return vendor.Said{}
	}
	s := f.said()
	if s.Class == "" && a.Status == 413 {
		s.Class = ringi.ModelContextLength
	}
	return s
}

// said names the class of a vendor's error by its code, where the status does
// not say it: https://platform.openai.com/docs/guides/error-codes. The class is
// empty where the status is all there is.
func (f *wireFault) said() vendor.Said {
	s := vendor.Said{Code: f.code(), Text: f.Message}
	switch s.Code {
	case "insufficient_quota", "billing_hard_limit_reached", "billing_not_active":
		s.Class = ringi.ModelQuota
	case "context_length_exceeded":
		s.Class = ringi.ModelContextLength
	case "content_filter", "content_policy_violation", "invalid_prompt", "cyber_policy":
		s.Class = ringi.ModelFiltered
	case "rate_limit_exceeded", "tokens", "requests":
		s.Class = ringi.ModelRateLimit
	case "invalid_api_key", "authentication_error", "permission_error":
		s.Class = ringi.ModelAuth
	case "server_is_overloaded", "overloaded_error", "slow_down":
		s.Class = ringi.ModelOverloaded
	case "server_error", "internal_error", "vector_store_timeout":
		s.Class = ringi.ModelServer
	}
	// Servers of others tell a long conversation in words alone; and a request
	// above the limit of a minute never passes, although it is called a rate.
	for _, words := range []string{"maximum context length", "context window", "context length", "Request too large"} {
		if strings.Contains(f.Message, words) && (s.Class == "" || s.Class == ringi.ModelRateLimit) {
			s.Class = ringi.ModelContextLength
		}
	}
	return s
}
