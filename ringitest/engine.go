package ringitest

import (
	"context"
	"sync"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/memory"
)

// process is an engine as a process: what it was made of, and its hold on the
// store.
type process struct {
	cfg    engine.Config // Store is the one beneath the handle
	handle *handle
	crash  *Crash
}

// processes finds what an engine was made of: an engine does not tell. Each
// entry goes when its test ends.
var processes sync.Map // *engine.Engine to *process

// Engine makes an engine for a test. Where cfg leaves them out it gets a memory
// store, a [Clock] that stands still and fixed [IDs]; all else is as
// [engine.New] takes it. A fault in cfg fails the test.
//
// cfg.Now is the clock of that memory store; a store of your own has its own,
// and must outlive the engine: Engine does not close it.
func Engine(t testing.TB, cfg engine.Config) *engine.Engine {
	t.Helper()
	return open(t, complete(cfg), nil)
}

func complete(cfg engine.Config) engine.Config {
	if cfg.Now == nil {
		cfg.Now = new(Clock).Now
	}
	if cfg.NewID == nil {
		cfg.NewID = new(IDs).New
	}
	if cfg.Store == nil {
		cfg.Store = memory.New(memory.Options{Now: cfg.Now})
	}
	return cfg
}

func open(t testing.TB, cfg engine.Config, c *Crash) *engine.Engine {
	t.Helper()
	p := &process{cfg: cfg, handle: &handle{store: cfg.Store, crash: c}, crash: c}
	c.watch(p.handle)
	cfg.Store = p.handle
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatalf("make engine: %v", err)
	}
	processes.Store(e, p)
	t.Cleanup(func() { processes.Delete(e) })
	return e
}

// Restart ends the process that e stands for and starts another on its store:
// nothing in memory survives, the store's data does. Whatever e still does from
// now on is refused with [ErrCrashed], and its leases are free. A change is
// applied to the configuration: the program's new version, or one that lacks
// something.
//
// e must come from [Engine], [Restart] or [Beside].
func Restart(t testing.TB, e *engine.Engine, changes ...func(*engine.Config)) *engine.Engine {
	t.Helper()
	p := processOf(t, e)
	p.handle.die()
	for owner := range p.handle.owners() {
		if err := p.cfg.Store.Beat(context.Background(), owner, 0); err != nil {
			t.Fatalf("restart: end the leases of the old process: %v", err)
		}
	}
	return open(t, changed(p.cfg, changes), p.crash)
}

// Beside starts another process on e's store, while e lives on. A change is
// applied to its configuration.
func Beside(t testing.TB, e *engine.Engine, changes ...func(*engine.Config)) *engine.Engine {
	t.Helper()
	p := processOf(t, e)
	return open(t, changed(p.cfg, changes), p.crash)
}

func changed(cfg engine.Config, changes []func(*engine.Config)) engine.Config {
	for _, change := range changes {
		change(&cfg)
	}
	return cfg
}

func processOf(t testing.TB, e *engine.Engine) *process {
	t.Helper()
	p, ok := processes.Load(e)
	if !ok {
		t.Fatal("this engine was not made by ringitest.Engine")
	}
	return p.(*process)
}

// Settle brings a run to its end, or to where a reaction gives no decision: it
// answers what is pending, resumes, and looks again. The reaction is asked for
// every request once. Any other error fails the test.
func Settle(t testing.TB, e *engine.Engine, res *ringi.Result, react Reaction) *ringi.Result {
	t.Helper()
	ctx := context.Background()
	for asked := map[string]bool{}; res.Status.Waiting(); {
		before := len(asked)
		for _, r := range res.Pending {
			if asked[r.ID] {
				continue
			}
			asked[r.ID] = true
			d, err := react(r)
			if err != nil {
				return res
			}
			if _, err := e.Decide(ctx, d); err != nil {
				t.Fatalf("settle run %s: %v", res.RunID, err)
			}
		}
		if len(asked) == before {
			return res
		}
		next, err := e.Resume(ctx, res.RunID)
		if err != nil {
			t.Fatalf("settle run %s: %v", res.RunID, err)
		}
		res = next
	}
	return res
}
