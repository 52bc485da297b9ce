package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/provider/openai"
)

// vendorsServer stands for the vendor: it asks for a refund, and then says that
// it is done.
func vendorsServer() *httptest.Server {
	asked := 0
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		asked++
		if asked == 1 {
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"refund","arguments":"{\"order\":\"A17\",\"cents\":1250}"}}]},"finish_reason":null}]}`, "\n\n",
				`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "\n\n", "data: [DONE]\n\n")
			return
		}
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Refunded."},"finish_reason":"stop"}]}`, "\n\n", "data: [DONE]\n\n")
	}))
}

// A model of a server that speaks Chat Completions. The call that it makes waits
// for a person. For OpenAI itself New("gpt-5-mini", nil) is enough.
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
	e, err := engine.New(engine.Config{Registry: registry, Model: openai.New("llama3.3", &openai.Options{BaseURL: server.URL + "/v1"})})
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
