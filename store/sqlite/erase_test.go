package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
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
			c.Requests[0].Body = append([]byte("body "), marker...)
			commit(t, s, c)
		}
	}
	if n := finds(t, path, marker); n == 0 {
		t.Fatal("the text is not there before it is deleted: the search finds nothing")
	}
	err := s.write(ctx, 0, func(w *writer) error {
		for _, query := range []string{
			`UPDATE records SET payload = NULL, salt = NULL WHERE run < 'run_20'`,
			`UPDATE requests SET body = NULL WHERE run < 'run_20'`,
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
	if n := finds(t, path, marker); n != 0 {
		t.Errorf("the deleted text is found %d times", n)
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
