// Eino-loop: eino's agent, with Ringi's gate in front of its tools as a tool
// middleware. It pauses by eino's own interrupt, and goes on later.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/schema"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/sqlite"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Getenv, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	flags := flag.NewFlagSet("eino-loop", flag.ContinueOnError)
	db := flags.String("store", "agent.db", "the SQLite file of the requests")
	thread := flags.String("conversation", "conversation-1", "the conversation")
	name := flags.String("model", "gpt-5-mini", "the model")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if getenv("OPENAI_API_KEY") == "" {
		_, err := fmt.Fprintln(out, "Set OPENAI_API_KEY to talk to a model. The tests need none: go test .")
		return err
	}
	store, err := sqlite.Open(*db, sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	e, err := engine.New(engine.Config{Registry: registry(), Store: store, Agent: "eino-loop"})
	if err != nil {
		return err
	}
	gate, err := e.Gate(ctx, ringi.RunInfo{Thread: *thread})
	if err != nil {
		return err
	}
	m, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{Model: *name, APIKey: getenv("OPENAI_API_KEY"), BaseURL: getenv("OPENAI_BASE_URL")})
	if err != nil {
		return err
	}
	checkpoints := folder(".")
	a, err := newAgent(ctx, m, shop(), func(context.Context) (*engine.Gate, error) { return gate, nil }, checkpoints)
	if err != nil {
		return err
	}
	var said []*schema.Message
	_, paused, err := checkpoints.Get(ctx, *thread)
	switch {
	case err != nil:
		return err
	case paused && flags.NArg() > 0:
		return errors.New("calls are open: go on without a message first")
	case !paused && flags.NArg() == 0:
		return errors.New("nothing is paused: say something")
	case !paused:
		said = append(said, schema.UserMessage(flags.Arg(0)))
	}
	answer, waiting, err := a.Run(ctx, *thread, said)
	if err != nil {
		return err
	}
	for _, id := range waiting {
		fmt.Fprintf(out, "waits: ringi approve %s --store sqlite:%s\n", id, *db)
	}
	if len(waiting) > 0 {
		return nil
	}
	fmt.Fprintln(out, answer)
	if err := checkpoints.Delete(ctx, *thread); err != nil {
		return err
	}
	return gate.Close(ctx) // the next message of the person opens a new one
}

type order struct {
	ID string `json:"id" jsonschema:"required"`
}

// shop stands for your own tools, as eino makes them.
func shop() []tool.BaseTool {
	return []tool.BaseTool{
		must(utils.InferTool("find_order", "Find an order.", func(ctx context.Context, o order) (string, error) { return "12.50, paid by card", nil })),
		must(utils.InferTool("refund", "Refund an order.", func(ctx context.Context, o order) (string, error) { return "refunded " + o.ID, nil })),
	}
}

func must(t tool.BaseTool, err error) tool.BaseTool {
	if err != nil {
		panic(err) // a fault in the lines above
	}
	return t
}

// registry tells Ringi of the same tools, and of what each does to the world.
func registry() *ringi.Registry {
	reg := ringi.NewRegistry()
	for _, t := range []ringi.Tool{
		{Name: "find_order", Description: "Find an order.", Effect: ringi.ReadOnly},
		{Name: "refund", Description: "Refund an order.", Effect: ringi.NonIdempotentWrite, AllowEdit: true},
	} {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`)
		if err := reg.AddExternal(t); err != nil {
			panic(err) // a fault in the lines above
		}
	}
	return reg
}
