package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/examples/internal/looptest"
)

// In process: the runner runs the tools itself, and a call that waits keeps it.

// now is the conversation as it is kept.
func now(s *looptest.Scene) Kept {
	s.Helper()
	k, err := load(s.File("kept"))
	s.Must(err)
	return k
}

func TestStayAsksAtTheTerminal(t *testing.T) {
	for _, c := range []struct {
		name, typed string
		runs        []string
		read        string
	}{
		{"yes", "y\n", []string{"refund " + looptest.A1017}, "refunded A-1017"},
		{"no", "n\n", nil, "denied by a person"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := example.New(t, example.Refund(), example.API.Says("Done."))
			var out strings.Builder
			s.Config = func(e *engine.Config) { e.OnApprovalRequired = ask(strings.NewReader(c.typed), &out) }
			p := s.Start()
			s.Must(loop(p).Stay(context.Background(), now(s)))
			s.WantRan(c.runs...)
			if got := s.Vendor.Last().Results["call_1"]; !strings.Contains(got, c.read) || !strings.Contains(out.String(), looptest.A1017) {
				t.Errorf("asked %q, the model read %q", out.String(), got)
			}
			p.Exit()
		})
	}
}

// inbox makes the runner wait until somebody decides elsewhere: the request
// that waits is sent to asked.
func inbox(asked chan<- ringi.ApprovalRequest) func(*engine.Config) {
	return func(c *engine.Config) {
		c.OnApprovalRequired = func(ctx context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
			asked <- r
			<-ctx.Done() // somebody else answered, or the run ends
			return ringi.Decision{}, context.Cause(ctx)
		}
	}
}

func TestStayWaitsForTheInbox(t *testing.T) {
	s := example.New(t, example.API.Calls(looptest.Call{ID: "call_1", Tool: "refund", Input: looptest.A1017}, looptest.Call{ID: "call_2", Tool: "refund", Input: looptest.A1018}), example.API.Says("Done."))
	asked := make(chan ringi.ApprovalRequest, 2)
	s.Config = inbox(asked)
	p := s.Start()
	done := make(chan error)
	go func() { done <- loop(p).Stay(context.Background(), now(s)) }()
	s.Config = func(*engine.Config) {}
	for range 2 { // both wait at once: the runner runs a turn's calls side by side
		if r := <-asked; r.Call.Input == looptest.A1017 {
			s.Decide(r.Approve(looptest.Ana))
		} else {
			s.Decide(r.Deny(looptest.Ana, "not this one"))
		}
	}
	s.Must(<-done)
	s.WantRan("refund " + looptest.A1017)
	if got := s.Vendor.Last().Results; got["call_1"] != "refunded A-1017" || !strings.Contains(got["call_2"], "not this one") {
		t.Errorf("the model read %q", got)
	}
	if n := len(now(s).Messages); n != 4 {
		t.Errorf("%d messages are kept", n)
	}
	p.Exit()
}

func TestStayEndsWithItsContext(t *testing.T) {
	s := example.New(t, example.Refund())
	asked := make(chan ringi.ApprovalRequest, 1)
	s.Config = inbox(asked)
	p := s.Start()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if err := loop(p).Stay(ctx, now(s)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.WantRan()
	p.Exit()
}

func TestWaitInProcess(t *testing.T) {
	s := example.New(t, example.Refund(), example.API.Says("Done."))
	p := s.Start()
	done := make(chan error)
	go func() {
		waiting, err := loop(p).converse(t.Context(), p.Engine, s.File("kept"), "", false, true)
		if len(waiting) > 0 {
			err = errors.New("it did not wait")
		}
		done <- err
	}()
	var open []ringi.ApprovalRequest
	for len(open) == 0 {
		time.Sleep(time.Millisecond)
		page, err := p.Engine.Requests(t.Context(), ringi.RequestQuery{})
		s.Must(err)
		open = page.Requests
	}
	s.Decide(open[0].Approve(looptest.Ana))
	s.Must(<-done)
	s.WantRan("refund " + looptest.A1017)
	s.Answered(map[string]string{"call_1": "refunded A-1017"})
	p.Exit()
}

// The runner's own hand-over goes through a float64. Run judges and runs the
// message's own bytes instead; what Stay judges is what it then runs.
func TestLargeNumbers(t *testing.T) {
	const large = `{"cents":12345678901234567890}`
	for _, c := range []struct{ name, want string }{
		{"run", large},
		{"stay", `{"cents":12345678901234567000}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := example.New(t, example.API.Calls(looptest.Call{ID: "call_1", Tool: "pay", Input: large}), example.API.Says("Done."))
			store := s.Bare(nil)
			reg := ringi.NewRegistry()
			s.Must(reg.AddExternal(ringi.Tool{Name: "pay", Effect: ringi.ReadOnly}))
			e, err := engine.New(engine.Config{Registry: reg, Store: store.Store})
			s.Must(err)
			gate, err := e.Gate(t.Context(), ringi.RunInfo{})
			s.Must(err)
			p := s.Start()
			l := loop(p)
			l.Gate, l.Tools = gate, []anthropic.BetaTool{noted{pay{}, p}}
			if c.name == "run" {
				_, err = l.Run(t.Context(), now(s))
			} else {
				err = l.Stay(t.Context(), now(s))
			}
			s.Must(err)
			s.WantRan("pay " + c.want)
			s.Answered(map[string]string{"call_1": c.want})
			p.Exit()
			store.Exit()
		})
	}
}

// pay is a tool of the SDK's that answers with its input.
type pay struct{ anthropic.BetaTool }

func (pay) Name() string        { return "pay" }
func (pay) Description() string { return "Pay." }
func (pay) InputSchema() anthropic.BetaToolInputSchemaParam {
	return anthropic.BetaToolInputSchemaParam{}
}
func (pay) Execute(_ context.Context, input json.RawMessage) ([]anthropic.BetaToolResultBlockParamContentUnion, error) {
	return []anthropic.BetaToolResultBlockParamContentUnion{text(string(input))}, nil
}
