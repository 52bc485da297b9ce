package memory

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi"
)

// Thief returns raw access to what is stored, past every check: a
// storetest.Thief, which shows what a changed byte does. It is for tests alone;
// storetest.ThiefOf gives it its type.
func (s *Store) Thief() any { return &thief{s.d} }

type thief struct{ d *data }

// records gives change a copy of a run's records and keeps what it returns.
// Readers hold the old slice.
func (t *thief) records(space, id string, change func([]ringi.Record) ([]ringi.Record, error)) error {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	r := t.d.spaces[space].run(id)
	if r == nil {
		return noRun(id)
	}
	r.seal()
	recs, err := change(slices.Clone(r.records))
	if err == nil {
		r.records = slices.Clip(recs)
	}
	return err
}

// at returns the place of a record.
func at(recs []ringi.Record, seq int64) (int, error) {
	i := slices.IndexFunc(recs, func(r ringi.Record) bool { return r.Seq == seq })
	if i < 0 {
		return 0, fmt.Errorf("record %d: %w", seq, ringi.ErrNotFound)
	}
	return i, nil
}

// own returns a record that shares no bytes.
func own(r ringi.Record) ringi.Record {
	r.Head, r.Payload, r.Salt = bytes.Clone(r.Head), bytes.Clone(r.Payload), bytes.Clone(r.Salt)
	return r
}

func (t *thief) UpdateRecord(space, run string, seq int64, change func(*ringi.Record)) error {
	return t.records(space, run, func(recs []ringi.Record) ([]ringi.Record, error) {
		i, err := at(recs, seq)
		if err != nil {
			return nil, err
		}
		r := own(recs[i])
		change(&r)
		recs[i] = own(r)
		return recs, nil
	})
}

func (t *thief) DeleteRecord(space, run string, seq int64) error {
	return t.records(space, run, func(recs []ringi.Record) ([]ringi.Record, error) {
		i, err := at(recs, seq)
		if err != nil {
			return nil, err
		}
		return slices.Delete(recs, i, i+1), nil
	})
}

func (t *thief) InsertRecord(space, run string, r ringi.Record) error {
	return t.records(space, run, func(recs []ringi.Record) ([]ringi.Record, error) {
		i := slices.IndexFunc(recs, func(o ringi.Record) bool { return o.Seq >= r.Seq })
		if i < 0 {
			i = len(recs)
		}
		for j := i; j < len(recs); j++ {
			recs[j].Seq++
		}
		return slices.Insert(recs, i, own(r)), nil
	})
}

func (t *thief) SwapRecords(space, run string, a, b int64) error {
	return t.records(space, run, func(recs []ringi.Record) ([]ringi.Record, error) {
		i, err := at(recs, a)
		if err != nil {
			return nil, err
		}
		j, err := at(recs, b)
		if err != nil {
			return nil, err
		}
		recs[i], recs[j] = recs[j], recs[i]
		recs[i].Seq, recs[j].Seq = a, b
		return recs, nil
	})
}

// SetRow keeps Space and ID. A run that is given another thread is listed
// there, as a changed column would do.
func (t *thief) SetRow(space, run string, change func(*ringi.RunRow)) error {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	r := t.d.spaces[space].run(run)
	if r == nil {
		return noRun(run)
	}
	r.seal()
	row := r.row
	change(&row)
	row.Space, row.ID = r.row.Space, r.row.ID
	if row.Thread != r.row.Thread {
		t.move(t.d.spaces[space], r, row.Thread)
	}
	if !row.Status.Final() && r.thread.open != nil && r.thread.open != r {
		return fmt.Errorf("set row of run %s: %w", run, ringi.ErrRunOpen)
	}
	row.Deadline, row.CreatedAt, row.UpdatedAt = micros(row.Deadline), micros(row.CreatedAt), micros(row.UpdatedAt)
	r.row = row
	t.d.index(r)
	return nil
}

// SetRequest keeps Space, ID and RunID.
func (t *thief) SetRequest(space, id string, change func(*ringi.RequestRow)) error {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	q := t.d.spaces[space].request(id)
	if q == nil {
		return noRequest(id)
	}
	row := copyLists(q.row)
	change(&row)
	row.Space, row.ID, row.RunID = q.row.Space, q.row.ID, q.row.RunID
	sp := t.d.spaces[space]
	lists := []*byAge{&sp.byAge, &sp.runs[row.RunID].requests}
	for _, l := range lists {
		*l = slices.DeleteFunc(*l, func(o *request) bool { return o == q })
	}
	q.row = cutTimes(copyLists(row))
	for _, l := range lists {
		l.add(q)
	}
	return nil
}

// move lists a run under another thread.
func (t *thief) move(sp *space, r *run, to string) {
	from := r.thread
	from.runs = slices.DeleteFunc(from.runs, func(other *run) bool { return other == r })
	if from.open == r {
		from.open = nil
	}
	next := sp.threads[to]
	if next == nil {
		next = &thread{}
		sp.threads[to] = next
	}
	next.runs = append(next.runs, r)
	if !r.row.Status.Final() && next.open == nil {
		next.open = r
	}
	r.thread = next
}
