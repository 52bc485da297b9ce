package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// player plays recorded conversations: each as one thread, one run a user
// message. It keeps nothing of its own between two runs: where it stands is
// read from the store.
type player struct {
	engine     *engine.Engine
	store      ringi.Store
	space      string
	system     string
	unattended ringi.Unattended
	lease      time.Duration
	parallel   int
	decide     decider
	progress   *progress
}

// scriptStarter starts every run, as an admin, so that the offer holds what
// the recording used.
var scriptStarter = ringi.Principal{ID: "script:user", Name: "recorded user", Kind: ringi.Person, Admin: true, Auth: "script"}

// playAll plays the conversations, some at once. It goes on with the others
// where one fails, and returns all errors.
func (p *player) playAll(ctx context.Context, scripts []*script, resume bool) error {
	todo := make(chan *script)
	errs := make([]error, p.parallel)
	var wg sync.WaitGroup
	for w := range p.parallel {
		wg.Go(func() {
			for s := range todo {
				if err := p.play(ctx, s, resume); err != nil {
					errs[w] = errors.Join(errs[w], fmt.Errorf("replay %s: %w", s.thread, err))
				}
				p.progress.thread()
			}
		})
	}
	begun := 0
	for _, s := range scripts {
		if ctx.Err() != nil {
			break
		}
		todo <- s
		begun++
	}
	close(todo)
	wg.Wait()
	err := errors.Join(errs...)
	if ctx.Err() != nil && (err != nil || begun < len(scripts)) {
		return ctx.Err() // the errors of the threads say no more than that
	}
	return err
}

// play plays one conversation to its end, or to where a person must answer.
// After an error it looks into the store and goes on from there: what a failed
// commit left is the store's to say.
func (p *player) play(ctx context.Context, s *script, look bool) error {
	var at standing
	var rest patience
	for {
		var err error
		if look {
			if at, err = p.look(ctx, s); err == nil {
				rest.saw(at)
			}
		}
		if err == nil {
			if at.open == "" && at.next == len(s.runs) {
				return nil
			}
			var waits bool
			if waits, err = p.playRun(ctx, s, &at); err == nil && waits {
				return nil
			}
		}
		look = err != nil
		if err == nil {
			continue
		}
		if ctx.Err() != nil || !rest.left(err, p.lease) {
			return err
		}
		sleep(ctx, retryPause)
	}
}

// retryPause is how long a thread rests after an error.
const retryPause = 25 * time.Millisecond

// patience bounds how often a thread is taken up after errors that moved
// nothing, and how long a run is asked for that another process holds: for as
// long as a killed one keeps its lease, and some more.
type patience struct {
	last  standing
	tries int
	busy  time.Time // the first of the refusals since
}

const playTries = 20

func (p *patience) saw(at standing) {
	if at != p.last {
		*p = patience{last: at, busy: p.busy}
	}
}

func (p *patience) left(err error, lease time.Duration) bool {
	if errors.Is(err, ringi.ErrBusy) {
		if p.busy.IsZero() {
			p.busy = time.Now()
		}
		return time.Since(p.busy) < lease*3/2+time.Second
	}
	p.busy = time.Time{}
	p.tries++
	return p.tries < playTries
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// standing is where a thread stands: the next run to play, and the one that
// has not ended.
type standing struct {
	next int
	open string // its run id; it is run next-1
	seq  int64  // of the newest run, where it was read
}

// look reads from the store where a thread stands. Runs are played in the
// script's order, one at a time, so their number is the place.
func (p *player) look(ctx context.Context, s *script) (standing, error) {
	rows, err := p.store.Runs(ctx, ringi.RunQuery{Space: p.space, Thread: s.thread, Limit: maxThreadRuns})
	if err != nil {
		return standing{}, fmt.Errorf("look for runs: %w", err)
	}
	if len(rows) > len(s.runs) {
		return standing{}, fmt.Errorf("store has %d runs of a conversation of %d", len(rows), len(s.runs))
	}
	at := standing{next: len(rows)}
	if len(rows) > 0 {
		at.seq = rows[0].Seq
		if !rows[0].Status.Final() {
			at.open = rows[0].ID
		}
	}
	return at, nil
}

// playRun starts the next run, or goes on with the open one, until it ends or
// waits for somebody else.
func (p *player) playRun(ctx context.Context, s *script, at *standing) (waits bool, err error) {
	n := at.next
	if at.open != "" {
		n--
	}
	ctx = withScriptRun(ctx, &s.runs[n])
	var res *ringi.Result
	if at.open != "" {
		res, err = p.engine.Resume(ctx, at.open)
	} else {
		res, err = p.engine.Run(ctx, p.start(s, n))
	}
	for err == nil {
		at.next, at.open = n+1, res.RunID
		if res.Status.Final() {
			at.open = ""
			p.progress.run()
			return false, nil
		}
		var decided int
		if decided, err = p.decideAll(ctx, s, n, res.Pending); err == nil && decided == 0 {
			return true, nil
		}
		if err == nil {
			res, err = p.engine.Resume(ctx, res.RunID)
		}
	}
	return false, err
}

func (p *player) start(s *script, n int) ringi.RunStart {
	start := ringi.RunStart{Thread: s.thread, System: p.system, By: scriptStarter, Unattended: p.unattended}
	for _, text := range s.runs[n].users {
		start.Messages = append(start.Messages, ringi.User(text))
	}
	return start
}

// decideAll answers what a run waits for, and counts the answers.
func (p *player) decideAll(ctx context.Context, s *script, n int, pending []ringi.ApprovalRequest) (int, error) {
	decided := 0
	for _, r := range pending {
		d, ok, err := p.decide(ctx, asked{script: s, run: n, request: r})
		if err != nil {
			return decided, err
		}
		if !ok {
			continue
		}
		_, err = p.engine.Decide(ctx, d)
		if _, taken := errors.AsType[*ringi.DecidedError](err); err != nil && !taken {
			return decided, err
		}
		decided++
	}
	return decided, nil
}
