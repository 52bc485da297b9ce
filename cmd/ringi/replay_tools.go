package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/ringi-dev/ringi"
)

// recordedTools answers calls with what the recording holds.
type recordedTools struct {
	join    int
	effects *effectsFile // nil: none is kept
	// effect is each tool's declared effect.
	effect map[string]ringi.Effect
}

// registry makes the tools of a replay. The file's deciders are left out: in a
// simulated store the script decides.
func (t *recordedTools) registry(tools []ringi.Tool) (*ringi.Registry, error) {
	reg := ringi.NewStrictRegistry()
	t.effect = make(map[string]ringi.Effect, len(tools))
	for i := range tools {
		tool := tools[i]
		if tool.External || len(tool.InputRequired) > 0 {
			return nil, fmt.Errorf("replay tool %q: a recording has no words of the person who gives its result or its input", tool.Name)
		}
		tool.Deciders = ringi.Deciders{}
		if err := reg.Add(tool, t.answer); err != nil {
			return nil, err
		}
		t.effect[tool.Name] = tool.Effect
	}
	return reg, nil
}

// scriptRunKey carries the run of the script that is played, by context: a
// handler must not depend on what this process remembers.
type scriptRunKey struct{}

func withScriptRun(ctx context.Context, r *scriptRun) context.Context {
	return context.WithValue(ctx, scriptRunKey{}, r)
}

// answer is the handler of every tool: the recorded answer of this call, after
// the line that says it ran is on the disk.
func (t *recordedTools) answer(ctx context.Context, call ringi.ToolCall) (ringi.ToolResult, error) {
	tc, ok := ringi.ToolContextFrom(ctx)
	if !ok {
		return ringi.ToolResult{}, ringi.NotDone(errors.New("recorded tools run in a replay only"))
	}
	run, _ := ctx.Value(scriptRunKey{}).(*scriptRun)
	recorded, err := recordedAnswer(run, call, t.join)
	if err != nil {
		return ringi.ToolResult{}, ringi.NotDone(err)
	}
	if t.effects != nil {
		if err := t.effects.append(tc.Thread, tc.RunID, tc.CallID, tc.Tool, string(t.effect[tc.Tool])); err != nil {
			return ringi.ToolResult{}, err
		}
	}
	return ringi.ToolResult{Output: recorded.answer}, nil
}

// recordedAnswer finds a call in the recording, by its place, and holds it
// against what is recorded there.
func recordedAnswer(run *scriptRun, call ringi.ToolCall, join int) (recordedCall, error) {
	step, pos, ok := callPlace(call.ID)
	if run == nil || !ok {
		return recordedCall{}, fmt.Errorf("call %s is of no recorded run", call.ID)
	}
	c, ok := run.call(step, pos, join)
	if !ok || c.tool != call.Tool || c.modelID != call.ModelID || !wrote(call, c.input) {
		return recordedCall{}, fmt.Errorf("call %s is not the recorded one", call.ID)
	}
	return c, nil
}

// wrote reports whether the call's input, as the model wrote it, is this text.
// An input that was written as nothing is kept as {} alone.
func wrote(call ringi.ToolCall, text string) bool {
	if call.Raw != "" {
		return string(call.Raw) == text
	}
	return string(call.Input) == text || text == "" && call.Input == "{}"
}

// callPlace reads step and position from a call's id, which is derived from
// run, step and position.
func callPlace(id string) (step, pos int, ok bool) {
	parts := strings.Split(id, "_")
	if len(parts) < 3 {
		return 0, 0, false
	}
	step, err := strconv.Atoi(parts[len(parts)-2])
	if err != nil {
		return 0, 0, false
	}
	pos, err = strconv.Atoi(parts[len(parts)-1])
	return step, pos, err == nil && step > 0
}

// effectsFile takes one line an execution. A line is one write, and on the
// disk before the tool answers: what a kill leaves behind is whole lines.
type effectsFile struct {
	mu sync.Mutex
	f  *os.File
}

func openEffects(path string) (*effectsFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open effects: %w", err)
	}
	return &effectsFile{f: f}, nil
}

func (e *effectsFile) append(fields ...string) error {
	line := strings.Join(fields, "\t") + "\n"
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.f.WriteString(line); err != nil {
		return fmt.Errorf("write effect: %w", err)
	}
	if err := e.f.Sync(); err != nil {
		return fmt.Errorf("sync effect: %w", err)
	}
	return nil
}

func (e *effectsFile) close() error {
	if e == nil {
		return nil
	}
	if err := e.f.Close(); err != nil {
		return fmt.Errorf("close effects: %w", err)
	}
	return nil
}
