// Package sqlite keeps runs in one SQLite file: the default store.
//
// Open makes the file, with its folder, readable by their owner alone. One
// goroutine writes: it takes all commits that wait, applies each under a
// savepoint of its own and syncs once for all of them, so that many runs at
// once cost little more than one. Reads go through a pool of connections that
// cannot write. Several processes may open the same file.
//
// Every acknowledged commit is on the disk: the write-ahead log is synced
// before Commit returns. Deleted text is overwritten (secure_delete).
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
)

// Options says how a store is opened. The zero value is ready to use.
type Options struct {
	// Now is the wall clock; nil means time.Now. The store's own time is the
	// later of it and the newest time recorded.
	Now func() time.Time
	// ReadConns is how many connections read at once; 0 means 4.
	ReadConns int
	// Wake, where set, is called for every commit that makes a run runnable,
	// in the transaction of that commit: what it writes through tx stands or
	// falls with it, and an error refuses the commit. It must not end tx, and
	// not call the store. The context has the commit's values and does not end.
	// Where a transaction is taken back and tried anew Wake is called again.
	Wake func(ctx context.Context, tx *sql.Tx, space, runID string) error
	// Woken, where set, is called after a commit that makes a run runnable is
	// on the disk, on the goroutine that committed: who reads now finds the run
	// runnable. It is for a worker in the same process; a crash may lose the
	// call, and nothing breaks but the delay.
	Woken func(space, runID string)
	// MaxAttempts and MaxRunAttempts bound the refused attempts that are kept,
	// in all and of one run; 0 means 100,000 and 1,000.
	MaxAttempts, MaxRunAttempts int
}

// Store is a ringi.Store over one SQLite file. It is safe for goroutines.
type Store struct {
	path  string
	o     Options
	id    string
	clock clock
	queue queue
	watch watch
	read  *sql.DB
	// What is read often is prepared once.
	readRun, readRecords, readRequest, readTool *sql.Stmt

	stopped chan struct{} // closed when the writer has ended
	closing sync.Once
	closed  error // what closing the file gave
}

var _ ringi.AdmittingStore = (*Store)(nil)

// Open opens the store in the file at path and makes it, with the folders
// above it, where it is missing: folders 0700, files 0600. It brings an older
// schema up to date. It refuses a file that is a link or belongs to somebody
// else, a folder that everybody may write, and a schema newer than it knows.
// Files of its own that others may read are closed to them.
func Open(path string, o Options) (*Store, error) {
	s, err := open(path, o)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	return s, nil
}

func open(path string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ReadConns <= 0 {
		o.ReadConns = 4
	}
	if o.MaxAttempts <= 0 {
		o.MaxAttempts = 100_000
	}
	if o.MaxRunAttempts <= 0 {
		o.MaxRunAttempts = 1_000
	}
	path, err := prepareFile(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, o: o, clock: clock{wall: o.Now}, stopped: make(chan struct{})}
	s.queue.wake = make(chan struct{}, 1)
	s.watch.bell = make(chan struct{})

	w := &writer{s: s}
	if err := w.connect(s.path); err != nil {
		return nil, err
	}
	if err := s.start(w); err != nil {
		return nil, errors.Join(err, w.disconnect())
	}
	return s, nil
}

// start migrates, reads what the store needs to know of itself, and begins to
// write.
func (s *Store) start(w *writer) error {
	if err := migrate(&w.connection, s.clock.now()); err != nil {
		return err
	}
	if err := checkFiles(s.path); err != nil {
		return err
	}
	if err := s.openReaders(); err != nil {
		return err
	}
	if err := s.learn(); err != nil {
		return errors.Join(err, s.read.Close())
	}
	go w.loop()
	return nil
}

// openReaders opens the pool that reads. Its connections cannot write: the
// file is opened read-only, and query_only says so once more.
func (s *Store) openReaders() error {
	db, err := sql.Open("sqlite", dsn(s.path, "mode=ro", "_pragma=busy_timeout(10000)",
		"_pragma=temp_store(MEMORY)", "_pragma=query_only(1)"))
	if err != nil {
		return fmt.Errorf("open readers: %w", err)
	}
	db.SetMaxOpenConns(s.o.ReadConns)
	db.SetMaxIdleConns(s.o.ReadConns)
	s.read = db
	for query, to := range map[string]**sql.Stmt{
		readRun: &s.readRun, readRecords: &s.readRecords, readRequest: &s.readRequest, readTool: &s.readTool,
	} {
		if *to, err = db.Prepare(query); err != nil {
			return errors.Join(fmt.Errorf("open readers: %w", err), db.Close())
		}
	}
	return nil
}

// learn reads the store's id and the newest time that is recorded: that of the
// run with the newest record, of the newest run, and what the last Close
// noted. A commit without records that a crash followed may be newer; the
// run's own row has its time, and every commit on that run heeds it.
func (s *Store) learn() error {
	ctx := context.Background()
	err := s.read.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = 'id'`).Scan(&s.id)
	if err != nil {
		return fmt.Errorf("read store id: %w", err)
	}
	list, err := readCorrections(s.read.QueryRowContext(ctx, queryCorrections))
	if err != nil {
		return fmt.Errorf("read corrections of the clock: %w", err)
	}
	if len(list) > 0 {
		s.clock.accepted.Store(list[len(list)-1].At.UnixMicro())
	}
	var newest int64
	if err := s.read.QueryRowContext(ctx, queryNewest).Scan(&newest); err != nil {
		return fmt.Errorf("read newest time: %w", err)
	}
	s.clock.advance(newest)
	return nil
}

// ID returns the id that the store was given when its file was made.
func (s *Store) ID(ctx context.Context) (string, error) {
	if err := s.usable(ctx); err != nil {
		return "", fmt.Errorf("read store id: %w", err)
	}
	return s.id, nil
}

// Now returns the store's time: the wall clock, but never earlier than the
// newest time that this process has seen recorded.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := s.usable(ctx); err != nil {
		return time.Time{}, fmt.Errorf("read store time: %w", err)
	}
	return fromMicros(s.now()), nil
}

// usable reports why a call that needs no query cannot be answered.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.queue.isClosed() {
		return errClosed
	}
	return nil
}

// Close waits until the writer has answered what it was given, and closes the
// file. A commit after it fails. Closing twice is no error.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.queue.close()
		<-s.stopped
	})
	if s.closed != nil {
		return fmt.Errorf("close store %s: %w", s.path, s.closed)
	}
	return nil
}
