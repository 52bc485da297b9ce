package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ringi-dev/ringi"
)

// wake queues whom Wake named.
func (s *shift) wake(ctx context.Context) {
	ids, more := s.w.takeWoken()
	s.more = s.more || more
	for id := range ids {
		s.wakeOne(ctx, id)
	}
}

// wakeOne queues one run. A run that rests is looked at first: an engine that
// gives a run back wakes it too, and that alone is no reason to try again.
func (s *shift) wakeOne(ctx context.Context, id string) {
	f, r := s.flying[id], s.rests[id]
	switch {
	case f != nil:
		f.again = true
	case r == nil:
		s.enqueue(taken{id: id, seq: unseen, woken: true})
	default:
		row, err := s.row(ctx, id)
		if err == nil && r.mayGo(row.Seq, time.Now()) {
			s.enqueue(taken{id: id, seq: row.Seq, woken: true})
		}
	}
}

func (s *shift) row(ctx context.Context, id string) (ringi.RunRow, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return s.store.Row(ctx, s.o.Space, id)
}

// maxPage is what a store lists at most.
const maxPage = 1000

// look asks the store what is runnable, and queues what does not rest. While
// all hands are full it asks nothing.
func (s *shift) look(ctx context.Context) {
	if len(s.queue) > 0 || len(s.flying) >= s.o.AtOnce {
		s.more = true
		return
	}
	forget(s.rests, s.o.MaxRest)
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	limit := min(2*s.o.AtOnce+len(s.rests), maxPage)
	rows, err := s.store.Runnable(ctx, limit)
	s.w.noteLook(unlessStopped(ctx, err))
	s.told.look(err)
	if err != nil {
		return
	}
	found := s.queueRows(rows)
	if len(rows) == maxPage && found == 0 {
		found = s.lookBeyond(ctx)
	}
	s.more = len(rows) == limit && found > 0
	if found > 0 {
		s.pause = s.o.Poll
	} else {
		s.pause = min(2*s.pause, s.o.Idle)
	}
}

// unlessStopped is no error where the worker is to stop.
func unlessStopped(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return err
}

// queueRows queues the rows that do not rest, in no order, so that several
// workers on one store do not all reach for the same run. It counts them.
func (s *shift) queueRows(rows []ringi.RunRow) int {
	now, found := time.Now(), 0
	for _, i := range rand.Perm(len(rows)) {
		row := &rows[i]
		r := s.rests[row.ID]
		if row.Space != s.o.Space || s.flying[row.ID] != nil || s.queued[row.ID] || r != nil && !r.mayGo(row.Seq, now) {
			continue
		}
		s.enqueue(taken{id: row.ID, seq: row.Seq})
		found++
	}
	return found
}

// lookBeyond is for a store whose whole first page of runnable runs is stuck:
// a page a look, it goes through the runs that have not ended and do not wait.
func (s *shift) lookBeyond(ctx context.Context) int {
	rows, err := s.store.Runs(ctx, ringi.RunQuery{Space: s.o.Space, Limit: maxPage, After: s.beyond,
		Status: []ringi.RunStatus{ringi.Queued, ringi.Running}})
	if err != nil {
		s.told.look(err)
		return 0
	}
	s.beyond = ""
	if len(rows) == maxPage {
		s.beyond = rows[len(rows)-1].ID
	}
	open := rows[:0]
	for _, row := range rows {
		if row.Corrupt == "" {
			open = append(open, row)
		}
	}
	return s.queueRows(open)
}
