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
	for _, s := range scripts {
		if ctx.Err() != nil {
			break
		}
		todo <- s
	}
	close(todo)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err // the errors of the threads say no more than that
	}
	return errors.Join(errs...)
}

// maxTries bounds how often in a row a thread is taken up after an error that
// moved nothing.
const maxTries = 20

// play plays one conversation to its end, or to where a person must answer.
// After an error it looks into the store and goes on from there: what a failed
// commit left is the store's to say.
func (p *player) play(ctx context.Context, s *script, resume bool) error {
	at := standing{}
	look := resume
	for tries := 0; ; {
		var err error
		if look {
			at, err = p.look(ctx, s)
		}
		var waits bool
		if err == nil {
			if at.open == "" && at.next == len(s.runs) {
				return nil
			}
			before := at
			waits, err = p.playRun(ctx, s, &at)
			if at != before {
				tries = 0
			}
		}
		switch {
		case err == nil && waits:
			return nil
		case err == nil:
			look = false
			continue
		case ctx.Err() != nil:
			return err
		}
		if tries++; tries >= maxTries && !(errors.Is(err, ringi.ErrBusy) && tries < p.busyTries()) {
			return err
		}
		look = true
		sleep(ctx, retryPause)
	}
}

// retryPause is how long a thread rests after an error.
const retryPause = 25 * time.Millisecond

// busyTries is how often a run that another process holds is asked for: for as
// long as a killed one keeps its lease, and some more.
func (p *player) busyTries() int { return int((p.lease*3/2)/retryPause) + maxTries }

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
	if len(rows) > 0 && !rows[0].Status.Final() {
		at.open = rows[0].ID
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
