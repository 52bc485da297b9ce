package openai_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/provider/openai"
	"github.com/ringi-dev/ringi/provider/providertest"
)

// What the fake server writes follows the vendor's reference, as of
// openai-go v3.99.0, whose types are made from the same description:
// https://platform.openai.com/docs/api-reference/chat-streaming and
// https://platform.openai.com/docs/api-reference/responses-streaming.

func options(api openai.API, s providertest.Setup) *openai.Options {
	return &openai.Options{API: api, BaseURL: s.URL + "/v1", Key: s.Key, IdleTimeout: s.Idle, Timeout: s.Total}
}

func keyIn(h map[string][]string, key string) bool {
	return len(h["Authorization"]) == 1 && h["Authorization"][0] == "Bearer "+key
}

// taken is what both interfaces take of ids that they did not make.
var taken = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`).MatchString

func TestChat(t *testing.T) {
	providertest.Run(t, providertest.Vendor{
		Name: "chat",
		Model: func(_ testing.TB, s providertest.Setup) ringi.Model {
			return openai.New("gpt-5-mini", options(openai.Chat, s))
		},
		Stream: chatFrames, Read: readChat, KeyIn: keyIn, Takes: taken,
		Faults:         chatFaults(),
		StreamFaults:   []providertest.Fault{{Name: "InStream", Frames: []string{"data: {\"error\":{\"message\":\"slow\",\"type\":\"server_error\",\"code\":null}}\n\n"}, Class: ringi.ModelServer, Code: "server_error"}},
		Finishes:       []ringi.FinishReason{ringi.FinishLength, ringi.FinishFilter, "a_new_reason"},
		KeepsReasoning: true, Sealed: `"reasoning_content":"The bill is due."`,
		LiveKey: "OPENAI_API_KEY",
		Live: func(_ testing.TB, key string) ringi.Model {
			return openai.New("gpt-5-mini", &openai.Options{API: openai.Chat, Key: key})
		},
	})
}

func TestResponses(t *testing.T) {
	providertest.Run(t, providertest.Vendor{
		Name: "responses",
		Model: func(_ testing.TB, s providertest.Setup) ringi.Model {
			return openai.New("gpt-5-mini", options(openai.Responses, s))
		},
		Stream: responseFrames, Read: readResponses, KeyIn: keyIn, Takes: taken,
		Faults:         chatFaults(),
		StreamFaults:   responseFaults(),
		Finishes:       []ringi.FinishReason{ringi.FinishLength, ringi.FinishFilter, "a_new_reason"},
		KeepsReasoning: true, Sealed: `"encrypted_content":"gAAAA_1+/="`,
		LiveKey: "OPENAI_API_KEY",
		Live:    func(_ testing.TB, key string) ringi.Model { return openai.New("gpt-5-mini", &openai.Options{Key: key}) },
	})
}

func enc(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
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

// interleaved gives the pieces of several inputs in turns.
func interleaved(calls []ringi.ToolCall, n int, put func(i int, piece string)) {
	rest := make([][]string, len(calls))
	for i, c := range calls {
		rest[i] = pieces(string(c.Input), n)
	}
	for more := true; more; {
		more = false
		for i := range rest {
			if len(rest[i]) > 0 {
				put(i, rest[i][0])
				rest[i], more = rest[i][1:], true
			}
		}
	}
}

func chatFrames(a providertest.Answer) []string {
	var out []string
	frame := func(choices, usage string) {
		out = append(out, fmt.Sprintf(`data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1767603600,"model":"gpt-5-mini-2025-08-07","service_tier":"default","system_fingerprint":"fp_1","choices":%s,"usage":%s,"obfuscation":"x7"}`+"\n\n", a.N, choices, usage))
	}
	delta := func(d, finish string) {
		frame(`[{"index":0,"delta":`+d+`,"logprobs":null,"finish_reason":`+finish+`}]`, "null")
	}
	delta(`{"role":"assistant","content":null,"refusal":null}`, "null")
	for _, p := range pieces(a.Reasoning, a.Fragment) {
		delta(`{"reasoning_content":`+enc(p)+`}`, "null") // vLLM, DeepSeek
	}
	for _, p := range pieces(a.Text, a.Fragment) {
		delta(`{"content":`+enc(p)+`}`, "null")
	}
	for _, p := range pieces(a.Refusal, a.Fragment) {
		delta(`{"refusal":`+enc(p)+`}`, "null")
	}
	for i, c := range a.Calls {
		delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`, i, enc(c.ModelID), enc(c.Tool)), "null")
	}
	interleaved(a.Calls, a.Fragment, func(i int, p string) {
		delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, enc(p)), "null")
	})
	finish := a.Finish
	if finish == "" {
		finish = "stop"
		if len(a.Calls) > 0 {
			finish = "tool_calls"
		}
	}
	delta(`{}`, enc(finish))
	u := a.Usage
	frame("[]", fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":%d,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		u.InputTokens, u.OutputTokens, u.InputTokens+u.OutputTokens, u.CachedTokens, u.ReasoningTokens))
	return append(out, "data: [DONE]\n\n")
}

func chatFaults() []providertest.Fault {
	body := func(message, kind, code string) string {
		return fmt.Sprintf(`{"error":{"message":%s,"type":%s,"param":null,"code":%s}}`, enc(message), enc(kind), code)
	}
	return []providertest.Fault{
		{Name: "Auth", Status: 401, Body: body("Incorrect API key provided: sk-te****6789.", "invalid_request_error", `"invalid_api_key"`), Class: ringi.ModelAuth, Code: "invalid_api_key"},
		{Name: "Region", Status: 403, Body: body("Country, region, or territory not supported", "request_forbidden", `"unsupported_country_region_territory"`), Class: ringi.ModelAuth, Code: "unsupported_country_region_territory"},
		{Name: "RateLimit", Status: 429, Header: map[string]string{"Retry-After": "20", "X-Ratelimit-Reset-Tokens": "19.8s"}, Body: body("Rate limit reached for gpt-5-mini", "tokens", `"rate_limit_exceeded"`), Class: ringi.ModelRateLimit, Code: "rate_limit_exceeded", After: 20e9},
		{Name: "RateLimitInMilliseconds", Status: 429, Header: map[string]string{"Retry-After": "1", "Retry-After-Ms": "250"}, Body: body("Rate limit reached", "requests", `"rate_limit_exceeded"`), Class: ringi.ModelRateLimit, Code: "rate_limit_exceeded", After: 250e6},
		{Name: "Quota", Status: 429, Body: body("You exceeded your current quota", "insufficient_quota", `"insufficient_quota"`), Class: ringi.ModelQuota, Code: "insufficient_quota"},
		{Name: "ContextLength", Status: 400, Body: body("This model's maximum context length is 400000 tokens.", "invalid_request_error", `"context_length_exceeded"`), Class: ringi.ModelContextLength, Code: "context_length_exceeded"},
		{Name: "RequestTooLarge", Status: 429, Body: body("Request too large for gpt-5-mini on tokens per min (TPM): Limit 200000, Requested 300000.", "tokens", `"rate_limit_exceeded"`), Class: ringi.ModelContextLength, Code: "rate_limit_exceeded"},
		{Name: "ContextLengthInWords", Status: 400, Body: `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}`, Class: ringi.ModelContextLength, Code: "BadRequestError"},
		{Name: "BadRequest", Status: 400, Body: body("Invalid schema for function 'pay'", "invalid_request_error", `"invalid_function_parameters"`), Class: ringi.ModelBadRequest, Code: "invalid_function_parameters"},
		{Name: "NoSuchModel", Status: 404, Body: body("The model does not exist", "invalid_request_error", `"model_not_found"`), Class: ringi.ModelBadRequest, Code: "model_not_found"},
		{Name: "Filtered", Status: 400, Body: body("flagged as potentially violating our usage policy", "invalid_request_error", `"invalid_prompt"`), Class: ringi.ModelFiltered, Code: "invalid_prompt"},
		{Name: "Overloaded", Status: 503, Header: map[string]string{"Retry-After": "3"}, Body: body("The engine is currently overloaded", "service_unavailable_error", `null`), Class: ringi.ModelOverloaded, Code: "service_unavailable_error", After: 3e9},
		{Name: "Server", Status: 500, Body: body("The server had an error", "server_error", `null`), Class: ringi.ModelServer, Code: "server_error"},
		{Name: "OllamaText", Status: 404, Body: `{"error":"model \"x\" not found, try pulling it first"}`, Class: ringi.ModelBadRequest},
	}
}

func readChat(body []byte) (*providertest.Request, error) {
	msgs, rest, err := providertest.Split(body, "messages")
	if err != nil {
		return nil, err
	}
	var b struct {
		Model  string
		Stream bool
		Tools  []struct {
			Type     string
			Function struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &b); err != nil || b.Model != "gpt-5-mini" || !b.Stream {
		return nil, fmt.Errorf("model %q, stream %t: %v", b.Model, b.Stream, err)
	}
	req := &providertest.Request{Messages: msgs, Rest: rest}
	for _, t := range b.Tools {
		if t.Type != "function" {
			return nil, fmt.Errorf("S-22: the body offers a tool of type %q", t.Type)
		}
		req.Tools = append(req.Tools, t.Function.Name)
	}
	for _, raw := range msgs {
		if err := chatParts(req, raw); err != nil {
			return nil, err
		}
	}
	return req, nil
}

func chatParts(req *providertest.Request, raw json.RawMessage) error {
	var m struct {
		Role, Content string
		ToolCallID    string `json:"tool_call_id"`
		Reasoning     string `json:"reasoning_content"`
		ToolCalls     []struct {
			ID       string
			Type     string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	add := func(p providertest.Part) { req.Parts = append(req.Parts, p) }
	switch m.Role {
	case "system":
		req.System = m.Content
	case "user":
		add(providertest.Part{Kind: providertest.PartUser, Text: m.Content})
	case "assistant":
		if m.Reasoning != "" {
			add(providertest.Part{Kind: providertest.PartReasoning, Text: m.Reasoning})
		}
		if m.Content != "" || len(m.ToolCalls) == 0 {
			add(providertest.Part{Kind: providertest.PartText, Text: m.Content})
		}
		for _, c := range m.ToolCalls {
			add(providertest.Part{Kind: providertest.PartCall, ID: c.ID, Tool: c.Function.Name, Text: c.Function.Arguments})
		}
	case "tool":
		add(providertest.Part{Kind: providertest.PartResult, ID: m.ToolCallID, Text: m.Content})
	default:
		return fmt.Errorf("role %q", m.Role)
	}
	return nil
}

// items writes the output items of an answer, as the stream's last event lists
// them.
func outputItems(a providertest.Answer) []string {
	var out []string
	status := `"completed"`
	if a.Finish != "" {
		status = `"incomplete"`
	}
	if a.Reasoning != "" {
		out = append(out, fmt.Sprintf(`{"id":"rs_%d","type":"reasoning","summary":[{"type":"summary_text","text":%s}],"encrypted_content":"gAAAA_%d+/="}`, a.N, enc(a.Reasoning), a.N))
	}
	if a.Text != "" || a.Refusal != "" {
		content := `{"type":"output_text","annotations":[],"logprobs":[],"text":` + enc(a.Text) + `}`
		if a.Refusal != "" {
			content = `{"type":"refusal","refusal":` + enc(a.Refusal) + `}`
		}
		out = append(out, fmt.Sprintf(`{"id":"msg_%d","type":"message","status":%s,"content":[%s],"role":"assistant"}`, a.N, status, content))
	}
	for i, c := range a.Calls {
		out = append(out, fmt.Sprintf(`{"id":"fc_%d_%d","type":"function_call","status":%s,"arguments":%s,"call_id":%s,"name":%s}`, a.N, i, status, enc(c.Input), enc(c.ModelID), enc(c.Tool)))
	}
	return out
}

func responseFrames(a providertest.Answer) []string {
	var out []string
	send := func(kind, members string) {
		out = append(out, fmt.Sprintf("event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d,%s}\n\n", kind, kind, len(out), members))
	}
	items := outputItems(a)
	response := func(status, more string, output []string) string {
		return fmt.Sprintf(`"response":{"id":"resp_%d","object":"response","created_at":1767603600,"status":"%s","error":null,"model":"gpt-5-mini-2025-08-07","output":[%s],"parallel_tool_calls":true,"store":false%s}`, a.N, status, strings.Join(output, ","), more)
	}
	send("response.created", response("in_progress", `,"usage":null`, nil))
	send("response.in_progress", response("in_progress", `,"usage":null`, nil))
	first := len(items) - len(a.Calls)
	for i, it := range items[:first] {
		streamItem(send, a, i, it)
	}
	for i, c := range a.Calls {
		send("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"id":"fc_%d_%d","type":"function_call","status":"in_progress","arguments":"","call_id":%s,"name":%s}`, first+i, a.N, i, enc(c.ModelID), enc(c.Tool)))
	}
	interleaved(a.Calls, a.Fragment, func(i int, p string) {
		send("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":"fc_%d_%d","output_index":%d,"delta":%s,"obfuscation":"q"`, a.N, i, first+i, enc(p)))
	})
	for i, c := range a.Calls {
		send("response.function_call_arguments.done", fmt.Sprintf(`"item_id":"fc_%d_%d","output_index":%d,"arguments":%s`, a.N, i, first+i, enc(c.Input)))
		send("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, first+i, items[first+i]))
	}
	u := a.Usage
	usage := fmt.Sprintf(`,"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		u.InputTokens, u.CachedTokens, u.OutputTokens, u.ReasoningTokens, u.InputTokens+u.OutputTokens)
	switch a.Finish {
	case "":
		send("response.completed", response("completed", `,"incomplete_details":null`+usage, items))
	case ringi.FinishLength:
		send("response.incomplete", response("incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`+usage, items))
	default:
		send("response.incomplete", response("incomplete", `,"incomplete_details":{"reason":"`+string(a.Finish)+`"}`+usage, items))
	}
	return out
}

// streamItem streams a reasoning item or a message.
func streamItem(send func(kind, members string), a providertest.Answer, i int, it string) {
	var head struct{ ID, Type string }
	if err := json.Unmarshal([]byte(it), &head); err != nil {
		panic(err)
	}
	at := fmt.Sprintf(`"item_id":"%s","output_index":%d,`, head.ID, i)
	if head.Type == "reasoning" {
		send("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"id":"%s","type":"reasoning","summary":[]}`, i, head.ID))
		send("response.reasoning_summary_part.added", at+`"summary_index":0,"part":{"type":"summary_text","text":""}`)
		for _, p := range pieces(a.Reasoning, a.Fragment) {
			send("response.reasoning_summary_text.delta", at+`"summary_index":0,"delta":`+enc(p))
		}
		send("response.reasoning_summary_text.done", at+`"summary_index":0,"text":`+enc(a.Reasoning))
		send("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i, it))
		return
	}
	send("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"id":"%s","type":"message","status":"in_progress","content":[],"role":"assistant"}`, i, head.ID))
	kind, text := "output_text", a.Text
	if a.Refusal != "" {
		kind, text = "refusal", a.Refusal
	}
	send("response.content_part.added", at+`"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}`)
	for _, p := range pieces(text, a.Fragment) {
		send("response."+kind+".delta", at+`"content_index":0,"delta":`+enc(p)+`,"logprobs":[]`)
	}
	send("response."+kind+".done", at+`"content_index":0,"text":`+enc(text)+`,"logprobs":[]`)
	send("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i, it))
}

func responseFaults() []providertest.Fault {
	failed := func(code, message string) []string {
		return []string{fmt.Sprintf("event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":1,\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"failed\",\"error\":{\"code\":%q,\"message\":%q},\"output\":[]}}\n\n", code, message)}
	}
	return []providertest.Fault{
		{Name: "Failed", Frames: failed("server_error", "The server had an error."), Class: ringi.ModelServer, Code: "server_error"},
		{Name: "FailedByRate", Frames: failed("rate_limit_exceeded", "Rate limit reached."), Class: ringi.ModelRateLimit, Code: "rate_limit_exceeded"},
		{Name: "FailedByPrompt", Frames: failed("invalid_prompt", "Flagged."), Class: ringi.ModelFiltered, Code: "invalid_prompt"},
		{Name: "ErrorEvent", Frames: []string{"event: error\ndata: {\"type\":\"error\",\"code\":\"context_length_exceeded\",\"message\":\"Too long.\",\"param\":null,\"sequence_number\":1}\n\n"}, Class: ringi.ModelContextLength, Code: "context_length_exceeded"},
		{Name: "GatewaysError", Frames: []string{"data: {\"error\":{\"message\":\"upstream\",\"type\":\"server_error\"}}\n\n"}, Class: ringi.ModelServer, Code: "server_error"},
	}
}

func readResponses(body []byte) (*providertest.Request, error) {
	items, rest, err := providertest.Split(body, "input")
	if err != nil {
		return nil, err
	}
	var b struct {
		Model, Instructions string
		Stream              bool
		Store               *bool
		Tools               []struct{ Type, Name string }
	}
	if err := json.Unmarshal(body, &b); err != nil || b.Model != "gpt-5-mini" || !b.Stream || b.Store == nil || *b.Store {
		return nil, fmt.Errorf("model %q, stream %t, store %v: %v", b.Model, b.Stream, b.Store, err)
	}
	req := &providertest.Request{System: b.Instructions, Messages: items, Rest: rest}
	for _, t := range b.Tools {
		if t.Type != "function" {
			return nil, fmt.Errorf("S-22: the body offers a tool of type %q", t.Type)
		}
		req.Tools = append(req.Tools, t.Name)
	}
	for _, raw := range items {
		if err := responseParts(req, raw); err != nil {
			return nil, err
		}
	}
	return req, nil
}

func responseParts(req *providertest.Request, raw json.RawMessage) error {
	var it struct {
		Type, Role, Name, Arguments, Output string
		CallID                              string `json:"call_id"`
		Content                             json.RawMessage
		Encrypted                           string `json:"encrypted_content"`
	}
	if err := json.Unmarshal(raw, &it); err != nil {
		return err
	}
	add := func(p providertest.Part) { req.Parts = append(req.Parts, p) }
	switch {
	case it.Type == "reasoning":
		add(providertest.Part{Kind: providertest.PartReasoning, Text: it.Encrypted})
	case it.Type == "function_call":
		add(providertest.Part{Kind: providertest.PartCall, ID: it.CallID, Tool: it.Name, Text: it.Arguments})
	case it.Type == "function_call_output":
		add(providertest.Part{Kind: providertest.PartResult, ID: it.CallID, Text: it.Output})
	case it.Role == "user":
		var text string
		if err := json.Unmarshal(it.Content, &text); err != nil {
			return err
		}
		add(providertest.Part{Kind: providertest.PartUser, Text: text})
	case it.Role == "assistant":
		add(providertest.Part{Kind: providertest.PartText, Text: string(it.Content)})
	default:
		return fmt.Errorf("item of type %q and role %q", it.Type, it.Role)
	}
	return nil
}
