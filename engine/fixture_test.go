package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/memory"
)

// The fixture of this package's tests: a model that says turns, tools that
// write down what ran, and a clock that a test moves.

var (
	ana = ringi.Principal{ID: "ana", Name: "Ana", Kind: ringi.Person, Auth: "test"}
	ben = ringi.Principal{ID: "ben", Name: "Ben", Kind: ringi.Person, Auth: "test"}
)

// world is everything outside one engine: it survives restarts.
type world struct {
	t     *testing.T
	mu    sync.Mutex
	ran   []string // "tool input"
	seen  []ringi.ModelRequest
	clock time.Time
	store *memory.Store
	reg   *ringi.Registry
	cfg   engine.Config
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), reg: ringi.NewRegistry()}
	w.store = memory.New(memory.Options{Now: w.now})
	w.tool(ringi.Tool{Name: "find", Effect: ringi.ReadOnly}, nil)
	w.tool(ringi.Tool{Name: "look", Effect: ringi.ReadOnly}, nil)
	w.tool(ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, AllowEdit: true, AllowRespond: true}, nil)
	w.tool(ringi.Tool{Name: "put", Effect: ringi.IdempotentWrite}, nil)
	w.cfg = engine.Config{Registry: w.reg, Store: w.store}
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
}

// tool registers a raw tool; do is what it does beside being written down.
func (w *world) tool(t ringi.Tool, do func(ctx context.Context, call ringi.ToolCall) (ringi.ToolResult, error), hooks ...ringi.ToolHooks) {
	w.t.Helper()
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	err := w.reg.Add(t, func(ctx context.Context, call ringi.ToolCall) (ringi.ToolResult, error) {
		w.mu.Lock()
		w.ran = append(w.ran, call.Tool+" "+string(call.Input))
		w.mu.Unlock()
		if do != nil {
			return do(ctx, call)
		}
		return ringi.ToolResult{Output: "ok " + call.Tool}, nil
	}, hooks...)
	if err != nil {
		w.t.Fatal(err)
	}
}

// says makes the model say these turns, by step, whatever process asks.
func (w *world) says(turns ...*ringi.ModelTurn) {
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		w.mu.Lock()
		w.seen = append(w.seen, req)
		w.mu.Unlock()
		if req.Step <= len(turns) {
			return turns[req.Step-1]
		}
		return &ringi.ModelTurn{Text: "done"}
	})
}

type modelFunc func(ringi.ModelRequest) *ringi.ModelTurn

func (f modelFunc) Generate(_ context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		t := f(req)
		if t == nil {
			yield(ringi.ModelEvent{}, errors.New("model is down"))
			return
		}
		yield(ringi.ModelEvent{Turn: t}, nil)
	}
}

// calls makes a turn: "tool", "input", "tool", "input" …
func calls(pairs ...string) *ringi.ModelTurn {
	t := &ringi.ModelTurn{}
	for i := 0; i < len(pairs); i += 2 {
		t.Calls = append(t.Calls, ringi.ToolCall{ModelID: "m" + pairs[i], Tool: pairs[i], Input: ringi.Input(pairs[i+1])})
	}
	return t
}

func (w *world) engine() *engine.Engine {
	w.t.Helper()
	e, err := engine.New(w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// restart is another process: nothing in memory survives, and the leases of
// the old one are over.
func (w *world) restart() *engine.Engine {
	w.advance(time.Minute)
	return w.engine()
}

func (w *world) run(e *engine.Engine, start ringi.RunStart) *ringi.Result {
	w.t.Helper()
	if start.Messages == nil {
		start.Messages = []ringi.Message{ringi.User("go")}
	}
	res, err := e.Run(w.t.Context(), start)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

func (w *world) resume(e *engine.Engine, id string) *ringi.Result {
	w.t.Helper()
	res, err := e.Resume(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

func (w *world) decide(e *engine.Engine, d ringi.Decision) ringi.Settled {
	w.t.Helper()
	set, err := e.Decide(w.t.Context(), d)
	if err != nil {
		w.t.Fatal(err)
	}
	return set
}

// wantRan compares what ran, in order.
func (w *world) wantRan(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.ran, want) {
		w.t.Errorf("ran %q, want %q", w.ran, want)
	}
}

func (w *world) count(tool string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.ran {
		if strings.HasPrefix(r, tool+" ") {
			n++
		}
	}
	return n
}

func wantStatus(t *testing.T, res *ringi.Result, want ringi.RunStatus, pending int) {
	t.Helper()
	if res.Status != want || len(res.Pending) != pending {
		t.Fatalf("run is %s (%s, %s) with %d pending, want %s with %d", res.Status, res.Reason, res.Detail, len(res.Pending), want, pending)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// eventually waits for what another goroutine is about to do.
func (w *world) eventually(holds func() bool) {
	w.t.Helper()
	for range 5000 {
		if holds() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	w.t.Fatal("it never came")
}
