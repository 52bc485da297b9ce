// Package memory keeps runs in memory: for tests, for short-lived programs and
// for loops whose approvals are answered in process. What it holds ends with
// the process.
//
// It keeps encoded bytes and shares no memory with its callers: a commit is
// copied in, a load is copied out. Hashes that follow from those bytes are
// reckoned before somebody reads the run. It is fast because the bytes of many
// commits lie in one block, and it holds its one lock for no more than copying
// takes, but where a commit has to be admitted.
package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/ledger"
)

// Options configure a store. The zero value is ready for use.
type Options struct {
	// Now is the wall clock; nil means time.Now. It is called without a lock
	// and must be safe for goroutines.
	Now func() time.Time
	// Wake, where set, is called after a commit with Wake was applied, outside
	// the lock, on the goroutine that committed. It may be slow, late or lost,
	// and nothing breaks but the delay.
	Wake func(space, runID string)
	// MaxAttempts and MaxRunAttempts bound the refused attempts that are kept,
	// in all and of one run; the oldest go first. Zero means 100,000 and 1,000.
	MaxAttempts, MaxRunAttempts int
}

// Store is a [ringi.Store] in memory. It is safe for goroutines. Use [New].
type Store struct {
	opts   Options
	closed atomic.Bool
	d      *data
}

var (
	_ ringi.AdmittingStore = (*Store)(nil)
	_ ringi.DraftStore     = (*Store)(nil)
)

// New makes an empty store with an id of its own.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxAttempts <= 0 {
		o.MaxAttempts = 100_000
	}
	if o.MaxRunAttempts <= 0 {
		o.MaxRunAttempts = 1_000
	}
	return &Store{opts: o, d: newData(ringi.NewID("store_", o.Now()))}
}

// Restart returns a new store on the same data and options, as another process
// would open it: Close of the one does not close the other, and heartbeats,
// leases and the store's id are those of the data. It is for tests of what a
// restart finds, and of two processes on one store.
func (s *Store) Restart() *Store { return &Store{opts: s.opts, d: s.d} }

// Volatile reports that what the store holds ends with the process.
func (s *Store) Volatile() bool { return true }

// TakesDrafts says that hashes are reckoned when somebody reads: most runs of
// a store that ends with the process are read by nobody.
func (s *Store) TakesDrafts() bool { return true }

// Close ends the use of this store; other stores on the same data go on. A
// second Close does nothing.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

var errClosed = errors.New("store is closed")

// ask asks whether a commit is let in, over the space's ledger, and returns the
// sums that change, by space and name.
func (d *data) ask(ctx context.Context, space string, admit func(context.Context, ringi.Ledger) error) (map[sum]int64, error) {
	read := func(name string) (int64, error) { return d.ledger[sum{space, name}], nil }
	changed, err := ledger.Ask(ctx, read, ringi.ErrTooLarge, func(ctx context.Context, b *ledger.Book) error { return admit(ctx, b) })
	if err != nil {
		return nil, err
	}
	out := make(map[sum]int64, len(changed))
	for name, n := range changed {
		out[sum{space, name}] = n
	}
	return out, nil
}

// begin is the first step of every method.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closed.Load() {
		return errClosed
	}
	return nil
}

// ID returns the store's id, made by New.
func (s *Store) ID(ctx context.Context) (string, error) {
	if err := s.begin(ctx); err != nil {
		return "", err
	}
	return s.d.id, nil
}

// Now returns the wall clock in UTC microseconds, or the newest time recorded
// where that is later.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := s.begin(ctx); err != nil {
		return time.Time{}, err
	}
	wall := s.wall()
	s.d.mu.Lock()
	at := max(wall, s.d.newest)
	s.d.mu.Unlock()
	return timeOf(at), nil
}

// Beat renews an owner's heartbeat: it lives until Now plus lease. A lease of
// zero or less ends it at once.
func (s *Store) Beat(ctx context.Context, owner string, lease time.Duration) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if owner == "" {
		return errors.New("beat: no owner")
	}
	wall, d := s.wall(), s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	at := max(wall, d.newest)
	if _, known := d.beats[owner]; !known {
		d.forgetDead(at)
	}
	d.beats[owner] = at + max(lease, 0).Microseconds()
	return nil
}

// wall reads the wall clock in microseconds.
func (s *Store) wall() int64 { return s.opts.Now().UnixMicro() }

// data is what stores on the same data share.
type data struct {
	id string

	mu     sync.Mutex
	newest int64 // the newest time recorded, in microseconds
	bytes  block // of the newest records, with room for more
	spaces map[string]*space
	newly  *run // the last that was written: nearly always the next one too
	// corrections of the clock that were accepted
	corrections []ringi.ClockCorrection
	// open runs in the order in which they were made
	firstOpen, lastOpen *run
	made                int64            // runs made so far
	beats               map[string]int64 // by owner: dead from this time on
	tools               map[string][]byte
	keys, flags         map[string]string
	attempts            attempts
	ledger              map[sum]int64
	feed                feed
}

// sum names an amount of the ledger.
type sum struct{ space, name string }

func newData(id string) *data {
	return &data{
		id: id, spaces: map[string]*space{}, beats: map[string]int64{}, tools: map[string][]byte{},
		keys: map[string]string{}, flags: map[string]string{}, attempts: newAttempts(), ledger: map[sum]int64{},
	}
}

// lives reports whether an owner's heartbeat lives at a time. The lock is held.
func (d *data) lives(owner string, at int64) bool { return at < d.beats[owner] }

// forgetDead drops the heartbeats that are dead: no heartbeat and a dead one
// mean the same. The lock is held.
func (d *data) forgetDead(at int64) {
	for o, until := range d.beats {
		if at >= until {
			delete(d.beats, o)
		}
	}
}

// space holds what belongs to one space.
type space struct {
	runs     map[string]*run
	order    []*run // as made
	threads  map[string]*thread
	requests map[string]*request
	byAge    byAge
}

// space returns a space, made where it is not there. The lock is held.
func (d *data) space(name string) *space {
	sp := d.spaces[name]
	if sp == nil {
		sp = &space{runs: map[string]*run{}, threads: map[string]*thread{}, requests: map[string]*request{}}
		d.spaces[name] = sp
	}
	return sp
}

// thread holds the runs of one thread, as made.
type thread struct {
	runs  []*run
	first [1]*run // room for the only run of most
	open  *run    // the one that has not ended
}

// run is a run as kept. Its records are only appended to, and their bytes never
// written again: a reader takes the slice under the lock and copies it without.
// Whoever changes a record replaces the slice.
type run struct {
	row                ringi.RunRow
	number             int64 // counts all runs of the data
	records            []ringi.Record
	requests           byAge
	drafts             int          // the newest records that are not sealed
	sealer             ringi.Sealer // of the drafts
	room               [fewRecords]ringi.Record
	thread             *thread
	begun              thread // room for the thread, where it begins with this run
	prevOpen, nextOpen *run
}

// seal completes the drafts. Whoever hands records or a row out calls it
// first, so that nobody has seen what it writes into. The lock is held.
func (r *run) seal() {
	if r.drafts > 0 {
		r.row.Head, r.row.MAC = r.sealer.Seal(r.records[len(r.records)-r.drafts:])
		r.drafts, r.sealer = 0, nil
	}
}

// request is a request as kept.
type request struct{ row ringi.RequestRow }

// run returns a run, nil where it is not there; a nil space has none. The lock
// is held.
func (sp *space) run(id string) *run {
	if sp == nil {
		return nil
	}
	return sp.runs[id]
}

// request returns a request, nil where it is not there. The lock is held.
func (sp *space) request(id string) *request {
	if sp == nil {
		return nil
	}
	return sp.requests[id]
}

func noRun(id string) error     { return fmt.Errorf("run %s: %w", id, ringi.ErrNotFound) }
func noRequest(id string) error { return fmt.Errorf("request %s: %w", id, ringi.ErrNotFound) }
