package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/examples/internal/looptest"
)

var example = looptest.Example{API: looptest.ChatCompletions{}, Registry: registry, Loop: newLoop}

func TestMain(m *testing.M) { example.Main(m) }

func TestLoop(t *testing.T) { example.Run(t) }

func newLoop(p *looptest.Process) (looptest.Loop, error) {
	var tools []tool.BaseTool
	for _, t := range shop() {
		tools = append(tools, noted{t.(tool.InvokableTool), p})
	}
	a, err := agent(p, tools)
	if err != nil {
		return nil, err
	}
	return func() (looptest.Turn, error) { // the checkpoint is read as the graph is invoked
		return func(ctx context.Context) ([]ringi.ApprovalRequest, error) { return turn(ctx, a, p.Engine) }, nil
	}, nil
}

// said is what the conversation begins with. A resumed graph ignores it.
var said = []*schema.Message{schema.UserMessage("Refund A-1017.")}

func agent(p *looptest.Process, tools []tool.BaseTool) (*Agent, error) {
	m, err := openai.NewChatModel(context.Background(), &openai.ChatModelConfig{Model: "m", APIKey: "none", BaseURL: p.URL})
	if err != nil {
		return nil, err
	}
	return newAgent(context.Background(), m, tools, func(context.Context) (*engine.Gate, error) { return p.Gate, nil }, folder(p.File("")))
}

// turn returns the requests that wait, in the order of their calls.
func turn(ctx context.Context, a *Agent, e *engine.Engine) (waiting []ringi.ApprovalRequest, err error) {
	_, ids, err := a.Run(ctx, "conversation-1", said)
	for _, id := range ids {
		r, err := e.Request(ctx, id)
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, r)
	}
	slices.SortFunc(waiting, func(a, b ringi.ApprovalRequest) int { return strings.Compare(a.Call.ModelID, b.Call.ModelID) })
	return waiting, err
}

// noted is a tool whose every run is noted.
type noted struct {
	tool.InvokableTool
	p *looptest.Process
}

func (n noted) InvokableRun(ctx context.Context, input string, opts ...tool.Option) (string, error) {
	info, err := n.Info(ctx)
	if err != nil {
		return "", ringi.NotDone(err)
	}
	if err := n.p.Ran(info.Name, []byte(input)); err != nil {
		return "", err
	}
	return n.InvokableTool.InvokableRun(ctx, input, opts...)
}

// Eino keeps a checkpoint that was resumed: resumed again, it finds the result.
func TestOldCheckpointRunsNothing(t *testing.T) {
	s := example.New(t, example.Refund(), example.API.Says("Done."))
	p := s.Start()
	s.Decide(p.Turn(1)[0].Approve(looptest.Ana))
	p.Turn(0)
	p.Turn(0)
	s.WantRan("refund " + looptest.A1017)
	s.Must(p.Gate.Close(context.Background()))
	p.Exit()

	p = s.Start() // the conversation's gate is a new one, which does not know the call
	a, err := agent(p, shop())
	s.Must(err)
	if _, _, err := a.Run(context.Background(), "conversation-1", said); !errors.Is(err, ringi.ErrNotFound) {
		t.Error(err)
	}
	s.WantRan("refund " + looptest.A1017)
	p.Exit()
}

func TestStreamGoesThroughTheGate(t *testing.T) {
	s := example.New(t)
	p := s.Start()
	node, err := compose.NewToolNode(t.Context(), &compose.ToolsNodeConfig{
		Tools:               []tool.BaseTool{noted{shop()[1].(tool.InvokableTool), p}},
		ToolCallMiddlewares: []compose.ToolMiddleware{approvals(func(context.Context) (*engine.Gate, error) { return p.Gate, nil })},
	})
	s.Must(err)
	call := schema.ToolCall{ID: "call_1", Function: schema.FunctionCall{Name: "refund", Arguments: looptest.A1017}}
	if _, err = node.Stream(t.Context(), schema.AssistantMessage("", []schema.ToolCall{call})); err == nil {
		t.Error("the stream did not pause")
	}
	s.WantRan()
	page, err := p.Engine.Requests(t.Context(), ringi.RequestQuery{})
	s.Must(err)
	if len(page.Requests) != 1 || page.Requests[0].Call.Input != looptest.A1017 {
		t.Errorf("asks %+v", page.Requests)
	}
	p.Exit()
}

// streaming is a tool of the kind that the glue does not gate.
type streaming struct{ tool.BaseTool }

func (s streaming) StreamableRun(context.Context, string, ...tool.Option) (*schema.StreamReader[string], error) {
	panic("it ran")
}

// enhanced is another one.
type enhanced struct{ tool.BaseTool }

func (e enhanced) InvokableRun(context.Context, *schema.ToolArgument, ...tool.Option) (*schema.ToolResult, error) {
	panic("it ran")
}

func TestOtherKindsOfToolsAreRefused(t *testing.T) {
	for name, kind := range map[string]func(tool.BaseTool) tool.BaseTool{
		"streaming": func(t tool.BaseTool) tool.BaseTool { return streaming{t} },
		"enhanced":  func(t tool.BaseTool) tool.BaseTool { return enhanced{t} },
	} {
		t.Run(name, func(t *testing.T) {
			s := example.New(t, example.API.Calls(looptest.Call{ID: "call_1", Tool: "find_order", Input: looptest.A1017}))
			p := s.Start()
			var tools []tool.BaseTool
			for _, one := range shop() {
				tools = append(tools, kind(one))
			}
			a, err := agent(p, tools)
			s.Must(err)
			if _, _, err := a.Run(t.Context(), "conversation-1", said); !errors.Is(err, errNotGated) {
				t.Error(err)
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
