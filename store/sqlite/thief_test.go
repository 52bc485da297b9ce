package sqlite

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/store/storetest"
)

// thief has a connection of its own to the file and no key: what somebody has
// who can write to it (S-03).
type thief struct{ db *sql.DB }

var _ storetest.Thief = thief{}

func newThief(t *testing.T, path string) thief {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, "_txlock=immediate", "_pragma=busy_timeout(10000)"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return thief{db}
}

// change runs statements in one transaction; the first must hit a row.
func (th thief) change(do func(tx *sql.Tx) error) error {
	tx, err := th.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// hit runs a statement that must change a row.
func hit(tx *sql.Tx, query string, args ...any) error {
	r, err := tx.Exec(query, args...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return fmt.Errorf("%w: %v", ringi.ErrNotFound, err)
	}
	return nil
}

func (th thief) UpdateRecord(space, run string, seq int64, change func(*ringi.Record)) error {
	return th.change(func(tx *sql.Tx) error {
		r, err := recordRow(tx.QueryRow(`SELECT `+recordColumns+` FROM records
			WHERE space = ? AND run = ? AND seq = ?`, space, run, seq).Scan)
		if err != nil {
			return found(err)
		}
		change(&r)
		return hit(tx, `UPDATE records SET seq = ?, kind = ?, head = ?, payload = ?, salt = ?, hash = ?
			WHERE space = ? AND run = ? AND seq = ?`,
			r.Seq, string(r.Kind), r.Head, r.Payload, r.Salt, r.Hash[:], space, run, seq)
	})
}

func (th thief) DeleteRecord(space, run string, seq int64) error {
	return th.change(func(tx *sql.Tx) error {
		return hit(tx, `DELETE FROM records WHERE space = ? AND run = ? AND seq = ?`, space, run, seq)
	})
}

func (th thief) InsertRecord(space, run string, r ringi.Record) error {
	return th.change(func(tx *sql.Tx) error {
		// By way of negative numbers: the index is unique at every step.
		_, err := tx.Exec(`UPDATE records SET seq = -seq WHERE space = ? AND run = ? AND seq >= ?`, space, run, r.Seq)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE records SET seq = 1 - seq WHERE space = ? AND run = ? AND seq < 0`, space, run)
		if err != nil {
			return err
		}
		return hit(tx, `INSERT INTO records (space, run, seq, kind, head, payload, salt, hash)
			SELECT space, id, ?, ?, ?, ?, ?, ? FROM runs WHERE space = ? AND id = ?`,
			r.Seq, string(r.Kind), r.Head, r.Payload, r.Salt, r.Hash[:], space, run)
	})
}

func (th thief) SwapRecords(space, run string, a, b int64) error {
	const move = `UPDATE records SET seq = ? WHERE space = ? AND run = ? AND seq = ?`
	return th.change(func(tx *sql.Tx) error {
		for _, m := range [][2]int64{{a, -1}, {b, a}, {-1, b}} {
			if err := hit(tx, move, m[1], space, run, m[0]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (th thief) SetRow(space, run string, change func(*ringi.RunRow)) error {
	return th.change(func(tx *sql.Tx) error {
		r, err := runRow(tx.QueryRow(readRun, space, run).Scan)
		if err != nil {
			return err
		}
		change(&r)
		var unended any = 1
		if r.Status.Final() {
			unended = nil
		}
		return hit(tx, `UPDATE runs SET thread = ?, agent = ?, parent = ?, status = ?, reason = ?, open = ?, seq = ?,
			head = ?, mac = ?, owner = ?, epoch = ?, attempts = ?, corrupt = ?, deadline = ?, created_at = ?, updated_at = ?
			WHERE space = ? AND id = ?`,
			r.Thread, r.Agent, r.Parent, string(r.Status), string(r.Reason), unended, r.Seq, r.Head[:], r.MAC, r.Owner,
			r.Epoch, r.Attempts, r.Corrupt, orNull(r.Deadline), r.CreatedAt.UnixMicro(), r.UpdatedAt.UnixMicro(), space, run)
	})
}

func (th thief) SetRequest(space, id string, change func(*ringi.RequestRow)) error {
	return th.change(func(tx *sql.Tx) error {
		r, err := requestRow(tx.QueryRow(`SELECT `+requestColumns+`, state FROM requests
			WHERE space = ? AND id = ?`, space, id).Scan)
		if err != nil {
			return err
		}
		change(&r)
		return hit(tx, `UPDATE requests SET thread = ?, call = ?, kind = ?, tool = ?, state = ?, digest = ?,
			agent = ?, initiator = ?, people = ?, teams = ?, text = ?, risk = ?,
			created_at = ?, expires_at = ?, decided_at = ?, use_by = ?, decided_by = ? WHERE space = ? AND id = ?`,
			r.Thread, r.CallID, string(r.Kind), r.Tool, string(r.State), r.Digest,
			r.Agent, r.Initiator, jsonList(r.People), jsonList(r.Teams), r.Text, string(r.Risk), r.CreatedAt.UnixMicro(),
			orNull(r.ExpiresAt), orNull(r.DecidedAt), orNull(r.UseBy), r.DecidedBy, space, id)
	})
}
