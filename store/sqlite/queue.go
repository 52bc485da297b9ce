package sqlite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ringi-dev/ringi"
)

// errClosed answers every call after Close.
var errClosed = fmt.Errorf("%w: store is closed", ringi.ErrNotRecorded)

// The most that one transaction takes: members, and bytes of records and
// requests (a member that is larger goes alone).
const (
	groupMembers = 64
	groupBytes   = 8 << 20
)

// job is a change that waits for the writer.
type job struct {
	ctx context.Context
	// apply makes the change inside the group's transaction. It may be called
	// again after a transaction that was taken back.
	apply func(*writer) error
	size  int
	state atomic.Int32 // waiting, taken or withdrawn
	done  chan error   // one answer for a job that was taken
}

const (
	waiting int32 = iota
	taken
	withdrawn
)

// queue holds the jobs that wait, in their order.
type queue struct {
	mu     sync.Mutex
	jobs   []*job
	closed bool
	wake   chan struct{} // one token: there may be something to do
}

// write gives a change to the writer and waits for its answer. A context that
// ends takes the job back if the writer has not begun with it; otherwise the
// answer is waited for, as the change may be made.
func (s *Store) write(ctx context.Context, size int, apply func(*writer) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{ctx: ctx, apply: apply, size: size, done: make(chan error, 1)}
	if !s.queue.add(j) {
		return errClosed
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
	}
	if j.state.CompareAndSwap(waiting, withdrawn) {
		return ctx.Err()
	}
	return <-j.done
}

func (q *queue) add(j *job) bool {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false
	}
	q.jobs = append(q.jobs, j)
	q.mu.Unlock()
	q.signal()
	return true
}

// take returns the next group: all that wait, up to the bounds. The group is
// appended to buf.
func (q *queue) take(buf []*job) []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	bytes, n := 0, 0
	for _, j := range q.jobs {
		if len(buf) == groupMembers || len(buf) > 0 && bytes+j.size > groupBytes {
			break
		}
		n++
		if j.state.CompareAndSwap(waiting, taken) {
			buf = append(buf, j)
			bytes += j.size
		}
	}
	rest := copy(q.jobs, q.jobs[n:])
	clear(q.jobs[rest:])
	q.jobs = q.jobs[:rest]
	return buf
}

// close lets nothing more in; what waits is still answered.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
