package audit

import (
	"sync"

	"github.com/ringi-dev/ringi"
)

// Sealer completes the drafts of one run, in their order. It knows the newest
// hash by itself and reads none from a store, so that a log which somebody
// changed there does not verify afterwards either. It is safe for goroutines;
// use [Chain.Sealer].
type Sealer struct {
	mu                    sync.Mutex
	chain                 Chain
	storeID, space, runID string
	mac                   func(runID string, c Chain) string
}

var _ ringi.Sealer = (*Sealer)(nil)

// Sealer returns the sealer of what follows on c: the chain of a run as it was
// read, or the zero one of a run without records. mac authenticates the chain's
// head for the run's row; nil means that nobody does.
func (c Chain) Sealer(storeID, space, runID string, mac func(runID string, c Chain) string) *Sealer {
	return &Sealer{chain: c, storeID: storeID, space: space, runID: runID, mac: mac}
}

// Seal fills in the commitments and hashes of drafts, which follow on those of
// the call before, and returns the last hash and its MAC. Drafts that are not
// the next ones do not verify.
func (s *Sealer) Seal(drafts []ringi.Record) (head [32]byte, mac string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chain.Seq == 0 {
		s.chain = Genesis(s.storeID, s.space, s.runID)
	}
	w := newWriter()
	defer w.free()
	for i := range drafts {
		w.seal(&drafts[i], &s.chain.Head)
		s.chain.Seq = drafts[i].Seq
	}
	if s.mac != nil {
		mac = s.mac(s.runID, s.chain)
	}
	return s.chain.Head, mac
}
