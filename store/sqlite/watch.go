package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
)

const (
	// watchEvery is how often the writer looks whether another process has
	// written, once somebody wants to know. Waking an idle process costs more than
	// the look itself: twice as often costs twice as much.
	watchEvery = 40 * time.Millisecond
	// suspicion is how long SQLite is asked at every look after the log's file
	// has changed: it changes before its commit counts.
	suspicion = 250 * time.Millisecond
	// watchAnyway is how often SQLite is asked where the file does not change: a
	// file system's times may be too coarse to show a second change.
	watchAnyway = time.Second
)

// watch tells that something was committed.
type watch struct {
	mu sync.Mutex
	// wanted is set by who asks first: until then the writer looks for nothing.
	wanted bool
	// bell starts the looking where the writer sleeps.
	bell           chan struct{}
	any, elsewhere chan struct{} // nil until somebody asks
}

var _ ringi.ChangeTeller = (*Store)(nil)

// Changed returns a channel that is closed once something is committed, by this
// process or within about 40 ms by another one. It costs nothing until it is
// asked for the first time; then a look at the log's file every 40 ms.
func (s *Store) Changed() <-chan struct{} { return s.watch.ask(&s.watch.any) }

// ChangedElsewhere is Changed for what another process commits, or another
// Store over the same file.
func (s *Store) ChangedElsewhere() <-chan struct{} { return s.watch.ask(&s.watch.elsewhere) }

func (w *watch) ask(c *chan struct{}) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.wanted {
		w.wanted = true
		close(w.bell)
	}
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

// isWanted reports whether anybody has asked.
func (w *watch) isWanted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wanted
}

// ring tells who asked. What was committed elsewhere is a change too.
func (w *watch) ring(elsewhere bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.any != nil {
		close(w.any)
		w.any = nil
	}
	if elsewhere && w.elsewhere != nil {
		close(w.elsewhere)
		w.elsewhere = nil
	}
}

// sight is what of a file changes when it is written.
type sight struct {
	size     int64
	modified time.Time
}

// look rings where another process has committed. It asks SQLite only where the
// file of the write-ahead log has changed: that costs a fortieth.
func (w *writer) look() {
	w.looked = time.Now()
	var now sight
	if info, err := os.Stat(w.s.path + "-wal"); err == nil { // none: an empty sight
		now = sight{info.Size(), info.ModTime()}
	}
	if now != w.seen {
		w.seen, w.suspects = now, w.looked.Add(suspicion)
	}
	if w.looked.Before(w.suspects) || w.looked.After(w.asked.Add(watchAnyway)) {
		w.asked = w.looked
		w.lookElsewhere()
	}
}

// lookElsewhere asks SQLite whether another connection has committed since the
// last time. PRAGMA data_version (sqlite.org/pragma.html#pragma_data_version) of
// the one connection that writes is the same until somebody else writes. Where
// it cannot be read somebody may have written.
func (w *writer) lookElsewhere() {
	now, err := w.dataVersion()
	if err == nil && now == w.version {
		return
	}
	w.version = now
	w.s.watch.ring(true)
}

// dataVersion reads the number; 0 and an error where it cannot be read. No
// connection has the number 0 (the pager counts from 1).
func (c *connection) dataVersion() (int64, error) {
	if c.driver == nil {
		return 0, driver.ErrBadConn
	}
	if c.versionStmt == nil {
		s, err := c.driver.(driver.ConnPrepareContext).PrepareContext(context.Background(), `PRAGMA data_version`)
		if err != nil {
			return 0, fmt.Errorf("read data version: %w", err)
		}
		c.versionStmt = s
	}
	rows, err := c.versionStmt.(driver.StmtQueryContext).QueryContext(context.Background(), nil)
	if err != nil {
		return 0, fmt.Errorf("read data version: %w", err)
	}
	value := make([]driver.Value, 1)
	err = rows.Next(value)
	if err = errors.Join(err, rows.Close()); err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read data version: %w", err)
	}
	n, _ := value[0].(int64)
	return n, nil
}

// rest waits until there is something to write, and looks meanwhile whether
// others have written, where somebody wants to know.
func (w *writer) rest() {
	if !w.s.watch.isWanted() {
		select {
		case <-w.s.queue.wake:
			return
		case <-w.s.watch.bell:
		}
	}
	tick := time.NewTimer(watchEvery)
	defer tick.Stop()
	for {
		w.look()
		tick.Reset(watchEvery)
		select {
		case <-w.s.queue.wake:
			return
		case <-tick.C:
		}
	}
}

// glance is rest's look between two groups, where there is no rest.
func (w *writer) glance() {
	if w.s.watch.isWanted() && time.Since(w.looked) >= watchEvery {
		w.look()
	}
}
