package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi"
)

// talking is a server's data opened by a command that drives an agent itself:
// ringi run and ringi chat. A server may work on the same data meanwhile: a
// run is driven by one of them at a time.
type talking struct {
	*server
	agent *agent
	by    ringi.Principal
	// mayDecide is false where people decide at the server.
	mayDecide bool
	end       func() error
}

// talk opens the configured agent of that name; without a configuration that
// names agents, that of the demo.
func (e *env) talk(ctx context.Context, cmd *cobra.Command, name string) (_ *talking, err error) {
	if e.store != "" || e.space != "default" {
		return nil, usagef("%s works in the data folder of the configuration, and in the default space: say --data", cmd.Name())
	}
	file, _ := cmd.Flags().GetString("config")
	c, err := e.readConfig(file, typedFlags(cmd))
	if err != nil {
		return nil, err
	}
	demo := false
	t := &talking{end: func() error { return nil }}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.end())
		}
	}()
	if len(c.Agents) == 0 && c.file == "" {
		dir, err := os.MkdirTemp("", "ringi-talk-")
		if err != nil {
			return nil, fmt.Errorf("make data folder: %w", err)
		}
		t.end = func() error { return os.RemoveAll(dir) }
		if c, err = demoSettings(defaultListen, dir); err != nil {
			return nil, err
		}
		demo = true
	}
	if t.by, err = person(); err != nil {
		return nil, err
	}
	if t.server, err = e.openServer(ctx, c); err != nil {
		return nil, err
	}
	t.demo = demo
	end := t.end
	t.end = func() error { return errors.Join(t.server.close(), end()) }
	where, err := t.store.Flag(ctx, flagDecide)
	if err != nil {
		return nil, fmt.Errorf("read flag: %w", err)
	}
	t.mayDecide = where != decideServer
	return t, t.choose(name)
}

// choose takes the agent of that name, or the only one.
func (t *talking) choose(name string) error {
	if name == "" && len(t.agents) == 1 {
		t.agent = t.agents[0]
		return nil
	}
	i := slices.IndexFunc(t.agents, func(a *agent) bool { return a.config.Name == name })
	if i >= 0 {
		t.agent = t.agents[i]
		return nil
	}
	var names []string
	for _, a := range t.agents {
		names = append(names, a.config.Name)
	}
	if name == "" {
		return usagef("which agent? Say --agent %s", strings.Join(names, " or --agent "))
	}
	return usagef("there is no agent %q: the configuration has %s", name, strings.Join(names, ", "))
}

// dialogue is the agent's run at a terminal.
func (t *talking) dialogue(e *env) *dialogue {
	d := &dialogue{e: e, out: e.out, engine: t.agent.engine, store: t.store, by: t.by, elsewhere: !t.mayDecide}
	if e.json {
		d.out = e.err
	}
	return d
}

// waits says where a run's requests are decided, for somebody who does not
// decide them here.
func (t *talking) waits(e *env, res *ringi.Result) error {
	var ids []string
	for _, r := range res.Pending {
		ids = append(ids, r.ID)
		if t.mayDecide {
			e.tell("%s waits: ringi approve %s --store sqlite:%s\n", r.Call.Tool, r.ID, t.storePath())
		} else {
			e.tell("%s waits: %s/a/%s\n", r.Call.Tool, t.config.base(), r.ID)
		}
	}
	return waitingf("run %s waits for a person: %s", res.RunID, strings.Join(ids, ", "))
}
