package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi/internal/outbound"
	"github.com/ringi-dev/ringi/webhook"
)

// webhookConfig is one receiver of webhooks.
type webhookConfig struct {
	Name       string   `yaml:"name"`
	URL        string   `yaml:"url"`
	SecretEnv  string   `yaml:"secret_env"`
	SecretFile string   `yaml:"secret_file"`
	Types      []string `yaml:"types"`
}

// webhookKeys are the keys of a receiver, as docs/config.md lists them.
var webhookKeys = []struct{ key, def, what string }{
	{"name", "needed", "what logs, tables and `ringi webhooks` call it: letters, digits, `.`, `_` and `-`. Under another name it is another receiver, and begins with what happens from then on"},
	{"url", "needed", "where messages are POSTed to: `https://HOST/PATH`. What is not public must be in `outbound.allow`. It is never logged, as it may hold a secret"},
	{"secret_env", "this or `secret_file`", "the variable that holds the secret, `whsec_` and base64 of 24 to 64 bytes: `echo whsec_$(openssl rand -base64 32)`. Several, separated by commas or blanks, all sign: so one is exchanged for another"},
	{"secret_file", "this or `secret_env`", "a file with the same, readable by the server alone"},
	{"types", "all", "what it is told: " + typeNames()},
}

func typeNames() string {
	var out []string
	for _, t := range webhook.Types() {
		out = append(out, "`"+string(t)+"`")
	}
	return strings.Join(out, ", ")
}

// checkOutbound refuses a proxy or an allowance that is none.
func (c *config) checkOutbound() error {
	if _, err := outbound.New(c.outboundOptions()); err != nil {
		return fmt.Errorf("outbound: %w", err)
	}
	return nil
}

// outboundOptions are those of every client that speaks to addresses which
// somebody names.
func (c *config) outboundOptions() outbound.Options {
	first, _, _ := strings.Cut(version(), " ")
	return outbound.Options{Version: first, Allow: c.Outbound.Allow, Proxy: c.Outbound.Proxy}
}

func (c *config) checkWebhooks() error {
	if len(c.Webhooks) > webhook.MaxEndpoints {
		return fmt.Errorf("webhooks: there are %d, at most %d are served", len(c.Webhooks), webhook.MaxEndpoints)
	}
	seen := map[string]bool{}
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		err := w.check()
		if err == nil && seen[w.Name] {
			err = errors.New("name: another receiver has it")
		}
		if err != nil {
			return fmt.Errorf("webhooks[%d] (%s): %w", i, w.Name, err)
		}
		seen[w.Name] = true
	}
	return nil
}

func (w *webhookConfig) check() error {
	switch {
	case (w.SecretEnv == "") == (w.SecretFile == ""):
		return errors.New("secret_env and secret_file: say one of them")
	case strings.HasPrefix(w.SecretEnv, "whsec_"):
		return errors.New("secret_env: this is a secret, and the name of a variable is meant")
	case w.Types != nil && len(w.Types) == 0:
		return errors.New("types: an empty list says nothing: leave it out")
	}
	return w.endpoint(unread()).Check()
}

// unread stands for secrets that are not needed, and so not read.
func unread() []webhook.Secret {
	s, err := webhook.ParseSecrets(webhook.NewSecret())
	if err != nil {
		panic(err) // it was made for it
	}
	return s
}

// receivers are the configured receivers without their secrets: for who looks,
// and sends nothing.
func (c *config) receivers() []webhook.Endpoint {
	var out []webhook.Endpoint
	for i := range c.Webhooks {
		out = append(out, c.Webhooks[i].endpoint(unread()))
	}
	return out
}

func (w *webhookConfig) endpoint(secrets []webhook.Secret) webhook.Endpoint {
	e := webhook.Endpoint{Name: w.Name, URL: w.URL, Secrets: secrets}
	for _, t := range w.Types {
		e.Types = append(e.Types, webhook.Type(t))
	}
	return e
}

// endpoints are the configured receivers with their secrets.
func (e *env) endpoints(c *config) ([]webhook.Endpoint, error) {
	var out []webhook.Endpoint
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		text := e.getenv(w.SecretEnv)
		if w.SecretFile != "" {
			b, err := readGuarded(w.SecretFile, onlyOursRead)
			if err != nil {
				return nil, fmt.Errorf("read secret of webhook %s: %w", w.Name, err)
			}
			text = string(b)
		} else if text == "" {
			return nil, fmt.Errorf("read secret of webhook %s: %s is not set", w.Name, w.SecretEnv)
		}
		secrets, err := webhook.ParseSecrets(text)
		if err != nil {
			return nil, fmt.Errorf("webhook %s: %w", w.Name, err)
		}
		out = append(out, w.endpoint(secrets))
	}
	return out, nil
}
