package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/provider/openai"
	"github.com/ringi-dev/ringi/provider/providertest"
)

// Whatever a server sends is a turn or an error, one of them and once, and every
// call of a turn has a name.
func FuzzStream(f *testing.F) {
	a := providertest.Answer{N: 1, Text: "I pay.", Reasoning: "Due.", Fragment: 3, Calls: []ringi.ToolCall{{ModelID: "a", Tool: "pay", Input: `{"n":1}`}, {ModelID: "", Tool: "look", Input: `{}`}}}
	f.Add(strings.Join(chatFrames(a), ""), true)
	f.Add(strings.Join(responseFrames(a), ""), false)
	f.Add("data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":-1}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", true)
	f.Add("data: {\"type\":\"response.completed\",\"response\":null}\n\n", false)
	f.Add("data: {\"type\":\"response.output_item.done\",\"item\":null}\n\n", false)
	f.Fuzz(func(t *testing.T, stream string, chat bool) {
		api := openai.Responses
		if chat {
			api = openai.Chat
		}
		m := openai.New("m", &openai.Options{API: api, BaseURL: "http://fake", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
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
			}
		}
		if turns+faults != 1 {
			t.Errorf("%d turns and %d errors", turns, faults)
		}
	})
}
