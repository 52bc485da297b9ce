package ringi_test

import (
	"context"
	"fmt"

	"github.com/ringi-dev/ringi"
)

// A tool is data and a typed function. What a model writes is checked against
// the type before anybody is asked.
func ExampleAddTool() {
	type In struct {
		OrderID string `json:"order_id" jsonschema:"the order, such as A-1017"`
		Amount  int64  `json:"amount" jsonschema:"cents"`
	}
	type Out struct {
		RefundID string `json:"refund_id"`
	}
	refund := func(ctx context.Context, in In) (Out, error) {
		return Out{RefundID: "R-" + in.OrderID}, nil
	}

	registry := ringi.NewRegistry()
	tool := ringi.Tool{Name: "refund", Description: "Refund an order.", Effect: ringi.NonIdempotentWrite}
	if err := ringi.AddTool(registry, tool, refund); err != nil {
		fmt.Println(err)
		return
	}
	offered, _ := registry.Offered("refund")
	fmt.Println(string(offered.InputSchema))

	for _, input := range []ringi.Input{`{"order_id":"A-1017","amount":1250}`, `{"order_id":"A-1017","amount":1e3}`} {
		checked, err := registry.CheckInput("refund", input, ringi.InputLimits{})
		if err != nil {
			fmt.Println("the model is told:", err)
			continue
		}
		fmt.Println("would run with:", checked.Input)
	}
	// Output:
	// {"type":"object","properties":{"order_id":{"type":"string","description":"the order, such as A-1017"},"amount":{"type":"integer","description":"cents"}},"required":["order_id","amount"],"additionalProperties":false}
	// would run with: {"order_id":"A-1017","amount":1250}
	// the model is told: the value at "/amount" does not fit: it must be a whole number of at most 64 bits, written without point or exponent
}
