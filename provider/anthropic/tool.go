package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// runsHere refuses an offer with a tool that a vendor runs by itself (S-22). This
// vendor asks nobody before it calls an MCP server, and another's hosted tool
// offered as a plain one would be approved and never run.
func runsHere(tools []ringi.Tool) error {
	for i := range tools {
		if by := vendor.HostedBy(&tools[i]); by != "" {
			return &ringi.ModelError{Class: ringi.ModelBadRequest, Provider: provider, Err: fmt.Errorf(
				"tool %q is run by %s: Anthropic's API has no approval of hosted MCP calls; connect the server to Ringi instead", tools[i].Name, by)}
		}
	}
	return nil
}

// topLevel are keys that the vendor refuses at the top of a schema. The model is
// told of them in words; the engine checks the whole schema whatever is told.
var topLevel = []string{"allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else", "$ref"}

// tool translates a tool. Names need no translation: a registry takes only what
// every vendor takes. The keys of the schema keep their own bytes, and are written
// sorted.
func tool(t *ringi.Tool) anthropic.ToolUnionParam {
	schema := map[string]json.RawMessage{}
	if len(t.InputSchema) > 0 && json.Unmarshal(t.InputSchema, &schema) != nil {
		schema = map[string]json.RawMessage{} // "true" is a schema too
	}
	own, left := map[string]any{}, map[string]json.RawMessage{}
	for key, value := range schema {
		if slices.Contains(topLevel, key) {
			left[key] = value
			continue
		}
		own[key] = value
	}
	own["type"] = "object"
	p := &anthropic.ToolParam{Name: t.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](own)}
	description := t.Description
	if len(left) > 0 {
		text, _ := json.Marshal(left)
		description += "\nThe input must also satisfy this JSON Schema: " + string(text)
	}
	if description != "" {
		p.Description = param.NewOpt(description)
	}
	return anthropic.ToolUnionParam{OfTool: p}
}
