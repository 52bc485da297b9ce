package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

var ana = ringi.Principal{ID: "ana", Name: "Ana", Kind: ringi.Person}

const system = "You keep the books.\nBe brief."

// stage is a vendor's fake server, a model over it, and an engine with tools.
type stage struct {
	t      testing.TB
	v      *Vendor
	server *Server
	ran    ringitest.Effects
	clock  ringitest.Clock
	e      *engine.Engine
	n      int // answers so far
	result *ringi.Result
}

func (v *Vendor) stage(t testing.TB, answers ...Answer) *stage {
	t.Helper()
	g := &stage{t: t, v: v, server: NewServer(t)}
	g.says(answers...)
	g.open(v.Model(t, Setup{URL: g.server.URL, Key: g.server.Key}))
	return g
}

// open makes the engine.
func (g *stage) open(m ringi.Model) {
	g.t.Helper()
	reg := ringi.NewRegistry()
	g.tools(reg)
	g.e = ringitest.Engine(g.t, engine.Config{Registry: reg, Model: m, System: system, Now: g.clock.Now,
		Limits:   ringi.Limits{ModelRetries: -1},
		Approval: ringi.Approval{Tools: map[string]ringi.ToolApproval{"boom": {Status: ringi.NotApplicable}}}})
}

func (g *stage) tools(reg *ringi.Registry) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","description":"Cents, \u003c 2^63"},"note":{"type":"string"}},"required":["n"],"additionalProperties":false}`)
	g.ran.Tool(reg, ringi.Tool{Name: "pay", Description: "Pays an amount.", InputSchema: schema,
		Effect: ringi.NonIdempotentWrite, AllowEdit: true, AllowRespond: true}, `{"paid":true}`)
	g.ran.Tool(reg, ringi.Tool{Name: "look", Description: "Looks <something> up & tells.", Effect: ringi.ReadOnly}, `{"found":"äöü 🧾 \u2028"}`)
	fails := func(err func() error) ringi.ToolHandler {
		return g.ran.Handler(func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) { return ringi.ToolResult{}, err() })
	}
	must(g.t, reg.Add(ringi.Tool{Name: "fail", Effect: ringi.ReadOnly}, fails(func() error { return errors.New("the ledger is closed") })))
	must(g.t, reg.Add(ringi.Tool{Name: "boom", Effect: ringi.NonIdempotentWrite}, fails(func() error { panic("boom") })))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// says adds answers to the server's script.
func (g *stage) says(answers ...Answer) {
	for _, a := range answers {
		g.n++
		a.N = g.n
		g.server.Add(Reply{Header: g.v.Header, Frames: g.v.Stream(a)})
	}
}

// run starts a run on a thread; "" is a new one.
func (g *stage) run(thread, text string) *ringi.Result {
	g.t.Helper()
	res, err := g.e.Run(context.Background(), ringi.RunStart{Thread: thread, Messages: []ringi.Message{ringi.User(text)}})
	if err != nil {
		g.t.Fatalf("run: %v", err)
	}
	g.result = res
	return res
}

// waits fails the test where the run does not wait for so many requests.
func (g *stage) waits(n int) []ringi.ApprovalRequest {
	g.t.Helper()
	if !g.result.Status.Waiting() || len(g.result.Pending) != n {
		g.t.Fatalf("run is %s (%s %s) with %d requests, want %d", g.result.Status, g.result.Reason, g.result.Detail, len(g.result.Pending), n)
	}
	return g.result.Pending
}

// decide records a decision and, where an edit asks again, approves what it
// proposes.
func (g *stage) decide(d ringi.Decision) {
	g.t.Helper()
	settled, err := g.e.Decide(context.Background(), d)
	if err != nil {
		g.t.Fatalf("decide: %v", err)
	}
	if d.Answer == ringi.Edit {
		g.decide(settled.Request.Approve(ana))
	}
}

// resume goes on in another process.
func (g *stage) resume() *ringi.Result {
	g.t.Helper()
	g.e = ringitest.Restart(g.t, g.e)
	res, err := g.e.Resume(context.Background(), g.result.RunID)
	if err != nil {
		g.t.Fatalf("resume: %v", err)
	}
	g.result = res
	return res
}

// done fails the test where the run has not ended with the text.
func (g *stage) done(text string) {
	g.t.Helper()
	if g.result.Status != ringi.Completed || g.result.Text != text {
		g.t.Fatalf("run is %s (%s %s), its text %q, want %q", g.result.Status, g.result.Reason, g.result.Detail, g.result.Text, text)
	}
}

// sent reads the newest body.
func (g *stage) sent() *Request {
	g.t.Helper()
	bodies := g.server.Bodies()
	if len(bodies) == 0 {
		g.t.Fatal("nothing was sent")
	}
	return g.v.read(g.t, bodies[len(bodies)-1])
}

// checked reads every body, holds them to growing at the end alone, and
// compares them with the golden file.
func (g *stage) checked(scenario string) {
	g.t.Helper()
	bodies := g.server.Bodies()
	g.v.grows(g.t, bodies)
	g.v.golden(g.t, scenario, bodies)
	for i, h := range g.server.Headers() {
		if !g.v.KeyIn(h, g.server.Key) {
			g.t.Errorf("request %d came without its key", i)
		}
	}
}

// generate reads one stream of a model, without an engine.
func generate(ctx context.Context, m ringi.Model, req ringi.ModelRequest) (events []ringi.ModelEvent, turn *ringi.ModelTurn, err error) {
	for ev, e := range m.Generate(ctx, req) {
		switch {
		case e != nil:
			err = errors.Join(err, e)
		case ev.Turn != nil && turn != nil:
			err = errors.Join(err, errors.New("two turns"))
		case ev.Turn != nil:
			turn = ev.Turn
		case turn != nil:
			err = errors.Join(err, errors.New("an event behind the turn"))
		default:
			events = append(events, ev)
		}
	}
	return events, turn, err
}

// deltas are what a stream told, put together: text, reasoning, and the input
// of each call.
func deltas(events []ringi.ModelEvent) (text, reasoning string, inputs map[int]string) {
	var t, r strings.Builder
	inputs = map[int]string{}
	for _, ev := range events {
		t.WriteString(ev.TextDelta)
		r.WriteString(ev.ReasoningDelta)
		if ev.InputDelta != "" {
			inputs[ev.CallIndex] += ev.InputDelta
		}
	}
	return t.String(), r.String(), inputs
}

// within fails the test where f does not end in time.
func within(t testing.TB, d time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("still going after %s", d)
	}
}

// useModel goes on with another model.
func useModel(m ringi.Model) func(*engine.Config) {
	return func(c *engine.Config) { c.Model = m }
}

// firstThen answers the first step itself, and leaves the others to a model.
type firstThen struct {
	first ringi.ModelTurn
	then  ringi.Model
}

func (f firstThen) Generate(ctx context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	if req.Step > 1 {
		return f.then.Generate(ctx, req)
	}
	return func(yield func(ringi.ModelEvent, error) bool) {
		turn := f.first
		yield(ringi.ModelEvent{Turn: &turn}, nil)
	}
}
