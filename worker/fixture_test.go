package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/memory"
	"github.com/ringi-dev/ringi/store/sqlite"
	"github.com/ringi-dev/ringi/worker"
)

var (
	ana = ringi.Principal{ID: "ana", Name: "Ana", Kind: ringi.Person, Auth: "test"}
	ask = ringi.RunStart{By: ana, Messages: []ringi.Message{ringi.User("pay it")}}
)

// payer is a model that asks for one payment and then says that it is done.
type payer struct{}

func (payer) Generate(_ context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		t := &ringi.ModelTurn{Text: "done"}
		if len(req.Messages[len(req.Messages)-1].Results) == 0 {
			t = &ringi.ModelTurn{Finish: ringi.FinishCalls, Calls: []ringi.ToolCall{{ModelID: "m", Tool: "pay", Input: `{}`}}}
		}
		yield(ringi.ModelEvent{Turn: t}, nil)
	}
}

// till counts payments by run: the world outside.
type till struct {
	mu   sync.Mutex
	paid map[string]int
	do   func(ctx context.Context, runID string) // beside counting; may be nil
}

func (p *till) registry(t testing.TB) *ringi.Registry {
	t.Helper()
	p.paid = map[string]int{}
	reg := ringi.NewRegistry()
	err := reg.Add(ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
			tc, _ := ringi.ToolContextFrom(ctx)
			p.mu.Lock()
			p.paid[tc.RunID]++
			p.mu.Unlock()
			if p.do != nil {
				p.do(ctx, tc.RunID)
			}
			return ringi.ToolResult{Output: "paid"}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func (p *till) count(run string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paid[run]
}

// overStores runs a test over each store, woken by it and not.
func overStores(t *testing.T, test func(t *testing.T, open func(wake func(space, run string)) ringi.Store)) {
	t.Run("memory", func(t *testing.T) {
		test(t, func(wake func(space, run string)) ringi.Store { return memory.New(memory.Options{Wake: wake}) })
	})
	t.Run("sqlite", func(t *testing.T) {
		test(t, func(wake func(space, run string)) ringi.Store {
			return openSQLite(t, filepath.Join(t.TempDir(), "ringi.db"), wake)
		})
	})
}

func openSQLite(t testing.TB, path string, wake func(space, run string)) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, sqlite.Options{Woken: wake})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newEngine(t testing.TB, cfg engine.Config) *engine.Engine {
	t.Helper()
	if cfg.Model == nil {
		cfg.Model = payer{}
	}
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// runs starts a worker, and returns what ends it and gives what Run gave.
func runs(t testing.TB, w *worker.Worker, store ringi.Store, e worker.Engine) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, store, e) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			err = <-ended
		})
		return err
	}
	t.Cleanup(func() { stop() })
	return stop
}

// suspended starts a run that waits for an approval.
func suspended(t testing.TB, e *engine.Engine) ringi.ApprovalRequest {
	t.Helper()
	res, err := e.Run(t.Context(), ask)
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("run: %v, %+v", err, res)
	}
	return res.Pending[0]
}

// decided starts a run and approves what it asks for: it is queued.
func decided(t testing.TB, e *engine.Engine) string {
	t.Helper()
	r := suspended(t, e)
	if _, err := e.Decide(t.Context(), r.Approve(ana)); err != nil {
		t.Fatal(err)
	}
	return r.RunID
}

// ends waits until a run has ended, and returns its row.
func ends(t testing.TB, store ringi.Store, run string) ringi.RunRow {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		row, err := store.Row(t.Context(), "default", run)
		if err != nil {
			t.Fatal(err)
		}
		if row.Status.Final() {
			return row
		}
		if time.Since(begun) > 90*time.Second {
			t.Fatalf("run %s is %s after 20 s", run, row.Status)
		}
	}
}

// tries counts what a worker asks of an engine, and may answer in its place.
type tries struct {
	worker.Engine
	answer func(ctx context.Context, run string) (*ringi.Result, error) // nil: the engine's

	mu  sync.Mutex
	n   map[string]int
	all int
}

func (c *tries) Resume(ctx context.Context, run string) (*ringi.Result, error) {
	c.mu.Lock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[run]++
	c.all++
	c.mu.Unlock()
	if c.answer != nil {
		return c.answer(ctx, run)
	}
	return c.Engine.Resume(ctx, run)
}

func (c *tries) of(run string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[run]
}

// lines is a logger that keeps what it is told.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.buf.Bytes(), []byte(text))
}
