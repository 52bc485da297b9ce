package engine_test

import (
	"context"
	"fmt"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// A run: the model asks for a tool, which reads and so runs by itself, and
// answers.
func ExampleEngine_Run() {
	type In struct {
		ID string `json:"id"`
	}
	tools := ringi.NewRegistry()
	ringi.MustAddTool(tools, ringi.Tool{Name: "find_order", Effect: ringi.ReadOnly}, func(ctx context.Context, in In) (string, error) {
		return in.ID + " is on its way", nil
	})
	e, err := engine.New(engine.Config{Registry: tools, Model: ringitest.Script(
		ringitest.Calls(ringitest.Call("find_order", `{"id":"A-1017"}`)),
		ringitest.Text("It will arrive soon."))})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Where is A-1017?")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Status, "after", res.Steps, "steps:", res.Text)
	for _, r := range res.Results {
		fmt.Println(r.Tool, "-", r.Outcome, "-", r.Text())
	}
	// Output:
	// completed after 2 steps: It will arrive soon.
	// find_order - ok - A-1017 is on its way
}
