package engine_test

import (
	"context"
	"fmt"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// Stop conditions end a run, completed, after a step for which one holds.
func ExampleStopWhen() {
	tools := ringi.NewRegistry()
	var ran ringitest.Effects
	ran.Tool(tools, ringi.Tool{Name: "search", Effect: ringi.ReadOnly}, "nothing")
	ran.Tool(tools, ringi.Tool{Name: "answer", Effect: ringi.ReadOnly}, "noted")
	expensive := func(info engine.StepInfo) bool { return info.Usage.OutputTokens > 1000 }
	e, err := engine.New(engine.Config{Registry: tools,
		StopWhen: []engine.StopWhen{engine.StopOnTool("answer"), engine.StopAfterSteps(5), expensive},
		Model: ringitest.Script(
			ringitest.Calls(ringitest.Call("search", `{}`)),
			ringitest.Calls(ringitest.Call("answer", `{"text":"42"}`)),
			ringitest.Text("never asked for"))})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("What is it?")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Status, res.Reason, "after", res.Steps, "steps -", res.Detail)
	fmt.Println(ran.Calls()[1].Input)
	// Output:
	// completed completed after 2 steps - a stop condition holds
	// {"text":"42"}
}
