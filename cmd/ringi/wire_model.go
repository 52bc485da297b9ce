package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/provider"
	"github.com/ringi-dev/ringi/provider/anthropic"
	"github.com/ringi-dev/ringi/provider/gemini"
	"github.com/ringi-dev/ringi/provider/openai"
)

// vendor is what the configuration knows of a vendor of models.
type vendor struct {
	keyEnv string   // the vendor's own variable
	own    []string // its own address
	apis   []string // values of model.api
	caches []string // values of model.cache
	make   func(m *modelConfig, key string) ringi.Model
}

// vendors are the kinds of models that are a vendor's: one line for each.
var vendors = map[string]vendor{
	"anthropic": {"ANTHROPIC_API_KEY", []string{"https://api.anthropic.com"}, nil, []string{"5m", "1h"}, newAnthropic},
	"gemini":    {"GEMINI_API_KEY", []string{"https://generativelanguage.googleapis.com"}, nil, nil, newGemini},
	"openai":    {"OPENAI_API_KEY", []string{"https://api.openai.com/v1"}, []string{"responses", "chat"}, nil, newOpenAI},
}

func newAnthropic(m *modelConfig, key string) ringi.Model {
	return anthropic.New(m.Name, &anthropic.Options{BaseURL: m.BaseURL, Key: key, Effort: m.Effort,
		MaxOutputTokens: int64(m.MaxOutputTokens), Cache: anthropic.Cache(m.Cache), IdleTimeout: m.IdleTimeout.d})
}

func newGemini(m *modelConfig, key string) ringi.Model {
	return gemini.New(m.Name, &gemini.Options{BaseURL: m.BaseURL, Key: key, Effort: m.Effort,
		MaxOutputTokens: int64(m.MaxOutputTokens), IdleTimeout: m.IdleTimeout.d})
}

func newOpenAI(m *modelConfig, key string) ringi.Model {
	return openai.New(m.Name, &openai.Options{BaseURL: m.BaseURL, Key: key, Effort: m.Effort,
		MaxOutputTokens: int64(m.MaxOutputTokens), API: openai.API(m.API), IdleTimeout: m.IdleTimeout.d})
}

func vendorNames() []string { return slices.Sorted(maps.Keys(vendors)) }

// vendorModel makes the model of an agent, a chain where it has one. A key that
// is named and not there is an error here, not at the first question.
func vendorModel(a *agentConfig, getenv func(string) string) (ringi.Model, error) {
	first, err := a.Model.open(getenv)
	if err != nil || len(a.Model.Fallback) == 0 {
		return first, err
	}
	chain := []provider.Choice{{Model: first, Zone: ringi.TrustZone(a.Zone)}}
	for i := range a.Model.Fallback {
		m := &a.Model.Fallback[i]
		next, err := m.open(getenv)
		if err != nil {
			return nil, fmt.Errorf("fallback[%d]: %w", i, err)
		}
		chain = append(chain, provider.Choice{Model: next, Zone: ringi.TrustZone(m.Zone)})
	}
	return provider.Fallback(chain...), nil
}

func (m *modelConfig) open(getenv func(string) string) (ringi.Model, error) {
	v := vendors[m.Kind]
	key, err := secretText(m.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("key_file: %w", err)
	}
	env := m.KeyEnv
	if env == "" && m.KeyFile == "" && m.own() {
		env = v.keyEnv // it is nobody else's
	}
	if env != "" {
		if key = strings.TrimSpace(getenv(env)); key == "" {
			return nil, fmt.Errorf("key_env: %s is not set", env)
		}
	}
	return v.make(m, key), nil
}
