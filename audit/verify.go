package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/ringi-dev/ringi"
)

// BrokenError says where a chain breaks and why.
type BrokenError struct {
	// Seq is the sequence number of the first record that does not fit, or of
	// one that is missing.
	Seq int64
	// Why is a sentence for people. It holds nothing of a payload.
	Why string
	// Newer is set where the chain fits so far and the record was written by a
	// newer version of the program. That is no break, and the error is not
	// ErrCorrupt; but this program can read no further and proves nothing.
	Newer bool
}

func (e *BrokenError) Error() string { return fmt.Sprintf("verify record %d: %s", e.Seq, e.Why) }

// Unwrap returns ringi.ErrCorrupt, or nil where the record is only newer.
func (e *BrokenError) Unwrap() error {
	if e.Newer {
		return nil
	}
	return ringi.ErrCorrupt
}

// Why a chain is broken.
const (
	whyEmpty      = "the log is empty: every run has a first record"
	whyOrder      = "another record stands in its place: one was removed, inserted or moved"
	whyGenesis    = "its hash does not begin this run in this space of this store: it was changed or is another run's"
	whyHash       = "its hash does not follow from the record before it and its header"
	whyHeader     = "its header is not in the one form that a header has"
	whyVersion    = "its header is of a version that this program does not know"
	whySeq        = "its header has another sequence number"
	whyKind       = "its header has another kind"
	whyHalf       = "payload or random bytes are missing, not both"
	whyErased     = "its payload is gone and no later record says who erased it"
	whyCommitment = "its payload and random bytes are not those that the header commits to"
	whyPayload    = "its payload does not decode"
	whyRefs       = "its header names other ids than its payload"
	whyTail       = "the run's row is ahead of the log: the tail is missing"
	whyBeyond     = "the log goes on behind the run's row"
	whyHead       = "the run's row has another hash for the newest record"
)

// Verify checks a whole chain: that it begins with this run in this space of
// this store, that no record is missing, added, moved or changed, that the
// payloads which are there are those that were written, and that it ends at
// head and seq, those of the run's row. It decodes nothing. The error is a
// *BrokenError.
//
// Who can write to the store can write a chain anew, row and all. The row's MAC
// holds against that, and only an anchor outside against a store set back in
// time.
func Verify(storeID, space, runID string, records []ringi.Record, head [32]byte, seq int64) error {
	w := newWalk(storeID, space, runID, records)
	defer w.free()
	for range records {
		if broken := w.step(); broken != nil {
			return broken
		}
	}
	if broken := w.end(head, seq); broken != nil {
		return broken
	}
	return nil
}

// Events verifies a chain as Verify does, and decodes its records. Of a record
// whose payload was erased the event has no body (nil). The error is a
// *BrokenError; no events come with it.
func Events(storeID, space, runID string, records []ringi.Record, head [32]byte, seq int64) ([]ringi.Event, error) {
	w := newWalk(storeID, space, runID, records)
	defer w.free()
	events := make([]ringi.Event, len(records))
	for i := range records {
		broken := w.step()
		if broken != nil {
			return nil, broken
		}
		if broken = w.event(&events[i], &records[i]); broken != nil {
			return nil, broken
		}
		events[i].RunID = runID
	}
	if broken := w.end(head, seq); broken != nil {
		return nil, broken
	}
	return events, nil
}

// Decode decodes one record. It checks that the record's columns, header and
// payload agree, and cannot check its place in a chain. Of a record whose
// payload was erased the event has no body (nil), and nothing here says who
// erased it. The error is a *BrokenError.
func Decode(r ringi.Record) (ringi.Event, error) {
	w := newWalk("", "", "", nil)
	defer w.free()
	var e ringi.Event
	broken := w.header(&r)
	if broken == nil {
		broken = w.payload(&r)
	}
	if broken == nil {
		broken = w.event(&e, &r)
	}
	if broken != nil {
		return ringi.Event{}, broken
	}
	return e, nil
}

// Verification is what VerifyRun found.
type Verification struct {
	// Records is how many records were given, Erased how many of those that
	// verify have no payload any more.
	Records, Erased int
	// From and To are the first and the last sequence number of the records
	// that verify, up to the first break; both 0 for none.
	From, To int64
	// Broken is the first break; nil for a whole chain.
	Broken *BrokenError
}

// VerifyRun verifies a chain as Events does, and reports how far it holds. It is
// for people and scheduled checks; the engine uses Events.
func VerifyRun(storeID, space, runID string, records []ringi.Record, head [32]byte, seq int64) Verification {
	v := Verification{Records: len(records)}
	w := newWalk(storeID, space, runID, records)
	defer w.free()
	for i := range records {
		var e ringi.Event
		broken := w.step()
		if broken == nil {
			broken = w.event(&e, &records[i])
		}
		if broken != nil {
			v.Broken = broken
			return v
		}
		if e.Body == nil {
			v.Erased++
		}
		v.From, v.To = 1, e.Seq
	}
	v.Broken = w.end(head, seq)
	return v
}

// String says in a sentence what is proved.
func (v Verification) String() string {
	proved := "no record verifies"
	if v.To > 0 {
		proved = fmt.Sprintf("records %d to %d are as they were written", v.From, v.To)
	}
	if v.Erased > 0 {
		proved += fmt.Sprintf(", %d of them erased", v.Erased)
	}
	switch {
	case v.Broken == nil:
		return proved + "; the log ends where the run's row says"
	case v.Broken.Newer:
		return fmt.Sprintf("%s; nothing is proved from record %d on: %s", proved, v.Broken.Seq, v.Broken.Why)
	}
	return fmt.Sprintf("%s; broken at record %d: %s", proved, v.Broken.Seq, v.Broken.Why)
}

// walk goes through the records of a run.
type walk struct {
	records []ringi.Record
	next    int
	prev    [32]byte
	hash    hash.Hash
	sum     [sha256.Size]byte // the newest digest
	head    parsed            // of the record at hand
	codec   *codec
}

func newWalk(storeID, space, runID string, records []ringi.Record) *walk {
	w := &walk{records: records, hash: sha256.New(), codec: newWriter()}
	if records != nil {
		w.prev = Genesis(storeID, space, runID).Head
	}
	return w
}

func (w *walk) free() { w.codec.free() }

// step verifies the next record.
func (w *walk) step() *BrokenError {
	r := &w.records[w.next]
	seq := int64(w.next) + 1
	if r.Seq != seq {
		return broken(seq, whyOrder)
	}
	if w.digest(w.prev[:], r.Head); w.sum != r.Hash {
		if seq == 1 {
			return broken(seq, whyGenesis)
		}
		return broken(seq, whyHash)
	}
	if err := w.header(r); err != nil {
		return err
	}
	if err := w.payload(r); err != nil {
		return err
	}
	if len(r.Payload) == 0 && !w.erasedLater() {
		return broken(seq, whyErased)
	}
	w.prev = r.Hash
	w.next++
	return nil
}

// header reads a record's header and compares it with the columns.
func (w *walk) header(r *ringi.Record) *BrokenError {
	err := w.head.parse(r.Head)
	switch {
	case errors.Is(err, errNewer):
		return &BrokenError{Seq: r.Seq, Why: whyVersion, Newer: true}
	case err != nil:
		return broken(r.Seq, whyHeader)
	case w.head.seq != r.Seq:
		return broken(r.Seq, whySeq)
	case string(w.head.kind) != string(r.Kind):
		return broken(r.Seq, whyKind)
	}
	return nil
}

// payload compares payload and random bytes with the commitment.
func (w *walk) payload(r *ringi.Record) *BrokenError {
	if len(r.Payload) == 0 && len(r.Salt) == 0 {
		return nil
	}
	if len(r.Payload) == 0 || len(r.Salt) == 0 {
		return broken(r.Seq, whyHalf)
	}
	w.digest(commitmentPrefix, r.Salt, r.Payload)
	if len(r.Salt) != saltSize || w.sum != w.head.commitment {
		return broken(r.Seq, whyCommitment)
	}
	return nil
}

// erasedLater reports whether a record behind the next one says that payloads
// were erased. That record is verified in its turn.
func (w *walk) erasedLater() bool {
	for i := len(w.records) - 1; i > w.next; i-- {
		if w.records[i].Kind == ringi.EventRunErased {
			return true
		}
	}
	return false
}

// event fills in the event of a record that verifies.
func (w *walk) event(e *ringi.Event, r *ringi.Record) *BrokenError {
	e.Seq, e.Kind, e.At, e.Epoch = r.Seq, r.Kind, time.UnixMicro(w.head.at).UTC(), w.head.epoch
	if len(r.Payload) == 0 {
		return nil
	}
	body, err := decodeBody(w.codec, r.Kind, r.Payload)
	if err != nil {
		return broken(r.Seq, whyPayload)
	}
	if !w.head.same(refsOf(body)) {
		return broken(r.Seq, whyRefs)
	}
	e.Body = body
	return nil
}

// end compares the end of the chain with the run's row.
func (w *walk) end(head [32]byte, seq int64) *BrokenError {
	last := int64(len(w.records))
	switch {
	case last < seq:
		return broken(last+1, whyTail)
	case last > seq:
		return broken(seq+1, whyBeyond)
	case last == 0:
		return broken(1, whyEmpty)
	case w.prev != head:
		return broken(last, whyHead)
	}
	return nil
}

var commitmentPrefix = []byte(commitmentLabel)

// digest puts SHA-256 of the parts into sum.
func (w *walk) digest(parts ...[]byte) {
	w.hash.Reset()
	for _, p := range parts {
		w.hash.Write(p)
	}
	w.hash.Sum(w.sum[:0])
}

func broken(seq int64, why string) *BrokenError { return &BrokenError{Seq: seq, Why: why} }
