package gemini_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/provider/gemini"
)

// vendorsServer stands for the vendor: it asks for two refunds, and then says that
// it is done.
func vendorsServer() *httptest.Server {
	asked := 0
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		asked++
		if asked == 1 {
			fmt.Fprint(w, `data: {"candidates":[{"content":{"role":"model","parts":[`,
				`{"functionCall":{"name":"refund","args":{"order":"A17","cents":1250}},"thoughtSignature":"c2ln"},`,
				`{"functionCall":{"name":"refund","args":{"order":"B4","cents":900}}}]},"finishReason":"STOP"}]}`, "\n\n")
			return
		}
		fmt.Fprint(w, `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"A17 is refunded."}]},"finishReason":"STOP"}]}`, "\n\n")
	}))
}

// A model of Gemini. The calls that it makes wait for a person; they have no ids,
// and each keeps its own answer. For Google itself New("gemini-3-flash", nil) is
// enough.
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
	e, err := engine.New(engine.Config{Registry: registry, Model: gemini.New("gemini-3-flash", &gemini.Options{BaseURL: server.URL})})
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	res, err := e.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("Refund orders A17 and B4.")}})
	if err != nil {
		panic(err)
	}
	for _, request := range res.Pending {
		fmt.Println(res.Status, request.Call.Tool, request.Call.Input)
	}

	ana := ringi.Principal{ID: "ana", Name: "Ana", Kind: ringi.Person}
	for i, decision := range []ringi.Decision{res.Pending[0].Approve(ana), res.Pending[1].Deny(ana, "B4 was returned broken")} {
		if _, err := e.Decide(ctx, decision); err != nil {
			panic(fmt.Sprint(i, err))
		}
	}
	if res, err = e.Resume(ctx, res.RunID); err != nil {
		panic(err)
	}
	fmt.Println(res.Status, res.Text)
	// Output:
	// waiting_for_approval refund {"order":"A17","cents":1250}
	// waiting_for_approval refund {"order":"B4","cents":900}
	// refunded 1250 cents of A17
	// completed A17 is refunded.
}
