package memory

import (
	"time"

	"github.com/ringi-dev/ringi"
)

// incoming is what few commits bring, copied before the lock is taken.
type incoming struct {
	requests []*request
	tools    map[string][]byte
}

func copyIn(c *ringi.Commit) incoming {
	if len(c.Requests) == 0 && len(c.Tools) == 0 {
		return incoming{}
	}
	n := 0
	for _, def := range c.Tools {
		n += len(def)
	}
	k := make(block, 0, n)
	var in incoming
	if len(c.Requests) > 0 {
		kept := make([]request, len(c.Requests))
		in.requests = make([]*request, len(c.Requests))
		for i, q := range c.Requests {
			kept[i].row = cutTimes(copyLists(q))
			kept[i].row.Risk = q.Risk.OrHigh()
			in.requests[i] = &kept[i]
		}
	}
	if len(c.Tools) > 0 {
		in.tools = make(map[string][]byte, len(c.Tools))
		for digest, def := range c.Tools {
			in.tools[digest] = k.cut(def)
		}
	}
	return in
}

// keep appends copies of records to those of the run. The lock is held.
func (d *data) keep(r *run, records []ringi.Record) {
	if n := size(records); n > cap(d.bytes)-len(d.bytes) {
		d.bytes = make(block, 0, max(n, blockSize)) // what was cut stays where it is
	}
	if r.records == nil {
		r.records = r.room[:0]
	}
	r.records = appendRecords(r.records, &d.bytes, records)
}

const (
	// blockSize is how much memory records are given at once. No run is ever
	// dropped, so runs may share it.
	blockSize = 8 << 10
	// fewRecords are those of a run with one call and a final text.
	fewRecords = 4
)

// size counts the bytes of records.
func size(records []ringi.Record) int {
	n := 0
	for i := range records {
		n += len(records[i].Head) + len(records[i].Payload) + len(records[i].Salt)
	}
	return n
}

// appendRecords appends copies of records whose bytes lie in k.
func appendRecords(dst []ringi.Record, k *block, records []ringi.Record) []ringi.Record {
	for i := range records {
		dst = append(dst, records[i])
		r := &dst[len(dst)-1]
		r.Head, r.Payload, r.Salt = k.cut(r.Head), k.cut(r.Payload), k.cut(r.Salt)
	}
	return dst
}

// copyLists gives a row lists of its own; an empty one is nil.
func copyLists(q ringi.RequestRow) ringi.RequestRow {
	q.People, q.Teams = append([]string(nil), q.People...), append([]string(nil), q.Teams...)
	return q
}

func cutTimes(q ringi.RequestRow) ringi.RequestRow {
	q.CreatedAt, q.ExpiresAt = micros(q.CreatedAt), micros(q.ExpiresAt)
	q.DecidedAt, q.UseBy = micros(q.DecidedAt), micros(q.UseBy)
	return q
}

// timeOf returns the time of a number of microseconds.
func timeOf(us int64) time.Time { return time.UnixMicro(us).UTC() }

// micros cuts a time to what is kept: UTC microseconds, zero for zero.
func micros(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return timeOf(t.UnixMicro())
}

// block is one piece of memory for many byte slices. Its capacity is made
// before the first cut, so that it never moves.
type block []byte

// cut copies b into the block. nil stays nil, and no slice reaches into the
// next.
func (k *block) cut(b []byte) []byte {
	if b == nil {
		return nil
	}
	n := len(*k)
	*k = append(*k, b...)
	return (*k)[n:len(*k):len(*k)]
}

// copyOut gives a run records of its own.
func copyOut(out *ringi.StoredRun) {
	k := make(block, 0, size(out.Records))
	out.Records = appendRecords(make([]ringi.Record, 0, len(out.Records)), &k, out.Records)
}
