package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
	"github.com/ringi-dev/ringi/store/sqlite"
)

// A message that reaches two processes in the same moment begins one run, even
// where that run has ended before the other process looks.
func TestRunStart_FollowsInTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	var engines [2]*engine.Engine
	for i := range engines {
		store, err := sqlite.Open(path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		engines[i], err = engine.New(engine.Config{Store: store, Registry: ringi.NewRegistry(), Model: ringitest.ScriptFunc(func(ringi.ModelRequest) ringi.ModelTurn { return ringi.ModelTurn{Text: "hello"} })})
		if err != nil {
			t.Fatal(err)
		}
	}
	for round := range 200 {
		thread := fmt.Sprint("thread-", round/2)
		newest := ringi.NoRun
		if rows, err := engines[0].Runs(t.Context(), ringi.RunQuery{Thread: thread, Limit: 1}); err != nil {
			t.Fatal(err)
		} else if len(rows) > 0 {
			newest = rows[0].ID
		}
		var wg sync.WaitGroup
		var errs [2]error
		for i, e := range engines {
			wg.Go(func() {
				_, errs[i] = e.Run(t.Context(), ringi.RunStart{Thread: thread, Follows: newest, Messages: []ringi.Message{ringi.User("hi")}})
			})
		}
		wg.Wait()
		begun := 0
		for _, err := range errs {
			switch {
			case err == nil:
				begun++
			case !errors.Is(err, ringi.ErrConflict) && !errors.Is(err, ringi.ErrRunOpen):
				t.Error(err)
			}
		}
		if begun != 1 {
			t.Fatalf("round %d: %d runs began: %v", round, begun, errs)
		}
	}
}

// Who names a run that is no longer the newest withdraws nothing.
func TestRunStart_FollowsWithdrawsOnlyWhatItNames(t *testing.T) {
	tools := ringi.NewRegistry()
	ringi.MustAddTool(tools, ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite}, func(context.Context, struct{}) (string, error) { return "paid", nil })
	e := ringitest.Engine(t, engine.Config{Registry: tools, Model: ringitest.ScriptFunc(func(ringi.ModelRequest) ringi.ModelTurn {
		return ringi.ModelTurn{Calls: []ringi.ToolCall{ringitest.Call("pay", `{}`)}}
	})})
	start := ringi.RunStart{Thread: "thread", Messages: []ringi.Message{ringi.User("pay")}, WithdrawOpen: true, Follows: ringi.NoRun}
	first, err := e.Run(t.Context(), start)
	if err != nil || len(first.Pending) != 1 {
		t.Fatal(first, err)
	}
	if _, err := e.Run(t.Context(), start); !errors.Is(err, ringi.ErrConflict) {
		t.Errorf("begins beside a run that it does not know: %v", err)
	}
	if r, err := e.Request(t.Context(), first.Pending[0].ID); err != nil || r.State != ringi.Pending {
		t.Errorf("the request is %s, %v", r.State, err)
	}
	start.Follows = first.RunID
	second, err := e.Run(t.Context(), start)
	if err != nil || len(second.Pending) != 1 {
		t.Fatal(second, err)
	}
	if r, err := e.Request(t.Context(), first.Pending[0].ID); err != nil || r.State != ringi.Withdrawn {
		t.Errorf("the request is %s, %v", r.State, err)
	}
}
