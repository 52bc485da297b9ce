package openai

import (
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// responsesBody is the body of a Responses request, and the hosted tools that
// it offers: https://platform.openai.com/docs/api-reference/responses/create.
// Nothing is stored with the vendor (store: false): the log is here, and a
// conversation can be erased.
func (m *model) responsesBody(req *ringi.ModelRequest, entries []vendor.Entry) (allowed, responses.ResponseNewParams) {
	p := responses.ResponseNewParams{
		Model:     shared.ResponsesModel(m.name),
		Store:     param.NewOpt(false),
		Reasoning: shared.ReasoningParam{Effort: shared.ReasoningEffort(m.o.Effort), Summary: shared.ReasoningSummary(m.o.Summary)},
	}
	if m.reasons() {
		p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	if req.System != "" {
		p.Instructions = param.NewOpt(req.System)
	}
	if m.o.MaxOutputTokens > 0 {
		p.MaxOutputTokens = param.NewOpt(m.o.MaxOutputTokens)
	}
	if m.o.Temperature != nil {
		p.Temperature = param.NewOpt(*m.o.Temperature)
	}
	var asked allowed
	var own []ringi.Tool
	own, asked.tools = m.hosted.split(req.Tools)
	for i := range own {
		p.Tools = append(p.Tools, m.responsesTool(&own[i]))
	}
	p.Tools = append(p.Tools, m.hosted.offer(asked.tools)...)
	p.Input.OfInputItemList = m.input(entries, &asked)
	return asked, p
}

// reasons reports whether the model gives encrypted reasoning: one that does not
// refuses to be asked for it.
func (m *model) reasons() bool {
	if m.o.NoReasoning {
		return false
	}
	name := m.name[strings.LastIndexByte(m.name, '/')+1:]
	if m.o.Effort != "" || m.o.Summary != "" {
		return true
	}
	for _, prefix := range []string{"gpt-5", "o1", "o3", "o4", "codex", "computer-use"} {
		if strings.HasPrefix(name, prefix) && !strings.Contains(name, "-chat") {
			return true
		}
	}
	return false
}

func (m *model) responsesTool(t *ringi.Tool) responses.ToolUnionParam {
	o := m.offer(t)
	// Strict is on by default here, and would refuse most schemas.
	f := &responses.FunctionToolParam{Name: o.name, Parameters: o.parameters, Strict: param.NewOpt(o.strict)}
	if o.description != "" {
		f.Description = param.NewOpt(o.description)
	}
	return responses.ToolUnionParam{OfFunction: f}
}

// input is the conversation as input items. What it says yes to goes into to.
func (m *model) input(entries []vendor.Entry, to *allowed) responses.ResponseInputParam {
	out := responses.ResponseInputParam{}
	to.approved = map[string]ringi.ToolCall{}
	ran, newest := recorded(entries)
	var asked []bool // which of the calls before are questions of the vendor's own
	for i := range entries {
		e := &entries[i]
		switch e.Role {
		case ringi.RoleUser:
			out = append(out, responses.ResponseInputItemParamOfMessage(e.Text, responses.EasyInputMessageRoleUser))
		case ringi.RoleAssistant:
			var items []responses.ResponseInputItemUnionParam
			var kept bool
			if items, asked, kept = keptItems(e, m.hosted); !kept {
				items, asked = plainItems(e), make([]bool, len(e.Calls))
			}
			out = append(out, items...)
		default:
			for k := range e.Results {
				r := &e.Results[k]
				if asked[k] {
					out = append(out, m.hosted.answer(r, i > newest, ran, to))
					continue
				}
				output := responses.ResponseInputItemParamOfFunctionCallOutput(r.Result.Text())
				output.OfFunctionCallOutput.CallID = param.NewOpt(r.Call.ID)
				out = append(out, output)
			}
		}
	}
	return out
}

// recorded are the questions whose calls the vendor has recorded as run, and
// where the newest turn is.
func recorded(entries []vendor.Entry) (ran map[string]bool, newest int) {
	ran = map[string]bool{}
	for i := range entries {
		e := &entries[i]
		if e.Role != ringi.RoleAssistant {
			continue
		}
		newest = i
		var kept []item
		if e.Own && json.Unmarshal([]byte(e.Data), &kept) == nil {
			for _, it := range kept {
				ran[it.Approval] = ran[it.Approval] || it.Type == "mcp_call"
			}
		}
	}
	return ran, newest
}

// plainItems writes a turn that another made: without the ids of items, which
// would refer to what this vendor never had.
func plainItems(e *vendor.Entry) []responses.ResponseInputItemUnionParam {
	var out []responses.ResponseInputItemUnionParam
	if e.Text != "" {
		out = append(out, responses.ResponseInputItemParamOfMessage(e.Text, responses.EasyInputMessageRoleAssistant))
	}
	for _, c := range e.Calls {
		out = append(out, responses.ResponseInputItemParamOfFunctionCall(c.Input, c.ID, c.Label))
	}
	return out
}

// keptItems sends the vendor's own items back, unchanged and in order: a
// function call without its reasoning is refused (F71). They went through the
// caller's hands where a client keeps the history, so only what this vendor
// makes is taken back: no message of another role, no answer to an approval, no
// call but those that the log has.
//
// asked says which of the calls are the vendor's own questions.
func keptItems(e *vendor.Entry, h hosted) (out []responses.ResponseInputItemUnionParam, asked []bool, ok bool) {
	var kept []json.RawMessage
	if !e.Own || json.Unmarshal([]byte(e.Data), &kept) != nil {
		return nil, nil, false
	}
	next := 0
	for _, raw := range kept {
		var it item
		if json.Unmarshal(raw, &it) != nil {
			return nil, nil, false
		}
		switch it.Type {
		case "reasoning":
			if it.Encrypted == "" && len(it.Content) == 0 {
				continue // nothing but an id, of what nobody stored
			}
		case "message":
			if it.Role != "assistant" {
				return nil, nil, false
			}
		case "function_call", "mcp_approval_request":
			if next >= len(e.Calls) || !it.is(&e.Calls[next], h) {
				return nil, nil, false
			}
			c := &e.Calls[next]
			next++
			asked = append(asked, it.Type == "mcp_approval_request")
			if it.Type == "mcp_approval_request" && c.ID != it.ID {
				return nil, nil, false // an answer would answer two questions
			}
			if it.Type == "function_call" && c.ID != it.CallID {
				out = append(out, responses.ResponseInputItemParamOfFunctionCall(c.Input, c.ID, c.Label))
				continue // an id that is empty or stands there twice
			}
		case "mcp_list_tools", "mcp_call":
		default:
			return nil, nil, false
		}
		out = append(out, param.Override[responses.ResponseInputItemUnionParam](raw))
	}
	return out, asked, next == len(e.Calls)
}

// item is an output item, as far as it is read.
type item struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Status    string          `json:"status"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Server    string          `json:"server_label"`
	Approval  string          `json:"approval_request_id"`
	Encrypted string          `json:"encrypted_content"`
	Content   json.RawMessage `json:"content"`
}

// call is the call that an item asks for.
func (it *item) call(h hosted) ringi.ToolCall {
	if it.Type == "mcp_approval_request" {
		return ringi.ToolCall{ModelID: it.ID, Tool: h.name(it.Server, it.Name), Input: ringi.Input(it.Arguments)}
	}
	return ringi.ToolCall{ModelID: it.CallID, Tool: it.Name, Input: ringi.Input(it.Arguments)}
}

// is reports whether an item asks for a call of the log. Of an empty input the
// log keeps "{}" where that means the same.
func (it *item) is(c *vendor.Call, h hosted) bool {
	mine := it.call(h)
	return mine.ModelID == c.ModelID && mine.Tool == c.Tool && (string(mine.Input) == c.Input || mine.Input == "" && c.Input == "{}")
}
