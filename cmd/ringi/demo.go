package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi/access"
)

const demoLong = `Start a server with a ready agent, and show a link to it: a back office whose
agent finds customers and orders by itself, and asks before it pays money back,
cancels, changes an address or sends mail. The agent is a script: no key, no
network, no model. Everything is in a folder that is removed at the end, unless
--data names one to keep.`

// demoConfig is the demo's configuration.
const demoConfig = `agents:
  - name: office
    zone: local
    model: {kind: demo}
    tools: {set: backoffice}
    initiator: may_approve
    expiry: 1h
`

// newDemoCommand makes ringi demo.
func newDemoCommand(e *env) *cobra.Command {
	var listen, data string
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Start a server with a ready agent, and approve in the browser",
		Long:    demoLong,
		Example: "  ringi demo\n  ringi demo --listen 127.0.0.1:8080 --data ~/ringi-demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.demo(cmd.Context(), listen, data)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", defaultListen, "where to listen; port 0 takes a free one")
	cmd.Flags().StringVar(&data, "data", "", "a folder to keep what happens (default: a new one, removed at the end)")
	return cmd
}

func (e *env) demo(ctx context.Context, listen, data string) (err error) {
	if e.store != "" || e.space != "default" {
		return usagef("demo keeps its store in its data folder, and works in the default space: say --data")
	}
	if data == "" {
		if data, err = os.MkdirTemp("", "ringi-demo-"); err != nil {
			return fmt.Errorf("make data folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	}
	if data, err = filepath.Abs(data); err != nil {
		return err
	}
	c, err := demoSettings(listen, data)
	if err != nil {
		return err
	}
	s, err := e.openServer(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w: say --listen 127.0.0.1:0 for a free port", err)
	}
	defer listener.Close()
	if _, err := s.people.firstUser(ctx, "You"); err != nil {
		return fmt.Errorf("make first login: %w", err)
	}
	s.demo = true
	return s.work(ctx, listener, func(url string) {
		e.printf("The demo runs at %s\n", url)
		e.offerLogin(ctx, s, url, access.LocalID(owner))
		e.say("Its agent is a script, its data are made up. Ctrl+C ends it.\n")
	})
}

// demoSettings is the configuration of a demo: its own, and nothing of the
// machine's.
func demoSettings(listen, data string) (*config, error) {
	c := &config{}
	if err := c.decode([]byte(demoConfig)); err != nil {
		return nil, fmt.Errorf("read the demo's configuration: %w", err)
	}
	c.Listen, c.Data, c.KeyFile = listen, filepath.Join(data, "server"), filepath.Join(data, "key")
	c.Log.Level = "warn"
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("check configuration: %w", err)
	}
	return c, nil
}
