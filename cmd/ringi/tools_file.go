package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringi-dev/ringi"
)

// readTools reads a tools file: a JSON array of tool definitions, by exact
// names. An unknown key, a duplicate one and an empty file are errors: what a
// tool may do is never guessed.
func readTools(path string) ([]ringi.Tool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read tools: %w", err)
	}
	var tools []ringi.Tool
	err = jsonv2.Unmarshal(text, &tools, jsonv2.RejectUnknownMembers(true), jsonv2.WithUnmarshalers(durations))
	if err != nil {
		return nil, fmt.Errorf("read tools from %s: %w", path, err)
	}
	if len(tools) == 0 {
		return nil, fmt.Errorf("read tools from %s: it holds none", path)
	}
	return tools, nil
}

// durations reads a time as people write it ("30s"), and as a store keeps it
// (nanoseconds).
var durations = jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, to *time.Duration) error {
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	if raw.Kind() != '"' {
		return json.Unmarshal(raw, (*int64)(to))
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	*to, err = time.ParseDuration(text)
	return err
})

// registerTools adds tools that all have one handler.
func registerTools(reg *ringi.Registry, tools []ringi.Tool, h ringi.ToolHandler) error {
	for _, t := range tools {
		add := func() error { return reg.Add(t, h) }
		if t.External {
			add = func() error { return reg.AddExternal(t) }
		}
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// runsNowhere is the handler of a tool that is only looked at.
func runsNowhere(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
	return ringi.ToolResult{}, ringi.NotDone(errors.New("this command shows tools and runs none"))
}
