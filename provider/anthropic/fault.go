package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// wireFault is an error as the vendor writes it, in an error's body and in a
// stream: {"type":"error","error":{…}}.
type wireFault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Details struct {
		Code string `json:"error_code"`
	} `json:"details"`
}

// readFault reads an error's body.
func readFault(a vendor.Answer) vendor.Said {
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(a.Body, &outer) != nil || len(outer.Error) == 0 {
		return vendor.Said{}
	}
	s := faultOf(outer.Error)
	if s.Class == "" && a.Status == 413 {
		s.Class = ringi.ModelContextLength
	}
	return s
}

// faultOf reads what stands under "error": the vendor's object, or the text that
// gateways write there.
func faultOf(raw json.RawMessage) vendor.Said {
	var f wireFault
	if json.Unmarshal(raw, &f) != nil {
		f = wireFault{}
		if json.Unmarshal(raw, &f.Message) != nil {
			return vendor.Said{}
		}
	}
	return f.said()
}

// said names the class of a vendor's error by its type:
// https://platform.claude.com/docs/en/api/errors. It is empty where the status is
// all there is.
func (f *wireFault) said() vendor.Said {
	s := vendor.Said{Code: f.Type, Text: f.Message}
	switch f.Type {
	case "authentication_error", "permission_error":
		s.Class = ringi.ModelAuth
	case "billing_error":
		s.Class = ringi.ModelQuota
	case "rate_limit_error":
		s.Class = ringi.ModelRateLimit
	case "request_too_large":
		s.Class = ringi.ModelContextLength
	case "invalid_request_error", "not_found_error":
		s.Class = ringi.ModelBadRequest
	case "timeout_error":
		s.Class = ringi.ModelTimeout
	case "api_error":
		s.Class = ringi.ModelServer
	case "overloaded_error":
		s.Class = ringi.ModelOverloaded
	}
	// A spending limit is called a rate, or an invalid request; no later try
	// passes before somebody raises it.
	if f.Details.Code == "enforced_spend_limit_reached" {
		s.Code, s.Class = f.Details.Code, ringi.ModelQuota
	}
	if s.Class != ringi.ModelBadRequest {
		return s
	}
	for _, told := range inWords {
		if strings.Contains(f.Message, told.words) {
			s.Class = told.class
			break
		}
	}
	return s
}

// inWords is what the vendor tells in an invalid request's message alone.
var inWords = []struct {
	words string
	class ringi.ModelErrorClass
}{
	{"prompt is too long", ringi.ModelContextLength},
	{"exceed context limit", ringi.ModelContextLength},
	{"exceeds the context window", ringi.ModelContextLength},
	{"credit balance is too low", ringi.ModelQuota},
	{"API usage limits", ringi.ModelQuota},
	{"content filtering policy", ringi.ModelFiltered},
}
