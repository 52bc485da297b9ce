package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/sign"
	"github.com/ringi-dev/ringi/store/storetest"
)

// This file attacks the engine: what a hostile or a careless program, store,
// model, hook or reader does to it. Each test names the attack.

// knownFault skips a test that shows a fault which is not mended yet. With
// RINGI_BREAK set it runs.
func knownFault(t *testing.T, name string) {
	t.Helper()
	if os.Getenv("RINGI_BREAK") == "" {
		t.Skip("fault: " + name)
	}
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
	knownFault(t, "rest-strands-a-decided-run")
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
	knownFault(t, "rest-strands-a-decided-run")
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
	knownFault(t, "stream-events-are-live-state")
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
	knownFault(t, "stream-events-are-live-state")
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
	knownFault(t, "what-is-handed-out-is-shared")
	w := newWorld(t)
	w.tool(ringi.Tool{Name: "ledger", Effect: ringi.ReadOnly, Group: "finance"}, nil)
	w.cfg.Observers = []engine.Observer{{Start: func(_ context.Context, run ringi.RunInfo) { run.Groups[0] = "finance" }}}
	w.says(calls("ledger", `{}`))
	w.run(w.engine(), ringi.RunStart{Groups: []string{"shop"}})
	w.wantRan()
}

func TestBreak_StopConditionWritesIntoMessages(t *testing.T) {
	knownFault(t, "what-is-handed-out-is-shared")
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
	knownFault(t, "model-gets-the-engines-own-slices")
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
	knownFault(t, "model-gets-the-engines-own-slices")
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
	knownFault(t, "runs-inside-runs-never-end")
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
	knownFault(t, "lease-kept-when-run-leaves-by-panic-or-goexit")
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
	knownFault(t, "lease-kept-when-run-leaves-by-panic-or-goexit")
	for name, breakOff := range map[string]func(){"panics": func() { panic("loop body") }, "exits": runtime.Goexit} {
		for at := 1; ; at++ {
			w := newWorld(t)
			w.cfg.Approval.Tools = map[string]ringi.ToolApproval{"pay": {Status: ringi.Approved}}
			w.says(calls("find", `{}`, "pay", `{}`))
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
	knownFault(t, "check-hook-that-exits-is-taken-for-a-yes")
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
	knownFault(t, "lease-kept-when-run-leaves-by-panic-or-goexit")
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
	case <-time.After(3 * time.Second):
		t.Fatal("the run hangs")
	}
}

// An owner sleeps in an observer, behind the commit of the start and before
// the call: meanwhile another process took over, was told that the call did not
// run, and ran it again. The owner that wakes up must not call.
func TestBreak_SleepInAnObserverBeforeTheCall(t *testing.T) {
	knownFault(t, "observer-stands-between-the-sleep-check-and-the-call")
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
	knownFault(t, "heart-gives-back-a-run-that-is-driven-again")
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
	knownFault(t, "new-id-of-the-program")
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
	knownFault(t, "new-id-of-the-program")
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
	knownFault(t, "hot-loop-where-inbox-row-contradicts-the-log")
	w := newWorld(t)
	w.says(calls("pay", `{}`))
	e := w.engine()
	res := w.run(e, ringi.RunStart{})
	w.decide(e, res.Pending[0].Approve(ana))
	th, _ := storetest.ThiefOf(w.store)
	must(t, th.SetRequest("default", res.Pending[0].ID, func(r *ringi.RequestRow) { r.State = ringi.Refused }))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	begun := time.Now()
	_, err := e.Resume(ctx, res.RunID)
	if err == nil || time.Since(begun) > time.Second {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
	w.wantRan()
}

// A thief carries a whole run into another thread, by its row alone.
func TestBreak_RunCarriedIntoAnotherThread(t *testing.T) {
	knownFault(t, "row-carries-a-run-into-another-thread")
	w := newWorld(t)
	w.cfg.Keyring = keyring(t)
	w.says()
	e := w.engine()
	res := w.run(e, ringi.RunStart{Thread: "thr_a", By: ana, Messages: []ringi.Message{ringi.User("ana's secret")}})
	th, _ := storetest.ThiefOf(w.store)
	must(t, th.SetRow("default", res.RunID, func(r *ringi.RunRow) { r.Thread = "thr_b" }))
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
	knownFault(t, "one-failure-of-now-or-beat-drops-a-result")
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
	knownFault(t, "a-run-that-ended-while-another-started")
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
	knownFault(t, "what-is-handed-out-is-shared")
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
	knownFault(t, "what-is-handed-out-is-shared")
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
	knownFault(t, "typed-input-whose-schema-changed-can-never-be-answered")
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
	knownFault(t, "long-inbox-is-cut-silently")
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
	knownFault(t, "cancel-now-reaches-writes-only")
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
			case <-time.After(3 * time.Second):
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
	knownFault(t, "prepare-step-on-resume")
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
	knownFault(t, "prepare-step-on-resume")
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
	knownFault(t, "edit-without-tools-is-unbounded")
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
	knownFault(t, "lease-is-not-checked")
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
	knownFault(t, "judges-are-counted-at-new-not-at-run")
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
	knownFault(t, "repeat-under-another-definition")
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
	knownFault(t, "two-callbacks-for-one-run")
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
	knownFault(t, "a-process-without-the-key-destroys-runs")
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
	knownFault(t, "a-process-without-the-key-destroys-runs")
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
	knownFault(t, "a-process-without-the-key-destroys-runs")
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
		t.Errorf("the thread is dead: %v", err)
	}
	if row, _ := w.store.Row(t.Context(), "default", ended.RunID); row.Corrupt != "" {
		t.Errorf("an ended run is marked: %s", row.Corrupt)
	}
}
