package engine_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/sign"
	"github.com/ringi-dev/ringi/store/memory"
	"github.com/ringi-dev/ringi/store/sqlite"
	"github.com/ringi-dev/ringi/store/storetest"
)

// This file attacks the engine: what a hostile or a careless program, store,
// model, hook or reader does to it. Each test names the attack.

// rounds is how long the tests that throw dice go on: RINGI_BREAK_ROUNDS, or 1.
func rounds() int {
	n, _ := strconv.Atoi(os.Getenv("RINGI_BREAK_ROUNDS"))
	return max(n, 1)
}

// meddler is a store that lets a test come in between: a hook is called before
// the method, and its error, where it gives one, is the method's.
type meddler struct {
	ringi.Store
	mu         sync.Mutex
	commit     func(*ringi.Commit) error
	now, beat  func() error
	load       func(runID string) error
	row        func(runID string) error
	transcript func(thread string) error // called after the read
}

func (m *meddler) set(f func(m *meddler)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m)
}

// hooks are those that stand now.
func (m *meddler) hooks() (h meddler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return meddler{commit: m.commit, now: m.now, beat: m.beat, load: m.load, row: m.row, transcript: m.transcript}
}

func (m *meddler) Commit(ctx context.Context, c *ringi.Commit) error {
	if h := m.hooks(); h.commit != nil {
		if err := h.commit(c); err != nil {
			return err
		}
	}
	return m.Store.Commit(ctx, c)
}

func (m *meddler) Now(ctx context.Context) (time.Time, error) {
	if h := m.hooks(); h.now != nil {
		if err := h.now(); err != nil {
			return time.Time{}, err
		}
	}
	return m.Store.Now(ctx)
}

func (m *meddler) Beat(ctx context.Context, owner string, lease time.Duration) error {
	if h := m.hooks(); h.beat != nil {
		if err := h.beat(); err != nil {
			return err
		}
	}
	return m.Store.Beat(ctx, owner, lease)
}

func (m *meddler) Load(ctx context.Context, space, id string) (*ringi.StoredRun, error) {
	if h := m.hooks(); h.load != nil {
		if err := h.load(id); err != nil {
			return nil, err
		}
	}
	return m.Store.Load(ctx, space, id)
}

func (m *meddler) Row(ctx context.Context, space, id string) (ringi.RunRow, error) {
	if h := m.hooks(); h.row != nil {
		if err := h.row(id); err != nil {
			return ringi.RunRow{}, err
		}
	}
	return m.Store.Row(ctx, space, id)
}

func (m *meddler) Transcript(ctx context.Context, space, thread string) ([]*ringi.StoredRun, error) {
	runs, err := m.Store.Transcript(ctx, space, thread)
	if h := m.hooks(); h.transcript != nil {
		if err := h.transcript(thread); err != nil {
			return nil, err
		}
	}
	return runs, err
}

// meddled puts a meddler before the world's store.
func (w *world) meddled() *meddler {
	m := &meddler{Store: w.store}
	w.cfg.Store = m
	return m
}

// onlyRun is the id of the one run of the store.
func (w *world) onlyRun() string {
	w.t.Helper()
	rows, err := w.store.Runs(w.t.Context(), ringi.RunQuery{Space: "default"})
	if err != nil || len(rows) != 1 {
		w.t.Fatalf("%v, %d runs", err, len(rows))
	}
	return rows[0].ID
}

// given back: nobody holds the run, and it can be found.
func (w *world) wantGivenBack(id string) {
	w.t.Helper()
	row, err := w.store.Row(w.t.Context(), "default", id)
	if err != nil {
		w.t.Fatal(err)
	}
	if row.Status == ringi.Running || row.Owner != "" {
		w.t.Errorf("run is %s and held by %q, and nobody drives it", row.Status, row.Owner)
	}
}

// A decision that comes between the last look at a waiting run and the commit
// that lets it rest: nobody would drive the run, and its lease would be held.
func TestBreak_DecisionBeforeTheRunRests(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "boom", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
		panic("boom")
	})
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"boom": {Status: ringi.Approved}}
	w.says(calls("boom", `{}`))
	m := w.meddled()
	e := w.engine()
	other := w.engine()
	var once sync.Once
	m.set(func(m *meddler) {
		m.commit = func(c *ringi.Commit) error {
			if c.Release && c.Row.Status == ringi.WaitingForOutcome && len(c.Records) == 0 {
				once.Do(func() {
					page, err := other.Requests(t.Context(), ringi.RequestQuery{})
					if err != nil || len(page.Requests) != 1 {
						t.Errorf("%v, %d requests", err, len(page.Requests))
						return
					}
					w.decide(other, page.Requests[0].DidNotRun(ana))
				})
			}
			return nil
		}
	})
	res := w.run(e, ringi.RunStart{})
	wantStatus(t, res, ringi.Completed, 0)
}

// The same with a cancellation in place of the decision.
func TestBreak_CancelBeforeTheRunRests(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "boom", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
		panic("boom")
	})
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"boom": {Status: ringi.Approved}}
	w.says(calls("boom", `{}`))
	m := w.meddled()
	e := w.engine()
	other := w.engine()
	var once sync.Once
	m.set(func(m *meddler) {
		m.commit = func(c *ringi.Commit) error {
			if c.Release && c.Row.Status == ringi.WaitingForOutcome && len(c.Records) == 0 {
				once.Do(func() {
					if err := other.Cancel(t.Context(), w.onlyRun(), ana, "stop", false); err != nil {
						t.Error(err)
					}
				})
			}
			return nil
		}
	})
	res := w.run(e, ringi.RunStart{})
	wantStatus(t, res, ringi.Cancelled, 0)
}

// A reader of the stream writes into the events that it is handed: "nothing
// that they change counts".
func TestBreak_StreamReaderWritesIntoEvents(t *testing.T) {
	w := newWorld(t)
	w.says(calls("find", `{}`))
	e := w.engine()
	for ev, err := range e.Stream(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}}) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := ev.Body.(*ringi.ModelResponded); ok && len(b.Calls) > 0 {
			b.Calls[0].Tool = "pay"
			b.Calls[0].Verdict = ringi.Verdict{Status: ringi.NotApplicable}
		}
	}
	w.wantRan("find {}")
}

// The same with the start of the run, which is handed out before the offer is
// made.
func TestBreak_StreamReaderMakesAnAdmin(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "root", Effect: ringi.ReadOnly, AdminOnly: true}, nil)
	w.says(calls("root", `{}`))
	e := w.engine()
	for ev, err := range e.Stream(t.Context(), ringi.RunStart{By: ana, Messages: []ringi.Message{ringi.User("go")}}) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := ev.Body.(*ringi.RunStarted); ok {
			b.By.Admin, b.AllGroups, b.AllTools = true, true, true
		}
	}
	w.wantRan()
}

// An observer, a stop condition and a model write into what they are told.
func TestBreak_ObserverWidensTheGroups(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "ledger", Effect: ringi.ReadOnly, Group: "finance"}, nil)
	w.cfg.Observers = []engine.Observer{{Start: func(_ context.Context, run ringi.RunInfo) { run.Groups[0] = "finance" }}}
	w.says(calls("ledger", `{}`))
	w.run(w.engine(), ringi.RunStart{Groups: []string{"shop"}})
	w.wantRan()
}

func TestBreak_StopConditionWritesIntoMessages(t *testing.T) {
	w := newWorld(t)
	w.cfg.StopWhen = []engine.StopWhen{func(i engine.StepInfo) bool {
		for _, m := range i.Messages {
			for k := range m.Results {
				m.Results[k].Output = "forged"
			}
		}
		return false
	}}
	w.says(calls("find", `{}`), calls("look", `{}`))
	w.run(w.engine(), ringi.RunStart{})
	for _, m := range w.seen[len(w.seen)-1].Messages {
		for _, r := range m.Results {
			if r.Output == "forged" {
				t.Error("a stop condition changed what the model reads")
			}
		}
	}
}

// A provider that sorts, renames or blanks the tools that it is sent.
func TestBreak_ModelWritesIntoTheOffer(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "root", Effect: ringi.ReadOnly, AdminOnly: true}, nil)
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		if req.Step > 1 {
			return &ringi.ModelTurn{Text: "done"}
		}
		for i := range req.Tools {
			if req.Tools[i].Name == "find" {
				req.Tools[i].Name = "root"
			}
		}
		return calls("root", `{}`)
	})
	e := w.engine()
	w.run(e, ringi.RunStart{By: ana})
	w.wantRan()
	for _, tool := range e.Offer(ringi.RunInfo{By: ana}).Tools {
		if tool.Name == "root" {
			t.Error("the offer was changed")
		}
	}
}

// Two runs at once on one engine, with a provider that sorts the tools for its
// cache: a data race.
func TestBreak_ModelSortsTheOfferOfParallelRuns(t *testing.T) {
	w := newWorld(t)
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		for i, j := 0, len(req.Tools)-1; i < j; i, j = i+1, j-1 {
			req.Tools[i], req.Tools[j] = req.Tools[j], req.Tools[i]
		}
		return &ringi.ModelTurn{Text: "done"}
	})
	e := w.engine()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := e.Run(t.Context(), ringi.RunStart{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := e.Offer(ringi.RunInfo{}).Names(); got[0] != "find" {
		t.Errorf("offer %v", got)
	}
}

// A tool whose handler starts a run that calls the same tool, and so on: an
// agent that asks itself. Budgets are inherited at their strictest, so it ends.
func TestBreak_RunsInsideRunsEnd(t *testing.T) {
	w := newWorld(t)
	var e *engine.Engine
	var depth, deepest atomic.Int64
	stop := errors.New("too deep")
	w.tool(ringi.Tool{Name: "ask", Effect: ringi.ReadOnly}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		d := depth.Add(1)
		defer depth.Add(-1)
		deepest.Store(max(deepest.Load(), d))
		if d > 500 {
			return ringi.ToolResult{}, stop
		}
		res, err := e.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
		if err != nil {
			return ringi.ToolResult{}, err
		}
		return ringi.ToolResult{Output: res.Text}, nil
	})
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		if req.Step > 1 {
			return &ringi.ModelTurn{Text: "done"}
		}
		return calls("ask", `{}`)
	})
	e = w.engine()
	w.run(e, ringi.RunStart{})
	if deepest.Load() > 64 {
		t.Errorf("%d runs inside one another", deepest.Load())
	}
}

// What leaves Run by a panic or by runtime.Goexit must not leave the run held
// by an engine that goes on beating for others.
func TestBreak_RunIsGivenBackHoweverItEnds(t *testing.T) {
	for name, spoil := range map[string]func(w *world){
		"ContextFunc panics": func(w *world) {
			w.cfg.ContextFunc = func(context.Context, ringi.RunInfo) context.Context { panic("context") }
		},
		"the model ends its goroutine": func(w *world) {
			w.cfg.Model = modelFunc(func(ringi.ModelRequest) *ringi.ModelTurn { runtime.Goexit(); return nil })
		},
		"a read ends its goroutine": func(w *world) {
			w.tool(ringi.Tool{Name: "exit", Effect: ringi.ReadOnly}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
				runtime.Goexit()
				return ringi.ToolResult{}, nil
			})
			w.says(calls("exit", `{}`))
		},
		"an observer ends its goroutine": func(w *world) {
			w.cfg.Observers = []engine.Observer{{StepStart: func(context.Context, ringi.RunInfo, int) { runtime.Goexit() }}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.says(calls("find", `{}`))
			spoil(w)
			e := w.engine()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { recover() }()
				e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
			}()
			<-ended
			w.wantGivenBack(w.onlyRun())
		})
	}
}

// The loop over a stream panics, or ends its goroutine (t.Fatal does), at
// every event.
func TestBreak_LoopBodyOfAStreamBreaksOff(t *testing.T) {
	for name, breakOff := range map[string]func(){"panics": func() { panic("loop body") }, "exits": runtime.Goexit} {
		for at := 1; ; at++ {
			w := newWorld(t)
			w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"pay": {Status: ringi.Approved}}
			w.says(calls("find", `{}`, "pay", `{}`))
			w.cfg.Model = talkative{w.cfg.Model}
			e := w.engine()
			ended, n := make(chan struct{}), 0
			go func() {
				defer close(ended)
				defer func() { recover() }()
				for _, err := range e.Stream(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}}) {
					if n++; n == at {
						breakOff()
					}
					if err != nil {
						t.Error(err)
					}
				}
			}()
			<-ended
			if n < at {
				break
			}
			id := w.onlyRun()
			w.wantGivenBack(id)
			res, err := w.restart().Resume(t.Context(), id)
			if err != nil {
				t.Fatalf("%s at event %d: %v", name, at, err)
			}
			if res.Status == ringi.Completed && w.count("pay") != 1 || w.count("pay") > 1 {
				t.Errorf("%s at event %d: %s, pay ran %d times", name, at, res.Status, w.count("pay"))
			}
			if t.Failed() {
				t.Fatalf("%s at event %d", name, at)
			}
		}
	}
}

// The precondition's check ends its goroutine: that is no yes.
func TestBreak_CheckThatExitsIsNoYes(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "wipe", Effect: ringi.NonIdempotentWrite}, nil, ringi.ToolHooks{
		Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
			return ringi.Preview{Text: "disk 1", Precondition: "v1"}, nil
		},
		Check: func(context.Context, ringi.ToolCall, string) error { runtime.Goexit(); return nil },
	})
	w.says(calls("wipe", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.decide(e, res.Pending[0].Approve(ana))
	wantStatus(t, w.resume(e, res.RunID), ringi.WaitingForApproval, 1)
	w.wantRan()
}

// A write whose handler ends its goroutine has an unknown outcome, at once.
func TestBreak_WriteThatExitsIsUnknown(t *testing.T) {
	w := newWorld(t)
	w.cfg.Limits.ToolTimeout = -1
	w.tool(ringi.Tool{Name: "exit", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
		runtime.Goexit()
		return ringi.ToolResult{}, nil
	})
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"exit": {Status: ringi.Approved}}
	w.says(calls("exit", `{}`))
	done := make(chan *ringi.Result, 1)
	e := w.engine()
	go func() {
		res, err := e.Run(context.Background(), ringi.RunStart{})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	select {
	case res := <-done:
		wantStatus(t, res, ringi.WaitingForOutcome, 1)
	case <-time.After(time.Minute):
		t.Fatal("the run hangs")
	}
}

// An owner sleeps in an observer, behind the commit of the start and before
// the call: meanwhile another process took over, was told that the call did not
// run, and ran it again. The owner that wakes up must not call.
func TestBreak_SleepInAnObserverBeforeTheCall(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	w.cfg.Lease = 60 * time.Millisecond
	m := w.meddled()
	var sleep atomic.Bool
	asleep, awake := make(chan struct{}), make(chan struct{})
	w.cfg.Observers = []engine.Observer{{ToolStart: func(context.Context, ringi.RunInfo, ringi.ToolCall) {
		if sleep.CompareAndSwap(true, false) {
			m.set(func(m *meddler) { m.beat = func() error { return errors.New("the machine sleeps") } })
			close(asleep)
			<-awake
		}
	}}}
	frozen := w.engine()
	w.cfg.Observers, w.cfg.Store = nil, w.store
	res := w.run(frozen, ringi.RunStart{})
	w.decide(frozen, res.Pending[0].Approve(ana))
	sleep.Store(true)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		frozen.Resume(context.Background(), res.RunID)
	}()
	<-asleep
	time.Sleep(2 * w.cfg.Lease)
	e := w.restart()
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.WaitingForOutcome, 1)
	w.decide(e, res.Pending[0].RunAgain(ana))
	res = w.resume(e, res.RunID)
	w.decide(e, res.Pending[0].Approve(ana))
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
	close(awake)
	<-gone
	w.wantRan("pay {}")
}

// A lost run is given back by the heart while the same engine drives it again.
func TestBreak_HeartGivesBackARunThatIsDrivenAgain(t *testing.T) {
	w := newWorld(t)
	w.cfg.Lease = 600 * time.Millisecond
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"slow": {Status: ringi.Approved}, "hold": {Status: ringi.Approved}}
	free := make(chan struct{})
	inTool := make(chan struct{})
	w.tool(ringi.Tool{Name: "slow", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
		close(inTool)
		<-free
		return ringi.ToolResult{Output: "slow done"}, nil
	})
	w.tool(ringi.Tool{Name: "hold", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
		<-free
		return ringi.ToolResult{Output: "hold done"}, nil
	})
	var fail atomic.Bool
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		switch {
		case req.Step > 1:
			return &ringi.ModelTurn{Text: "done"}
		case req.Messages[0].Text == "hold":
			return calls("hold", `{}`)
		}
		return calls("slow", `{}`)
	})
	m := w.meddled()
	e := w.engine()
	// Another run keeps the heart beating.
	held := make(chan error, 1)
	go func() {
		_, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("hold")}})
		held <- err
	}()
	w.eventually(func() bool { return w.count("hold") == 1 })
	// The run is lost: the store fails behind its claim.
	fail.Store(true)
	m.set(func(m *meddler) {
		m.commit = func(c *ringi.Commit) error {
			if fail.Load() && c.Expect > 0 {
				return errors.New("connection lost")
			}
			return nil
		}
	})
	if _, err := e.Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("slow")}}); err == nil {
		t.Fatal("no error")
	}
	rows, _ := w.store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
	id := rows[0].ID
	// The heart reads the row of the lost run only once it is driven again.
	var once sync.Once
	looks, looked := make(chan struct{}), make(chan struct{})
	m.set(func(m *meddler) {
		m.row = func(run string) error {
			if run == id {
				once.Do(func() { close(looks); <-inTool; close(looked) })
			}
			return nil
		}
	})
	<-looks
	fail.Store(false)
	type ended struct {
		res *ringi.Result
		err error
	}
	done := make(chan ended, 1)
	go func() {
		res, err := e.Resume(context.Background(), id)
		done <- ended{res, err}
	}()
	<-looked
	time.Sleep(w.cfg.Lease / 6) // the heart does what it was about to do
	close(free)
	got := <-done
	if got.err != nil || got.res.Status != ringi.Completed || w.count("slow") != 1 {
		t.Errorf("%v, %+v, slow ran %d times", got.err, got.res, w.count("slow"))
	}
	if err := <-held; err != nil {
		t.Error(err)
	}
}

// The program's own ids: the same one twice is an error, and never another
// person's run.
func TestBreak_ARepeatedRunIDIsNotAnothersRun(t *testing.T) {
	w := newWorld(t)
	w.says()
	w.cfg.NewID = func(prefix string, _ time.Time) string { return prefix + "1" }
	w.cfg.Model = modelFunc(func(ringi.ModelRequest) *ringi.ModelTurn { return &ringi.ModelTurn{Text: "ana's secret"} })
	e := w.engine()
	w.run(e, ringi.RunStart{By: ana, Thread: "thr_ana"})
	res, err := e.Run(t.Context(), ringi.RunStart{By: ben, Thread: "thr_ben", Messages: []ringi.Message{ringi.User("mine")}})
	if err == nil {
		t.Errorf("ben's run is %+v", res)
	}
}

// Ids that differ only before the first underscore, or run into the step.
func TestBreak_RunIDsThatLookAlike(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	for _, id := range []string{"a_1", "b_1", "run_7", "run_7_1", "x"} {
		w.cfg.NewID = func(prefix string, _ time.Time) string {
			if prefix == "run_" {
				return id
			}
			return ringi.NewID(prefix, w.now())
		}
		res, err := w.engine().Run(t.Context(), ringi.RunStart{})
		if err != nil {
			t.Errorf("run %s: %v", id, err)
			continue
		}
		wantStatus(t, res, ringi.WaitingForApproval, 1)
	}
}

// A thief, or a fault, closes an approved request in the inbox's row alone.
// The call does not run, and the engine does not turn in circles.
func TestBreak_InboxRowThatContradictsTheLog(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.decide(e, res.Pending[0].Approve(ana))
	th, _ := storetest.ThiefOf(w.store)
	must(t, th.SetRequest("default", res.Pending[0].ID, func(r *ringi.RequestRow) { r.State = ringi.Refused }))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	begun := time.Now()
	_, err := e.Resume(ctx, res.RunID)
	if err == nil || time.Since(begun) > 20*time.Second {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
	w.wantRan()
}

// A thief carries a whole run into another thread, by its row alone.
func TestBreak_RunCarriedIntoAnotherThread(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	store, err := sqlite.Open(path, sqlite.Options{})
	must(t, err)
	defer store.Close()
	w := newWorld(t)
	w.cfg.Store, w.cfg.Keyring = store, keyring(t)
	w.says()
	e := w.engine()
	res := w.run(e, ringi.RunStart{Thread: "thr_a", By: ana, Messages: []ringi.Message{ringi.User("ana's secret")}})
	steal(t, path, `UPDATE runs SET thread = 'thr_b'`)
	if v, err := e.Verify(t.Context(), res.RunID); err != nil || v.Broken == "" {
		t.Errorf("verify: %v %+v", err, v)
	}
	w.seen = nil
	e.Run(t.Context(), ringi.RunStart{Thread: "thr_b", By: ben, Messages: []ringi.Message{ringi.User("hello")}})
	for _, req := range w.seen {
		for _, m := range req.Messages {
			if strings.Contains(m.Text, "secret") {
				t.Error("thread b reads thread a")
			}
		}
	}
}

// A thief removes the payload of one event, as an erasure would, without the
// event that says so.
func TestBreak_PayloadRemovedWithoutAnErasure(t *testing.T) {
	w := newWorld(t)
	w.cfg.Keyring = keyring(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{Thread: "thr_a", By: ana})
	d := res.Pending[0].Deny(ana, "never")
	d.Scope = ringi.ThisTool
	w.decide(e, d)
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
	th, _ := storetest.ThiefOf(w.store)
	stored, _ := w.store.Load(t.Context(), "default", res.RunID)
	for _, r := range stored.Records {
		if r.Kind == ringi.EventApprovalDecided {
			must(t, th.UpdateRecord("default", res.RunID, r.Seq, func(r *ringi.Record) { r.Payload, r.Salt = nil, nil }))
		}
	}
	v, err := e.Verify(t.Context(), res.RunID)
	if err != nil || v.Broken == "" {
		t.Errorf("verify finds nothing: %v %+v", err, v)
	}
	if res, err := e.Run(t.Context(), ringi.RunStart{Thread: "thr_a", By: ana}); err == nil && len(res.Pending) > 0 {
		t.Error("the denial of this tool in this thread is forgotten")
	}
}

// One failure of the clock, the heartbeat or a read at the moment when a
// result is recorded: the result is not dropped.
func TestBreak_OneFailureAsAResultIsRecorded(t *testing.T) {
	for _, what := range []string{"now", "beat", "load after a conflict"} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Lease = 3 * time.Second // beats are due with every advance of the clock
			w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"work": {Status: ringi.Approved}}
			m := w.meddled()
			var armed atomic.Bool
			w.tool(ringi.Tool{Name: "work", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
				w.advance(1500 * time.Millisecond)
				armed.Store(true)
				return ringi.ToolResult{Output: "worked"}, nil
			})
			w.says(calls("work", `{}`))
			fail := func() error {
				if armed.CompareAndSwap(true, false) {
					return errors.New("connection lost")
				}
				return nil
			}
			var conflict sync.Once
			m.set(func(m *meddler) {
				switch what {
				case "now":
					m.now = fail
				case "beat":
					m.beat = fail
				default:
					m.load = func(string) error { return fail() }
					m.commit = func(c *ringi.Commit) error {
						if holds(c, ringi.EventToolFinished) {
							var err error
							conflict.Do(func() { err = ringi.ErrConflict })
							return err
						}
						return nil
					}
				}
			})
			res, err := w.engine().Run(t.Context(), ringi.RunStart{})
			if err != nil {
				t.Fatal(err)
			}
			wantStatus(t, res, ringi.Completed, 0)
			if res.Results[0].Output != "worked" {
				t.Errorf("%+v", res.Results)
			}
		})
	}
}

// A run of the thread starts and ends between the look at the thread and the
// start of another: its authors are initiators all the same.
func TestBreak_RunThatEndsWhileAnotherStarts(t *testing.T) {
	w := newWorld(t)
	w.cfg.FourEyes = engine.FourEyesAll
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		w.mu.Lock()
		w.seen = append(w.seen, req)
		w.mu.Unlock()
		if req.Step == 1 && req.Messages[len(req.Messages)-1].Text == "pay" {
			return calls("pay", `{}`)
		}
		return &ringi.ModelTurn{Text: "done"}
	})
	other := w.engine()
	m := w.meddled()
	e := w.engine()
	var once sync.Once
	m.set(func(m *meddler) {
		m.transcript = func(thread string) error {
			once.Do(func() {
				w.run(other, ringi.RunStart{Thread: thread, By: ana, Messages: []ringi.Message{ringi.User("ana: pay me 500")}})
			})
			return nil
		}
	})
	res, err := e.Run(t.Context(), ringi.RunStart{Thread: "thr_x", By: ben, Messages: []ringi.Message{ringi.User("pay")}})
	if err != nil {
		wantErr(t, err, ringi.ErrRunOpen) // to refuse it is an answer too
		return
	}
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	_, err = e.Decide(t.Context(), res.Pending[0].Approve(ana))
	if err != nil {
		return
	}
	// Ana may approve only what she did not ask for.
	w.seen = nil
	w.resume(w.restart(), res.RunID)
	for _, req := range w.seen {
		for _, msg := range req.Messages {
			if msg.Author == "ana" {
				t.Fatal("ana approved a run whose model reads her words")
			}
		}
	}
}

// What the program changes in its own configuration after New: "read once".
func TestBreak_ConfigurationIsReadOnce(t *testing.T) {
	w := newWorld(t)
	w.cfg.Floor.Tools = map[string]ringi.ToolApproval{"find": {Status: ringi.Denied}}
	w.cfg.RequireApproval = []string{"look"}
	w.says(calls("find", `{}`, "look", `{}`))
	e := w.engine()
	delete(w.cfg.Floor.Tools, "find")
	w.cfg.RequireApproval[0] = "put"
	wantStatus(t, w.run(e, ringi.RunStart{}), ringi.WaitingForApproval, 1)
	w.wantRan()
}

// The caller writes into what it passed to Run, while the run goes on.
func TestBreak_CallerWritesIntoTheRuntimeValue(t *testing.T) {
	w := newWorld(t)
	runtimeValue := json.RawMessage(`{"role":"guest"}`)
	w.cfg.Approval.Func = func(_ context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
		if string(c.Runtime) == `{"role":"admin"}` {
			return ringi.Verdict{Status: ringi.NotApplicable}, nil
		}
		return ringi.Verdict{Status: ringi.Denied}, nil
	}
	w.cfg.Observers = []engine.Observer{{Start: func(context.Context, ringi.RunInfo) { copy(runtimeValue, `{"role":"admin"}`) }}}
	w.says(calls("find", `{}`))
	w.run(w.engine(), ringi.RunStart{Runtime: runtimeValue})
	w.wantRan()
}

// A tool that asks for typed input has another schema in the next version of
// the program. The old question can no longer be answered: it is asked anew,
// and does not wait for ever.
func TestBreak_TypedInputWhoseSchemaChanges(t *testing.T) {
	input := func(key string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"` + key + `":{"type":"string"}},"additionalProperties":false}`)
	}
	person := func(key string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{"` + key + `":{"type":"string"}},"required":["` + key + `"],"additionalProperties":false}`)
	}
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "seal", Effect: ringi.NonIdempotentWrite, InputSchema: input("code"), InputRequired: person("code")}, nil)
	w.says(calls("seal", `{"n":1}`))
	res := w.run(w.engine(), ringi.RunStart{})
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	w.reg = ringi.NewRegistry()
	w.cfg.Registry = w.reg
	w.tool(ringi.Tool{Name: "seal", Effect: ringi.NonIdempotentWrite, InputSchema: input("pin"), InputRequired: person("pin")}, nil)
	e := w.restart()
	set := w.decide(e, res.Pending[0].Fill(ana, json.RawMessage(`{"code":"1234"}`)))
	res = w.resume(e, set.RunID)
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	r := res.Pending[0]
	if !strings.Contains(string(r.InputSchema), "pin") {
		t.Fatalf("the question asks for what the tool no longer takes: %s", r.InputSchema)
	}
	w.decide(e, r.Fill(ana, json.RawMessage(`{"pin":"1234"}`)))
	res = w.resume(e, set.RunID)
	w.decide(e, res.Pending[0].Approve(ana))
	wantStatus(t, w.resume(e, set.RunID), ringi.Completed, 0)
	w.wantRan(`seal {"n":1,"pin":"1234"}`)
}

// A list that asks for more than a page holds says that there is more.
func TestBreak_LongInboxIsNotCutSilently(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	const n = 1003
	for range n {
		w.run(e, ringi.RunStart{})
	}
	got := 0
	q := ringi.RequestQuery{Limit: 5000}
	for {
		page, err := e.Requests(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got += len(page.Requests)
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	if got != n {
		t.Errorf("%d requests of %d", got, n)
	}
}

// Cancel with now, while the model does not answer and while a read waits.
func TestBreak_CancelNowReachesWhateverHangs(t *testing.T) {
	for _, what := range []string{"model", "read"} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			hung := make(chan struct{})
			w.tool(ringi.Tool{Name: "wait", Effect: ringi.ReadOnly}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
				close(hung)
				<-ctx.Done()
				return ringi.ToolResult{}, ctx.Err()
			})
			w.says(calls("wait", `{}`))
			if what == "model" {
				w.cfg.Model = hangingModel{hung}
			}
			e := w.engine()
			done := make(chan *ringi.Result, 1)
			ctx, giveUp := context.WithCancel(context.Background())
			defer giveUp()
			go func() {
				res, _ := e.Run(ctx, ringi.RunStart{})
				done <- res
			}()
			<-hung
			if err := e.Cancel(t.Context(), w.onlyRun(), ana, "stop", true); err != nil {
				t.Fatal(err)
			}
			select {
			case res := <-done:
				if res == nil || res.Status != ringi.Cancelled {
					t.Errorf("%+v", res)
				}
			case <-time.After(time.Minute):
				t.Error("the run hangs on")
			}
		})
	}
}

// hangingModel waits for its context.
type hangingModel struct{ hung chan struct{} }

func (m hangingModel) Generate(ctx context.Context, _ ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		close(m.hung)
		<-ctx.Done()
		yield(ringi.ModelEvent{}, ctx.Err())
	}
}

// PrepareStep fails in the process that resumes: an error of it fails the run,
// and does not leave it to be tried for ever.
func TestBreak_PrepareStepThatFailsOnResume(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	bad := false
	w.cfg.PrepareStep = func(context.Context, engine.StepInfo) (engine.StepPlan, error) {
		if bad {
			return engine.StepPlan{}, errors.New("no plan")
		}
		return engine.StepPlan{}, nil
	}
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.decide(e, res.Pending[0].Approve(ana))
	bad = true
	e = w.restart()
	for range 5 {
		if res, err := e.Resume(t.Context(), res.RunID); err == nil {
			if res.Status != ringi.Failed {
				t.Errorf("%+v", res)
			}
			w.wantRan()
			return
		}
	}
	t.Error("the run is given back again and again")
}

// A plan that names a tool which does not exist tightens nothing: it is refused
// as a policy would be.
func TestBreak_PrepareStepMisspellsATool(t *testing.T) {
	w := newWorld(t)
	w.cfg.PrepareStep = func(context.Context, engine.StepInfo) (engine.StepPlan, error) {
		return engine.StepPlan{Approval: ringi.Approval{Tools: map[string]ringi.ToolApproval{"fnid": {Status: ringi.Denied}}}}, nil
	}
	w.says(calls("find", `{}`))
	res := w.run(w.engine(), ringi.RunStart{})
	if res.Status != ringi.Failed {
		t.Errorf("%+v", res)
	}
	w.wantRan()
}

// An edit is as bounded as what a model writes, also in a process without
// tools.
func TestBreak_HugeEditInAProcessWithoutTools(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	res := w.run(w.engine(), ringi.RunStart{})
	cli, err := engine.New(engine.Config{Store: w.store})
	must(t, err)
	for name, input := range map[string]string{
		"size": `{"a":"` + strings.Repeat("x", 8<<20) + `"}`, "no JSON": "rm -rf", "no object": "[]", "twice": `{"a":1,"a":2}`,
	} {
		if _, err := cli.Decide(t.Context(), res.Pending[0].Edit(ana, json.RawMessage(input))); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// A lease that no engine can hold.
func TestBreak_LeaseThatIsTooShort(t *testing.T) {
	for _, lease := range []time.Duration{-time.Second, 1, time.Microsecond} {
		w := newWorld(t)
		w.says(calls("find", `{}`))
		w.cfg.Lease = lease
		e, err := engine.New(w.cfg)
		if err != nil {
			continue
		}
		res, err := e.Run(t.Context(), ringi.RunStart{})
		if err != nil || res.Status != ringi.Completed {
			t.Errorf("lease %v is taken, and no run goes: %v", lease, err)
		}
	}
}

// A tool that comes with a function of its own after New: a process without
// the function judges nothing.
func TestBreak_JudgeThatCameAfterNew(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`), calls("late", `{}`))
	e := w.engine()
	w.tool(ringi.Tool{Name: "late", Effect: ringi.ReadOnly}, nil, ringi.ToolHooks{
		NeedsApproval: func(context.Context, ringi.ToolCall) (bool, error) { return true, nil },
	})
	res := w.run(e, ringi.RunStart{})
	w.reg = ringi.NewRegistry()
	w.cfg.Registry = w.reg
	w.tool(ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, AllowEdit: true, AllowRespond: true}, nil)
	w.tool(ringi.Tool{Name: "late", Effect: ringi.ReadOnly}, nil)
	e = w.restart()
	w.decide(e, res.Pending[0].Deny(ana, ""))
	_, err := e.Resume(t.Context(), res.RunID)
	wantErr(t, err, ringi.ErrPolicyMissing)
	w.wantRan()
}

// An idempotent write was approved, started, and its process died; the next
// version of the program has another definition of the tool. The old yes is not
// for that one.
func TestBreak_RepeatUnderAnotherDefinition(t *testing.T) {
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "send", Effect: ringi.IdempotentWrite, Description: "sends a draft to its author"}, nil)
	w.says(calls("send", `{}`))
	m := w.meddled()
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.decide(e, res.Pending[0].Approve(ana))
	m.set(func(m *meddler) {
		m.commit = func(c *ringi.Commit) error {
			if holds(c, ringi.EventToolFinished) {
				return errors.New("the process dies")
			}
			return nil
		}
	})
	if _, err := e.Resume(t.Context(), res.RunID); err == nil {
		t.Fatal("no error")
	}
	ran := w.count("send")
	w.reg = ringi.NewRegistry()
	w.cfg.Registry, w.cfg.Store = w.reg, w.store
	w.tool(ringi.Tool{Name: "send", Effect: ringi.IdempotentWrite, Description: "sends a draft to every customer"}, nil)
	got := w.resume(w.restart(), res.RunID)
	if w.count("send") != ran {
		t.Errorf("an approval of another definition ran: %+v", got)
	}
}

// While one process asks its callback, another that resumes the run is told
// that it is busy, and asks nobody.
func TestBreak_TwoCallbacksForOneRun(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	asked, free := make(chan struct{}), make(chan struct{})
	w.cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
		close(asked)
		<-free
		return r.Deny(ana, "no"), nil
	}
	e := w.engine()
	done := make(chan error, 1)
	go func() {
		_, err := e.Run(context.Background(), ringi.RunStart{})
		done <- err
	}()
	<-asked
	w.cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
		t.Error("a second process asks")
		return r.Approve(ben), nil
	}
	_, err := w.engine().Resume(t.Context(), w.onlyRun())
	wantErr(t, err, ringi.ErrBusy)
	close(free)
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.wantRan()
}

func twoKeys(t *testing.T) (older, newer []byte) {
	t.Helper()
	return []byte("the older key of thirty-two byte"), []byte("the newer key of thirty-two byte")
}

func ring(t *testing.T, secrets ...[]byte) *sign.Keyring {
	t.Helper()
	k, err := sign.New(secrets...)
	must(t, err)
	return k
}

// A key is rotated process by process. One that does not have the new key yet
// must not take what the others write for corrupt, for ever.
func TestBreak_RollingKeyRotation(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	older, newer := twoKeys(t)
	w.cfg.Keyring = ring(t, older)
	old := w.engine()
	w.cfg.Keyring = ring(t, newer, older)
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	// The old process looks at its inbox, and a worker of it at the run.
	old.Requests(t.Context(), ringi.RequestQuery{})
	old.Resume(t.Context(), res.RunID)
	w.decide(e, res.Pending[0].Approve(ana))
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
	w.wantRan("pay {}")
}

// A process that was started before the store had a key goes on writing.
func TestBreak_ProcessFromBeforeTheFirstKey(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	old := w.engine()
	older, _ := twoKeys(t)
	w.cfg.Keyring = ring(t, older)
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.decide(e, res.Pending[0].Deny(ana, "no"))
	if res, err := old.Resume(t.Context(), res.RunID); err == nil {
		t.Errorf("a process without the key goes on with a keyed run: %+v", res)
	}
	if err := old.Cancel(t.Context(), res.RunID, ana, "", false); err == nil {
		t.Error("a process without the key ends a keyed run")
	}
	got, err := e.Resume(t.Context(), res.RunID)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, ringi.Completed, 0)
}

// A store that worked unsigned is opened with a key. Its runs were never
// signed: they do not run, and they are not destroyed either.
func TestBreak_UnsignedStoreGetsAKey(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	waiting := w.run(e, ringi.RunStart{})
	ended := w.run(e, ringi.RunStart{Thread: "thr_talk", Unattended: ringi.PerTool})
	older, _ := twoKeys(t)
	w.cfg.Keyring = ring(t, older)
	keyed, err := engine.New(w.cfg)
	if err != nil {
		return // it says so at the start: nothing is lost
	}
	keyed.Requests(t.Context(), ringi.RequestQuery{})
	if row, _ := w.store.Row(t.Context(), "default", waiting.RunID); row.Corrupt != "" {
		t.Errorf("to look at the inbox marks an honest run: %s", row.Corrupt)
	}
	if _, err := keyed.Run(t.Context(), ringi.RunStart{Thread: "thr_talk"}); err != nil {
		wantErr(t, err, ringi.ErrNoKey) // what nobody signed is not read
	}
	if row, _ := w.store.Row(t.Context(), "default", ended.RunID); row.Corrupt != "" {
		t.Errorf("an ended run is marked: %s", row.Corrupt)
	}
}

// stored are the stores that an attack is tried on. The second opens the same
// data again, as another process would.
func stored(t *testing.T, f func(t *testing.T, w *world, reopen func() ringi.Store)) {
	t.Run("memory", func(t *testing.T) {
		w := newWorld(t)
		f(t, w, func() ringi.Store { return w.store.Restart() })
	})
	t.Run("sqlite", func(t *testing.T) {
		w := newWorld(t)
		path := filepath.Join(t.TempDir(), "ringi.db")
		open := func() ringi.Store {
			s, err := sqlite.Open(path, sqlite.Options{Now: w.now})
			must(t, err)
			t.Cleanup(func() { s.Close() })
			return s
		}
		w.cfg.Store = open()
		f(t, w, open)
	})
}

// Fifty at once resume one run, in two processes, until it has ended: the
// write runs once, everybody gets the result or ErrBusy.
func TestBreak_ResumeStorm(t *testing.T) {
	stored(t, func(t *testing.T, w *world, reopen func() ringi.Store) {
		w.tool(ringi.Tool{Name: "work", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
			time.Sleep(5 * time.Millisecond)
			return ringi.ToolResult{Output: "worked"}, nil
		})
		w.says(calls("work", `{}`, "pay", `{}`))
		engines := []*engine.Engine{w.engine()}
		w.cfg.Store = reopen()
		engines = append(engines, w.engine())
		res := w.run(engines[0], ringi.RunStart{})
		for _, r := range res.Pending {
			w.decide(engines[1], r.Approve(ana))
		}
		var ended atomic.Int64
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				for range 1000 {
					got, err := engines[i%2].Resume(t.Context(), res.RunID)
					if errors.Is(err, ringi.ErrBusy) {
						time.Sleep(time.Millisecond)
						continue
					}
					if err != nil {
						t.Error(err)
					} else if got.Status != ringi.Completed {
						t.Errorf("%s, %d pending", got.Status, len(got.Pending))
					}
					ended.Add(1)
					return
				}
			})
		}
		wg.Wait()
		if ended.Load() != 50 {
			t.Errorf("%d of 50 saw the end", ended.Load())
		}
		w.wantRan("work {}", "pay {}")
	})
}

// Everything that a person can do to one request, and a resume, at once.
func TestBreak_EveryAnswerAtOnce(t *testing.T) {
	stored(t, func(t *testing.T, w *world, reopen func() ringi.Store) {
		w.says(calls("pay", `{"n":1}`))
		a := w.engine()
		w.cfg.Store = reopen()
		b := w.engine()
		for round := range 16 * rounds() {
			w.ran = nil
			res := w.run(a, ringi.RunStart{})
			r := res.Pending[0]
			ctx := context.Background()
			approved := make(chan string, 20)
			approve := func(e *engine.Engine, r ringi.ApprovalRequest) {
				if _, err := e.Decide(ctx, r.Approve(ana)); err == nil {
					approved <- string(r.Call.Input)
				}
			}
			var wg sync.WaitGroup
			for i, act := range []func(){
				func() { approve(a, r) },
				func() { approve(b, r) },
				func() { b.Decide(ctx, r.Deny(ben, "no")) },
				func() { a.TakeBack(ctx, r.ID, ana, "wait") },
				func() {
					if set, err := b.Decide(ctx, r.Edit(ben, json.RawMessage(`{"n":2}`))); err == nil && !set.Proposed {
						approve(a, set.Request)
					}
				},
				func() { a.Resume(ctx, res.RunID) },
				func() { b.Resume(ctx, res.RunID) },
				func() {
					if round%4 == 0 {
						b.Cancel(ctx, res.RunID, ana, "stop", false) // with now a call may end behind its round
					}
				},
			} {
				wg.Go(func() {
					time.Sleep(time.Duration((i*7+round*13)%5) * 100 * time.Microsecond)
					act()
				})
			}
			wg.Wait()
			for range 20 {
				got, err := a.Resume(ctx, res.RunID)
				if errors.Is(err, ringi.ErrBusy) {
					continue
				}
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				if got.Status.Final() {
					break
				}
				for _, r := range got.Pending {
					a.Decide(ctx, r.Deny(ben, "enough"))
				}
			}
			close(approved)
			yes := map[string]bool{}
			for input := range approved {
				yes["pay "+input] = true
			}
			w.mu.Lock()
			if len(w.ran) > 1 || len(w.ran) == 1 && !yes[w.ran[0]] {
				t.Errorf("round %d: ran %q, approved %v", round, w.ran, yes)
			}
			w.mu.Unlock()
			if row, err := w.cfg.Store.Row(ctx, "default", res.RunID); err != nil || !row.Status.Final() || row.Owner != "" {
				t.Errorf("round %d: %v %+v", round, err, row)
			}
			if v, err := a.Verify(ctx, res.RunID); err != nil || v.Broken != "" {
				t.Errorf("round %d: %v %+v", round, err, v)
			}
		}
	})
}

// Many start on one thread at once: one at a time goes, and each sees what all
// before it said.
func TestBreak_ManyStartOnOneThread(t *testing.T) {
	stored(t, func(t *testing.T, w *world, reopen func() ringi.Store) {
		var mu sync.Mutex
		sent := map[string]int{}
		w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
			mu.Lock()
			defer mu.Unlock()
			sent[req.RunID] = len(req.Messages)
			return &ringi.ModelTurn{Text: "done"}
		})
		a := w.engine()
		w.cfg.Store = reopen()
		b := w.engine()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				_, err := []*engine.Engine{a, b}[i%2].Run(t.Context(), ringi.RunStart{Thread: "thr_1", Messages: []ringi.Message{ringi.User("hi")}})
				if err != nil && !errors.Is(err, ringi.ErrRunOpen) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		runs, err := w.cfg.Store.Transcript(t.Context(), "default", "thr_1")
		must(t, err)
		for _, r := range runs {
			if !r.Row.Status.Final() {
				t.Errorf("%+v", r.Row)
			}
		}
		if len(runs) == 0 || len(runs) != len(sent) {
			t.Errorf("%d runs, %d prompts", len(runs), len(sent))
		}
	})
}

// A handler, an observer and a policy function call back into the engine, on
// the run that calls them.
func TestBreak_CodeInsideARunCallsTheEngine(t *testing.T) {
	w := newWorld(t)
	var e *engine.Engine
	back := func(ctx context.Context, run string) {
		if res, err := e.Resume(ctx, run); !errors.Is(err, ringi.ErrBusy) && (err != nil || !res.Status.Waiting()) {
			t.Errorf("resume of a run inside itself: %v %+v", err, res)
		}
		page, err := e.Requests(ctx, ringi.RequestQuery{RunID: run})
		if err != nil {
			t.Error(err)
		}
		for _, r := range page.Requests {
			// A program that is no person decides nothing, from wherever it calls.
			for _, by := range []ringi.Principal{{}, {ID: "agent", Kind: ringi.ServiceAccount}, {ID: "me", Kind: ringi.Process}, {ID: "me"}} {
				d := r.Approve(by)
				d.Channel = "callback"
				if _, err := e.Decide(ctx, d); err == nil {
					t.Errorf("%+v decided", by)
				}
			}
		}
	}
	w.tool(ringi.Tool{Name: "self", Effect: ringi.NonIdempotentWrite}, func(ctx context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
		tc, _ := ringi.ToolContextFrom(ctx)
		back(ctx, tc.RunID)
		if _, err := e.Run(ctx, ringi.RunStart{Thread: tc.Thread, WithdrawOpen: true}); !errors.Is(err, ringi.ErrRunOpen) {
			t.Errorf("a run on its own thread: %v", err)
		}
		return ringi.ToolResult{Output: "ok"}, nil
	})
	w.cfg.Approval.Func = func(ctx context.Context, c ringi.CallInfo) (ringi.Verdict, error) {
		back(ctx, c.Run.ID)
		if c.Call.Tool == "self" {
			return ringi.Verdict{Status: ringi.Approved}, nil
		}
		return ringi.Verdict{}, nil
	}
	w.cfg.Observers = []engine.Observer{{
		StepStart: func(ctx context.Context, r ringi.RunInfo, _ int) { back(ctx, r.ID) },
		ToolStart: func(ctx context.Context, r ringi.RunInfo, _ ringi.ToolCall) { back(ctx, r.ID) },
		ToolEnd:   func(ctx context.Context, r ringi.RunInfo, _ ringi.ToolResult) { back(ctx, r.ID) },
		End:       func(ctx context.Context, r ringi.RunInfo, _ ringi.Result) { back(ctx, r.ID) },
	}}
	w.says(calls("self", `{}`, "pay", `{}`))
	e = w.engine()
	done := make(chan *ringi.Result, 1)
	go func() {
		res, err := e.Run(context.Background(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	select {
	case res := <-done:
		wantStatus(t, res, ringi.WaitingForApproval, 1)
	case <-time.After(time.Minute):
		t.Fatal("the engine waits for itself")
	}
	w.wantRan("self {}")
}

// A handler cancels its own run, with now: it is cut, and what it did is
// unknown; nothing waits for ever.
func TestBreak_HandlerCancelsItsOwnRun(t *testing.T) {
	for _, now := range []bool{false, true} {
		w := newWorld(t)
		var e *engine.Engine
		w.tool(ringi.Tool{Name: "stop", Effect: ringi.NonIdempotentWrite}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
			tc, _ := ringi.ToolContextFrom(ctx)
			if err := e.Cancel(ctx, tc.RunID, ana, "enough", now); err != nil {
				t.Error(err)
			}
			return ringi.ToolResult{Output: "stopped"}, nil
		})
		w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"stop": {Status: ringi.Approved}}
		w.says(calls("stop", `{}`, "pay", `{}`))
		e = w.engine()
		wantStatus(t, w.run(e, ringi.RunStart{}), ringi.Cancelled, 0)
		w.wantRan("stop {}")
		w.wantGivenBack(w.onlyRun())
	}
}

// A handler keeps its context and starts a run when its call has long ended:
// the run is a child all the same, and asks nobody.
func TestBreak_ChildOfACallThatHasEnded(t *testing.T) {
	w := newWorld(t)
	var kept context.Context
	w.tool(ringi.Tool{Name: "keep", Effect: ringi.ReadOnly}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		kept = ctx
		return ringi.ToolResult{Output: "kept"}, nil
	})
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		switch {
		case req.Step > 1:
			return &ringi.ModelTurn{Text: "done"}
		case req.Messages[0].Text == "child":
			return calls("pay", `{}`, "root", `{}`)
		}
		return calls("keep", `{}`)
	})
	w.tool(ringi.Tool{Name: "root", Effect: ringi.ReadOnly, AdminOnly: true}, nil)
	e := w.engine()
	wantStatus(t, w.run(e, ringi.RunStart{By: ana}), ringi.Completed, 0)
	start := ringi.RunStart{Messages: []ringi.Message{ringi.User("child")}}
	if res, err := e.Run(kept, start); err == nil {
		t.Errorf("under a context that has ended: %+v", res)
	}
	res, err := e.Run(context.WithoutCancel(kept), start)
	must(t, err)
	wantStatus(t, res, ringi.Completed, 0)
	for _, r := range res.Results {
		if r.Outcome == ringi.OutcomeOK {
			t.Errorf("ran in a run that nobody watches: %+v", r)
		}
	}
	w.wantRan("keep {}")
}

// A tool is registered while a run goes on, by its own policy function; the
// offer of the next run has it, and nothing is locked.
func TestBreak_PolicyRegistersTools(t *testing.T) {
	w := newWorld(t)
	n := 0
	w.cfg.Approval.Func = func(context.Context, ringi.CallInfo) (ringi.Verdict, error) {
		n++
		return ringi.Verdict{}, w.reg.Add(ringi.Tool{Name: "new" + string(rune('a'+n)), Effect: ringi.ReadOnly},
			func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.ran = append(w.ran, "new")
				return ringi.ToolResult{}, nil
			})
	}
	w.says(calls("find", `{}`), calls("newb", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	wantStatus(t, res, ringi.Completed, 0)
	for _, tool := range e.Offer(ringi.RunInfo{}).Names() {
		if tool == "newb" {
			return
		}
	}
	t.Error("the new tool is not offered to the next run")
}

// Decisions built by hand, replayed, and carried to where they do not belong.
func TestBreak_DecisionsThatDoNotBelong(t *testing.T) {
	w := newWorld(t)
	w.cfg.Keyring = keyring(t)
	w.says(calls("pay", `{"n":1}`, "pay", `{"n":1}`))
	e := w.engine()
	one := w.run(e, ringi.RunStart{})
	two := w.run(e, ringi.RunStart{})
	first, second := one.Pending[0], one.Pending[1]
	w.cfg.Space = "tenant"
	other := w.engine()
	w.cfg.Space = ""
	foreign := newWorld(t)
	foreign.cfg.Keyring = keyring(t)
	foreign.says()
	stranger := foreign.engine()
	yes := first.Approve(ana)
	change := func(f func(*ringi.Decision)) ringi.Decision {
		d := yes
		f(&d)
		return d
	}
	for name, try := range map[string]struct {
		e    *engine.Engine
		d    ringi.Decision
		want error
	}{
		"digest of the sibling":       {e, change(func(d *ringi.Decision) { d.Digest = second.Digest }), ringi.ErrStale},
		"digest of another run":       {e, change(func(d *ringi.Decision) { d.Digest = two.Pending[0].Digest }), ringi.ErrStale},
		"id of another run":           {e, change(func(d *ringi.Decision) { d.RequestID = two.Pending[0].ID }), ringi.ErrStale},
		"no digest":                   {e, change(func(d *ringi.Decision) { d.Digest = "" }), ringi.ErrStale},
		"digest in capitals":          {e, change(func(d *ringi.Decision) { d.Digest = strings.ToUpper(d.Digest) }), ringi.ErrStale},
		"no request":                  {e, change(func(d *ringi.Decision) { d.RequestID = "" }), ringi.ErrNotFound},
		"another space":               {other, yes, ringi.ErrNotFound},
		"another store":               {stranger, yes, ringi.ErrNotFound},
		"nobody":                      {e, change(func(d *ringi.Decision) { d.By = ringi.Principal{} }), ringi.ErrNoPrincipal},
		"no kind":                     {e, change(func(d *ringi.Decision) { d.By.Kind = "" }), ringi.ErrNotPermitted},
		"an agent":                    {e, change(func(d *ringi.Decision) { d.By.Kind = ringi.ServiceAccount }), ringi.ErrNotPermitted},
		"this program":                {e, change(func(d *ringi.Decision) { d.By.Kind, d.Channel = ringi.Process, "callback" }), ringi.ErrNotPermitted},
		"no answer":                   {e, change(func(d *ringi.Decision) { d.Answer = "" }), ringi.ErrAnswer},
		"approve with a capital":      {e, change(func(d *ringi.Decision) { d.Answer = "Approve" }), ringi.ErrAnswer},
		"an answer of another kind":   {e, change(func(d *ringi.Decision) { d.Answer = ringi.Ran }), ringi.ErrAnswer},
		"fill where nothing is asked": {e, change(func(d *ringi.Decision) { d.Answer, d.Input = ringi.Fill, `{}` }), ringi.ErrAnswer},
		"take back as an answer":      {e, change(func(d *ringi.Decision) { d.Answer = "take_back" }), ringi.ErrAnswer},
		"unknown scope":               {e, change(func(d *ringi.Decision) { d.Scope = "thread" }), ringi.ErrAnswer},
		"reason that is not text":     {e, change(func(d *ringi.Decision) { d.Reason = "\xff" }), ringi.ErrAnswer},
	} {
		_, err := try.e.Decide(t.Context(), try.d)
		if !errors.Is(err, try.want) {
			t.Errorf("%s: %v, want %v", name, err, try.want)
		}
	}
	wantStatus(t, w.resume(e, one.RunID), ringi.WaitingForApproval, 2)
	w.wantRan()
	// Replays: of a yes that stands, that was taken back, and that was spent.
	w.decide(e, yes)
	_, err := e.Decide(t.Context(), yes)
	if _, ok := errors.AsType[*ringi.DecidedError](err); !ok {
		t.Errorf("replay: %v", err)
	}
	_, err = e.TakeBack(t.Context(), first.ID, ana, "")
	must(t, err)
	_, err = e.Decide(t.Context(), yes)
	wantErr(t, err, ringi.ErrWithdrawn)
	w.decide(e, second.Deny(ana, ""))
	res := w.resume(e, one.RunID)
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	if r := res.Pending[0]; r.ID == first.ID || r.Digest == first.Digest {
		t.Error("the new question is the old one")
	}
	w.decide(e, res.Pending[0].Deny(ana, ""))
	wantStatus(t, w.resume(e, one.RunID), ringi.Completed, 0)
	_, err = e.Decide(t.Context(), yes)
	wantErr(t, err, ringi.ErrWithdrawn)
	w.wantRan()
}

// The deadline to the microsecond, by both stores: at its instant it is over.
func TestBreak_DeadlinesAtTheirInstant(t *testing.T) {
	for _, early := range []time.Duration{time.Microsecond, 0} {
		stored(t, func(t *testing.T, w *world, _ func() ringi.Store) {
			w.says(calls("pay", `{}`))
			e := w.engine()
			res := w.run(e, ringi.RunStart{})
			w.advance(res.Pending[0].ExpiresAt.Sub(w.now()) - early)
			_, err := e.Decide(t.Context(), res.Pending[0].Approve(ana))
			if early == 0 {
				wantErr(t, err, ringi.ErrExpired)
				wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
				w.wantRan()
				return
			}
			must(t, err)
			w.advance(24*time.Hour - early)
			wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
			w.wantRan("pay {}")
		})
		stored(t, func(t *testing.T, w *world, _ func() ringi.Store) {
			w.says(calls("pay", `{}`))
			e := w.engine()
			res := w.run(e, ringi.RunStart{})
			w.decide(e, res.Pending[0].Approve(ana))
			w.advance(24 * time.Hour)
			wantStatus(t, w.resume(e, res.RunID), ringi.WaitingForApproval, 1)
			w.wantRan()
		})
	}
}

// odd are texts that a caller can pass where a name stands.
var odd = map[string]string{
	"invalid UTF-8": "a\xff\xfeb", "NUL": "a\x00b", "newline": "a\nb", "escape": "a\x1b[2Jb", "C1": "a\u009bb", "separator": "a\u2028b",
	"bidi": "a\u202eb", "long": strings.Repeat("x", 300), "very long": strings.Repeat("y", 5000), "blank": " ", "quote": `a"b\`, "surrogate": "a\xed\xa0\x80b",
}

// Odd text in every field that a caller passes, with a keyring, on both stores:
// the run is refused at its start, or it goes its whole way. Nothing starts
// that can never be signed, decided or ended.
func TestBreak_OddTextInEveryField(t *testing.T) {
	fields := map[string]func(s *ringi.RunStart, text string){
		"Thread":    func(s *ringi.RunStart, text string) { s.Thread = text },
		"Agent":     func(s *ringi.RunStart, text string) { s.Agent = text },
		"System":    func(s *ringi.RunStart, text string) { s.System = text },
		"message":   func(s *ringi.RunStart, text string) { s.Messages[0].Text = text },
		"author":    func(s *ringi.RunStart, text string) { s.Messages[0].Author = text },
		"By.ID":     func(s *ringi.RunStart, text string) { s.By.ID = text },
		"By.Name":   func(s *ringi.RunStart, text string) { s.By.Name = text },
		"By.Kind":   func(s *ringi.RunStart, text string) { s.By.Kind = ringi.PrincipalKind(text) },
		"By.Auth":   func(s *ringi.RunStart, text string) { s.By.Auth = text },
		"By.Teams":  func(s *ringi.RunStart, text string) { s.By.Teams = []string{text} },
		"Groups":    func(s *ringi.RunStart, text string) { s.Groups = []string{text} },
		"Tools":     func(s *ringi.RunStart, text string) { s.Tools = []string{"pay", text} },
		"Runtime":   func(s *ringi.RunStart, text string) { s.Runtime = map[string]string{"k": text} },
		"raw value": func(s *ringi.RunStart, text string) { s.Runtime = json.RawMessage(`{"k":"` + text + `"}`) },
		"history": func(s *ringi.RunStart, text string) {
			s.Messages = append([]ringi.Message{{Role: ringi.RoleAssistant, Text: text, Opaque: text, Calls: []ringi.ToolCall{{ID: text, ModelID: text, Tool: text, Input: ringi.Input(text)}}},
				{Role: ringi.RoleTool, Results: []ringi.ToolResult{{CallID: text, ModelID: text, Output: text, Note: text}}}}, s.Messages...)
		},
	}
	stored(t, func(t *testing.T, w *world, _ func() ringi.Store) {
		w.cfg.Keyring = keyring(t)
		w.says(calls("pay", `{}`))
		e := w.engine()
		for field, set := range fields {
			if w.cfg.Store != w.store && !slices.Contains([]string{"Thread", "Agent", "By.ID"}, field) {
				continue // no column of its own
			}
			for name, text := range odd {
				w.ran = nil
				start := ringi.RunStart{By: ana, Messages: []ringi.Message{ringi.User("go")}}
				set(&start, text)
				res, err := e.Run(t.Context(), start)
				if err != nil {
					continue
				}
				if len(res.Pending) != 1 {
					t.Errorf("%s, %s: %s (%s)", field, name, res.Status, res.Detail)
					continue
				}
				page, err := e.Requests(t.Context(), ringi.RequestQuery{RunID: res.RunID})
				if err != nil || len(page.Requests) != 1 {
					t.Errorf("%s, %s: %v", field, name, err)
					continue
				}
				if _, err := e.Decide(t.Context(), page.Requests[0].Approve(ben)); err != nil {
					t.Errorf("%s, %s: %v", field, name, err)
					continue
				}
				if res, err = e.Resume(t.Context(), res.RunID); err != nil || res.Status != ringi.Completed && field != "Groups" {
					t.Errorf("%s, %s: %v %+v", field, name, err, res)
					continue
				}
				if v, err := e.Verify(t.Context(), res.RunID); err != nil || v.Broken != "" {
					t.Errorf("%s, %s: %v %+v", field, name, err, v)
				}
			}
		}
	})
}

// Odd text in every field of an answer: refused, and the request waits for
// another; or taken, and the run goes its way.
func TestBreak_OddTextInEveryAnswer(t *testing.T) {
	fields := map[string]func(d *ringi.Decision, text string){
		"By.ID":   func(d *ringi.Decision, text string) { d.By.ID = text },
		"By.Name": func(d *ringi.Decision, text string) { d.By.Name = text },
		"By.Auth": func(d *ringi.Decision, text string) { d.By.Auth = text },
		"By.Team": func(d *ringi.Decision, text string) { d.By.Teams = []string{text} },
		"Reason":  func(d *ringi.Decision, text string) { d.Reason = text },
		"Note":    func(d *ringi.Decision, text string) { d.Note = text },
		"Channel": func(d *ringi.Decision, text string) { d.Channel = text },
		"Result":  func(d *ringi.Decision, text string) { d.Answer, d.Result = ringi.Respond, text },
		"Request": func(d *ringi.Decision, text string) { d.RequestID = text },
		"Digest":  func(d *ringi.Decision, text string) { d.Digest = text },
	}
	stored(t, func(t *testing.T, w *world, _ func() ringi.Store) {
		w.cfg.Keyring = keyring(t)
		w.says(calls("pay", `{}`))
		e := w.engine()
		for field, set := range fields {
			if w.cfg.Store != w.store && !slices.Contains([]string{"By.ID", "Channel", "Request"}, field) {
				continue // no column of its own
			}
			for name, text := range odd {
				res := w.run(e, ringi.RunStart{})
				d := res.Pending[0].Approve(ana)
				set(&d, text)
				if _, err := e.Decide(t.Context(), d); err != nil {
					if _, err := e.Decide(t.Context(), res.Pending[0].Approve(ana)); err != nil {
						t.Errorf("%s, %s: refused, and then: %v", field, name, err)
					}
				}
				got, err := e.Resume(t.Context(), res.RunID)
				if err != nil || got.Status != ringi.Completed {
					t.Errorf("%s, %s: %v %+v", field, name, err, got)
				}
				if v, err := e.Verify(t.Context(), res.RunID); err != nil || v.Broken != "" {
					t.Errorf("%s, %s: %v %+v", field, name, err, v)
				}
			}
		}
	})
}

// Two threads whose names differ behind a NUL, or only in broken bytes, are
// two.
func TestBreak_ThreadsThatLookAlike(t *testing.T) {
	stored(t, func(t *testing.T, w *world, _ func() ringi.Store) {
		w.says()
		e := w.engine()
		for i, thread := range []string{"a", "a\x00b", "a\x00c", "a\xff", "a\xfe", "A", "a ", "å", "a\u030a"} {
			w.seen = nil
			w.run(e, ringi.RunStart{Thread: thread})
			if n := len(w.seen[0].Messages); n != 1 {
				t.Errorf("thread %d (%q) reads %d messages", i, thread, n)
			}
		}
	})
}

// failAt makes the nth call of a store fail, once, whatever the method; 0
// counts only.
type failAt struct {
	ringi.Store
	mu    sync.Mutex
	n, at int
	until int    // it fails up to this call, too
	cut   func() // called in place of a failure, where it is set
	which string
}

func (f *failAt) fails(method string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.n != f.at && (f.n < f.at || f.n > f.until) {
		return nil
	}
	f.which = method
	if f.cut != nil {
		f.cut()
		return nil
	}
	return errors.New("connection lost in " + method)
}

func (f *failAt) Commit(ctx context.Context, c *ringi.Commit) error {
	if err := f.fails("Commit"); err != nil {
		return err
	}
	return f.Store.Commit(ctx, c)
}
func (f *failAt) Now(ctx context.Context) (time.Time, error) {
	if err := f.fails("Now"); err != nil {
		return time.Time{}, err
	}
	return f.Store.Now(ctx)
}
func (f *failAt) Load(ctx context.Context, space, id string) (*ringi.StoredRun, error) {
	if err := f.fails("Load"); err != nil {
		return nil, err
	}
	return f.Store.Load(ctx, space, id)
}
func (f *failAt) Row(ctx context.Context, space, id string) (ringi.RunRow, error) {
	if err := f.fails("Row"); err != nil {
		return ringi.RunRow{}, err
	}
	return f.Store.Row(ctx, space, id)
}
func (f *failAt) Transcript(ctx context.Context, space, thread string) ([]*ringi.StoredRun, error) {
	if err := f.fails("Transcript"); err != nil {
		return nil, err
	}
	return f.Store.Transcript(ctx, space, thread)
}
func (f *failAt) Runs(ctx context.Context, q ringi.RunQuery) ([]ringi.RunRow, error) {
	if err := f.fails("Runs"); err != nil {
		return nil, err
	}
	return f.Store.Runs(ctx, q)
}
func (f *failAt) Request(ctx context.Context, space, id string) (ringi.RequestRow, error) {
	if err := f.fails("Request"); err != nil {
		return ringi.RequestRow{}, err
	}
	return f.Store.Request(ctx, space, id)
}
func (f *failAt) Beat(ctx context.Context, owner string, lease time.Duration) error {
	if err := f.fails("Beat"); err != nil {
		return err
	}
	return f.Store.Beat(ctx, owner, lease)
}
func (f *failAt) Tool(ctx context.Context, digest string) ([]byte, error) {
	if err := f.fails("Tool"); err != nil {
		return nil, err
	}
	return f.Store.Tool(ctx, digest)
}
func (f *failAt) Attempt(ctx context.Context, a ringi.Attempt) error {
	if err := f.fails("Attempt"); err != nil {
		return err
	}
	return f.Store.Attempt(ctx, a)
}

// story is a run with everything: reads, an idempotent and two non-idempotent
// writes, a deny, and a second step.
func (w *world) story() {
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"put": {Status: ringi.Approved}}
	w.says(calls("find", `{"n":1}`, "put", `{"n":2}`, "pay", `{"n":3}`, "pay", `{"n":4}`), calls("look", `{"n":5}`, "pay", `{"n":6}`))
}

// live brings a story to its end, whatever fails on the way: it does what a
// user would, tries again. It returns the end.
func (w *world) live(e *engine.Engine, ctx func() context.Context) *ringi.Result {
	w.t.Helper()
	id := ""
	for try := range 30 {
		var res *ringi.Result
		var err error
		if id == "" {
			if rows, rerr := w.store.Runs(w.t.Context(), ringi.RunQuery{Space: "default"}); rerr == nil && len(rows) > 0 {
				id = rows[0].ID
			}
		}
		if id == "" {
			res, err = e.Run(ctx(), ringi.RunStart{Thread: "thr_story", Messages: []ringi.Message{ringi.User("go")}})
		} else {
			res, err = e.Resume(ctx(), id)
		}
		if err != nil {
			if try > 20 {
				w.t.Fatal(err)
			}
			continue
		}
		id = res.RunID
		if res.Status.Final() {
			return res
		}
		if !res.Status.Waiting() && res.Status != ringi.Queued {
			w.t.Fatalf("the run is %s, and nobody drives it", res.Status)
		}
		for _, r := range res.Pending {
			d := r.Approve(ana)
			switch {
			case r.Kind == ringi.KindOutcome && w.count("pay")+w.count("put") > 0 && slices.Contains(w.ran, r.Call.Tool+" "+string(r.Call.Input)):
				d = r.Ran(ana, "ok "+r.Call.Tool)
			case r.Kind == ringi.KindOutcome:
				d = r.RunAgain(ana)
			case r.Call.Input == `{"n":4}`:
				d = r.Deny(ana, "no")
			}
			e.Decide(ctx(), d)
		}
	}
	w.t.Fatal("the run does not end")
	return nil
}

func (w *world) checkStory(res *ringi.Result) {
	w.t.Helper()
	if res.Status != ringi.Completed || res.Text != "done" || len(res.Results) != 6 {
		w.t.Errorf("%s (%s %s), %d results", res.Status, res.Reason, res.Detail, len(res.Results))
	}
	for want, n := range map[string]int{`pay {"n":3}`: 1, `pay {"n":4}`: 0, `pay {"n":6}`: 1} {
		got := 0
		for _, r := range w.ran {
			if r == want {
				got++
			}
		}
		if got != n {
			w.t.Errorf("%s ran %d times, want %d", want, got, n)
		}
	}
}

// Every single call of the store fails, once, in one life each.
func TestBreak_EveryCallOfTheStoreFailsOnce(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t)
		w.story()
		f := &failAt{Store: w.store}
		w.cfg.Store = f
		e := w.engine()
		f.at = f.n + at
		w.checkStory(w.live(e, t.Context))
		if t.Failed() {
			t.Fatalf("call %d (%s)", at, f.which)
		}
		if f.which == "" {
			if at < 20 {
				t.Errorf("a story of %d calls", at)
			}
			return
		}
	}
}

// The caller's context ends at every single call of the store.
func TestBreak_ContextEndsAtEveryCallOfTheStore(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t)
		w.story()
		f := &failAt{Store: w.store}
		w.cfg.Store = f
		e := w.engine()
		ctx, cancel := context.WithCancel(t.Context())
		f.cut = cancel
		f.at = f.n + at
		w.checkStory(w.live(e, func() context.Context {
			if ctx.Err() != nil {
				return t.Context()
			}
			return ctx
		}))
		cancel()
		if t.Failed() {
			t.Fatalf("call %d (%s)", at, f.which)
		}
		if f.which == "" {
			return
		}
	}
}

// talkative is a model that says something before every turn.
type talkative struct{ ringi.Model }

func (m talkative) Generate(ctx context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		for _, ev := range []ringi.ModelEvent{{TextDelta: "so"}, {ReasoningDelta: "well"}, {InputDelta: "{", CallTool: "find"}} {
			if !yield(ev, nil) {
				return
			}
		}
		m.Model.Generate(ctx, req)(yield)
	}
}

// The reader of a stream leaves at every event.
func TestBreak_ReaderLeavesAtEveryEvent(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t)
		w.story()
		w.cfg.Model = talkative{w.cfg.Model}
		e := w.engine()
		n := 0
		for _, err := range e.Stream(t.Context(), ringi.RunStart{Thread: "thr_story", Messages: []ringi.Message{ringi.User("go")}}) {
			must(t, err)
			if n++; n == at {
				break
			}
		}
		id := w.onlyRun()
		w.wantGivenBack(id)
		for left := n < at; !left; { // and again, in what comes
			left = true
			for _, err := range e.StreamResume(t.Context(), id) {
				must(t, err)
				if n++; n%7 == 0 {
					left = false
					break
				}
			}
			w.wantGivenBack(id)
		}
		w.checkStory(w.live(e, t.Context))
		if t.Failed() {
			t.Fatalf("event %d", at)
		}
		if n < at {
			return
		}
	}
}

// One stream is read twice: two runs, each of its own; on a thread the second
// is refused while the first waits.
func TestBreak_StreamReadTwice(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	stream := e.Stream(t.Context(), ringi.RunStart{Thread: "thr_1", Messages: []ringi.Message{ringi.User("go")}})
	for _, err := range stream {
		must(t, err)
	}
	var last error
	for _, err := range stream {
		last = err
	}
	wantErr(t, last, ringi.ErrRunOpen)
	w.onlyRun()
}

// Some hundred runs on one engine, each with a pause, an answer and a write;
// afterwards nothing is left behind.
func TestBreak_HundredsOfRunsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.cfg.Keyring = keyring(t)
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"put": {Status: ringi.Approved}}
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		if req.Step > 1 {
			return &ringi.ModelTurn{Text: "done"}
		}
		return calls("find", `{}`, "look", `{}`, "put", `{}`, "pay", `{}`)
	})
	e := w.engine()
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for range 300 {
		wg.Go(func() {
			res, err := e.Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
			if err != nil || len(res.Pending) != 1 {
				t.Errorf("%v %+v", err, res)
				return
			}
			if _, err := e.Decide(t.Context(), res.Pending[0].Approve(ana)); err != nil {
				t.Error(err)
				return
			}
			if res, err := e.Resume(t.Context(), res.RunID); err != nil || res.Status != ringi.Completed {
				t.Errorf("%v %+v", err, res)
			}
		})
	}
	wg.Wait()
	if n := w.count("pay"); n != 300 {
		t.Errorf("pay ran %d times", n)
	}
	w.eventually(func() bool { return runtime.NumGoroutine() <= before })
}

// forgetful is a store that forgets everything from time to time, so that what
// grows is the engine's own.
type forgetful struct {
	*memory.Store
	id    string
	owner string
	lease time.Duration
}

func (f *forgetful) ID(context.Context) (string, error) { return f.id, nil }
func (f *forgetful) Beat(ctx context.Context, owner string, lease time.Duration) error {
	f.owner, f.lease = owner, lease
	return f.Store.Beat(ctx, owner, lease)
}

// Many runs leave nothing in the engine.
func TestBreak_EngineDoesNotGrow(t *testing.T) {
	w := newWorld(t)
	w.says(calls("find", `{}`, "pay", `{}`))
	f := &forgetful{Store: w.store, id: "store_forgetful"}
	w.cfg.Store = f
	e := w.engine()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	round := func() {
		f.Store = memory.New(memory.Options{Now: w.now})
		must(t, f.Store.Beat(t.Context(), f.owner, time.Hour))
		for range 200 {
			res := w.run(e, ringi.RunStart{Thread: "thr_x", WithdrawOpen: true})
			w.decide(e, res.Pending[0].Deny(ana, "no"))
			w.resume(e, res.RunID)
			res = w.run(e, ringi.RunStart{})
			must(t, e.Cancel(t.Context(), res.RunID, ana, "", false))
			f.Store = memory.New(memory.Options{Now: w.now})
			must(t, f.Store.Beat(t.Context(), f.owner, time.Hour))
		}
		w.ran, w.seen = nil, nil
		f.Store = memory.New(memory.Options{Now: w.now})
	}
	w.run(e, ringi.RunStart{Unattended: ringi.PerTool})
	round()
	before := heap()
	for range 4 {
		round()
	}
	if after := heap(); after > before+256<<10 {
		t.Errorf("the heap grew by %d bytes in 1,600 runs", after-before)
	}
}

// keyedFile makes a SQLite file with a key: one run that waits for an approval
// or, with yes, has one that is not used yet.
func keyedFile(t *testing.T, w *world, path string, yes bool) *ringi.Result {
	t.Helper()
	store, err := sqlite.Open(path, sqlite.Options{Now: w.now})
	must(t, err)
	defer func() { must(t, store.Close()) }()
	w.cfg.Store, w.cfg.Keyring = store, keyring(t)
	e := w.engine()
	res := w.run(e, ringi.RunStart{Thread: "thr_1", By: ben})
	if yes {
		w.decide(e, res.Pending[0].Approve(ana))
	}
	return res
}

// steal runs statements on a file, with the rights of somebody who can write
// to it.
func steal(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// columns lists the columns of the tables with their types.
func columns(t *testing.T, path string, tables ...string) (out [][3]string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	must(t, err)
	defer db.Close()
	for _, table := range tables {
		rows, err := db.Query(`SELECT name, type FROM pragma_table_info(?)`, table)
		must(t, err)
		for rows.Next() {
			c := [3]string{table}
			must(t, rows.Scan(&c[1], &c[2]))
			if c[1] != "n" {
				out = append(out, c)
			}
		}
		must(t, rows.Err())
	}
	return out
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, b, 0o600))
}

// Every column of every table is changed, one at a time, by somebody without
// the key. What nobody approved does not run, what was approved runs as it was
// approved or not at all, and nobody waits for ever.
func TestBreak_EveryColumnIsChanged(t *testing.T) {
	change := map[string][]string{"TEXT": {"''", "'x' || %s"}, "INTEGER": {"0", "%s + 1"}, "BLOB": {"zeroblob(32)", "substr(%s, 2)"}}
	for _, yes := range []bool{false, true} {
		dir := t.TempDir()
		base := filepath.Join(dir, "base.db")
		w := newWorld(t)
		w.says(calls("pay", `{"n":1}`))
		res := keyedFile(t, w, base, yes)
		for i, c := range columns(t, base, "runs", "records", "requests", "owners", "tools") {
			for k, to := range change[c[2]] {
				if rounds() == 1 && (i+k)%4 != map[bool]int{false: 1, true: 2}[yes] {
					continue // a part of them
				}
				path := filepath.Join(dir, fmt.Sprint(i, "_", k, ".db"))
				copyFile(t, base, path)
				db, err := sql.Open("sqlite", "file:"+path)
				must(t, err)
				_, err = db.Exec("UPDATE " + c[0] + " SET " + c[1] + " = " + strings.ReplaceAll(to, "%s", c[1]))
				must(t, db.Close())
				if err != nil {
					continue // the schema itself refuses it
				}
				w.ran = nil
				store, err := sqlite.Open(path, sqlite.Options{Now: w.now})
				if err != nil {
					continue
				}
				w.cfg.Store = store
				e, err := engine.New(w.cfg)
				must(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				_, err = e.Requests(ctx, ringi.RequestQuery{})
				got, rerr := e.Resume(ctx, res.RunID)
				if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
					t.Errorf("%s.%s = %s (approved: %v): it never ends: %v", c[0], c[1], to, yes, rerr)
				}
				cancel()
				if len(w.ran) > 0 && (!yes || !slices.Equal(w.ran, []string{`pay {"n":1}`})) {
					t.Errorf("%s.%s = %s (approved: %v): ran %q; %v %v %+v", c[0], c[1], to, yes, w.ran, err, rerr, got)
				}
				if c[0] == "records" || c[0] == "runs" && slices.Contains([]string{"seq", "head", "mac"}, c[1]) {
					if v, verr := e.Verify(t.Context(), res.RunID); verr == nil && v.Broken == "" || len(w.ran) > 0 {
						t.Errorf("%s.%s = %s (approved: %v): not found: %+v, ran %q", c[0], c[1], to, yes, v, w.ran)
					}
				}
				must(t, store.Close())
			}
		}
	}
}

// An approved run is carried into another store that has the same key, row by
// row; and a decision is forged onto a chain whose hashes are right.
func TestBreak_RowsCarriedBetweenStores(t *testing.T) {
	dir := t.TempDir()
	staging, production := filepath.Join(dir, "staging.db"), filepath.Join(dir, "production.db")
	w := newWorld(t)
	w.says(calls("pay", `{"n":1}`))
	res := keyedFile(t, w, staging, true)
	keyedFile(t, w, production, false)
	steal(t, production, `ATTACH '`+staging+`' AS s`,
		`INSERT INTO runs SELECT n+10, space, id, 'thr_9', agent, parent, status, reason, open, seq, head, mac, owner, epoch, attempts, corrupt, deadline, created_at, updated_at FROM s.runs`,
		`INSERT INTO records SELECT n+100, space, run, seq, kind, head, payload, salt, hash FROM s.records`,
		`INSERT INTO requests SELECT n+10, space, id, run, 'thr_9', call, kind, tool, state, digest, agent, initiator, people, teams, text, created_at, expires_at, decided_at, use_by, decided_by, risk FROM s.requests`)
	store, err := sqlite.Open(production, sqlite.Options{Now: w.now})
	must(t, err)
	defer store.Close()
	w.cfg.Store = store
	e := w.engine()
	_, err = e.Resume(t.Context(), res.RunID)
	wantErr(t, err, ringi.ErrCorrupt)
	w.wantRan()
}

func TestBreak_ForgedDecisionInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	w := newWorld(t)
	w.says(calls("pay", `{"n":1}`))
	res := keyedFile(t, w, path, false)
	store, err := sqlite.Open(path, sqlite.Options{Now: w.now})
	must(t, err)
	defer store.Close()
	stored, err := store.Load(t.Context(), "default", res.RunID)
	must(t, err)
	r := res.Pending[0]
	recs, chain, err := audit.Chain{Seq: stored.Row.Seq, Head: stored.Row.Head}.Append(nil, w.now(), 1, &ringi.ApprovalDecided{
		Request: r.ID, Answer: ringi.Approve, By: ana, Digest: r.Digest, Signature: r.Signature, At: w.now(), UseBy: w.now().Add(time.Hour)})
	must(t, err)
	x := func(b []byte) string { return fmt.Sprintf("x'%x'", b) }
	rec := recs[0]
	steal(t, path, fmt.Sprintf(`INSERT INTO records (space, run, seq, kind, head, payload, salt, hash) VALUES ('default', '%s', %d, '%s', %s, %s, %s, %s)`,
		res.RunID, rec.Seq, rec.Kind, x(rec.Head), x(rec.Payload), x(rec.Salt), x(rec.Hash[:])),
		fmt.Sprintf(`UPDATE runs SET seq = %d, head = %s, status = 'queued' WHERE id = '%s'`, chain.Seq, x(chain.Head[:]), res.RunID),
		`UPDATE requests SET state = 'approved'`)
	w.cfg.Store = store
	_, err = w.engine().Resume(t.Context(), res.RunID)
	wantErr(t, err, ringi.ErrCorrupt)
	w.wantRan()
}

const (
	killedEnv = "RINGI_BREAK_CHILD" // a process's folder
	killedTo  = "RINGI_BREAK_RUNS"  // how many runs there are when it is done
)

// killedEngine is what every process of the test has: a model that asks for
// three payments in two steps, and a payment that is one line in a file.
func killedEngine(t *testing.T, dir string) (*engine.Engine, *sqlite.Store) {
	store, err := sqlite.Open(filepath.Join(dir, "ringi.db"), sqlite.Options{})
	must(t, err)
	reg := ringi.NewRegistry()
	must(t, reg.Add(ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
			tc, _ := ringi.ToolContextFrom(ctx)
			f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return ringi.ToolResult{}, err
			}
			defer f.Close()
			if _, err := f.WriteString(tc.CallID + " " + tc.Key + "\n"); err != nil {
				return ringi.ToolResult{}, err
			}
			time.Sleep(time.Millisecond)
			return ringi.ToolResult{Output: "paid"}, nil
		}))
	e, err := engine.New(engine.Config{Registry: reg, Store: store, Keyring: keyring(t), Lease: 400 * time.Millisecond,
		Limits: ringi.Limits{Attempts: 100},
		Model: modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
			switch req.Step {
			case 1:
				return calls("pay", `{"n":1}`, "pay", `{"n":2}`)
			case 2:
				return calls("pay", `{"n":3}`)
			}
			return &ringi.ModelTurn{Text: "done"}
		})})
	must(t, err)
	return e, store
}

// effectsOf reads the payments: how often by call.
func effectsOf(t *testing.T, dir string) (byCall, byKey map[string]int) {
	byCall, byKey = map[string]int{}, map[string]int{}
	b, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		call, key, _ := strings.Cut(strings.TrimSpace(line), " ")
		byCall[call]++
		byKey[key]++
	}
	return byCall, byKey
}

// killedChild is one process: it starts what is missing, goes on with whatever
// it may, and answers as an honest person would.
func killedChild(t *testing.T, dir string) {
	e, store := killedEngine(t, dir)
	defer store.Close()
	want, err := strconv.Atoi(os.Getenv(killedTo))
	must(t, err)
	fmt.Println("ready")
	ctx := t.Context()
	for {
		rows, err := store.Runs(ctx, ringi.RunQuery{Space: "default", Limit: 1000})
		must(t, err)
		if len(rows) < want {
			e.Run(ctx, ringi.RunStart{Thread: fmt.Sprintf("thr_%d", len(rows)), Messages: []ringi.Message{ringi.User("go")}})
			continue
		}
		open := false
		for _, row := range rows {
			if row.Status.Final() {
				continue
			}
			open = true
			res, err := e.Resume(ctx, row.ID)
			if err != nil {
				continue
			}
			done, _ := effectsOf(t, dir)
			for _, r := range res.Pending {
				switch {
				case r.Kind != ringi.KindOutcome:
					e.Decide(ctx, r.Approve(ana))
				case done[r.Call.ID] > 0:
					e.Decide(ctx, r.Ran(ana, "paid"))
				default:
					e.Decide(ctx, r.DidNotRun(ana))
				}
			}
		}
		if !open {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Two processes at a time work on one file and are killed, again and again, at
// any moment. Every run ends, and no payment is made twice.
func TestBreak_KilledProcesses(t *testing.T) {
	if dir := os.Getenv(killedEnv); dir != "" {
		killedChild(t, dir)
		return
	}
	dir := t.TempDir()
	dice := rand.New(rand.NewPCG(1, 2))
	want := 0
	start := func() (*exec.Cmd, *bufio.Reader) {
		want += 5
		cmd := exec.Command(os.Args[0], "-test.run=^TestBreak_KilledProcesses$")
		cmd.Env = append(os.Environ(), killedEnv+"="+dir, fmt.Sprint(killedTo, "=", want))
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill() })
		r := bufio.NewReader(out)
		if line, err := r.ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("%q %v", line, err)
		}
		return cmd, r
	}
	for range 2 * rounds() {
		a, _ := start()
		b, _ := start()
		for _, cmd := range []*exec.Cmd{a, b} {
			time.Sleep(time.Duration(dice.IntN(40)) * time.Millisecond)
			must(t, cmd.Process.Kill())
			cmd.Wait()
		}
	}
	a, rest := start()
	if out, _ := io.ReadAll(rest); a.Wait() != nil {
		t.Fatalf("the last process: %s", out)
	}
	e, store := killedEngine(t, dir)
	defer store.Close()
	byCall, byKey := effectsOf(t, dir)
	for key, n := range byKey {
		if n != 1 {
			t.Errorf("key %s paid %d times", key, n)
		}
	}
	rows, err := store.Runs(t.Context(), ringi.RunQuery{Space: "default", Limit: 1000})
	must(t, err)
	paid := 0
	for _, row := range rows {
		res, err := e.Resume(t.Context(), row.ID)
		if err != nil || res.Status != ringi.Completed || len(res.Results) != 3 {
			t.Errorf("run %s: %v %+v", row.ID, err, res)
			continue
		}
		for _, r := range res.Results {
			if (byCall[r.CallID] == 1) != (r.Output == "paid") {
				t.Errorf("call %s was made %d times, and the model reads %+v", r.CallID, byCall[r.CallID], r)
			}
			paid += byCall[r.CallID]
		}
		if v, err := e.Verify(t.Context(), row.ID); err != nil || v.Broken != "" {
			t.Errorf("%v %+v", err, v)
		}
	}
	if len(rows) < want || paid == 0 {
		t.Errorf("%d runs, %d payments", len(rows), paid)
	}
}

// foreign is a context of the program's own kind, as frameworks have them.
type foreign struct {
	context.Context
	done chan struct{}
}

func (f *foreign) Done() <-chan struct{} { return f.done }
func (f *foreign) Err() error            { return nil }
func (f *foreign) Value(any) any         { return nil }

// A model waits for its context, as every HTTP client does, under a context
// that lives as long as the server: nothing stays behind.
func TestBreak_ModelWaitsForALongLivedContext(t *testing.T) {
	w := newWorld(t)
	w.cfg.Model = waitingModel{}
	e := w.engine()
	ctx := &foreign{context.Background(), make(chan struct{})}
	before := runtime.NumGoroutine()
	for range 100 {
		if _, err := e.Run(ctx, ringi.RunStart{}); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually(func() bool { return runtime.NumGoroutine() <= before+5 })
}

// waitingModel asks for the end of its context and answers.
type waitingModel struct{}

func (waitingModel) Generate(ctx context.Context, _ ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		select {
		case <-ctx.Done():
		default:
			yield(ringi.ModelEvent{Turn: &ringi.ModelTurn{Text: "done"}}, nil)
		}
	}
}

// The agent that asks itself, many times a turn: what its children call counts
// for it.
func TestBreak_ChildrenSpendTheirParentsBudget(t *testing.T) {
	w := newWorld(t)
	var e *engine.Engine
	var asked atomic.Int64
	w.tool(ringi.Tool{Name: "ask", Effect: ringi.ReadOnly}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
		if asked.Load() > 5000 {
			return ringi.ToolResult{Output: "enough"}, nil
		}
		res, err := e.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
		if err != nil {
			return ringi.ToolResult{}, err
		}
		return ringi.ToolResult{Output: res.Text}, nil
	})
	w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
		asked.Add(1)
		return calls("ask", `{}`, "ask", `{}`, "ask", `{}`)
	})
	e = w.engine()
	w.run(e, ringi.RunStart{})
	if n := asked.Load(); n > 1000 {
		t.Errorf("a run of 10 steps and 50 calls asked the model %d times and goes on", n)
	}
}

// The caller hangs up while the program's own functions work. What they say
// then is no verdict, no failure and no staleness: the run is given back, and
// goes on later as if nothing had been.
func TestBreak_CallerHangsUpInsideAFunction(t *testing.T) {
	type fixture struct {
		w      *world
		hangUp func(ctx context.Context) error // once; then nil
	}
	for name, set := range map[string]func(f fixture) (early bool){
		"PrepareStep": func(f fixture) bool {
			f.w.cfg.PrepareStep = func(ctx context.Context, _ engine.StepInfo) (engine.StepPlan, error) {
				return engine.StepPlan{}, f.hangUp(ctx)
			}
			return true
		},
		"a plan's function": func(f fixture) bool {
			f.w.cfg.PrepareStep = func(context.Context, engine.StepInfo) (engine.StepPlan, error) {
				return engine.StepPlan{Approval: ringi.Approval{Func: func(ctx context.Context, _ ringi.CallInfo) (ringi.Verdict, error) {
					return ringi.Verdict{}, f.hangUp(ctx)
				}}}, nil
			}
			return true
		},
		"NeedsApproval": func(f fixture) bool {
			f.w.tool(ringi.Tool{Name: "work", Effect: ringi.NonIdempotentWrite}, nil, ringi.ToolHooks{
				NeedsApproval: func(ctx context.Context, _ ringi.ToolCall) (bool, error) { return true, f.hangUp(ctx) }})
			return true
		},
		"Preview": func(f fixture) bool {
			f.w.tool(ringi.Tool{Name: "work", Effect: ringi.NonIdempotentWrite}, nil, ringi.ToolHooks{
				Preview: func(ctx context.Context, _ ringi.ToolCall) (ringi.Preview, error) {
					return ringi.Preview{Text: "what it does"}, f.hangUp(ctx)
				}})
			return true
		},
		"Check": func(f fixture) bool {
			f.w.tool(ringi.Tool{Name: "work", Effect: ringi.NonIdempotentWrite}, nil, ringi.ToolHooks{
				Preview: func(ctx context.Context, _ ringi.ToolCall) (ringi.Preview, error) {
					return ringi.Preview{Text: "what it does", Precondition: "v1"}, nil
				},
				Check: func(ctx context.Context, _ ringi.ToolCall, _ string) error { return f.hangUp(ctx) }})
			return false
		},
		"policy function, as the approval is spent": func(f fixture) bool {
			asked := 0
			f.w.cfg.Approval.Func = func(ctx context.Context, _ ringi.CallInfo) (ringi.Verdict, error) {
				if asked++; asked > 2 {
					return ringi.Verdict{Status: ringi.UserApproval}, f.hangUp(ctx)
				}
				return ringi.Verdict{Status: ringi.UserApproval}, nil
			}
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var once sync.Once
			stop := func() {}
			early := set(fixture{w, func(ctx context.Context) (err error) {
				once.Do(func() {
					stop()
					<-ctx.Done()
					err = ctx.Err()
				})
				return err
			}})
			if _, ok := w.reg.Tool("work"); !ok {
				w.tool(ringi.Tool{Name: "work", Effect: ringi.NonIdempotentWrite}, nil)
			}
			w.says(calls("work", `{}`))
			e := w.engine()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start := ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}}
			var res *ringi.Result
			var err error
			if early {
				stop = cancel
				if _, err = e.Run(ctx, start); err == nil {
					t.Error("the caller has gone, and the run went on")
				}
				w.wantGivenBack(w.onlyRun())
				res = w.resume(e, w.onlyRun())
			} else {
				res = w.run(e, start)
			}
			wantStatus(t, res, ringi.WaitingForApproval, 1)
			first := res.Pending[0]
			if first.PreviewError != "" {
				t.Errorf("the request says %q", first.PreviewError)
			}
			w.decide(e, first.Approve(ana))
			if !early {
				stop = cancel
				if _, err = e.Resume(ctx, res.RunID); err == nil {
					t.Error("the caller has gone, and the run went on")
				}
				w.wantGivenBack(res.RunID)
			}
			wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
			w.wantRan("work {}")
		})
	}
}

// The same with a person's edit, which is looked at by the run's owner.
func TestBreak_CallerHangsUpAsAnEditIsLookedAt(t *testing.T) {
	w := newWorld(t)
	stop := func() {}
	var armed atomic.Bool
	w.cfg.Approval.Func = func(ctx context.Context, _ ringi.CallInfo) (ringi.Verdict, error) {
		if armed.CompareAndSwap(true, false) {
			stop()
			<-ctx.Done()
			return ringi.Verdict{}, ctx.Err()
		}
		return ringi.Verdict{Status: ringi.UserApproval}, nil
	}
	w.says(calls("pay", `{"n":1}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	cli, err := engine.New(engine.Config{Store: w.store})
	must(t, err)
	w.decide(cli, res.Pending[0].Edit(ana, json.RawMessage(`{"n":2}`)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop = cancel
	armed.Store(true)
	e.Resume(ctx, res.RunID)
	res = w.resume(e, res.RunID)
	wantStatus(t, res, ringi.WaitingForApproval, 1)
	if got := res.Pending[0].Call.Input; got != `{"n":2}` {
		t.Errorf("the edit was refused because the caller hung up: %s", got)
	}
}

// A process that lacks a key says so: it does not call the run broken.
func TestBreak_VerifyWithoutTheKey(t *testing.T) {
	w := newWorld(t)
	w.says()
	older, newer := twoKeys(t)
	w.cfg.Keyring = ring(t, older)
	old := w.engine()
	w.cfg.Keyring = ring(t, newer, older)
	res := w.run(w.engine(), ringi.RunStart{})
	v, err := old.Verify(t.Context(), res.RunID)
	if err == nil && v.Broken != "" {
		t.Errorf("an honest run is called broken: %s", v.Broken)
	}
}

// A result that comes late is kept as evidence, as bounded as any other.
func TestBreak_HugeLateResult(t *testing.T) {
	w := newWorld(t)
	free := make(chan struct{})
	w.tool(ringi.Tool{Name: "late", Effect: ringi.NonIdempotentWrite, Timeout: 10 * time.Millisecond}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
		<-free
		return ringi.ToolResult{Output: strings.Repeat("x", 8<<20)}, nil
	})
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"late": {Status: ringi.Approved}}
	w.says(calls("late", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	wantStatus(t, res, ringi.WaitingForOutcome, 1)
	close(free)
	var r ringi.ApprovalRequest
	w.eventually(func() bool {
		var err error
		r, err = e.Request(t.Context(), res.Pending[0].ID)
		must(t, err)
		return r.Evidence != ""
	})
	if len(r.Evidence) > 2<<20 {
		t.Errorf("%d bytes of evidence", len(r.Evidence))
	}
}

// A handler keeps the context of a call that has ended, and looks at it while
// the next call runs: it has ended.
func TestBreak_ContextOfAnEndedCallHasEnded(t *testing.T) {
	w := newWorld(t)
	var kept []context.Context
	w.tool(ringi.Tool{Name: "keep", Effect: ringi.IdempotentWrite}, func(ctx context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
		tc, _ := ringi.ToolContextFrom(ctx)
		for _, old := range kept {
			if old.Err() == nil {
				t.Error("the context of an ended call goes on")
			}
			select {
			case <-old.Done():
			default:
				t.Error("the context of an ended call is not done")
			}
			if otc, _ := ringi.ToolContextFrom(old); otc.CallID == tc.CallID {
				t.Error("it is the context of the new call")
			}
		}
		if ctx.Err() != nil || tc.Tool != "keep" {
			t.Errorf("%v %+v", ctx.Err(), tc)
		}
		kept = append(kept, ctx)
		return ringi.ToolResult{Output: "ok"}, nil
	})
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"keep": {Status: ringi.Approved}}
	w.says(calls("keep", `{}`, "keep", `{}`), calls("keep", `{}`))
	wantStatus(t, w.run(w.engine(), ringi.RunStart{}), ringi.Completed, 0)
}

// typedNil is the error that a function returns which means none: its own text
// panics.
type typedNil struct{ text string }

func (e *typedNil) Error() string { return e.text }

func noError() error {
	var none *typedNil
	return none
}

// An error whose own text panics comes out of every function of the program.
// No process dies of it, and no run.
func TestBreak_ErrorWhoseTextPanics(t *testing.T) {
	answer := func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
		time.Sleep(2 * time.Millisecond) // a group of reads gets goroutines
		return ringi.ToolResult{Output: "ok"}, noError()
	}
	type outcome struct {
		status  ringi.RunStatus
		pending int
	}
	for name, c := range map[string]struct {
		set  func(w *world)
		want outcome
	}{
		"a read": {func(w *world) {
			w.tool(ringi.Tool{Name: "odd", Effect: ringi.ReadOnly}, answer)
			w.says(calls("odd", `{}`))
		}, outcome{ringi.Completed, 0}},
		"reads together": {func(w *world) {
			w.tool(ringi.Tool{Name: "odd", Effect: ringi.ReadOnly}, answer)
			w.says(calls("odd", `{}`, "odd", `{}`, "odd", `{}`, "odd", `{}`))
		}, outcome{ringi.Completed, 0}},
		"a write": {func(w *world) {
			w.tool(ringi.Tool{Name: "odd", Effect: ringi.NonIdempotentWrite}, answer)
			w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"odd": {Status: ringi.Approved}}
			w.says(calls("odd", `{}`))
		}, outcome{ringi.Completed, 0}},
		"a late write": {func(w *world) {
			w.tool(ringi.Tool{Name: "odd", Effect: ringi.NonIdempotentWrite, Timeout: time.Millisecond},
				func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
					time.Sleep(20 * time.Millisecond)
					return ringi.ToolResult{}, noError()
				})
			w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"odd": {Status: ringi.Approved}}
			w.says(calls("odd", `{}`))
		}, outcome{ringi.WaitingForOutcome, 1}},
		"a preview": {func(w *world) {
			w.tool(ringi.Tool{Name: "odd", Effect: ringi.NonIdempotentWrite}, nil, ringi.ToolHooks{
				Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) { return ringi.Preview{}, noError() }})
			w.says(calls("odd", `{}`))
		}, outcome{ringi.WaitingForApproval, 1}},
		"needs approval": {func(w *world) {
			w.tool(ringi.Tool{Name: "odd", Effect: ringi.ReadOnly}, nil, ringi.ToolHooks{
				NeedsApproval: func(context.Context, ringi.ToolCall) (bool, error) { return false, noError() }})
			w.says(calls("odd", `{}`))
		}, outcome{ringi.Completed, 0}},
		"a policy function": {func(w *world) {
			w.cfg.Approval.Func = func(context.Context, ringi.CallInfo) (ringi.Verdict, error) { return ringi.Verdict{}, noError() }
			w.says(calls("find", `{}`))
		}, outcome{ringi.Completed, 0}},
		"the model": {func(w *world) { w.cfg.Model = oddModel{} }, outcome{ringi.Failed, 0}},
		"PrepareStep": {func(w *world) {
			w.cfg.PrepareStep = func(context.Context, engine.StepInfo) (engine.StepPlan, error) { return engine.StepPlan{}, noError() }
			w.says(calls("find", `{}`))
		}, outcome{ringi.Failed, 0}},
		"the callback": {func(w *world) {
			w.cfg.OnApprovalRequired = func(context.Context, ringi.ApprovalRequest) (ringi.Decision, error) {
				return ringi.Decision{}, noError()
			}
			w.says(calls("pay", `{}`))
		}, outcome{ringi.WaitingForApproval, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
			c.set(w)
			e := w.engine()
			res, err := e.Run(t.Context(), ringi.RunStart{Messages: []ringi.Message{ringi.User("go")}})
			if err != nil {
				t.Fatal(err)
			}
			wantStatus(t, res, c.want.status, c.want.pending)
			if name == "a late write" {
				time.Sleep(40 * time.Millisecond)
			}
			for _, tool := range w.ran {
				if name == "needs approval" || name == "a policy function" {
					t.Errorf("%s ran", tool)
				}
			}
		})
	}
}

type oddModel struct{}

func (oddModel) Generate(context.Context, ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) { yield(ringi.ModelEvent{}, noError()) }
}

// One of several reads ends its goroutine: that call has failed, and the run
// goes on.
func TestBreak_ReadOfAGroupExits(t *testing.T) {
	begun := make(chan struct{})
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "exit", Effect: ringi.ReadOnly}, func(_ context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
		if c.Input != `{"n":0}` { // that one runs on the caller's goroutine
			close(begun)
			runtime.Goexit()
		}
		<-begun // so the other is on a goroutine of its own
		return ringi.ToolResult{Output: "ok"}, nil
	})
	w.says(calls("exit", `{"n":0}`, "exit", `{"n":1}`))
	e := w.engine()
	done := make(chan *ringi.Result, 1)
	go func() {
		defer close(done)
		res, err := e.Run(context.Background(), ringi.RunStart{})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	res := <-done
	if res == nil {
		t.Fatal("the caller's goroutine ended with it")
	}
	wantStatus(t, res, ringi.Completed, 0)
	if res.Results[1].Outcome != ringi.OutcomeError {
		t.Errorf("%+v", res.Results[1])
	}
}

// A person typed a secret and approved; before the call starts the next version
// of the program refuses the value. The refusal that the model reads does not
// hold the secret.
func TestBreak_TypedSecretIsNotToldInARefusal(t *testing.T) {
	const secret, number = "s3cr3t-c0de", "987654321"
	for _, rule := range []string{
		`{"type":"string","enum":["a","b"]}`, `{"type":"string","const":"a"}`, `{"type":"string","pattern":"^[0-9]+$"}`,
		`{"type":"string","maxLength":3}`, `{"type":"string","minLength":300}`, `{"type":"integer"}`, `{"type":"null"}`,
		`{"anyOf":[{"const":"a"},{"const":"b"}]}`, `{"not":{"type":"string"}}`,
		`{"type":"integer","maximum":5}`, `{"type":"integer","multipleOf":2}`, `{"type":"integer","enum":[1,2]}`, `{"type":"integer","minimum":9876543210}`,
	} {
		w := newWorld(t)
		person := json.RawMessage(`{"type":"object","properties":{"code":{}},"required":["code"],"additionalProperties":false}`)
		add := func(rule string) {
			w.tool(ringi.Tool{Name: "seal", Effect: ringi.NonIdempotentWrite, InputRequired: person,
				InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"code":` + rule + `}}`)}, nil)
		}
		add(`{}`)
		value := `"` + secret + `"`
		if strings.Contains(rule, "integer\",") {
			value = number
		}
		w.says(calls("seal", `{"n":1}`))
		e := w.engine()
		res := w.run(e, ringi.RunStart{})
		set := w.decide(e, res.Pending[0].Fill(ana, json.RawMessage(`{"code":`+value+`}`)))
		w.decide(e, set.Request.Approve(ana))
		w.reg = ringi.NewRegistry()
		w.cfg.Registry = w.reg
		add(rule)
		w.seen = nil
		w.resume(w.restart(), res.RunID)
		w.wantRan()
		for _, req := range w.seen {
			for _, m := range req.Messages {
				for _, r := range m.Results {
					if text := r.Output + r.Error + r.Note; strings.Contains(text, secret) || strings.Contains(text, number) {
						t.Errorf("rule %s: the model reads %q", rule, text)
					}
				}
			}
		}
	}
}

// The same where the typed handler's own decoder refuses the value, in its own
// words.
func TestBreak_TypedSecretIsNotToldByADecoder(t *testing.T) {
	w := newWorld(t)
	person := json.RawMessage(`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}`)
	tool := ringi.Tool{Name: "seal", Effect: ringi.NonIdempotentWrite, InputRequired: person,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"code":{"type":"string"}}}`)}
	w.tool(tool, nil)
	w.says(calls("seal", `{"n":1}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	set := w.decide(e, res.Pending[0].Fill(ana, json.RawMessage(`{"code":"s3cr3t"}`)))
	w.decide(e, set.Request.Approve(ana))
	w.reg = ringi.NewRegistry()
	w.cfg.Registry = w.reg
	type in struct {
		N    int        `json:"n"`
		Code netip.Addr `json:"code"`
	}
	must(t, ringi.AddTool(w.reg, tool, func(context.Context, in) (string, error) { return "sealed", nil }))
	w.resume(w.restart(), res.RunID)
	for _, req := range w.seen {
		for _, m := range req.Messages {
			for _, r := range m.Results {
				if strings.Contains(r.Error, "s3cr3t") {
					t.Errorf("the model reads %q", r.Error)
				}
			}
		}
	}
}

// The store is down for a while, from every seventh call on. The run ends with
// an error or goes on; when the store is back everything goes its way.
func TestBreak_StoreIsDownForAWhile(t *testing.T) {
	for at := 1; ; at += 7 {
		w := newWorld(t)
		w.story()
		f := &failAt{Store: w.store}
		w.cfg.Store = f
		e := w.engine()
		f.at, f.until = f.n+at, f.n+at+15
		w.checkStory(w.live(e, t.Context))
		if t.Failed() {
			t.Fatalf("from call %d (%s)", at, f.which)
		}
		if f.which == "" {
			return
		}
	}
}

// The clock jumps ahead while a call is in flight, and back: its result is
// recorded, nothing is decided or spent while the clock cannot be trusted, and
// afterwards everything goes on.
func TestBreak_ClockJumpsWhileACallIsInFlight(t *testing.T) {
	stored(t, func(t *testing.T, w *world, _ func() ringi.Store) {
		w.tool(ringi.Tool{Name: "work", Effect: ringi.NonIdempotentWrite}, func(context.Context, ringi.ToolCall) (ringi.ToolResult, error) {
			w.advance(time.Hour)
			return ringi.ToolResult{Output: "worked"}, nil
		})
		w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"work": {Status: ringi.Approved}}
		w.says(calls("work", `{}`), calls("pay", `{}`))
		e := w.engine()
		res := w.run(e, ringi.RunStart{})
		wantStatus(t, res, ringi.WaitingForApproval, 1)
		if res.Results[0].Output != "worked" {
			t.Errorf("%+v", res.Results)
		}
		w.advance(-time.Hour)
		_, err := e.Decide(t.Context(), res.Pending[0].Approve(ana))
		wantErr(t, err, ringi.ErrClock)
		_, err = e.Run(t.Context(), ringi.RunStart{})
		wantErr(t, err, ringi.ErrClock)
		w.advance(59 * time.Minute)
		w.decide(e, res.Pending[0].Approve(ana))
		wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
		w.wantRan("work {}", "pay {}")
	})
}

// A reader keeps every event: at the end each is still what is in the log.
func TestBreak_KeptEventsStayWhatTheyWere(t *testing.T) {
	w := newWorld(t)
	w.story()
	e := w.engine()
	var kept []ringi.Event
	keep := func(ev ringi.Event, err error) {
		must(t, err)
		if ev.Seq > 0 {
			kept = append(kept, ev)
		}
	}
	for ev, err := range e.Stream(t.Context(), ringi.RunStart{By: ana, Messages: []ringi.Message{ringi.User("go")}}) {
		keep(ev, err)
	}
	id := w.onlyRun()
	for range 3 {
		page, err := e.Requests(t.Context(), ringi.RequestQuery{RunID: id})
		must(t, err)
		for _, r := range page.Requests {
			w.decide(e, r.Approve(ben))
		}
		for ev, err := range e.StreamResume(t.Context(), id) {
			keep(ev, err)
		}
	}
	stored, err := w.store.Load(t.Context(), "default", id)
	must(t, err)
	storeID, err := w.store.ID(t.Context())
	must(t, err)
	log, err := audit.Events(storeID, "default", id, stored.Records, stored.Row.Head, stored.Row.Seq)
	must(t, err)
	seen := map[int64]bool{}
	for _, ev := range kept {
		if seen[ev.Seq] {
			t.Errorf("event %d came twice", ev.Seq)
		}
		seen[ev.Seq] = true
		want := log[ev.Seq-1]
		if ev.Kind != want.Kind || !ev.At.Equal(want.At) {
			t.Errorf("event %d is %s at %s, in the log %s at %s", ev.Seq, ev.Kind, ev.At, want.Kind, want.At)
		}
		got, _ := json.Marshal(ev.Body)
		full, _ := json.Marshal(want.Body)
		// What a stream writes out and the log leaves out: compare what the log has.
		var a, b map[string]any
		must(t, json.Unmarshal(got, &a))
		must(t, json.Unmarshal(full, &b))
		for key, value := range b {
			if key == "limits" || key == "tool_digest" || key == "verdict" || key == "offer_digest" {
				continue
			}
			x, _ := json.Marshal(a[key])
			y, _ := json.Marshal(value)
			if string(x) != string(y) {
				t.Errorf("event %d (%s), %s: %s, in the log %s", ev.Seq, ev.Kind, key, x, y)
			}
		}
	}
	if !slices.ContainsFunc(log, func(ev ringi.Event) bool {
		return ev.Kind == ringi.EventRunFinished || ev.Kind == ringi.EventModelResponded
	}) || len(kept) < 10 {
		t.Errorf("%d events", len(kept))
	}
}

// A callback that never answers, however often the run is resumed: the request
// stays pending, and the run is not taken for poisoned.
func TestBreak_CallbackThatNeverAnswers(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	w.cfg.OnApprovalRequired = func(context.Context, ringi.ApprovalRequest) (ringi.Decision, error) {
		return ringi.Decision{}, errors.New("nobody at the terminal")
	}
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	for i := range 8 {
		wantStatus(t, w.resume(e, res.RunID), ringi.WaitingForApproval, 1)
		if i == 3 {
			e = w.restart()
		}
	}
	w.cfg.OnApprovalRequired = nil
	e = w.restart()
	w.decide(e, res.Pending[0].Approve(ana))
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
	w.wantRan("pay {}")
}

// Processes that die while a person is asked at their terminal do not poison
// the run either: nothing of it was tried.
func TestBreak_ProcessesThatDieInTheirCallback(t *testing.T) {
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	w.cfg.OnApprovalRequired = func(context.Context, ringi.ApprovalRequest) (ringi.Decision, error) {
		runtime.Goexit()
		return ringi.Decision{}, nil
	}
	for range 6 {
		e := w.restart()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if rows, _ := w.store.Runs(context.Background(), ringi.RunQuery{Space: "default"}); len(rows) > 0 {
				e.Resume(context.Background(), rows[0].ID)
				return
			}
			e.Run(context.Background(), ringi.RunStart{})
		}()
		<-ended
	}
	w.cfg.OnApprovalRequired = nil
	wantStatus(t, w.resume(w.restart(), w.onlyRun()), ringi.WaitingForApproval, 1)
}

// Many resume a run whose program answers by callback, in two processes: one
// asks at a time, each request is answered once, and the writes run once.
func TestBreak_ResumeStormWithCallbacks(t *testing.T) {
	stored(t, func(t *testing.T, w *world, reopen func() ringi.Store) {
		var asking, asked, failing atomic.Int64
		failing.Store(1)
		w.cfg.OnApprovalRequired = func(_ context.Context, r ringi.ApprovalRequest) (ringi.Decision, error) {
			if failing.Load() > 0 {
				return ringi.Decision{}, errors.New("not yet")
			}
			asked.Add(1)
			if asking.Add(1) > 1 {
				t.Error("two are asked at once")
			}
			time.Sleep(time.Millisecond)
			asking.Add(-1)
			return r.Approve(ana), nil
		}
		w.says(calls("pay", `{"n":1}`, "pay", `{"n":2}`), calls("pay", `{"n":3}`))
		engines := []*engine.Engine{w.engine()}
		w.cfg.Store = reopen()
		engines = append(engines, w.engine())
		res := w.run(engines[0], ringi.RunStart{})
		wantStatus(t, res, ringi.WaitingForApproval, 2)
		failing.Store(0)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				for {
					got, err := engines[i%2].Resume(t.Context(), res.RunID)
					if errors.Is(err, ringi.ErrBusy) {
						time.Sleep(time.Millisecond)
						continue
					}
					if err != nil || got.Status != ringi.Completed {
						t.Errorf("%v %+v", err, got)
					}
					return
				}
			})
		}
		wg.Wait()
		if asked.Load() != 3 {
			t.Errorf("asked %d times", asked.Load())
		}
		w.wantRan(`pay {"n":1}`, `pay {"n":2}`, `pay {"n":3}`)
	})
}

// A handler starts many runs at once, and its time is over while they work:
// they stop, each can be ended, and the parent does not wait for them.
func TestBreak_ManyChildrenAtOnce(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := newWorld(t)
		var e *engine.Engine
		tool := ringi.Tool{Name: "fan", Effect: ringi.NonIdempotentWrite}
		if late {
			tool.Timeout = 30 * time.Millisecond
		}
		var children sync.WaitGroup
		w.tool(tool, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
			var all sync.WaitGroup
			for range 8 {
				children.Add(1)
				all.Go(func() {
					defer children.Done()
					e.Run(ctx, ringi.RunStart{Messages: []ringi.Message{ringi.User("child")}})
				})
			}
			all.Wait()
			return ringi.ToolResult{Output: "all"}, nil
		})
		w.tool(ringi.Tool{Name: "slow", Effect: ringi.ReadOnly, DataClass: ringi.InternalConfiguration}, func(ctx context.Context, _ ringi.ToolCall) (ringi.ToolResult, error) {
			if late {
				<-ctx.Done()
			}
			return ringi.ToolResult{Output: "slow"}, nil
		})
		w.cfg.Limits.ToolTimeout = 100 * time.Millisecond
		w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"fan": {Status: ringi.Approved}}
		w.cfg.Model = modelFunc(func(req ringi.ModelRequest) *ringi.ModelTurn {
			switch {
			case req.Step > 1:
				return &ringi.ModelTurn{Text: "done"}
			case req.Messages[0].Text == "child":
				return calls("slow", `{}`, "pay", `{}`)
			}
			return calls("fan", `{}`)
		})
		e = w.engine()
		begun := time.Now()
		res := w.run(e, ringi.RunStart{By: ana})
		want, pending := ringi.Completed, 0
		if late {
			want, pending = ringi.WaitingForOutcome, 1
		}
		wantStatus(t, res, want, pending)
		if time.Since(begun) > 30*time.Second {
			t.Errorf("after %s", time.Since(begun))
		}
		children.Wait()
		rows, err := w.store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
		must(t, err)
		for _, row := range rows {
			if row.Parent == "" {
				continue
			}
			if got, err := e.Resume(t.Context(), row.ID); err != nil || !got.Status.Final() {
				t.Errorf("child: %v %+v", err, got)
			}
		}
		if len(rows) != 9 || w.count("pay") != 0 {
			t.Errorf("%d runs, pay ran %d times", len(rows), w.count("pay"))
		}
	}
}

// Many new messages on a thread whose run waits, each of which withdraws what
// is open: one run is left, nothing ran, nothing is half withdrawn.
func TestBreak_ManyWithdrawOneThread(t *testing.T) {
	stored(t, func(t *testing.T, w *world, reopen func() ringi.Store) {
		w.says(calls("pay", `{}`))
		engines := []*engine.Engine{w.engine()}
		w.cfg.Store = reopen()
		engines = append(engines, w.engine())
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				res, err := engines[i%2].Run(t.Context(), ringi.RunStart{Thread: "thr_1", By: ana, WithdrawOpen: true, Messages: []ringi.Message{ringi.User("go")}})
				switch {
				case errors.Is(err, ringi.ErrRunOpen):
				case err != nil:
					t.Error(err)
				case res.Status != ringi.WaitingForApproval && res.Status != ringi.Cancelled:
					t.Errorf("%s (%s)", res.Status, res.Detail)
				}
			})
		}
		wg.Wait()
		rows, err := w.cfg.Store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
		must(t, err)
		open := 0
		for _, row := range rows {
			pending, err := w.cfg.Store.Requests(t.Context(), ringi.RequestQuery{Space: "default", RunID: row.ID})
			must(t, err)
			if !row.Status.Final() {
				open++
			} else if len(pending) > 0 {
				t.Errorf("run %s is %s, and a request of it waits", row.ID, row.Status)
			}
			if row.Owner != "" {
				t.Errorf("%+v", row)
			}
			if v, err := engines[0].Verify(t.Context(), row.ID); err != nil || v.Broken != "" {
				t.Errorf("%v %+v", err, v)
			}
		}
		if open > 1 {
			t.Errorf("%d open runs", open)
		}
		w.wantRan()
	})
}

// The context of Decide ends while policy is asked: that is no denial.
func TestBreak_DeciderHangsUpAsPolicyIsAsked(t *testing.T) {
	w := newWorld(t)
	stop := func() {}
	w.cfg.Approval.Func = func(ctx context.Context, _ ringi.CallInfo) (ringi.Verdict, error) {
		stop()
		return ringi.Verdict{Status: ringi.UserApproval}, ctx.Err()
	}
	w.says(calls("pay", `{"n":1}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	for _, d := range []ringi.Decision{res.Pending[0].Approve(ana), res.Pending[0].Edit(ana, json.RawMessage(`{"n":2}`))} {
		ctx, cancel := context.WithCancel(t.Context())
		stop = cancel
		_, err := e.Decide(ctx, d)
		if errors.Is(err, ringi.ErrNowDenied) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", d.Answer, err)
		}
	}
	stop = func() {}
	w.decide(e, res.Pending[0].Approve(ana))
	wantStatus(t, w.resume(e, res.RunID), ringi.Completed, 0)
}

// The caller hangs up while a tool looks for the result of a call that a crash
// left open: the tool is asked again, and no person.
func TestBreak_CallerHangsUpInALookup(t *testing.T) {
	w := newWorld(t)
	stop := func() {}
	w.tool(ringi.Tool{Name: "work", Effect: ringi.NonIdempotentWrite}, nil, ringi.ToolHooks{
		Lookup: func(ctx context.Context, _ string) (ringi.ToolResult, bool, error) {
			stop()
			if ctx.Err() != nil {
				return ringi.ToolResult{}, false, ctx.Err()
			}
			return ringi.ToolResult{Output: "found"}, true, nil
		}})
	w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"work": {Status: ringi.Approved}}
	w.says(calls("work", `{}`))
	m := w.meddled()
	m.set(func(m *meddler) {
		m.commit = func(c *ringi.Commit) error {
			if holds(c, ringi.EventToolFinished) {
				return errors.New("the process dies")
			}
			return nil
		}
	})
	if _, err := w.engine().Run(t.Context(), ringi.RunStart{}); err == nil {
		t.Fatal("no error")
	}
	w.cfg.Store = w.store
	e := w.restart()
	ctx, cancel := context.WithCancel(t.Context())
	stop = cancel
	e.Resume(ctx, w.onlyRun())
	stop = func() {}
	res := w.resume(e, w.onlyRun())
	wantStatus(t, res, ringi.Completed, 0)
	if res.Results[0].Output != "found" {
		t.Errorf("%+v", res.Results[0])
	}
	w.wantRan("work {}")
}
