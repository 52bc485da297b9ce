package anthropic_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/provider/anthropic"
	"github.com/ringi-dev/ringi/provider/providertest"
)

func over(rt http.RoundTripper) ringi.Model {
	return anthropic.New("m", &anthropic.Options{BaseURL: "http://fake", Transport: rt})
}

// Whatever a server sends is a turn or an error, one of them and once; every call
// of a turn has a name; a cut gives no call that the whole does not have; and what
// a turn keeps can be sent back.
func FuzzStream(f *testing.F) {
	a := providertest.Answer{N: 1, Text: "I pay.", Reasoning: "Due.", Fragment: 3, Calls: []ringi.ToolCall{{ModelID: "a", Tool: "pay", Input: `{"n":1}`}, {ModelID: "", Tool: "look", Input: `{}`}}}
	f.Add(strings.Join(frames(a), ""), uint(500))
	a.Finish = ringi.FinishLength
	f.Add(strings.Join(frames(a), ""), uint(500))
	f.Add(strings.Join(frames(providertest.Answer{Refusal: "No."}), ""), uint(500))
	f.Add(started(0, `{"type":"redacted_thinking","data":"x"}`)+stopped(0)+started(1, strings.Replace(call, "{}", `{"n":1}`, 1))+stopped(1)+ended("tool_use"), uint(500))
	f.Add(started(-1, `null`)+event("message_delta", `,"delta":null,"usage":null`)+event("message_stop", ""), uint(500))
	f.Add("data: {\"type\":\"error\",\"error\":null}\n\n", uint(500))
	for _, fault := range streamFaults() {
		f.Add(strings.Join(fault.Frames, ""), uint(300))
	}
	f.Fuzz(func(t *testing.T, stream string, cut uint) {
		providertest.HoldStream(t, over, stream, cut)
		holds(t, stream)
	})
}

// Whatever stands in an error's body is one error with a class.
func FuzzFault(f *testing.F) {
	for _, fault := range faults() {
		f.Add(fault.Status, fault.Header["Retry-After"], fault.Body)
	}
	f.Fuzz(func(t *testing.T, status int, retryAfter, body string) {
		providertest.HoldFault(t, over, status, retryAfter, body)
	})
}

// The same of streams with a few bytes changed, for every run of the tests: the
// SDK is so large that it takes minutes to build for the fuzzer.
func TestBentStreams(t *testing.T) {
	a := providertest.Answer{N: 1, Text: "I pay.", Reasoning: "Due.", Fragment: 3, Calls: []ringi.ToolCall{{ModelID: "a", Tool: "pay", Input: `{"n":1}`}, {ModelID: "", Tool: "look", Input: `{}`}}}
	whole := frames(a)
	rng := rand.New(rand.NewPCG(5, 39))
	rounds := 4000
	const other = `{}",:0n-]` + "\x00"
	if testing.Short() {
		rounds = 400
	}
	for range rounds {
		bent := slices.Clone(whole)
		for range 1 + rng.IntN(3) {
			i, k := rng.IntN(len(bent)), rng.IntN(len(bent))
			switch rng.IntN(4) {
			case 0:
				bent[i], bent[k] = bent[k], bent[i]
			case 1:
				bent[i] = bent[k]
			case 2:
				bent = slices.Delete(bent, i, i+1)
			default:
				at := rng.IntN(len(bent[i]))
				bent[i] = bent[i][:at] + other[rng.IntN(len(other)):][:1] + bent[i][at+1:]
			}
			if len(bent) == 0 {
				bent = slices.Clone(whole)
			}
		}
		providertest.HoldStream(t, over, strings.Join(bent, ""), rng.Uint())
		holds(t, strings.Join(bent, ""))
		if t.Failed() {
			t.Fatalf("stream %q", strings.Join(bent, ""))
		}
	}
}

// holds: what a turn keeps can be sent back.
func holds(t *testing.T, stream string) {
	var body []byte
	m := anthropic.New("m", &anthropic.Options{BaseURL: "http://fake", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body = make([]byte, r.ContentLength)
		if _, err := r.Body.Read(body); err != nil {
			t.Log(err)
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: readCloser{strings.NewReader(stream)}, Request: r}, nil
	})})
	var turn *ringi.ModelTurn
	for ev := range m.Generate(t.Context(), asks("go")) {
		if ev.Turn != nil {
			turn = ev.Turn
		}
	}
	if turn == nil {
		return
	}
	msgs := []ringi.Message{ringi.User("Pay."), {Role: ringi.RoleAssistant, Text: turn.Text, Calls: turn.Calls, Opaque: turn.Opaque}}
	var results ringi.Message
	for _, c := range turn.Calls {
		results.Results = append(results.Results, ringi.ToolResult{ModelID: c.ModelID, Tool: c.Tool, Output: "x"})
	}
	if results.Role = ringi.RoleTool; len(turn.Calls) > 0 {
		msgs = append(msgs, results)
	}
	for _, err := range m.Generate(t.Context(), ringi.ModelRequest{Messages: append(msgs, ringi.User("And?"))}) {
		if e, ok := ringi.ModelErrorOf(err); ok && e.Class == ringi.ModelBadRequest {
			t.Errorf("it does not go back: %v", err)
		}
	}
	if !json.Valid(body) {
		t.Errorf("body is no JSON: %q", body)
	}
}
