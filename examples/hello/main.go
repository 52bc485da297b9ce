// Hello: a tool that reads and runs, one that writes and asks. ZONE=external_global refuses both.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

type Order struct {
	ID string `json:"id"`
}

func find(ctx context.Context, o Order) (string, error)   { return "12.50, paid by card", nil } // your code
func refund(ctx context.Context, o Order) (string, error) { return "refunded " + o.ID, nil }    // your code

func main() {
	if err := run(os.Stdin, os.Stdout, ringi.TrustZone(os.Getenv("ZONE"))); err != nil {
		log.Fatal(err)
	}
}

func run(in io.Reader, out io.Writer, zone ringi.TrustZone) error {
	tools := ringi.NewRegistry()
	ringi.MustAddTool(tools, ringi.Tool{Name: "find_order", Description: "Find an order.", Effect: ringi.ReadOnly}, find)
	ringi.MustAddTool(tools, ringi.Tool{Name: "refund", Description: "Refund it.", Effect: ringi.NonIdempotentWrite}, refund)
	e, err := engine.New(engine.Config{Registry: tools, Zone: zone,
		Model: ringitest.Script( // plays a model, without key and network
			ringitest.Calls(ringitest.Call("find_order", `{"id":"A-1017"}`), ringitest.Call("refund", `{"id":"A-1017"}`)),
			ringitest.Text("That is all.")),
		OnApprovalRequired: ringi.YesNo(func(ctx context.Context, r ringi.ApprovalRequest) (bool, error) {
			fmt.Fprintf(out, "%s %s\nAllow? [y/N] ", r.Call.Tool, r.Call.Input)
			answer, err := bufio.NewReader(in).ReadString('\n')
			return answer == "y\n", err
		})})
	if err != nil {
		return err
	}
	res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Refund order A-1017.")}})
	if err != nil {
		return err
	}
	for _, r := range res.Results {
		fmt.Fprintf(out, "%s: %s\n", r.Tool, r.Text())
	}
	_, err = fmt.Fprintln(out, res.Text)
	return err
}
