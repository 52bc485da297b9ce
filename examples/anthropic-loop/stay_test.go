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
)

// In process: the runner runs the tools itself, and a call that waits keeps it.

func TestStayAsksAtTheTerminal(t *testing.T) {
	for _, c := range []struct {
		name, typed string
		runs        []string
		read        string
	}{
		{"yes", "y\n", []string{"refund " + a1017}, "refunded A-1017"},
		{"no", "n\n", nil, "denied by a person"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVendor(t, calls("call_1", "refund", a1017), says("Done."))
			s := newScene(t, v)
			var out strings.Builder
			s.config = func(e *engine.Config) { e.OnApprovalRequired = ask(strings.NewReader(c.typed), &out) }
			p := s.start()
			s.must(p.loop.Stay(context.Background(), s.kept()))
			s.wantRan(c.runs...)
			if got := v.results()["call_1"]; !strings.Contains(got, c.read) || !strings.Contains(out.String(), a1017) {
				t.Errorf("asked %q, the model read %q", out.String(), got)
			}
			p.exit()
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
	v := newVendor(t, calls("call_1", "refund", a1017, "call_2", "refund", a1018), says("Done."))
	s := newScene(t, v)
	asked := make(chan ringi.ApprovalRequest, 2)
	s.config = inbox(asked)
	p := s.start()
	done := make(chan error)
	go func() { done <- p.loop.Stay(context.Background(), s.kept()) }()
	s.config = func(*engine.Config) {}
	for range 2 { // both wait at once: the runner runs a turn's calls side by side
		if r := <-asked; r.Call.Input == a1017 {
			s.decide(r.Approve(ana))
		} else {
			s.decide(r.Deny(ana, "not this one"))
		}
	}
	s.must(<-done)
	s.wantRan("refund " + a1017)
	if got := v.results(); got["call_1"] != "refunded A-1017" || !strings.Contains(got["call_2"], "not this one") {
		t.Errorf("the model read %q", got)
	}
	if n := len(s.kept().Messages); n != 4 {
		t.Errorf("%d messages are kept", n)
	}
	p.exit()
}

func TestStayEndsWithItsContext(t *testing.T) {
	v := newVendor(t, calls("call_1", "refund", a1017))
	s := newScene(t, v)
	asked := make(chan ringi.ApprovalRequest, 1)
	s.config = inbox(asked)
	p := s.start()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if err := p.loop.Stay(ctx, s.kept()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.wantRan()
	p.exit()
}

func TestWaitInProcess(t *testing.T) {
	v := newVendor(t, calls("call_1", "refund", a1017), says("Done."))
	s := newScene(t, v)
	p := s.start()
	done := make(chan error)
	go func() {
		waiting, err := p.loop.converse(t.Context(), p.e, s.file("kept"), "", false, true)
		if len(waiting) > 0 {
			err = errors.New("it did not wait")
		}
		done <- err
	}()
	var open []ringi.ApprovalRequest
	for len(open) == 0 {
		time.Sleep(time.Millisecond)
		page, err := p.e.Requests(t.Context(), ringi.RequestQuery{})
		s.must(err)
		open = page.Requests
	}
	s.decide(open[0].Approve(ana))
	s.must(<-done)
	s.wantRan("refund " + a1017)
	answered(t, v, map[string]string{"call_1": "refunded A-1017"})
	p.exit()
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
			v := newVendor(t, calls("call_1", "pay", large), says("Done."))
			s := newScene(t, v)
			store := s.bare(nil)
			reg := ringi.NewRegistry()
			s.must(reg.AddExternal(ringi.Tool{Name: "pay", Effect: ringi.ReadOnly}))
			e, err := engine.New(engine.Config{Registry: reg, Store: store.store})
			s.must(err)
			gate, err := e.Gate(t.Context(), ringi.RunInfo{})
			s.must(err)
			p := s.start()
			p.loop.Gate, p.loop.Tools = gate, []anthropic.BetaTool{noted{pay{}, s, func() {}}}
			if c.name == "run" {
				p.turn(0)
			} else {
				s.must(p.loop.Stay(t.Context(), s.kept()))
			}
			s.wantRan("pay " + c.want)
			answered(t, v, map[string]string{"call_1": c.want})
			p.exit()
			store.exit()
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
