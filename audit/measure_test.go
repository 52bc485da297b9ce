package audit

import (
	"testing"

	"github.com/ringi-dev/ringi"
)

func TestMessageBytes(t *testing.T) {
	if n := MessageBytes(nil); n != 0 {
		t.Errorf("no events have %d bytes of messages", n)
	}
	bodies := []ringi.EventBody{
		&ringi.RunStarted{Thread: "not counted", System: "not counted", Messages: []ringi.Message{ringi.User("hello"), ringi.Assistant("hi")}},
		&ringi.ModelResponded{Text: "two calls", OfferDigest: "not counted", Calls: []ringi.JudgedCall{
			{ID: "c1", Tool: "read", Input: `{"a":1}`, Verdict: ringi.Verdict{Status: ringi.NotApplicable, Reason: "not counted"}},
			{ID: "c2", ModelID: "m2", Tool: "gone", Input: `{}`, Code: ringi.CodeUnknownTool, Text: "no such tool"},
		}},
		&ringi.ToolStarted{Call: "c1", Tool: "read"},
		&ringi.ToolFinished{Results: []ringi.FinishedCall{{Call: "c1", Outcome: ringi.OutcomeOK, Output: "42"}}},
		nil, // erased
		&ringi.ModelResponded{Text: "done", Opaque: "o"},
		&ringi.CallJudged{Number: 1, Call: ringi.JudgedCall{ID: "c3", Tool: "read", Input: `{}`}},
		&ringi.ToolFinished{Results: []ringi.FinishedCall{{Call: "c3", Outcome: ringi.OutcomeError, Error: "x"}}},
	}
	want := 0
	for _, message := range []string{
		`{"role":"user","text":"hello"}`,
		`{"role":"assistant","text":"hi"}`,
		`{"role":"assistant","text":"two calls","calls":[{"id":"c1","tool":"read","input":"{\"a\":1}"},{"id":"c2","model_id":"m2","tool":"gone","input":"{}"}]}`,
		`{"role":"tool","results":[{"call_id":"c2","code":"unknown_tool","error":"no such tool"},{"call_id":"c1","outcome":"ok","output":"42"}]}`,
		`{"role":"assistant","text":"done","opaque":"o"}`,
		`{"role":"assistant","calls":[{"id":"c3","tool":"read","input":"{}"}]}`,
		`{"role":"tool","results":[{"call_id":"c3","outcome":"error","error":"x"}]}`,
	} {
		want += len(message)
	}
	events := make([]ringi.Event, len(bodies))
	for i, body := range bodies {
		events[i].Body = body
	}
	if n := MessageBytes(events); n != want {
		t.Errorf("messages have %d bytes, want %d", n, want)
	}
}
