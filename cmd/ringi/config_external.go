package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/ringi-dev/ringi"
)

// What an agent has whose loop is elsewhere: tools that the loop runs, calls
// that come over the API, and perhaps no model here.

// noModel answers for an agent whose loop is elsewhere: a run that is started
// here for it all the same fails, and says why.
type noModel struct{}

// Generate yields an error.
func (noModel) Generate(context.Context, ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		yield(ringi.ModelEvent{}, errors.New("the agent has no model here: its loop is elsewhere, and asks by POST /v1/calls"))
	}
}

// checkExternal refuses an agent that has nothing, and one whose clients' own
// tools could never be offered.
func (a *agentConfig) checkExternal() error {
	ceiling, _ := ringi.TrustZone(a.Zone).Ceiling()
	switch {
	case a.Model.Kind == modelNone && a.Tools.External == "" && !a.Tools.Foreign:
		return errors.New("model.kind: an agent without a model needs tools.external or tools.foreign: its loop is elsewhere")
	case a.Model.Kind == modelNone && (a.Tools.Set != "" || a.Tools.File != ""):
		return errors.New("tools: an agent without a model runs no tools here: name them in tools.external")
	case a.Tools.Foreign && ceiling.Rank() < ringi.SecretAdjacent.Rank():
		return fmt.Errorf("tools.foreign: a client's own tools count as %s, which a model in zone %s may not read", ringi.SecretAdjacent, a.Zone)
	}
	return nil
}

// addExternal registers the tools of a file that foreign loops run.
func addExternal(reg *ringi.Registry, path string) error {
	if err := checkGuarded(path, onlyOursWrite); err != nil {
		return fmt.Errorf("tools.external: %w", err)
	}
	tools, err := readTools(path)
	if err != nil {
		return fmt.Errorf("tools.external: %w", err)
	}
	for _, t := range tools {
		if err := reg.AddExternal(t); err != nil {
			return fmt.Errorf("tools.external: %w", err)
		}
	}
	return nil
}
