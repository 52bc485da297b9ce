package gemini_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/provider/gemini"
	"github.com/ringi-dev/ringi/provider/providertest"
)

func model(rt http.RoundTripper) ringi.Model {
	return gemini.New("m", &gemini.Options{BaseURL: "http://fake", Transport: rt})
}

// Whatever a server sends is a turn or an error, one of them and once; a cut gives
// no call that the whole does not have; and a turn ends well only where the stream
// says that it did.
func FuzzStream(f *testing.F) {
	a := providertest.Answer{N: 1, Text: "I pay.", Reasoning: "Due.", Fragment: 3, Calls: []ringi.ToolCall{{ModelID: "a", Tool: "pay", Input: `{"n":1}`}, {ModelID: "", Tool: "look", Input: `{}`}}}
	f.Add(strings.Join(frames(a, true), ""), uint(700))
	f.Add(strings.Join(frames(a, false), ""), uint(300))
	f.Add("data: {\"candidates\":[{\"index\":-1,\"finishReason\":\"STOP\"}]}\n\n", uint(9))
	f.Add("data: {\"candidates\":[{\"content\":{\"parts\":[null,{},7]},\"finishReason\":\"STOP\"}]}\n\n", uint(9))
	f.Add("data: {\"candidates\":null,\"promptFeedback\":{\"blockReason\":\"x\"}}\n\n{\"error\":{}}", uint(9))
	for _, fault := range streamFaults() {
		f.Add(strings.Join(fault.Frames, ""), uint(50))
	}
	f.Fuzz(func(t *testing.T, stream string, cut uint) {
		turn := providertest.HoldStream(t, model, stream, cut)
		if turn != nil && turn.Finish.Clean() && !strings.Contains(stream, "STOP") && !strings.Contains(stream, `\u`) {
			t.Errorf("a clean end of %q", stream)
		}
	})
}

// Whatever stands in an error's body is one error with a class.
func FuzzFault(f *testing.F) {
	for _, fault := range faults() {
		f.Add(fault.Status, fault.Header["Retry-After"], fault.Body)
	}
	f.Fuzz(func(t *testing.T, status int, retryAfter, body string) {
		providertest.HoldFault(t, model, status, retryAfter, body)
	})
}
