package providertest

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

func call(id, tool, input string) ringi.ToolCall {
	return ringi.ToolCall{ModelID: id, Tool: tool, Input: ringi.Input(input)}
}

// usage is one that tells its members apart.
var usage = ringi.Usage{InputTokens: 1200, OutputTokens: 340, ReasoningTokens: 128, CachedTokens: 1024}

// oneRequest is a request without a history.
func oneRequest() ringi.ModelRequest {
	return ringi.ModelRequest{System: system, Messages: []ringi.Message{ringi.User("Pay the bill.")}, Step: 1, Attempt: 1, RunID: "run_1", Thread: "thr_1",
		Tools: []ringi.Tool{{Name: "pay", Description: "Pays an amount.", InputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)}}}
}

// turns are streams that end well, and what is read from them.
func (v Vendor) turns(t *testing.T) {
	awkward := "Zeilen\nund \"Anführung\", \\ / \t, 🧾, \u2028, <b>&amp;</b>, 汉字"
	for _, c := range []struct {
		name string
		a    Answer
	}{
		{"Text", Answer{Text: "It is done.", Usage: usage}},
		{"TextInPieces", Answer{Text: awkward, Fragment: 3, Usage: usage}},
		{"Unicode", Answer{Text: awkward, Calls: []ringi.ToolCall{call("call_1", "pay", `{"n":1,"note":"ä🧾\ud83e\uddfe\n<&>"}`)}, Fragment: 2}},
		{"OneCall", Answer{Calls: []ringi.ToolCall{call("call_1", "pay", `{"n":1}`)}, Usage: usage}},
		{"TextAndCall", Answer{Text: "I pay.", Calls: []ringi.ToolCall{call("call_1", "pay", `{"n":1}`)}}},
		{"SeveralCalls", Answer{Calls: []ringi.ToolCall{call("call_1", "pay", `{"n":1}`), call("call_2", "look", `{}`), call("call_3", "pay", `{"n":2}`)}}},
		{"FragmentsInterleaved", Answer{Fragment: 1, Calls: []ringi.ToolCall{call("call_1", "pay", `{"n":12345678901234567890}`), call("call_2", "pay", `{ "n" : 1.50 }`)}}},
		{"F86_IntegersKeepTheirDigits", Answer{Fragment: 4, Calls: []ringi.ToolCall{call("call_1", "pay", `{"n":9223372036854775807}`)}}},
		{"Reasoning", Answer{Reasoning: "The bill is due.", Text: "I pay.", Fragment: 4, Usage: usage}},
		{"ReasoningAndCalls", Answer{Reasoning: "The bill is due.", Calls: []ringi.ToolCall{call("call_1", "pay", `{"n":1}`)}, Usage: usage}},
		{"BigInput", Answer{Fragment: 16 << 10, Calls: []ringi.ToolCall{call("call_1", "pay", `{"n":1,"note":"`+strings.Repeat("ä🧾", 100<<10)+`"}`)}}},
	} {
		t.Run(c.name, func(t *testing.T) { v.turn(t, c.a) })
	}
	t.Run("Refusal", v.refusal)
	for _, reason := range v.Finishes {
		t.Run("S38_Finish_"+string(reason), func(t *testing.T) { v.cutTurn(t, reason) })
	}
	t.Run("LeftInTheMiddle", v.left)
	t.Run("NothingToOffer", v.bare)
}

func (v *Vendor) turn(t *testing.T, a Answer) {
	a.N = 1
	s := NewServer(t, Reply{Header: v.Header, Frames: v.Stream(a)})
	m := v.Model(t, Setup{URL: s.URL, Key: s.Key})
	events, turn, err := generate(t.Context(), m, oneRequest())
	if err != nil || turn == nil {
		t.Fatalf("no turn: %v", err)
	}
	if turn.Text != a.Text || !turn.Finish.Clean() {
		t.Errorf("text %q, finish %q, want %q and a clean end", turn.Text, turn.Finish, a.Text)
	}
	text, reasoning, inputs := deltas(events)
	if text != a.Text || reasoning != a.Reasoning {
		t.Errorf("deltas tell %q and reasoning %q, want %q and %q", text, reasoning, a.Text, a.Reasoning)
	}
	if len(turn.Calls) != len(a.Calls) {
		t.Fatalf("%d calls, want %d: %+v", len(turn.Calls), len(a.Calls), turn.Calls)
	}
	for i, c := range turn.Calls {
		want := a.Calls[i]
		if v.Takes == nil {
			want.ModelID = c.ModelID
		}
		if !reflect.DeepEqual(c, want) {
			t.Errorf("call %d is %+v, want %+v", i, c, want)
		}
		if inputs[i] != string(want.Input) {
			t.Errorf("deltas of call %d tell %q, want %q", i, inputs[i], want.Input)
		}
	}
	want := a.Usage
	if v.NoUsage != nil {
		v.NoUsage(&want)
	}
	if turn.Usage != want {
		t.Errorf("usage %+v, want %+v", turn.Usage, want)
	}
}

// refusal: a model's refusal is text that the user reads, and never a call.
func (v *Vendor) refusal(t *testing.T) {
	g := v.stage(t, Answer{Refusal: "I will not do that."})
	g.run("", "Rob a bank.")
	g.done("I will not do that.")
}

// cutTurn: what ended by length or filter has calls, and runs none of them.
func (v *Vendor) cutTurn(t *testing.T, reason ringi.FinishReason) {
	g := v.stage(t, Answer{Text: "I pay", Finish: reason, Calls: []ringi.ToolCall{call("call_1", "look", `{}`), call("call_2", "pay", `{"n":1}`)}}, Answer{Text: "Sorry."})
	g.run("", "Pay.")
	g.done("Sorry.")
	g.ran.Want(t, "look", 0)
	g.ran.Want(t, "pay", 0)
	results := g.sent().of(PartResult)
	if len(results) != 2 || !strings.Contains(results[1].Text, "incomplete turn") {
		t.Errorf("the model reads %+v", results)
	}
	g.checked("finish_" + string(reason))
}

// left: a caller who leaves the loop closes the connection.
func (v *Vendor) left(t *testing.T) {
	s := NewServer(t, Reply{Header: v.Header, Frames: v.Stream(Answer{N: 1, Text: "a long text", Fragment: 1}), Hang: true})
	m := v.Model(t, Setup{URL: s.URL, Key: s.Key})
	for ev, err := range m.Generate(context.Background(), oneRequest()) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.TextDelta != "" {
			break
		}
	}
	s.WantLeft()
}

// bare: without system prompt and tools the body has neither.
func (v *Vendor) bare(t *testing.T) {
	s := NewServer(t, Reply{Header: v.Header, Frames: v.Stream(Answer{N: 1, Text: "Hello."})})
	m := v.Model(t, Setup{URL: s.URL, Key: s.Key})
	_, turn, err := generate(t.Context(), m, ringi.ModelRequest{Messages: []ringi.Message{ringi.User("Hi."), ringi.Assistant("Yes?"), ringi.User("Hello?")}, Step: 1, Attempt: 1})
	if err != nil || turn.Text != "Hello." {
		t.Fatalf("%+v, %v", turn, err)
	}
	req := v.read(t, s.Bodies()[0])
	if req.System != "" || len(req.Tools) != 0 || fmt.Sprint(kinds(req.Parts)) != "[user text user]" {
		t.Errorf("body is %s", s.Bodies()[0])
	}
	v.golden(t, "bare", s.Bodies())
}

func kinds(parts []Part) []PartKind {
	out := make([]PartKind, len(parts))
	for i, p := range parts {
		out[i] = p.Kind
	}
	return out
}
