package gemini_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/provider/gemini"
	"github.com/ringi-dev/ringi/provider/providertest"
)

// Whatever a server sends is a turn or an error, one of them and once, every call
// of a turn has a name, and a turn with calls ends well only where the stream says
// that it did.
func FuzzStream(f *testing.F) {
	a := providertest.Answer{N: 1, Text: "I pay.", Reasoning: "Due.", Fragment: 3, Calls: []ringi.ToolCall{{ModelID: "a", Tool: "pay", Input: `{"n":1}`}, {ModelID: "", Tool: "look", Input: `{}`}}}
	f.Add(strings.Join(frames(a, true), ""))
	f.Add("data: {\"candidates\":[{\"index\":-1,\"finishReason\":\"STOP\"}]}\n\n")
	f.Add("data: {\"candidates\":[{\"content\":{\"parts\":[null,{},7]},\"finishReason\":\"STOP\"}]}\n\n")
	f.Add("data: {\"candidates\":null,\"promptFeedback\":{\"blockReason\":\"x\"}}\n\n{\"error\":{}}")
	for _, fault := range streamFaults() {
		f.Add(strings.Join(fault.Frames, ""))
	}
	f.Fuzz(func(t *testing.T, stream string) {
		m := gemini.New("m", &gemini.Options{BaseURL: "http://fake", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: readCloser{strings.NewReader(stream)}, Request: r}, nil
		})})
		turns, faults := 0, 0
		for ev, err := range m.Generate(t.Context(), asks("go")) {
			switch {
			case err != nil:
				faults++
				if _, ok := ringi.ModelErrorOf(err); !ok {
					t.Errorf("error without a class: %v", err)
				}
			case turns+faults > 0:
				t.Errorf("an event behind the end: %+v", ev)
			case ev.Turn != nil:
				turns++
				for _, c := range ev.Turn.Calls {
					if c.Tool == "" {
						t.Errorf("a call without a name: %+v", ev.Turn)
					}
				}
				if ev.Turn.Finish.Clean() && !strings.Contains(stream, "STOP") && !strings.Contains(stream, `\u`) {
					t.Errorf("a clean end of %q", stream)
				}
			}
		}
		if turns+faults != 1 {
			t.Errorf("%d turns and %d errors", turns, faults)
		}
	})
}
