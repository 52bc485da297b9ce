package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/provider/openai"
	"github.com/ringi-dev/ringi/provider/providertest"
)

func over(chat bool) func(http.RoundTripper) ringi.Model {
	api := openai.Responses
	if chat {
		api = openai.Chat
	}
	return func(rt http.RoundTripper) ringi.Model {
		return openai.New("m", &openai.Options{API: api, BaseURL: "http://fake", Transport: rt})
	}
}

// Whatever a server sends is a turn or an error, one of them and once; a cut gives
// no call that the whole does not have.
func FuzzStream(f *testing.F) {
	a := providertest.Answer{N: 1, Text: "I pay.", Reasoning: "Due.", Fragment: 3, Calls: []ringi.ToolCall{{ModelID: "a", Tool: "pay", Input: `{"n":1}`}, {ModelID: "", Tool: "look", Input: `{}`}}}
	f.Add(strings.Join(chatFrames(a), ""), true, uint(700))
	f.Add(strings.Join(responseFrames(a), ""), false, uint(900))
	a.Finish = ringi.FinishLength
	f.Add(strings.Join(chatFrames(a), ""), true, uint(1<<12))
	f.Add(strings.Join(responseFrames(a), ""), false, uint(1<<12))
	f.Add("data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":-1}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", true, uint(90))
	f.Add("data: {\"type\":\"response.completed\",\"response\":null}\n\n", false, uint(9))
	f.Add("data: {\"type\":\"response.output_item.done\",\"item\":null}\n\n", false, uint(9))
	for _, fault := range responseFaults() {
		f.Add(strings.Join(fault.Frames, ""), false, uint(50))
	}
	f.Fuzz(func(t *testing.T, stream string, chat bool, cut uint) {
		providertest.HoldStream(t, over(chat), stream, cut)
	})
}

// Whatever stands in an error's body is one error with a class.
func FuzzFault(f *testing.F) {
	for _, fault := range chatFaults() {
		f.Add(fault.Status, fault.Header["Retry-After"], fault.Body)
	}
	f.Fuzz(func(t *testing.T, status int, retryAfter, body string) {
		providertest.HoldFault(t, over(true), status, retryAfter, body)
		providertest.HoldFault(t, over(false), status, retryAfter, body)
	})
}
