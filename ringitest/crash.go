package ringitest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ringi-dev/ringi/engine"
)

// ErrCrashed is what everything returns that a process does after its death.
var ErrCrashed = errors.New("this process has crashed")

// Crashes runs a scenario once, undisturbed, and counts its commits and the
// handlers that it starts. Then it runs it again, a subtest each, for every
// point at which its process can die: before and after every commit, before
// every handler, and behind every handler's effect before its result is told.
// From that point the process's engine is dead; the scenario goes on with
// another one on the same store, and its own assertions say what must hold.
//
// The scenario makes its engine with [Crash.Engine] and its tools with
// [Crash.Effects]; everything else of it must be made anew each time. It drives
// its runs with [Crash.Run], [Crash.Settle] and [Crash.Do], which take them over
// the crash:
//
//	ringitest.Crashes(t, func(t *testing.T, c *ringitest.Crash) {
//		reg := ringi.NewRegistry()
//		c.Effects.Tool(reg, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite}, "paid")
//		c.Engine(engine.Config{Registry: reg, Model: ringitest.Script(
//			ringitest.Calls(ringitest.Call("pay", `{}`)), ringitest.Text("Done."))})
//		res := c.Settle(c.Run(ringi.RunStart{}), ringitest.Witness(ringitest.Ana, &c.Effects))
//		c.Effects.WantOnce(t)
//		if err := res.Err(); err != nil {
//			t.Error(err)
//		}
//	})
func Crashes(t *testing.T, scenario func(t *testing.T, c *Crash)) {
	t.Helper()
	crashes(t, scenario, nil, 1)
}

// CrashesTwice is [Crashes] with a second death, at every point of what the
// first one left to do: a crash in the recovery from a crash. It runs about the
// square of the number of points.
func CrashesTwice(t *testing.T, scenario func(t *testing.T, c *Crash)) {
	t.Helper()
	crashes(t, scenario, nil, 2)
}

// crashes runs a scenario with the given deaths, and again for each point of
// its last life, where deaths are left to die.
func crashes(t *testing.T, scenario func(t *testing.T, c *Crash), deaths []point, left int) {
	t.Helper()
	c := &Crash{t: t, points: deaths}
	c.Effects.crash = c
	scenario(t, c)
	switch {
	case t.Failed():
		return
	case c.e == nil || len(deaths) == 0 && c.commits == 0:
		t.Fatal("the scenario made no commit: its engine is made by Crash.Engine, and its runs are driven by the Crash")
	case !c.Struck():
		t.Log("this point was not reached: the scenario takes another way each time")
		return
	case left == 0:
		return
	}
	for _, p := range points(c.commits, c.starts) {
		t.Run(p.String(), func(t *testing.T) { crashes(t, scenario, append(slices.Clip(deaths), p), left-1) })
	}
}

// moment is where, around a commit or a handler, the process dies.
type moment string

const (
	beforeCommit  moment = "before_commit"
	afterCommit   moment = "after_commit"
	beforeHandler moment = "before_handler"
	afterEffect   moment = "after_effect"
)

// point is one place to die; n counts from 1 in a life.
type point struct {
	at moment
	n  int
}

func (p point) String() string { return fmt.Sprintf("%s_%d", p.at, p.n) }

func points(commits, starts int) []point {
	var all []point
	for n := 1; n <= commits; n++ {
		all = append(all, point{beforeCommit, n}, point{afterCommit, n})
	}
	for n := 1; n <= starts; n++ {
		all = append(all, point{beforeHandler, n}, point{afterEffect, n})
	}
	return all
}

// Crash is one run of a scenario, with the points at which its processes die.
type Crash struct {
	// Effects counts what handlers did. It is the world: it survives the crash.
	// Only handlers that it counts have crash points of their own.
	Effects Effects

	t      *testing.T
	points []point // one a life
	cfg    engine.Config
	e      *engine.Engine

	mu       sync.Mutex
	commits  int // of this life
	starts   int // of this life
	deaths   int
	restarts int
	handles  []*handle // of this life
}

// Engine makes the scenario's engine, as [Engine] does: once.
func (c *Crash) Engine(cfg engine.Config) *engine.Engine {
	c.t.Helper()
	if c.e != nil {
		c.t.Fatal("a scenario makes its engine once; Beside starts another process")
	}
	c.cfg = complete(cfg)
	c.e = open(c.t, c.cfg, c)
	return c.e
}

// Struck reports whether every death of this run has come. It is true from the
// start in the first, undisturbed one.
func (c *Crash) Struck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deaths == len(c.points)
}

// watch takes a process's handle in: it dies with the machine.
func (c *Crash) watch(h *handle) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handles = append(c.handles, h)
}

// beforeCommit counts a commit and returns its number.
func (c *Crash) beforeCommit(h *handle) int {
	if c == nil || h.isDead() {
		return 0
	}
	c.mu.Lock()
	c.commits++
	n := c.commits
	c.mu.Unlock()
	c.strike(beforeCommit, n)
	return n
}

// afterCommit reports whether the process died behind its nth commit.
func (c *Crash) afterCommit(h *handle, n int) bool {
	return c != nil && n > 0 && !h.isDead() && c.strike(afterCommit, n)
}

// beforeHandler counts a start and returns its number. A handler of a dead
// process gets an error, and so does one whose process dies here.
func (c *Crash) beforeHandler(ctx context.Context) (int, error) {
	if c == nil {
		return 0, nil
	}
	if c.late(ctx) {
		return 0, ErrCrashed
	}
	c.mu.Lock()
	c.starts++
	n := c.starts
	c.mu.Unlock()
	if c.strike(beforeHandler, n) {
		return n, ErrCrashed
	}
	return n, nil
}

// afterHandler returns an error that nobody reads, where the process has died
// or dies here: its handle refuses what the engine would record.
func (c *Crash) afterHandler(ctx context.Context, n int) error {
	if c != nil && (c.late(ctx) || c.strike(afterEffect, n)) {
		return ErrCrashed
	}
	return nil
}

// late reports whether a handler belongs to a process that has died.
func (c *Crash) late(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	life, marked := ctx.Value(lifeKey{}).(int)
	return c.deaths > c.restarts || marked && life < c.restarts
}

// strike ends every process of the scenario, where this is the point.
func (c *Crash) strike(at moment, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaths > c.restarts || c.deaths == len(c.points) || c.points[c.deaths] != (point{at, n}) {
		return false
	}
	c.deaths++
	for _, h := range c.handles {
		h.die()
	}
	return true
}
