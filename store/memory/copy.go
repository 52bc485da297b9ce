package memory

import (
	"time"

	"github.com/ringi-dev/ringi"
)

// incoming is a commit's bytes, copied before the lock is taken.
type incoming struct {
	records  []ringi.Record
	requests []*request
	tools    map[string][]byte
}

func copyIn(c *ringi.Commit) incoming {
	n := 0
	for i := range c.Records {
		n += len(c.Records[i].Head) + len(c.Records[i].Payload) + len(c.Records[i].Salt)
	}
	for i := range c.Requests {
		n += len(c.Requests[i].Body)
	}
	for _, def := range c.Tools {
		n += len(def)
	}
	k := make(block, 0, n)
	in := incoming{records: copyRecords(&k, c.Records)}
	if len(c.Requests) > 0 {
		kept := make([]request, len(c.Requests))
		in.requests = make([]*request, len(c.Requests))
		for i, q := range c.Requests {
			q.Body = k.cut(q.Body)
			kept[i].row = cutTimes(q)
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

// copyRecords returns a copy of records whose bytes lie in k.
func copyRecords(k *block, records []ringi.Record) []ringi.Record {
	if len(records) == 0 {
		return nil
	}
	out := make([]ringi.Record, len(records))
	for i := range records {
		out[i] = records[i]
		out[i].Head = k.cut(records[i].Head)
		out[i].Payload = k.cut(records[i].Payload)
		out[i].Salt = k.cut(records[i].Salt)
	}
	return out
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
	n := 0
	for i := range out.Records {
		n += len(out.Records[i].Head) + len(out.Records[i].Payload) + len(out.Records[i].Salt)
	}
	k := make(block, 0, n)
	out.Records = copyRecords(&k, out.Records)
}
