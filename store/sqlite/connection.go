package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
	moderncsqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// connection is the writer's: one connection that database/sql opens and
// keeps for transactions, with statements that are prepared once on the
// driver's own connection below it. Only the writer's goroutine uses either,
// so what database/sql would lock for every statement needs no lock.
type connection struct {
	db     *sql.DB
	conn   *sql.Conn
	driver driver.Conn
	stmts  map[string]*statement
	// versionStmt reads the data version; nil until it was asked for.
	versionStmt driver.Stmt
	// changed counts the rows that were changed since it was last set to 0.
	changed int64
	// inserted is the number of the row that was inserted last.
	inserted int64
	// broken says that a statement failed for another reason than a
	// constraint. SQLite may then have ended the transaction by itself (full
	// disk, I/O error), so that a further statement would stand alone.
	broken bool
}

// statement is a prepared statement with room for its arguments.
type statement struct {
	driver.StmtExecContext
	close func() error
	args  []driver.NamedValue
}

// capture is a connector that notes the connection it has opened.
type capture struct {
	driver.Connector
	opened *driver.Conn
}

func (c capture) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	*c.opened = conn
	return conn, err
}

// writerParams are those of the connection that writes. Each commit is synced
// (FULL), deleted text is overwritten, nothing temporary touches the disk. The
// short time-out is that of one look at the lock: see transaction.
var writerParams = []string{
	"_txlock=immediate",
	"_pragma=busy_timeout(5)",
	"_pragma=foreign_keys(1)",
	"_pragma=journal_mode(WAL)",
	"_pragma=secure_delete(1)",
	"_pragma=synchronous(FULL)",
	"_pragma=temp_store(MEMORY)",
	"_pragma=cache_size(-16384)",           // KiB
	"_pragma=wal_autocheckpoint(4000)",     // pages
	"_pragma=journal_size_limit(67108864)", // bytes that a log may keep
}

// connect opens the connection to the file at path. Turning a new file to the
// write-ahead log can meet another process that does the same, and fails at
// once then, whatever the time-out; so the wait is here.
func (c *connection) connect(path string) error {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		err := c.connectOnce(path)
		if err == nil || !isCode(err, sqlite3.SQLITE_BUSY) || time.Since(start) > lockWait {
			return err
		}
	}
}

func (c *connection) connectOnce(path string) error {
	base, err := moderncsqlite.NewConnector(dsn(path, writerParams...))
	if err != nil {
		return err
	}
	ctx := context.Background()
	c.db = sql.OpenDB(capture{base, &c.driver})
	c.db.SetMaxOpenConns(1)
	if c.conn, err = c.db.Conn(ctx); err != nil {
		return errors.Join(err, c.disconnect())
	}
	var mode string
	if err := c.conn.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return errors.Join(err, c.disconnect())
	}
	if mode != "wal" {
		return errors.Join(fmt.Errorf("journal mode is %q: the write-ahead log is not to be had here", mode), c.disconnect())
	}
	c.stmts = map[string]*statement{}
	return nil
}

// lockWait is how long a transaction waits for another process to end its own.
const lockWait = 10 * time.Second

// transaction begins a transaction that may write at once (IMMEDIATE, by the
// DSN). SQLite has no queue for the lock, and its own waiting looks ever more
// rarely, up to every 100 ms: it would starve beside a process that writes
// without a pause. So it waits for a few milliseconds only, and begins anew.
func (c *connection) transaction() (*sql.Tx, error) {
	for start := time.Now(); ; {
		tx, err := c.conn.BeginTx(context.Background(), nil)
		if !isCode(err, sqlite3.SQLITE_BUSY) || time.Since(start) > lockWait {
			return tx, err
		}
	}
}

// disconnect closes what is open. A transaction that is open is taken back.
func (c *connection) disconnect() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.close())
	}
	if c.versionStmt != nil {
		errs = append(errs, c.versionStmt.Close())
	}
	if c.conn != nil {
		errs = append(errs, c.conn.Close())
	}
	if c.db != nil {
		errs = append(errs, c.db.Close())
	}
	*c = connection{}
	return errors.Join(errs...)
}

// exec runs a statement and returns how many rows it changed. Arguments are of
// the driver's types: string, int64, []byte or nil. The error says that
// nothing is recorded: whoever gets it takes the transaction, or the member,
// back.
func (c *connection) exec(query string, args ...any) (int64, error) {
	s := c.stmts[query]
	if s == nil {
		var err error
		if s, err = c.prepare(query); err != nil {
			return 0, c.unrecorded(err)
		}
	}
	s.args = s.args[:0]
	for i, a := range args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	result, err := s.ExecContext(context.Background(), s.args)
	clear(s.args) // keep no caller's bytes
	if err != nil {
		return 0, c.unrecorded(err)
	}
	c.inserted, _ = result.LastInsertId()
	n, err := result.RowsAffected()
	c.changed += n
	return n, err
}

func (c *connection) prepare(query string) (*statement, error) {
	if c.driver == nil {
		return nil, driver.ErrBadConn
	}
	prepared, err := c.driver.(driver.ConnPrepareContext).PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	s := &statement{StmtExecContext: prepared.(driver.StmtExecContext), close: prepared.Close}
	c.stmts[query] = s
	return s, nil
}

// unrecorded wraps the error of a statement, and notes whether the transaction
// can go on after it.
func (c *connection) unrecorded(err error) error {
	if !isCode(err, sqlite3.SQLITE_CONSTRAINT) {
		c.broken = true
	}
	return fmt.Errorf("%w: %w", ringi.ErrNotRecorded, err)
}

// isCode reports whether err is SQLite's, with the given result code: a
// primary one stands for all that extend it.
func isCode(err error, code int) bool {
	var e *moderncsqlite.Error
	return errors.As(err, &e) && (e.Code() == code || e.Code()&0xff == code)
}
