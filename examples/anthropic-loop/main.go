// Anthropic-loop: the tool runner of anthropic-sdk-go, with Ringi's gate in
// front of its tools. It ends where a person is asked, and goes on later; with
// -stay or -wait it waits instead.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"sync"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/toolrunner"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/sqlite"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("anthropic-loop", flag.ContinueOnError)
	db := flags.String("store", "agent.db", "the SQLite file of the requests")
	file := flags.String("conversation", "conversation.json", "the conversation's file")
	model := flags.String("model", anthropic.ModelClaudeHaiku4_5, "the model")
	stay := flags.Bool("stay", false, "ask at this terminal, in the runner")
	wait := flags.Bool("wait", false, "wait for the inbox, in this process")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if getenv("ANTHROPIC_API_KEY") == "" {
		_, err := fmt.Fprintln(out, "Set ANTHROPIC_API_KEY to talk to a model. The tests need none: go test .")
		return err
	}
	store, err := sqlite.Open(*db, sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	cfg := engine.Config{Registry: registry(shop()), Store: store, Agent: "anthropic-loop"}
	if *stay {
		cfg.OnApprovalRequired = ask(in, out)
	}
	e, err := engine.New(cfg)
	if err != nil {
		return err
	}
	gate, err := e.Gate(ctx, ringi.RunInfo{Thread: *file})
	if err != nil {
		return err
	}
	l := Loop{Client: anthropic.NewClient(), Tools: shop(), Gate: gate, Save: saveTo(*file),
		Params: anthropic.BetaMessageNewParams{Model: *model, MaxTokens: 4096}}
	waiting, err := l.converse(ctx, e, *file, flags.Arg(0), *stay, *wait)
	if err != nil {
		return err
	}
	for _, r := range waiting {
		fmt.Fprintf(out, "%s %s waits: ringi approve %s --store sqlite:%s\n", r.Call.Tool, r.Call.Input, r.ID, *db)
	}
	if len(waiting) > 0 {
		return nil
	}
	k, err := load(*file)
	if err != nil {
		return err
	}
	for _, b := range k.Messages[len(k.Messages)-1].Content {
		if b.OfText != nil {
			fmt.Fprintln(out, b.OfText.Text)
		}
	}
	return gate.Close(ctx) // the next message of the person opens a new one
}

// converse says text and goes on in one of the three ways.
func (l Loop) converse(ctx context.Context, e *engine.Engine, file, text string, stay, wait bool) ([]ringi.ApprovalRequest, error) {
	k, err := load(file)
	if err != nil {
		return nil, err
	}
	if text != "" && len(k.Calls) > 0 {
		return nil, errors.New("calls are open: go on without a message first")
	}
	if text != "" {
		k.Messages = append(k.Messages, anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(text)))
	}
	if stay && len(k.Calls) == 0 {
		return nil, l.Stay(ctx, k)
	}
	for {
		waiting, err := l.Run(ctx, k)
		if !wait || len(waiting) == 0 || err != nil {
			return waiting, err
		}
		for _, r := range waiting {
			if _, err := e.Wait(ctx, r.ID); err != nil {
				return nil, err
			}
		}
		if k, err = load(file); err != nil {
			return nil, err
		}
	}
}

// ask asks at the terminal: one request at a time, as the runner runs the calls
// of a turn side by side.
func ask(in io.Reader, out io.Writer) func(context.Context, ringi.ApprovalRequest) (ringi.Decision, error) {
	var mu sync.Mutex
	lines := bufio.NewReader(in)
	return ringi.YesNo(func(ctx context.Context, r ringi.ApprovalRequest) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%s %s\nAllow? [y/N] ", r.Call.Tool, r.Call.Input)
		answer, err := lines.ReadString('\n')
		return answer == "y\n", err
	})
}

type order struct {
	ID string `json:"id" jsonschema:"required"`
}

// shop stands for your own tools, as the SDK makes them.
func shop() []anthropic.BetaTool {
	return []anthropic.BetaTool{
		must(toolrunner.NewBetaToolFromJSONSchema("find_order", "Find an order.",
			func(ctx context.Context, o order) (anthropic.BetaToolResultBlockParamContentUnion, error) {
				return text("12.50, paid by card"), nil
			})),
		must(toolrunner.NewBetaToolFromJSONSchema("refund", "Refund an order.",
			func(ctx context.Context, o order) (anthropic.BetaToolResultBlockParamContentUnion, error) {
				return text("refunded " + o.ID), nil
			})),
	}
}

func text(s string) anthropic.BetaToolResultBlockParamContentUnion {
	return anthropic.BetaToolResultBlockParamContentUnion{OfText: &anthropic.BetaTextBlockParam{Text: s}}
}

func must(t anthropic.BetaTool, err error) anthropic.BetaTool {
	if err != nil {
		panic(err) // a fault in the lines above
	}
	return t
}

// registry tells Ringi of the runner's tools, and of what each does to the
// world. One that nobody named would ask as a write does.
func registry(tools []anthropic.BetaTool) *ringi.Registry {
	effects := map[string]ringi.Effect{"find_order": ringi.ReadOnly}
	reg := ringi.NewRegistry()
	for _, t := range tools {
		schema, err := json.Marshal(t.InputSchema())
		effect, ok := effects[t.Name()]
		if !ok {
			effect = ringi.NonIdempotentWrite
		}
		if err == nil {
			err = reg.AddExternal(ringi.Tool{Name: t.Name(), Description: t.Description(), InputSchema: schema, Effect: effect, AllowEdit: true})
		}
		if err != nil {
			panic(err) // a fault in the tools above
		}
	}
	return reg
}
