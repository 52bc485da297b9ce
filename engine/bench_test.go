package engine_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/sign"
)

// The rows of the speed table. The model says the turns that its step asks
// for, so that what is measured is the path.

// turns is a model whose answer depends on the step alone.
type turns func(step int) *ringi.ModelTurn

func (f turns) Generate(_ context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		yield(ringi.ModelEvent{Turn: f(req.Step)}, nil)
	}
}

type orderIn struct {
	ID string `json:"id"`
	N  int64  `json:"n"`
}

type orderOut struct {
	Status string `json:"status"`
}

func benchTools(tb testing.TB) *ringi.Registry {
	r := ringi.NewStrictRegistry()
	ringi.MustAddTool(r, ringi.Tool{Name: "find_order", Description: "Find an order.", Effect: ringi.ReadOnly},
		func(_ context.Context, in orderIn) (orderOut, error) { return orderOut{"shipped"}, nil })
	ringi.MustAddTool(r, ringi.Tool{Name: "refund", Description: "Refund an order.", Effect: ringi.NonIdempotentWrite},
		func(_ context.Context, in orderIn) (orderOut, error) { return orderOut{"refunded"}, nil })
	return r
}

// steps makes a model that calls a tool n times in each of k steps, and then
// says that it is done.
func steps(tool string, k, n int) turns {
	said := make([]*ringi.ModelTurn, k)
	for i := range said {
		t := &ringi.ModelTurn{}
		for c := range n {
			t.Calls = append(t.Calls, ringi.ToolCall{ModelID: fmt.Sprint("c", i, c), Tool: tool, Input: `{"id":"A-1017","n":3}`})
		}
		said[i] = t
	}
	done := &ringi.ModelTurn{Text: "done"}
	return func(step int) *ringi.ModelTurn {
		if step <= k {
			return said[step-1]
		}
		return done
	}
}

func keyring(tb testing.TB) *sign.Keyring {
	k, err := sign.New([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func benchEngine(tb testing.TB, cfg engine.Config) *engine.Engine {
	cfg.Registry = benchTools(tb)
	e, err := engine.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

var ask = ringi.RunStart{Messages: []ringi.Message{ringi.User("Where is order A-1017?")}}

func runs(b *testing.B, cfg engine.Config, start ringi.RunStart) {
	b.ReportAllocs()
	e := benchEngine(b, cfg)
	n := 0
	for b.Loop() {
		if n++; n%5000 == 0 { // a store that only grows measures the collector
			b.StopTimer()
			e = benchEngine(b, cfg)
			b.StartTimer()
		}
		res, err := e.Run(context.Background(), start)
		if err != nil || res.Err() != nil {
			b.Fatal(err, res.Err())
		}
	}
}

// BenchmarkToolCall is row A: one tool call and a final text, no approval, a
// declared read.
func BenchmarkToolCall(b *testing.B) {
	b.Run("plain", func(b *testing.B) { runs(b, engine.Config{Model: steps("find_order", 1, 1)}, ask) })
	b.Run("keyed", func(b *testing.B) {
		runs(b, engine.Config{Model: steps("find_order", 1, 1), Keyring: keyring(b)}, ask)
	})
}

// BenchmarkTenSteps is row C: ten steps of three calls, and a final text.
func BenchmarkTenSteps(b *testing.B) {
	l := ringi.Limits{Steps: -1, ToolCalls: -1}
	b.Run("plain", func(b *testing.B) { runs(b, engine.Config{Model: steps("find_order", 10, 3), Limits: l}, ask) })
	b.Run("keyed", func(b *testing.B) {
		runs(b, engine.Config{Model: steps("find_order", 10, 3), Limits: l, Keyring: keyring(b)}, ask)
	})
}

// BenchmarkHundredSteps shows that cost is linear in the steps.
func BenchmarkHundredSteps(b *testing.B) {
	runs(b, engine.Config{Model: steps("find_order", 100, 3), Limits: ringi.Limits{Steps: -1, ToolCalls: -1}}, ask)
}

// BenchmarkApproval is row B: the call pauses, is encoded, signed and stored,
// then approved and finished.
func BenchmarkApproval(b *testing.B) {
	for _, c := range []struct {
		name string
		key  *sign.Keyring
	}{{"plain", nil}, {"keyed", keyring(b)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			cfg := engine.Config{Model: steps("refund", 1, 1), Keyring: c.key}
			e := benchEngine(b, cfg)
			by := ringi.Principal{ID: "ana", Kind: ringi.Person, Auth: "test"}
			ctx := context.Background()
			n := 0
			for b.Loop() {
				if n++; n%5000 == 0 {
					b.StopTimer()
					e = benchEngine(b, cfg)
					b.StartTimer()
				}
				res, err := e.Run(ctx, ask)
				if err != nil || len(res.Pending) != 1 {
					b.Fatal(err, res)
				}
				if _, err := e.Decide(ctx, res.Pending[0].Approve(by)); err != nil {
					b.Fatal(err)
				}
				if res, err = e.Resume(ctx, res.RunID); err != nil || res.Err() != nil || !res.Results[0].Executed() {
					b.Fatal(err, res)
				}
			}
		})
	}
}
