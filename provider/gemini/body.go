package gemini

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/genai"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/strictjson"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// config is what the SDK writes of a request:
// https://ai.google.dev/api/generate-content#request-body. It names no tool of the
// vendor's own.
func (m *model) config(req *ringi.ModelRequest) *genai.GenerateContentConfig {
	c := &genai.GenerateContentConfig{MaxOutputTokens: int32(m.o.MaxOutputTokens)}
	if req.System != "" {
		c.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: strings.ToValidUTF8(req.System, "\uFFFD")}}}
	}
	if m.o.Temperature != nil {
		c.Temperature = new(float32(*m.o.Temperature))
	}
	if m.o.Effort != "" || m.o.ThinkingBudget != nil || m.o.Summary != "" {
		c.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: m.o.Summary != "", ThinkingLevel: genai.ThinkingLevel(strings.ToUpper(m.o.Effort))}
		if m.o.ThinkingBudget != nil {
			c.ThinkingConfig.ThinkingBudget = new(int32(*m.o.ThinkingBudget))
		}
	}
	return c
}

// body writes a request: what the SDK made of the configuration, and the
// conversation and the tools.
func (m *model) body(made map[string]any, req *ringi.ModelRequest, entries []vendor.Entry) ([]byte, error) {
	made["contents"] = m.contents(entries)
	if len(req.Tools) > 0 {
		t := genai.Tool{}
		for i := range req.Tools {
			t.FunctionDeclarations = append(t.FunctionDeclarations, declare(&req.Tools[i]))
		}
		made["tools"] = []genai.Tool{t}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(made); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// content is one side's turn: https://ai.google.dev/api/caching#Content.
type content struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

// part is a piece of a turn, as far as it is written and read:
// https://ai.google.dev/api/caching#Part.
type part struct {
	Text      *string           `json:"text,omitempty"`
	Thought   bool              `json:"thought,omitempty"`
	Call      *functionCall     `json:"functionCall,omitempty"`
	Response  *functionResponse `json:"functionResponse,omitempty"`
	Signature string            `json:"thoughtSignature,omitempty"`
}

// functionCall is a call: https://ai.google.dev/api/caching#FunctionCall. Many
// models write no id; then none goes back, and calls are told apart by their place.
type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// functionResponse answers a call, under its id and its name.
type functionResponse struct {
	ID       string `json:"id,omitempty"`
	Name     string `json:"name"`
	Response answer `json:"response"`
}

// answer is a result under the key that the vendor's reference names: what came of
// the call, or why nothing did. It is a text even where it is JSON: the vendor
// keeps numbers of JSON as float64.
type answer struct {
	Output *string `json:"output,omitempty"`
	Error  *string `json:"error,omitempty"`
}

func (m *model) contents(entries []vendor.Entry) []content {
	out := make([]content, 0, len(entries))
	var calls []functionCall // of the turn before, as they were written
	for i := range entries {
		e := &entries[i]
		switch e.Role {
		case ringi.RoleUser:
			text := e.Text
			if text == "" {
				text = "(empty message)" // the vendor refuses a part that says nothing
			}
			out = append(out, content{"user", []part{{Text: &text}}})
		case ringi.RoleAssistant:
			var parts []part
			parts, calls = m.assistant(e)
			if len(parts) > 0 {
				out = append(out, content{"model", parts})
			}
		default:
			// All results of a turn stand in one content, in the order of the calls
			// (F56): https://ai.google.dev/gemini-api/docs/function-calling.
			parts := make([]part, len(e.Results))
			for k := range e.Results {
				parts[k].Response = respond(&calls[k], &e.Results[k].Result)
			}
			out = append(out, content{"user", parts})
		}
	}
	return out
}

// assistant writes a turn: the model's own parts in their order, with what it
// signed, else its text and then its calls.
func (m *model) assistant(e *vendor.Entry) (parts []part, calls []functionCall) {
	parts, own := kept(e)
	if !own {
		parts = m.plain(e)
	}
	for i := range parts {
		if parts[i].Call == nil {
			continue
		}
		c := &e.Calls[len(calls)]
		f := functionCall{ID: c.ID, Name: label(c.Label), Args: object(c.Input)}
		if own {
			f.Name = c.Tool // this model wrote it
			if c.ModelID == "" {
				f.ID = ""
			}
		}
		calls = append(calls, f)
		parts[i].Call = &f
	}
	return parts, calls
}

// label is a name that stands in another's turn: the vendor's begin with a letter.
func label(name string) string {
	if c := name[0]; '0' <= c && c <= '9' || c == '-' {
		return ("_" + name)[:min(len(name)+1, 64)]
	}
	return name
}

// plain are the parts of a turn that another made.
func (m *model) plain(e *vendor.Entry) []part {
	var out []part
	if e.Text != "" {
		out = append(out, part{Text: &e.Text})
	}
	for i := range e.Calls {
		p := part{Call: &functionCall{}}
		if i == 0 && m.signs {
			p.Signature = unsigned
		}
		out = append(out, p)
	}
	return out
}

// unsigned stands where a model wants a signature, of a turn that it did not make:
// https://ai.google.dev/gemini-api/docs/thought-signatures#faqs. The first call of
// a turn needs one.
const unsigned = "skip_thought_signature_validator"

// signs reports whether a model refuses calls without a signature: Gemini 3 and
// what came after it.
func signs(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	return strings.HasPrefix(name, "gemini-") && !strings.HasPrefix(name, "gemini-1") && !strings.HasPrefix(name, "gemini-2")
}

func respond(c *functionCall, r *ringi.ToolResult) *functionResponse {
	out := &functionResponse{ID: c.ID, Name: c.Name}
	text := strings.ToValidUTF8(r.Text(), "\uFFFD")
	if failed(r) {
		out.Response.Error = &text
	} else {
		out.Response.Output = &text
	}
	return out
}

// failed is the rule of the error key: a tool's own error, and every call that did
// not run or of which nobody knows. A person's answer in a tool's place is an
// answer.
func failed(r *ringi.ToolResult) bool {
	switch r.Outcome {
	case ringi.OutcomeOK, ringi.OutcomeResponded, "":
		return r.Error != ""
	}
	return true
}

// object is an input as the vendor takes it: an object of JSON. What the model
// wrote stays as it is, digits, escapes and order, but for blanks between tokens.
// What is no object, or one that the vendor refuses (a key twice, a number beyond
// float64), goes back as a text.
func object(input string) json.RawMessage {
	if input == "" {
		return nil
	}
	raw := jsontext.Value(input)
	if _, err := strictjson.ParseObject(input, strictjson.Limits{Bytes: len(input), Depth: 64}); err == nil &&
		raw.Compact(jsontext.PreserveRawStrings(true)) == nil {
		return json.RawMessage(raw)
	}
	b, err := json.Marshal(map[string]string{"unreadable_input": input})
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}
