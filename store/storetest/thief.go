package storetest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/ringi-dev/ringi"
)

// Thief is raw access to what a store keeps: somebody who can write to it and
// has no key (S-03). It changes what it is told to and checks nothing, so that
// a test can show what the checks above the store find. Each method returns
// ErrNotFound where its target is not there. It is for tests alone.
type Thief interface {
	// UpdateRecord changes the record with sequence number seq in place.
	UpdateRecord(space, run string, seq int64, change func(*ringi.Record)) error
	// DeleteRecord removes a record; the others keep their numbers.
	DeleteRecord(space, run string, seq int64) error
	// InsertRecord puts r at r.Seq; records from there on move up by one. The
	// run's row keeps its own number.
	InsertRecord(space, run string, r ringi.Record) error
	// SwapRecords exchanges two records; each takes the other's number.
	SwapRecords(space, run string, a, b int64) error
	// SetRow changes a run's row. Space and ID stay.
	SetRow(space, run string, change func(*ringi.RunRow)) error
	// SetRequest changes a request's row. Space, ID and RunID stay.
	SetRequest(space, id string, change func(*ringi.RequestRow)) error
}

// ThiefOf returns the thief of a store that brings one: a store with a method
// Thief() any whose value is a Thief.
func ThiefOf(s ringi.Store) (Thief, bool) {
	m, ok := s.(interface{ Thief() any })
	if !ok {
		return nil, false
	}
	th, ok := m.Thief().(Thief)
	return th, ok
}

// thief shows that raw changes reach what Load, Row and Request return.
func thief(t *testing.T, o opener) {
	steal := func(t *testing.T) (*stage, Thief) {
		g := o.stage(t)
		if o.features.Thief != nil {
			return g, o.features.Thief(g.Store)
		}
		th, ok := ThiefOf(g.Store)
		if !ok {
			t.Skip("the store brings no thief")
		}
		return g, th
	}
	for _, c := range theftOfRecords() {
		t.Run("S03_"+c.name, func(t *testing.T) {
			g, th := steal(t)
			g.commit(first("run_1", "thr_1"))
			g.commit(first("run_2", "thr_2"))
			g.commit(settle(g.row("run_1"), ringi.EventCancelRequested, ringi.EventRequestClosed, ringi.EventCancelRequested))
			before := cloned(g.load("run_1").Records)
			other := g.load("run_2")
			if err := c.act(th); err != nil {
				t.Fatal(err)
			}
			sameRecords(t, g.load("run_1").Records, c.after(before))
			if r := g.row("run_1"); r.Seq != 4 {
				t.Errorf("the row's Seq is %d after a raw change of records, want 4", r.Seq)
			}
			same(t, "the other run", g.load("run_2"), other)
		})
	}
	t.Run("S03_SetRow", func(t *testing.T) { stealRow(t, steal) })
	t.Run("S03_SetRequest", func(t *testing.T) { stealRequest(t, steal) })
	t.Run("NotFound", func(t *testing.T) {
		g, th := steal(t)
		g.commit(first("run_1", "thr_1"))
		for name, err := range map[string]error{
			"update":  th.UpdateRecord(space, "run_1", 9, func(*ringi.Record) {}),
			"delete":  th.DeleteRecord(space, "run_9", 1),
			"insert":  th.InsertRecord("elsewhere", "run_1", forged(1)),
			"swap":    th.SwapRecords(space, "run_1", 1, 9),
			"row":     th.SetRow(space, "run_9", func(*ringi.RunRow) {}),
			"request": th.SetRequest(space, "req_9", func(*ringi.RequestRow) {}),
		} {
			if c := is(ringi.ErrNotFound)(err); c != "" {
				t.Errorf("%s: %s", name, c)
			}
		}
	})
}

// theft is one raw change of a run of four records, and what is left of them.
type theft struct {
	name  string
	act   func(th Thief) error
	after func(recs []ringi.Record) []ringi.Record
}

func theftOfRecords() []theft {
	return []theft{
		{"UpdateRecord", func(th Thief) error {
			return th.UpdateRecord(space, "run_1", 2, func(r *ringi.Record) { r.Payload = []byte("forged"); r.Salt = nil })
		}, func(recs []ringi.Record) []ringi.Record {
			recs[1].Payload, recs[1].Salt = []byte("forged"), nil
			return recs
		}},
		{"UpdateRecordInPlace", func(th Thief) error {
			return th.UpdateRecord(space, "run_1", 3, func(r *ringi.Record) { r.Head[0] ^= 1; r.Hash[31] ^= 1 })
		}, func(recs []ringi.Record) []ringi.Record {
			recs[2].Head[0] ^= 1
			recs[2].Hash[31] ^= 1
			return recs
		}},
		{"DeleteRecord", func(th Thief) error { return th.DeleteRecord(space, "run_1", 2) },
			func(recs []ringi.Record) []ringi.Record { return slices.Delete(recs, 1, 2) }},
		{"DeleteLastRecord", func(th Thief) error { return th.DeleteRecord(space, "run_1", 4) },
			func(recs []ringi.Record) []ringi.Record { return recs[:3] }},
		{"InsertRecord", func(th Thief) error { return th.InsertRecord(space, "run_1", forged(3)) },
			func(recs []ringi.Record) []ringi.Record {
				recs = slices.Insert(recs, 2, forged(3))
				recs[3].Seq, recs[4].Seq = 4, 5
				return recs
			}},
		{"InsertRecordAtTheEnd", func(th Thief) error { return th.InsertRecord(space, "run_1", forged(5)) },
			func(recs []ringi.Record) []ringi.Record { return append(recs, forged(5)) }},
		{"SwapRecords", func(th Thief) error { return th.SwapRecords(space, "run_1", 2, 4) },
			func(recs []ringi.Record) []ringi.Record {
				recs[1], recs[3] = recs[3], recs[1]
				recs[1].Seq, recs[3].Seq = 2, 4
				return recs
			}},
	}
}

func forged(seq int64) ringi.Record {
	return ringi.Record{Seq: seq, Kind: ringi.EventApprovalDecided, Head: []byte(`{"forged":true}`),
		Payload: []byte(`{"answer":"approve"}`), Salt: bytes.Repeat([]byte{7}, 32), Hash: [32]byte{1, 2, 3}}
}

func stealRow(t *testing.T, steal func(*testing.T) (*stage, Thief)) {
	g, th := steal(t)
	g.commit(first("run_1", "thr_1"))
	want := g.row("run_1")
	err := th.SetRow(space, "run_1", func(r *ringi.RunRow) {
		r.Head, r.MAC, r.Seq, r.Corrupt = [32]byte{9}, "forged", 3, ""
		r.Status, r.Reason, r.Agent = ringi.WaitingForApproval, ringi.ReasonMaxSteps, "another"
		r.Deadline = r.UpdatedAt.Add(1)
	})
	if err != nil {
		t.Fatal(err)
	}
	want.Head, want.MAC, want.Seq = [32]byte{9}, "forged", 3
	want.Status, want.Reason, want.Agent = ringi.WaitingForApproval, ringi.ReasonMaxSteps, "another"
	want.Deadline = want.UpdatedAt
	same(t, "the row", g.row("run_1"), want)
}

func stealRequest(t *testing.T, steal func(*testing.T) (*stage, Thief)) {
	g, th := steal(t)
	g.ask("run_1", "thr_1", "req_1")
	want := g.request("req_1")
	err := th.SetRequest(space, "req_1", func(r *ringi.RequestRow) {
		r.State, r.DecidedBy, r.Digest, r.People = ringi.Granted, "nobody", "forged", []string{"eve"}
	})
	if err != nil {
		t.Fatal(err)
	}
	want.State, want.DecidedBy, want.Digest, want.People = ringi.Granted, "nobody", "forged", []string{"eve"}
	same(t, "the request", g.request("req_1"), want)
}
