package chat

import (
	"context"
	"errors"
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
