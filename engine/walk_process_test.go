package engine_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// What befalls a life of the walk: in its handlers, and between its commits.

// handle is every tool: it tells the world that it ran, and meets its fate.
func (k *walk) handle(ctx context.Context, call ringi.ToolCall) (ringi.ToolResult, error) {
	tc, _ := ringi.ToolContextFrom(ctx)
	k.mu.Lock()
	k.running++
	defer k.leave()
	k.effects = append(k.effects, effect{run: tc.RunID, call: call.ID, tool: call.Tool, key: tc.Key, input: call.Input})
	f := answers
	if len(k.fates) > 0 && ctx.Err() == nil { // one that begins too late meets nothing more
		f, k.fates = k.fates[0], k.fates[1:]
	}
	proc, e, stop := k.proc, k.e, k.stops
	k.mu.Unlock()
	away := context.Background()
	switch f {
	case fails:
		return ringi.ToolResult{}, errors.New("no funds")
	case notDone:
		return ringi.ToolResult{}, ringi.NotDone(errors.New("refused"))
	case panics:
		panic("boom")
	case dies:
		proc.die()
	case late:
		if walkEffect(call.Tool) != ringi.ReadOnly {
			<-ctx.Done()
		}
	case cancels, cut:
		k.tolerate(e.Cancel(away, tc.RunID, ben, "meanwhile", f == cut), ringi.ErrFinal)
	case decisions:
		k.decideAll(away, e, tc.RunID)
	case hangsUp:
		stop()
	case sleeps:
		k.w.advance(90 * time.Second)
	case stolen:
		k.steal(away, tc.RunID)
	}
	return ringi.ToolResult{Output: "ok " + string(call.Input)}, nil
}

func (k *walk) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running--
	k.rest.Broadcast()
}

// steal lets another process find the run's owner dead, and go on with it.
func (k *walk) steal(ctx context.Context, runID string) {
	k.mu.Lock()
	k.steals++
	deep := k.steals > 2
	k.mu.Unlock()
	if deep {
		return
	}
	k.w.advance(2 * time.Minute)
	e, err := k.beside()
	if err == nil {
		_, err = e.Resume(ctx, runID)
	}
	k.tolerate(err, ringi.ErrBusy, ringi.ErrLeaseLost)
}

// beside is another process, that nothing befalls.
func (k *walk) beside() (*engine.Engine, error) {
	cfg := k.w.cfg
	cfg.Store, cfg.OnApprovalRequired = &process{Store: k.w.store}, nil
	return engine.New(cfg)
}

// decideAll approves what is pending and takes back what is approved, while a
// call runs.
func (k *walk) decideAll(ctx context.Context, e *engine.Engine, runID string) {
	page, err := e.Requests(ctx, ringi.RequestQuery{RunID: runID, State: []ringi.RequestState{ringi.Pending, ringi.Granted}})
	k.tolerate(err)
	for i, r := range page.Requests {
		if r.State == ringi.Granted && i%2 == 0 {
			_, err = e.TakeBack(ctx, r.ID, ben, "")
		} else {
			_, err = e.Decide(ctx, r.Approve(ben))
		}
		k.tolerate(err, decideErrors...)
	}
}

// disturb draws what befalls the process in its next commits: some fail before
// or after they are made, it dies there, or others come first.
func (k *walk) disturb() {
	at := rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, 3, 4, 5, 6}).Draw(k.T, "disturbed at")
	if at == 0 {
		k.proc.arm(0, 0, false, false, nil)
		return
	}
	if f := rapid.SampledFrom([]fate{answers, decisions, decisions, cancels, cut, sleeps, stolen}).Draw(k.T, "meanwhile"); f != answers {
		k.proc.arm(at, 0, false, false, func() { k.meanwhile(f) })
		return
	}
	times := rapid.SampledFrom([]int{1, 1, 2, 5, 9}).Draw(k.T, "commits")
	k.proc.arm(at, times, rapid.Bool().Draw(k.T, "after"), rapid.Bool().Draw(k.T, "deadly"), nil)
}

// meanwhile is what another process does to every run, between two commits of
// the one that lives.
func (k *walk) meanwhile(f fate) {
	away := context.Background()
	e, err := k.beside()
	if err != nil {
		k.tolerate(err)
		return
	}
	if f == sleeps {
		k.w.advance(26 * time.Hour)
		return
	}
	rows, err := k.w.store.Runs(away, ringi.RunQuery{Space: "default", Status: unended, Limit: 1000})
	k.tolerate(err)
	for _, row := range rows {
		switch f {
		case decisions:
			k.decideAll(away, e, row.ID)
		case cancels, cut:
			k.tolerate(e.Cancel(away, row.ID, ben, "meanwhile", f == cut), ringi.ErrFinal)
		case stolen:
			k.steal(away, row.ID)
		}
	}
}

// process is one process's way to the store: it can die, and its commits can
// fail.
type process struct {
	ringi.Store
	mu     sync.Mutex
	dead   bool
	n      int // commits of this step
	at     int // the commit that is met by after and how; 0: none
	times  int // how many commits in a row
	after  bool
	deadly bool
	met    bool
	// first comes before the commit numbered by at, once: what others do in
	// between.
	first func()
}

var errDead = errors.New("this process is dead")

func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

func (p *process) alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errDead
	}
	return nil
}

// disturbed reports whether something befell the process in this step.
func (p *process) disturbed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.met || p.dead
}

// arm sets what befalls the process in its next commits.
func (p *process) arm(at, times int, after, deadly bool, first func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n, p.at, p.times, p.after, p.deadly, p.met, p.first = 0, at, times, after, deadly, false, first
}

func (p *process) Commit(ctx context.Context, c *ringi.Commit) error {
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return errDead
	}
	p.n++
	if first := p.first; first != nil && p.n == p.at {
		p.first = nil
		p.mu.Unlock()
		first()
		return p.Store.Commit(ctx, c)
	}
	hit := p.at > 0 && p.n >= p.at && p.n < p.at+p.times
	p.met = p.met || hit
	p.dead = p.dead || hit && p.deadly
	after, deadly := p.after, p.deadly
	p.mu.Unlock()
	if hit && !after {
		return errDisk
	}
	if err := p.Store.Commit(ctx, c); err != nil || !hit {
		return err
	}
	if deadly {
		return errDead
	}
	return errDisk
}

func (p *process) Now(ctx context.Context) (time.Time, error) {
	if err := p.alive(); err != nil {
		return time.Time{}, err
	}
	return p.Store.Now(ctx)
}

func (p *process) Load(ctx context.Context, space, id string) (*ringi.StoredRun, error) {
	if err := p.alive(); err != nil {
		return nil, err
	}
	return p.Store.Load(ctx, space, id)
}

func (p *process) Attempt(ctx context.Context, a ringi.Attempt) error {
	if err := p.alive(); err != nil {
		return err
	}
	return p.Store.Attempt(ctx, a)
}

func (p *process) Beat(ctx context.Context, owner string, lease time.Duration) error {
	if err := p.alive(); err != nil {
		return err
	}
	return p.Store.Beat(ctx, owner, lease)
}
