package ringitest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// tb stands for the t of a test.
var tb testing.TB = exampleTB{}

type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                  {}
func (exampleTB) Cleanup(func())           {}
func (exampleTB) Context() context.Context { return context.Background() }

// The verdict on one call, without a run.
func ExampleJudge() {
	reg := ringi.NewRegistry()
	var ran ringitest.Effects
	ran.Tool(reg, ringi.Tool{Name: "read_mail", Effect: ringi.ReadOnly}, "")
	ran.Tool(reg, ringi.Tool{Name: "send_mail", Effect: ringi.NonIdempotentWrite}, "")
	ran.Tool(reg, ringi.Tool{Name: "delete_mail", Effect: ringi.NonIdempotentWrite}, "")
	cfg := engine.Config{Registry: reg, Approval: ringi.Approval{Tools: map[string]ringi.ToolApproval{
		"delete_mail": {Status: ringi.Denied, Reason: "mail is kept"},
	}}}
	for _, tool := range []string{"read_mail", "send_mail", "delete_mail", "print_mail"} {
		fmt.Println(tool, "-", ringitest.Judge(tb, cfg, tool, `{}`, nil))
	}
	// Output:
	// read_mail - not-applicable (rule)
	// send_mail - user-approval (rule.effect): effect is a write (non_idempotent_write)
	// delete_mail - denied (approval.tool.status): mail is kept
	// print_mail - denied (offer): unknown_tool
}

// A model that answers by script, and what it was told.
func ExampleScript() {
	reg := ringi.NewRegistry()
	var ran ringitest.Effects
	ran.Tool(reg, ringi.Tool{Name: "weather", Effect: ringi.ReadOnly}, "rain")
	model := ringitest.Script(
		ringitest.Calls(ringitest.Call("weather", `{"city":"Leipzig"}`)),
		ringitest.Text("Take an umbrella."))
	e := ringitest.Engine(tb, engine.Config{Registry: reg, Model: model})
	res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Umbrella?")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(model.LastResults()[0].Text())
	fmt.Println(res.Text, ran.Calls()[0].Input)
	// Output:
	// rain
	// Take an umbrella. {"city":"Leipzig"}
}

// A run waits, the process ends, another one decides and goes on.
func ExampleRestart() {
	reg := ringi.NewRegistry()
	var ran ringitest.Effects
	ran.Tool(reg, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite}, "paid")
	e := ringitest.Engine(tb, engine.Config{Registry: reg, Model: ringitest.Script(
		ringitest.Calls(ringitest.Call("pay", `{"to":"bob","cents":500}`)),
		ringitest.Text("Bob has his money."))})
	res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Pay Bob.")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Status, "- pay ran", ran.Of("pay"), "times")

	e = ringitest.Restart(tb, e)
	res = ringitest.Settle(tb, e, res, ringitest.Approve(ringitest.Ana))
	fmt.Println(res.Status, "- pay ran", ran.Of("pay"), "times:", res.Text)
	// Output:
	// waiting_for_approval - pay ran 0 times
	// completed - pay ran 1 times: Bob has his money.
}
