package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/examples/internal/looptest"
)

var example = looptest.Example{API: looptest.ChatCompletions{}, Registry: registry, Begin: begin, Loop: newLoop}

func TestMain(m *testing.M) { example.Main(m) }

func TestLoop(t *testing.T) { example.Run(t) }

func begin(s *looptest.Scene) error {
	return saveTo(s.File("kept"))(Kept{Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Refund A-1017.")}})
}

func newLoop(p *looptest.Process) (looptest.Loop, error) {
	client := openai.NewClient(option.WithBaseURL(p.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))
	l := Loop{Client: client, Params: params("m"), Gate: p.Gate, Save: saveTo(p.File("kept"))}
	l.Tool = func(ctx context.Context, s engine.Started) (any, error) {
		if err := p.Ran(s.Call().Tool, s.Input()); err != nil {
			return nil, err
		}
		return shop(ctx, s)
	}
	return func() (looptest.Turn, error) {
		k, err := load(p.File("kept"))
		return func(ctx context.Context) ([]ringi.ApprovalRequest, error) { return l.Run(ctx, k) }, err
	}, nil
}

func TestWhatIsNoToolOfOursIsRefused(t *testing.T) {
	custom := `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"custom","custom":{"name":"refund","input":"A-1017"}}]}`
	for name, answer := range map[string]string{
		"unknown":   example.API.Calls(looptest.Call{ID: "call_1", Tool: "pay_out", Input: looptest.A1017}),
		"custom":    looptest.Completion(custom),
		"bad input": example.API.Calls(looptest.Call{ID: "call_1", Tool: "refund", Input: `{"id":`}),
	} {
		t.Run(name, func(t *testing.T) {
			s := example.New(t, answer, example.API.Says("I see."))
			p := s.Start()
			p.Turn(0)
			s.WantRan()
			if s.Vendor.Last().Results["call_1"] == "" {
				t.Errorf("the model read %+v", s.Vendor.Last())
			}
			p.Exit()
		})
	}
}

func TestWithoutAKeyItSaysSo(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, func(string) string { return "" }, &out); err != nil || !strings.Contains(out.String(), "OPENAI_API_KEY") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestGlueIsShort(t *testing.T) { looptest.GlueIsShort(t, 40) }
