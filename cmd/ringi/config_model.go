package main

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi"
)

// modelConfig is the model of an agent, or one of its chain.
type modelConfig struct {
	Kind            string        `yaml:"kind"`
	Script          string        `yaml:"script"`
	Name            string        `yaml:"name"`
	BaseURL         string        `yaml:"base_url"`
	KeyEnv          string        `yaml:"key_env"`
	KeyFile         string        `yaml:"key_file"`
	API             string        `yaml:"api"`
	Effort          string        `yaml:"effort"`
	MaxOutputTokens whole         `yaml:"max_output_tokens"`
	Cache           string        `yaml:"cache"`
	IdleTimeout     duration      `yaml:"idle_timeout"`
	Zone            string        `yaml:"zone"`
	Fallback        []modelConfig `yaml:"fallback"`
}

// The kinds of a model that are no vendor's; those of vendors are in vendors.
const (
	modelScripted = "scripted"
	modelDemo     = "demo"
	modelNone     = "none" // the agent's loop is elsewhere
)

// modelKeys are the rows of modelConfig.
var modelKeys = []agentKey{
	{"model.kind", "needed", "a vendor: `anthropic` (Messages API), `gemini` (Gemini API) or `openai` (and every server that speaks its Chat Completions: Ollama, vLLM, gateways). Or `scripted`: says what is recorded in `script`. Or `demo`: the script of the tool set's own demonstration. Or `none`: the agent's loop is elsewhere, and asks by `POST /v1/calls`"},
	{"model.script", "none", "for `scripted`: recorded conversations, one JSON object a line, as `ringi replay` reads them. A run belongs to the conversation whose id is its thread's"},
	{"model.name", "needed for a vendor", "the model, as the vendor writes it"},
	{"model.base_url", "the vendor's own", "another server's address: with the version for `openai` (`http://localhost:11434/v1`), without it for the others. No variable of the vendor's own changes it"},
	{"model.key_env", "`ANTHROPIC_API_KEY`, `GEMINI_API_KEY`, `OPENAI_API_KEY`; none with `base_url`", "the variable that holds the API key. The key itself never stands in this file"},
	{"model.key_file", "none", "a file that holds it on one line, readable by the server alone, in place of `key_env`"},
	{"model.api", "by address", "for `openai`: `responses` or `chat`"},
	{"model.effort", "the vendor's", "how much the model reasons, as the vendor calls it"},
	{"model.max_output_tokens", "the vendor's; 16384 for `anthropic`", "the most tokens of an answer. A turn that reaches it runs nothing"},
	{"model.cache", "off", "for `anthropic`: `5m` or `1h`: the vendor keeps the prompt's beginning so long. With the others it does so by itself"},
	{"model.idle_timeout", "5m", "how long the vendor may be silent"},
	{"model.zone", "needed in `fallback`", "the trust zone of a model of `fallback`; the first one's is the agent's `zone`"},
	{"model.fallback", "none", "models that are asked in turn where the one before fails, each with the keys of `model` and its `zone`. The agent is as trusted as the least trusted of them, whichever answers"},
}

// checkModel refuses a model that cannot be. Whether its key is there shows when
// it is opened.
func (a *agentConfig) checkModel() error {
	m := &a.Model
	switch m.Kind {
	case modelScripted:
		if m.Script == "" {
			return errors.New("model.script: a scripted model needs it")
		}
		return m.nothingElse()
	case modelDemo:
		if m.Script != "" || a.Tools.Set == "" {
			return errors.New("model: the demo is that of tools.set, without a script")
		}
		return m.nothingElse()
	case modelNone:
		if m.Script != "" {
			return errors.New("model.script: without a model nobody says it")
		}
		return m.nothingElse()
	}
	if m.Zone != "" {
		return errors.New("model.zone: the first model's zone is the agent's: say zone there")
	}
	if err := m.checkVendor(a.Zone); err != nil {
		return fmt.Errorf("model.%w", err)
	}
	for i := range m.Fallback {
		if err := m.Fallback[i].checkChoice(); err != nil {
			return fmt.Errorf("model.fallback[%d].%w", i, err)
		}
	}
	return nil
}

// nothingElse refuses the keys of a vendor's model.
func (m *modelConfig) nothingElse() error {
	if m.Name != "" || m.BaseURL != "" || m.KeyEnv != "" || m.KeyFile != "" || m.API != "" || m.Effort != "" || m.Cache != "" || m.Zone != "" ||
		m.MaxOutputTokens != 0 || m.IdleTimeout != (duration{}) || m.Fallback != nil {
		return fmt.Errorf("model: %s is no vendor's: it has no name, address or key", m.Kind)
	}
	return nil
}

func (m *modelConfig) checkChoice() error {
	switch {
	case m.Fallback != nil:
		return errors.New("fallback: a chain has one level")
	case !ringi.TrustZone(m.Zone).Known():
		return fmt.Errorf("zone: unknown value %q: say local, private_hosted, external_eu or external_global", m.Zone)
	}
	return m.checkVendor(m.Zone)
}

// variable is the name of a variable of the environment. A key looks otherwise.
var variable = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,127}$`)

// checkVendor refuses a vendor's model that cannot be. Its errors begin with the
// key below model.
func (m *modelConfig) checkVendor(zone string) error {
	v, ok := vendors[m.Kind]
	switch {
	case !ok:
		return fmt.Errorf("kind: unknown value %q: say %s, scripted, demo or none", m.Kind, strings.Join(vendorNames(), ", "))
	case m.Script != "":
		return errors.New("script: it is for a scripted model")
	case m.Name == "":
		return fmt.Errorf("name: which model of %s?", m.Kind)
	case m.KeyEnv != "" && m.KeyFile != "":
		return errors.New("key_env and key_file: say one of them")
	case m.KeyEnv != "" && !variable.MatchString(m.KeyEnv):
		return errors.New("key_env: this is to be the name of a variable, such as " + v.keyEnv + "; a key never stands in the file")
	case m.API != "" && !slices.Contains(v.apis, m.API):
		return fmt.Errorf("api: unknown value %q for %s", m.API, m.Kind)
	case m.Cache != "" && !slices.Contains(v.caches, m.Cache):
		return fmt.Errorf("cache: unknown value %q for %s", m.Cache, m.Kind)
	case m.IdleTimeout.never:
		return errors.New("idle_timeout: it has an end")
	case m.own() && (zone == string(ringi.ZoneLocal) || zone == string(ringi.ZonePrivateHosted)):
		return fmt.Errorf("base_url: %s's own address is not in the zone %s: say where the model runs, or external_eu or external_global", m.Kind, zone)
	case m.own():
		return nil
	}
	u, err := url.Parse(m.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("base_url: this is not of the form https://HOST/PATH")
	}
	if u.User != nil {
		return errors.New("base_url: a key never stands in the file: say key_env or key_file")
	}
	return nil
}

// own reports whether the model is asked at the vendor's own address.
func (m *modelConfig) own() bool {
	return m.BaseURL == "" || slices.Contains(vendors[m.Kind].own, strings.TrimSuffix(m.BaseURL, "/"))
}

// paths are all that name files.
func (m *modelConfig) paths() []*string {
	out := []*string{&m.Script, &m.KeyFile}
	for i := range m.Fallback {
		out = append(out, m.Fallback[i].paths()...)
	}
	return out
}
