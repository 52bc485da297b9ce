package ringitest

import (
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// Judge returns the verdict of a run for one call of a tool: input check,
// offer, every rung, floor and rule, by the engine's own code. Nothing runs,
// nobody is asked, and a store in cfg is not touched. An input that is not
// valid, and a tool that does not exist, are denied. runtime is the run's
// runtime value; nil is none.
//
// A cfg of which no engine can be made, and a runtime value that is not JSON,
// fail the test.
func Judge(t testing.TB, cfg engine.Config, tool, input string, runtime any) ringi.Verdict {
	t.Helper()
	return JudgeIn(t, cfg, Call(tool, input), ringi.RunStart{Runtime: runtime})
}

// JudgeIn is [Judge] for a call in a run of one's own: with who starts it, its
// groups, messages or tools, or unattended.
func JudgeIn(t testing.TB, cfg engine.Config, call ringi.ToolCall, start ringi.RunStart) ringi.Verdict {
	t.Helper()
	cfg.Store, cfg.Now, cfg.NewID = nil, nil, nil
	v, err := Engine(t, cfg).Judge(t.Context(), call, start)
	if err != nil {
		t.Fatalf("judge call of tool %q: %v", call.Tool, err)
	}
	return v
}
