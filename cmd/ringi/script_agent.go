package main

import (
	"context"
	"fmt"

	"github.com/ringi-dev/ringi"
)

// recordedScript is an agent that says and does what was recorded: the model
// of recorded conversations, and tools that answer from them. Which recorded
// run a run is follows from its place in its thread, so it goes on in another
// process as if it had never stopped.
type recordedScript struct {
	model *scriptModel
	tools *recordedTools
	store ringi.Store
}

func newRecordedScript(scripts []*script, store ringi.Store) *recordedScript {
	return &recordedScript{model: newScriptModel(scripts, 1), tools: &recordedTools{join: 1}, store: store}
}

// register adds the tools of a file, which answer what is recorded. One whose
// result a person gives has no handler at all.
func (r *recordedScript) register(reg *ringi.Registry, path string) error {
	if err := checkGuarded(path, onlyOursWrite); err != nil {
		return fmt.Errorf("read tools: %w", err)
	}
	tools, err := readTools(path)
	if err != nil {
		return err
	}
	return registerTools(reg, tools, r.tools.answer)
}

// context tells the tools which recorded run this run is. Where it is none of
// the recording they answer that nothing was done.
func (r *recordedScript) context(ctx context.Context, run ringi.RunInfo) context.Context {
	s := r.model.scripts[run.Thread]
	if s == nil {
		return ctx
	}
	rows, err := r.store.Runs(ctx, ringi.RunQuery{Space: run.Space, Thread: run.Thread, Limit: maxThreadRuns})
	if err != nil {
		return ctx
	}
	for i := range rows { // the newest is the first
		if n := len(rows) - 1 - i; rows[i].ID == run.ID && n < len(s.runs) {
			return withScriptRun(ctx, &s.runs[n])
		}
	}
	return ctx
}
