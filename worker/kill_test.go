//go:build unix

package worker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/sqlite"
	"github.com/ringi-dev/ringi/worker"
)

// childEnv makes the test binary the process that is killed: the file of its
// store, and the file of what it did to the world.
const childEnv = "RINGI_WORKER_CHILD"

func TestMain(m *testing.M) {
	if files := os.Getenv(childEnv); files != "" {
		store, effects, _ := strings.Cut(files, "\n")
		fmt.Fprintln(os.Stderr, child(store, effects))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// killedEngine is the engine of a process that dies: a short lease, and a till
// that writes each payment to a file before it is paid.
func killedEngine(store ringi.Store, effects string) (*engine.Engine, error) {
	f, err := os.OpenFile(effects, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	reg := ringi.NewRegistry()
	err = reg.Add(ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
			tc, _ := ringi.ToolContextFrom(ctx)
			_, err := f.WriteString(tc.RunID + "\n") // one write: a kill leaves whole lines
			return ringi.ToolResult{Output: "paid"}, err
		})
	if err != nil {
		return nil, err
	}
	return engine.New(engine.Config{Store: store, Registry: reg, Model: payer{}, Lease: 300 * time.Millisecond})
}

// child starts runs, decides them and works, all at once, until it is killed.
// It names each run whose decision is recorded.
func child(path, effects string) error {
	w := worker.New(worker.Options{Poll: 10 * time.Millisecond, Idle: 20 * time.Millisecond})
	store, err := sqlite.Open(path, sqlite.Options{Woken: w.Wake})
	if err != nil {
		return err
	}
	e, err := killedEngine(store, effects)
	if err != nil {
		return err
	}
	ctx := context.Background()
	failed := make(chan error)
	go func() { failed <- w.Run(ctx, store, e) }()
	for range 6 {
		go func() {
			for {
				res, err := e.Run(ctx, ask)
				if err == nil {
					_, err = e.Decide(ctx, res.Pending[0].Approve(ana))
				}
				if err != nil {
					failed <- err
					return
				}
				fmt.Println(res.RunID) // one write, no buffer
			}
		}()
	}
	return <-failed
}

// Promise 3: a process that is killed at any moment strands no run, and pays
// nothing twice: what may have been paid is said to be unknown.
func TestKilledProcessStrandsNoRun(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	dir := t.TempDir()
	path, effects := filepath.Join(dir, "ringi.db"), filepath.Join(dir, "effects")
	decided := map[string]bool{}
	for round := range rounds {
		for _, run := range killOne(t, path, effects, time.Duration(30+20*round)*time.Millisecond) {
			decided[run] = true
		}
	}
	if len(decided) < 10 {
		t.Fatalf("only %d runs were decided: the process was killed too early", len(decided))
	}
	w := worker.New(worker.Options{Poll: 10 * time.Millisecond, Idle: 20 * time.Millisecond})
	store := openSQLite(t, path, w.Wake)
	e, err := killedEngine(store, effects)
	if err != nil {
		t.Fatal(err)
	}
	runs(t, w, store, e)
	unknown := 0
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		open := 0
		for run := range decided {
			row, err := store.Row(t.Context(), "default", run)
			if err != nil {
				t.Fatalf("a decided run is lost: %v", err)
			}
			if row.Status != ringi.Completed && row.Status != ringi.WaitingForOutcome {
				open++
			}
		}
		if open == 0 {
			break
		}
		if time.Since(begun) > 90*time.Second {
			t.Fatalf("%d of %d runs are stranded", open, len(decided))
		}
	}
	paid := payments(t, effects)
	for run := range decided {
		row, err := store.Row(t.Context(), "default", run)
		switch {
		case err != nil:
			t.Fatal(err)
		case row.Status == ringi.WaitingForOutcome:
			unknown++
			if paid[run] > 1 {
				t.Errorf("run %s paid %d times", run, paid[run])
			}
		case paid[run] != 1:
			t.Errorf("run %s is completed and paid %d times", run, paid[run])
		}
	}
	t.Logf("%d kills, %d runs decided, %d unknown outcomes", rounds, len(decided), unknown)
}

// killOne runs the process for a while after its first decision, kills it, and
// returns the runs that were decided.
func killOne(t *testing.T, path, effects string, after time.Duration) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path+"\n"+effects)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ids []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if len(ids) == 0 {
			time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
		ids = append(ids, lines.Text())
	}
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Fatalf("the process ended by itself: %v", cmd.ProcessState)
	}
	return ids
}

func payments(t *testing.T, effects string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(effects)
	if err != nil {
		t.Fatal(err)
	}
	paid := map[string]int{}
	for line := range strings.Lines(string(b)) {
		paid[strings.TrimSpace(line)]++
	}
	return paid
}
