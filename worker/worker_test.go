package worker_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/store/memory"
	"github.com/ringi-dev/ringi/worker"
)

// A decision in the worker's process resumes the run at once: long before the
// worker would look by itself.
func TestDecisionResumesTheRun(t *testing.T) {
	overStores(t, func(t *testing.T, open func(func(space, run string)) ringi.Store) {
		w := worker.New(worker.Options{Poll: time.Hour})
		store, till := open(w.Wake), &till{}
		e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t)})
		stop := runs(t, w, store, e)
		for range 20 {
			run := decided(t, e)
			if row := ends(t, store, run); row.Status != ringi.Completed || till.count(run) != 1 {
				t.Fatalf("run is %s, paid %d times", row.Status, till.count(run))
			}
		}
		if err := errors.Join(w.Check(), stop()); err != nil {
			t.Error(err)
		}
		if err := w.Check(); !errors.Is(err, worker.ErrStopped) {
			t.Errorf("a worker that has stopped says %v", err)
		}
	})
}

// What was made runnable while no worker was there, or in a process that wakes
// nobody, is found by looking.
func TestLooksForWhatNobodyWoke(t *testing.T) {
	overStores(t, func(t *testing.T, open func(func(space, run string)) ringi.Store) {
		store, till := open(nil), &till{}
		e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t)})
		before := []string{decided(t, e), decided(t, e), decided(t, e)}
		runs(t, worker.New(worker.Options{Poll: 5 * time.Millisecond, Idle: 10 * time.Millisecond}), store, e)
		for _, run := range append(before, decided(t, e)) {
			if row := ends(t, store, run); row.Status != ringi.Completed || till.count(run) != 1 {
				t.Errorf("run is %s, paid %d times", row.Status, till.count(run))
			}
		}
	})
}

// Two workers on one store run everything once.
func TestTwoWorkersRunEverythingOnce(t *testing.T) {
	overStores(t, func(t *testing.T, open func(func(space, run string)) ringi.Store) {
		var workers [2]*worker.Worker
		for i := range workers {
			workers[i] = worker.New(worker.Options{Poll: 2 * time.Millisecond, Idle: 5 * time.Millisecond, AtOnce: 4})
		}
		store, till := open(func(space, run string) { // both are woken for everything
			workers[0].Wake(space, run)
			workers[1].Wake(space, run)
		}), &till{}
		reg := till.registry(t)
		var engines [2]*engine.Engine
		for i, w := range workers {
			engines[i] = newEngine(t, engine.Config{Store: store, Registry: reg})
			runs(t, w, store, engines[i])
		}
		for range 100 {
			decided(t, engines[0])
		}
		rows, err := store.Runs(t.Context(), ringi.RunQuery{Space: "default", Limit: 1000})
		if err != nil || len(rows) != 100 {
			t.Fatalf("%d runs, %v", len(rows), err)
		}
		for _, r := range rows {
			if row := ends(t, store, r.ID); row.Status != ringi.Completed || till.count(r.ID) != 1 {
				t.Errorf("run %s is %s, paid %d times", r.ID, row.Status, till.count(r.ID))
			}
		}
	})
}

// S-36: a request that nobody answered in time is settled, and the run goes on.
func TestS36_ExpiredRequestGoesOn(t *testing.T) {
	overStores(t, func(t *testing.T, open func(func(space, run string)) ringi.Store) {
		store, till := open(nil), &till{}
		e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t), Expiry: 30 * time.Millisecond})
		r := suspended(t, e)
		runs(t, worker.New(worker.Options{Poll: 5 * time.Millisecond, Idle: 10 * time.Millisecond}), store, e)
		if row := ends(t, store, r.RunID); row.Status != ringi.Completed || till.count(r.RunID) != 0 {
			t.Errorf("run is %s, paid %d times", row.Status, till.count(r.RunID))
		}
		if r, err := e.Request(t.Context(), r.ID); err != nil || r.State != ringi.Expired {
			t.Errorf("request is %s, %v", r.State, err)
		}
	})
}

// A process that cannot run anything still has requests expire.
func TestExpiresWhatItCannotResume(t *testing.T) {
	store, till := memory.New(memory.Options{}), &till{}
	e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t), Expiry: 20 * time.Millisecond})
	r := suspended(t, e)
	cannot := &tries{Engine: e, answer: func(context.Context, string) (*ringi.Result, error) { return nil, ringi.ErrPolicyMissing }}
	runs(t, worker.New(worker.Options{Poll: 5 * time.Millisecond, Expire: 10 * time.Millisecond}), store, cannot)
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		row, err := store.Row(t.Context(), "default", r.RunID)
		if err != nil || time.Since(begun) > 90*time.Second {
			t.Fatalf("run is %s, %v", row.Status, err)
		}
		if row.Status == ringi.Queued {
			return
		}
	}
}

// A run that cannot go on is tried ever more rarely, and told once for each
// reason; it keeps nobody else waiting, and is tried at once when it is moved.
func TestRunThatCannotGoOnDoesNotSpin(t *testing.T) {
	for _, reason := range []error{ringi.ErrPolicyMissing, ringi.ErrNoKey, ringi.ErrCorrupt, ringi.ErrBusy, errors.New("the disk is full")} {
		t.Run(reason.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lines
				w := worker.New(worker.Options{Logger: log.logger(), Expire: -1})
				store, till := memory.New(memory.Options{Wake: w.Wake}), &till{}
				e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t)})
				stuck := decided(t, e)
				c := &tries{Engine: e}
				c.answer = func(ctx context.Context, run string) (*ringi.Result, error) {
					if run != stuck {
						return e.Resume(ctx, run)
					}
					w.Wake("default", run) // as an engine does that gives a run back
					return nil, fmt.Errorf("resume run %s: %w", run, reason)
				}
				stop := runs(t, w, store, c)
				time.Sleep(time.Hour)
				if n := c.of(stuck); n < 60 || n > 80 {
					t.Errorf("%d tries in an hour, want about one a minute", n)
				}
				want := 1
				if errors.Is(reason, ringi.ErrBusy) {
					want = 0
				}
				if n := log.count("cannot go on"); n != want {
					t.Errorf("told %d times, want %d", n, want)
				}
				run := decided(t, e)
				synctest.Wait()
				if row, err := store.Row(t.Context(), "default", run); err != nil || row.Status != ringi.Completed {
					t.Errorf("another run is %s, %v", row.Status, err)
				}
				before := c.of(stuck)
				if err := e.Cancel(t.Context(), stuck, ana, "enough", false); err != nil {
					t.Fatal(err)
				}
				w.Wake("default", stuck)
				synctest.Wait()
				if c.of(stuck) == before {
					t.Error("a run that was moved is not tried at once")
				}
				stop()
			})
		})
	}
}

// A gate's run is tended when something of it is due, and otherwise left alone.
func TestGatesRunIsTendedAndDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worker.New(worker.Options{Expire: -1})
		store, till := memory.New(memory.Options{Wake: w.Wake}), &till{}
		e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t)})
		c := &tries{Engine: e}
		stop := runs(t, w, store, c)
		g, err := e.Gate(t.Context(), ringi.RunInfo{By: ana})
		if err != nil {
			t.Fatal(err)
		}
		j, err := g.Judge(t.Context(), ringi.ToolCall{Tool: "pay", Input: "{}"})
		if err != nil || j.Request == nil {
			t.Fatalf("judge: %+v, %v", j, err)
		}
		time.Sleep(73 * time.Hour) // the request expires after 72 h
		if got, err := e.Request(t.Context(), j.Request.ID); err != nil || got.State != ringi.Expired {
			t.Errorf("request is %s, %v", got.State, err)
		}
		time.Sleep(73 * time.Hour) // the gate is idle for 72 h
		run := g.Run().ID
		if row, err := store.Row(t.Context(), "default", run); err != nil || row.Status != ringi.Completed {
			t.Errorf("the gate's run is %s, %v", row.Status, err)
		}
		// It may stay listed once it was tended: then it rests.
		if n := c.of(run); n < 2 || n > 80*60 {
			t.Errorf("the gate's run was looked at %d times, want at most one a minute", n)
		}
		stop()
	})
}

// A run that stays runnable though nothing goes wrong is left alone too.
func TestRunThatNothingMovesDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worker.New(worker.Options{Expire: -1})
		store, till := memory.New(memory.Options{Wake: w.Wake}), &till{}
		e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t)})
		run := decided(t, e)
		c := &tries{Engine: e, answer: func(context.Context, string) (*ringi.Result, error) {
			w.Wake("default", run)
			return &ringi.Result{Status: ringi.Running}, nil
		}}
		stop := runs(t, w, store, c)
		time.Sleep(time.Hour)
		if n := c.of(run); n < 60 || n > 80 {
			t.Errorf("%d tries in an hour, want about one a minute", n)
		}
		stop()
	})
}

// While nothing happens the store is looked at once a second.
func TestIdleLooksRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &looked{Store: memory.New(memory.Options{})}
		till := &till{}
		w := worker.New(worker.Options{Expire: -1})
		stop := runs(t, w, store, newEngine(t, engine.Config{Store: store, Registry: till.registry(t)}))
		time.Sleep(100 * time.Second)
		if n := store.n.Load(); n < 90 || n > 125 {
			t.Errorf("%d looks in 100 s", n)
		}
		if err := w.Check(); err != nil {
			t.Error(err)
		}
		store.fail.Store(true)
		time.Sleep(3 * time.Second)
		if err := w.Check(); !errors.Is(err, errNoDisk) {
			t.Errorf("a worker whose store fails says %v", err)
		}
		store.fail.Store(false)
		time.Sleep(3 * time.Second)
		if err := w.Check(); err != nil {
			t.Error(err)
		}
		stop()
	})
}

var errNoDisk = errors.New("no disk")

type looked struct {
	ringi.Store
	n    atomic.Int64
	fail atomic.Bool
}

func (l *looked) Runnable(ctx context.Context, limit int) ([]ringi.RunRow, error) {
	l.n.Add(1)
	if l.fail.Load() {
		return nil, errNoDisk
	}
	return l.Store.Runnable(ctx, limit)
}

// A first page full of runs that are stuck hides no other.
func TestStuckRunsHideNoOther(t *testing.T) {
	store, till := memory.New(memory.Options{}), &till{}
	e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t)})
	stuck := map[string]bool{}
	for range 1100 {
		stuck[decided(t, e)] = true
	}
	run := decided(t, e)
	c := &tries{Engine: e, answer: func(ctx context.Context, id string) (*ringi.Result, error) {
		if stuck[id] {
			return nil, ringi.ErrPolicyMissing
		}
		return e.Resume(ctx, id)
	}}
	runs(t, worker.New(worker.Options{Poll: time.Millisecond, Idle: time.Millisecond, Rest: time.Minute, Expire: -1}), store, c)
	ends(t, store, run)
	if n := c.of(run); n != 1 {
		t.Errorf("%d tries", n)
	}
}

// As many runs go on at once as Options.AtOnce says, and no more.
func TestAtOnce(t *testing.T) {
	var now, most atomic.Int64
	full := make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) })
	till := &till{do: func(context.Context, string) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == 5 {
			fill()
		}
		<-full
		time.Sleep(time.Millisecond)
		now.Add(-1)
	}}
	w := worker.New(worker.Options{AtOnce: 5, Poll: 5 * time.Millisecond})
	store := memory.New(memory.Options{Wake: w.Wake})
	e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t)})
	var all []string
	for range 30 {
		all = append(all, decided(t, e))
	}
	runs(t, w, store, e)
	for _, run := range all {
		ends(t, store, run)
	}
	if n := most.Load(); n != 5 {
		t.Errorf("%d runs at once, want 5", n)
	}
}

// A worker that is to stop takes no further run; a call in flight is finished
// and recorded.
func TestStopFinishesWhatIsInFlight(t *testing.T) {
	overStores(t, func(t *testing.T, open func(func(space, run string)) ringi.Store) {
		begun, goOn := make(chan string, 10), make(chan struct{})
		till := &till{do: func(_ context.Context, run string) {
			begun <- run
			<-goOn
		}}
		w := worker.New(worker.Options{AtOnce: 1, Poll: 5 * time.Millisecond})
		store := open(w.Wake)
		e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t)})
		decided(t, e)
		decided(t, e)
		stop := runs(t, w, store, e)
		run := <-begun
		time.AfterFunc(30*time.Millisecond, func() { close(goOn) })
		if err := stop(); err != nil {
			t.Error(err)
		}
		row, err := store.Row(t.Context(), "default", run)
		if err != nil || row.Status != ringi.Queued || row.Owner != "" {
			t.Errorf("the run in flight is %s, owner %q, %v; want queued, free, with its result", row.Status, row.Owner, err)
		}
		if len(begun) != 0 {
			t.Error("another run was taken")
		}
		// The next worker ends both, and pays nothing twice.
		runs(t, worker.New(worker.Options{Poll: 5 * time.Millisecond}), store, e)
		rows, err := store.Runs(t.Context(), ringi.RunQuery{Space: "default"})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if row := ends(t, store, r.ID); row.Status != ringi.Completed || till.count(r.ID) != 1 {
				t.Errorf("run is %s, paid %d times", row.Status, till.count(r.ID))
			}
		}
	})
}

// A call that does not end within the grace is named; the worker does not wait
// for ever.
func TestStopWithinItsGrace(t *testing.T) {
	begun, goOn := make(chan string, 1), make(chan struct{})
	defer close(goOn)
	till := &till{do: func(_ context.Context, run string) {
		begun <- run
		<-goOn
	}}
	w := worker.New(worker.Options{Grace: 20 * time.Millisecond})
	store := memory.New(memory.Options{Wake: w.Wake})
	e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t)})
	stop := runs(t, w, store, e)
	run := decided(t, e)
	<-begun
	if err := stop(); err == nil || !strings.Contains(err.Error(), run) {
		t.Errorf("stop gives %v, want an error that names %s", err, run)
	}
}

// What ends one run's goroutine ends nothing else.
func TestPanicEndsNobodyElse(t *testing.T) {
	w := worker.New(worker.Options{Poll: 5 * time.Millisecond, AtOnce: 1})
	store, till := memory.New(memory.Options{Wake: w.Wake}), &till{}
	e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t)})
	panics, leaves, run := decided(t, e), decided(t, e), decided(t, e)
	c := &tries{Engine: e, answer: func(ctx context.Context, id string) (*ringi.Result, error) {
		switch id {
		case panics:
			panic("boom")
		case leaves:
			runtime.Goexit()
		}
		return e.Resume(ctx, id)
	}}
	stop := runs(t, w, store, c)
	ends(t, store, run)
	if c.of(panics) == 0 || c.of(leaves) == 0 {
		t.Error("the other runs were not tried")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A worker runs once at a time.
func TestRunsOnce(t *testing.T) {
	w := worker.New(worker.Options{})
	store, till := memory.New(memory.Options{}), &till{}
	e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t)})
	runs(t, w, store, e)
	for w.Check() != nil {
		time.Sleep(time.Millisecond)
	}
	if err := w.Run(t.Context(), store, e); err == nil {
		t.Error("a second Run begins")
	}
	if err := w.Check(); err != nil {
		t.Errorf("the first one is disturbed: %v", err)
	}
}

// Runs of another space are another worker's.
func TestOtherSpacesAreLeftAlone(t *testing.T) {
	w := worker.New(worker.Options{Poll: 2 * time.Millisecond, Idle: 4 * time.Millisecond})
	store, till := memory.New(memory.Options{Wake: w.Wake}), &till{}
	reg := till.registry(t)
	other := newEngine(t, engine.Config{Store: store, Registry: reg, Space: "other"})
	decided(t, other)
	c := &tries{Engine: newEngine(t, engine.Config{Store: store, Registry: reg})}
	runs(t, w, store, c)
	ends(t, store, decided(t, newEngine(t, engine.Config{Store: store, Registry: reg})))
	time.Sleep(20 * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all != 1 {
		t.Errorf("%d tries, want 1: %v", c.all, c.n)
	}
}

// BenchmarkDecisionToRun measures how long it takes from a decision that is
// recorded to the approved call, in one process on SQLite: claim and start are
// committed and synced between.
func BenchmarkDecisionToRun(b *testing.B) {
	var at atomic.Int64
	ran := make(chan struct{}, 1)
	till := &till{do: func(context.Context, string) {
		at.Store(time.Now().UnixNano())
		ran <- struct{}{}
	}}
	w := worker.New(worker.Options{Poll: time.Hour})
	store := openSQLite(b, filepath.Join(b.TempDir(), "ringi.db"), w.Wake)
	e := newEngine(b, engine.Config{Store: store, Registry: till.registry(b)})
	c := &begins{Engine: e}
	runs(b, w, store, c)
	var resumed, called []time.Duration
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		r := suspended(b, e)
		b.StartTimer()
		if _, err := e.Decide(b.Context(), r.Approve(ana)); err != nil {
			b.Fatal(err)
		}
		recorded := time.Now().UnixNano()
		<-ran
		resumed = append(resumed, time.Duration(c.at.Load()-recorded))
		called = append(called, time.Duration(at.Load()-recorded))
		b.StopTimer()
		ends(b, store, r.RunID)
		b.StartTimer()
	}
	b.StopTimer()
	report(b, resumed, "resume")
	report(b, called, "call")
}

type begins struct {
	worker.Engine
	at atomic.Int64
}

func (c *begins) Resume(ctx context.Context, run string) (*ringi.Result, error) {
	c.at.Store(time.Now().UnixNano())
	return c.Engine.Resume(ctx, run)
}

// A run that was woken while somebody still held it, or while it was being
// resumed, goes on at once all the same.
func TestWokenAMomentTooEarly(t *testing.T) {
	w := worker.New(worker.Options{Poll: time.Hour})
	store, till := memory.New(memory.Options{Wake: w.Wake}), &till{}
	e := newEngine(t, engine.Config{Store: store, Registry: till.registry(t)})
	var early ringi.ApprovalRequest
	c := &tries{Engine: e}
	c.answer = func(ctx context.Context, run string) (*ringi.Result, error) {
		n := c.of(run)
		switch {
		case run == early.RunID && n == 1: // decided while it is resumed
			if _, err := e.Decide(ctx, early.Approve(ana)); err != nil {
				t.Error(err)
			}
			return &ringi.Result{Status: ringi.WaitingForApproval}, nil
		case run != early.RunID && n <= 3: // its owner lets go a moment later
			return nil, ringi.ErrBusy
		}
		return e.Resume(ctx, run)
	}
	early = suspended(t, e)
	looked := &firstLook{Engine: c, done: make(chan struct{})}
	runs(t, w, store, looked)
	<-looked.done // what is decided now is found by its wake-up alone
	w.Wake("default", early.RunID)
	busy := decided(t, e)
	for _, run := range []string{early.RunID, busy} {
		if row := ends(t, store, run); row.Status != ringi.Completed || till.count(run) != 1 {
			t.Errorf("run is %s, paid %d times", row.Status, till.count(run))
		}
	}
}

// firstLook tells when the worker has looked at the store once: then requests
// are expired.
type firstLook struct {
	worker.Engine
	once sync.Once
	done chan struct{}
}

func (f *firstLook) Expire(ctx context.Context, limit int) (int, error) {
	f.once.Do(func() { close(f.done) })
	return f.Engine.Expire(ctx, limit)
}
