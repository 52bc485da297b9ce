package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

const (
	a1017 = `{"id":"A-1017"}`
	a1018 = `{"id":"A-1018"}`
)

// answered checks what the model last read, by the ids of its own calls.
func answered(t *testing.T, v *vendor, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, m := range v.last() {
		if m.Role == "tool" {
			got[m.ToolCallID] = fmt.Sprint(m.Content)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the model read %q, want %q", got, want)
	}
}

func TestWaitRestartApproveOnce(t *testing.T) {
	v := newVendor(t, calls("call_1", "find_order", a1017, "call_2", "refund", a1017), says("Done."))
	s := newScene(t, v)
	p := s.start()
	r := p.turn(1)[0]
	if r.Call.ModelID != "call_2" || r.Call.Input != a1017 {
		t.Errorf("asks about %+v", r.Call)
	}
	s.wantRan("find_order " + a1017)
	p.exit()

	p = s.start()
	p.turn(1) // still undecided
	p.exit()
	if err := s.spawn("approve " + r.ID).Wait(); err != nil {
		t.Fatal(err)
	}

	p = s.start()
	p.turn(0)
	s.wantRan("find_order "+a1017, "refund "+a1017)
	answered(t, v, map[string]string{"call_1": "12.50, paid by card", "call_2": "refunded A-1017"})
	if n := v.questions(); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
	if _, err := p.e.Verify(context.Background(), r.RunID); err != nil {
		t.Error(err)
	}
	s.must(p.gate.Close(context.Background()))
	p.exit()
}

func TestConcurrentResumesRunOnce(t *testing.T) {
	for _, c := range []struct {
		name      string
		processes int
	}{{"in one process", 1}, {"in eight processes", 8}} {
		t.Run(c.name, func(t *testing.T) {
			v := newVendor(t, calls("call_1", "refund", a1017), says("Done."))
			s := newScene(t, v)
			p := s.start()
			s.decide(p.turn(1)[0].Approve(ana))
			p.exit()
			var all []*process
			for range c.processes {
				all = append(all, s.start())
			}
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					if answer, waiting, err := all[i%len(all)].agent.Run(context.Background(), "conversation-1", said); err != nil || answer != "Done." {
						t.Error(answer, waiting, err)
					}
				})
			}
			wg.Wait()
			for _, p := range all {
				p.exit()
			}
			s.wantRan("refund " + a1017)
			answered(t, v, map[string]string{"call_1": "refunded A-1017"})
		})
	}
}

func TestApproveOneOfTwo(t *testing.T) {
	v := newVendor(t, calls("call_1", "refund", a1017, "call_2", "refund", a1018), says("Done."))
	s := newScene(t, v)
	p := s.start()
	two := p.turn(2)
	s.decide(two[1].Approve(ana))
	left := p.turn(1)
	if left[0].ID != two[0].ID {
		t.Errorf("%s waits, want %s", left[0].ID, two[0].ID)
	}
	s.wantRan("refund " + a1018)
	p.exit()

	s.decide(two[0].Approve(ana))
	p = s.start()
	p.turn(0)
	s.wantRan("refund "+a1018, "refund "+a1017)
	answered(t, v, map[string]string{"call_1": "refunded A-1017", "call_2": "refunded A-1018"})
	p.exit()
}

func TestSameCallTwiceAsksTwice(t *testing.T) {
	v := newVendor(t, calls("call_1", "refund", a1017, "call_2", "refund", a1017), says("Done."))
	s := newScene(t, v)
	p := s.start()
	two := p.turn(2)
	s.decide(two[0].Approve(ana))
	p.turn(1)
	s.wantRan("refund " + a1017)
	s.decide(two[1].Deny(ana, "once is enough"))
	p.turn(0)
	s.wantRan("refund " + a1017)
	p.exit()
}

func TestDenyIsReadByTheModel(t *testing.T) {
	v := newVendor(t, calls("call_1", "refund", a1017), says("I see."))
	s := newScene(t, v)
	p := s.start()
	s.decide(p.turn(1)[0].Deny(ana, "not this customer"))
	p.turn(0)
	s.wantRan()
	last := v.last()
	if m := last[len(last)-1]; m.ToolCallID != "call_1" || !strings.Contains(fmt.Sprint(m.Content), "not this customer") {
		t.Errorf("the model read %+v", m)
	}
	p.exit()
}

func TestEditRunsTheEditedBytes(t *testing.T) {
	v := newVendor(t, calls("call_1", "refund", a1017), says("Done."))
	s := newScene(t, v)
	p := s.start()
	first := p.turn(1)[0]
	s.decide(first.Edit(ana, json.RawMessage(a1018)))
	second := p.turn(1)[0] // the process with the tools has checked it, and asks anew
	if second.Replaces != first.ID || second.Call.Input != a1018 || second.Proposed != a1017 {
		t.Errorf("asks %+v", second)
	}
	s.wantRan()
	p.exit()

	s.decide(second.Approve(ana))
	p = s.start()
	p.turn(0)
	s.wantRan("refund " + a1018)
	last := v.last()
	if m := last[len(last)-1]; m.ToolCallID != "call_1" || !strings.Contains(fmt.Sprint(m.Content), "refunded A-1018") {
		t.Errorf("the model read %+v", m)
	}
	if got := last[len(last)-2].ToolCalls[0].Function.Arguments; got != a1017 {
		t.Errorf("the model's own call became %s", got)
	}
	p.exit()
}

func TestExpiredIsReadByTheModel(t *testing.T) {
	v := newVendor(t, calls("call_1", "refund", a1017), says("I see."))
	s := newScene(t, v)
	s.config = func(c *engine.Config) { c.Expiry = 50 * time.Millisecond }
	p := s.start()
	r := p.turn(1)[0]
	time.Sleep(time.Until(r.ExpiresAt) + 10*time.Millisecond)
	p.exit()

	p = s.start()
	p.turn(0)
	s.wantRan()
	if m := v.last(); !strings.Contains(fmt.Sprint(m[len(m)-1].Content), "nobody decided in time") {
		t.Errorf("the model read %+v", m[len(m)-1])
	}
	p.exit()
}

func TestF30_KilledBetweenStartAndFinish(t *testing.T) {
	v := newVendor(t, calls("call_1", "refund", a1017), says("Done."))
	s := newScene(t, v)
	s.config = shortCalls
	p := s.start()
	s.decide(p.turn(1)[0].Approve(ana))
	p.exit()

	child := s.spawn("hang")
	for deadline := time.Now().Add(90 * time.Second); s.ran() == ""; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the second process did not start the tool")
		}
	}
	s.must(child.Process.Kill())
	_ = child.Wait()

	p = s.start()
	asked := p.turn(1)[0] // it may have run: a person is asked, and nothing runs again
	if asked.Kind != ringi.KindOutcome {
		t.Fatalf("asks %s", asked.Kind)
	}
	s.wantRan("refund " + a1017)
	p.exit()

	s.decide(asked.Ran(ana, "refunded A-1017, says the bank"))
	p = s.start()
	p.turn(0)
	s.wantRan("refund " + a1017)
	answered(t, v, map[string]string{"call_1": "The call was interrupted; a person says that it ran, with this result.\nrefunded A-1017, says the bank"})
	p.exit()
}

func TestCheckpointKeepsEveryByte(t *testing.T) {
	const odd = `{ "id" : "A-1017\u00e9<&>" }`
	v := newVendor(t, calls("call_1", "refund", odd), says("Done."))
	s := newScene(t, v)
	p := s.start()
	s.decide(p.turn(1)[0].Approve(ana))
	p.exit()
	p = s.start()
	p.turn(0)
	s.wantRan("refund " + odd)
	last := v.last()
	if got := last[len(last)-2].ToolCalls[0].Function.Arguments; got != odd {
		t.Errorf("the model's own call became %s", got)
	}
	p.exit()
}

// Eino keeps a checkpoint that was resumed: resumed again, it finds the result.
func TestOldCheckpointRunsNothing(t *testing.T) {
	v := newVendor(t, calls("call_1", "refund", a1017), says("Done."))
	s := newScene(t, v)
	p := s.start()
	s.decide(p.turn(1)[0].Approve(ana))
	p.turn(0)
	p.turn(0)
	s.wantRan("refund " + a1017)
	s.must(p.gate.Close(context.Background()))
	p.exit()

	p = s.start() // the conversation's gate is a new one, which does not know the call
	if _, _, err := p.agent.Run(context.Background(), "conversation-1", said); !errors.Is(err, ringi.ErrNotFound) {
		t.Error(err)
	}
	s.wantRan("refund " + a1017)
	p.exit()
}

func TestStreamGoesThroughTheGate(t *testing.T) {
	s := newScene(t, newVendor(t))
	p := s.start()
	node, err := compose.NewToolNode(t.Context(), &compose.ToolsNodeConfig{
		Tools:               []tool.BaseTool{noted{shop()[1].(tool.InvokableTool), s, func() {}}},
		ToolCallMiddlewares: []compose.ToolMiddleware{approvals(func(context.Context) (*engine.Gate, error) { return p.gate, nil })},
	})
	s.must(err)
	call := schema.ToolCall{ID: "call_1", Function: schema.FunctionCall{Name: "refund", Arguments: a1017}}
	if _, err = node.Stream(t.Context(), schema.AssistantMessage("", []schema.ToolCall{call})); err == nil {
		t.Error("the stream did not pause")
	}
	s.wantRan()
	page, err := p.e.Requests(t.Context(), ringi.RequestQuery{})
	s.must(err)
	if len(page.Requests) != 1 || page.Requests[0].Call.Input != a1017 {
		t.Errorf("asks %+v", page.Requests)
	}
	p.exit()
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
			v := newVendor(t, calls("call_1", "find_order", a1017))
			s := newScene(t, v)
			p := s.start()
			m, err := openai.NewChatModel(t.Context(), &openai.ChatModelConfig{Model: "m", APIKey: "none", BaseURL: v.URL})
			s.must(err)
			var tools []tool.BaseTool
			for _, one := range shop() {
				tools = append(tools, kind(one))
			}
			a, err := newAgent(t.Context(), m, tools, func(context.Context) (*engine.Gate, error) { return p.gate, nil }, folder(s.dir))
			s.must(err)
			if _, _, err := a.Run(t.Context(), "conversation-1", said); !errors.Is(err, errNotGated) {
				t.Error(err)
			}
			p.exit()
		})
	}
}

func TestWithoutAKeyItSaysSo(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, func(string) string { return "" }, &out); err != nil || !strings.Contains(out.String(), "OPENAI_API_KEY") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestGlueIsShort(t *testing.T) {
	b, err := os.ReadFile("glue.go")
	if err != nil {
		t.Fatal(err)
	}
	n, imports := 0, false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "import (":
			imports = true
		case imports:
			imports = line != ")"
		case line != "" && !strings.HasPrefix(line, "//"):
			n++
		}
	}
	if n > 40 {
		t.Errorf("glue.go has %d lines, at most 40 are promised", n)
	}
}
