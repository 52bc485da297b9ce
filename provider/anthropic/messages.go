package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// maxTokens bounds an answer where nothing is said: the vendor wants a number.
const maxTokens = 16384

// body is the body of a request:
// https://platform.claude.com/docs/en/api/messages/create.
func (m *model) body(req *ringi.ModelRequest, entries []vendor.Entry) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{
		Model:        anthropic.Model(m.name),
		MaxTokens:    m.o.MaxOutputTokens,
		Messages:     []anthropic.MessageParam{},
		OutputConfig: anthropic.OutputConfigParam{Effort: anthropic.OutputConfigEffort(m.o.Effort)},
		Thinking:     m.thinking(entries),
	}
	if p.MaxTokens == 0 {
		p.MaxTokens = maxTokens + m.o.ThinkingBudget
	}
	if m.o.Temperature != nil {
		p.Temperature = param.NewOpt(*m.o.Temperature)
	}
	for i := range req.Tools {
		p.Tools = append(p.Tools, tool(&req.Tools[i]))
	}
	if strings.TrimSpace(req.System) != "" { // an empty block is refused
		p.System = []anthropic.TextBlockParam{{Text: strings.ToValidUTF8(req.System, "\uFFFD")}}
	}
	for i := range entries {
		if msg, ok := message(&entries[i]); ok {
			p.Messages = append(p.Messages, msg)
		}
	}
	m.cache(&p)
	return p
}

// cache marks the ends of what the vendor is to keep: the tools, the system
// prompt behind them, and the conversation. The last mark stands at the top of the
// body, not in a message, so that no message changes when the next one follows:
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching.
func (m *model) cache(p *anthropic.MessageNewParams) {
	if m.o.Cache == CacheOff {
		return
	}
	mark := anthropic.CacheControlEphemeralParam{TTL: anthropic.CacheControlEphemeralTTL(m.o.Cache)}
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].OfTool.CacheControl = mark
	}
	if len(p.System) > 0 {
		p.System[0].CacheControl = mark
	}
	p.CacheControl = mark
}

func (m *model) thinking(entries []vendor.Entry) anthropic.ThinkingConfigParamUnion {
	switch {
	case m.o.ThinkingBudget > 0 && !thoughtfulSoFar(entries):
		return anthropic.ThinkingConfigParamUnion{OfDisabled: &anthropic.ThinkingConfigDisabledParam{}}
	case m.o.ThinkingBudget > 0:
		return anthropic.ThinkingConfigParamUnion{OfEnabled: &anthropic.ThinkingConfigEnabledParam{
			BudgetTokens: m.o.ThinkingBudget, Display: anthropic.ThinkingConfigEnabledDisplay(m.o.Summary)}}
	case m.o.Thinking == ThinkingAdaptive:
		return anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{
			Display: anthropic.ThinkingConfigAdaptiveDisplay(m.o.Summary)}}
	case m.o.Thinking == ThinkingOff:
		return anthropic.ThinkingConfigParamUnion{OfDisabled: &anthropic.ThinkingConfigDisabledParam{}}
	}
	return anthropic.ThinkingConfigParamUnion{}
}

// thoughtfulSoFar reports whether the turn in the making begins with thinking: a
// model with a budget is refused where it does not, as after a change of models.
func thoughtfulSoFar(entries []vendor.Entry) bool {
	for _, e := range slices.Backward(entries) {
		if e.Role == ringi.RoleUser {
			return true // a turn begins here
		}
		if e.Role != ringi.RoleAssistant || len(e.Calls) == 0 {
			continue
		}
		blocks, ok := kept(&e)
		if !ok || len(blocks) == 0 || !blocks[0].thinks() {
			return false
		}
	}
	return true
}

// message is a message; it reports false for one that would be empty, which the
// vendor refuses.
func message(e *vendor.Entry) (anthropic.MessageParam, bool) {
	switch e.Role {
	case ringi.RoleUser:
		if blank(e.Text) {
			return anthropic.NewUserMessage(anthropic.NewTextBlock("(empty message)")), true
		}
		return anthropic.NewUserMessage(anthropic.NewTextBlock(e.Text)), true
	case ringi.RoleAssistant:
		blocks := assistant(e)
		return anthropic.NewAssistantMessage(blocks...), len(blocks) > 0
	}
	// All results of a turn stand in one message, before anything else (F56):
	// https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls.
	out := make([]anthropic.ContentBlockParamUnion, len(e.Results))
	for i := range e.Results {
		out[i] = result(&e.Results[i])
	}
	return anthropic.NewUserMessage(out...), true
}

// blank reports whether a text says nothing: the vendor refuses such a block.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// result is the answer to a call. It is marked as an error where the call did not
// do what it was asked for.
func result(r *vendor.Result) anthropic.ContentBlockParamUnion {
	b := &anthropic.ToolResultBlockParam{ToolUseID: r.Call.ID}
	if text := strings.ToValidUTF8(r.Result.Text(), "\uFFFD"); !blank(text) {
		b.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: text}}}
	}
	if failed(&r.Result) {
		b.IsError = param.NewOpt(true)
	}
	return anthropic.ContentBlockParamUnion{OfToolResult: b}
}

// failed is the rule of is_error: a tool's own error, and every call that did not
// run or of which nobody knows. A person's answer in a tool's place is an answer.
func failed(r *ringi.ToolResult) bool {
	switch r.Outcome {
	case ringi.OutcomeOK, ringi.OutcomeResponded, "":
		return r.Error != ""
	}
	return true
}

// assistant writes a turn: the model's own blocks in their order, else its text
// and then its calls.
func assistant(e *vendor.Entry) []anthropic.ContentBlockParamUnion {
	blocks, ok := kept(e)
	if !ok {
		blocks = []block{{Type: "text", Text: e.Text}}
		for range e.Calls {
			blocks = append(blocks, block{Type: "tool_use"})
		}
	}
	var out []anthropic.ContentBlockParamUnion
	next, end := 0, 0
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case "text":
			if blank(b.Text) {
				continue
			}
			out = append(out, anthropic.NewTextBlock(b.Text))
			end = len(out)
		case "tool_use":
			c := &e.Calls[next]
			next++
			out = append(out, anthropic.ContentBlockParamUnion{OfToolUse: &anthropic.ToolUseBlockParam{ID: c.ID, Name: c.Label, Input: object(c.Input)}})
			end = len(out)
		case "thinking":
			out = append(out, anthropic.NewThinkingBlock(b.Signature, b.Thinking))
		case "redacted_thinking":
			out = append(out, anthropic.NewRedactedThinkingBlock(b.Data))
		}
	}
	return out[:end] // a turn that ends in thinking is refused
}

// object is an input as the vendor takes it: an object of JSON. What the model
// wrote stays as it is, token by token: digits, escapes, order, a key that stands
// there twice. Only blanks between tokens go, and the SDK escapes <, > and &. What is no object
// goes back as a text.
func object(input string) json.RawMessage {
	raw := jsontext.Value(input)
	if raw.Kind() == '{' && raw.IsValid(jsontext.AllowDuplicateNames(true)) {
		if raw.Compact(jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true)) == nil {
			return json.RawMessage(raw)
		}
	}
	b, err := json.Marshal(map[string]string{"unreadable_input": input})
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}
