package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/memory"
)

// A loop that is not ours asks before each call. What policy lets run runs at
// once; what a person must allow comes back as a WaitingError, and later runs
// once, with the bytes that were approved.
func ExampleGate_Do() {
	ctx := context.Background()
	tools := ringi.NewRegistry()
	for _, t := range []ringi.Tool{
		{Name: "look_up", Effect: ringi.ReadOnly},
		{Name: "refund", Effect: ringi.NonIdempotentWrite},
	} {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
		if err := tools.AddExternal(t); err != nil { // we run it, not Ringi
			fmt.Println(err)
			return
		}
	}
	store := memory.New(memory.Options{})
	guard, err := engine.New(engine.Config{Registry: tools, Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	gate, err := guard.Gate(ctx, ringi.RunInfo{Thread: "chat-7"}) // the same conversation finds the same gate
	if err != nil {
		fmt.Println(err)
		return
	}
	runMyTool := func(ctx context.Context, s engine.Started) (any, error) {
		return fmt.Sprintf("%s ran with %s", s.Call().Tool, s.Input()), nil
	}

	// In the loop: the calls of a model's turn.
	var waiting ringi.ApprovalRequest
	for _, call := range []ringi.ToolCall{
		{ModelID: "call_1", Tool: "look_up", Input: `{"order":"A-1"}`},
		{ModelID: "call_2", Tool: "refund", Input: `{"order":"A-1","cents":1250}`},
	} {
		result, err := gate.Do(ctx, call, runMyTool)
		if w, ok := errors.AsType[*ringi.WaitingError](err); ok {
			waiting = w.Request // save the conversation, and come back
			fmt.Println("waits:", w.Request.Call.Tool, w.Request.Call.Input)
			continue
		}
		fmt.Println(result.Text(), err)
	}

	// Elsewhere: a person decides. On the command line, in any process.
	ana := ringi.Principal{ID: "ana", Name: "Ana", Kind: ringi.Person}
	if _, err := guard.Decide(ctx, waiting.Approve(ana)); err != nil {
		fmt.Println(err)
	}

	// Later, in this or another process: the same call again.
	for range 2 {
		result, err := gate.Do(ctx, waiting.Call, runMyTool)
		fmt.Println(result.Text(), "-", result.Approval.By, err)
	}
	// Output:
	// look_up ran with {"order":"A-1"} <nil>
	// waits: refund {"order":"A-1","cents":1250}
	// refund ran with {"order":"A-1","cents":1250} - ana <nil>
	// refund ran with {"order":"A-1","cents":1250} - ana <nil>
}

// The three sentences apart, for a loop that runs its tools elsewhere.
func ExampleGate_Judge() {
	ctx := context.Background()
	tools := ringi.NewRegistry()
	err := tools.AddExternal(ringi.Tool{Name: "deploy", Effect: ringi.NonIdempotentWrite, InputSchema: json.RawMessage(`{"type":"object"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := engine.New(engine.Config{Registry: tools})
	if err != nil {
		fmt.Println(err)
		return
	}
	gate, err := guard.Gate(ctx, ringi.RunInfo{})
	if err != nil {
		fmt.Println(err)
		return
	}

	judged, err := gate.Judge(ctx, ringi.ToolCall{Tool: "deploy", Input: `{"version":"1.4"}`})
	fmt.Println("may start:", judged.MayStart(), "- asks a person:", judged.Request != nil, err)

	ana := ringi.Principal{ID: "ana", Name: "Ana", Kind: ringi.Person}
	if _, err := guard.Decide(ctx, judged.Request.Approve(ana)); err != nil {
		fmt.Println(err)
	}
	request, err := guard.Wait(ctx, judged.Request.ID)
	fmt.Println(request.State, err)

	started, err := gate.Start(ctx, judged.Call.ID)
	fmt.Println("run it now, with", string(started.Input()), err)
	_, err = gate.Start(ctx, judged.Call.ID)
	fmt.Println("twice:", errors.Is(err, ringi.ErrBusy))

	err = gate.Finish(ctx, started, ringi.ToolResult{Output: "deployed"})
	fmt.Println(err, gate.Close(ctx))
	// Output:
	// may start: false - asks a person: true <nil>
	// approved <nil>
	// run it now, with {"version":"1.4"} <nil>
	// twice: true
	// <nil> <nil>
}
