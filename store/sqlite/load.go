package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
)

// Load returns a run with all its records, as of one moment.
func (s *Store) Load(ctx context.Context, space, runID string) (*ringi.StoredRun, error) {
	run, err := s.load(ctx, space, runID)
	if err != nil {
		return nil, fmt.Errorf("load run %s: %w", runID, err)
	}
	return run, nil
}

// load reads the row, then the records. A commit between the two shows: the log
// only grows, and the row names its newest record. Then, and where somebody has
// changed what is stored, both are read again in one transaction.
func (s *Store) load(ctx context.Context, space, runID string) (*ringi.StoredRun, error) {
	if s.queue.isClosed() {
		return nil, errClosed
	}
	as := func(stmt *sql.Stmt) *sql.Stmt { return stmt }
	run, err := s.loadBy(ctx, as, space, runID)
	if err != nil {
		return nil, err
	}
	if n := len(run.Records); n > 0 && run.Records[n-1].Seq == run.Row.Seq && run.Records[n-1].Hash == run.Row.Head {
		return run, nil
	}
	tx, err := s.read.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // it reads only
	return s.loadBy(ctx, func(stmt *sql.Stmt) *sql.Stmt { return tx.StmtContext(ctx, stmt) }, space, runID)
}

// loadBy reads with statements as the caller wants them.
func (s *Store) loadBy(ctx context.Context, as func(*sql.Stmt) *sql.Stmt, space, runID string) (*ringi.StoredRun, error) {
	row, err := runRow(as(s.readRun).QueryRowContext(ctx, space, runID).Scan)
	if err != nil {
		return nil, err
	}
	rows, err := as(s.readRecords).QueryContext(ctx, space, runID)
	if err != nil {
		return nil, err
	}
	records, err := collect(rows, recordRow)
	if err != nil {
		return nil, err
	}
	return &ringi.StoredRun{Row: row, Records: records}, nil
}

// Row returns the run's row alone.
func (s *Store) Row(ctx context.Context, space, runID string) (ringi.RunRow, error) {
	row, err := runRow(s.readRun.QueryRowContext(ctx, space, runID).Scan)
	if err != nil {
		return ringi.RunRow{}, fmt.Errorf("read run %s: %w", runID, err)
	}
	return row, nil
}

const (
	readRun     = `SELECT ` + runColumns + ` FROM runs WHERE space = ? AND id = ?`
	readRecords = `SELECT ` + recordColumns + ` FROM records WHERE space = ? AND run = ? ORDER BY seq`
)

// Transcript returns the ended runs of a thread with their records, in the
// order in which the runs were made.
func (s *Store) Transcript(ctx context.Context, space, thread string) ([]*ringi.StoredRun, error) {
	rows, err := s.read.QueryContext(ctx, readTranscript, space, thread)
	if err != nil {
		return nil, fmt.Errorf("read transcript of thread %s: %w", thread, err)
	}
	defer rows.Close()
	var runs []*ringi.StoredRun
	for rows.Next() {
		row, record, err := transcriptRow(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("read transcript of thread %s: %w", thread, err)
		}
		if len(runs) == 0 || runs[len(runs)-1].Row.ID != row.ID {
			runs = append(runs, &ringi.StoredRun{Row: row})
		}
		if record.Seq != 0 {
			last := runs[len(runs)-1]
			last.Records = append(last.Records, record)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read transcript of thread %s: %w", thread, err)
	}
	return runs, nil
}

// An index on (space, thread) ends with the row number, which is the order in
// which runs were made; so nothing is sorted. A run without a record stays in,
// as somebody who takes all of them away must not hide it.
const readTranscript = `
	SELECT ` + runColumns + `, rec.seq, rec.kind, rec.head, rec.payload, rec.salt, rec.hash
	FROM runs LEFT JOIN records AS rec ON rec.space = runs.space AND rec.run = runs.id
	WHERE runs.space = ? AND runs.thread = ? AND runs.open IS NULL
	ORDER BY runs.n, rec.seq`

// Spaces lists the spaces that hold a run, or a request: somebody who takes
// all runs of a space away must not hide what is left of it.
func (s *Store) Spaces(ctx context.Context) ([]string, error) {
	rows, err := s.read.QueryContext(ctx, readSpaces)
	if err != nil {
		return nil, fmt.Errorf("list spaces: %w", err)
	}
	list, err := collect(rows, func(scan func(...any) error) (space string, err error) {
		err = scan(&space)
		return space, err
	})
	if err != nil {
		return nil, fmt.Errorf("list spaces: %w", err)
	}
	return list, nil
}

// readSpaces leaps from space to space by the indexes: its cost is the number
// of spaces, whatever they hold.
const readSpaces = `
	WITH RECURSIVE
	ran (space) AS (
	  SELECT (SELECT min(space) FROM runs)
	  UNION ALL SELECT (SELECT min(space) FROM runs WHERE space > ran.space) FROM ran WHERE ran.space IS NOT NULL),
	asked (space) AS (
	  SELECT (SELECT min(space) FROM requests)
	  UNION ALL SELECT (SELECT min(space) FROM requests WHERE space > asked.space) FROM asked WHERE asked.space IS NOT NULL)
	SELECT space FROM ran WHERE space IS NOT NULL
	UNION SELECT space FROM asked WHERE space IS NOT NULL
	ORDER BY 1`

// Runs lists run rows of a space, the newest first.
func (s *Store) Runs(ctx context.Context, q ringi.RunQuery) ([]ringi.RunRow, error) {
	if q.After != "" {
		if _, err := s.Row(ctx, q.Space, q.After); err != nil {
			return nil, fmt.Errorf("list runs after %s: %w", q.After, err)
		}
	}
	query, args := runsQuery(q)
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	list, err := collect(rows, runRow)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return list, nil
}

func runsQuery(q ringi.RunQuery) (string, []any) {
	var b strings.Builder
	b.WriteString(`SELECT ` + runColumns + ` FROM runs WHERE space = ?`)
	args := []any{q.Space}
	if q.Thread != "" {
		b.WriteString(` AND thread = ?`)
		args = append(args, q.Thread)
	}
	if len(q.Status) > 0 {
		// The plus keeps the index of the states away: the order counts more.
		b.WriteString(` AND +status IN (?` + strings.Repeat(`, ?`, len(q.Status)-1) + `)`)
		for _, status := range q.Status {
			args = append(args, string(status))
		}
	}
	if q.After != "" {
		b.WriteString(` AND n < (SELECT n FROM runs WHERE space = ? AND id = ?)`)
		args = append(args, q.Space, q.After)
	}
	b.WriteString(` ORDER BY n DESC LIMIT ?`)
	return b.String(), append(args, bounded(q.Limit, 100))
}

// Runnable lists the runs of every space that wait for an owner, the oldest
// first.
func (s *Store) Runnable(ctx context.Context, limit int) ([]ringi.RunRow, error) {
	now, n := s.now(), bounded(limit, 100)
	rows, err := s.read.QueryContext(ctx, readRunnable, now, n, now, n, now, now, n, n)
	if err != nil {
		return nil, fmt.Errorf("list runnable runs: %w", err)
	}
	list, err := collect(rows, runRow)
	if err != nil {
		return nil, fmt.Errorf("list runnable runs: %w", err)
	}
	return list, nil
}

// Three kinds of runs wait for an owner, and each has its index. A run whose
// owner is alive is never among them.
const readRunnable = `
	SELECT ` + runColumns + ` FROM runs WHERE n IN (
	  SELECT n FROM (SELECT n FROM runs
	    WHERE status = 'queued' AND corrupt = '' AND ` + nobodyHolds + ` ORDER BY n LIMIT ?)
	  UNION ALL
	  SELECT n FROM (SELECT n FROM runs
	    WHERE status = 'running' AND corrupt = '' AND owner <> '' AND ` + nobodyHolds + ` ORDER BY n LIMIT ?)
	  UNION ALL
	  SELECT n FROM (SELECT n FROM runs
	    WHERE deadline <= ? AND corrupt = '' AND ` + nobodyHolds + `
	      AND open = 1 AND +status <> 'queued' AND (+status <> 'running' OR owner = '') ORDER BY n LIMIT ?))
	ORDER BY n LIMIT ?`

const nobodyHolds = `NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = runs.owner AND owners.until > ?)`

// bounded returns a limit between 1 and 1,000.
func bounded(limit, otherwise int) int {
	if limit <= 0 {
		return otherwise
	}
	return min(limit, 1000)
}

const (
	runColumns = `runs.space, runs.id, runs.thread, runs.agent, runs.parent, runs.status, runs.reason, runs.seq,
	runs.head, runs.mac, runs.owner, runs.epoch, runs.attempts, runs.corrupt, runs.deadline, runs.created_at, runs.updated_at`
	recordColumns = `seq, kind, head, payload, salt, hash`
)

// runScan is where a row of a run is read into.
type runScan struct {
	row              ringi.RunRow
	head             digest
	deadline         moment
	created, updated moment
}

func (r *runScan) into() []any {
	return []any{&r.row.Space, &r.row.ID, &r.row.Thread, &r.row.Agent, &r.row.Parent, &r.row.Status, &r.row.Reason,
		&r.row.Seq, &r.head, &r.row.MAC, &r.row.Owner, &r.row.Epoch, &r.row.Attempts, &r.row.Corrupt,
		&r.deadline, &r.created, &r.updated}
}

func (r *runScan) result() ringi.RunRow {
	r.row.Head = r.head
	r.row.Deadline, r.row.CreatedAt, r.row.UpdatedAt = time.Time(r.deadline), time.Time(r.created), time.Time(r.updated)
	return r.row
}

// recordScan is where a record is read into; all NULL, where a run has none,
// gives sequence number 0.
type recordScan struct {
	record              ringi.Record
	seq                 sql.NullInt64
	kind                sql.NullString
	head, payload, salt blob
	hash                digest
}

func (r *recordScan) into() []any {
	return []any{&r.seq, &r.kind, &r.head, &r.payload, &r.salt, &r.hash}
}

func (r *recordScan) result() ringi.Record {
	r.record.Seq, r.record.Kind = r.seq.Int64, ringi.EventKind(r.kind.String)
	r.record.Head, r.record.Payload, r.record.Salt, r.record.Hash = r.head, r.payload, r.salt, r.hash
	return r.record
}

func runRow(scan func(...any) error) (ringi.RunRow, error) {
	var r runScan
	if err := scan(r.into()...); err != nil {
		return ringi.RunRow{}, found(err)
	}
	return r.result(), nil
}

func recordRow(scan func(...any) error) (ringi.Record, error) {
	var r recordScan
	err := scan(r.into()...)
	return r.result(), err
}

func transcriptRow(scan func(...any) error) (ringi.RunRow, ringi.Record, error) {
	var run runScan
	var record recordScan
	err := scan(append(run.into(), record.into()...)...)
	return run.result(), record.result(), err
}

// collect reads all rows and closes them.
func collect[T any](rows *sql.Rows, one func(func(...any) error) (T, error)) ([]T, error) {
	defer rows.Close()
	var list []T
	for rows.Next() {
		v, err := one(rows.Scan)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// found turns "no rows" into the error that callers branch on.
func found(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ringi.ErrNotFound
	}
	return err
}

// blob is a column of bytes; NULL is nil, and an empty one is not.
type blob []byte

// Scan copies the column: its bytes are the driver's.
func (b *blob) Scan(src any) error {
	switch src := src.(type) {
	case nil:
		*b = nil
	case []byte:
		*b = append(make([]byte, 0, len(src)), src...)
	default:
		return fmt.Errorf("column holds %T where bytes are meant", src)
	}
	return nil
}

// digest is a column of 32 bytes. One of another length was not written by a
// store: it reads as zeroes, which no chain has, so that the checks above find
// it.
type digest [32]byte

// Scan copies the column.
func (d *digest) Scan(src any) error {
	*d = digest{}
	if b, ok := src.([]byte); ok && len(b) == len(d) {
		copy(d[:], b)
	}
	return nil
}

// moment is a column of microseconds; NULL is the zero time.
type moment time.Time

// Scan reads the column.
func (m *moment) Scan(src any) error {
	switch src := src.(type) {
	case nil:
		*m = moment{}
	case int64:
		*m = moment(fromMicros(src))
	default:
		return fmt.Errorf("column holds %T where a time is meant", src)
	}
	return nil
}
