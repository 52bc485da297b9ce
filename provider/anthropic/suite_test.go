package anthropic_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/provider/anthropic"
	"github.com/ringi-dev/ringi/provider/providertest"
)

// What the fake server writes follows the vendor's reference, as of
// anthropic-sdk-go v1.84.0, whose types are made from the same description:
// https://platform.claude.com/docs/en/build-with-claude/streaming and
// https://platform.claude.com/docs/en/api/errors.

const name = "claude-sonnet-5-5"

func TestMessages(t *testing.T) {
	providertest.Run(t, providertest.Vendor{
		Name: "messages",
		Model: func(_ testing.TB, s providertest.Setup) ringi.Model {
			return anthropic.New(name, &anthropic.Options{BaseURL: s.URL, Key: s.Key, IdleTimeout: s.Idle, Timeout: s.Total})
		},
		Stream: frames, Read: read,
		KeyIn: func(h map[string][]string, key string) bool {
			return len(h["X-Api-Key"]) == 1 && h["X-Api-Key"][0] == key && len(h["Anthropic-Version"]) == 1 && h["Anthropic-Version"][0] == "2023-06-01"
		},
		Takes:       regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString,
		InputIsJSON: true,
		Faults:      faults(), StreamFaults: streamFaults(),
		Finishes:       []ringi.FinishReason{ringi.FinishLength, ringi.FinishFilter, "a_new_reason", "pause_turn"},
		KeepsReasoning: true, Sealed: `{"signature":"EqQB_1+/=","thinking":"The bill is due.","type":"thinking"},{"text":"I pay.","type":"text"},{"id":"call_1","input":{"n":1},"name":"pay","type":"tool_use"}`,
		LiveKey: "ANTHROPIC_API_KEY",
		Live: func(_ testing.TB, key string) ringi.Model {
			return anthropic.New("claude-haiku-4-5", &anthropic.Options{Key: key, ThinkingBudget: 1024, Cache: anthropic.Cache5m})
		},
	})
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

// script writes a stream: one block after the other, as the vendor does.
type script struct {
	out    []string
	blocks int
}

func (s *script) send(kind, members string) {
	s.out = append(s.out, fmt.Sprintf("event: %s\ndata: {\"type\":\"%s\"%s}\n\n", kind, kind, members))
}

func (s *script) block(start string, deltas ...string) {
	s.send("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, s.blocks, start))
	for _, d := range deltas {
		s.send("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, s.blocks, d))
	}
	s.send("content_block_stop", fmt.Sprintf(`,"index":%d`, s.blocks))
	s.blocks++
}

func each(form string, texts ...string) []string {
	var out []string
	for _, t := range texts {
		out = append(out, fmt.Sprintf(form, enc(t)))
	}
	return out
}

func frames(a providertest.Answer) []string {
	s := &script{}
	u := a.Usage
	s.send("message_start", fmt.Sprintf(`,"message":{"id":"msg_%d","type":"message","role":"assistant","model":"%s","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}`,
		a.N, name, (u.InputTokens-u.CachedTokens)/2, u.InputTokens-u.CachedTokens-(u.InputTokens-u.CachedTokens)/2, u.CachedTokens, u.InputTokens-u.CachedTokens-(u.InputTokens-u.CachedTokens)/2))
	s.send("ping", "")
	if a.Reasoning != "" {
		deltas := each(`{"type":"thinking_delta","thinking":%s}`, pieces(a.Reasoning, a.Fragment)...)
		s.block(`{"type":"thinking","thinking":"","signature":""}`, append(deltas, fmt.Sprintf(`{"type":"signature_delta","signature":"EqQB_%d+/="}`, a.N))...)
	}
	if a.Text != "" {
		s.block(`{"type":"text","text":""}`, each(`{"type":"text_delta","text":%s}`, pieces(a.Text, a.Fragment)...)...)
	}
	for _, c := range a.Calls {
		input := string(c.Input)
		if input == "{}" {
			input = "" // as the vendor writes no input
		}
		s.block(fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{},"caller":{"type":"direct"}}`, enc(c.ModelID), enc(c.Tool)),
			append([]string{`{"type":"input_json_delta","partial_json":""}`}, each(`{"type":"input_json_delta","partial_json":%s}`, pieces(input, a.Fragment)...)...)...)
	}
	stop, details := string(a.Finish), "null"
	switch {
	case a.Refusal != "":
		stop, details = "refusal", fmt.Sprintf(`{"type":"refusal","category":"general_harms","explanation":%s}`, enc(a.Refusal))
	case a.Finish == ringi.FinishLength:
		stop = "max_tokens"
	case a.Finish == ringi.FinishFilter:
		stop = "refusal"
	case a.Finish == "" && len(a.Calls) > 0:
		stop = "tool_use"
	case a.Finish == "":
		stop = "end_turn"
	}
	s.send("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%s,"stop_sequence":null,"stop_details":%s},"usage":{"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}`, enc(stop), details, u.OutputTokens, u.ReasoningTokens))
	s.send("message_stop", "")
	return s.out
}

func faults() []providertest.Fault {
	body := func(kind, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%s,"message":%s},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}`, enc(kind), enc(message))
	}
	spent := `{"type":"error","error":{"type":"rate_limit_error","message":"spend limit","details":{"error_code":"enforced_spend_limit_reached"}}}`
	return []providertest.Fault{
		{Name: "Auth", Status: 401, Body: body("authentication_error", "invalid x-api-key"), Class: ringi.ModelAuth, Code: "authentication_error"},
		{Name: "Permission", Status: 403, Body: body("permission_error", "not allowed to use the model"), Class: ringi.ModelAuth, Code: "permission_error"},
		{Name: "Billing", Status: 402, Body: body("billing_error", "payment"), Class: ringi.ModelQuota, Code: "billing_error"},
		{Name: "RateLimit", Status: 429, Header: map[string]string{"Retry-After": "20", "Anthropic-Ratelimit-Tokens-Remaining": "0"}, Body: body("rate_limit_error", "This request would exceed your organization's rate limit"), Class: ringi.ModelRateLimit, Code: "rate_limit_error", After: 20e9},
		{Name: "SpendLimit", Status: 429, Body: spent, Class: ringi.ModelQuota, Code: "enforced_spend_limit_reached"},
		{Name: "UsageLimit", Status: 400, Body: body("invalid_request_error", "You have reached your specified API usage limits."), Class: ringi.ModelQuota, Code: "invalid_request_error"},
		{Name: "Credit", Status: 400, Body: body("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), Class: ringi.ModelQuota, Code: "invalid_request_error"},
		{Name: "ContextLength", Status: 400, Body: body("invalid_request_error", "prompt is too long: 200043 tokens > 200000 maximum"), Class: ringi.ModelContextLength, Code: "invalid_request_error"},
		{Name: "ContextLimit", Status: 400, Body: body("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 16384 > 200000"), Class: ringi.ModelContextLength, Code: "invalid_request_error"},
		{Name: "TooLarge", Status: 413, Body: body("request_too_large", "Request exceeds the maximum size"), Class: ringi.ModelContextLength, Code: "request_too_large"},
		{Name: "TooLargePage", Status: 413, Body: `{"error":{"message":"too large"}}`, Class: ringi.ModelContextLength},
		{Name: "BadRequest", Status: 400, Body: body("invalid_request_error", "messages.1: `tool_use` ids were found without `tool_result` blocks"), Class: ringi.ModelBadRequest, Code: "invalid_request_error"},
		{Name: "NoSuchModel", Status: 404, Body: body("not_found_error", "model: claude-x"), Class: ringi.ModelBadRequest, Code: "not_found_error"},
		{Name: "Filtered", Status: 400, Body: body("invalid_request_error", "Output blocked by content filtering policy"), Class: ringi.ModelFiltered, Code: "invalid_request_error"},
		{Name: "Overloaded", Status: 529, Header: map[string]string{"Retry-After": "3"}, Body: body("overloaded_error", "Overloaded"), Class: ringi.ModelOverloaded, Code: "overloaded_error", After: 3e9},
		{Name: "Server", Status: 500, Body: body("api_error", "Internal server error"), Class: ringi.ModelServer, Code: "api_error"},
		{Name: "Timeout", Status: 504, Body: body("timeout_error", "Request timed out"), Class: ringi.ModelTimeout, Code: "timeout_error"},
		{Name: "ANewType", Status: 418, Body: body("teapot_error", "short and stout"), Class: ringi.ModelBadRequest, Code: "teapot_error"},
		{Name: "GatewayText", Status: 404, Body: `{"error":"model not found"}`, Class: ringi.ModelBadRequest},
	}
}

func streamFaults() []providertest.Fault {
	begun := frames(providertest.Answer{N: 1, Text: "I pay."})[:4]
	told := func(kind string) []string {
		return append(begun[:len(begun):len(begun)], "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\""+kind+"\",\"message\":\"told\"}}\n\n")
	}
	return []providertest.Fault{
		{Name: "OverloadedInStream", Frames: told("overloaded_error"), Class: ringi.ModelOverloaded, Code: "overloaded_error"},
		{Name: "RateLimitInStream", Frames: told("rate_limit_error"), Class: ringi.ModelRateLimit, Code: "rate_limit_error"},
		{Name: "ServerInStream", Frames: told("api_error"), Class: ringi.ModelServer, Code: "api_error"},
		{Name: "ANewTypeInStream", Frames: told("teapot_error"), Class: ringi.ModelServer, Code: "teapot_error"},
		{Name: "GatewayInStream", Frames: []string{"data: {\"error\":{\"message\":\"gone\",\"type\":\"timeout_error\"}}\n\n"}, Class: ringi.ModelTimeout, Code: "timeout_error"},
	}
}

func read(body []byte) (*providertest.Request, error) {
	msgs, rest, err := providertest.Split(body, "messages")
	if err != nil {
		return nil, err
	}
	var b struct {
		Model     string
		Stream    bool
		MaxTokens int `json:"max_tokens"`
		System    []struct{ Type, Text string }
		Servers   json.RawMessage `json:"mcp_servers"`
		Tools     []struct {
			Type, Name string
			Schema     struct{ Type string } `json:"input_schema"`
		}
	}
	if err := json.Unmarshal(body, &b); err != nil || b.Model != name || !b.Stream || b.MaxTokens == 0 || b.Servers != nil {
		return nil, fmt.Errorf("model %q, stream %t, %d tokens, MCP servers %s: %v", b.Model, b.Stream, b.MaxTokens, b.Servers, err)
	}
	req := &providertest.Request{Messages: msgs, Rest: rest}
	for _, block := range b.System {
		req.System += block.Text
	}
	for _, t := range b.Tools {
		if t.Type != "" || t.Schema.Type != "object" {
			return nil, fmt.Errorf("S-22: the body offers a tool of type %q with a schema of type %q", t.Type, t.Schema.Type)
		}
		req.Tools = append(req.Tools, t.Name)
	}
	for _, raw := range msgs {
		if err := parts(req, raw); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// parts reads a message and holds it to the vendor's rules: no empty block, all
// results before anything else, no turn that ends in thinking.
func parts(req *providertest.Request, raw json.RawMessage) error {
	var m struct {
		Role    string
		Content []struct {
			Type, Text, Thinking, Signature, ID, Name string
			Input                                     json.RawMessage
			ToolUseID                                 string `json:"tool_use_id"`
			Content                                   []struct{ Type, Text string }
		}
	}
	if err := json.Unmarshal(raw, &m); err != nil || len(m.Content) == 0 {
		return fmt.Errorf("message %s: %w", raw, err)
	}
	others := 0
	for i, c := range m.Content {
		p := providertest.Part{ID: c.ID, Tool: c.Name, Text: c.Text}
		switch m.Role + " " + c.Type {
		case "user text":
			p.Kind = providertest.PartUser
			others++
		case "user tool_result":
			p.Kind, p.ID = providertest.PartResult, c.ToolUseID
			for _, b := range c.Content {
				p.Text += b.Text
			}
			if others > 0 || len(c.Content) > 0 && p.Text == "" {
				return fmt.Errorf("result behind a text, or an empty block: %s", raw)
			}
		case "assistant text":
			p.Kind = providertest.PartText
		case "assistant thinking":
			p.Kind, p.Text = providertest.PartReasoning, c.Thinking
			if c.Signature == "" || i == len(m.Content)-1 {
				return fmt.Errorf("thinking without a signature, or at the end: %s", raw)
			}
		case "assistant tool_use":
			p.Kind, p.Text = providertest.PartCall, string(c.Input)
			if len(c.Input) == 0 || c.Input[0] != '{' {
				return fmt.Errorf("input is no object: %s", raw)
			}
		default:
			return fmt.Errorf("role %q with a block of type %q", m.Role, c.Type)
		}
		if c.Type == "text" && c.Text == "" {
			return fmt.Errorf("empty text block: %s", raw)
		}
		req.Parts = append(req.Parts, p)
	}
	return nil
}
