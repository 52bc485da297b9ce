package main

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"github.com/ringi-dev/ringi/engine"
)

// Agent is eino's own agent in a graph that can be resumed.
type Agent struct {
	graph compose.Runnable[[]*schema.Message, *schema.Message]
}

// newAgent compiles eino's agent with a checkpoint store, and the gate in front
// of its tools.
func newAgent(ctx context.Context, m model.ToolCallingChatModel, tools []tool.BaseTool, gate func(context.Context) (*engine.Gate, error), checkpoints compose.CheckPointStore) (*Agent, error) {
	a, err := react.NewAgent(ctx, &react.AgentConfig{ToolCallingModel: m, ToolsConfig: compose.ToolsNodeConfig{
		Tools: tools, ToolCallMiddlewares: []compose.ToolMiddleware{approvals(gate)}}})
	if err != nil {
		return nil, err
	}
	inner, opts := a.ExportGraph()
	outer := compose.NewGraph[[]*schema.Message, *schema.Message]()
	if err := errors.Join(
		outer.AddGraphNode("agent", inner, opts...),
		outer.AddEdge(compose.START, "agent"),
		outer.AddEdge("agent", compose.END),
	); err != nil {
		return nil, err
	}
	graph, err := outer.Compile(ctx, compose.WithCheckPointStore(checkpoints))
	if err != nil {
		return nil, err
	}
	return &Agent{graph: graph}, nil
}

// Run runs a conversation until the model is done, or people are asked: it
// returns the ids of those requests. With a checkpoint it goes on from there,
// and messages are ignored.
func (a *Agent) Run(ctx context.Context, checkpoint string, messages []*schema.Message) (answer string, waiting []string, err error) {
	msg, err := a.graph.Invoke(ctx, messages, compose.WithCheckPointID(checkpoint))
	info, paused := compose.ExtractInterruptInfo(err)
	switch {
	case paused:
		for _, c := range info.InterruptContexts {
			if id, ok := c.Info.(string); ok && c.IsRootCause {
				waiting = append(waiting, id)
			}
		}
		return "", waiting, nil
	case err != nil:
		return "", nil, err
	}
	return msg.Content, nil, nil
}

// folder keeps checkpoints as files. eino has the interface, and no store.
type folder string

func (f folder) Get(_ context.Context, id string) ([]byte, bool, error) {
	b, err := os.ReadFile(f.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return b, err == nil, err
}

// Set writes a checkpoint in one step: a crash leaves the old one.
func (f folder) Set(_ context.Context, id string, b []byte) error {
	t, err := os.CreateTemp(string(f), "new-*")
	if err != nil {
		return err
	}
	_, err = t.Write(b)
	err = errors.Join(err, t.Sync(), t.Close())
	if err == nil {
		err = os.Rename(t.Name(), f.file(id))
	}
	return err
}

func (f folder) Delete(_ context.Context, id string) error {
	err := os.Remove(f.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f folder) file(id string) string {
	return filepath.Join(string(f), url.PathEscape(id)+".checkpoint")
}
