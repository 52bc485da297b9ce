package openai

import (
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// chatBody is the body of a Chat Completions request:
// https://platform.openai.com/docs/api-reference/chat/create.
func (m *model) chatBody(req *ringi.ModelRequest, entries []vendor.Entry) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model:           shared.ChatModel(m.name),
		ReasoningEffort: shared.ReasoningEffort(m.o.Effort),
		StreamOptions:   openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
		Messages:        []openai.ChatCompletionMessageParamUnion{},
	}
	if m.o.MaxOutputTokens > 0 {
		p.MaxCompletionTokens = param.NewOpt(m.o.MaxOutputTokens)
	}
	if m.o.Temperature != nil {
		p.Temperature = param.NewOpt(*m.o.Temperature)
	}
	for i := range req.Tools {
		p.Tools = append(p.Tools, m.chatTool(&req.Tools[i]))
	}
	if req.System != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(req.System))
	}
	for i := range entries {
		p.Messages = append(p.Messages, chatMessages(&entries[i])...)
	}
	return p
}

func (m *model) chatTool(t *ringi.Tool) openai.ChatCompletionToolUnionParam {
	o := m.offer(t)
	f := shared.FunctionDefinitionParam{Name: o.name, Parameters: o.parameters}
	if o.description != "" {
		f.Description = param.NewOpt(o.description)
	}
	if o.strict {
		f.Strict = param.NewOpt(true) // off is the default here, and unknown elsewhere
	}
	return openai.ChatCompletionFunctionTool(f)
}

func chatMessages(e *vendor.Entry) []openai.ChatCompletionMessageParamUnion {
	switch e.Role {
	case ringi.RoleUser:
		return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(e.Text)}
	case ringi.RoleAssistant:
		return []openai.ChatCompletionMessageParamUnion{chatAssistant(e)}
	}
	out := make([]openai.ChatCompletionMessageParamUnion, len(e.Results))
	for i := range e.Results {
		out[i] = openai.ToolMessage(e.Results[i].Result.Text(), e.Results[i].Call.ID)
	}
	return out
}

func chatAssistant(e *vendor.Entry) openai.ChatCompletionMessageParamUnion {
	a := &openai.ChatCompletionAssistantMessageParam{}
	if e.Text != "" || len(e.Calls) == 0 {
		a.Content.OfString = param.NewOpt(e.Text)
	}
	for _, c := range e.Calls {
		name := c.Label
		if e.Own {
			name = c.Tool // this server wrote it
		}
		a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
			ID:       c.ID,
			Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: name, Arguments: c.Input},
		}})
	}
	var kept map[string]json.RawMessage
	if e.Own && json.Unmarshal([]byte(e.Data), &kept) == nil {
		extra := map[string]any{}
		for _, key := range reasoningKeys {
			if value, ok := kept[key]; ok {
				extra[key] = value
			}
		}
		if len(extra) > 0 {
			a.SetExtraFields(extra)
		}
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: a}
}

// reasoningKeys are what servers call their reasoning in a message, beyond the
// vendor's own reference: vLLM and DeepSeek reasoning_content, Ollama and
// OpenRouter reasoning, OpenRouter reasoning_details. OpenAI sends none.
var reasoningKeys = []string{"reasoning_content", "reasoning", "reasoning_details"}
