package ringitest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/ringi-dev/ringi"
)

// ErrFault is what a faulty store returns, where [Faults] names no other error.
var ErrFault = errors.New("store failed")

// Faults makes a store whose commits fail while its process lives on: a lost
// connection, a full disk, and the worst of them, a commit that was made and
// reported as failed. The zero value never fails. Set its fields before use; it
// is safe for concurrent use.
type Faults struct {
	// Every fails every nth commit; 0 none by count.
	Every int
	// Rate fails a share of the commits, from 0 to 1, by a generator that
	// starts from Seed.
	Rate float64
	Seed uint64
	// After fails commits that were made: the change is written, the error is
	// told all the same. Both takes turns: one before, one after.
	After, Both bool
	// Reads fails loads of runs as well, by the same Rate.
	Reads bool
	// Err is the error; nil is ErrFault.
	Err error

	mu      sync.Mutex
	dice    *rand.Rand
	commits int
	failed  int
	off     bool
}

// Store returns s with the faults.
func (f *Faults) Store(s ringi.Store) ringi.Store { return &faulty{s, f} }

// Stop ends the faults: the store works from now on.
func (f *Faults) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off = true
}

// Count returns how many calls have failed.
func (f *Faults) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// next says whether a commit fails, and whether it is made all the same.
func (f *Faults) next() (fails, made bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commits++
	if f.off || !(f.Every > 0 && f.commits%f.Every == 0) && !f.roll() {
		return false, false
	}
	f.failed++
	return true, f.After && !f.Both || f.Both && f.failed%2 == 0
}

func (f *Faults) nextRead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off || !f.Reads || !f.roll() {
		return false
	}
	f.failed++
	return true
}

// roll is true for Rate of the calls. The lock is held.
func (f *Faults) roll() bool {
	if f.Rate <= 0 {
		return false
	}
	if f.dice == nil {
		f.dice = rand.New(rand.NewPCG(f.Seed, f.Seed))
	}
	return f.dice.Float64() < f.Rate
}

func (f *Faults) err() error {
	if f.Err != nil {
		return f.Err
	}
	return ErrFault
}

// faulty is a store with faults.
type faulty struct {
	ringi.Store
	f *Faults
}

func (s *faulty) Commit(ctx context.Context, c *ringi.Commit) error {
	fails, made := s.f.next()
	if fails && !made {
		return s.f.err()
	}
	err := s.Store.Commit(ctx, c)
	if fails && err == nil {
		return s.f.err()
	}
	return err
}

func (s *faulty) Load(ctx context.Context, space, runID string) (*ringi.StoredRun, error) {
	if s.f.nextRead() {
		return nil, s.f.err()
	}
	return s.Store.Load(ctx, space, runID)
}
