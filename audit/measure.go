package audit

import "github.com/ringi-dev/ringi"

// MessageBytes returns how many bytes the messages that a run added would take
// as compact JSON: the messages that it began with, each answer of the model
// with its calls, and after it one message with the results of those calls. It
// measures what a log costs beyond its messages.
func MessageBytes(events []ringi.Event) int {
	var messages []ringi.Message
	for _, e := range events {
		switch v := e.Body.(type) {
		case *ringi.RunStarted:
			messages = append(messages, v.Messages...)
		case *ringi.ModelResponded:
			messages = append(messages, answer(v.Text, v.Opaque, v.Calls)...)
		case *ringi.CallJudged:
			messages = append(messages, answer("", "", []ringi.JudgedCall{v.Call})...)
		case *ringi.ToolFinished:
			messages = withResults(messages, v.Results)
		}
	}
	return size(messages)
}

// answer returns a model's message, and the results of the calls in it that
// were refused at once.
func answer(text, opaque string, calls []ringi.JudgedCall) []ringi.Message {
	said := ringi.Message{Role: ringi.RoleAssistant, Text: text, Opaque: opaque}
	var refused []ringi.FinishedCall
	for _, c := range calls {
		said.Calls = append(said.Calls, ringi.ToolCall{ID: c.ID, ModelID: c.ModelID, Tool: c.Tool, Input: c.Input, Raw: c.Raw})
		if c.Code != "" {
			refused = append(refused, ringi.FinishedCall{Call: c.ID, Code: c.Code, Error: c.Text})
		}
	}
	return withResults([]ringi.Message{said}, refused)
}

// withResults adds results to the message that answers the newest calls.
func withResults(messages []ringi.Message, finished []ringi.FinishedCall) []ringi.Message {
	if len(finished) == 0 {
		return messages
	}
	if n := len(messages); n == 0 || messages[n-1].Role != ringi.RoleTool {
		messages = append(messages, ringi.Message{Role: ringi.RoleTool})
	}
	results := &messages[len(messages)-1].Results
	for _, f := range finished {
		*results = append(*results, ringi.ToolResult{
			CallID: f.Call, Outcome: f.Outcome, Code: f.Code, Origin: f.Origin,
			Output: f.Output, Error: f.Error, Truncated: f.Truncated, Duration: f.Duration,
		})
	}
	return messages
}

func size(messages []ringi.Message) int {
	c := newWriter()
	defer c.free()
	total := 0
	for i := range messages {
		c.out = c.out[:0]
		braces(c, &messages[i], message)
		total += len(c.out)
	}
	return total
}
