package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/live"
	"github.com/ringi-dev/ringi/sign"
)

// agent is an agent that the server runs.
type agent struct {
	config agentConfig
	engine *engine.Engine
	system string
	close  func() error // of its tools
}

// ground is what all agents of a server stand on.
type ground struct {
	store ringi.Store
	keys  *sign.Keyring
	data  string
	// getenv reads the environment, where keys of models are.
	getenv func(string) string
	log    *slog.Logger
	// persons knows who stands behind a login; nil compares ids.
	persons ringi.Persons
	// members knows who is in which team; nil believes what a login says.
	members ringi.Members
	feed    *live.Feed // of the runs that this process drives
}

// serverLease is how long a server that died keeps its runs.
const serverLease = 6 * time.Second

// openAgents opens the agents of a configuration. Close each.
func openAgents(c *config, g ground) ([]*agent, error) {
	var out []*agent
	for i := range c.Agents {
		a, err := openAgent(c.Agents[i], g)
		if err != nil {
			for _, a := range out {
				err = errors.Join(err, a.close())
			}
			return nil, fmt.Errorf("open agent %s: %w", c.Agents[i].Name, err)
		}
		out = append(out, a)
	}
	return out, nil
}

func openAgent(c agentConfig, g ground) (*agent, error) {
	a := &agent{config: c, system: c.System, close: func() error { return nil }}
	if c.SystemFile != "" {
		text, err := readGuarded(c.SystemFile, onlyOursWrite)
		if err != nil {
			return nil, fmt.Errorf("read system prompt: %w", err)
		}
		a.system = string(text)
	}
	p, err := openParts(c, g)
	if err != nil {
		return nil, err
	}
	if p.close != nil {
		a.close = p.close
	}
	disabled, err := p.leave(c.Tools.Names)
	if err == nil {
		a.engine, err = newAgentEngine(c, g, p, a.system, disabled)
	}
	if err == nil {
		err = offerable(a, p, disabled)
	}
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	if c.FourEyes == "" || c.FourEyes == switchedOff {
		g.log.Info("who asks for a run may approve it", "agent", c.Name)
	}
	return a, nil
}

// parts are the tools and the model of an agent.
type parts struct {
	registry *ringi.Registry
	model    ringi.Model
	context  func(context.Context, ringi.RunInfo) context.Context
	close    func() error
}

// openParts makes the agent's tools and its model. The registry is strict: a
// tool without a declared effect is an error here (S-01).
func openParts(c agentConfig, g ground) (*parts, error) {
	p := &parts{registry: ringi.NewStrictRegistry()}
	var recorded *recordedScript
	if c.Model.Kind == modelScripted {
		if err := checkGuarded(c.Model.Script, onlyOursWrite); err != nil {
			return nil, fmt.Errorf("read script: %w", err)
		}
		scripts, _, err := readTranscripts(c.Model.Script)
		if err != nil {
			return nil, err
		}
		recorded = newRecordedScript(scripts, g.store)
		p.model, p.context = recorded.model, recorded.context
	}
	if _, ok := vendors[c.Model.Kind]; ok {
		var err error
		if p.model, err = vendorModel(&c, g.getenv); err != nil {
			return nil, fmt.Errorf("model: %w", err)
		}
	}
	switch {
	case c.Tools.Set != "":
		open, ok := toolSets[c.Tools.Set]
		if !ok {
			return nil, fmt.Errorf("tools.set: unknown value %q: say %s", c.Tools.Set, toolSetNames())
		}
		demo, closing, err := open(filepath.Join(g.data, "agents", c.Name), p.registry)
		if err != nil {
			return nil, fmt.Errorf("open tools %s: %w", c.Tools.Set, err)
		}
		p.close = closing
		if c.Model.Kind == modelDemo {
			p.model = demo
		}
	case c.Tools.File != "":
		if recorded == nil {
			return nil, errors.New("tools.file: tools of a file answer what is recorded: they need model.script")
		}
		if err := recorded.register(p.registry, c.Tools.File); err != nil {
			return nil, err
		}
	}
	if c.Model.Kind == modelNone {
		p.model = noModel{}
	}
	if c.Tools.External == "" {
		return p, nil
	}
	if err := addExternal(p.registry, c.Tools.External); err != nil {
		if p.close != nil {
			err = errors.Join(err, p.close())
		}
		return nil, err
	}
	return p, nil
}

// leave lists the tools that the agent does not have; all are left where none
// is named.
func (p *parts) leave(names []string) ([]string, error) {
	if names == nil {
		return nil, nil
	}
	var out []string
	for _, t := range p.registry.Tools() {
		if !slices.Contains(names, t.Name) {
			out = append(out, t.Name)
		}
	}
	for _, name := range names {
		if _, ok := p.registry.Tool(name); !ok {
			return nil, fmt.Errorf("tools.names: there is no tool %q", name)
		}
	}
	return out, nil
}

func newAgentEngine(c agentConfig, g ground, p *parts, system string, disabled []string) (*engine.Engine, error) {
	cfg := engine.Config{
		Agent: c.Name, System: system, Groups: c.Groups, Store: g.store, Keyring: g.keys, Logger: g.log.With("agent", c.Name), Persons: g.persons, Members: g.members,
		Registry: p.registry, Model: p.model, ContextFunc: p.context, Disabled: disabled, Live: g.feed.Publish, ForeignTools: c.Tools.Foreign,
		Zone: ringi.TrustZone(c.Zone), Limits: c.Limits.limits(), Lease: serverLease,
		RuleFloor: true, RequireApproval: c.RequireApproval,
		Deciders:       ringi.Deciders{People: c.Deciders.People, Teams: c.Deciders.Teams},
		ThreadRequests: int(c.Limits.ThreadAsks), AgentRequests: int(c.Limits.AgentAsks),
		Expiry: c.Expiry.orNever(), UseBy: c.UseBy.d, HandOver: c.handOver(),
	}
	if c.FourEyes != "off" {
		cfg.FourEyes = engine.FourEyes(c.FourEyes)
	}
	for tool, f := range c.Floor {
		if cfg.Floor.Tools == nil {
			cfg.Floor.Tools = map[string]ringi.ToolApproval{}
		}
		cfg.Floor.Tools[tool] = ringi.ToolApproval{Status: ringi.Status(f.Type), Reason: f.Reason}
	}
	return engine.New(cfg)
}

// offerable refuses an agent that has a tool which no run of it could ever be
// offered: somebody believes that it may be used.
func offerable(a *agent, p *parts, disabled []string) error {
	admin := ringi.RunInfo{By: ringi.Principal{ID: "admin", Kind: ringi.Person, Admin: true}, Groups: a.config.Groups}
	for _, t := range p.registry.Tools() {
		if slices.Contains(disabled, t.Name) {
			continue
		}
		if why := a.engine.Explain(t.Name, admin); !why.Offered {
			return fmt.Errorf("tools: %s", why)
		}
	}
	return nil
}
