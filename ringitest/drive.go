package ringitest

import (
	"context"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// This file drives a scenario's runs over the death of its process.

// Do calls f with the engine that lives. Where the process dies in it, f is
// called again with a new one, unless it returned nil: so f looks what is there
// and goes on. Its context marks what belongs to the process: pass it on.
func (c *Crash) Do(f func(ctx context.Context, e *engine.Engine) error) error {
	c.t.Helper()
	if c.e == nil {
		c.t.Fatal("the scenario has no engine: make it with Crash.Engine")
	}
	for {
		err := f(context.WithValue(context.Background(), lifeKey{}, c.life()), c.e)
		if !c.restarted() || err == nil {
			return err
		}
	}
}

type lifeKey struct{}

// life counts the scenario's processes.
func (c *Crash) life() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.restarts
}

// restarted starts another process where the present one has died.
func (c *Crash) restarted() bool {
	c.t.Helper()
	c.mu.Lock()
	dead := c.deaths > c.restarts
	if dead {
		c.restarts++
		c.commits, c.starts, c.handles = 0, 0, nil
	}
	c.mu.Unlock()
	if dead {
		c.e = Restart(c.t, c.e)
	}
	return dead
}

// Run starts a run and brings it to its end, or to where it waits, over the
// crash: a run that was recorded is resumed, another is started again.
func (c *Crash) Run(start ringi.RunStart) *ringi.Result {
	c.t.Helper()
	known := c.runs()
	var res *ringi.Result
	err := c.Do(func(ctx context.Context, e *engine.Engine) (err error) {
		for id := range c.runs() {
			if !known[id] {
				res, err = e.Resume(ctx, id)
				return err
			}
		}
		res, err = e.Run(ctx, start)
		return err
	})
	if err != nil {
		c.t.Fatalf("run: %v", err)
	}
	return res
}

// Resume goes on with a run, over the crash.
func (c *Crash) Resume(runID string) *ringi.Result {
	c.t.Helper()
	var res *ringi.Result
	err := c.Do(func(ctx context.Context, e *engine.Engine) (err error) {
		res, err = e.Resume(ctx, runID)
		return err
	})
	if err != nil {
		c.t.Fatalf("resume run %s: %v", runID, err)
	}
	return res
}

// runs are the ids of the stored runs that no tool started.
func (c *Crash) runs() map[string]bool {
	c.t.Helper()
	space := c.cfg.Space
	if space == "" {
		space = "default"
	}
	rows, err := c.cfg.Store.Runs(context.Background(), ringi.RunQuery{Space: space, Limit: 1000})
	if err != nil {
		c.t.Fatalf("list runs: %v", err)
	}
	ids := map[string]bool{}
	for _, row := range rows {
		if row.Parent == "" {
			ids[row.ID] = true
		}
	}
	return ids
}

// Decide gives one decision, over the crash: one that was recorded before the
// process died stands. It reports whether the reaction gave one.
func (c *Crash) Decide(requestID string, react Reaction) bool {
	c.t.Helper()
	answered := true
	first := c.life()
	err := c.Do(func(ctx context.Context, e *engine.Engine) error {
		r, err := e.Request(ctx, requestID)
		if err != nil || r.State != ringi.Pending && c.life() > first {
			return err
		}
		d, err := react(r)
		if err != nil {
			answered = false
			return nil
		}
		_, err = e.Decide(ctx, d)
		return err
	})
	if err != nil {
		c.t.Fatalf("decide request %s: %v", requestID, err)
	}
	return answered
}

// Settle is [Settle] over the crash.
func (c *Crash) Settle(res *ringi.Result, react Reaction) *ringi.Result {
	c.t.Helper()
	for asked := map[string]bool{}; res.Status.Waiting(); {
		before := len(asked)
		for _, r := range res.Pending {
			if asked[r.ID] {
				continue
			}
			asked[r.ID] = true
			if !c.Decide(r.ID, react) {
				return res
			}
		}
		if len(asked) == before {
			return res
		}
		res = c.Resume(res.RunID)
	}
	return res
}
