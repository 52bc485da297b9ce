package chat

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ringi-dev/ringi"
)

// drivers go on with runs where no worker does.
type drivers struct {
	h    *Server
	mu   sync.Mutex
	runs map[string]bool // true: once more
	wg   sync.WaitGroup
	over bool
}

// Begin starts a run for what the chat's user says, after the run that was the
// newest one when the caller looked, nil for none. ErrConflict where another
// process has begun one since.
func (h *Server) Begin(ctx context.Context, c *Caller, newest *ringi.RunRow, text string) (runID string, err error) {
	start := ringi.RunStart{Thread: c.Thread, Agent: h.Agent, By: c.By, WithdrawOpen: h.WithdrawOpen, Follows: ringi.NoRun,
		Messages: []ringi.Message{{Role: ringi.RoleUser, Text: text, Author: c.By.ID}}}
	if newest != nil {
		start.Follows = newest.ID
	}
	res, err := h.Service.Enqueue(ctx, start)
	if err != nil {
		return "", fmt.Errorf("start run of chat: %w", err)
	}
	h.Drive(res.RunID)
	return res.RunID, nil
}

// Drive goes on with a run, beside the request that made it runnable.
func (h *Server) Drive(runID string) { h.runs.drive(runID) }

func (d *drivers) drive(runID string) {
	if d.h.Resume == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, busy := d.runs[runID]; busy || d.over {
		if busy {
			d.runs[runID] = true
		}
		return
	}
	if d.runs == nil {
		d.runs = map[string]bool{}
	}
	d.runs[runID] = false
	d.wg.Add(1)
	go d.work(runID)
}

func (d *drivers) work(runID string) {
	defer d.wg.Done()
	for {
		_, err := d.h.Resume(context.Background(), runID)
		if err != nil && !errors.Is(err, ringi.ErrBusy) {
			d.h.Logger.Error("go on with run of chat", "run", runID, "error", err)
		}
		d.mu.Lock()
		again := d.runs[runID] && !d.over
		if again {
			d.runs[runID] = false
		} else {
			delete(d.runs, runID)
		}
		d.mu.Unlock()
		if !again {
			return
		}
	}
}

// Close waits for the runs that the server goes on with (Options.Resume): it
// takes no new ones. Where ctx ends first, what runs is left to whoever comes
// next.
func (h *Server) Close(ctx context.Context) error {
	h.runs.mu.Lock()
	h.runs.over = true
	h.runs.mu.Unlock()
	done := make(chan struct{})
	go func() { h.runs.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
