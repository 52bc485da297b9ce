// Openai-loop: a hand-written loop over the openai-go SDK, with Ringi's gate in
// front of its tools. It ends where a person is asked, and goes on later.
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

	"github.com/openai/openai-go/v3"

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
	flags := flag.NewFlagSet("openai-loop", flag.ContinueOnError)
	db := flags.String("store", "agent.db", "the SQLite file of the requests")
	file := flags.String("conversation", "conversation.json", "the conversation's file")
	model := flags.String("model", "gpt-5-mini", "the model")
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
	e, err := engine.New(engine.Config{Registry: registry(), Store: store, Agent: "openai-loop"})
	if err != nil {
		return err
	}
	gate, err := e.Gate(ctx, ringi.RunInfo{Thread: *file})
	if err != nil {
		return err
	}
	k, err := load(*file)
	if err != nil {
		return err
	}
	if flags.NArg() > 0 && len(k.Calls) > 0 {
		return errors.New("calls are open: go on without a message first")
	}
	if flags.NArg() > 0 {
		k.Messages = append(k.Messages, openai.UserMessage(flags.Arg(0)))
	}
	l := Loop{Client: openai.NewClient(), Params: params(*model), Gate: gate, Tool: shop, Save: saveTo(*file)}
	waiting, err := l.Run(ctx, k)
	if err != nil {
		return err
	}
	for _, r := range waiting {
		fmt.Fprintf(out, "%s %s waits: ringi approve %s --store sqlite:%s\n", r.Call.Tool, r.Call.Input, r.ID, *db)
	}
	if len(waiting) > 0 {
		return nil
	}
	if k, err = load(*file); err != nil {
		return err
	}
	fmt.Fprintln(out, k.Messages[len(k.Messages)-1].OfAssistant.Content.OfString.Value)
	return gate.Close(ctx) // the next message of the person opens a new one
}

// registry tells Ringi of the tools that this program runs itself.
func registry() *ringi.Registry {
	reg := ringi.NewRegistry()
	for _, t := range []ringi.Tool{
		{Name: "find_order", Description: "Find an order.", Effect: ringi.ReadOnly},
		{Name: "refund", Description: "Refund an order.", Effect: ringi.NonIdempotentWrite, AllowEdit: true},
	} {
		t.InputSchema = json.RawMessage(order)
		if err := reg.AddExternal(t); err != nil {
			panic(err) // a fault in the lines above
		}
	}
	return reg
}

const order = `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`

// params are the same tools, as the model is told of them.
func params(model string) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: model}
	for _, t := range registry().Tools() {
		var schema openai.FunctionParameters
		if err := json.Unmarshal(t.InputSchema, &schema); err != nil {
			panic(err) // a fault in the line above
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: t.Name, Description: openai.String(t.Description), Parameters: schema}))
	}
	return p
}

// shop stands for your own tools. Hand s.Key() on where yours take an
// idempotency key.
func shop(ctx context.Context, s engine.Started) (any, error) {
	var in struct{ ID string }
	if err := json.Unmarshal(s.Input(), &in); err != nil {
		return nil, ringi.NotDone(err)
	}
	switch s.Call().Tool {
	case "find_order":
		return "12.50, paid by card", nil
	case "refund":
		return "refunded " + in.ID, nil
	}
	return nil, ringi.NotDone(errors.New("no such tool"))
}
