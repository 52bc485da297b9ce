package engine_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/store/memory"
)

// A call waits for a person. Another process, which has the store and nothing
// else, records the decision; the first goes on.
func ExampleEngine_Decide() {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	tools := ringi.NewRegistry()
	ringi.MustAddTool(tools, ringi.Tool{Name: "refund", Effect: ringi.NonIdempotentWrite}, func(ctx context.Context, in struct {
		Cents int `json:"cents"`
	}) (string, error) {
		return fmt.Sprint("refunded ", in.Cents), nil
	})
	agent, err := engine.New(engine.Config{Registry: tools, Store: store, Model: ringitest.Script(
		ringitest.Calls(ringitest.Call("refund", `{"cents":1250}`)),
		ringitest.Text("Your money is on its way."))})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := agent.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("Refund me.")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := res.Pending[0]
	fmt.Println(res.Status, "-", request.Call.Tool, request.Call.Input, "-", request.Verdict.Reason)

	inbox, err := engine.New(engine.Config{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	ana := ringi.Principal{ID: "ana", Name: "Ana", Kind: ringi.Person}
	settled, err := inbox.Decide(ctx, request.Approve(ana))
	fmt.Println(settled.Request.State, "-", settled.Remaining, "remain", err)
	_, err = inbox.Decide(ctx, request.Deny(ana, "wait"))
	first, ok := errors.AsType[*ringi.DecidedError](err)
	fmt.Println("too late:", ok, first.Decision.By.Name, "was first")

	res, err = agent.Resume(ctx, res.RunID)
	fmt.Println(res.Status, "-", res.Results[0].Output, "-", res.Text, err)
	// Output:
	// waiting_for_approval - refund {"cents":1250} - effect is a write (non_idempotent_write)
	// approved - 0 remain <nil>
	// too late: true Ana was first
	// completed - refunded 1250 - Your money is on its way. <nil>
}
