package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/ringi-dev/ringi"
)

// agentModel is the support agent of ringi try: a script in a model's place.
// What it says next follows from the messages that it is sent, so it goes on
// in another process as if it had never stopped.
type agentModel struct{}

const (
	customerText = "The lamp of my order A-1017 came broken. I want my money back."
	agentSystem  = "You are the support agent of a small shop. Look an order up before you refund it."
)

// Generate yields one turn.
func (agentModel) Generate(_ context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		yield(ringi.ModelEvent{Turn: turnAfter(req.Messages)}, nil)
	}
}

func turnAfter(msgs []ringi.Message) *ringi.ModelTurn {
	last := msgs[len(msgs)-1]
	if len(last.Results) == 0 {
		return call("I look at the order first.", "look_up_order", `{"order_id":"A-1017"}`)
	}
	result := last.Results[0]
	if result.Tool == "look_up_order" {
		var o order
		if result.Outcome != ringi.OutcomeOK || json.Unmarshal([]byte(result.Output), &o) != nil {
			return &ringi.ModelTurn{Text: "I cannot find your order, so I pass you on to a colleague."}
		}
		return call(fmt.Sprintf("It was a %s for %s EUR. I pay all of it back.", o.Item, euros(o.Paid)), "refund",
			fmt.Sprintf(`{"order_id":%q,"amount_cents":%d,"why":"arrived broken"}`, o.ID, o.Paid))
	}
	return &ringi.ModelTurn{Text: afterRefund(result)}
}

func call(text, tool, input string) *ringi.ModelTurn {
	return &ringi.ModelTurn{Text: text, Finish: ringi.FinishCalls, Calls: []ringi.ToolCall{{ModelID: "call_" + tool, Tool: tool, Input: ringi.Input(input)}}}
}

// afterRefund is what the agent tells the customer, by what became of its
// call.
func afterRefund(r ringi.ToolResult) string {
	switch r.Outcome {
	case ringi.OutcomeOK:
		var out refundOut
		if json.Unmarshal([]byte(r.Output), &out) != nil {
			return "Your refund is on its way."
		}
		if out.Left > 0 {
			return fmt.Sprintf("A colleague looked at it: %s EUR are on their way to your card (%s), and the lamp is yours to keep.", euros(out.Amount), out.RefundID)
		}
		return fmt.Sprintf("Done: %s EUR are on their way to your card (%s).", euros(out.Amount), out.RefundID)
	case ringi.OutcomeDenied:
		if _, reason, ok := strings.Cut(r.Error, "Reason: "); ok {
			return "I am sorry, I may not refund this: " + reason
		}
		return "I am sorry, I may not refund this. A colleague will write to you."
	case ringi.OutcomeExpired:
		return "Nobody has looked at your refund yet. I ask again tomorrow."
	}
	return "Your refund did not go through: " + r.Text()
}
