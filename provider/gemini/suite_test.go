package gemini_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/provider/gemini"
	"github.com/ringi-dev/ringi/provider/providertest"
)

// What the fake server writes follows the vendor's reference, as of
// google.golang.org/genai v1.77.0, whose types are made from the same
// description: https://ai.google.dev/api/generate-content,
// https://ai.google.dev/api/caching#Content and
// https://ai.google.dev/gemini-api/docs/thought-signatures.

// TestIDs is Gemini 3: every call has an id, the first one of a turn a signature,
// and a request in which that signature is missing is refused.
func TestIDs(t *testing.T) {
	v := vendorOf("gemini-3-flash")
	v.Name = "ids"
	v.Takes = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString
	v.Stream = func(a providertest.Answer) []string { return frames(a, true) }
	v.KeepsReasoning = true
	v.Sealed = `{"text":"The bill is due.","thought":true},{"text":"I pay."},{"functionCall":{"id":"call_1","name":"pay","args":{"n":1}},"thoughtSignature":"EpkB_1+/="},{"functionCall":{"id":"call_2","name":"look","args":{}}}]`
	providertest.Run(t, v)
}

// TestNoIDs is Gemini 2.5: no call has an id.
func TestNoIDs(t *testing.T) {
	v := vendorOf("gemini-2.5-flash")
	v.Name = "noids"
	v.Stream = func(a providertest.Answer) []string {
		a.Calls = slices.Clone(a.Calls)
		for i := range a.Calls {
			a.Calls[i].ModelID = ""
		}
		return frames(a, a.Reasoning != "")
	}
	v.KeepsReasoning = true
	v.Sealed = `{"functionCall":{"name":"pay","args":{"n":1}},"thoughtSignature":"EpkB_1+/="},{"functionCall":{"name":"look","args":{}}}]`
	v.Live = nil // once is enough
	providertest.Run(t, v)
}

func vendorOf(model string) providertest.Vendor {
	v := providertest.Vendor{
		Model: func(_ testing.TB, s providertest.Setup) ringi.Model {
			return gemini.New(model, &gemini.Options{BaseURL: s.URL, Key: s.Key, IdleTimeout: s.Idle, Timeout: s.Total})
		},
		Read: func(body []byte) (*providertest.Request, error) { return read(body, model == "gemini-3-flash") },
		KeyIn: func(h map[string][]string, key string) bool {
			return len(h["X-Goog-Api-Key"]) == 1 && h["X-Goog-Api-Key"][0] == key
		},
		FreeIDs: true, InputIsJSON: true,
		Faults: faults(), StreamFaults: streamFaults(),
		Finishes: []ringi.FinishReason{ringi.FinishLength, ringi.FinishFilter, "a_new_reason"},
		LiveKey:  "GEMINI_API_KEY",
		Live: func(_ testing.TB, key string) ringi.Model {
			return gemini.New(cmp.Or(os.Getenv("GEMINI_MODEL"), "gemini-flash-latest"), &gemini.Options{Key: key, Summary: "auto"})
		},
	}
	if os.Getenv(v.LiveKey) == "" && os.Getenv("GOOGLE_API_KEY") != "" {
		v.LiveKey = "GOOGLE_API_KEY"
	}
	return v
}

// enc writes JSON as the vendor does, without escapes for HTML.
func enc(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

// pieces cuts a text between characters.
func pieces(text string, n int) []string {
	if text == "" {
		return nil
	}
	if n <= 0 {
		return []string{text}
	}
	var out []string
	for rest := []rune(text); len(rest) > 0; {
		k := min(n, len(rest))
		out, rest = append(out, string(rest[:k])), rest[k:]
	}
	return out
}

// chunk writes a chunk as the vendor does, blanks and line ends included.
func chunk(n int, parts, finish, usage string) string {
	if finish != "" {
		finish = `"finishReason": ` + enc(finish) + `,`
	}
	return fmt.Sprintf("data: {\"candidates\": [{\"content\": {\"parts\": [%s],\"role\": \"model\"},%s\"index\": 0}],\"usageMetadata\": {%s},\"modelVersion\": \"gemini-3-flash\",\"responseId\": \"resp_%d\"}\r\n\r\n",
		parts, finish, usage, n)
}

// frames writes a stream. The vendor signs the first call of a turn; where there
// is none, a part without text at the end.
func frames(a providertest.Answer, signed bool) []string {
	var out []string
	u := a.Usage
	prompt := fmt.Sprintf(`"promptTokenCount": %d,"totalTokenCount": %d,"promptTokensDetails": [{"modality": "TEXT","tokenCount": %d}]`, u.InputTokens, u.InputTokens, u.InputTokens)
	for _, p := range pieces(a.Reasoning, a.Fragment) {
		out = append(out, chunk(a.N, `{"text": `+enc(p)+`,"thought": true}`, "", prompt))
	}
	for _, p := range pieces(a.Text+a.Refusal, a.Fragment) {
		out = append(out, chunk(a.N, `{"text": `+enc(p)+`}`, "", prompt))
	}
	signature := ""
	if signed {
		signature = fmt.Sprintf(`,"thoughtSignature": "EpkB_%d+/="`, a.N)
	}
	for i, c := range a.Calls {
		part := fmt.Sprintf(`{"functionCall": {"name": %s,"args": %s`, enc(c.Tool), c.Input)
		if c.ModelID != "" {
			part += `,"id": ` + enc(c.ModelID)
		}
		part += "}"
		if i == 0 {
			part += signature
			signature = ""
		}
		out = append(out, chunk(a.N, part+"}", "", prompt))
	}
	finish := map[ringi.FinishReason]string{"": "STOP", ringi.FinishLength: "MAX_TOKENS", ringi.FinishFilter: "SAFETY"}[a.Finish]
	if finish == "" {
		finish = strings.ToUpper(string(a.Finish))
	}
	usage := fmt.Sprintf(`%s,"cachedContentTokenCount": %d,"candidatesTokenCount": %d,"thoughtsTokenCount": %d`, prompt, u.CachedTokens, u.OutputTokens-u.ReasoningTokens, u.ReasoningTokens)
	return append(out, chunk(a.N, `{"text": ""`+signature+`}`, finish, usage))
}

func wireFault(code int, status, message, details string) string {
	if details != "" {
		details = `,"details":[` + details + `]`
	}
	return fmt.Sprintf("{\n  \"error\": {\"code\": %d, \"message\": %s, \"status\": %s%s}\n}\n", code, enc(message), enc(status), details)
}

func faults() []providertest.Fault {
	const (
		invalidKey = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com","metadata":{"service":"generativelanguage.googleapis.com"}}`
		retry      = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.074824224s"}`
		blocked    = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_SERVICE_BLOCKED","domain":"googleapis.com"}`
	)
	quota := func(id string) string {
		return `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"` + id + `","quotaDimensions":{"location":"global","model":"gemini-3-flash"},"quotaValue":"10"}]}`
	}
	const exceeded = "You exceeded your current quota, please check your plan and billing details."
	return []providertest.Fault{
		{Name: "KeyInvalid", Status: 400, Body: wireFault(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", invalidKey), Class: ringi.ModelAuth, Code: "API_KEY_INVALID"},
		{Name: "KeyInvalidInWords", Status: 400, Body: wireFault(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", ""), Class: ringi.ModelAuth, Code: "INVALID_ARGUMENT"},
		{Name: "Unauthenticated", Status: 401, Body: wireFault(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", ""), Class: ringi.ModelAuth, Code: "UNAUTHENTICATED"},
		{Name: "PermissionDenied", Status: 403, Body: wireFault(403, "PERMISSION_DENIED", "Requests to this API are blocked.", blocked), Class: ringi.ModelAuth, Code: "API_KEY_SERVICE_BLOCKED"},
		{Name: "Region", Status: 400, Body: wireFault(400, "FAILED_PRECONDITION", "User location is not supported for the API use.", ""), Class: ringi.ModelAuth, Code: "FAILED_PRECONDITION"},
		{Name: "RateLimit", Status: 429, Body: wireFault(429, "RESOURCE_EXHAUSTED", exceeded, quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier")+","+retry), Class: ringi.ModelRateLimit, Code: "RESOURCE_EXHAUSTED", After: 34074824224},
		{Name: "RateLimitInAnArray", Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: "[" + wireFault(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", "") + "]", Class: ringi.ModelRateLimit, Code: "RESOURCE_EXHAUSTED", After: 7e9},
		{Name: "QuotaOfTheDay", Status: 429, Body: wireFault(429, "RESOURCE_EXHAUSTED", exceeded, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")+","+retry), Class: ringi.ModelQuota, Code: "RESOURCE_EXHAUSTED", After: 34074824224},
		{Name: "ContextLength", Status: 400, Body: wireFault(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", ""), Class: ringi.ModelContextLength, Code: "INVALID_ARGUMENT"},
		{Name: "PayloadTooLarge", Status: 400, Body: wireFault(400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes.", ""), Class: ringi.ModelContextLength, Code: "INVALID_ARGUMENT"},
		{Name: "NoSignature", Status: 400, Body: wireFault(400, "INVALID_ARGUMENT", "Function call is missing a thought_signature in functionCall parts.", ""), Class: ringi.ModelBadRequest, Code: "INVALID_ARGUMENT"},
		{Name: "NoSuchModel", Status: 404, Body: wireFault(404, "NOT_FOUND", "models/x is not found for API version v1beta", ""), Class: ringi.ModelBadRequest, Code: "NOT_FOUND"},
		{Name: "Server", Status: 500, Body: wireFault(500, "INTERNAL", "An internal error has occurred.", ""), Class: ringi.ModelServer, Code: "INTERNAL"},
		{Name: "Overloaded", Status: 503, Body: wireFault(503, "UNAVAILABLE", "The model is overloaded. Please try again later.", ""), Class: ringi.ModelOverloaded, Code: "UNAVAILABLE"},
		{Name: "Deadline", Status: 504, Body: wireFault(504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete.", ""), Class: ringi.ModelTimeout, Code: "DEADLINE_EXCEEDED"},
		{Name: "Gateway", Status: 429, Body: `{"error":{"code":429,"message":"slow down"}}`, Class: ringi.ModelRateLimit},
	}
}

func streamFaults() []providertest.Fault {
	blocked := func(feedback string) []string {
		return []string{`data: {"promptFeedback": {` + feedback + `},"usageMetadata": {"promptTokenCount": 4},"modelVersion": "gemini-3-flash"}` + "\r\n\r\n"}
	}
	overloaded := wireFault(503, "UNAVAILABLE", "The model is overloaded.", "")
	hello := chunk(1, `{"text": "Hel"}`, "", "")
	return []providertest.Fault{
		{Name: "PromptBlocked", Frames: blocked(`"blockReason": "PROHIBITED_CONTENT"`), Class: ringi.ModelFiltered, Code: "PROHIBITED_CONTENT"},
		{Name: "PromptBlockedBySafety", Frames: blocked(`"blockReason": "SAFETY","safetyRatings": []`), Class: ringi.ModelFiltered, Code: "SAFETY"},
		{Name: "InAnEvent", Frames: []string{hello, "data: " + strings.ReplaceAll(overloaded, "\n", "") + "\r\n\r\n"}, Class: ringi.ModelOverloaded, Code: "UNAVAILABLE"},
		{Name: "OutOfEvents", Frames: []string{hello, overloaded}, Class: ringi.ModelOverloaded, Code: "UNAVAILABLE"},
		{Name: "GatewaysWords", Frames: []string{`data: {"error":"upstream"}` + "\n\n"}, Class: ringi.ModelServer},
		{Name: "MalformedCall", Frames: []string{chunk(1, "", "MALFORMED_FUNCTION_CALL", "")}, Class: ringi.ModelBroken, Code: "MALFORMED_FUNCTION_CALL"},
		{Name: "UnexpectedCall", Frames: []string{chunk(1, `{"functionCall": {"name": "pay","args": {}}}`, "UNEXPECTED_TOOL_CALL", "")}, Class: ringi.ModelBroken, Code: "UNEXPECTED_TOOL_CALL"},
	}
}

func read(body []byte, signed bool) (*providertest.Request, error) {
	contents, rest, err := providertest.Split(body, "contents")
	if err != nil {
		return nil, err
	}
	var b struct {
		System struct{ Parts []struct{ Text string } } `json:"systemInstruction"`
		Tools  []map[string]json.RawMessage            `json:"tools"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, err
	}
	req := &providertest.Request{Messages: contents, Rest: rest}
	for _, p := range b.System.Parts {
		req.System += p.Text
	}
	for _, t := range b.Tools {
		var declared []struct {
			Name       string
			Parameters struct{ Type string } `json:"parametersJsonSchema"`
		}
		if err := json.Unmarshal(t["functionDeclarations"], &declared); err != nil || len(t) != 1 {
			return nil, fmt.Errorf("S-22: the body offers a tool of the vendor's own: %v, %v", t, err)
		}
		for _, d := range declared {
			if d.Parameters.Type != "object" {
				return nil, fmt.Errorf("parameters of %s are no object", d.Name)
			}
			req.Tools = append(req.Tools, d.Name)
		}
	}
	for _, raw := range contents {
		if err := readContent(req, raw, signed); err != nil {
			return nil, err
		}
	}
	return req, nil
}

func readContent(req *providertest.Request, raw json.RawMessage, signed bool) error {
	var c struct {
		Role  string
		Parts []struct {
			Text    *string
			Thought bool
			Call    *struct {
				ID, Name string
				Args     json.RawMessage
			} `json:"functionCall"`
			Response *struct {
				ID, Name string
				Response struct{ Output, Error *string }
			} `json:"functionResponse"`
			Signature string `json:"thoughtSignature"`
		}
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	if len(c.Parts) == 0 {
		return fmt.Errorf("contents without parts are refused: %s", raw)
	}
	calls := 0
	for _, p := range c.Parts {
		part := providertest.Part{}
		switch {
		case c.Role == "user" && p.Response != nil:
			r := p.Response
			part = providertest.Part{Kind: providertest.PartResult, ID: r.ID, Tool: r.Name}
			if (r.Response.Output == nil) == (r.Response.Error == nil) {
				return fmt.Errorf("output and error: %s", raw)
			}
			part.Text = *cmp.Or(r.Response.Output, r.Response.Error)
		case c.Role == "user" && p.Text != nil:
			part = providertest.Part{Kind: providertest.PartUser, Text: *p.Text}
		case c.Role == "model" && p.Call != nil:
			if calls++; calls == 1 && signed && p.Signature == "" {
				return fmt.Errorf("function call %s is missing a thought_signature", p.Call.Name)
			}
			part = providertest.Part{Kind: providertest.PartCall, ID: p.Call.ID, Tool: p.Call.Name, Text: string(p.Call.Args)}
		case c.Role == "model" && p.Text != nil && p.Thought:
			part = providertest.Part{Kind: providertest.PartReasoning, Text: *p.Text}
		case c.Role == "model" && p.Text != nil && *p.Text == "" && p.Signature != "":
			continue
		case c.Role == "model" && p.Text != nil && *p.Text != "":
			part = providertest.Part{Kind: providertest.PartText, Text: *p.Text}
		default:
			return fmt.Errorf("role %q: a part that says nothing: %s", c.Role, raw)
		}
		req.Parts = append(req.Parts, part)
	}
	return nil
}
