package audit

import (
	"sync"

	"github.com/ringi-dev/ringi"
)

// Sealer completes the drafts of one run, in their order. It knows the newest
// hash by itself and reads none from a store, so that a log which somebody
// changed there does not verify afterwards either. It is safe for goroutines;
// use [Chain.Sealer] or [NewSealer].
type Sealer struct {
	mu                    sync.Mutex
	began                 bool
	head                  [32]byte
	storeID, space, runID string
}

var _ ringi.Sealer = (*Sealer)(nil)

// NewSealer returns the sealer of a run without records.
func NewSealer(storeID, space, runID string) *Sealer {
	return &Sealer{storeID: storeID, space: space, runID: runID}
}

// Sealer returns the sealer of what follows on a chain whose head is known.
func (c Chain) Sealer() *Sealer { return &Sealer{began: true, head: c.Head} }

// Seal fills in the commitments and hashes of drafts, which follow on those of
// the call before, and returns the last hash. Drafts that are not the next
// ones do not verify.
func (s *Sealer) Seal(drafts []ringi.Record) [32]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.began {
		s.head, s.began = Genesis(s.storeID, s.space, s.runID).Head, true
	}
	w := newWriter()
	defer w.free()
	for i := range drafts {
		w.seal(&drafts[i], &s.head)
	}
	return s.head
}
