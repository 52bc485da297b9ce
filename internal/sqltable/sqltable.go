// Package sqltable holds what tables over database/sql need to be the same in
// SQLite and in PostgreSQL: how placeholders are written, how a schema goes
// forward, how times and truths stand in a column.
package sqltable

import (
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"
)

// SQLiteParams are what a data source name of SQLite needs behind its question
// mark (the driver is modernc.org/sqlite): writers begin with the lock, wait for
// it, sync, and overwrite what they delete.
const SQLiteParams = "_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)" +
	"&_pragma=synchronous(FULL)&_pragma=secure_delete(1)&_pragma=temp_store(MEMORY)"

// Dialect is how a database writes placeholders. The zero value is SQLite's.
type Dialect string

// The dialects.
const (
	SQLite     Dialect = ""           // ?
	PostgreSQL Dialect = "postgresql" // $1
)

// Known reports whether the dialect is one of those above.
func (d Dialect) Known() bool { return d == SQLite || d == PostgreSQL }

// Bind writes the placeholders of a query as the database reads them. Every
// question mark of the query is a placeholder.
func (d Dialect) Bind(query string) string {
	if d != PostgreSQL {
		return query
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		query = after
	}
}

// Each hands every row of a query's answer to scan.
func Each(rows *sql.Rows, err error, scan func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Busy reports whether SQLite said SQLITE_BUSY.
func Busy(err error) bool {
	var coded interface{ Code() int }
	return errors.As(err, &coded) && coded.Code()&0xff == 5
}

// Time returns a stored time; the zero time for 0.
func Time(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// Micros is a time as it is stored; 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Bit is a truth as it is stored.
func Bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
