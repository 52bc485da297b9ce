package storetest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

// Options is what a test asks of the store that it opens.
type Options struct {
	// Now plays the wall clock. It is never nil, and safe for goroutines.
	Now func() time.Time
	// Path names the store: a file name in a folder of the test's own. Opening
	// the same one again must find the data, where the store is durable.
	Path string
	// Wake, where set, is called for every commit with Wake that was applied.
	Wake func(space, runID string)
	// MaxAttempts and MaxRunAttempts bound the refused attempts that are kept,
	// in all and of one run. Zero means the store's own: 100,000 and 1,000.
	MaxAttempts, MaxRunAttempts int
}

// Features says what a store can do. The zero value is a store that dies with
// its process and is opened once.
type Features struct {
	// Durable is set where data outlives Close.
	Durable bool
	// Shared is set where two stores may be open on one Path at once.
	Shared bool
	// Wake is set where the store calls Options.Wake.
	Wake bool
	// Bounds is set where the store heeds MaxAttempts and MaxRunAttempts.
	Bounds bool
	// Thief gives raw access to an open store; nil means [ThiefOf].
	Thief func(s ringi.Store) Thief
}

// Exercise holds a store to every promise of [ringi.Store]. open opens a store
// as Options say; Exercise closes it.
func Exercise(t *testing.T, open func(t *testing.T, o Options) ringi.Store, f Features) {
	groups := []struct {
		name string
		test func(*testing.T, opener)
	}{
		{"Commits", commits},
		{"Settlers", settlers},
		{"Leases", leases},
		{"Requests", requests},
		{"Lists", lists},
		{"Search", search},
		{"Tally", tally},
		{"Threads", threads},
		{"Transcripts", transcripts},
		{"Runnable", runnable},
		{"Tools", tools},
		{"Attempts", attempts},
		{"Keys", keys},
		{"Clock", clock},
		{"Accepted", accepted},
		{"Bytes", bytesAndTimes},
		{"Copies", copies},
		{"Spaces", spaces},
		{"Races", races},
		{"Contexts", contexts},
		{"Reopen", reopen},
		{"Shared", shared},
		{"Ledger", ledgers},
		{"Feed", feeds},
		{"Thief", thief},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) { g.test(t, opener{open, f}) })
	}
}

// opener opens stores for one group of tests.
type opener struct {
	open     func(t *testing.T, o Options) ringi.Store
	features Features
}

// stage is one store with a clock that stands still until it is moved.
type stage struct {
	ringi.Store
	t     *testing.T
	o     opener
	opts  Options
	clock *Clock
	woken *woken
}

// stage opens a new store. change, where given, adjusts the options.
func (o opener) stage(t *testing.T, change ...func(*Options)) *stage {
	t.Helper()
	g := &stage{t: t, o: o, clock: NewClock(), woken: &woken{}}
	g.opts = Options{
		Now: g.clock.Now, Path: filepath.Join(t.TempDir(), "ringi.db"), Wake: g.woken.add,
	}
	for _, c := range change {
		c(&g.opts)
	}
	g.Store = g.another(nil)
	return g
}

// another opens the same path again, under another clock where one is given.
func (g *stage) another(c *Clock) ringi.Store {
	g.t.Helper()
	o := g.opts
	if c != nil {
		o.Now = c.Now
	}
	s := g.o.open(g.t, o)
	g.t.Cleanup(func() { s.Close() })
	return s
}

// in returns the stage for a subtest: what fails, fails there.
func (g *stage) in(t *testing.T) *stage {
	sub := *g
	sub.t = t
	return &sub
}

// run makes a subtest with a store of its own.
func (o opener) run(t *testing.T, name string, test func(t *testing.T, g *stage)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { test(t, o.stage(t)) })
}

var ctx = context.Background()
