package engine_test

import (
	"context"
	"fmt"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// Before each step tools may be narrowed and approval tightened: here the first
// step only reads, and behind it every call asks.
func ExamplePrepareStep() {
	tools := ringi.NewRegistry()
	var ran ringitest.Effects
	ran.Tool(tools, ringi.Tool{Name: "read_page", Effect: ringi.ReadOnly}, "a page")
	ran.Tool(tools, ringi.Tool{Name: "note"}, "noted")
	model := ringitest.Script(
		ringitest.Calls(ringitest.Call("read_page", `{}`), ringitest.Call("note", `{"text":"early"}`)),
		ringitest.Calls(ringitest.Call("note", `{"text":"late"}`)))
	e, err := engine.New(engine.Config{Registry: tools, Model: model,
		PrepareStep: func(ctx context.Context, info engine.StepInfo) (engine.StepPlan, error) {
			if info.Step == 1 {
				return engine.StepPlan{Tools: []string{"read_page"}}, nil
			}
			return engine.StepPlan{Approval: ringi.Approval{Func: func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
				return ringi.Verdict{Status: ringi.UserApproval, Reason: "the page is not trusted"}, nil
			}}}, nil
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Read and note.")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, req := range model.Requests() {
		fmt.Println("step", i+1, "offers", ringi.Offer{Tools: req.Tools}.Names())
	}
	for _, r := range res.Results {
		fmt.Println(r.Tool, "-", r.Text())
	}
	fmt.Println(res.Status, res.Pending[0].Call.Input, "-", res.Pending[0].Verdict.Reason)
	// Output:
	// step 1 offers [read_page]
	// step 2 offers [read_page note]
	// read_page - a page
	// note - not offered in this step, not executed
	// waiting_for_approval {"text":"late"} - the page is not trusted
}
