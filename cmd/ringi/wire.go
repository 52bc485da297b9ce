package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/store/memory"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// openStore opens the store that a --store value names: memory, or sqlite:FILE.
// This file is the only one that names concrete stores.
func openStore(_ context.Context, name string) (ringi.Store, error) {
	if name == "memory" {
		return memory.New(memory.Options{}), nil
	}
	path, ok := strings.CutPrefix(name, "sqlite:")
	if !ok || path == "" {
		return nil, usagef("unknown store %q: say memory or sqlite:FILE", name)
	}
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}
