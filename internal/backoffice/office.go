package backoffice

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Office is an open back office. It is safe for concurrent use, and several
// processes may open the same file.
type Office struct {
	// Timeout is how long a refund may take: zero is 3 s. Set it before
	// [Office.Register].
	Timeout time.Duration
	// Now is the clock of what is booked and mailed; nil is time.Now. Set it
	// before the office is used.
	Now func() time.Time

	db      *sql.DB
	closed  chan struct{}
	closing sync.Once
	closeDB error
}

// schemaVersion is kept in the file's user_version, and applicationID (the
// letters "Rngi") marks the file as ours.
const (
	schemaVersion = 1
	applicationID = 0x526e6769
)

//go:embed schema.sql
var schemaSQL string

// Open opens the back office in the file at path. Where there is none it makes
// one (folder 0700, file 0600) with the demo's customers and orders, the same
// every time; one that is there keeps what was done in it. It refuses a file
// that is something else.
func Open(path string) (*Office, error) {
	o, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open back office %s: %w", path, err)
	}
	return o, nil
}

func open(path string) (*Office, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := makeFile(path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	o := &Office{db: db, closed: make(chan struct{})}
	if err := o.begin(context.Background()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return o, nil
}

// makeFile makes an empty file for the owner alone; SQLite gives the files
// beside it the same mode.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// dsn names the file with the settings of each connection. Transactions lock
// at once, so that one that reads before it writes never fails half-way.
func dsn(path string) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	u := url.URL{Scheme: "file", Path: slashed, RawQuery: strings.Join([]string{
		"_txlock=immediate",
		"_pragma=busy_timeout(5000)",
		"_pragma=foreign_keys(1)",
		"_pragma=journal_mode(WAL)",
	}, "&")}
	return u.String()
}

// begin fills a new file, and refuses one that is not a back office of this
// version.
func (o *Office) begin(ctx context.Context) error {
	return o.inTx(ctx, func(tx *sql.Tx) error {
		var version, application, tables int
		err := errors.Join(
			tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version),
			tx.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&application),
			tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables))
		switch {
		case err != nil:
			return err
		case application == applicationID && version == schemaVersion:
			return nil
		case application == applicationID:
			return fmt.Errorf("its version is %d, and this program knows %d", version, schemaVersion)
		case tables > 0:
			return errors.New("the file is another database")
		}
		if _, err := tx.ExecContext(ctx, schemaSQL); err != nil {
			return fmt.Errorf("make tables: %w", err)
		}
		if err := seed(ctx, tx); err != nil {
			return fmt.Errorf("fill tables: %w", err)
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, applicationID, schemaVersion))
		return err
	})
}

// Close closes the database. A refund whose bank has not answered stays sent.
func (o *Office) Close() error {
	o.closing.Do(func() {
		close(o.closed)
		o.closeDB = o.db.Close()
	})
	return o.closeDB
}

// inTx runs f in one transaction: all of it stands, or nothing.
func (o *Office) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// querier is what reads in a transaction and outside one alike.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// collect reads all rows, so that no connection is held while one is used.
func collect[T any](rows *sql.Rows, err error, scan func(*sql.Rows, *T) error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// timestamp is the office's time as text (RFC 3339, UTC).
func (o *Office) timestamp() string {
	now := time.Now
	if o.Now != nil {
		now = o.Now
	}
	return now().UTC().Format(time.RFC3339)
}

func (o *Office) timeout() time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return 3 * time.Second
}
