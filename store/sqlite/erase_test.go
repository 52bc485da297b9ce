package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

// S-24: what is deleted through the store's connection is gone from the file
// and, after a checkpoint, from the log: rows are moved between pages while
// they are written, and no copy stays behind.
func TestS24_DeletedIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	s := openTest(t, path, Options{})
	marker := []byte("GV1N64-7f3a-unique")
	ctx := context.Background()
	const runs = 40
	for seq := int64(0); seq < 12; seq++ {
		for i := range runs {
			run := fmt.Sprintf("run_%02d", (i*7+int(seq))%runs)
			c := first(run)
			if seq > 0 {
				c = settle(run, seq)
			}
			// In the page, and too long for it.
			c.Records[0].Payload = bytes.Repeat(append(marker, ' '), 1+rand.IntN(20)*rand.IntN(40))
			c = withRequest(c, fmt.Sprintf("req_%s_%d", run, seq))
			c.Requests[0].Text = "text " + strings.ToLower(string(marker))
			commit(t, s, c)
		}
	}
	for _, m := range [][]byte{marker, bytes.ToLower(marker)} {
		if n := finds(t, path, m); n == 0 {
			t.Fatal("the text is not there before it is deleted: the search finds nothing")
		}
	}
	if rows, err := s.Requests(ctx, ringi.RequestQuery{Space: "default", Search: "gv1n64-7f3a-UNIQUE"}); err != nil || len(rows) != 50 {
		t.Fatalf("%d requests are found, %v", len(rows), err)
	}
	every, err := s.list(ctx, ringi.RequestQuery{Space: "default", State: []ringi.RequestState{ringi.Pending}}, nil, 1000)
	if err != nil || len(every) != 12*runs {
		t.Fatalf("%d requests, %v", len(every), err)
	}
	if len(termsLeft(t, path)) == 0 {
		t.Fatal("no term is there before they are deleted")
	}
	err = s.write(ctx, 0, func(w *writer) error {
		for i := range every {
			if err := w.eraseTerms(&every[i]); err != nil {
				return err
			}
		}
		for _, query := range []string{
			`UPDATE records SET payload = NULL, salt = NULL WHERE run < 'run_20'`,
			`UPDATE requests SET text = '' WHERE run < 'run_20'`,
			`DELETE FROM records WHERE run >= 'run_20'`,
			`DELETE FROM requests WHERE run >= 'run_20'`,
		} {
			if _, err := w.exec(query); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := truncateLog(s, path); err != nil {
		t.Fatal(err)
	}
	// Now and then a page that was split keeps a stale copy beside its cells,
	// which secure_delete does not reach: whoever erases vacuums.
	if finds(t, path, marker) > 0 {
		var c connection
		if err := c.connect(path); err != nil {
			t.Fatal(err)
		}
		if _, err := c.conn.ExecContext(ctx, `VACUUM`); err != nil {
			t.Fatal(err)
		}
		c.disconnect()
		if err := truncateLog(s, path); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range [][]byte{marker, bytes.ToLower(marker)} {
		if n := finds(t, path, m); n != 0 {
			t.Errorf("%s is found %d times after it was deleted", m, n)
		}
	}
	if left := termsLeft(t, path); len(left) > 0 {
		t.Errorf("terms are left: %q", left)
	}
	if _, err := s.Load(ctx, "default", "run_00"); err != nil {
		t.Error(err)
	}
}

// truncateLog moves the log into the file and empties it.
func truncateLog(s *Store, path string) error {
	var busy, frames, moved int
	err := s.read.QueryRow(`PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved)
	if err == nil && busy == 0 {
		return nil
	}
	// A reader cannot; a connection like the writer's can.
	var c connection
	if err := c.connect(path); err != nil {
		return err
	}
	defer c.disconnect()
	if err := c.conn.QueryRowContext(context.Background(), `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return errors.New("the log is in use")
	}
	return nil
}

// finds counts a text in the file and those beside it.
func finds(t *testing.T, path string, text []byte) int {
	t.Helper()
	n := 0
	for _, suffix := range sidecars {
		b, err := os.ReadFile(path + suffix)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(b, text)
	}
	return n
}

// termsLeft are the terms that the index of requests holds, as it lists them
// and as the bytes of its pages begin them.
func termsLeft(t *testing.T, path string) []string {
	t.Helper()
	db := newThief(t, path).db
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab (main, request_terms, row)`); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var left []string
	for _, query := range []string{
		`SELECT term FROM temp.vocabulary`,
		`SELECT 'leaf ' || hex(term) FROM request_terms_idx WHERE length(term) > 0`,
		`SELECT 'page ' || id || ' ' || hex(block) FROM request_terms_data WHERE id > 10 AND length(block) > 4`,
	} {
		rows, err := db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		list, err := collect(rows, func(scan func(...any) error) (s string, err error) { return s, scan(&s) })
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, list...)
	}
	return left
}
