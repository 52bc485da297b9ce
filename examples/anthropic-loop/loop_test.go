package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/examples/internal/looptest"
)

var example = looptest.Example{
	API:       looptest.Messages{},
	Registry:  func() *ringi.Registry { return registry(shop()) },
	Begin:     begin,
	Loop:      func(p *looptest.Process) (looptest.Loop, error) { return kept(p, loop(p)), nil },
	Reencodes: true,
}

func TestMain(m *testing.M) { example.Main(m) }

func TestLoop(t *testing.T) { example.Run(t) }

func begin(s *looptest.Scene) error {
	return saveTo(s.File("kept"))(Kept{Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Refund A-1017."))}})
}

// loop is the program's loop with tools that are noted.
func loop(p *looptest.Process) Loop {
	client := anthropic.NewClient(option.WithBaseURL(p.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))
	l := Loop{Client: client, Params: anthropic.BetaMessageNewParams{Model: "m", MaxTokens: 100}, Gate: p.Gate, Save: saveTo(p.File("kept"))}
	for _, t := range shop() {
		l.Tools = append(l.Tools, noted{t, p})
	}
	return l
}

// kept goes on with the conversation that is kept.
func kept(p *looptest.Process, l Loop) looptest.Loop {
	return func() (looptest.Turn, error) {
		k, err := load(p.File("kept"))
		return func(ctx context.Context) ([]ringi.ApprovalRequest, error) { return l.Run(ctx, k) }, err
	}
}

// noted is a tool whose every run is noted.
type noted struct {
	anthropic.BetaTool
	p *looptest.Process
}

func (n noted) Execute(ctx context.Context, input json.RawMessage) ([]anthropic.BetaToolResultBlockParamContentUnion, error) {
	if err := n.p.Ran(n.Name(), input); err != nil {
		return nil, err
	}
	return n.BetaTool.Execute(ctx, input)
}

func TestCutTurnRunsNothing(t *testing.T) {
	s := example.New(t, strings.Replace(example.Refund(), `"stop_reason":"tool_use"`, `"stop_reason":"max_tokens"`, 1))
	p := s.Start()
	p.Turn(0)
	s.WantRan()
	k, err := load(s.File("kept"))
	s.Must(err)
	if n := len(k.Calls); n != 0 {
		t.Errorf("%d calls are kept", n)
	}
	p.Exit()
}

func TestWithoutAKeyItSaysSo(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, func(string) string { return "" }, strings.NewReader(""), &out); err != nil || !strings.Contains(out.String(), "ANTHROPIC_API_KEY") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestGlueIsShort(t *testing.T) { looptest.GlueIsShort(t, 40) }
