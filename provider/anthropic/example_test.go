package anthropic_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/provider/anthropic"
)

// vendorsServer stands for the vendor: it asks for a refund, and then says that
// it is done.
func vendorsServer() *httptest.Server {
	asked := 0
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		asked++
		if asked == 1 {
			fmt.Fprint(w, `data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"refund","input":{}}}`, "\n\n",
				`data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"order\":\"A17\",\"cents\":1250}"}}`, "\n\n",
				`data: {"type":"content_block_stop","index":0}`, "\n\n",
				`data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, "\n\n", `data: {"type":"message_stop"}`, "\n\n")
			return
		}
		fmt.Fprint(w, `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Refunded."}}`, "\n\n",
			`data: {"type":"content_block_stop","index":0}`, "\n\n",
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, "\n\n", `data: {"type":"message_stop"}`, "\n\n")
	}))
}

// A model of a server that speaks the Messages API. The call that it makes waits
// for a person. For Anthropic itself New("claude-sonnet-5-5", nil) is enough.
func ExampleNew() {
	server := vendorsServer()
	defer server.Close()

	type Refund struct {
		Order string `json:"order"`
		Cents int    `json:"cents"`
	}
	registry := ringi.NewRegistry()
	err := ringi.AddTool(registry, ringi.Tool{Name: "refund", Effect: ringi.NonIdempotentWrite}, func(_ context.Context, in Refund) (string, error) {
		fmt.Printf("refunded %d cents of %s\n", in.Cents, in.Order)
		return "ok", nil
	})
	if err != nil {
		panic(err)
	}
	e, err := engine.New(engine.Config{Registry: registry, Model: anthropic.New("claude-sonnet-5-5", &anthropic.Options{
		BaseURL: server.URL,
		Cache:   anthropic.Cache1h, // people take their time
	})})
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	res, err := e.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("Refund order A17.")}})
	if err != nil {
		panic(err)
	}
	request := res.Pending[0]
	fmt.Println(res.Status, request.Call.Tool, request.Call.Input)

	ana := ringi.Principal{ID: "ana", Name: "Ana", Kind: ringi.Person}
	if _, err := e.Decide(ctx, request.Approve(ana)); err != nil {
		panic(err)
	}
	if res, err = e.Resume(ctx, res.RunID); err != nil {
		panic(err)
	}
	fmt.Println(res.Status, res.Text)
	// Output:
	// waiting_for_approval refund {"order":"A17","cents":1250}
	// refunded 1250 cents of A17
	// completed Refunded.
}
