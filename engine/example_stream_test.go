package engine_test

import (
	"context"
	"fmt"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// The same run as events. What is in the log has a number and comes after its
// commit; deltas have none.
func ExampleEngine_Stream() {
	tools := ringi.NewRegistry()
	ringi.MustAddTool(tools, ringi.Tool{Name: "send_mail", Effect: ringi.NonIdempotentWrite}, func(ctx context.Context, in struct{}) (string, error) {
		return "sent", nil
	})
	e, err := engine.New(engine.Config{Registry: tools, Model: ringitest.Script(
		ringitest.Deltas("I send ", "it."), ringitest.Calls(ringitest.Call("send_mail", `{}`)))})
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range e.Stream(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Send it.")}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch b := ev.Body.(type) {
		case *ringi.Delta:
			fmt.Printf("- %s %q\n", ev.Kind, b.Text)
		case *ringi.RunWaiting:
			fmt.Println("-", ev.Kind, b.Status, len(b.Pending))
		default:
			fmt.Println(ev.Seq, ev.Kind)
		}
	}
	// Output:
	// 1 run_started
	// 0 step_started
	// - text_delta "I send "
	// - text_delta "it."
	// 2 model_responded
	// 3 approval_requested
	// - run_waiting waiting_for_approval 1
}
