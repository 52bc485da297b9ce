package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// wireFault is an error as the vendor writes it (google.rpc.Status):
// https://ai.google.dev/gemini-api/docs/troubleshooting.
type wireFault struct {
	Code    json.RawMessage `json:"code"`
	Message string          `json:"message"`
	Status  string          `json:"status"`
	Details []detail        `json:"details"`
}

// detail is one of RetryInfo, QuotaFailure and ErrorInfo:
// https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto.
type detail struct {
	Reason     string `json:"reason"`
	RetryDelay string `json:"retryDelay"`
	Violations []struct {
		ID string `json:"quotaId"`
	} `json:"violations"`
}

// readFault reads an error's body. Some answers hold it in an array.
func readFault(a vendor.Answer) vendor.Said {
	said, _ := faultIn(a.Body)
	return said
}

// strayFault finds an error that stands in a stream outside of any event: so the
// vendor ends a stream that fails.
func strayFault(text []byte) (vendor.Said, bool) {
	if !bytes.Contains(text, []byte(`"error"`)) {
		return vendor.Said{}, false
	}
	return faultIn(text)
}

func faultIn(text []byte) (vendor.Said, bool) {
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil && len(list) > 0 {
		text = list[0]
	}
	if json.Unmarshal(text, &outer) != nil || len(outer.Error) == 0 {
		return vendor.Said{}, false
	}
	return saidIn(outer.Error), true
}

// saidIn reads what stands under "error".
func saidIn(raw json.RawMessage) vendor.Said {
	var f wireFault
	if json.Unmarshal(raw, &f) == nil {
		return f.said()
	}
	var s vendor.Said
	if json.Unmarshal(raw, &s.Text) != nil {
		s.Text = string(raw)
	}
	return s
}

// said names the class of a vendor's error, where its HTTP status does not say it.
// The class is empty where that is all there is.
func (f *wireFault) said() vendor.Said {
	s := vendor.Said{Text: f.Message}
	var reason, quota string
	for _, d := range f.Details {
		reason = cmp.Or(reason, d.Reason)
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			s.RetryAfter = wait
		}
		for _, v := range d.Violations {
			quota += v.ID + " "
		}
	}
	s.Code = cmp.Or(reason, f.Status)
	s.Class = classes[f.Status]
	switch {
	case strings.HasPrefix(reason, "API_KEY_"), reason == "ACCESS_TOKEN_EXPIRED", reason == "SERVICE_DISABLED", strings.Contains(f.Message, "API key not valid"):
		s.Class = ringi.ModelAuth
	case s.Class == ringi.ModelRateLimit && usedUp(quota, f.Message):
		s.Class = ringi.ModelQuota
	case tooLong(f.Message):
		s.Class = ringi.ModelContextLength
	}
	if s.Class == "" && f.Status == "" {
		var code int
		if json.Unmarshal(f.Code, &code) == nil && code >= 400 {
			s.Class = vendor.ClassOf(code)
		}
	}
	return s
}

// classes are the classes of the vendor's statuses.
var classes = map[string]ringi.ModelErrorClass{
	"INVALID_ARGUMENT":    ringi.ModelBadRequest,
	"OUT_OF_RANGE":        ringi.ModelBadRequest,
	"NOT_FOUND":           ringi.ModelBadRequest,
	"UNIMPLEMENTED":       ringi.ModelBadRequest,
	"FAILED_PRECONDITION": ringi.ModelAuth, // no free use in this country
	"UNAUTHENTICATED":     ringi.ModelAuth,
	"PERMISSION_DENIED":   ringi.ModelAuth,
	"RESOURCE_EXHAUSTED":  ringi.ModelRateLimit,
	"UNAVAILABLE":         ringi.ModelOverloaded,
	"DEADLINE_EXCEEDED":   ringi.ModelTimeout,
	"INTERNAL":            ringi.ModelServer,
	"UNKNOWN":             ringi.ModelServer,
	"ABORTED":             ringi.ModelServer,
	"CANCELLED":           ringi.ModelServer, // not by us: our own leaving is told apart
}

// usedUp reports whether no later try passes by itself: what counts by the day, or
// an account without money. "You exceeded your current quota" alone says nothing:
// the vendor writes it of minutes too.
func usedUp(quota, message string) bool {
	return strings.Contains(quota, "PerDay") || strings.Contains(message, "spending cap") || strings.Contains(message, "credits are depleted")
}

// tooLong reports whether an error says, in words alone, that the conversation is
// longer than the model takes.
func tooLong(message string) bool {
	return strings.Contains(message, "exceeds the maximum number of tokens") || strings.Contains(message, "input context is too long") ||
		strings.Contains(message, "payload size exceeds the limit")
}
