package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
)

// Chain is the head of a run's chain: the sequence number and the hash of its
// newest record. It is a value: Append returns the next one.
type Chain struct {
	Seq  int64
	Head [32]byte
}

const (
	genesisLabel    = "ringi-genesis-v1\x00"
	commitmentLabel = "ringi-commitment-v1\x00"
	saltSize        = 32
)

// Genesis returns the chain of a run without records. Its head names store,
// space and run, so that records which are carried to another one do not
// verify there.
func Genesis(storeID, space, runID string) Chain {
	var room [256]byte // most ids fit: no allocation
	b := append(room[:0], genesisLabel...)
	for _, s := range [...]string{storeID, space, runID} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	return Chain{Head: sha256.Sum256(b)}
}

// Append encodes each body as the next record, appends the records to dst and
// returns them with the chain's new head. at is cut to microseconds; epoch is
// that of the writer's lease. The records of one call share memory with each
// other and with nothing else.
//
// A body that is nil or no event of the log, a time outside the years 0 to
// 9999, and an id or digest for the header that is longer than 1,024 bytes, not
// valid UTF-8 or holds control characters are errors. Then dst and c are
// returned as they were.
func (c Chain) Append(dst []ringi.Record, at time.Time, epoch int64, bodies ...ringi.EventBody) ([]ringi.Record, Chain, error) {
	return c.append(making{}, dst, at, epoch, bodies)
}

// AppendTo is Append into a block of memory that the caller uses again: the
// records are good until the next AppendTo with the same block.
func (c Chain) AppendTo(block *[]byte, dst []ringi.Record, at time.Time, epoch int64, bodies ...ringi.EventBody) ([]ringi.Record, Chain, error) {
	return c.append(making{block: block}, dst, at, epoch, bodies)
}

// DraftTo is AppendTo for a store that reckons hashes when somebody reads
// them: everything that is chosen is chosen and encoded, the random bytes among
// it, and what follows from it is left to a [Sealer]. The chain that it returns
// has a sequence number and no head.
func (c Chain) DraftTo(block *[]byte, dst []ringi.Record, at time.Time, epoch int64, bodies ...ringi.EventBody) ([]ringi.Record, Chain, error) {
	return c.append(making{block: block, drafts: true}, dst, at, epoch, bodies)
}

// making is how records are made.
type making struct {
	block  *[]byte                   // the caller's memory; nil makes some
	random func([]byte) (int, error) // of random bytes; nil is crypto/rand, fixed ones make golden files
	drafts bool
}

func (c Chain) append(m making, dst []ringi.Record, at time.Time, epoch int64, bodies []ringi.EventBody) ([]ringi.Record, Chain, error) {
	block, random := m.block, m.random
	if !writable(at) {
		return dst, c, fmt.Errorf("append event: %w", errYear)
	}
	w := newWriter()
	defer w.free()
	if block != nil {
		own := w.out
		w.out = slices.Grow((*block)[:0], blockSize)
		defer func() { *block, w.out = w.out, own }()
	}
	salts := saltSize * len(bodies)
	w.out = slices.Grow(w.out, salts)[:salts]
	if random == nil {
		w.salts(w.out)
	} else if _, err := random(w.out); err != nil {
		return dst, c, fmt.Errorf("append event: draw random bytes: %w", err)
	}
	next := c
	records := slices.Grow(dst, len(bodies))[:len(dst)+len(bodies)]
	added := records[len(dst):]
	for i, body := range bodies {
		r := &added[i]
		*r = ringi.Record{Seq: next.Seq + 1, Salt: w.out[i*saltSize:][:saltSize:saltSize]}
		if err := w.draft(r, at.UnixMicro(), epoch, body); err != nil {
			clear(added) // they point into memory that others will use
			return dst, c, fmt.Errorf("append event: %w", err)
		}
		if next = (Chain{Seq: r.Seq, Head: next.Head}); m.drafts {
			next.Head = [32]byte{}
			continue
		}
		w.seal(r, &next.Head)
	}
	if block == nil {
		settle(added)
	}
	return records, next, nil
}

// blockSize is what a caller's block has at least: nearly all events fit.
const blockSize = 1024

// draft makes a record whose number and salt are set, but for its hash and the
// commitment in its header. Its bytes lie in c.
func (c *codec) draft(r *ringi.Record, at, epoch int64, body ringi.EventBody) error {
	payload := len(c.out)
	if err := c.body(body); err != nil {
		return err
	}
	head := len(c.out)
	r.Kind, r.Payload = body.Kind(), c.out[payload:head:head]
	h := header{seq: r.Seq, kind: r.Kind, at: at, epoch: epoch, refs: refsOf(body)}
	if err := h.refs.check(); err != nil {
		return fmt.Errorf("encode header of %s: %w", h.kind, err)
	}
	c.out = h.append(c.out)
	r.Head = slices.Clip(c.out[head:])
	return nil
}

// seal completes a draft that follows the record with the hash in head, and
// puts the draft's own hash there. What is hashed is laid out behind c.out.
func (c *codec) seal(r *ringi.Record, head *[32]byte) {
	b := append(c.out, commitmentLabel...)
	b = append(append(b, r.Salt...), r.Payload...)
	commitment := sha256.Sum256(b[len(c.out):])
	putCommitment(r.Head, &commitment)
	b = append(append(b[:len(c.out)], head[:]...), r.Head...)
	r.Hash = sha256.Sum256(b[len(c.out):])
	*head = r.Hash
	if cap(b) > cap(c.out) { // keep the memory
		c.out = b[:len(c.out)]
	}
}

// settle copies the bytes of records into one block of exactly their size.
func settle(records []ringi.Record) {
	size := 0
	for i := range records {
		size += len(records[i].Head) + len(records[i].Payload) + len(records[i].Salt)
	}
	block := make([]byte, 0, size)
	for i := range records {
		for _, part := range [...]*[]byte{&records[i].Head, &records[i].Payload, &records[i].Salt} {
			start := len(block)
			block = append(block, *part...)
			*part = block[start:len(block):len(block)]
		}
	}
}
