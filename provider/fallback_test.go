package provider_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/provider"
	"github.com/ringi-dev/ringi/ringitest"
)

func fault(class ringi.ModelErrorClass, after time.Duration) error {
	return &ringi.ModelError{Class: class, Provider: "test", RetryAfter: after, Err: errors.New("a fault")}
}

// failing fails at every attempt of a step.
func failing(err error) *ringitest.Model { return ringitest.Script(ringitest.Fail(err)) }

func run(t *testing.T, m ringi.Model, change ...func(*engine.Config)) *ringi.Result {
	t.Helper()
	cfg := engine.Config{Model: m, Limits: ringi.Limits{ModelRetries: -1}}
	for _, f := range change {
		f(&cfg)
	}
	res, err := ringitest.Engine(t, cfg).Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Hi.")}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestFallback_GoesOnWhereAnotherVendorMayAnswer(t *testing.T) {
	for class, on := range map[ringi.ModelErrorClass]bool{
		ringi.ModelAuth: true, ringi.ModelRateLimit: true, ringi.ModelQuota: true, ringi.ModelContextLength: true, ringi.ModelOverloaded: true,
		ringi.ModelServer: true, ringi.ModelTimeout: true, ringi.ModelConnection: true, ringi.ModelBroken: true,
		ringi.ModelBadRequest: false, ringi.ModelFiltered: false,
	} {
		second := ringitest.Script(ringitest.Text("second"))
		res := run(t, provider.Fallback(provider.Choice{Model: failing(fault(class, 0))}, provider.Choice{Model: second}))
		if asked := len(second.Requests()) == 1; asked != on || on != (res.Text == "second") {
			t.Errorf("%s: second was asked: %t, want %t; run is %s %q", class, asked, on, res.Status, res.Text)
		}
	}
	res := run(t, provider.Fallback(provider.Choice{Model: ringitest.Script(ringitest.Broken())}, provider.Choice{Model: failing(errors.New("unknown"))}, provider.Choice{Model: ringitest.Script(ringitest.Text("third"))}))
	if res.Text != "third" {
		t.Errorf("run is %s: %s", res.Status, res.Detail)
	}
}

// What was streamed is not taken back in the middle of a step: the engine
// discards it, and the next attempt begins with the next choice.
func TestFallback_NothingIsStreamedTwiceInAStep(t *testing.T) {
	first := ringitest.Script(ringitest.Deltas("I be"), ringitest.Fail(fault(ringi.ModelBroken, time.Millisecond)))
	second := ringitest.Script(ringitest.Text("I begin."))
	e := ringitest.Engine(t, engine.Config{Model: provider.Fallback(provider.Choice{Model: first}, provider.Choice{Model: second})})
	var told []string
	for ev, err := range e.Stream(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Hi.")}}) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := ev.Body.(type) {
		case *ringi.Delta:
			told = append(told, b.Text)
		case *ringi.StepDiscarded:
			told = append(told, "discarded")
		case *ringi.ModelResponded:
			told = append(told, b.Text)
		}
	}
	if got := strings.Join(told, "|"); got != "I be|discarded|I begin." || len(first.Requests()) != 1 || len(second.Requests()) != 1 {
		t.Errorf("told %s, first asked %d times, second %d", got, len(first.Requests()), len(second.Requests()))
	}
}

func TestFallback_TellsWhatMayPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := provider.Fallback(provider.Choice{Model: failing(fault(ringi.ModelAuth, 0))},
			provider.Choice{Model: failing(fault(ringi.ModelRateLimit, 20*time.Second))}, provider.Choice{Model: failing(fault(ringi.ModelOverloaded, 3*time.Second))})
		start := time.Now()
		res := run(t, m, func(c *engine.Config) { c.Limits.ModelRetries = 1 })
		if res.Status != ringi.Failed || time.Since(start) != 3*time.Second {
			t.Errorf("run is %s after %s, want one wait of 3 s: %s", res.Status, time.Since(start), res.Detail)
		}
		for _, want := range []string{"auth", "rate_limit", "overloaded"} {
			if !strings.Contains(res.Detail, want) {
				t.Errorf("detail %q does not tell %s", res.Detail, want)
			}
		}
	})
	if res := run(t, provider.Fallback()); res.Status != ringi.Failed || !strings.Contains(res.Detail, "no choices") {
		t.Errorf("run is %s: %s", res.Status, res.Detail)
	}
}

func TestFallback_EndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	second := ringitest.Script(ringitest.Text("second"))
	first := ringitest.Script(ringitest.Delay(time.Hour, ringitest.Text("first")))
	time.AfterFunc(20*time.Millisecond, cancel)
	for _, err := range provider.Fallback(provider.Choice{Model: first}, provider.Choice{Model: second}).Generate(ctx, ringi.ModelRequest{Step: 1, Attempt: 1}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
	if len(second.Requests()) != 0 {
		t.Error("a call that was given up went to another vendor")
	}
}

func TestS20_AChainIsAsTrustedAsItsLeastTrustedChoice(t *testing.T) {
	local, eu, world := ringi.ZoneLocal, ringi.ZoneExternalEU, ringi.ZoneExternalGlobal
	for _, c := range []struct {
		zones []ringi.TrustZone
		want  ringi.TrustZone
	}{
		{nil, ""}, {[]ringi.TrustZone{"", ""}, ""}, {[]ringi.TrustZone{local}, local}, {[]ringi.TrustZone{local, eu}, eu},
		{[]ringi.TrustZone{eu, local}, eu}, {[]ringi.TrustZone{local, world, eu}, world}, {[]ringi.TrustZone{local, ""}, world},
		{[]ringi.TrustZone{"", local}, world}, {[]ringi.TrustZone{local, "moon"}, "moon"},
	} {
		var choices []provider.Choice
		for _, z := range c.zones {
			choices = append(choices, provider.Choice{Model: ringitest.Script(), Zone: z})
		}
		m := provider.Fallback(choices...)
		if got := m.(ringi.ZonedModel).TrustZone(); got != c.want {
			t.Errorf("%v: zone %q, want %q", c.zones, got, c.want)
		}
		nested := provider.Fallback(provider.Choice{Model: m, Zone: local}).(ringi.ZonedModel).TrustZone()
		if want := c.want; nested != want && (want != "" || nested != local) {
			t.Errorf("%v in a chain: zone %q, want %q", c.zones, nested, want)
		}
	}
	_, err := engine.New(engine.Config{Model: provider.Fallback(provider.Choice{Model: ringitest.Script(), Zone: "moon"})})
	if err == nil || !strings.Contains(err.Error(), "moon") {
		t.Errorf("a chain with an unknown zone: %v", err)
	}
}

// secretThread reads a secret under a local model, and gives the engine and its
// thread.
func secretThread(t *testing.T) (*engine.Engine, string) {
	t.Helper()
	reg := ringi.NewRegistry()
	var ran ringitest.Effects
	ran.Tool(reg, ringi.Tool{Name: "read_key", Effect: ringi.ReadOnly, DataClass: ringi.SecretAdjacent}, "s3cret")
	e := ringitest.Engine(t, engine.Config{Registry: reg, Zone: ringi.ZoneLocal, Model: ringitest.Script(ringitest.Calls(ringitest.Call("read_key", `{}`)), ringitest.Text("read"))})
	res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Read.")}})
	if err != nil || res.Text != "read" {
		t.Fatalf("%+v, %v", res, err)
	}
	ran.WantOnce(t, "read_key")
	return e, res.Thread
}

// Whoever chose the chain, no model of it is sent what one of them must not read,
// not even the first, which might.
func TestS20_NoModelOfAChainGetsWhatOneMustNotRead(t *testing.T) {
	for name, change := range map[string]func(*engine.Config, ringi.Model){
		"Config": func(c *engine.Config, m ringi.Model) { c.Model = m },
		"PrepareStep": func(c *engine.Config, m ringi.Model) {
			c.PrepareStep = func(context.Context, engine.StepInfo) (engine.StepPlan, error) { return engine.StepPlan{Model: m}, nil }
		},
		"PrepareStepSaysLocal": func(c *engine.Config, m ringi.Model) {
			c.PrepareStep = func(context.Context, engine.StepInfo) (engine.StepPlan, error) {
				return engine.StepPlan{Model: m, Zone: ringi.ZoneLocal}, nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, thread := secretThread(t)
			first, second := ringitest.Script(ringitest.Text("first")), ringitest.Script(ringitest.Text("second"))
			chain := provider.Fallback(provider.Choice{Model: first, Zone: ringi.ZoneLocal}, provider.Choice{Model: second, Zone: ringi.ZoneExternalGlobal})
			e = ringitest.Restart(t, e, func(c *engine.Config) { change(c, chain) })
			res, err := e.Run(context.Background(), ringi.RunStart{Thread: thread, Messages: []ringi.Message{ringi.User("And?")}})
			if err != nil || res.Status != ringi.Failed || res.Reason != ringi.ReasonTrustZone {
				t.Errorf("run is %s (%s), %v", res.Status, res.Reason, err)
			}
			if len(first.Requests())+len(second.Requests()) != 0 {
				t.Error("a model was asked")
			}
		})
	}
}

func TestS20_AChainIsOfferedWhatItsLeastTrustedChoiceIs(t *testing.T) {
	e, _ := secretThread(t)
	first := ringitest.Script(ringitest.Text("first"))
	e = ringitest.Restart(t, e, func(c *engine.Config) {
		c.Model = provider.Fallback(provider.Choice{Model: first, Zone: ringi.ZoneLocal}, provider.Choice{Model: ringitest.Script(), Zone: ringi.ZoneExternalEU})
	})
	if _, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("Read.")}}); err != nil {
		t.Fatal(err)
	}
	if tools := first.Requests()[0].Tools; len(tools) != 0 {
		t.Errorf("offered %v", tools)
	}
	if why := e.Explain("read_key", ringi.RunInfo{}); why.Offered || !strings.Contains(why.String(), "trust_zone") {
		t.Errorf("explained as %s", why)
	}
}
