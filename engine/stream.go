package engine

import (
	"errors"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
)

// stream hands events to a reader. Between the start and the end of a tool
// nothing is yielded: events queue.
type stream struct {
	yield func(ringi.Event, error) bool
	queue []ringi.Event
	held  int   // more than 0: a tool runs
	left  bool  // the reader has gone
	seen  int64 // newest log event that was handed out
}

// emit hands one event out, or queues it while a tool runs.
func (st *stream) emit(ev ringi.Event) {
	if st == nil || st.left {
		return
	}
	if ev.Seq > st.seen {
		st.seen = ev.Seq
	}
	st.queue = append(st.queue, ev)
	st.flush()
}

func (st *stream) flush() {
	for !st.left && st.held == 0 && len(st.queue) > 0 {
		ev := st.queue[0]
		st.queue = st.queue[1:]
		if !st.yield(ev, nil) {
			st.left = true
		}
	}
}

// hold and release bracket the commits of a tool's start and end.
func (st *stream) hold() {
	if st != nil {
		st.held++
	}
}

func (st *stream) release() {
	if st != nil {
		st.held--
		st.flush()
	}
}

// end hands the error of an activation out, where there is a reader.
func (st *stream) end(err error) {
	st.held = 0
	st.flush()
	if err == nil || st.left || errors.Is(err, errLeft) {
		return
	}
	st.yield(ringi.Event{}, err)
}

// errLeft ends a model call whose reader has gone.
var errLeft = errors.New("reader left the stream")

// emitCommitted hands out the events of an own commit: copies, decoded from
// what was written, so that nothing a reader does to them counts.
func (a *activation) emitCommitted(ch *change) {
	if a.st == nil {
		return
	}
	for _, r := range ch.written.commit.Records {
		a.emitRecord(r)
	}
}

// emitRead hands out what others wrote, after the run was read anew.
func (a *activation) emitRead() {
	if a.st == nil {
		return
	}
	for i := range a.s.heads {
		if a.s.heads[i].Seq > a.st.seen {
			a.emitRecord(a.s.heads[i])
		}
	}
}

func (a *activation) emitRecord(r ringi.Record) {
	ev, err := audit.Decode(r)
	if err != nil {
		return // it was checked as it was read or made; a stream never stops a run
	}
	ev.RunID = a.s.id
	a.complete(ev.Body)
	a.st.emit(ev)
}

// complete writes into a copy what the log does not repeat.
func (a *activation) complete(body ringi.EventBody) {
	switch b := body.(type) {
	case *ringi.RunStarted:
		b.Limits = b.Limits.Or(ringi.DefaultLimits())
	case *ringi.ApprovalRequested:
		a.completeRequest(b)
	case *ringi.OutcomeUnknown:
		a.completeRequest(&b.Request)
	case *ringi.ModelResponded:
		if b.OfferDigest == "" && b.Step > 1 && b.Step-2 < len(a.s.turns) {
			b.OfferDigest = a.s.turns[b.Step-2].ev.OfferDigest
		}
	}
}

func (a *activation) completeRequest(b *ringi.ApprovalRequested) {
	if r := a.s.request(b.Request); r != nil {
		b.ToolDigest, b.Verdict = r.ev.ToolDigest, r.ev.Verdict
	}
}

// delta hands a fragment of an open turn out.
func (a *activation) delta(kind ringi.EventKind, d ringi.Delta) {
	d.DeltaKind = kind
	if a.st != nil {
		own := d // a reader may keep it
		a.st.emit(ringi.Event{Kind: kind, RunID: a.s.id, Body: &own})
	}
	if a.e.cfg.Live != nil {
		a.fragment = d
		a.e.tellLive(ringi.Event{Kind: kind, RunID: a.s.id, Body: &a.fragment})
	}
}
